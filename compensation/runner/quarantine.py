"""One entry that the database refuses to let run must not stop all the others."""

import uuid

import structlog
from django.db import IntegrityError, transaction
from django.db.models.functions import Now

from compensation.domain.states import ObligationState
from compensation.models import Obligation, Work
from compensation.operations import attention
from compensation.operations.acting import lock_plan, lock_run
from compensation.operations.advance import advance
from compensation.operations.entries import move
from compensation.operations.queue import dequeue
from compensation.runner.claims import Claimed, claim

log = structlog.get_logger(__name__)


def claim_one_by_one(*, limit: int, worker: str) -> list[Claimed]:
    """Claim due entries each on its own; one that a wall refuses is held for an operator instead."""
    due = Work.objects.filter(token__isnull=True, due_at__lte=Now()).order_by("due_at")
    claimed: list[Claimed] = []
    for entry_id in list(due.values_list("obligation_id", flat=True)[:limit]):
        try:
            with transaction.atomic():
                claimed += claim(limit=limit, worker=worker, only=entry_id)
        except IntegrityError:
            log.exception("the database refuses this entry; it is held", obligation=str(entry_id))
            _hold(entry_id)
    return claimed


def _hold(entry_id: uuid.UUID) -> None:
    tenant_id, run_id = Obligation.objects.values_list("tenant_id", "run_id").get(pk=entry_id)
    with transaction.atomic():
        run = lock_run(tenant_id, run_id)
        plan = lock_plan(run)
        entry = Obligation.objects.select_for_update(no_key=True).get(pk=entry_id)
        dequeue(entry)
        if plan is None or entry.outcome is not None:
            return
        move(entry, ObligationState.HELD)
        attention.call_for_manual(run, plan, entry, cause="refused-by-database")
        advance(run, plan)
