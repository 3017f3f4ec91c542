import uuid

from django.http import HttpResponseBase
from django.views.decorators.http import require_http_methods

from compensation.operations import holds
from compensation.queries.access import require_run
from compensation.queries.acts import offers
from compensation.web.pages import Here, tenant_page
from compensation.web.recovering import ActForm, Dialog, act, plan_of, run_path, the_offer


@require_http_methods(["GET", "HEAD", "POST"])
@tenant_page
def resume(here: Here, run_id: uuid.UUID) -> HttpResponseBase:
    """Let a held plan go on (CMP-407, 409)."""
    run = require_run(here.principal, run_id)

    def build() -> Dialog:
        plan = plan_of(here.principal, run)
        return Dialog(
            title="Resume the unwind",
            verb="Resume",
            offer=the_offer(offers(here.principal, run, plan), "resume"),
            back=run_path(here, run),
            consequence=[
                "What is due starts at once, in the frozen order.",
                "What held the plan as a whole counts as dealt with, by you.",
            ],
            plan_version=plan.plan_version if plan else 0,
        )

    def perform(form: ActForm) -> None:
        holds.resume_plan(actor=here.principal, run_id=run.pk, reason=form.cleaned_data["justification"])

    return act(here, run, build, perform)
