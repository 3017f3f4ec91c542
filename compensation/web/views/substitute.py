import uuid
from typing import Any, Final

from django import forms
from django.http import HttpResponseBase
from django.views.decorators.http import require_http_methods

from compensation.models import NodeType
from compensation.operations import acts
from compensation.operations.safety import proven_not_applied
from compensation.operations.substitution import Replacement
from compensation.queries.access import require_run
from compensation.queries.acts import offers
from compensation.queries.projection import find_entry
from compensation.web.pages import Here, tenant_page
from compensation.web.recovering import ActForm, Dialog, act, effect_path, the_offer

UNPROVEN: Final = (
    "Nothing proves that the earlier attempts had no effect, so another person must attest it before anything changes."
)


class SubstituteForm(ActForm):
    node_type_id = forms.CharField(max_length=256)
    node_type_version = forms.IntegerField(min_value=1, required=False)
    receipt = forms.CharField(max_length=500, required=False)
    evidence = forms.CharField(max_length=2000, required=False, widget=forms.Textarea)

    def replacement(self) -> Replacement:
        data: dict[str, Any] = self.cleaned_data
        return Replacement(
            node_type_id=data["node_type_id"],
            version=data["node_type_version"],
            receipt=data["receipt"],
            evidence=data["evidence"],
        )


@require_http_methods(["GET", "HEAD", "POST"])
@tenant_page
def substitute(here: Here, run_id: uuid.UUID, effect_id: str) -> HttpResponseBase:
    """Another node type for the same frozen input, or the record of what a person did outside (CMP-609, 615)."""
    run = require_run(here.principal, run_id)

    def build() -> Dialog:
        entry = find_entry(run, effect_id)
        return Dialog(
            title=f"Substitute the action of {entry.node_id}",
            verb="Substitute",
            offer=the_offer(offers(here.principal, run, entry.plan, entry), "substitute"),
            back=effect_path(here, "entry", run, effect_id),
            consequence=[
                f"The plan becomes version {entry.plan.plan_version + 1}; this entry gets a new digest.",
                "It also gets a new key: to the other system it is a new request.",
                "The frozen input stays byte for byte. Open approvals of this entry no longer count.",
                "A manual node type records that it was done outside, with a receipt, evidence and a second person.",
            ],
            plan_version=entry.plan.plan_version,
            state=entry.state,
            danger=True,
            reason_required=True,
            second_person="" if proven_not_applied(entry) else UNPROVEN,
            extra={"node_types": _node_types(here)},
            form_class=SubstituteForm,
        )

    def perform(form: SubstituteForm) -> acts.ActResult:
        return acts.substitute(
            actor=here.principal,
            run_id=run.pk,
            seen=form.seen(),
            effect_id=effect_id,
            justification=form.cleaned_data["justification"],
            replacement=form.replacement(),
        )

    return act(here, run, build, perform)


def _node_types(here: Here) -> list[str]:
    """Names to choose from; whoever may substitute names one of the tenant's, visible or not in the registry page."""
    named = NodeType.objects.filter(tenant=here.tenant).order_by("node_type_id")
    return list(named.values_list("node_type_id", flat=True)[:200])
