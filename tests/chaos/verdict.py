"""What must hold of every unwind, whatever died meanwhile. One function, for the tests and for the long campaign."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from itertools import pairwise
from typing import Any

from audit.models import Decision, Tenant
from compensation.domain.states import AttemptOutcome, ObligationState, OrderingModel
from compensation.models import Attempt, Obligation, Plan, Readback, Run, RunEvent
from compensation.queries.consistency import differences
from tests.support.sandbox import SandboxProcess

ONCE_PER_PLAN = ("compensation.requested", "compensation.started", "compensation.completed")


def problems_of(tenant: Tenant, sandbox: SandboxProcess) -> list[str]:
    """Every way in which the unwinds of a tenant are not as they must be; empty is what everybody wants."""
    by_key: dict[str, dict[str, int]] = sandbox.stats()["byKey"]
    found: list[str] = []
    for run in Run.objects.filter(tenant=tenant):
        found += _of_log(run)
        found += _of_order(run)
    for entry in Obligation.objects.filter(tenant=tenant, node_type_version__isnull=False):
        found += _of_effect(entry, by_key)
        found += _of_attempts(entry)
    found += _of_decisions(tenant)
    return [*found, *(str(each) for each in differences(Run.objects.filter(tenant=tenant)))]


def _of_log(run: Run) -> Iterator[str]:
    """No event is missing or doubled (CMP-301, 404, 502)."""
    events = list(RunEvent.objects.filter(run=run).order_by("sequence"))
    if [event.sequence for event in events] != list(range(1, len(events) + 1)):
        yield f"run {run.pk}: its log is not numbered without gaps"
    counts = Counter(event.type for event in events)
    plan = Plan.objects.filter(run=run).first()
    for type_ in ONCE_PER_PLAN:
        if counts[type_] != _due_times(type_, plan):
            yield f"run {run.pk}: {counts[type_]} times {type_}"
    told = Counter(
        (event.payload.get("effectId"), event.payload["planVersion"])
        for event in events
        if event.type == "compensation.failed"
    )
    yield from (f"run {run.pk}: failed told {number} times of {which}" for which, number in told.items() if number > 1)
    decided = Decision.objects.filter(run_id=run.pk).count()
    if counts["authorization.decided"] != decided:
        yield f"run {run.pk}: {decided} decisions but {counts['authorization.decided']} in its log"


def _due_times(type_: str, plan: Plan | None) -> int:
    if plan is None:
        return 0
    if type_ == "compensation.started":
        return int(plan.started_at is not None)
    if type_ == "compensation.completed":
        return int(not plan.entries.exclude(state=ObligationState.COMPLETED).exists())
    return 1


def _of_order(run: Run) -> Iterator[str]:
    """Nothing starts before all that stands before it has its outcome (CMP-320…322)."""
    plan = Plan.objects.filter(run=run).first()
    if plan is None:
        return
    entries = {entry.effect_id: entry for entry in plan.entries.order_by("position")}
    for entry in entries.values():
        first = entry.attempt_rows.order_by("number").first()
        for before in _before(plan, entry, entries.values()):
            if first and (before.finished_at is None or before.finished_at > first.started_at):
                yield f"run {run.pk}: {entry.node_id} started before {before.node_id} had its outcome"


def _before(plan: Plan, entry: Obligation, entries: Iterable[Obligation]) -> list[Obligation]:
    if plan.ordering_model == OrderingModel.REVERSE_COMPLETION:
        return [each for each in entries if each.position < entry.position]
    return [each for each in entries if each.effect_id in entry.predecessors]


def _of_effect(entry: Obligation, by_key: dict[str, dict[str, int]]) -> Iterator[str]:
    """One effect per obligation, and nothing was sent that no durable attempt tells of (CMP-311, 312, 401)."""
    sent = Counter(entry.attempt_rows.values_list("idempotency_key", flat=True))
    keys = {entry.idempotency_key, *sent}
    effects = sum(by_key.get(key, {}).get("effects", 0) for key in keys)
    by_hand = bool(entry.completed_by)
    if entry.state == ObligationState.COMPLETED and not by_hand and effects != 1:
        yield f"{_name(entry)}: completed with {effects} effects"
    if effects > 1:
        yield f"{_name(entry)}: {effects} effects"
    for key in keys:
        requests = by_key.get(key, {}).get("requests", 0)
        if requests > sent[key]:
            yield f"{_name(entry)}: {requests} requests but {sent[key]} attempts"


def _of_attempts(entry: Obligation) -> Iterator[str]:
    """Attempts are numbered, all of them have ended, and they say what the entry says (CMP-401, 402)."""
    attempts = list(entry.attempt_rows.order_by("number"))
    if [attempt.number for attempt in attempts] != list(range(1, entry.attempts + 1)):
        yield f"{_name(entry)}: counts {entry.attempts} attempts, has {[attempt.number for attempt in attempts]}"
    for earlier, later in pairwise(attempts):
        if earlier.finished_at is None or earlier.finished_at > later.started_at:
            yield f"{_name(entry)}: attempt {later.number} began before {earlier.number} ended"
    succeeded = [attempt for attempt in attempts if attempt.outcome == AttemptOutcome.SUCCEEDED]
    if succeeded and (succeeded != attempts[-1:] or entry.state != ObligationState.COMPLETED):
        yield f"{_name(entry)}: attempt {succeeded[0].number} succeeded, the entry is {entry.state}"
    if entry.state == ObligationState.COMPLETED and not (succeeded or entry.completed_by or _read_back(attempts)):
        yield f"{_name(entry)}: completed, and nothing says why"


def _read_back(attempts: list[Attempt]) -> bool:
    return Readback.objects.filter(attempt__in=attempts[-1:], verdict="applied").exists()


def _of_decisions(tenant: Tenant) -> Iterator[str]:
    numbers = list(Decision.objects.filter(tenant=tenant).order_by("seq").values_list("seq", flat=True))
    if numbers != list(range(1, len(numbers) + 1)):
        yield f"decisions are numbered {numbers}"


def _name(entry: Obligation) -> str:
    return f"run {entry.run_id} {entry.node_id} ({entry.state})"


def summary(tenant: Tenant) -> dict[str, Any]:
    """How much was unwound, and how much of it was lost on the way and presented again."""
    attempts = Attempt.objects.filter(tenant=tenant)
    return {
        "runs": Run.objects.filter(tenant=tenant).count(),
        "attempts": attempts.count(),
        "lost": attempts.filter(error_class="worker-lost").count(),
    }
