"""The breaker of a node type: after N failures in a row its entries wait; one probe reopens it (CMP-409)."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from enum import StrEnum


class Admission(StrEnum):
    ADMIT = "admit"
    PROBE = "probe"
    WAIT = "wait"


@dataclass(frozen=True, slots=True)
class Breaker:
    """Failures in a row, until when it is open (None: closed), and whether the one probe is out."""

    failures: int = 0
    open_until: datetime | None = None
    probing: bool = False


def admit(breaker: Breaker, *, now: datetime) -> Admission:
    """May an entry of this node type be called now? A `PROBE` answer is to be recorded with `probe_sent`."""
    if breaker.open_until is None:
        return Admission.ADMIT
    if breaker.probing or now < breaker.open_until:
        return Admission.WAIT
    return Admission.PROBE


def probe_sent(breaker: Breaker) -> Breaker:
    return replace(breaker, probing=True)


def after_success() -> Breaker:
    """Any success closes it: the downstream is back."""
    return Breaker()


def after_failure(breaker: Breaker, *, now: datetime, threshold: int, cooldown: timedelta) -> Breaker:
    """One more failure: opens at the threshold, and a failed probe opens it anew. A call that was in flight when it
    opened does not lengthen the wait."""
    failures = breaker.failures + 1
    opens = breaker.probing or (breaker.open_until is None and failures >= threshold)
    if opens:
        return Breaker(failures, now + cooldown)
    return replace(breaker, failures=failures)
