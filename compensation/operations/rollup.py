"""The stored rollup: a cache of the fold, written with the state it folds (CMP §5)."""

from collections.abc import Sequence

from compensation.domain.rollup import fold, is_active
from compensation.domain.states import RollupStatus
from compensation.models import Attention, Plan, Run


def manual_open(plan: Plan) -> bool:
    """Whether a call for manual intervention was not yet resolved by an operator."""
    return Attention.objects.filter(plan=plan, kind="manual", resolved_at__isnull=True).exists()


def derive(plan: Plan | None) -> RollupStatus:
    """The rollup folded afresh from the plan, its entries and its open calls for a person."""
    if plan is None:
        return RollupStatus.NONE
    return folded(plan, list(plan.entries.values_list("state", flat=True)), manual=manual_open(plan))


def refresh(run: Run, plan: Plan, states: Sequence[str], *, manual: bool) -> None:
    """Store the rollup on the run if it changed. The caller holds the run's lock."""
    status = folded(plan, states, manual=manual)
    if status != run.compensation_status:
        run.compensation_status = status
        Run.objects.filter(pk=run.pk).update(compensation_status=status)


def folded(plan: Plan, states: Sequence[str], *, manual: bool) -> RollupStatus:
    """The fold of a plan, the states of its entries, and whether an open call for a person holds it."""
    closed, mint_failed = plan.closed_at is not None, plan.mint_failure is not None
    return fold(
        entries=states,
        requested=True,
        started=plan.started_at is not None,
        manual_open=manual,
        active=is_active(states, closed=closed, parent_paused=plan.parent_paused, mint_failed=mint_failed),
        parent_paused=plan.parent_paused,
        mint_failed=mint_failed,
    )
