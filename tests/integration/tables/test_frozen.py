"""What can never change, and what changes only by a recorded substitution (CMP-107, 305, 312, 502, 604)."""

from typing import Any

import pytest

from tests.integration.tables.sql import Subject, accepts, another, execute, only, refuses, undone

OBLIGATION = (
    "tenant_id plan_id run_id position predecessors node_id forward_logical_invocation_id ordinal"
    " compensation_ordinal effect_id profile_version input max_attempts backoff_ms timeout_ms"
)
PLAN = "tenant_id run_id ordering_model profile_version disposition on_parent_cancel trigger triggered_by requested_at"
RUN = "tenant_id workflow_version_id mode inputs started_at created_by_id"
ATTEMPT = "tenant_id obligation_id number worker idempotency_key node_type_version_id started_at"
INTERRUPT = (
    "tenant_id handler subject_id subject_version context_id node_key artifact digest quorum opened_at"
    " requested_by_id justification"
)
FROZEN = {
    "compensation_obligation": OBLIGATION,
    "compensation_plan": PLAN,
    "compensation_run": RUN,
    "compensation_attempt": ATTEMPT,
    "approvals_interrupt": INTERRUPT,
    "compensation_nodetype": "tenant_id node_type_id",
}
COLUMNS = [(table, column) for table, columns in FROZEN.items() for column in columns.split()]
APPEND_ONLY = (
    "compensation_runevent", "compensation_fact", "compensation_effect", "compensation_planversion",
    "compensation_workflowversion", "compensation_nodetypeversion", "compensation_readback", "audit_decision",
    "approvals_vote",
)  # fmt: skip
KEPT = (
    "compensation_run", "compensation_plan", "compensation_obligation", "compensation_attempt",
    "compensation_attention", "compensation_nodetype", "approvals_interrupt",
)  # fmt: skip
BY_SUBSTITUTION = {
    "node_type_version_id": "(select v.id from compensation_nodetypeversion v"
    " where v.id <> o.node_type_version_id and v.tenant_id = o.tenant_id limit 1)",
    "requires_approval": "not o.requires_approval",
    "waive_requires_approval": "not o.waive_requires_approval",
    "quorum": "o.quorum + 1",
    "idempotency_key": "o.idempotency_key || ':v2'",
    "digest": "repeat('0', 64)",
}
RECORDED = (
    "insert into compensation_planversion (id, tenant_id, plan_id, number, digest, by)"
    " select gen_random_uuid(), tenant_id, id, 2, repeat('1', 64), 'user:1' from compensation_plan where id = %s"
)


def row_of(subject: Subject, table: str) -> Any:
    """A row that nothing else protects: the entry that waits, an attempt in flight where there can be one."""
    return subject.entry("plain") if table == "compensation_obligation" else subject.row(table)


@pytest.mark.parametrize(("table", "column"), COLUMNS)
def test_cmp_305_frozen_columns_cannot_be_changed(subject: Subject, table: str, column: str) -> None:
    statement = f"update {table} set {column} = {another(table, column)} where id = %s"
    refuses(statement, [row_of(subject, table)], says="Cannot update rows|kept_frozen")


@pytest.mark.parametrize("table", APPEND_ONLY)
def test_cmp_502_604_history_is_append_only(subject: Subject, table: str) -> None:
    row = subject.row(table)
    refuses(f"update {table} set tenant_id = tenant_id where id = %s", [row], says="Cannot update or delete")
    refuses(f"delete from {table} where id = %s", [row], says="Cannot update or delete")


@pytest.mark.parametrize("table", KEPT)
def test_cmp_408_nothing_that_tells_the_story_is_deleted(subject: Subject, table: str) -> None:
    refuses(f"delete from {table} where id = %s", [subject.row(table)], says="Cannot delete")


def test_cmp_310_the_slug_in_every_identity_never_changes(subject: Subject) -> None:
    tenant = subject.stage.home.tenant.pk
    refuses("update audit_tenant set slug = slug || 'x' where id = %s", [tenant], says="Cannot update rows")


def test_cmp_401_an_outcome_is_recorded_once(subject: Subject) -> None:
    row = subject.row("compensation_attempt")
    refuses("update compensation_attempt set error_class = 'x' where id = %s", [row], says="Cannot update rows")


@pytest.mark.parametrize("node_id", ["read", "mail"])
@pytest.mark.parametrize("change", ["receipt = receipt", "state = 'waiting'", "attempts = attempts + 1"])
def test_cmp_312_203_completed_and_irreversible_are_final_for_any_update(
    subject: Subject, node_id: str, change: str
) -> None:
    statement = f"update compensation_obligation set {change} where id = %s"
    refuses(statement, [subject.entry(node_id)], says="for ever|Invalid transition")


@pytest.mark.parametrize("column", ["plan_version = plan_version + 1", "digest = repeat('1', 64)"])
def test_cmp_305_a_plan_version_is_one_that_is_recorded(subject: Subject, column: str) -> None:
    plan = subject.row("compensation_plan")
    refuses(f"update compensation_plan set {column} where id = %s", [plan], says="no recorded version")
    with undone():
        execute(RECORDED, [plan])
        accepts("update compensation_plan set plan_version = 2, digest = repeat('1', 64) where id = %s", [plan])
        refuses("update compensation_plan set plan_version = 2 where id = %s", [plan], says="no recorded version")


def test_cmp_609_a_terminated_plan_stays_so(subject: Subject) -> None:
    plan = subject.row("compensation_plan")
    with undone():
        execute("update compensation_plan set terminated = true, closed_at = now() where id = %s", [plan])
        refuses("update compensation_plan set terminated = false where id = %s", [plan], says="for ever")
        refuses("update compensation_plan set closed_at = null where id = %s", [plan], says="plan_terminated_is_closed")


@pytest.mark.parametrize("column", BY_SUBSTITUTION)
def test_cmp_305_an_entry_changes_only_by_a_recorded_substitution(subject: Subject, column: str) -> None:
    plain, plan = subject.entry("plain"), subject.row("compensation_plan")
    alone = f"update compensation_obligation o set {column} = {BY_SUBSTITUTION[column]} where id = %s"
    together = alone.replace(" set", " set entry_version = 2,")
    refuses(alone, [plain], says="only by a recorded substitution")
    refuses(together, [plain], says="only by a recorded substitution")
    with undone():
        execute(RECORDED, [plan])
        refuses(alone, [plain], says="only by a recorded substitution")
        accepts(together, [plain])


@pytest.mark.parametrize(
    ("node_id", "fall"), [("asked", "requires_approval = false"), ("asked", "waive_requires_approval = false"),
                          ("plain", "quorum = 0")],
)  # fmt: skip
def test_cmp_609_approval_flags_and_quorum_never_fall(subject: Subject, node_id: str, fall: str) -> None:
    statement = f"update compensation_obligation set {fall}, entry_version = 2 where id = %s"
    with undone():
        execute(RECORDED, [subject.row("compensation_plan")])
        refuses(statement, [subject.entry(node_id)], says="only by a recorded substitution")


def test_cmp_502_events_leave_no_gap_and_begin_with_one(subject: Subject) -> None:
    insert = (
        "insert into compensation_runevent (id, tenant_id, run_id, sequence, type, payload, node_id, causation_id)"
        " values (gen_random_uuid(), %s, %s, %s, 'run.paused', '{}', '', '')"
    )
    tenant, run = subject.stage.home.tenant.pk, subject.run.pk
    last = only("select max(sequence) from compensation_runevent where run_id = %s", [run])
    refuses(insert, [tenant, run, last + 2], says="leaves a gap")
    accepts(insert, [tenant, run, last + 1])
    for below in (0, -1):
        refuses(insert, [tenant, run, below], says="run_event_sequence|violates check")


def test_cmp_604_decisions_leave_no_gap_and_begin_with_one(subject: Subject) -> None:
    insert = (
        "insert into audit_decision (id, tenant_id, seq, principal, principal_kind, on_behalf_of, action,"
        " resource_type, resource_id, effect_id, allowed, reason, justification, evidence_digest, request_id)"
        " values (gen_random_uuid(), %s, %s, 'user:1', 'user', '', 'a', 'run', 'r', '', true, '', '', '', '')"
    )
    tenant = subject.stage.home.tenant.pk
    last = only("select max(seq) from audit_decision where tenant_id = %s", [tenant])
    refuses(insert, [tenant, last + 2], says="leaves a gap")
    accepts(insert, [tenant, last + 1])
    refuses(insert, [tenant, 0], says="decision_seq_positive")
