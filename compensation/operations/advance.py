"""After anything changed in a plan: open what may start, take back what may not, close what is done.

The one place where an entry comes to the head of the order (CMP-320…322, 601).
"""

from collections.abc import Sequence

from django.db.models import Value
from django.db.models.functions import Greatest, Now

from compensation.domain.heads import Standing, unblocked
from compensation.domain.states import ObligationState, OrderingModel
from compensation.models import Obligation, Plan, Run
from compensation.operations import asking, attention, log, rollup
from compensation.operations.entries import move
from compensation.operations.queue import dequeue, enqueue

QUEUED = (ObligationState.READY, ObligationState.RETRY_SCHEDULED)


def advance(run: Run, plan: Plan) -> None:
    """Bring the plan forward as far as its order, approvals and holds allow. The caller holds the run's lock."""
    entries = list(
        plan.entries.select_for_update(of=("self",), no_key=True)
        .select_related("node_type_version__node_type", "tenant")
        .order_by("position")
    )
    if not plan.terminated:
        _open_and_take_back(run, plan, entries)
    states = [entry.state for entry in entries]
    manual = rollup.manual_open(plan)
    _close_or_reopen(run, plan, entries, manual=manual)
    rollup.refresh(run, plan, states, manual=manual)


def _open_and_take_back(run: Run, plan: Plan, entries: Sequence[Obligation]) -> None:
    standings = [
        Standing(key=entry.effect_id, state=ObligationState(entry.state), predecessors=entry.predecessors)
        for entry in entries
    ]
    free = unblocked(standings, OrderingModel(plan.ordering_model))
    for entry in entries:
        if entry.effect_id in free and entry.state == ObligationState.WAITING:
            _open(run, plan, entry)
        elif entry.effect_id not in free and entry.state in QUEUED:
            dequeue(entry)
            move(entry, ObligationState.WAITING)


def _open(run: Run, plan: Plan, entry: Obligation) -> None:
    """An entry at the head: a person's task, a question to an approver, or due work."""
    if entry.node_type_version is not None and entry.node_type_version.kind == "manual":
        move(entry, ObligationState.HELD)
        attention.call_for_manual(run, plan, entry, cause="manual-action")
    elif entry.requires_approval and not asking.approved(entry):
        move(entry, ObligationState.AWAITING_APPROVAL)
        asking.ask_to_run(run, plan, entry)
    else:
        _make_due(entry)


def _make_due(entry: Obligation) -> None:
    """Due at once, or when its backoff ends."""
    due = Greatest(Now(), Value(entry.next_attempt_at)) if entry.next_attempt_at else None
    move(entry, ObligationState.READY)
    enqueue(entry, due=due)


def _close_or_reopen(run: Run, plan: Plan, entries: Sequence[Obligation], *, manual: bool) -> None:
    if plan.terminated or plan.mint_failure is not None:
        return
    settled = not manual and all(entry.outcome for entry in entries)
    if settled == (plan.closed_at is not None):
        return
    plan.closed_at = Now() if settled else None
    plan.save(update_fields=["closed_at"])
    plan.refresh_from_db(fields=["closed_at"])
    if settled and all(entry.state == ObligationState.COMPLETED for entry in entries):
        log.plan_event(run, plan, "completed")
