import uuid
from typing import Final

from django.http import HttpResponse
from django.views.decorators.http import require_safe

from compensation.models import Obligation
from compensation.operations.safety import proven_not_applied
from compensation.queries.access import may, require_run, visible_interrupts
from compensation.queries.acts import offers_to_show
from compensation.queries.events import is_complete
from compensation.queries.interrupts import interrupt_wires
from compensation.queries.projection import attempt_wire, attempts_of, find_entry
from compensation.web.consequences import blocked_behind
from compensation.web.pages import Here, live_page, tenant_page
from compensation.web.people import names_of
from compensation.web.standing import standing_plan

ATTEMPTS_SHOWN: Final = 50
QUESTIONS_SHOWN: Final = 20


@require_safe
@tenant_page
def entry(here: Here, run_id: uuid.UUID, effect_id: str) -> HttpResponse:
    """One obligation: what is frozen, how it stands, every attempt newest first, and what this person may do."""
    run = require_run(here.principal, run_id)
    owed = find_entry(run, effect_id)
    projection = standing_plan(here.principal, run)
    shown = next(each for each in projection["entries"] if each["effectId"] == effect_id)
    questions = visible_interrupts(here.principal).filter(subject_id=owed.pk).order_by("-id")[:QUESTIONS_SHOWN]
    approvals = interrupt_wires(here.principal, list(questions))
    return live_page(
        here,
        "entry/page.html",
        part="entry/_live.html",
        body="entry/_body.html",
        section="runs",
        plan=projection,
        entry=shown,
        node_of={each["effectId"]: each["nodeId"] for each in projection["entries"]},
        behind=blocked_behind(projection["entries"], effect_id),
        offers=offers_to_show(here.principal, run, owed.plan, owed),
        approvals=approvals,
        attempts=_attempts(owed),
        unproven=not proven_not_applied(owed),
        readable=may(here.principal, "see_inputs", run, owed.plan),
        names=names_of([shown["completedBy"], *(vote["principal"] for each in approvals for vote in each["votes"])]),
        active=not is_complete(run),
    )


@require_safe
@tenant_page
def attempts(here: Here, run_id: uuid.UUID, effect_id: str) -> HttpResponse:
    """The newest attempts of one entry, for a row that was unfolded; alone they are a page too."""
    owed = find_entry(require_run(here.principal, run_id), effect_id)
    return here.render(
        "entry/attempts.html", part="entry/_attempts.html", section="runs", owed=owed, attempts=_attempts(owed)
    )


def _attempts(owed: Obligation) -> list[dict[str, object]]:
    return [attempt_wire(attempt) for attempt in attempts_of(owed).order_by("-number")[:ATTEMPTS_SHOWN]]
