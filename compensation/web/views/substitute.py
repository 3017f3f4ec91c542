import uuid
from typing import Any, Final

from django import forms
from django.db.models import F
from django.http import HttpResponseBase
from django.views.decorators.http import require_http_methods

from audit.errors import ValidationFailed
from compensation.domain.node_type import NodeTypeSpec, validate_input
from compensation.domain.states import NodeKind
from compensation.models import NodeTypeVersion, Obligation
from compensation.operations import acts
from compensation.operations.acts import MIN_JUSTIFICATION
from compensation.operations.safety import attempts_maybe_applied
from compensation.operations.substitution import Replacement
from compensation.queries.access import require_run
from compensation.queries.acts import offers
from compensation.queries.projection import find_entry
from compensation.web.pages import Here, tenant_page
from compensation.web.recovering import ActForm, Dialog, act, effect_path, the_offer

CHOICES_SHOWN: Final = 200
UNPROVEN: Final = (
    "Nothing proves that the earlier attempts had no effect, so another person must attest it before anything changes."
)
ATTESTATION: Final = (
    "I attest that I looked in the other system and that what I choose here does not do a second time what an earlier "
    "attempt may have done."
)


class SubstituteForm(ActForm):
    node_type_id = forms.CharField(max_length=256)
    node_type_version = forms.IntegerField(min_value=1, required=False)
    receipt = forms.CharField(max_length=500, required=False)
    evidence = forms.CharField(max_length=2000, required=False, widget=forms.Textarea)

    attest = forms.BooleanField(required=False)

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
            second_person=UNPROVEN if _maybe_applied(entry) else "",
            extra={
                "substitute": True,
                "node_types": _fitting(here, entry),
                "maybe_applied": _maybe_applied(entry),
                "attestation": ATTESTATION,
            },
            form_class=SubstituteForm,
        )

    def perform(form: SubstituteForm) -> acts.ActResult:
        return acts.substitute(
            actor=here.principal,
            run_id=run.pk,
            seen=form.seen(),
            effect_id=effect_id,
            justification=_justification(form, find_entry(run, effect_id)),
            replacement=form.replacement(),
        )

    return act(here, run, build, perform)


def _maybe_applied(entry: Obligation) -> int:
    """How many attempts may have taken effect."""
    return attempts_maybe_applied([entry]).get(entry.pk, 0)


def _justification(form: SubstituteForm, entry: Obligation) -> str:
    """What was typed and, where it is needed, the attestation: both go to the second person and into the record."""
    typed: str = form.cleaned_data["justification"]
    if not _maybe_applied(entry):
        return typed
    if not form.cleaned_data["attest"]:
        problem = {"pointer": "/attest", "message": "must be checked: earlier attempts may have taken effect"}
        raise ValidationFailed("Nothing was substituted.", [problem])
    return f"{typed.strip()}\n\n{ATTESTATION}" if len(typed.strip()) >= MIN_JUSTIFICATION else typed


def _fitting(here: Here, entry: Obligation) -> list[tuple[str, str]]:
    """The newest node types that would take the frozen input, then those that a person does; each with its label."""
    newest = NodeTypeVersion.objects.filter(tenant=here.tenant, number=F("node_type__latest"))
    rows = newest.select_related("node_type").order_by("node_type__node_type_id")
    fitting = [row for row in rows if _fits(row, entry)]
    return [(row.node_type.node_type_id, _label(row)) for row in sorted(fitting, key=_by_hand)[:CHOICES_SHOWN]]


def _fits(row: NodeTypeVersion, entry: Obligation) -> bool:
    if row.kind == NodeKind.MANUAL:
        return True
    if row.pk == entry.node_type_version_id:
        return False
    return not validate_input(NodeTypeSpec.from_document(row.document), entry.input)


def _by_hand(row: NodeTypeVersion) -> bool:
    return row.kind == NodeKind.MANUAL


def _label(row: NodeTypeVersion) -> str:
    how = "done outside, by a person" if row.kind == NodeKind.MANUAL else f"v{row.number}"
    return f"{row.node_type.node_type_id} ({how})"
