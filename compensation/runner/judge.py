"""What an attempt or a readback that was no plain success leads to (CMP-402, 405, 406, 409)."""

import random
from datetime import timedelta

from django.conf import settings
from django.db.models import Value
from django.db.models.functions import Now
from django.utils import timezone

from compensation.connectors.http import CallResult
from compensation.connectors.readback import ReadbackVerdict
from compensation.domain.breaker import Breaker, after_failure
from compensation.domain.readback import Reading, ReadVerdict, after_readback
from compensation.domain.retry import Step, StepKind, Verdict, attempt_outcome, delay_ms, next_step
from compensation.domain.states import AttemptOutcome, ObligationState
from compensation.models import Attempt, NodeType, Obligation, Plan, Readback, Run, Work
from compensation.operations import attention, holds, settling
from compensation.operations.acting import lock_plan, lock_run
from compensation.operations.advance import advance
from compensation.operations.entries import move
from compensation.operations.queue import dequeue, enqueue
from compensation.operations.safety import proven_not_applied, safety_of, spec_of_entry
from compensation.runner.claims import Claimed
from compensation.runner.results import Done
from config.failpoints import hit

WORKER_LOST = "worker-lost"


def record(done: Done) -> bool:
    """Record one result in the caller's transaction; False when the lease was taken over and nothing counts."""
    run, plan, entry = lock_entry(done.claimed)
    if not Work.objects.filter(obligation=entry, token=done.claimed.token).exists():
        return False
    if isinstance(done.result, CallResult):
        step = _record_attempt(entry, done, done.result)
    else:
        step = _record_readback(entry, done.result)
        hit("readback-before-record")
    take_step(run, plan, entry, step)
    advance(run, plan)
    return True


def record_lost(claimed_entry: Obligation, attempt: Attempt) -> Step:
    """End an attempt whose worker is gone: unknown, and not counted against the bounds (CMP-402, 404)."""
    entry = claimed_entry
    _finish(attempt, outcome=AttemptOutcome.UNKNOWN, error_class=WORKER_LOST)
    entry.spent, entry.crash_streak = max(0, entry.spent - 1), entry.crash_streak + 1
    entry.save(update_fields=["spent", "crash_streak"])
    return next_step(
        Verdict.UNKNOWN,
        safety=safety_of(entry),
        spent=entry.spent,
        max_attempts=entry.max_attempts,
        retry_delay_ms=0,
        crash_streak=entry.crash_streak,
        crash_limit=settings.CRASH_LIMIT,
    )


def lock_entry(claimed: Claimed) -> tuple[Run, Plan, Obligation]:
    """Run, plan and entry under their locks, in the order everyone takes them."""
    run = lock_run(claimed.tenant_id, claimed.run_id)
    plan = lock_plan(run)
    if plan is None:
        raise LookupError("claimed work of a run without a plan")
    entry = (
        Obligation.objects.select_for_update(of=("self",), no_key=True)
        .select_related("node_type_version__node_type")
        .get(pk=claimed.obligation_id)
    )
    return run, plan, entry


def take_step(run: Run, plan: Plan, entry: Obligation, step: Step) -> None:
    """Do what was decided. In a terminated plan nothing is presented again: what is not done stays so (CMP-609)."""
    if plan.terminated and step.kind not in (StepKind.COMPLETE, StepKind.EXHAUST):
        settling.terminate_entry(run, plan, entry)
        return
    TAKE[step.kind](run, plan, entry, step)


def _record_attempt(entry: Obligation, done: Done, result: CallResult) -> Step:
    verdict = done.verdict
    if verdict is None:
        raise TypeError("a readback is no attempt")
    attempt = Attempt.objects.get(pk=done.claimed.token)
    _finish(
        attempt,
        outcome=attempt_outcome(result.answer(), verdict),
        http_status=result.status,
        error_class=result.error_class or "",
        receipt=result.receipt,
        clocks=result.clocks(),
    )
    entry.crash_streak = 0
    if verdict == Verdict.SUCCEEDED:
        entry.receipt = result.receipt
    if verdict == Verdict.CREDENTIALS_REFUSED:
        entry.spent = max(0, entry.spent - 1)
    entry.save(update_fields=["crash_streak", "spent", "receipt"])
    _feed_breaker(entry, verdict)
    return next_step(
        verdict,
        safety=safety_of(entry),
        spent=entry.spent,
        max_attempts=entry.max_attempts,
        retry_delay_ms=delay_ms(max(1, entry.spent), entry.backoff_ms, random.random(), result.retry_after_ms),
        earlier_unknown=not proven_not_applied(entry, before=attempt.number),
    )


def _finish(attempt: Attempt, **recorded: object) -> None:
    Attempt.objects.filter(pk=attempt.pk, finished_at__isnull=True).update(finished_at=Now(), **recorded)


def _record_readback(entry: Obligation, result: ReadbackVerdict) -> Step:
    attempt = entry.attempt_rows.latest("number")
    Readback.objects.create(
        tenant_id=entry.tenant_id,
        obligation=entry,
        attempt=attempt,
        number=attempt.readbacks.count() + 1,
        verdict=result.verdict,
        http_status=result.http_status,
        error_class=result.error_class or "",
        receipt=result.receipt,
    )
    if result.verdict == ReadVerdict.APPLIED:
        entry.receipt = result.receipt
        entry.save(update_fields=["receipt"])
    return after_readback(
        [_reading(row, attempt) for row in attempt.readbacks.order_by("number")],
        settle_ms=spec_of_entry(entry).settle_ms,
        spent=entry.spent,
        max_attempts=entry.max_attempts,
        backoff_ms=entry.backoff_ms,
        retry_delay_ms=delay_ms(max(1, entry.spent), entry.backoff_ms, random.random()),
        jitter=random.random(),
        crash_streak=entry.crash_streak,
        crash_limit=settings.CRASH_LIMIT,
        key_holds=safety_of(entry).key_holds,
    )


def _reading(row: Readback, attempt: Attempt) -> Reading:
    after = (row.at - attempt.deadline_at) / timedelta(milliseconds=1)
    return Reading(verdict=ReadVerdict(row.verdict), after_deadline_ms=round(after))


def _feed_breaker(entry: Obligation, verdict: Verdict) -> None:
    """Failures that say nothing about this one obligation count against its node type (CMP-409)."""
    if verdict not in (Verdict.UNKNOWN, Verdict.NOT_SENT) or entry.node_type_version is None:
        return
    node_type = NodeType.objects.select_for_update(no_key=True).get(pk=entry.node_type_version.node_type_id)
    now = timezone.now()
    until = node_type.breaker_until
    before = Breaker(node_type.failures, until, probing=until is not None and until <= now)
    cooldown = timedelta(milliseconds=settings.BREAKER_COOLDOWN_MS)
    after = after_failure(before, now=now, threshold=settings.BREAKER_THRESHOLD, cooldown=cooldown)
    node_type.failures, node_type.breaker_until = after.failures, after.open_until
    node_type.save(update_fields=["failures", "breaker_until"])


def _complete(run: Run, plan: Plan, entry: Obligation, _: Step) -> None:
    move(entry, ObligationState.COMPLETED, crash_streak=0)


def _retry(run: Run, plan: Plan, entry: Obligation, step: Step) -> None:
    due = Now() + Value(timedelta(milliseconds=step.after_ms))
    move(entry, ObligationState.RETRY_SCHEDULED, next_attempt_at=due)
    enqueue(entry, due=entry.next_attempt_at)


def _read_back(run: Run, plan: Plan, entry: Obligation, step: Step) -> None:
    due = Now() + Value(timedelta(milliseconds=step.after_ms))
    enqueue(entry, kind="readback", due=due)
    if entry.state != ObligationState.UNCERTAIN:
        move(entry, ObligationState.UNCERTAIN)


def _hold_uncertain(run: Run, plan: Plan, entry: Obligation, _: Step) -> None:
    """Nothing can tell whether it was applied: an operator decides, seeing why (CMP-405)."""
    dequeue(entry)
    move(entry, ObligationState.UNCERTAIN)
    attention.call_for_manual(run, plan, entry, cause="uncertain")


def _hold_entry(run: Run, plan: Plan, entry: Obligation, _: Step) -> None:
    dequeue(entry)
    move(entry, ObligationState.HELD)
    attention.call_for_manual(run, plan, entry, cause="crash-loop")


def _hold_node_type(run: Run, plan: Plan, entry: Obligation, _: Step) -> None:
    """A key is wrong, not the obligation (CMP-402)."""
    dequeue(entry)
    move(entry, ObligationState.HELD)
    if entry.node_type_version is not None:
        holds.hold_for_credentials(run.tenant, entry.node_type_version.node_type)


def _exhaust(run: Run, plan: Plan, entry: Obligation, step: Step) -> None:
    if step.reason is None:
        raise ValueError("an exhaustion names its reason")
    settling.fail(run, plan, entry, reason=step.reason)


TAKE = {
    StepKind.COMPLETE: _complete,
    StepKind.RETRY: _retry,
    StepKind.READBACK: _read_back,
    StepKind.HOLD_UNCERTAIN: _hold_uncertain,
    StepKind.HOLD_ENTRY: _hold_entry,
    StepKind.HOLD_NODE_TYPE: _hold_node_type,
    StepKind.EXHAUST: _exhaust,
}
