"""Approval before the first attempt: what is asked, answered, refused and expired (CMP-601 … 604, CMP-610, CMP-614)."""

import json
from datetime import timedelta

import pytest
from django.db.models.functions import Now

from approvals.models import Answer, Interrupt
from audit.errors import Forbidden, InterruptAlreadyResolved, InterruptExpired, VersionConflict
from audit.models import Tenant
from compensation.domain.canonical import canonical
from compensation.models import Obligation, RunEvent
from compensation.operations import acts, approving
from compensation.operations.frozen import entry_document
from tests.support.definitions import node
from tests.support.stage import WHY, Stage


@pytest.fixture
def gated(stage: Stage) -> Stage:
    """`flow` of a then b, each waiting for an approval to run."""
    stage.register("undo")
    stage.chain("a", "b", requiresApproval=True, waiveRequiresApproval=False)
    return stage


def test_cmp_601_the_question_opens_at_the_head_before_the_first_attempt(gated: Stage) -> None:
    run = gated.fail("a", "b")
    assert gated.states(run) == {"b": "awaiting_approval", "a": "waiting"}
    (told,) = gated.payloads(run, "compensation.paused")
    assert (told["nodeId"], "reason" in told) == ("b", False)
    assert gated.work() == 0
    assert gated.rollup(run) == "pending", "an open approval does not change it"
    gated.approve(run)
    gated.work()
    assert gated.states(run) == {"b": "completed", "a": "awaiting_approval"}
    assert gated.rollup(run) == "running"


def test_cmp_601_approve_ahead_opens_every_question_at_mint(gated: Stage) -> None:
    Tenant.objects.filter(pk=gated.home.tenant.pk).update(approve_ahead=True)
    run = gated.fail("a", "b")
    questions = {each.node_key: each for each in Interrupt.objects.filter(context_id=run.pk)}
    assert set(questions) == {"a", "b"}
    assert questions["a"].digest != questions["b"].digest
    gated.answer(questions["a"])
    assert gated.states(run) == {"b": "awaiting_approval", "a": "waiting"}
    gated.answer(questions["b"])
    gated.work()
    assert gated.rollup(run) == "completed"
    assert Interrupt.objects.filter(context_id=run.pk).count() == 2


def test_cmp_601_603_a_rejection_ahead_fails_the_entry_before_its_turn(gated: Stage) -> None:
    Tenant.objects.filter(pk=gated.home.tenant.pk).update(approve_ahead=True)
    run = gated.fail("a", "b")
    gated.answer(Interrupt.objects.get(context_id=run.pk, node_key="a"), Answer.REJECT)
    gated.approve(run)
    gated.work()
    assert gated.states(run) == {"b": "completed", "a": "failed"}
    assert gated.entry(run, "a").reason == "approval-denied"
    assert gated.rollup(run) == "partial"


def test_cmp_602_what_is_shown_and_signed_is_the_frozen_entry_byte_for_byte(gated: Stage) -> None:
    run = gated.fail("a", "b")
    question, entry = gated.question(run), gated.entry(run, "b")
    assert question.artifact == canonical(entry_document(entry)).decode()
    shown = json.loads(question.artifact)
    assert shown["input"] == entry.input
    assert (shown["nodeTypeId"], shown["nodeTypeVersion"], shown["planVersion"]) == ("undo", 1, 1)
    assert question.digest == entry.digest
    gated.approve(run)
    gated.work()
    effect = gated.sandbox.effects(key=entry.idempotency_key)[0]
    assert effect["request"] == entry.input if "request" in effect else effect["key"] == entry.idempotency_key


@pytest.mark.parametrize(("digest", "version"), [("0" * 64, 1), (None, 2)])
def test_cmp_602_drift_is_a_conflict_that_says_what_changed_and_decides_nothing(
    gated: Stage, digest: str | None, version: int
) -> None:
    run = gated.fail("a", "b")
    question = gated.question(run)
    reply = approving.Reply(answer=Answer.ACCEPT, digest=digest or question.digest, plan_version=version)
    with pytest.raises(VersionConflict) as told:
        approving.resolve_interrupt(actor=gated.home.approver, interrupt_id=question.pk, reply=reply)
    assert set(told.value.details["changed"]) == {"digest" if digest else "planVersion"}
    assert gated.states(run)["b"] == "awaiting_approval"
    assert gated.question(run).votes.count() == 0
    assert gated.decisions(action="approvals:respond") == []


def test_cmp_603_rejection_is_a_denial_and_the_rest_goes_on(gated: Stage) -> None:
    run = gated.fail("a", "b")
    rejected = gated.reject(run)
    assert rejected.state == "rejected"
    entry = gated.entry(run, "b")
    assert (entry.state, entry.reason, entry.attempts) == ("failed", "approval-denied", 0)
    (told,) = gated.payloads(run, "compensation.failed")
    assert told["reason"] == "approval-denied"
    assert gated.payloads(run, "run.dead_lettered")[0]["reason"] == "approval-denied"
    assert gated.states(run)["a"] == "awaiting_approval"
    gated.approve(run)
    gated.work()
    assert (gated.rollup(run), gated.effects(run)) == ("partial", {"b": 0, "a": 1})


def expire(stage: Stage, interrupt: Interrupt) -> None:
    Interrupt.objects.filter(pk=interrupt.pk).update(expires_at=Now() - timedelta(seconds=1))
    assert approving.expire_due() >= 1
    interrupt.refresh_from_db()


@pytest.mark.parametrize("disposition", ["record-outcome", "manual-intervention"])
def test_cmp_603_expiry_escalates_and_holds_and_is_nobodys_denial(stage: Stage, disposition: str) -> None:
    stage.register("undo")
    stage.chain("a", "b", requiresApproval=True, policy={"exhaustedDisposition": disposition})
    run = stage.fail("a", "b")
    question = stage.question(run)
    expire(stage, question)
    assert question.state == "expired"
    assert (stage.states(run), stage.rollup(run)) == ({"b": "awaiting_approval", "a": "waiting"}, "manual")
    (told,) = stage.payloads(run, "compensation.manual_intervention_required")
    assert "reason" not in told
    assert stage.attention(run) == {("manual", "approval-expired")}
    assert "failed" not in stage.events(run)
    assert question.votes.count() == 0
    (row,) = stage.decisions(action="approvals:expire")
    assert (row.principal, row.reason, row.evidence_digest) == ("system:engine", "expired", question.digest)
    assert stage.work() == 0
    with pytest.raises(InterruptExpired):
        stage.answer(question)


def test_cmp_603_an_overdue_question_is_expired_even_before_the_sweep(gated: Stage) -> None:
    run = gated.fail("a", "b")
    question = gated.question(run)
    Interrupt.objects.filter(pk=question.pk).update(expires_at=Now() - timedelta(seconds=1))
    with pytest.raises(InterruptExpired):
        gated.answer(question)
    assert gated.states(run)["b"] == "awaiting_approval"


def test_cmp_603_a_question_expires_only_where_the_tenant_set_a_time(gated: Stage) -> None:
    assert gated.question(gated.fail("a")).expires_at is None
    Tenant.objects.filter(pk=gated.home.tenant.pk).update(approval_expires_after_s=3600)
    question = gated.question(gated.fail("a"))
    assert question.expires_at is not None
    assert question.expires_at - question.opened_at == timedelta(hours=1)


def test_cmp_614_a_retry_after_an_expiry_opens_a_new_question(gated: Stage) -> None:
    run = gated.fail("a", "b")
    first = gated.question(run)
    expire(gated, first)
    gated.retry(run, "b")
    second = gated.question(run)
    assert (second.pk != first.pk, gated.rollup(run)) == (True, "pending")
    assert gated.work() == 0
    gated.answer(second)
    gated.work()
    assert gated.states(run)["b"] == "completed"


def test_cmp_614_a_retry_after_an_expiry_ahead_of_its_turn_opens_a_new_question(gated: Stage) -> None:
    Tenant.objects.filter(pk=gated.home.tenant.pk).update(approve_ahead=True)
    run = gated.fail("a", "b")
    ahead = Interrupt.objects.get(context_id=run.pk, node_key="a")
    expire(gated, ahead)
    assert (gated.states(run)["a"], gated.rollup(run)) == ("waiting", "manual")
    gated.retry(run, "a")
    again = Interrupt.objects.get(context_id=run.pk, node_key="a", state="open")
    assert (again.pk != ahead.pk, gated.rollup(run)) == (True, "pending")
    for question in Interrupt.objects.filter(context_id=run.pk, state="open"):
        gated.answer(question)
    gated.work()
    assert gated.rollup(run) == "completed"


def test_cmp_614_608_a_retry_after_a_denial_opens_a_new_question_that_its_asker_cannot_answer(gated: Stage) -> None:
    run = gated.fail("a", "b")
    first = gated.reject(run)
    gated.retry(run, "b", actor=gated.home.lead)
    assert gated.states(run) == {"b": "awaiting_approval", "a": "awaiting_approval"}
    second = Interrupt.objects.get(context_id=run.pk, node_key="b", state="open")
    assert second.pk != first.pk
    assert gated.work() == 0
    assert second.excluded == [gated.home.lead.user.pk if gated.home.lead.user else None]
    gated.answer(second)
    gated.work()
    assert gated.states(run)["b"] == "completed"


def test_cmp_614_a_granted_approval_lasts_over_retries_at_the_same_version(gated: Stage) -> None:
    run = gated.fail("a", "b")
    gated.fault("undo", "reject", times=1)
    gated.approve(run)
    gated.work()
    gated.retry(run, "b")
    assert gated.states(run)["b"] == "ready"
    gated.work()
    assert gated.states(run)["b"] == "completed"


def test_cmp_604_each_resolution_is_one_decision_and_in_the_log(gated: Stage) -> None:
    run = gated.fail("a", "b")
    question = gated.approve(run)
    (row,) = gated.decisions(action="approvals:respond")
    entry = gated.entry(run, "b")
    assert (row.principal, row.allowed, row.reason, row.plan_version) == (gated.home.approver.label, True, "accept", 1)
    assert (row.run_id, row.effect_id, row.evidence_digest) == (run.pk, entry.effect_id, question.digest)
    slug = gated.home.tenant.slug
    assert row.resource_id == f"tenant/{slug}/run/{run.pk}/plan/v1/effect/{entry.effect_id}"
    logged = gated.payloads(run, "authorization.decided")[-1]
    assert logged == {
        "principal": row.principal,
        "action": "approvals:respond",
        "resource": row.resource_id,
        "allowed": True,
        "reason": "accept",
    }
    assert gated.payloads(run, "approval.granted")[0]["digest"] == question.digest


def test_cmp_604_a_question_is_answered_once(gated: Stage) -> None:
    run = gated.fail("a", "b")
    question = gated.approve(run)
    with pytest.raises(InterruptAlreadyResolved) as told:
        gated.answer(question, Answer.REJECT, actor=gated.home.second_approver)
    assert told.value.details["state"] == "approved"
    assert len(gated.decisions(action="approvals:respond")) == 1
    assert gated.states(run)["b"] == "ready"


def test_cmp_610_an_approval_to_run_is_none_to_waive_nor_the_reverse(stage: Stage) -> None:
    stage.register("undo")
    stage.chain("a", requiresApproval=True)
    run = stage.fail("a")
    stage.approve(run)
    asked = stage.skip(run, "a")
    assert asked.interrupt is not None
    assert stage.states(run) == {"a": "ready"}
    stage.answer(asked.interrupt, Answer.REJECT)
    assert stage.states(run) == {"a": "ready"}, "a rejected waive leaves the entry as it was"
    stage.work()
    assert stage.states(run) == {"a": "completed"}

    other = stage.fail("a")
    asked = stage.skip(other, "a")
    assert asked.interrupt is not None
    assert Interrupt.objects.filter(context_id=other.pk, state="open").count() == 2
    stage.answer(asked.interrupt, Answer.REJECT)
    assert stage.states(other) == {"a": "awaiting_approval"}
    assert stage.work() == 0


def test_cmp_610_each_question_asks_for_its_own_permission(stage: Stage) -> None:
    stage.register("undo")
    stage.chain("a", requiresApproval=True)
    run = stage.fail("a")
    asked = stage.skip(run, "a")
    assert asked.interrupt is not None
    key = stage.home.key_of(stage.home.lead, ["approvals:respond"])
    for question in Interrupt.objects.filter(context_id=run.pk, state="open"):
        with pytest.raises(Forbidden):
            stage.answer(question, actor=key)
    assert Interrupt.objects.filter(context_id=run.pk, state="open").count() == 2


def test_cmp_611_the_justification_is_in_the_record_and_in_no_event(stage: Stage) -> None:
    """CMP-611."""
    stage.register("undo")
    stage.workflow([node("a", "undo", waiveRequiresApproval=True), node("b", "undo")])
    run = stage.fail("a", "b")
    stage.skip(run, "b")
    asked = stage.skip(run, "a")
    assert asked.interrupt is not None
    question = asked.interrupt
    reply = approving.Reply(answer=Answer.REJECT, digest=question.digest, plan_version=1, feedback="call them again")
    approving.resolve_interrupt(actor=stage.home.approver, interrupt_id=question.pk, reply=reply)
    stage.terminate(run)
    said = {row.justification for row in stage.decisions(run_id=run.pk)}
    assert {WHY, "call them again"} <= said
    for event in RunEvent.objects.filter(run=run):
        assert WHY not in json.dumps(event.payload)
        assert "call them" not in json.dumps(event.payload)


def test_cmp_506_the_frozen_entry_never_changes_by_being_approved(gated: Stage) -> None:
    run = gated.fail("a", "b")
    before = Obligation.objects.get(run=run, node_id="b")
    gated.approve(run)
    after = Obligation.objects.get(run=run, node_id="b")
    assert (after.digest, after.entry_version, after.idempotency_key) == (
        before.digest,
        before.entry_version,
        before.idempotency_key,
    )
    assert acts.Seen(plan_version=1) == acts.Seen(plan_version=gated.plan(run).plan_version)
