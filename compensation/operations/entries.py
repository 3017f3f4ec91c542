"""Moving one entry from state to state. The database refuses a move that is not legal."""

from typing import Any

from django.db.models.functions import Now

from compensation.domain.states import OUTCOME_OF_STATE, ObligationState, Reason
from compensation.models import Obligation, Work


def move(entry: Obligation, state: ObligationState, *, reason: Reason | None = None, **more: Any) -> None:
    """Set the state with its outcome and ``finished_at``; ``more`` are other columns. The caller holds the lock."""
    settled = state in OUTCOME_OF_STATE
    values: dict[str, Any] = {
        "state": state,
        "outcome": OUTCOME_OF_STATE.get(state),
        "reason": reason or "",
        "finished_at": Now() if settled else None,
        **more,
    }
    Obligation.objects.filter(pk=entry.pk).update(**values)
    entry.refresh_from_db(fields=list(values))
    if settled:
        Work.objects.filter(obligation=entry).delete()
