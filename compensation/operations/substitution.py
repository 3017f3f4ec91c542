"""Another inverse for the same frozen input, as a new plan version (CMP-305, 311, 609, 615)."""

from dataclasses import dataclass
from typing import Any

from approvals.models import Interrupt, InterruptState
from audit.errors import ValidationFailed
from compensation.domain.node_type import NodeTypeSpec, validate_input
from compensation.domain.plan import MintedEntry, plan_digest, substituted
from compensation.domain.problems import to_wire
from compensation.domain.states import NodeKind, ObligationState
from compensation.models import NodeTypeVersion, Obligation, Plan, PlanVersion, Run
from compensation.operations import asking, attention, settling
from compensation.operations.acting import Act
from compensation.operations.entries import move
from compensation.operations.frozen import as_minted, substitutable_columns_of
from compensation.operations.queue import dequeue
from compensation.operations.safety import proven_not_applied


@dataclass(frozen=True, kw_only=True, slots=True)
class Replacement:
    """What to run instead. ``version`` None means the newest; ``receipt`` and ``evidence`` are for a manual type."""

    node_type_id: str
    version: int | None = None
    receipt: str = ""
    evidence: str = ""

    def claim(self, number: int) -> dict[str, Any]:
        """What a second person attests to."""
        manual = {"receipt": self.receipt, "evidence": self.evidence} if self.receipt else {}
        return {"nodeTypeId": self.node_type_id, "nodeTypeVersion": number, **manual}


def substitute(act: Act, plan: Plan, entry: Obligation, replacement: Replacement) -> Interrupt | None:
    """Substitute at once, or ask a second person first: when a person did it outside, or when nothing proves that
    earlier attempts were not applied."""
    chosen = _chosen(plan, entry, replacement)
    if chosen.kind != NodeKind.MANUAL and proven_not_applied(entry):
        apply(act.run, plan, entry, chosen, by=act.actor.label, user_id=_person(act))
        return None
    return asking.ask_about_substitution(
        act.run,
        plan,
        entry,
        claim=replacement.claim(chosen.number),
        justification=act.justification,
        requested_by=_person(act),
    )


def apply_attested(
    run: Run, plan: Plan, entry: Obligation, interrupt: Interrupt, claim: dict[str, Any], *, by: str
) -> None:
    """Do what a second person attested: substitute, and complete the entry when it was done outside (CMP-615)."""
    replacement = Replacement(
        node_type_id=claim["nodeTypeId"],
        version=claim["nodeTypeVersion"],
        receipt=claim.get("receipt", ""),
        evidence=claim.get("evidence", ""),
    )
    chosen = _chosen(plan, entry, replacement)
    requester = f"user:{interrupt.requested_by_id}"
    apply(run, plan, entry, chosen, by=requester, user_id=interrupt.requested_by_id)
    if chosen.kind == NodeKind.MANUAL:
        receipt = {"receipt": replacement.receipt, "evidence": replacement.evidence, "attestedBy": by}
        settling.complete_elsewhere(run, plan, entry, receipt=receipt, by=requester)


def apply(run: Run, plan: Plan, entry: Obligation, chosen: NodeTypeVersion, *, by: str, user_id: int | None) -> None:
    """Make the next plan version with this entry's node type replaced; everything else frozen stays (CMP-305)."""
    spec, version = NodeTypeSpec.from_document(chosen.document), plan.plan_version + 1
    change = {
        "effectId": entry.effect_id,
        "from": _named(entry.node_type_version),
        "to": _named(chosen),
    }
    asking.withdraw(run, [plan, entry], InterruptState.VOID, handlers=[asking.RUN_IT, asking.WAIVE_IT])
    minted = substituted(
        as_minted(entry),
        node_type=spec,
        node_type_version=chosen.number,
        plan_version=version,
        quorum=chosen.node_type.quorum,
    )
    digests = dict(plan.entries.order_by("position").values_list("position", "digest"))
    digests[entry.position] = minted.digest
    plan.plan_version, plan.digest = version, plan_digest(digests.values())
    PlanVersion.objects.create(
        tenant_id=plan.tenant_id, plan=plan, number=version, digest=plan.digest, by=by, change=change
    )
    plan.save(update_fields=["plan_version", "digest"])
    attention.resolve(plan, entry, by=by)
    _put_in_place(entry, chosen, minted, user_id=user_id)
    asking.ask_ahead(run, plan, entry)


def _put_in_place(entry: Obligation, chosen: NodeTypeVersion, minted: MintedEntry, *, user_id: int | None) -> None:
    """The new action under the entry's own identity, bounds afresh; whoever chose it may not approve it (CMP-608)."""
    dequeue(entry)
    move(
        entry,
        ObligationState.WAITING,
        node_type_version=chosen,
        **substitutable_columns_of(minted),
        barred=sorted({*entry.barred, *([user_id] if user_id else [])}),
        spent=0,
        crash_streak=0,
        next_attempt_at=None,
    )


def _chosen(plan: Plan, entry: Obligation, replacement: Replacement) -> NodeTypeVersion:
    """The version to run: registered for this tenant, another or newer one, fit for the frozen input."""
    versions = NodeTypeVersion.objects.select_related("node_type").filter(
        tenant_id=plan.tenant_id, node_type__node_type_id=replacement.node_type_id
    )
    if replacement.version is not None:
        versions = versions.filter(number=replacement.version)
    chosen = versions.order_by("-number").first()
    if chosen is None:
        raise _refused("/nodeTypeId", "is no node type (or version) registered for this tenant")
    if chosen.kind == NodeKind.MANUAL:
        _require_evidence(replacement)
        return chosen
    if replacement.receipt or replacement.evidence:
        raise _refused("/receipt", "goes only with a node type of kind 'manual'")
    current = entry.node_type_version
    if current is not None and chosen.node_type_id == current.node_type_id and chosen.number <= current.number:
        raise _refused("/nodeTypeVersion", f"must be newer than the frozen version {current.number}")
    problems = validate_input(NodeTypeSpec.from_document(chosen.document), entry.input)
    if problems:
        raise ValidationFailed("The frozen input does not fit that node type; nothing was changed.", to_wire(problems))
    return chosen


def _require_evidence(replacement: Replacement) -> None:
    for name, value in (("receipt", replacement.receipt), ("evidence", replacement.evidence)):
        if not value.strip():
            raise _refused(f"/{name}", "is required to record what was done outside (CMP-615)")


def _refused(pointer: str, message: str) -> ValidationFailed:
    return ValidationFailed("Nothing was substituted.", [{"pointer": pointer, "message": message}])


def _named(version: NodeTypeVersion | None) -> dict[str, Any] | None:
    if version is None:
        return None
    return {"nodeTypeId": version.node_type.node_type_id, "nodeTypeVersion": version.number}


def _person(act: Act) -> int:
    if act.actor.user is None:
        raise ValueError("only a person substitutes")
    return act.actor.user.pk
