"""Which entries may start now (CMP-320…322)."""

from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass

from compensation.domain.states import OUTCOME_OF_STATE, ObligationState, OrderingModel


@dataclass(frozen=True, kw_only=True, slots=True)
class Standing:
    """One entry of a plan in its order: ``predecessors`` are keys of entries that stand before it."""

    key: Hashable
    state: ObligationState
    predecessors: Iterable[Hashable] = ()

    @property
    def settled(self) -> bool:
        return self.state in OUTCOME_OF_STATE


def unblocked(entries: Sequence[Standing], model: OrderingModel) -> set[Hashable]:
    """Keys of the unsettled entries that nothing unsettled stands before. ``entries`` come in position order."""
    if model == OrderingModel.REVERSE_COMPLETION:
        return _first_in_line(entries)
    return _without_open_predecessor(entries)


def _first_in_line(entries: Sequence[Standing]) -> set[Hashable]:
    """One at a time: the first unsettled entry, unless a later one is still in flight."""
    open_entries = [entry for entry in entries if not entry.settled]
    in_flight = any(entry.state == ObligationState.RUNNING for entry in open_entries[1:])
    return {entry.key for entry in open_entries[:1] if not in_flight}


def _without_open_predecessor(entries: Sequence[Standing]) -> set[Hashable]:
    """An entry is blocked by any unsettled entry before it, also through settled ones in between."""
    open_at_or_above: set[Hashable] = set()
    free: set[Hashable] = set()
    for entry in entries:
        blocked = any(key in open_at_or_above for key in entry.predecessors)
        if blocked or not entry.settled:
            open_at_or_above.add(entry.key)
        if not blocked and not entry.settled:
            free.add(entry.key)
    return free
