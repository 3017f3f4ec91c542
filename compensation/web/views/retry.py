import uuid

from django.http import HttpResponseBase
from django.views.decorators.http import require_http_methods

from compensation.domain.states import Reason
from compensation.operations import acts
from compensation.queries.access import require_run
from compensation.queries.acts import offers
from compensation.queries.projection import find_entry, plan_projection
from compensation.web.consequences import blocked_behind
from compensation.web.pages import Here, tenant_page
from compensation.web.recovering import ActForm, Dialog, act, effect_path, plan_of, run_path, the_offer


@require_http_methods(["GET", "HEAD", "POST"])
@tenant_page
def retry(here: Here, run_id: uuid.UUID, effect_id: str) -> HttpResponseBase:
    """The next attempt of one entry, under the same identity (CMP-609)."""
    run = require_run(here.principal, run_id)

    def build() -> Dialog:
        entry = find_entry(run, effect_id)
        behind = blocked_behind(plan_projection(here.principal, run)["entries"], effect_id)
        return Dialog(
            title=f"Retry {entry.node_id}",
            verb="Retry",
            offer=the_offer(offers(here.principal, run, entry.plan, entry), "retry"),
            back=effect_path(here, "entry", run, effect_id),
            consequence=[
                f"The next attempt is number {entry.attempts + 1}, with the same frozen input and the same node type.",
                f"It sends the same key as before, {entry.idempotency_key}. To the other system it is one request.",
                f"Its bounds start afresh: up to {entry.max_attempts} attempts. Earlier attempts stay visible.",
                *([f"Waiting behind it: {', '.join(behind)}."] if behind else []),
            ],
            plan_version=entry.plan.plan_version,
            state=entry.state,
            second_person=_second_person(entry.requires_approval, entry.reason),
        )

    def perform(form: ActForm) -> acts.ActResult:
        justification = form.cleaned_data["justification"]
        return acts.retry(
            actor=here.principal, run_id=run.pk, seen=form.seen(), effect_id=effect_id, justification=justification
        )

    return act(here, run, build, perform)


@require_http_methods(["GET", "HEAD", "POST"])
@tenant_page
def retry_mint(here: Here, run_id: uuid.UUID) -> HttpResponseBase:
    """Make a plan again that could not be made, from the facts recorded by now (CMP-112)."""
    run = require_run(here.principal, run_id)

    def build() -> Dialog:
        plan = plan_of(here.principal, run)
        return Dialog(
            title="Make the plan again",
            verb="Make the plan",
            offer=the_offer(offers(here.principal, run, plan), "retry"),
            back=run_path(here, run),
            consequence=[
                "The references are resolved again from recorded facts, under the same compensation id.",
                "If they resolve, the unwind starts; if not, nothing runs and the plan stays failed.",
            ],
            plan_version=plan.plan_version if plan else 0,
            state="failed",
        )

    def perform(form: ActForm) -> acts.ActResult:
        justification = form.cleaned_data["justification"]
        return acts.retry(
            actor=here.principal, run_id=run.pk, seen=form.seen(), effect_id=None, justification=justification
        )

    return act(here, run, build, perform)


def _second_person(requires_approval: bool, reason: str) -> str:  # noqa: FBT001 - two columns of one row
    if not requires_approval:
        return ""
    if reason == Reason.APPROVAL_DENIED:
        return "It was rejected before. A retry asks again; whoever retried it may not be the one who approves."
    return "It needs an approval at its present digest; if none stands, a person is asked before the attempt."
