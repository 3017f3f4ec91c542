"""Taking over what a dead worker left in flight, and what waited longer than its key is remembered (CMP-404, 405)."""

import uuid

from django.db import transaction
from django.db.models import Q
from django.db.models.functions import Now

from compensation.domain.retry import Step, StepKind
from compensation.models import Attempt, Obligation, Plan, Run, Work
from compensation.operations.acting import lock_plan, lock_run
from compensation.operations.advance import advance
from compensation.operations.safety import spec_of_entry
from compensation.runner import judge
from config.failpoints import hit

BATCH = 100


def recover_expired() -> int:
    """Decide what follows for each lease that is over and each entry gone stale, one transaction each; how many."""
    overdue = Work.objects.filter(_overdue()).order_by("due_at")
    found = list(overdue.values_list("obligation_id", "tenant_id", "run_id")[:BATCH])
    return sum(_recover(*row) for row in found)


def _overdue() -> Q:
    return Q(due_at__lte=Now()) & (Q(token__isnull=False) | Q(stale_at__lte=Now()))


def _recover(obligation_id: uuid.UUID, tenant_id: int, run_id: uuid.UUID) -> bool:
    with transaction.atomic():
        if not _lock_if_free(run_id):
            return False
        run = lock_run(tenant_id, run_id)
        plan = lock_plan(run)
        work = Work.objects.select_for_update(no_key=True).filter(_overdue(), obligation_id=obligation_id).first()
        if work is None or plan is None:
            return False
        _take_over(run, plan, work)
        hit("recovery-before-commit")
    return True


def _take_over(run: Run, plan: Plan, work: Work) -> None:
    if work.kind == "readback":
        Work.objects.filter(pk=work.pk).update(token=None, due_at=Now())
        return
    entry = (
        Obligation.objects.select_for_update(of=("self",), no_key=True)
        .select_related("node_type_version__node_type")
        .get(pk=work.obligation_id)
    )
    judge.take_step(run, plan, entry, _stale(entry) if work.token is None else _lost(entry))
    advance(run, plan)


def _lost(entry: Obligation) -> Step:
    return judge.record_lost(entry, Attempt.objects.get(obligation=entry, finished_at__isnull=True))


def _stale(entry: Obligation) -> Step:
    """The downstream may have forgotten the key: only a readback, or an operator, can tell whether to send again."""
    readable = spec_of_entry(entry).readback is not None
    return Step(StepKind.READBACK if readable else StepKind.HOLD_UNCERTAIN)


def _lock_if_free(run_id: uuid.UUID) -> bool:
    """Lock the run unless somebody else has it: a runner does not wait for one run while all the others are due."""
    run = Run.objects.select_for_update(no_key=True, skip_locked=True).filter(pk=run_id)
    return run.first() is not None
