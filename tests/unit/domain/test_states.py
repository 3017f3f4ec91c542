"""The moves an obligation may make (CMP-203, CMP-312, CMP-505, CMP-609)."""

from __future__ import annotations

import pytest

from compensation.domain.states import (
    FINAL_STATES,
    INITIAL_STATES,
    LEGAL,
    OUTCOME_OF_STATE,
    TERMINAL_STATES,
    ObligationState,
    Outcome,
    Reason,
    is_legal,
)

S = ObligationState


@pytest.mark.parametrize("final", [S.COMPLETED, S.IRREVERSIBLE, S.SKIPPED, S.TERMINATED])
def test_cmp_312_nothing_leaves_a_final_state(final: ObligationState) -> None:
    assert final in FINAL_STATES
    assert not [move for move in LEGAL if move[0] == final]


def test_cmp_505_failed_has_an_outcome_but_can_be_reopened() -> None:
    assert S.FAILED in TERMINAL_STATES - FINAL_STATES
    reopened = {after for before, after in LEGAL if before == S.FAILED}
    assert reopened == set(ObligationState) - {S.FAILED, S.RUNNING, S.IRREVERSIBLE}


def test_cmp_203_irreversible_is_only_ever_minted() -> None:
    assert S.IRREVERSIBLE in INITIAL_STATES
    assert not [move for move in LEGAL if S.IRREVERSIBLE in move]


def test_cmp_609_no_act_settles_an_entry_with_a_call_in_flight() -> None:
    assert not is_legal(S.RUNNING, S.SKIPPED)
    assert not is_legal(S.RUNNING, S.AWAITING_APPROVAL)


def test_cmp_614_only_an_entry_that_is_due_starts_an_attempt() -> None:
    assert {before for before, after in LEGAL if after == S.RUNNING} == {S.READY, S.RETRY_SCHEDULED}


def test_cmp_603_a_denial_may_come_ahead_of_the_turn_and_a_hold_is_no_denial() -> None:
    assert is_legal(S.AWAITING_APPROVAL, S.FAILED)
    assert is_legal(S.WAITING, S.FAILED)
    assert not is_legal(S.HELD, S.FAILED)


def test_every_state_can_be_reached_and_no_move_stands_still() -> None:
    assert {after for _, after in LEGAL} | INITIAL_STATES == set(ObligationState)
    assert not [move for move in LEGAL if move[0] == move[1]]


def test_wire_outcome_is_null_until_one_of_five_states() -> None:
    assert {state.value for state in OUTCOME_OF_STATE} == {outcome.value for outcome in Outcome}


def test_cmp_501_five_reasons() -> None:
    assert {reason.value for reason in Reason} == {
        "retries-exhausted",
        "approval-denied",
        "authority-denied",
        "dead-lettered",
        "operator-terminated",
    }
