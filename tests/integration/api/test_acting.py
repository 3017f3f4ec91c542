"""What the acts and answers do over HTTP: preconditions, who signs what, and how the picture shows it."""

from __future__ import annotations

import hashlib
from typing import Any

import pytest

from audit import provisioning
from audit.models import Decision
from compensation.models import Run
from tests.integration.api.conftest import Hall
from tests.support import definitions
from tests.support.callers import Caller, Reply, differences, row_counts
from tests.support.stage import WHY, committed
from tests.support.world import user_of


def answer(caller: Caller, question: dict[str, Any], action: str = "accept", **different: Any) -> Reply:
    """Answer a question as it was shown to the caller."""
    value = {"action": action, "digest": question["digest"], "planVersion": question["planVersion"], **different}
    return caller.post(f"/v1/interrupts/{question['interruptId']}", {"resumeValue": value})


def question_of(hall: Hall, run: Run, caller: Caller | None = None) -> dict[str, Any]:
    [found] = (caller or hall.us.approver).get(f"/v1/interrupts?runId={run.pk}&state=open").json["interrupts"]
    return dict(found)


def test_what_is_shown_is_what_is_signed_and_what_runs(hall: Hall) -> None:
    """CMP-601, CMP-602, CMP-604, CMP-506."""
    run = hall.unwinding(requiresApproval=True)
    question = question_of(hall, run)
    assert hashlib.sha256(question["artifactText"].encode()).hexdigest() == question["digest"]
    assert question["artifact"]["input"] == {"id": "b-1"}
    assert (question["mayAnswer"], question["quorum"]) == (True, {"needed": 1, "given": 0})
    assert hall.us.operator.get(f"/v1/runs/{run.pk}").json["status"] == "waiting-approval"
    assert hall.entry(run, "b")["interruptId"] == question["interruptId"]
    done = answer(hall.us.approver, question)
    assert (done.status, done.json["nodeId"], done.json["interrupt"]["state"]) == (200, "b", "approved")
    row = Decision.objects.get(run_id=run.pk, action="approvals:respond")
    assert (row.allowed, row.plan_version, row.evidence_digest) == (True, 1, question["digest"])
    assert row.on_behalf_of == hall.stage.home.approver.label
    hall.stage.work()
    assert hall.entry(run, "b")["outcome"] == "completed"
    [sent] = hall.stage.sandbox.effects(key=hall.entry(run, "b")["idempotencyKey"])
    assert sent["input"] == question["artifact"]["input"]


@pytest.mark.parametrize(("member", "value"), [("digest", "0" * 64), ("planVersion", 2)])
def test_drift_decides_nothing(hall: Hall, member: str, value: Any) -> None:
    """CMP-602: 409 with what changed."""
    run = hall.unwinding(requiresApproval=True)
    before = row_counts()
    reply = answer(hall.us.approver, question_of(hall, run), **{member: value})
    assert (reply.status, reply.code) == (409, "version_conflict")
    assert reply.json["details"]["changed"][member]["yours"] == value
    assert differences(before, row_counts()) == {}


def test_a_question_is_answered_once_and_the_second_is_told_how_it_ended(hall: Hall) -> None:
    run = hall.unwinding(requiresApproval=True)
    question = question_of(hall, run)
    assert answer(hall.us.approver, question, "reject", feedback="no").status == 200
    again = answer(hall.us.second_approver, question)
    assert (again.status, again.code) == (409, "interrupt_already_resolved")
    assert again.json["details"]["state"] == "rejected"
    assert hall.entry(run, "b")["reason"] == "approval-denied"


def test_several_open_questions_of_one_node_are_told_apart(hall: Hall) -> None:
    """wire.md: 409 listing their ids, then `?interruptId=`."""
    run = hall.unwinding(requiresApproval=True, waiveRequiresApproval=True)
    asked = hall.us.lead.post(f"/v1/runs/{run.pk}/compensation:skip", hall.act(run, "b", justification=WHY))
    path = f"/v1/runs/{run.pk}/interrupts/b"
    shown = hall.us.approver.get(f"/v1/interrupts?runId={run.pk}").json["interrupts"]
    waive = next(each for each in shown if each["kind"] == "compensation.waive")
    value = {"resumeValue": {"action": "accept", "digest": waive["digest"], "planVersion": 1}}
    several = hall.us.approver.post(path, value)
    assert (several.status, several.code) == (409, "version_conflict")
    assert set(several.json["details"]["interruptIds"]) == {each["interruptId"] for each in shown}
    assert hall.us.approver.post(f"{path}?interruptId={asked.json['interrupt']['interruptId']}", value).status == 200
    assert hall.entry(run, "b")["state"] == "skipped"


def test_who_asked_for_a_waive_cannot_approve_it(hall: Hall) -> None:
    """CMP-608: an API key's acts count as its owner's; the refusal is on record."""
    run = hall.unwinding(requiresApproval=False, waiveRequiresApproval=True)
    provisioning.give_role(tenant=hall.stage.home.tenant, user=user_of(hall.stage.home.lead), role="approver")
    asked = hall.us.lead.post(f"/v1/runs/{run.pk}/compensation:skip", hall.act(run, "b", justification=WHY)).json
    second_key = hall.us.key("lead", ["runs:read", "approvals:respond"])
    reply = answer(second_key, asked["interrupt"])
    assert (reply.status, reply.code) == (403, "forbidden")
    row = Decision.objects.filter(run_id=run.pk, action="approvals:respond").latest("seq")
    assert (row.allowed, row.reason) == (False, "separation-of-duties")
    assert asked["interrupt"]["mayAnswer"] is False


def test_the_whole_plans_question_is_addressed_by_a_dash(hall: Hall) -> None:
    """A terminate that must be approved belongs to no node."""
    run = hall.unwinding(waiveRequiresApproval=True)
    body = {"expectedPlanVersion": 1, "justification": WHY}
    asked = hall.us.lead.post(f"/v1/runs/{run.pk}/compensation:terminate", body)
    assert (asked.status, asked.json["interrupt"]["nodeId"]) == (202, "")
    value = {"action": "accept", "digest": asked.json["interrupt"]["digest"], "planVersion": 1}
    done = hall.us.approver.post(f"/v1/runs/{run.pk}/interrupts/-", {"resumeValue": value})
    assert done.status == 200
    plan = hall.us.operator.get(f"/v1/runs/{run.pk}/compensation").json
    assert (plan["terminated"], plan["status"]) == (True, "failed")
    assert {entry["reason"] for entry in plan["entries"]} == {"operator-terminated"}


@pytest.mark.parametrize("node_id", ["zz", "-", "a"])
def test_a_node_without_a_question(hall: Hall, node_id: str) -> None:
    run = hall.unwinding(requiresApproval=True)
    value = {"action": "accept", "digest": "0" * 64, "planVersion": 1}
    assert hall.us.approver.post(f"/v1/runs/{run.pk}/interrupts/{node_id}", {"resumeValue": value}).status == 404


def test_an_act_on_what_was_seen_before_loses(hall: Hall) -> None:
    """CMP-609: 409 telling the current version and state."""
    run = hall.unwinding()
    seen = hall.act(run, "b", justification=WHY)
    hall.stage.work()
    reply = hall.us.lead.post(f"/v1/runs/{run.pk}/compensation:skip", seen)
    assert (reply.status, reply.code) == (409, "version_conflict")
    assert reply.json["details"] == {"planVersion": 1, "state": "completed", "retriable": False}


def test_an_effect_of_another_run_is_not_there(hall: Hall) -> None:
    """CMP-607."""
    one, other = hall.unwinding(), hall.unwinding()
    body = hall.act(other, "b", justification=WHY)
    assert hall.us.lead.post(f"/v1/runs/{one.pk}/compensation:skip", body).status == 404
    effect = hall.entry(other, "b")["effectId"]
    assert hall.us.operator.get(f"/v1/runs/{one.pk}/compensation/{effect}/attempts").status == 404


def test_what_holds_an_entry_is_shown(hall: Hall) -> None:
    """CMP-409: holds by the tenant, the node type and the plan, each with its reason."""
    run = hall.unwinding()
    hall.us.lead.post("/v1/tenant:hold", {"justification": "audit week"})
    hall.us.lead.post("/v1/node-types/undo:hold", {"justification": "bank is closed"})
    hall.us.operator.post(f"/v1/runs/{run.pk}/compensation:pause", {"justification": "wait for Anna"})
    held = hall.entry(run, "b")["heldBy"]
    assert held == [
        {"scope": "tenant", "reason": "audit week"},
        {"scope": "plan", "reason": "wait for Anna"},
        {"scope": "node-type", "reason": "bank is closed"},
    ]
    assert hall.stage.work() == 0
    hall.us.lead.post("/v1/tenant:release", {})
    hall.us.lead.post("/v1/node-types/undo:release", {})
    hall.us.operator.post(f"/v1/runs/{run.pk}/compensation:resume", {})
    assert hall.entry(run, "b")["heldBy"] == []


def test_an_entry_names_what_it_waits_for(hall: Hall) -> None:
    """CMP-322: the nearest unsettled entries before it."""
    run = hall.unwinding()
    assert hall.entry(run, "b")["blockedBy"] == []
    assert hall.entry(run, "a")["blockedBy"] == [hall.entry(run, "b")["effectId"]]
    hall.us.lead.post(f"/v1/runs/{run.pk}/compensation:skip", hall.act(run, "b", justification=WHY))
    assert hall.entry(run, "a")["blockedBy"] == []


def test_a_preview_stores_nothing_and_is_what_a_start_mints(hall: Hall) -> None:
    """CMP-201."""
    hall.stage.register("undo")
    hall.stage.chain("a", "b", policy={"triggers": ["operator-request"]})
    run = hall.stage.fail("a", "b")
    path, before = f"/v1/runs/{run.pk}/compensation", row_counts()
    shown = hall.us.operator.post(f"{path}:preview", {}).json
    assert differences(before, row_counts()) == {}
    assert (shown["wouldStart"], shown["whyNot"]) == (True, None)
    started = hall.us.operator.post(f"{path}:start", {"justification": WHY})
    assert started.status == 200
    assert started.json["digest"] == shown["digest"]
    assert [each["effectId"] for each in started.json["entries"]] == [each["effectId"] for each in shown["entries"]]
    again = hall.us.operator.post(f"{path}:start", {})
    assert (again.status, again.code) == (409, "version_conflict")
    assert hall.us.operator.post(f"{path}:preview", {}).json["wouldStart"] is False


def test_a_run_without_a_plan(hall: Hall) -> None:
    hall.stage.register("undo")
    hall.stage.chain("a")
    run = hall.stage.begin()
    shown = hall.us.operator.get(f"/v1/runs/{run.pk}/compensation").json
    assert (shown["status"], shown["entries"], shown["compensationId"]) == ("none", [], None)


def test_done_elsewhere_needs_evidence_and_a_second_person(hall: Hall) -> None:
    """CMP-615."""
    run = hall.unwinding()
    hall.stage.register_document(definitions.manual_type("by-hand"))
    path = f"/v1/runs/{run.pk}/compensation:substitute"
    body = hall.act(run, "b", justification=WHY, nodeTypeId="by-hand")
    assert hall.us.lead.post(path, body).pointers == ["/receipt"]
    asked = hall.us.lead.post(path, {**body, "receipt": "R-77", "evidence": "statement of 3 March, line 4"})
    assert asked.status == 202
    question = question_of(hall, run)
    assert answer(hall.us.approver, question).status == 200
    entry = hall.entry(run, "b")
    assert (entry["state"], entry["nodeTypeId"], entry["receipt"]["receipt"]) == ("completed", "by-hand", "R-77")
    assert entry["completedBy"] == hall.stage.home.lead.label


def test_a_late_commit_is_shown_wherever_the_rollup_is(hall: Hall) -> None:
    """CMP-205, CMP-504."""
    run = hall.unwinding()
    late = committed("a", factId="late", logicalInvocationId="a:2")
    [result] = hall.us.service.post(f"/v1/runs/{run.pk}/facts", {"facts": [late]}).json["results"]
    assert result["late"] is True
    assert hall.us.operator.get(f"/v1/runs/{run.pk}").json["uncompensatedEffects"] == 1
    [shown] = hall.us.operator.get(f"/v1/runs/{run.pk}/compensation").json["uncompensatedEffects"]
    assert (shown["nodeId"], shown["logicalInvocationId"]) == ("a", "a:2")


def test_the_log_is_followed_to_its_end(hall: Hall) -> None:
    """`isComplete` only when the run has ended and its plan is closed (CMP-502, 506)."""
    run = hall.unwinding()
    path = f"/v1/runs/{run.pk}/events/poll"
    first = hall.us.operator.get(path).json
    assert first["isComplete"] is False
    hall.stage.work()
    last = first["events"][-1]["sequence"]
    rest = hall.us.operator.get(f"{path}?lastSequence={last}").json
    assert rest["isComplete"] is True
    sequences = [event["sequence"] for event in first["events"] + rest["events"]]
    assert sequences == list(range(1, len(sequences) + 1))
    done = hall.us.operator.get(f"{path}?lastSequence={sequences[-1]}&timeout=30").json
    assert done == {"events": [], "isComplete": True}


def test_cancelling_twice_is_cancelling_once(hall: Hall) -> None:
    """CMP-201, CMP-407."""
    hall.stage.register("undo")
    hall.stage.chain("a")
    run = hall.stage.commit("a")
    path = f"/v1/runs/{run.pk}/cancel"
    assert hall.us.service.post(path, {"reason": "not wanted"}).json == {"runId": str(run.pk), "status": "cancelled"}
    assert hall.us.service.post(path).status == 200
    hall.stage.work()
    over = hall.us.service.post(path)
    assert (over.status, over.code) == (409, "run_terminal")


def test_a_secret_goes_in_and_never_comes_out(hall: Hall) -> None:
    """CMP-304."""
    secret = "the-secret-of-the-bank"
    created = hall.us.admin.post("/v1/credentials", {"ref": "bank", "secret": secret}, Idempotency_Key="k")
    replaced = hall.us.admin.put("/v1/credentials/bank", {"secret": secret})
    assert (created.status, replaced.status) == (201, 200)
    listed = hall.us.admin.get("/v1/credentials")
    assert [each["ref"] for each in listed.json["credentials"]] == ["bank"]
    record = hall.us.auditor.get("/v1/decisions")
    for reply in (created, replaced, listed, record):
        assert secret not in reply.text
