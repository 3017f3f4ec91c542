import uuid

from django.http import HttpResponseBase
from django.views.decorators.http import require_http_methods

from compensation.operations import acts
from compensation.queries.access import require_run
from compensation.queries.acts import offers
from compensation.web.consequences import if_stopped
from compensation.web.pages import Here, tenant_page
from compensation.web.recovering import ActForm, Dialog, act, plan_of, run_path, the_offer
from compensation.web.standing import standing_plan
from compensation.web.words import word


@require_http_methods(["GET", "HEAD", "POST"])
@tenant_page
def terminate(here: Here, run_id: uuid.UUID) -> HttpResponseBase:
    """Close a plan for ever; what remains stays not undone (CMP-609)."""
    run = require_run(here.principal, run_id)

    def build() -> Dialog:
        plan = plan_of(here.principal, run)
        projection = standing_plan(here.principal, run)
        then = if_stopped(projection["entries"], started=projection["startedAt"] is not None)
        rollup = word("rollup", then.rollup)
        remaining = [each for each in projection["entries"] if each["outcome"] is None]
        waived = [each["nodeId"] for each in remaining if each["waiveRequiresApproval"]]
        return Dialog(
            title="Terminate the unwind",
            verb="Terminate for ever",
            offer=the_offer(offers(here.principal, run, plan), "terminate"),
            back=run_path(here, run),
            consequence=[
                f"{then.done} The unwind would read: {rollup.human.lower()} ({rollup.wire}).",
                *(f"{sentence}." for sentence in then.standing),
                "A call in flight ends by itself and is recorded truthfully. Nothing of this plan ever runs again.",
            ],
            plan_version=plan.plan_version if plan else 0,
            danger=True,
            reason_required=True,
            second_person=_waived(waived),
        )

    def perform(form: ActForm) -> acts.ActResult:
        justification = form.cleaned_data["justification"]
        return acts.terminate(actor=here.principal, run_id=run.pk, seen=form.seen(), justification=justification)

    return act(here, run, build, perform)


def _waived(node_ids: list[str]) -> str:
    if not node_ids:
        return ""
    return (
        f"Another person must approve leaving {', '.join(node_ids)} undone. Your reason below is what they will read, "
        "and nothing changes until they answer."
    )
