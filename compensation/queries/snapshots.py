"""A run as the wire shows it, one or a page of them, in a constant number of queries (CMP-504, 506)."""

import uuid
from collections.abc import Collection, Sequence
from typing import Any, Final

from django.conf import settings
from django.db.models import Count, QuerySet

from approvals.models import Interrupt, InterruptState
from audit.times import wire_time
from compensation.models import Attention, Run, RunEvent

EVENT_LOG_SCHEMA_VERSION: Final = 1
WAITING_APPROVAL: Final = "waiting-approval"
_NODE_STATUS: Final = {
    "node.started": "running",
    "node.completed": "completed",
    "node.failed": "failed",
    "node.retried": "running",
    "node.cancelled": "cancelled",
}


def for_snapshots(runs: QuerySet[Run]) -> QuerySet[Run]:
    """``runs`` with what a snapshot reads of their workflow, and without the document it does not."""
    return runs.select_related("workflow_version__workflow").defer("workflow_version__document")


def run_snapshot(run: Run, *, with_inputs: bool = False) -> dict[str, Any]:
    """The snapshot of one run; ``inputs`` only for those who may see them."""
    snapshot = run_snapshots([run])[0]
    return {**snapshot, "inputs": run.inputs} if with_inputs else snapshot


def run_snapshots(runs: Sequence[Run]) -> list[dict[str, Any]]:
    """Snapshots in the order of ``runs``: three queries for any number of them."""
    ids = [run.pk for run in runs]
    waiting, loose, nodes = _waiting(ids), _uncompensated(ids), _node_states(ids)
    return [
        {
            "runId": str(run.pk),
            "workflowId": run.workflow_version.workflow.workflow_id,
            "workflowVersion": run.workflow_version.number,
            "mode": run.mode,
            "status": WAITING_APPROVAL if run.pk in waiting else run.status,
            **_rollup(run, loose.get(run.pk, 0)),
            "startedAt": wire_time(run.started_at),
            "completedAt": wire_time(run.ended_at),
            "nodeStates": nodes.get(run.pk, {}),
            "error": _error(run.error),
            "tags": run.tags,
            "metadata": run.metadata,
            "lastSequence": run.last_sequence,
            "traceparent": run.traceparent or None,
            "eventLogSchemaVersion": EVENT_LOG_SCHEMA_VERSION,
        }
        for run in runs
    ]


def _rollup(run: Run, uncompensated: int) -> dict[str, Any]:
    """The rollup, never without the effects it does not cover; nothing of it where the feature is off (CMP §8)."""
    if not settings.COMPENSATION_ENABLED:
        return {}
    return {"compensationStatus": run.compensation_status, "uncompensatedEffects": uncompensated}


def _error(error: dict[str, Any] | None) -> dict[str, Any] | None:
    """``{code, message, details?}`` of what ended the run; codes and ids only."""
    if error is None:
        return None
    code = error.get("errorCode") or "node_failed"
    details = {name: value for name, value in error.items() if name != "errorCode"}
    where = f" at node '{error['nodeId']}'" if error.get("nodeId") else ""
    return {"code": code, "message": f"The run failed{where}: {code}.", "details": details}


def _waiting(ids: Collection[uuid.UUID]) -> set[uuid.UUID]:
    """Runs with an open question: their status is overlaid while it is open (CMP-506)."""
    found = Interrupt.objects.filter(context_id__in=ids, state=InterruptState.OPEN)
    return set(found.values_list("context_id", flat=True))


def _uncompensated(ids: Collection[uuid.UUID]) -> dict[uuid.UUID, int]:
    found = Attention.objects.filter(run__in=ids, kind="uncompensated", resolved_at__isnull=True)
    return dict(found.values_list("run").annotate(count=Count("id")))


def _node_states(ids: Collection[uuid.UUID]) -> dict[uuid.UUID, dict[str, Any]]:
    """The last word of the log about each node of each run."""
    last = (
        RunEvent.objects.filter(run__in=ids, type__in=_NODE_STATUS)
        .order_by("run", "node_id", "-sequence")
        .distinct("run", "node_id")
    )
    states: dict[uuid.UUID, dict[str, Any]] = {}
    for event in last:
        state = {"status": _NODE_STATUS[event.type], "at": wire_time(event.at), "sequence": event.sequence}
        states.setdefault(event.run_id, {})[event.node_id] = state
    return states
