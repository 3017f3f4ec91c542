"""Legal moves, consistent outcomes, and no attempt that may not start (CMP-312, 614; the domain's tables)."""

import re
from collections.abc import Iterable
from typing import Any

import pytest
from django.db import DatabaseError, transaction

from approvals.models import Answer, InterruptState
from compensation.domain.states import (
    LEGAL,
    OUTCOME_OF_STATE,
    AttemptOutcome,
    Disposition,
    ObligationState,
    OnParentCancel,
    OrderingModel,
    Outcome,
    Reason,
    RollupStatus,
    RunStatus,
    Trigger,
)
from tests.integration.tables.sql import Subject, accepts, copy, execute, only, refuses, undone, walls_down

BRING = (
    "update compensation_obligation set state = %s, outcome = %s,"
    " finished_at = case when %s::text is null then null else now() end where id = %s"
)
FINAL = {ObligationState.COMPLETED, ObligationState.IRREVERSIBLE}


def bring(entry: Any, state: ObligationState) -> None:
    outcome = OUTCOME_OF_STATE.get(state)
    execute(BRING, [state, outcome, outcome, entry])


def moves(entry: Any, after: ObligationState) -> bool:
    """Whether the database lets the entry move to a state."""
    try:
        with transaction.atomic():
            bring(entry, after)
            transaction.set_rollback(True)
    except DatabaseError:
        return False
    return True


@pytest.mark.parametrize("before", ObligationState)
def test_the_databases_moves_are_the_domains(subject: Subject, before: ObligationState) -> None:
    entry = subject.entry("plain")
    with undone():
        with walls_down():
            bring(entry, before)
        found = {after for after in ObligationState if after != before and moves(entry, after)}
        assert found == {after for start, after in LEGAL if start == before}
        assert moves(entry, before) == (before not in FINAL)


@pytest.mark.parametrize(
    "broken",
    [
        "outcome = 'completed'",
        "finished_at = now()",
        "state = 'completed'",
        "state = 'completed', outcome = 'completed'",
        "state = 'failed', outcome = 'completed', finished_at = now()",
        "state = 'ready', outcome = 'skipped', finished_at = now()",
        "state = 'resting'",
        "state = 'failed', outcome = 'failed', finished_at = now(), reason = 'because'",
    ],
)
def test_state_outcome_and_finished_at_agree(subject: Subject, broken: str) -> None:
    statement = f"update compensation_obligation set {broken} where id = %s"
    refuses(statement, [subject.entry("plain")], says="obligation_|Invalid transition")


@pytest.mark.parametrize(
    ("table", "broken", "says"),
    [
        ("compensation_run", "ended_at = null", "run_ended_iff_terminal"),
        ("compensation_run", "status = 'running'", "run_ended_iff_terminal"),
        ("compensation_plan", "terminated = true", "plan_terminated_is_closed"),
        ("approvals_interrupt", "state = 'rejected'", "Invalid transition|ends once"),
    ],
)
def test_ends_agree_with_states(subject: Subject, table: str, broken: str, says: str) -> None:
    refuses(f"update {table} set {broken} where id = %s", [subject.row(table)], says=says)


# -- attempts

ATTEMPT = (
    "insert into compensation_attempt (id, tenant_id, obligation_id, number, worker, idempotency_key,"
    " node_type_version_id, started_at, deadline_at, error_class, clocks)"
    " select gen_random_uuid(), tenant_id, id, 99, 'w', idempotency_key, node_type_version_id, now(), now(), '', '{}'"
    " from compensation_obligation where id = %s"
)


@pytest.mark.parametrize("state", OUTCOME_OF_STATE)
def test_cmp_312_no_attempt_of_a_settled_entry(subject: Subject, state: ObligationState) -> None:
    entry = subject.entry("plain")
    with undone():
        with walls_down():
            bring(entry, state)
        refuses(ATTEMPT, [entry], says=f"is already {state}")


def test_an_attempt_of_an_entry_that_needs_no_approval_may_start(subject: Subject) -> None:
    accepts(ATTEMPT, [subject.entry("plain")])


def test_cmp_614_an_attempt_with_its_approval_may_start(subject: Subject) -> None:
    accepts(ATTEMPT, [subject.entry("asked")])


@pytest.mark.parametrize(
    "without",
    [
        *(f"state = '{state}'" for state in InterruptState if state != InterruptState.APPROVED),
        "digest = repeat('0', 64)",
        "subject_version = 2",
        "handler = 'compensation.waive'",
        "subject_id = gen_random_uuid()",
    ],
)
def test_cmp_614_610_no_attempt_without_a_granted_approval_at_its_digest_and_version(
    subject: Subject, without: str
) -> None:
    entry = subject.entry("asked")
    resolved = ", resolved_at = null" if "'open'" in without else ""
    with undone():
        with walls_down():
            statement = f"update approvals_interrupt set {without}{resolved} where subject_id = %s"
            assert execute(statement, [entry]) == 1
        refuses(ATTEMPT, [entry], says="not approved at its digest")


# -- enums

MIRRORS: dict[str, Iterable[str]] = {
    "obligation_state": ObligationState,
    "obligation_outcome": Outcome,
    "obligation_reason": ["", *Reason],
    "plan_ordering_model": OrderingModel,
    "plan_disposition": Disposition,
    "plan_on_parent_cancel": OnParentCancel,
    "plan_trigger": Trigger,
    "run_status": RunStatus,
    "run_compensation_status": RollupStatus,
    "attempt_outcome": AttemptOutcome,
    "interrupt_state": InterruptState.values,
    "vote_answer": Answer.values,
}


@pytest.mark.parametrize("constraint", MIRRORS)
def test_check_constraints_mirror_the_enums(db: None, constraint: str) -> None:
    text = only("select pg_get_constraintdef(oid) from pg_constraint where conname = %s", [constraint])
    assert set(re.findall(r"'([^']*)'", text)) == {str(value) for value in MIRRORS[constraint]}


def test_an_entry_cannot_be_minted_twice_under_one_position(subject: Subject) -> None:
    refuses(*copy("compensation_obligation", subject.entry("plain")), says="unique constraint")
