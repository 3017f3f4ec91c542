"""Malformed documents and bodies answer 4xx with a pointer and a reason, and change no row (CMP-104)."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import pytest
from pytest_django import DjangoDbBlocker

from tests.integration.api.conftest import Hall
from tests.support import definitions
from tests.support.callers import Callers, Reply, callers, differences, row_counts
from tests.support.sandbox import SandboxProcess
from tests.support.stage import WHY, Stage, committed
from tests.support.world import house

Document = dict[str, Any]
Change = Callable[[Document], None]
DIGEST = "0" * 64


def refused(send: Callable[[], Reply], pointer: str, *, status: int = 400) -> Reply:
    """The request is refused with this pointer among its problems, each with a reason, and changes nothing."""
    before = row_counts()
    reply = send()
    assert reply.status == status, reply.text
    assert reply.code == "validation_error"
    problems = reply.json["details"]["errors"]
    assert pointer in [problem["pointer"] for problem in problems], problems
    assert all(problem["message"] for problem in problems)
    assert differences(before, row_counts()) == {}
    return reply


def with_(*path: str | int, value: Any) -> Change:
    """Sets the member at a path."""

    def change(document: Document) -> None:
        place: Any = document
        for step in path[:-1]:
            place = place[step]
        place[path[-1]] = value

    return change


def without(*path: str | int) -> Change:
    def change(document: Document) -> None:
        place: Any = document
        for step in path[:-1]:
            place = place[step]
        del place[path[-1]]

    return change


def changed(document: Document, change: Change) -> Document:
    made = copy.deepcopy(document)
    change(made)
    return made


@dataclass(frozen=True)
class Scene:
    """What malformed requests are sent at. They change nothing, so one scene serves all of them."""

    us: Callers
    run: str
    asked: str
    question: str
    acts: Callable[[], Document]


@pytest.fixture(scope="module")
def still(django_db_setup: None, django_db_blocker: DjangoDbBlocker, downstream: SandboxProcess) -> Iterator[Scene]:
    """Two unwinding runs, one of which waits for an approval; node types `undo` and `undo2`, workflows to run."""
    with django_db_blocker.unblock():
        stage = Stage(downstream)
        hall = Hall(stage=stage, us=callers(stage.home), them=callers(house(f"{stage.name}-next")))
        run = hall.unwinding()
        asked = hall.unwinding(requiresApproval=True)
        stage.register("undo2")
        amount = {"name": "amount", "type": "number", "required": True}
        stage.workflow([definitions.node("a", "undo")], variables=[amount])
        question = str(stage.question(asked).pk)
        act = hall.act(run, "b", justification=WHY)
    yield Scene(us=hall.us, run=str(run.pk), asked=str(asked.pk), question=question, acts=lambda: copy.deepcopy(act))
    with django_db_blocker.unblock():
        stage.close()


C = ("nodes", 0, "compensation")
P = ("settings", "compensation")

WORKFLOWS: dict[str, tuple[Change, str]] = {
    "no id": (without("id"), "/id"),
    "bad id": (with_("id", value="Flow!"), "/id"),
    "long id": (with_("id", value="f" * 129), "/id"),
    "unknown key": (with_("sneaky", value=1), "/sneaky"),
    "no nodes": (with_("nodes", value=[]), "/nodes"),
    "nodes not a list": (with_("nodes", value={}), "/nodes"),
    "duplicate node": (with_("nodes", 1, "id", value="a"), "/nodes/1/id"),
    "unknown node key": (with_("nodes", 0, "colour", value="red"), "/nodes/0/colour"),
    "edge to no node": (with_("edges", 0, "targetNodeId", value="nowhere"), "/edges/0/targetNodeId"),
    "unregistered inverse": (with_(*C, "nodeTypeId", value="ghost"), "/nodes/0/compensation/nodeTypeId"),
    "unknown compensation key": (with_(*C, "always", value=True), "/nodes/0/compensation/always"),
    "zero attempts": (with_(*C, "retry", value={"maxAttempts": 0}), "/nodes/0/compensation/retry/maxAttempts"),
    "huge timeout": (with_(*C, "timeoutMs", value=2**40), "/nodes/0/compensation/timeoutMs"),
    "irreversible and inverse": (with_("nodes", 0, "irreversibleEffect", value=True), "/nodes/0/irreversibleEffect"),
    "foreign reference": (with_(*C, "inputMapping", value={"x": "${env.HOME}"}),
                          "/nodes/0/compensation/inputMapping/x"),
    "unknown node in mapping": (with_(*C, "inputMapping", value={"x": "${nodes.zz.output.id}"}),
                                "/nodes/0/compensation/inputMapping/x"),
    "undeclared input": (with_(*C, "inputMapping", value={"x": "${inputs.zz}"}),
                         "/nodes/0/compensation/inputMapping/x"),
    "no triggers": (with_(*P, "triggers", value=[]), "/settings/compensation/triggers"),
    "unknown trigger": (with_(*P, "triggers", value=["full-moon"]), "/settings/compensation/triggers/0"),
    "unknown ordering": (with_(*P, "orderingModel", value="random"), "/settings/compensation/orderingModel"),
    "unknown profile": (with_(*P, "profileVersion", value="2"), "/settings/compensation/profileVersion"),
    "unknown policy key": (with_(*P, "speed", value=1), "/settings/compensation/speed"),
}  # fmt: skip


@pytest.mark.parametrize("which", WORKFLOWS)
@pytest.mark.parametrize("path", ["/v1/workflows", "/v1/workflows:validate"])
def test_a_malformed_workflow(db: None, still: Scene, which: str, path: str) -> None:
    """CMP-101…107, 110."""
    nodes = [definitions.node("a", "undo"), definitions.node("b")]
    good = definitions.workflow("flow", nodes, pairs=[("a", "b")])
    change, pointer = WORKFLOWS[which]
    refused(lambda: still.us.service.post(path, changed(good, change)), pointer)


@pytest.mark.parametrize("text", [b"[]", b'"flow"', b"7", b"null", b"[{}]", b"true"])
@pytest.mark.parametrize("path", ["/v1/workflows", "/v1/workflows:validate", "/v1/node-types"])
def test_a_definition_that_is_no_object(db: None, still: Scene, text: bytes, path: str) -> None:
    refused(lambda: still.us.service.post(path, text), "")


NODE_TYPES: dict[str, tuple[Change, str]] = {
    "no kind": (without("kind"), "/kind"),
    "unknown kind": (with_("kind", value="carrier-pigeon"), "/kind"),
    "bad id": (with_("nodeTypeId", value="9 lives"), "/nodeTypeId"),
    "unknown key": (with_("sneaky", value=1), "/sneaky"),
    "no request": (without("request"), "/request"),
    "method": (with_("request", "method", value="BREW"), "/request/method"),
    "not http": (with_("request", "url", value="ftp://x.example/"), "/request/url"),
    "user in url": (with_("request", "url", value="http://me:pw@x.example/"), "/request/url"),
    "secret header": (with_("request", "headers", value={"Authorization": "Bearer abc"}),
                      "/request/headers/Authorization"),
    "framing header": (with_("request", "headers", value={"Content-Length": "1"}), "/request/headers/Content-Length"),
    "bad path": (with_("receipt", value="receiptId"), "/receipt"),
    "success 401": (with_("success", value={"status": [401]}), "/success/status/0"),
    "negative settle": (with_("settleMs", value=-1), "/settleMs"),
    "concurrency 0": (with_("maxConcurrency", value=0), "/maxConcurrency"),
    "half a readback": (with_("readback", value={"method": "GET", "url": "http://x.example/"}), "/readback/applied"),
}  # fmt: skip


@pytest.mark.parametrize("which", NODE_TYPES)
def test_a_malformed_node_type(db: None, still: Scene, which: str) -> None:
    change, pointer = NODE_TYPES[which]
    good = definitions.node_type("undo", "http://127.0.0.1:8090/payments/refund")
    refused(lambda: still.us.service.post("/v1/node-types", changed(good, change)), pointer)


def test_a_secret_is_not_repeated_in_the_answer_that_refuses_it(db: None, still: Scene) -> None:
    """CMP-304."""
    secret = "Bearer sk-live-0123456789abcdefABCDEF"
    bad = definitions.node_type("undo", "http://x.example/", request={
        "method": "POST", "url": "http://x.example/", "headers": {"X-Key": secret}})  # fmt: skip
    assert secret not in refused(lambda: still.us.service.post("/v1/node-types", bad), "/request/headers/X-Key").text
    reply = refused(lambda: still.us.admin.put("/v1/credentials/bank", {"secret": {"value": secret}}), "/secret")
    assert secret not in reply.text


RUNS: list[tuple[Any, str]] = [
    ({}, "/workflowId"),
    ({"workflowId": 7}, "/workflowId"),
    ({"workflowId": "flow", "sneaky": 1}, "/sneaky"),
    ({"workflowId": "flow", "inputs": []}, "/inputs"),
    ({"workflowId": "flow", "inputs": {"amount": "much"}}, "/inputs/amount"),
    ({"workflowId": "flow", "inputs": {"amount": 1, "other": 1}}, "/inputs/other"),
    ({"workflowId": "flow"}, "/inputs/amount"),
    ({"workflowId": "flow", "inputs": {"amount": 1}, "mode": "imagined"}, "/mode"),
    ({"workflowId": "flow", "inputs": {"amount": 1}, "tags": "x"}, "/tags"),
    ({"workflowId": "flow", "inputs": {"amount": 1}, "tags": ["x" * 129]}, "/tags/0"),
    ({"workflowId": "flow", "inputs": {"amount": 1}, "tags": ["x", "x"]}, "/tags/1"),
    ({"workflowId": "flow", "inputs": {"amount": 1}, "metadata": 1}, "/metadata"),
    ([], ""),
]


@pytest.mark.parametrize(("body", "pointer"), RUNS)
def test_a_malformed_run(db: None, still: Scene, body: Any, pointer: str) -> None:
    refused(lambda: still.us.service.post("/v1/runs", body), pointer)


@pytest.mark.parametrize(
    ("body", "pointer"),
    [({}, "/facts"), ({"facts": []}, "/facts"), ({"facts": {}}, "/facts"), ({"facts": [1] * 501}, "/facts"),
     ({"facts": [committed("a")], "more": 1}, "/more"), ([], "")],
)  # fmt: skip
def test_a_malformed_batch_of_facts(db: None, still: Scene, body: Any, pointer: str) -> None:
    refused(lambda: still.us.service.post(f"/v1/runs/{still.run}/facts", body), pointer)


FACTS: dict[str, tuple[Any, str]] = {
    "no object": (7, ""),
    "no factId": ({"type": "run.completed"}, "/factId"),
    "long factId": ({"factId": "f" * 129, "type": "run.completed"}, "/factId"),
    "unknown type": ({"factId": "f", "type": "node.exploded"}, "/type"),
    "unknown node": (committed("zz"), "/nodeId"),
    "no invocation": ({"factId": "f", "type": "node.completed", "nodeId": "a"}, "/logicalInvocationId"),
    "output no object": (committed("a", output=[1]), "/output"),
    "unknown key": (committed("a", price=1), "/price"),
    "ordinal 0": (committed("a", completionOrdinal=0), "/completionOrdinal"),
    "bad clock": (committed("a", clocks={"effectAt": "yesterday"}), "/clocks/effectAt"),
    "no 30 February": (committed("a", clocks={"effectAt": "2026-02-30T10:00:00Z"}), "/clocks/effectAt"),
    "not terminal": ({"factId": "f", "type": "node.failed", "nodeId": "a"}, "/terminal"),
    "no cap": ({"factId": "f", "type": "cap.breached"}, "/cap"),
}


@pytest.mark.parametrize("which", FACTS)
def test_a_malformed_fact_is_rejected_by_itself(hall: Hall, which: str) -> None:
    """The batch is answered fact by fact; a rejected one leaves no trace, the rest counts."""
    fact, pointer = FACTS[which]
    run = hall.begin().json["runId"]
    before = row_counts()
    reply = hall.us.service.post(f"/v1/runs/{run}/facts", {"facts": [fact]})
    [result] = reply.json["results"]
    assert (reply.status, result["status"], result["error"]["error"]) == (200, "rejected", "validation_error")
    assert pointer in [problem["pointer"] for problem in result["error"]["details"]["errors"]]
    assert differences(before, row_counts()) == {}
    mixed = hall.us.service.post(f"/v1/runs/{run}/facts", {"facts": [fact, committed("a", factId="good")]})
    assert [each["status"] for each in mixed.json["results"]] == ["rejected", "accepted"]


ACTS: list[tuple[str, str, Any, str]] = [
    ("skip", "lead", without("effectId"), "/effectId"),
    ("skip", "lead", with_("effectId", value="abc"), "/effectId"),
    ("skip", "lead", without("expectedPlanVersion"), "/expectedPlanVersion"),
    ("skip", "lead", with_("expectedPlanVersion", value=0), "/expectedPlanVersion"),
    ("skip", "lead", with_("expectedPlanVersion", value=True), "/expectedPlanVersion"),
    ("skip", "lead", with_("expectedPlanVersion", value=1.5), "/expectedPlanVersion"),
    ("skip", "lead", without("expectedState"), "/expectedState"),
    ("skip", "lead", with_("expectedState", value="fine"), "/expectedState"),
    ("skip", "lead", without("justification"), "/justification"),
    ("skip", "lead", with_("justification", value=""), "/justification"),
    ("skip", "lead", with_("justification", value="   short   "), "/justification"),
    ("skip", "lead", with_("justification", value="x" * 4001), "/justification"),
    ("skip", "lead", with_("force", value=True), "/force"),
    ("retry", "operator", with_("effectId", value=None), "/effectId"),
    ("retry", "operator", with_("force", value=True), "/force"),
    ("substitute", "lead", with_("nodeTypeId", value=""), "/nodeTypeId"),
    ("substitute", "lead", with_("nodeTypeId", value="ghost"), "/nodeTypeId"),
    ("substitute", "lead", with_("nodeTypeVersion", value=0), "/nodeTypeVersion"),
    ("substitute", "lead", with_("nodeTypeVersion", value=99), "/nodeTypeId"),
    ("substitute", "lead", with_("receipt", value="R-1"), "/receipt"),
    ("substitute", "lead", with_("nodeTypeId", value="undo"), "/nodeTypeVersion"),
]


@pytest.mark.parametrize(("act", "who", "change", "pointer"), ACTS)
def test_a_malformed_act(db: None, still: Scene, act: str, who: str, change: Change, pointer: str) -> None:
    """CMP-609."""
    good = still.acts()
    if act == "substitute":
        good["nodeTypeId"] = "undo2"
    body = changed(good, change)
    refused(lambda: getattr(still.us, who).post(f"/v1/runs/{still.run}/compensation:{act}", body), pointer)


OTHER_ACTS: list[tuple[str, str, Any, str]] = [
    ("/compensation:terminate", "lead", {"expectedPlanVersion": 1}, "/justification"),
    ("/compensation:terminate", "lead", {"justification": WHY}, "/expectedPlanVersion"),
    ("/compensation:start", "operator", {"trigger": "full-moon"}, "/trigger"),
    ("/compensation:pause", "operator", {"until": "later"}, "/until"),
    ("/compensation:resume", "operator", [], ""),
    ("/compensation:preview", "operator", {"deep": True}, "/deep"),
    ("/cancel", "service", {"reason": 1}, "/reason"),
]


@pytest.mark.parametrize(("path", "who", "body", "pointer"), OTHER_ACTS)
def test_a_malformed_act_on_a_run(db: None, still: Scene, path: str, who: str, body: Any, pointer: str) -> None:
    refused(lambda: getattr(still.us, who).post(f"/v1/runs/{still.run}{path}", body), pointer)


ANSWERS: list[tuple[Any, str]] = [
    ({}, "/resumeValue"),
    ({"decision": "approve"}, "/decision"),
    ({"resumeValue": {"action": "accept"}}, "/resumeValue/digest"),
    ({"resumeValue": {"action": "accept", "digest": DIGEST}}, "/resumeValue/planVersion"),
    ({"resumeValue": {"action": "refine", "digest": DIGEST, "planVersion": 1}}, "/resumeValue/action"),
    ({"resumeValue": {"action": "edit-accept", "digest": DIGEST, "planVersion": 1}}, "/resumeValue/action"),
    ({"resumeValue": {"action": "accept", "digest": "x", "planVersion": 1}}, "/resumeValue/digest"),
    ({"resumeValue": {"action": "accept", "digest": DIGEST, "planVersion": "1"}}, "/resumeValue/planVersion"),
    ({"resumeValue": {"action": "accept", "digest": DIGEST, "planVersion": 1, "input": {}}}, "/resumeValue/input"),
    ({"resumeValue": {"action": "accept", "digest": DIGEST, "planVersion": 1, "feedback": 1}}, "/resumeValue/feedback"),
    ({"resumeValue": "accept"}, "/resumeValue"),
]


@pytest.mark.parametrize(("body", "pointer"), ANSWERS)
def test_a_malformed_answer_decides_nothing(db: None, still: Scene, body: Any, pointer: str) -> None:
    """CMP-602: a reply that does not quote what was displayed is refused, and so is any form of editing it."""
    for path in (f"/v1/interrupts/{still.question}", f"/v1/runs/{still.asked}/interrupts/b"):
        refused(lambda path=path: still.us.approver.post(path, body), pointer)  # type: ignore[misc]
    assert still.us.approver.get(f"/v1/interrupts/{still.question}").json["state"] == "open"


@pytest.mark.parametrize(
    ("path", "method", "body", "pointer"),
    [
        ("/v1/credentials", "POST", {"ref": "bank"}, "/secret"),
        ("/v1/credentials", "POST", {"ref": "b/nk", "secret": "s"}, "/ref"),
        ("/v1/credentials", "POST", {"ref": "bank", "secret": ""}, "/secret"),
        ("/v1/credentials/b%20nk", "PUT", {"secret": "s"}, "/ref"),
        ("/v1/egress", "PUT", {"allow": "10.0.0.0/8"}, "/allow"),
        ("/v1/egress", "PUT", {"allow": ["10.0.0.0/8", "8.8.8.8"]}, "/allow/1"),
        ("/v1/egress", "PUT", {"allow": ["169.254.169.254"]}, "/allow/0"),
        ("/v1/egress", "PUT", {"allow": [7]}, "/allow/0"),
        ("/v1/tenant:hold", "POST", {}, "/justification"),
        ("/v1/node-types/undo:hold", "POST", {"justification": ""}, "/justification"),
        ("/v1/node-types/undo:release", "POST", {"now": True}, "/now"),
    ],
)
def test_a_malformed_setting(db: None, still: Scene, path: str, method: str, body: Any, pointer: str) -> None:
    refused(lambda: still.us.admin.call(method, path, body), pointer)


def test_every_problem_is_named_at_once(db: None, still: Scene) -> None:
    """CMP-104: all errors in one answer."""
    reply = still.us.service.post("/v1/runs", {"workflowId": 1, "tags": [1], "mode": "x", "odd": 1})
    assert {"/workflowId", "/tags/0", "/mode", "/odd"} <= set(reply.pointers)


def test_a_hosted_run_is_refused_by_name(db: None, still: Scene) -> None:
    before = row_counts()
    reply = still.us.service.post("/v1/runs", {"workflowId": "flow", "mode": "hosted"})
    assert (reply.status, reply.code) == (422, "capability_required")
    assert reply.json["details"]["requiredCapability"] == "hosted"
    assert differences(before, row_counts()) == {}


@pytest.mark.parametrize("lowered", ["settings", "compensation", "approvalScope", "triggers", "retry"])
def test_no_run_lowers_its_policy(db: None, still: Scene, lowered: str) -> None:
    """CMP-105: the policy is authored; a run request carries nothing that could change it."""
    body = {"workflowId": "flow", lowered: {"approvalScope": "declared"}}
    refused(lambda: still.us.service.post("/v1/runs", body), f"/{lowered}")
