"""A run's log as the wire shows it (CMP-502, 506)."""

from typing import Any, Final

from audit.times import wire_time
from compensation.models import Plan, Run, RunEvent
from compensation.models.runs import ENDED

MAX_EVENTS: Final = 500


def poll(run: Run, *, after: int) -> dict[str, Any]:
    """``{events, isComplete}``: the events after this sequence, at most 500, and whether any more can come.

    The end is read first: whatever was written before it is then among the events.
    """
    ended = is_complete(run)
    events = run_events(run, after=after)
    return {"events": events, "isComplete": ended and len(events) < MAX_EVENTS}


def run_events(run: Run, *, after: int = 0, limit: int = MAX_EVENTS) -> list[dict[str, Any]]:
    """The events with a sequence above ``after``, in order."""
    rows = RunEvent.objects.filter(tenant_id=run.tenant_id, run=run, sequence__gt=after).order_by("sequence")
    return [event_wire(event) for event in rows[:limit]]


def is_complete(run: Run) -> bool:
    """Whether the run has ended and its plan, if any, is closed; read afresh."""
    ended = Run.objects.filter(pk=run.pk, status__in=ENDED).exists()
    return ended and not Plan.objects.filter(tenant_id=run.tenant_id, run=run, closed_at__isnull=True).exists()


def event_wire(event: RunEvent) -> dict[str, Any]:
    return {
        "eventId": str(event.pk),
        "runId": str(event.run_id),
        "type": event.type,
        "payload": event.payload,
        "timestamp": wire_time(event.at),
        "sequence": event.sequence,
        **({"nodeId": event.node_id} if event.node_id else {}),
        **({"causationId": event.causation_id} if event.causation_id else {}),
    }
