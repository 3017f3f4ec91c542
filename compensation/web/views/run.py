import uuid
from collections.abc import Mapping, Sequence
from typing import Any, Final

from django.http import HttpResponse
from django.views.decorators.http import require_safe

from compensation.domain.states import TERMINAL_STATES
from compensation.domain.workflow import WorkflowSpec
from compensation.models import Effect, Plan, Run, RunEvent
from compensation.queries.access import may, require_run
from compensation.queries.acts import offers_to_show
from compensation.queries.events import event_wire, is_complete
from compensation.queries.snapshots import run_snapshot
from compensation.web.consequences import if_stopped
from compensation.web.pages import Here, live_page, tenant_page
from compensation.web.people import names_of
from compensation.web.picture import draw
from compensation.web.standing import standing_plan

EVENTS_SHOWN: Final = 12


@require_safe
@tenant_page
def run(here: Here, run_id: uuid.UUID) -> HttpResponse:
    """A run and its unwind: the picture, the entries, what would stay if it stopped now, and what this person may do.

    Asks for itself every 2 s while anything can still happen.
    """
    found = require_run(here.principal, run_id)
    plan = Plan.objects.filter(tenant=here.tenant, run=found).first()
    projection = standing_plan(here.principal, found)
    spec = WorkflowSpec.from_document(found.workflow_version.document)
    effects = list(Effect.objects.filter(tenant=here.tenant, run=found).order_by("ordinal"))
    latest = _latest_events(found)
    return live_page(
        here,
        "run/page.html",
        part="run/_live.html",
        body="run/_body.html",
        section="runs",
        run=run_snapshot(found),
        plan=projection,
        picture=draw(projection, effects, spec),
        stop=_if_stopped(projection),
        spec=spec,
        node_of={entry["effectId"]: entry["nodeId"] for entry in projection["entries"]},
        offers=offers_to_show(here.principal, found, plan),
        readable=may(here.principal, "see_inputs", found, plan),
        inputs=found.inputs,
        events=[event_wire(event) for event in latest],
        names=names_of(_principals(latest, projection)),
        active=not is_complete(found),
    )


def _if_stopped(projection: Mapping[str, Any]) -> Any:
    """Nothing to say once every entry has its outcome: the picture says it."""
    entries = projection["entries"]
    if all(entry["state"] in TERMINAL_STATES for entry in entries):
        return None
    return if_stopped(entries, started=projection["startedAt"] is not None)


def _latest_events(run: Run) -> list[RunEvent]:
    return list(RunEvent.objects.filter(tenant_id=run.tenant_id, run=run).order_by("-sequence")[:EVENTS_SHOWN])


def _principals(events: Sequence[RunEvent], projection: Mapping[str, Any]) -> list[str | None]:
    deciders = [event.payload.get("principal") for event in events]
    return [*deciders, *(version["by"] for version in projection["versions"])]
