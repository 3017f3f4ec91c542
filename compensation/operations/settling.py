"""What the acts do to entries and plans once they may (CMP-406, 609)."""

from typing import Any

from django.db.models.functions import Now

from approvals.models import InterruptState
from compensation.domain.states import Disposition, ObligationState, Reason
from compensation.models import Obligation, Plan, Run
from compensation.operations import asking, attention, log
from compensation.operations.acting import Act
from compensation.operations.advance import advance
from compensation.operations.entries import move
from compensation.operations.queue import dequeue, enqueue
from compensation.operations.safety import readback_first


def fail(run: Run, plan: Plan, entry: Obligation, *, reason: Reason) -> None:
    """Record that an entry exhausted its bounds, was refused or rejected; then the policy's disposition (CMP-406)."""
    told = attention.already_dead_lettered(plan, entry)
    move(entry, ObligationState.FAILED, reason=reason, next_attempt_at=None)
    if not told:
        log.entry_event(run, plan, entry, "failed", reason=reason)
    attention.dead_letter(run, plan, entry, cause=reason)
    if plan.disposition == Disposition.MANUAL_INTERVENTION and not plan.terminated:
        attention.call_for_manual(run, plan, entry, cause="exhausted", reason=reason)


def reopen(act: Act, plan: Plan, entry: Obligation) -> None:
    """A fresh start for an entry under its own identity: bounds afresh, the total kept (CMP-505, 609).

    What may have been applied and can be read back is read back before it is presented again (CMP-405). A question
    whether to terminate the plan did not cover this entry, so it is void (CMP-610).
    """
    denied = entry.reason == Reason.APPROVAL_DENIED
    barred = sorted({*entry.barred, act.actor.user.pk}) if denied and act.actor.user else entry.barred
    attention.resolve(plan, entry, by=act.actor.label)
    asking.withdraw(act.run, [plan], InterruptState.VOID)
    afresh: dict[str, Any] = {"spent": 0, "crash_streak": 0, "next_attempt_at": None, "barred": barred}
    if readback_first(entry):
        move(entry, ObligationState.UNCERTAIN, **afresh)
        enqueue(entry, kind="readback")
    else:
        dequeue(entry)
        move(entry, ObligationState.WAITING, **afresh)
        asking.ask_ahead(act.run, plan, entry)


def skip(run: Run, plan: Plan, entry: Obligation, *, by: str) -> None:
    """Leave an entry's effect as it is, for ever."""
    attention.resolve(plan, entry, by=by)
    asking.withdraw(run, [entry], InterruptState.WITHDRAWN)
    dequeue(entry)
    move(entry, ObligationState.SKIPPED, next_attempt_at=None)


def terminate(run: Run, plan: Plan, *, by: str) -> None:
    """Close a plan for ever. Calls in flight finish and are recorded truthfully; the rest ends `terminated`."""
    attention.resolve_all(plan, by=by)
    remaining = list(plan.entries.select_for_update(no_key=True).filter(outcome__isnull=True).order_by("position"))
    asking.withdraw(run, [plan, *remaining], InterruptState.VOID)
    plan.closed_at, plan.terminated = Now(), True
    plan.save(update_fields=["closed_at", "terminated"])
    plan.refresh_from_db(fields=["closed_at"])
    for entry in remaining:
        if entry.state != ObligationState.RUNNING:
            terminate_entry(run, plan, entry)
    advance(run, plan)


def terminate_entry(run: Run, plan: Plan, entry: Obligation) -> None:
    """End one entry of a terminated plan; ``compensation.failed`` unless its failure was told already (CMP §5)."""
    dequeue(entry)
    move(entry, ObligationState.TERMINATED, reason=Reason.OPERATOR_TERMINATED, next_attempt_at=None)
    if not attention.already_dead_lettered(plan, entry):
        log.entry_event(run, plan, entry, "failed", reason=Reason.OPERATOR_TERMINATED)


def complete_elsewhere(run: Run, plan: Plan, entry: Obligation, *, receipt: object, by: str) -> None:
    """Complete an entry that a person did outside, and say by whom (CMP-615)."""
    attention.resolve(plan, entry, by=by)
    asking.withdraw(run, [entry], InterruptState.VOID, handlers=[asking.RUN_IT, asking.WAIVE_IT])
    dequeue(entry)
    move(entry, ObligationState.COMPLETED, receipt=receipt, completed_by=by, next_attempt_at=None)
