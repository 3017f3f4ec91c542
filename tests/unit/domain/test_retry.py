"""What an answer proves and what follows from it (CMP-402, CMP-403, CMP-405, CMP-406)."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from compensation.domain.node_type import DEFAULT_RETRYABLE, DEFAULT_SUCCESS
from compensation.domain.retry import (
    MAX_DELAY_MS,
    Answer,
    Safety,
    Step,
    StepKind,
    Verdict,
    attempt_outcome,
    classify,
    delay_ms,
    next_step,
)
from compensation.domain.states import AttemptOutcome, Reason

JITTER = st.floats(0, 1, exclude_max=True)
EXHAUST = Step(StepKind.EXHAUST, reason=Reason.RETRIES_EXHAUSTED)


def verdict(answer: Answer, *, success: frozenset[int] = DEFAULT_SUCCESS) -> Verdict:
    return classify(answer, success=success, retryable=DEFAULT_RETRYABLE)


def safety(*, keys: bool = False, readback: bool = False, age: float = 0) -> Safety:
    return Safety(honours_keys=keys, key_age_hours=age, key_lifetime_hours=24, has_readback=readback)


def step(found: Verdict, contract: Safety, **more: Any) -> Step:
    return next_step(found, safety=contract, **{"spent": 1, "max_attempts": 3, "retry_delay_ms": 500, **more})


@given(st.integers(1, 200), st.integers(0, 10**7), JITTER)
def test_cmp_402_the_delay_doubles_grows_by_jitter_only_and_is_capped(
    attempt: int, backoff_ms: int, jitter: float
) -> None:
    least = min(MAX_DELAY_MS, backoff_ms * 2 ** (attempt - 1))
    delay = delay_ms(attempt, backoff_ms, jitter)
    assert least <= delay <= min(MAX_DELAY_MS, least * 1.25 + 1)
    assert delay_ms(attempt + 1, backoff_ms, jitter) >= delay


@given(st.integers(1, 20), st.integers(0, 10**6), JITTER, st.integers(0, 10**8))
def test_cmp_402_retry_after_is_honoured_within_the_cap(attempt: int, backoff: int, jitter: float, asked: int) -> None:
    delay = delay_ms(attempt, backoff, jitter, asked)
    assert delay == max(delay_ms(attempt, backoff, jitter), min(asked, MAX_DELAY_MS))
    assert delay <= 15 * 60 * 1000


@pytest.mark.parametrize("status", [200, 201, 204])
def test_cmp_405_a_declared_success_that_can_be_read(status: int) -> None:
    assert verdict(Answer(status)) == Verdict.SUCCEEDED
    assert verdict(Answer(status, body_readable=False)) == Verdict.UNKNOWN


@pytest.mark.parametrize("status", [202, 206, 301, 302, 307, 100, 500, 501, 502, 503, 504, 599])
def test_cmp_405_an_answer_that_declares_nothing_leaves_the_effect_unknown(status: int) -> None:
    assert verdict(Answer(status)) == Verdict.UNKNOWN


@pytest.mark.parametrize("status", [400, 404, 409, 410, 412, 422, 451])
def test_cmp_402_a_definite_rejection(status: int) -> None:
    assert verdict(Answer(status)) == Verdict.REJECTED
    assert verdict(Answer(status, body_readable=False)) == Verdict.REJECTED


@pytest.mark.parametrize("status", [408, 425, 429])
def test_cmp_402_come_again_is_no_definite_rejection(status: int) -> None:
    assert classify(Answer(status), success=(200,)) == Verdict.UNKNOWN


@pytest.mark.parametrize("answer", [Answer(409, retry_after_ms=0), Answer(409, error_code="idempotency_in_flight")])
def test_cmp_402_a_409_in_progress_is_no_definite_rejection(answer: Answer) -> None:
    assert verdict(answer) == Verdict.UNKNOWN


def test_cmp_402_a_4xx_declared_retryable_is_no_definite_rejection() -> None:
    assert classify(Answer(423), success=(200,), retryable=(423,)) == Verdict.UNKNOWN


@pytest.mark.parametrize("status", [401, 403])
def test_cmp_402_a_refused_key_is_not_the_obligation(status: int) -> None:
    assert verdict(Answer(status)) == Verdict.CREDENTIALS_REFUSED


def test_cmp_405_a_declared_success_may_be_a_404_when_undoing_twice_is_fine() -> None:
    assert verdict(Answer(404), success=frozenset({200, 404})) == Verdict.SUCCEEDED


def test_cmp_405_only_what_was_never_sent_is_known_not_to_have_happened() -> None:
    assert verdict(Answer(sent=False, error_class="connection-refused")) == Verdict.NOT_SENT
    assert verdict(Answer(sent=True, error_class="connection-lost")) == Verdict.UNKNOWN
    assert verdict(Answer(sent=True, timed_out=True)) == Verdict.UNKNOWN


@given(st.builds(Answer, st.none() | st.integers(100, 599), st.booleans(), st.booleans(), st.booleans()))
def test_cmp_405_nothing_is_proven_but_by_a_success_a_rejection_or_an_unsent_request(answer: Answer) -> None:
    proves = {
        Verdict.SUCCEEDED: answer.status in DEFAULT_SUCCESS and answer.body_readable,
        Verdict.REJECTED: answer.status is not None and 400 <= answer.status < 500,
        Verdict.NOT_SENT: answer.status is None and not answer.sent,
        Verdict.CREDENTIALS_REFUSED: answer.status in {401, 403},
        Verdict.UNKNOWN: True,
    }
    assert proves[verdict(answer)]


@pytest.mark.parametrize(
    ("answer", "outcome"),
    [
        (Answer(200), AttemptOutcome.SUCCEEDED),
        (Answer(422), AttemptOutcome.FAILED),
        (Answer(401), AttemptOutcome.FAILED),
        (Answer(sent=False), AttemptOutcome.FAILED),
        (Answer(timed_out=True), AttemptOutcome.TIMED_OUT),
        (Answer(sent=False, timed_out=True), AttemptOutcome.TIMED_OUT),
        (Answer(503), AttemptOutcome.UNKNOWN),
        (Answer(200, body_readable=False), AttemptOutcome.UNKNOWN),
    ],
)
def test_cmp_403_how_an_attempt_is_recorded(answer: Answer, outcome: AttemptOutcome) -> None:
    assert attempt_outcome(answer, verdict(answer)) == outcome


def test_cmp_402_success_completes_and_a_rejection_exhausts_at_once() -> None:
    assert step(Verdict.SUCCEEDED, safety()) == Step(StepKind.COMPLETE)
    assert step(Verdict.REJECTED, safety(keys=True)) == EXHAUST


def test_cmp_402_a_refused_key_holds_the_node_type_even_after_the_last_attempt() -> None:
    assert step(Verdict.CREDENTIALS_REFUSED, safety(), spent=3).kind == StepKind.HOLD_NODE_TYPE


@pytest.mark.parametrize("contract", [safety(), safety(readback=True), safety(keys=True)])
def test_cmp_402_an_unsent_request_is_always_safe_to_repeat(contract: Safety) -> None:
    assert step(Verdict.NOT_SENT, contract) == Step(StepKind.RETRY, after_ms=500)
    assert step(Verdict.NOT_SENT, contract, spent=3) == EXHAUST


@pytest.mark.parametrize(
    ("contract", "kind"),
    [
        (safety(keys=True), StepKind.RETRY),
        (safety(keys=True, age=24), StepKind.HOLD_UNCERTAIN),
        (safety(readback=True), StepKind.READBACK),
        (safety(), StepKind.HOLD_UNCERTAIN),
    ],
)
def test_cmp_405_an_unsent_request_does_not_make_an_earlier_unknown_one_safe(contract: Safety, kind: StepKind) -> None:
    assert step(Verdict.NOT_SENT, contract, earlier_unknown=True).kind == kind


@pytest.mark.parametrize(
    ("contract", "kind"),
    [
        (safety(keys=True), StepKind.RETRY),
        (safety(keys=True, readback=True), StepKind.RETRY),
        (safety(keys=True, age=23.9), StepKind.RETRY),
        (safety(keys=True, age=24), StepKind.HOLD_UNCERTAIN),
        (safety(keys=True, readback=True, age=24), StepKind.READBACK),
        (safety(readback=True), StepKind.READBACK),
        (safety(), StepKind.HOLD_UNCERTAIN),
    ],
)
def test_cmp_405_an_unknown_effect_is_presented_again_only_where_that_is_safe(contract: Safety, kind: StepKind) -> None:
    assert step(Verdict.UNKNOWN, contract).kind == kind


def test_cmp_405_without_keys_an_unknown_effect_never_exhausts_unread() -> None:
    assert step(Verdict.UNKNOWN, safety(), spent=3).kind == StepKind.HOLD_UNCERTAIN
    assert step(Verdict.UNKNOWN, safety(readback=True), spent=3).kind == StepKind.READBACK


def test_cmp_406_with_keys_the_last_unknown_attempt_exhausts() -> None:
    assert step(Verdict.UNKNOWN, safety(keys=True), spent=2).kind == StepKind.RETRY
    assert step(Verdict.UNKNOWN, safety(keys=True), spent=3) == EXHAUST


def test_cmp_402_ten_crashes_in_a_row_hold_the_entry() -> None:
    assert step(Verdict.UNKNOWN, safety(keys=True), spent=0, crash_streak=9).kind == StepKind.RETRY
    assert step(Verdict.UNKNOWN, safety(keys=True), spent=0, crash_streak=10).kind == StepKind.HOLD_ENTRY


def test_cmp_402_what_we_refused_to_send_is_no_retry() -> None:
    """A missing credential holds the node type like a refused one; a request that cannot be written is rejected."""
    missing = Answer(status=None, sent=False, error_class="credential-missing")
    invalid = Answer(status=None, sent=False, error_class="request-invalid")
    assert classify(missing, success={200}) == Verdict.CREDENTIALS_REFUSED
    assert classify(invalid, success={200}) == Verdict.REJECTED


@pytest.mark.parametrize("has_readback", [True, False])
def test_cmp_405_406_an_unknown_effect_is_given_up_only_where_nothing_can_tell(*, has_readback: bool) -> None:
    safety = Safety(honours_keys=True, key_age_hours=0, key_lifetime_hours=24, has_readback=has_readback)
    step = next_step(Verdict.UNKNOWN, safety=safety, spent=3, max_attempts=3, retry_delay_ms=1)
    assert step.kind == (StepKind.READBACK if has_readback else StepKind.EXHAUST)
