"""The work table: a row exists iff an entry is due or leased (architecture.md, Throughput)."""

from typing import Any

from django.db.models.functions import Now

from compensation.models import Obligation, Work
from compensation.operations.safety import key_forgotten_at


def enqueue(entry: Obligation, *, kind: str = "attempt", due: Any = None) -> None:
    """Make an entry due, now or at ``due`` (a database expression), ending any lease on it."""
    version = entry.node_type_version
    if version is None:
        raise ValueError("an irreversible entry is never due")
    Work.objects.update_or_create(
        obligation_id=entry.pk,
        defaults={
            "tenant_id": entry.tenant_id,
            "run_id": entry.run_id,
            "node_type_id": version.node_type_id,
            "kind": kind,
            "due_at": due or Now(),
            "stale_at": key_forgotten_at(entry) if kind == "attempt" else None,
            "token": None,
        },
    )


def dequeue(entry: Obligation) -> None:
    """Take an entry out of the queue; a result that is still on its way can no longer be recorded."""
    Work.objects.filter(obligation_id=entry.pk).delete()
