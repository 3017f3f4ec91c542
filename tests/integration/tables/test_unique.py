"""What there is one of (CMP-204, 310, 502, 608)."""

from typing import Any

import pytest

from compensation.models import Attention
from tests.integration.tables.sql import Subject, copy, refuses

OBLIGATION = "compensation_obligation"


def test_cmp_204_one_plan_per_run(subject: Subject) -> None:
    refuses(*copy("compensation_plan", subject.row("compensation_plan")), says="plan_one_per_run")


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"position": 99, "compensation_ordinal": 99}, "obligation_effect_unique"),
        ({"effect_id": "0" * 64, "compensation_ordinal": 99}, "obligation_position_unique"),
        ({"effect_id": "0" * 64, "position": 99}, "obligation_ordinal_unique"),
    ],
)
def test_cmp_310_identity_position_and_rank_are_unique(subject: Subject, changes: dict[str, Any], says: str) -> None:
    refuses(*copy(OBLIGATION, subject.entry("plain"), **changes), says=says)


@pytest.mark.parametrize(
    ("table", "changes", "says"),
    [
        ("compensation_effect", {"logical_invocation_id": "another"}, "effect_ordinal_unique"),
        ("compensation_effect", {"ordinal": 99}, "effect_invocation_unique"),
        ("compensation_fact", {}, "fact_id_unique"),
        ("compensation_runevent", {}, "run_event_sequence"),
        ("compensation_planversion", {}, "plan_version_number"),
        ("compensation_workflow", {}, "workflow_id_unique"),
        ("compensation_workflowversion", {}, "workflow_version_number"),
        ("compensation_nodetype", {}, "node_type_id_unique"),
        ("compensation_nodetypeversion", {}, "node_type_version_number"),
        ("compensation_readback", {}, "readback_number_unique"),
        ("compensation_attention", {"effect_id": None}, "attention_one_open"),
        ("approvals_vote", {}, "vote_once"),
        ("audit_decision", {}, "decision_seq_unique"),
    ],
)
def test_what_is_numbered_or_named_is_unique(subject: Subject, table: str, changes: dict[str, Any], says: str) -> None:
    row = subject.row(table) if table != "compensation_attention" else _dead_letter(subject)
    refuses(*copy(table, row, **changes), says=says)


def _dead_letter(subject: Subject) -> Any:

    return Attention.objects.get(run=subject.run, kind="dead_letter").pk


@pytest.mark.parametrize(
    ("numbers", "says"), [([1, 2], "attempt_one_in_flight"), ([1, 1], "attempt_number_unique|attempt_one_in_flight")]
)
def test_cmp_401_attempts_are_numbered_and_one_is_in_flight(subject: Subject, numbers: list[int], says: str) -> None:
    statement = (
        "insert into compensation_attempt (id, tenant_id, obligation_id, number, worker, idempotency_key,"
        " node_type_version_id, started_at, deadline_at, error_class, clocks)"
        " select gen_random_uuid(), tenant_id, id, number, 'w', idempotency_key, node_type_version_id, now(), now(),"
        " '', '{}' from compensation_obligation, unnest(%s) number where id = %s"
    )
    refuses(statement, [numbers, subject.entry("asked")], says=says)


def test_cmp_601_one_open_question_of_a_kind_about_an_entry(subject: Subject) -> None:
    row = subject.row("approvals_interrupt")
    twice = copy("approvals_interrupt", row, state="open", resolved_at=None, handler="compensation.waive")
    refuses(f"{twice[0]}; {twice[0]}", [*twice[1], *twice[1]], says="interrupt_one_open")
