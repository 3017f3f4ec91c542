"""`compensationStatus`: one pure fold of a plan, its entries and what is open on it (CMP §5)."""

from __future__ import annotations

from collections.abc import Sequence

from compensation.domain.states import TERMINAL_STATES, ObligationState, RollupStatus


def is_active(entries: Sequence[str], *, closed: bool, parent_paused: bool, mint_failed: bool) -> bool:
    """Some entry can still move, and the plan is neither closed, nor parent-paused, nor a failed mint."""
    if closed or parent_paused or mint_failed:
        return False
    return any(state not in TERMINAL_STATES for state in entries)


def fold(
    *,
    entries: Sequence[str],
    requested: bool,
    started: bool,
    manual_open: bool,
    active: bool,
    parent_paused: bool,
    mint_failed: bool,
) -> RollupStatus:
    """The rollup, first match wins.

    `entries` are the states of the plan's entries, `manual_open` an unresolved manual intervention, `active` as
    `is_active` tells it. A parent-paused plan or a failed mint is never active, whatever the caller says.
    """
    if not requested:
        return RollupStatus.NONE
    if manual_open:
        return RollupStatus.MANUAL
    if active and not parent_paused and not mint_failed:
        return RollupStatus.RUNNING if started else RollupStatus.PENDING
    return _remainder(entries)


def _remainder(entries: Sequence[str]) -> RollupStatus:
    """What an inactive plan amounts to; nothing is rounded up (CMP-503)."""
    completed = sum(state == ObligationState.COMPLETED for state in entries)
    if completed == 0:
        return RollupStatus.FAILED
    return RollupStatus.COMPLETED if completed == len(entries) else RollupStatus.PARTIAL
