"""A person's answer to a question about a plan (CMP-602, 603, 608, 610)."""

import json
import uuid
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from django.db import transaction

from approvals import operations as approvals
from approvals.models import Answer, Interrupt, InterruptState
from audit import authority
from audit.errors import InterruptAlreadyResolved, NotFound
from audit.models import User
from audit.principals import Principal
from compensation.domain.states import ObligationState, Reason
from compensation.models import Obligation, Plan
from compensation.operations import asking, attention, log, settling, substitution, waking
from compensation.operations.acting import Act, Refused, acting, decided, lock_plan, lock_run, scopes_of
from compensation.operations.advance import advance
from compensation.operations.entries import move
from config.failpoints import hit

PERMISSION: Final = {
    asking.RUN_IT: "approve_inverse",
    asking.WAIVE_IT: "approve_waive",
    asking.REPLACE_IT: "approve_inverse",
}


@dataclass(frozen=True, kw_only=True, slots=True)
class Reply:
    """What a person answers, quoting the digest and plan version they were shown (CMP-602)."""

    answer: Answer
    digest: str
    plan_version: int
    feedback: str = ""


def resolve_interrupt(*, actor: Principal, interrupt_id: uuid.UUID, reply: Reply) -> Interrupt:
    """Answer an interrupt. Drift, expiry and an earlier answer are errors and decide nothing."""
    found = Interrupt.objects.filter(tenant=actor.tenant, pk=interrupt_id).first()
    if found is None:
        raise NotFound
    entry = Obligation.objects.filter(pk=found.subject_id).first()
    with acting(
        actor=actor,
        action="approvals:respond",
        permission=PERMISSION[found.handler],
        run_id=found.context_id,
        effect_id=entry.effect_id if entry else "",
    ) as act:
        interrupt = _answer(act, found, reply)
        hit("approval-before-commit")
    hit("approval-after-commit")
    waking.wake_after_commit()
    return interrupt


def expire_due() -> int:
    """Expire open questions whose time has passed: escalate and hold, never approve or reject (CMP-603)."""
    overdue = approvals.expired_now()
    for interrupt in overdue:
        with transaction.atomic():
            _expire(interrupt)
    return len(overdue)


def refuse_if_barred(interrupt: Interrupt, actor: Principal) -> str | None:
    """Why this person may not answer although they hold the permission (CMP-608); None when they may."""
    if actor.user is None:
        return "only a person can answer"
    if actor.user.pk in interrupt.excluded:
        return "you asked for this, started it by hand, retried a denial or substituted the action"
    return None


def current_plan_version(interrupt: Interrupt) -> int:
    """The plan version a reply must quote: the plan's present one."""
    return Plan.objects.values_list("plan_version", flat=True).get(run_id=interrupt.context_id)


def _answer(act: Act, found: Interrupt, reply: Reply) -> Interrupt:
    if act.plan is None:
        raise NotFound
    plan = act.plan
    interrupt = approvals.lock_open(found)
    act.evidence_digest = interrupt.digest
    act.justification = reply.feedback
    act.reason = reply.answer
    approvals.refuse_drift(
        interrupt, digest=reply.digest, plan_version=reply.plan_version, current_version=plan.plan_version
    )
    barred = refuse_if_barred(interrupt, act.actor)
    if barred:
        raise Refused("separation-of-duties", f"You may not answer this: {barred}. Nothing was decided.")
    state = approvals.cast(
        interrupt=interrupt,
        actor=act.actor,
        answer=reply.answer,
        plan_version=reply.plan_version,
        feedback=reply.feedback,
        still_holds=_still_holds(act, interrupt),
    )
    if state != InterruptState.OPEN:
        _settle(act, plan, interrupt, state)
    return interrupt


def _still_holds(act: Act, interrupt: Interrupt) -> Callable[[User], bool]:
    """Whether a person who accepted holds the authority at the moment the quorum closes (CMP-608)."""
    scopes = scopes_of(act.run, act.plan)
    permission = PERMISSION[interrupt.handler]
    return lambda user: authority.permits(Principal(tenant=act.actor.tenant, user=user), permission, *scopes)


def _settle(act: Act, plan: Plan, interrupt: Interrupt, state: InterruptState) -> None:
    kind = "approval.granted" if state == InterruptState.APPROVED else "approval.rejected"
    payload = {"interruptId": str(interrupt.pk), "kind": interrupt.handler, "digest": interrupt.digest}
    asking.log_resolved(act.run, interrupt)
    log.append(act.run, kind, payload, node_id=interrupt.node_key)
    FOLLOW_UP[interrupt.handler](act, plan, interrupt, state)
    advance(act.run, plan)


def _after_run_it(act: Act, plan: Plan, interrupt: Interrupt, state: InterruptState) -> None:
    """Approved: back in line, its turn decides. Rejected: `approval-denied`, then the disposition (CMP-603)."""
    entry = _locked_entry(interrupt)
    if state == InterruptState.REJECTED:
        settling.fail(act.run, plan, entry, reason=Reason.APPROVAL_DENIED)
    elif entry.state == ObligationState.AWAITING_APPROVAL:
        move(entry, ObligationState.WAITING)


def _after_waive_it(act: Act, plan: Plan, interrupt: Interrupt, state: InterruptState) -> None:
    if state != InterruptState.APPROVED:
        return
    if interrupt.subject_id == plan.pk:
        settling.terminate(act.run, plan, by=f"user:{interrupt.requested_by_id}")
        return
    entry = _locked_entry(interrupt)
    _refuse_moved_on(entry, interrupt)
    settling.skip(act.run, plan, entry, by=f"user:{interrupt.requested_by_id}")


def _after_replace_it(act: Act, plan: Plan, interrupt: Interrupt, state: InterruptState) -> None:
    if state != InterruptState.APPROVED:
        return
    entry = _locked_entry(interrupt)
    _refuse_moved_on(entry, interrupt)
    claim = json.loads(interrupt.artifact)
    substitution.apply_attested(act.run, plan, entry, interrupt, claim, by=act.actor.label)


FOLLOW_UP: Final = {
    asking.RUN_IT: _after_run_it,
    asking.WAIVE_IT: _after_waive_it,
    asking.REPLACE_IT: _after_replace_it,
}


def _locked_entry(interrupt: Interrupt) -> Obligation:
    return (
        Obligation.objects.select_for_update(of=("self",), no_key=True)
        .select_related("node_type_version__node_type")
        .get(tenant_id=interrupt.tenant_id, pk=interrupt.subject_id)
    )


def _refuse_moved_on(entry: Obligation, interrupt: Interrupt) -> None:
    """The entry ran, is running or changed since it was asked about: nothing is decided on an old picture."""
    settled = entry.state in (ObligationState.COMPLETED, ObligationState.SKIPPED, ObligationState.TERMINATED)
    if settled or entry.state == ObligationState.RUNNING or entry.entry_version != interrupt.subject_version:
        raise InterruptAlreadyResolved(
            f"The entry is now '{entry.state}'; nothing was decided.", details={"state": entry.state}
        )


def _expire(interrupt: Interrupt) -> None:
    run = lock_run(interrupt.tenant_id, interrupt.context_id)
    plan = lock_plan(run)
    still_open = Interrupt.objects.select_for_update(of=("self",)).get(pk=interrupt.pk)
    if still_open.state != InterruptState.OPEN or plan is None:
        return
    approvals.close(still_open, InterruptState.EXPIRED)
    asking.log_resolved(run, still_open)
    entry = Obligation.objects.filter(pk=still_open.subject_id).first()
    if still_open.handler == asking.RUN_IT and entry is not None:
        attention.call_for_manual(run, plan, entry, cause="approval-expired")
    advance(run, plan)
    act = Act(
        actor=Principal(tenant=run.tenant, user=None),
        action="approvals:expire",
        run=run,
        plan=plan,
        effect_id=entry.effect_id if entry else "",
        reason="expired",
        evidence_digest=still_open.digest,
    )
    decided(act, allowed=True)
