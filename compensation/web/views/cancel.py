import uuid
from typing import Final

from django.http import HttpResponseBase
from django.views.decorators.http import require_http_methods

from compensation.domain.states import OnParentCancel, Trigger
from compensation.domain.workflow import WorkflowSpec
from compensation.models import Plan, Run
from compensation.operations import runs
from compensation.queries.access import require_run
from compensation.queries.acts import offers
from compensation.web.pages import Here, tenant_page
from compensation.web.recovering import ActForm, Dialog, act, plan_of, run_path, the_offer

_UNDERWAY: Final = {
    OnParentCancel.CONTINUE: "The unwind that is under way goes on; the run then reads cancelled.",
    OnParentCancel.PAUSE: "The unwind that is under way is paused until somebody resumes it.",
    OnParentCancel.MANUAL: "The unwind that is under way stops until an operator acts.",
}


@require_http_methods(["GET", "HEAD", "POST"])
@tenant_page
def cancel(here: Here, run_id: uuid.UUID) -> HttpResponseBase:
    """Cancel a run: unwind what it did, if its policy says so, or act on the unwind under way (CMP-407)."""
    run = require_run(here.principal, run_id)

    def build() -> Dialog:
        plan = plan_of(here.principal, run)
        return Dialog(
            title="Cancel the run",
            verb="Cancel the run",
            offer=the_offer(offers(here.principal, run, plan), "cancel"),
            back=run_path(here, run),
            consequence=[_what_follows(run, plan), "The engine that runs it is not stopped by this; it is told."],
            danger=True,
            extra={"no_reason": True},
        )

    def perform(_: ActForm) -> None:
        runs.cancel_run(actor=here.principal, run_id=run.pk)

    return act(here, run, build, perform)


def _what_follows(run: Run, plan: Plan | None) -> str:
    if plan is not None:
        return _UNDERWAY[OnParentCancel(plan.on_parent_cancel)]
    policy = WorkflowSpec.from_document(run.workflow_version.document).policy
    if policy is not None and Trigger.RUN_CANCEL in policy.triggers:
        return "Effects that were committed and declare an inverse are undone, in order."
    return "The policy does not unwind on a cancel: effects that were committed stay as they are."
