"""Reading an unknown effect back, and what the readings amount to (CMP-405)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

from compensation.domain.jsonpath import PathNotFoundError, extract
from compensation.domain.retry import CRASH_LIMIT, Step, StepKind, delay_ms, present_again

READINGS_THAT_DECIDE = 2


class ReadVerdict(StrEnum):
    APPLIED = "applied"
    NOT_APPLIED = "not_applied"
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True)
class Match:
    """What an answer must be: one of these statuses and, when `path` is given, `equals` at that place."""

    statuses: frozenset[int]
    path: str | None = None
    equals: object = None

    def holds(self, status: int, body: object) -> bool:
        if status not in self.statuses:
            return False
        if self.path is None:
            return True
        try:
            found = extract(self.path, body)
        except PathNotFoundError:
            return False
        # `1 == True` in Python, not in JSON.
        return found == self.equals and isinstance(found, bool) == isinstance(self.equals, bool)


@dataclass(frozen=True, slots=True)
class Reading:
    """One readback: what it said, and when it was made, in milliseconds after the attempt's deadline (negative:
    before it, when the attempt's request may still have been on its way)."""

    verdict: ReadVerdict
    after_deadline_ms: int


def read_verdict(status: int | None, body: object, *, applied: Match, not_applied: Match) -> ReadVerdict:
    """What one readback answer says; anything that is not exactly one of the two declared answers is unknown."""
    if status is None:
        return ReadVerdict.UNKNOWN
    says_applied, says_not = applied.holds(status, body), not_applied.holds(status, body)
    if says_applied == says_not:
        return ReadVerdict.UNKNOWN
    return ReadVerdict.APPLIED if says_applied else ReadVerdict.NOT_APPLIED


def after_readback(
    readings: Sequence[Reading],
    *,
    settle_ms: int,
    spent: int,
    max_attempts: int,
    backoff_ms: int,
    retry_delay_ms: int,
    jitter: float,
    crash_streak: int = 0,
    crash_limit: int = CRASH_LIMIT,
    key_holds: bool = False,
) -> Step:
    """What follows the last of one attempt's `readings` (oldest first, at least one).

    While the downstream honours the key (`key_holds`) the reading is one last look before the entry is given up:
    presenting again would be safe, so nothing has to be proven and nobody waits.

    *Applied* once completes. *Not applied* twice, the second at least `settle_ms` after the attempt's deadline,
    presents again or exhausts. Everything else reads again: after a first *not applied* when the effect has had time
    to settle, after an *unknown* with backoff, for as long as it takes.
    """
    latest = readings[-1]
    if latest.verdict == ReadVerdict.APPLIED:
        return Step(StepKind.COMPLETE)
    again = delay_ms(len(readings), backoff_ms, jitter)
    if key_holds or _proven_not_applied(readings, settle_ms):
        return present_again(
            spent=spent,
            max_attempts=max_attempts,
            retry_delay_ms=retry_delay_ms,
            crash_streak=crash_streak,
            crash_limit=crash_limit,
        )
    if latest.verdict == ReadVerdict.UNKNOWN:
        return Step(StepKind.READBACK, after_ms=again)
    return Step(StepKind.READBACK, after_ms=max(again, settle_ms - latest.after_deadline_ms))


def _proven_not_applied(readings: Sequence[Reading], settle_ms: int) -> bool:
    said_so = sum(reading.verdict == ReadVerdict.NOT_APPLIED for reading in readings)
    latest = readings[-1]
    settled = latest.verdict == ReadVerdict.NOT_APPLIED and latest.after_deadline_ms >= settle_ms
    return settled and said_so >= READINGS_THAT_DECIDE
