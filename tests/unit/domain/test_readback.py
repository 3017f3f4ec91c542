"""Reading an unknown effect back (CMP-405)."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from compensation.domain.readback import Match, Reading, ReadVerdict, after_readback, read_verdict
from compensation.domain.retry import MAX_DELAY_MS, Step, StepKind
from compensation.domain.states import Reason

APPLIED = Match(frozenset({200}), "$.state", "applied")
NOT_APPLIED = Match(frozenset({404}))
SETTLE_MS = 2000


def after(*readings: tuple[ReadVerdict, int], **more: Any) -> Step:
    made = [Reading(verdict, at) for verdict, at in readings]
    limits = {"spent": 1, "max_attempts": 3, "backoff_ms": 500, "retry_delay_ms": 700, "jitter": 0.0, **more}
    return after_readback(made, settle_ms=SETTLE_MS, **limits)


YES, NO, UNKNOWN = ReadVerdict.APPLIED, ReadVerdict.NOT_APPLIED, ReadVerdict.UNKNOWN


@pytest.mark.parametrize(
    ("status", "body", "verdict"),
    [
        (200, {"state": "applied"}, YES),
        (200, {"state": "pending"}, UNKNOWN),
        (200, {}, UNKNOWN),
        (200, None, UNKNOWN),
        (404, None, NO),
        (500, {"state": "applied"}, UNKNOWN),
        (None, None, UNKNOWN),
    ],
)
def test_cmp_405_only_a_declared_answer_says_anything(status: int | None, body: Any, verdict: ReadVerdict) -> None:
    assert read_verdict(status, body, applied=APPLIED, not_applied=NOT_APPLIED) == verdict


def test_cmp_405_an_answer_that_says_both_says_nothing() -> None:
    either = Match(frozenset({200}))
    assert read_verdict(200, {}, applied=either, not_applied=either) == UNKNOWN


def test_cmp_405_true_is_not_one() -> None:
    assert not Match(frozenset({200}), "$.n", 1).holds(200, {"n": True})
    assert Match(frozenset({200}), "$.n", 1).holds(200, {"n": 1.0})


def test_cmp_405_applied_completes_even_before_the_deadline() -> None:
    assert after((NO, -100), (YES, -50)) == Step(StepKind.COMPLETE)


def test_cmp_405_not_applied_once_is_not_enough_however_late() -> None:
    assert after((NO, 10 * SETTLE_MS)) == Step(StepKind.READBACK, after_ms=500)


def test_cmp_405_not_applied_twice_but_too_early_waits_until_it_has_settled() -> None:
    assert after((NO, -30_000)) == Step(StepKind.READBACK, after_ms=32_000)
    assert after((NO, 0), (NO, SETTLE_MS - 1)) == Step(StepKind.READBACK, after_ms=1000)


def test_cmp_405_not_applied_twice_the_second_settled_presents_again() -> None:
    assert after((NO, 0), (NO, SETTLE_MS)) == Step(StepKind.RETRY, after_ms=700)
    assert after((NO, 0), (UNKNOWN, 1), (NO, SETTLE_MS)).kind == StepKind.RETRY


def test_cmp_406_not_applied_after_the_last_attempt_exhausts() -> None:
    spent = after((NO, 0), (NO, SETTLE_MS), spent=3)
    assert spent == Step(StepKind.EXHAUST, reason=Reason.RETRIES_EXHAUSTED)


def test_cmp_402_not_applied_after_ten_crashes_in_a_row_holds_the_entry() -> None:
    assert after((NO, 0), (NO, SETTLE_MS), crash_streak=10).kind == StepKind.HOLD_ENTRY


def test_cmp_405_unknown_reads_again_with_backoff() -> None:
    assert [after(*[(UNKNOWN, SETTLE_MS)] * count).after_ms for count in (1, 2, 3)] == [500, 1000, 2000]


@given(st.lists(st.tuples(st.sampled_from(ReadVerdict), st.integers(-60_000, 60_000)), min_size=1, max_size=8))
def test_cmp_405_nothing_is_presented_again_unproven(readings: list[tuple[ReadVerdict, int]]) -> None:
    found = after(*readings)
    verdict, at = readings[-1]
    proven = verdict == NO and at >= SETTLE_MS and [each for each, _ in readings].count(NO) >= 2
    assert (found.kind == StepKind.RETRY) == proven
    assert (found.kind == StepKind.COMPLETE) == (verdict == YES)
    assert 0 <= found.after_ms <= MAX_DELAY_MS
