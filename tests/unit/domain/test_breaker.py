"""The breaker of a node type (CMP-409)."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from hypothesis import given
from hypothesis import strategies as st

from compensation.domain.breaker import Admission, Breaker, admit, after_failure, after_success, probe_sent

NOW = datetime(2026, 12, 1, 10, tzinfo=UTC)
COOLDOWN = timedelta(seconds=15)


def failed(breaker: Breaker, *, times: int = 1, now: datetime = NOW) -> Breaker:
    for _ in range(times):
        breaker = after_failure(breaker, now=now, threshold=3, cooldown=COOLDOWN)
    return breaker


def test_cmp_409_it_opens_at_the_threshold_and_entries_wait() -> None:
    assert admit(failed(Breaker(), times=2), now=NOW) == Admission.ADMIT
    assert admit(failed(Breaker(), times=3), now=NOW) == Admission.WAIT


def test_cmp_409_one_probe_is_let_through_after_the_cooldown() -> None:
    opened = failed(Breaker(), times=3)
    later = NOW + COOLDOWN
    assert admit(opened, now=later) == Admission.PROBE
    assert admit(probe_sent(opened), now=later) == Admission.WAIT


def test_cmp_409_a_good_probe_reopens_and_a_failed_one_waits_again() -> None:
    probing = probe_sent(failed(Breaker(), times=3))
    later = NOW + COOLDOWN
    assert admit(after_success(), now=later) == Admission.ADMIT
    again = failed(probing, now=later)
    assert admit(again, now=later) == Admission.WAIT
    assert admit(again, now=later + COOLDOWN) == Admission.PROBE


def test_cmp_409_late_failures_of_calls_in_flight_do_not_lengthen_the_wait() -> None:
    opened = failed(Breaker(), times=3)
    assert failed(opened, times=5, now=NOW + timedelta(seconds=10)).open_until == opened.open_until


@given(st.lists(st.booleans(), max_size=30))
def test_cmp_409_only_failures_in_a_row_count(succeeded: list[bool]) -> None:
    breaker, streak, opened = Breaker(), 0, False
    for each in succeeded:
        breaker = after_success() if each else failed(breaker)
        streak = 0 if each else streak + 1
        opened = streak >= 3
    assert (admit(breaker, now=NOW) == Admission.WAIT) == opened
