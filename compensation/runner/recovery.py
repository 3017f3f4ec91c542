"""Taking over what a dead worker left in flight (CMP-404)."""

import uuid

from django.db import transaction
from django.db.models.functions import Now

from compensation.models import Attempt, Obligation, Run, Work
from compensation.operations.acting import lock_plan, lock_run
from compensation.operations.advance import advance
from compensation.runner import judge
from config.failpoints import hit

BATCH = 100


def recover_expired() -> int:
    """End the attempts whose lease is over and decide what follows, one transaction each; returns how many."""
    expired = Work.objects.filter(token__isnull=False, due_at__lte=Now()).order_by("due_at")
    found = list(expired.values_list("obligation_id", "tenant_id", "run_id")[:BATCH])
    return sum(_recover(*row) for row in found)


def _recover(obligation_id: uuid.UUID, tenant_id: int, run_id: uuid.UUID) -> bool:
    with transaction.atomic():
        if not _lock_if_free(run_id):
            return False
        run = lock_run(tenant_id, run_id)
        plan = lock_plan(run)
        work = Work.objects.select_for_update(no_key=True).filter(
            obligation_id=obligation_id, token__isnull=False, due_at__lte=Now()
        )
        lease = work.first()
        if lease is None or plan is None:
            return False
        if lease.kind == "readback":
            Work.objects.filter(pk=lease.pk).update(token=None, due_at=Now())
            return True
        entry = (
            Obligation.objects.select_for_update(of=("self",), no_key=True)
            .select_related("node_type_version__node_type")
            .get(pk=obligation_id)
        )
        step = judge.record_lost(entry, Attempt.objects.get(obligation=entry, finished_at__isnull=True))
        judge.take_step(run, plan, entry, step)
        advance(run, plan)
        hit("recovery-before-commit")
    return True


def _lock_if_free(run_id: uuid.UUID) -> bool:
    """Lock the run unless somebody else has it: a runner does not wait for one run while all the others are due."""
    run = Run.objects.select_for_update(no_key=True, skip_locked=True).filter(pk=run_id)
    return run.first() is not None
