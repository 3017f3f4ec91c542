import uuid
from typing import Final

from django.http import HttpResponseBase
from django.views.decorators.http import require_http_methods

from compensation.operations import acts
from compensation.queries.access import require_run
from compensation.queries.acts import offers
from compensation.queries.projection import find_entry
from compensation.web.consequences import if_stopped
from compensation.web.pages import Here, tenant_page
from compensation.web.recovering import ActForm, Dialog, act, effect_path, the_offer
from compensation.web.standing import standing_plan
from compensation.web.words import word

WAIVED: Final = (
    "Another person must approve leaving this undone. Your reason below is what they will read, and nothing changes "
    "until they answer."
)


@require_http_methods(["GET", "HEAD", "POST"])
@tenant_page
def skip(here: Here, run_id: uuid.UUID, effect_id: str) -> HttpResponseBase:
    """Leave one effect as it is, for ever; where the plan says so, after another person approved that."""
    run = require_run(here.principal, run_id)

    def build() -> Dialog:
        entry = find_entry(run, effect_id)
        projection = standing_plan(here.principal, run)
        then = if_stopped(projection["entries"], started=projection["startedAt"] is not None, skipping=effect_id)
        rollup = word("rollup", then.rollup)
        return Dialog(
            title=f"Skip {entry.node_id}",
            verb="Skip for ever",
            offer=the_offer(offers(here.principal, run, entry.plan, entry), "skip"),
            back=effect_path(here, "entry", run, effect_id),
            consequence=[
                f"What {entry.node_id} did stays done. No retry will ever undo it from here.",
                "The entries behind it go on.",
                f"{then.done} Then the unwind would read: {rollup.human.lower()} ({rollup.wire}).",
            ],
            plan_version=entry.plan.plan_version,
            state=entry.state,
            danger=True,
            reason_required=True,
            second_person=WAIVED if entry.waive_requires_approval else "",
        )

    def perform(form: ActForm) -> acts.ActResult:
        justification = form.cleaned_data["justification"]
        return acts.skip(
            actor=here.principal, run_id=run.pk, seen=form.seen(), effect_id=effect_id, justification=justification
        )

    return act(here, run, build, perform)
