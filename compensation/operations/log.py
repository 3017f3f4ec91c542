"""A run's own log: append-only, numbered without gaps, written with the state it tells of (CMP-502)."""

from typing import Any, Final

from django.db import connection

from compensation.domain.events import check_event
from compensation.models import Obligation, Plan, Run, RunEvent

NEXT_SEQUENCE: Final = (
    "update compensation_run set last_sequence = last_sequence + 1 where id = %s returning last_sequence"
)


def append(run: Run, type_: str, payload: dict[str, Any] | None = None, *, node_id: str = "") -> RunEvent:
    """Append one event. The caller holds the run's row lock; the payload is checked against its schema (CMP-501)."""
    body = payload or {}
    check_event(type_, body)
    run.last_sequence = _next_sequence(run)
    return RunEvent.objects.create(
        tenant_id=run.tenant_id, run=run, sequence=run.last_sequence, type=type_, payload=body, node_id=node_id
    )


def _next_sequence(run: Run) -> int:
    with connection.cursor() as cursor:
        cursor.execute(NEXT_SEQUENCE, [run.pk])
        row = cursor.fetchone()
    return int(row[0])


def plan_event(run: Run, plan: Plan, kind: str, *, reason: str = "", **more: Any) -> RunEvent:
    """Append ``compensation.<kind>`` about the whole plan."""
    payload = {
        "compensationId": str(plan.pk),
        "orderingModel": plan.ordering_model,
        "planVersion": plan.plan_version,
        **({"reason": reason} if reason else {}),
        **more,
    }
    return append(run, f"compensation.{kind}", payload)


def entry_event(run: Run, plan: Plan, entry: Obligation, kind: str, *, reason: str = "") -> RunEvent:
    """Append ``compensation.<kind>`` about one entry: ids and counts only, never content (CMP-501)."""
    payload: dict[str, Any] = {
        "compensationId": str(plan.pk),
        "nodeId": entry.node_id,
        "effectId": entry.effect_id,
        "planVersion": plan.plan_version,
        **({"attempt": entry.attempts} if entry.attempts else {}),
        **({"reason": reason} if reason else {}),
    }
    return append(run, f"compensation.{kind}", payload, node_id=entry.node_id)
