"""The operator's acts on outcomes, and no other (CMP-609): retry, skip, substitute, terminate; and start.

Each names what the operator saw (plan version, state) and loses when that is no longer so; each writes its decision.
"""

import uuid
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, Final

from django.db.models import Q

from approvals.models import Interrupt
from audit.errors import NotFound, RunTerminal, ValidationFailed, VersionConflict
from audit.models import Decision
from audit.principals import Principal
from compensation.domain.states import NodeKind, ObligationState, RunStatus, Trigger
from compensation.domain.workflow import WorkflowSpec
from compensation.models import Obligation, Plan, Run
from compensation.models.runs import ENDED
from compensation.operations import asking, attention, minting, settling, substitution, waking
from compensation.operations.acting import Act, acting
from compensation.operations.advance import advance
from config.failpoints import hit

MIN_JUSTIFICATION: Final = 10
MAX_JUSTIFICATION: Final = 4000
RETRYABLE: Final = (ObligationState.FAILED, ObligationState.UNCERTAIN, ObligationState.HELD)
UNTOUCHABLE: Final = (ObligationState.COMPLETED, ObligationState.IRREVERSIBLE, ObligationState.TERMINATED)


@dataclass(frozen=True, kw_only=True, slots=True)
class Seen:
    """What the operator saw when they decided; both must still be so (409 otherwise)."""

    plan_version: int
    state: str = ""


@dataclass(kw_only=True)
class ActResult:
    """What an act did: its decision, and the approval that must first be given when it only asked for one."""

    run: Run
    plan: Plan | None = None
    decision: Decision | None = None
    interrupt: Interrupt | None = None
    changed: dict[str, Any] = field(default_factory=dict)


def start(*, actor: Principal, run_id: uuid.UUID, justification: str = "") -> ActResult:
    """Start an unwind by hand on a run that has ended and has no plan (CMP-201, `operator-request`)."""
    with acting(actor=actor, action="compensation:start", permission="start", run_id=run_id) as act:
        act.justification = justification
        if act.plan is not None:
            raise VersionConflict(
                "This run already has a plan; nothing was started.",
                details={"compensationId": str(act.plan.pk), "planVersion": act.plan.plan_version},
            )
        if act.run.status not in ENDED:
            raise RunTerminal(f"The run is still '{RunStatus(act.run.status)}'; cancel it or let it end first.")
        _refuse_unlisted_trigger(act.run)
        act.plan = minting.trigger(run=act.run, trigger=Trigger.OPERATOR_REQUEST, by=actor.user)
        if act.plan is None:
            raise VersionConflict("Nothing of this run is owed an inverse action; nothing was started.")
        hit("act-before-commit")
    waking.wake_after_commit()
    return ActResult(run=act.run, plan=act.plan, decision=act.decision)


def retry(
    *, actor: Principal, run_id: uuid.UUID, seen: Seen, effect_id: str | None, justification: str = ""
) -> ActResult:
    """Make an entry due again under the same identity with its bounds afresh, or mint a failed plan again."""
    with acting(
        actor=actor, action="compensation:retry", permission="retry", run_id=run_id, effect_id=effect_id or ""
    ) as act:
        act.justification = justification
        plan = _plan_of(act)
        if effect_id is None:
            _retry_mint(act, plan, seen)
        else:
            with _on_entry(act, plan, effect_id, seen) as entry:
                _refuse_state(entry, RETRYABLE, also=asking.expired(entry))
                _refuse_manual_kind(entry)
                settling.reopen(act, plan, entry)
        hit("act-before-commit")
    waking.wake_after_commit()
    return ActResult(run=act.run, plan=plan, decision=act.decision)


def skip(*, actor: Principal, run_id: uuid.UUID, seen: Seen, effect_id: str, justification: str) -> ActResult:
    """Leave one effect not undone: at once, or after another person approved that (CMP-609, 610)."""
    interrupt = None
    with acting(actor=actor, action="compensation:skip", permission="skip", run_id=run_id, effect_id=effect_id) as act:
        act.justification = require_justification(justification)
        plan = _plan_of(act)
        with _on_entry(act, plan, effect_id, seen) as entry:
            _refuse_state(entry, [s for s in ObligationState if s not in (*UNTOUCHABLE, ObligationState.SKIPPED)])
            if entry.waive_requires_approval:
                interrupt = _ask_waive(act, plan, [entry], "skip")
            else:
                settling.skip(act.run, plan, entry, by=actor.label)
        hit("act-before-commit")
    waking.wake_after_commit()
    return ActResult(run=act.run, plan=plan, decision=act.decision, interrupt=interrupt)


def terminate(*, actor: Principal, run_id: uuid.UUID, seen: Seen, justification: str) -> ActResult:
    """Close a plan for ever; what remains stays not undone (CMP-609)."""
    interrupt = None
    with acting(actor=actor, action="compensation:terminate", permission="terminate", run_id=run_id) as act:
        act.justification = require_justification(justification)
        plan = _plan_of(act)
        _refuse_version(plan, seen)
        remaining = list(plan.entries.filter(outcome__isnull=True).order_by("position"))
        if nothing_to_end(plan):
            raise VersionConflict(
                "Every entry of this plan has its outcome; nothing was terminated.",
                details={"planVersion": plan.plan_version},
            )
        waived = [entry for entry in remaining if entry.waive_requires_approval]
        if waived:
            interrupt = _ask_waive(act, plan, remaining, "terminate")
        else:
            settling.terminate(act.run, plan, by=actor.label)
        hit("act-before-commit")
    waking.wake_after_commit()
    return ActResult(run=act.run, plan=plan, decision=act.decision, interrupt=interrupt)


def substitute(
    *,
    actor: Principal,
    run_id: uuid.UUID,
    seen: Seen,
    effect_id: str,
    justification: str,
    replacement: substitution.Replacement,
) -> ActResult:
    """Run another node type with the same frozen input, as a new plan version (CMP-609, 615)."""
    interrupt = None
    with acting(
        actor=actor, action="compensation:substitute", permission="substitute", run_id=run_id, effect_id=effect_id
    ) as act:
        act.justification = require_justification(justification)
        plan = _plan_of(act)
        with _on_entry(act, plan, effect_id, seen) as entry:
            _refuse_state(entry, [s for s in ObligationState if s not in (*UNTOUCHABLE, ObligationState.SKIPPED)])
            interrupt = substitution.substitute(act, plan, entry, replacement)
        hit("substitute-before-commit")
    waking.wake_after_commit()
    return ActResult(run=act.run, plan=plan, decision=act.decision, interrupt=interrupt)


def require_justification(text: str) -> str:
    """A reason a reader can use months later, in every channel; it lives in the record only (CMP-611)."""
    cleaned = text.strip()
    if not MIN_JUSTIFICATION <= len(cleaned) <= MAX_JUSTIFICATION:
        message = f"expected {MIN_JUSTIFICATION} to {MAX_JUSTIFICATION} characters saying why (got {len(cleaned)})"
        raise ValidationFailed(
            "A justification is required; nothing was changed.", [{"pointer": "/justification", "message": message}]
        )
    return cleaned


def nothing_to_end(plan: Plan) -> bool:
    """Whether every entry has its outcome for good: a failed one could still be retried, and so could a failed mint."""
    undone = plan.entries.filter(Q(outcome__isnull=True) | Q(state=ObligationState.FAILED))
    return plan.mint_failure is None and not undone.exists()


def _plan_of(act: Act) -> Plan:
    if act.plan is None:
        raise NotFound("This run has no plan; nothing was changed.")
    if act.plan.terminated:
        raise VersionConflict(
            "This plan was terminated for ever; nothing was changed.",
            details={"planVersion": act.plan.plan_version, "state": "terminated"},
        )
    return act.plan


@contextmanager
def _on_entry(act: Act, plan: Plan, effect_id: str, seen: Seen) -> Iterator[Obligation]:
    """The entry under its lock, as it was seen (CMP-607, 609); the plan moves on when the body is done."""
    entry = (
        plan.entries.select_for_update(of=("self",), no_key=True)
        .select_related("node_type_version__node_type")
        .filter(effect_id=effect_id)
        .first()
    )
    if entry is None:
        raise NotFound("This run owes no such effect; nothing was changed.")
    _refuse_version(plan, seen)
    if seen.state != entry.state:
        raise VersionConflict(
            f"The entry is now '{entry.state}', not '{seen.state}'; nothing was changed.",
            details={"planVersion": plan.plan_version, "state": entry.state},
        )
    if entry.state == ObligationState.RUNNING:
        raise VersionConflict(
            "A call of this entry is in flight; nothing was changed.",
            details={"planVersion": plan.plan_version, "state": entry.state},
        )
    yield entry
    advance(act.run, plan)


def _refuse_version(plan: Plan, seen: Seen) -> None:
    if plan.plan_version != seen.plan_version:
        raise VersionConflict(
            f"The plan is now at version {plan.plan_version}, not {seen.plan_version}; nothing was changed.",
            details={"planVersion": plan.plan_version},
        )


def _refuse_state(entry: Obligation, allowed: Sequence[ObligationState], *, also: bool = False) -> None:
    if entry.state not in allowed and not also:
        raise VersionConflict(
            f"This act is not for an entry that is '{entry.state}'; nothing was changed.",
            details={"state": entry.state, "allowed": [str(state) for state in allowed]},
        )


def done_by_hand(entry: Obligation) -> bool:
    """Whether a person does this one and not the engine."""
    return entry.node_type_version is not None and entry.node_type_version.kind == NodeKind.MANUAL


def _refuse_manual_kind(entry: Obligation) -> None:
    """A person's task is not presented again; it is recorded as done, with evidence (CMP-615)."""
    if done_by_hand(entry):
        raise VersionConflict(
            "A person does this one: record it by substituting with a receipt and evidence; nothing was changed.",
            details={"state": entry.state},
        )


def _retry_mint(act: Act, plan: Plan, seen: Seen) -> None:
    _refuse_version(plan, seen)
    if plan.mint_failure is None:
        raise ValidationFailed(
            "Nothing was retried.",
            [{"pointer": "/effectId", "message": "is required: this plan was minted; name the entry to retry"}],
        )
    if seen.state and seen.state != "failed":
        raise VersionConflict("The mint has failed; nothing was changed.", details={"state": "failed"})
    attention.resolve(plan, None, by=act.actor.label)
    minting.mint_again(act.run, plan)


def _ask_waive(act: Act, plan: Plan, entries: Sequence[Obligation], what: str) -> Interrupt:
    if act.actor.user is None:
        raise ValueError("only a person asks")
    return asking.ask_to_waive(
        act.run, plan, entries, act=what, justification=act.justification, requested_by=act.actor.user.pk
    )


def _refuse_unlisted_trigger(run: Run) -> None:
    policy = WorkflowSpec.from_document(run.workflow_version.document).policy
    if policy is None or Trigger.OPERATOR_REQUEST not in policy.triggers:
        raise ValidationFailed(
            "Nothing was started.",
            [{"pointer": "", "message": "the workflow's policy does not list the trigger 'operator-request'"}],
        )
