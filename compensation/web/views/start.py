import uuid

from django.http import HttpResponseBase
from django.views.decorators.http import require_http_methods

from compensation.operations import acts
from compensation.queries.access import may, require_run
from compensation.queries.acts import offers
from compensation.queries.preview import preview
from compensation.web.pages import Here, tenant_page
from compensation.web.recovering import ActForm, Dialog, act, plan_of, run_path, the_offer


@require_http_methods(["GET", "HEAD", "POST"])
@tenant_page
def start(here: Here, run_id: uuid.UUID) -> HttpResponseBase:
    """Start an unwind by hand, after seeing exactly what would be minted (CMP-201)."""
    run = require_run(here.principal, run_id)

    def build() -> Dialog:
        plan = plan_of(here.principal, run)
        shown = preview(run, with_inputs=may(here.principal, "see_inputs", run, plan))
        return Dialog(
            title="Start the unwind",
            verb="Start the unwind",
            offer=the_offer(offers(here.principal, run, plan), "start"),
            back=run_path(here, run),
            consequence=[
                "The plan below is made from recorded facts and frozen, then its inverses start in this order.",
                "You started it, so you may not approve any of its inverses.",
            ],
            danger=True,
            extra={"preview": shown},
        )

    def perform(form: ActForm) -> acts.ActResult:
        return acts.start(actor=here.principal, run_id=run.pk, justification=form.cleaned_data["justification"])

    return act(here, run, build, perform)
