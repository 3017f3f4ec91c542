"""Who may do what over the API (CMP-605, 606): every endpoint, every persona, and what the refusals leave behind."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
import structlog
from django.test import Client
from django.utils import timezone

from audit.models import ApiKey, Decision
from audit.models.keys import hash_key
from compensation.models import Run
from tests.integration.api.conftest import Hall
from tests.support import definitions
from tests.support.callers import Caller, differences, row_counts
from tests.support.stage import WHY, committed
from tests.support.world import user_of

Call = Callable[[Hall, Caller, Run], Any]

ROLES = ("service", "operator", "lead", "approver", "auditor", "admin")


def _act(name: str, **more: Any) -> Call:
    def call(hall: Hall, caller: Caller, run: Run) -> Any:
        return caller.post(f"/v1/runs/{run.pk}/compensation:{name}", hall.act(run, "b", **more))

    return call


def _on_run(name: str, body: dict[str, Any]) -> Call:
    return lambda hall, caller, run: caller.post(f"/v1/runs/{run.pk}{name}", body)


def _terminate(hall: Hall, caller: Caller, run: Run) -> Any:
    body = {"expectedPlanVersion": 1, "justification": WHY}
    return caller.post(f"/v1/runs/{run.pk}/compensation:terminate", body)


def _answer(hall: Hall, caller: Caller, run: Run) -> Any:
    question = hall.stage.question(run)
    value = {"action": "accept", "digest": question.digest, "planVersion": 1}
    return caller.post(f"/v1/runs/{run.pk}/interrupts/{question.node_key}", {"resumeValue": value})


# What: (the call, who may, the action that a refusal is recorded under).
ACTS: dict[str, tuple[Call, set[str], str]] = {
    "register workflow": (
        lambda hall, caller, run: caller.post("/v1/workflows", definitions.workflow("other", [definitions.node("x")])),
        {"service", "admin"},
        "workflows:write",
    ),
    "validate workflow": (
        lambda hall, caller, run: caller.post(
            "/v1/workflows:validate", definitions.workflow("other", [definitions.node("x")])
        ),
        {"service", "admin"},
        "workflows:validate",
    ),
    "register node type": (
        lambda hall, caller, run: caller.post("/v1/node-types", definitions.manual_type("by-hand")),
        {"service", "admin"},
        "node-types:write",
    ),
    "hold node type": (
        lambda hall, caller, run: caller.post("/v1/node-types/undo:hold", {"justification": WHY}),
        {"lead", "admin"},
        "node-types:hold",
    ),
    "release node type": (
        lambda hall, caller, run: caller.post("/v1/node-types/undo:release", {}),
        {"lead", "admin"},
        "node-types:release",
    ),
    "hold tenant": (
        lambda hall, caller, run: caller.post("/v1/tenant:hold", {"justification": WHY}),
        {"lead", "admin"},
        "tenant:hold",
    ),
    "release tenant": (
        lambda hall, caller, run: caller.post("/v1/tenant:release", {}),
        {"lead", "admin"},
        "tenant:release",
    ),
    "create run": (
        lambda hall, caller, run: caller.post("/v1/runs", {"workflowId": "flow"}),
        {"service"},
        "runs:create",
    ),
    "facts": (_on_run("/facts", {"facts": [committed("a", factId="late", logicalInvocationId="a:2")]}), {"service"},
              "facts:write"),
    "cancel": (_on_run("/cancel", {}), {"service"}, "runs:cancel"),
    "pause": (_on_run("/compensation:pause", {}), {"operator", "lead"}, "compensation:pause"),
    "resume": (_on_run("/compensation:resume", {}), {"operator", "lead"}, "compensation:resume"),
    "retry": (_act("retry"), {"operator", "lead"}, "compensation:retry"),
    "skip": (_act("skip", justification=WHY), {"lead"}, "compensation:skip"),
    "substitute": (_act("substitute", justification=WHY, nodeTypeId="undo2"), {"lead"}, "compensation:substitute"),
    "terminate": (_terminate, {"lead"}, "compensation:terminate"),
    "approve": (_answer, {"approver"}, "approvals:respond"),
    "decisions": (lambda hall, caller, run: caller.get("/v1/decisions"), {"auditor"}, "audit:read"),
    "credential": (
        lambda hall, caller, run: caller.put("/v1/credentials/bank", {"secret": "s3cret-value"}),
        {"admin"},
        "credentials:write",
    ),
    "credentials": (lambda hall, caller, run: caller.get("/v1/credentials"), {"admin"}, "credentials:read"),
    "egress": (
        lambda hall, caller, run: caller.put("/v1/egress", {"allow": ["127.0.0.0/8"]}),
        {"admin"},
        "egress:write",
    ),
    "read egress": (lambda hall, caller, run: caller.get("/v1/egress"), {"admin"}, "egress:read"),
}  # fmt: skip

FAILED_ACTS = {"retry"}
ASKED_ACTS = {"approve"}


def _scene(hall: Hall, what: str) -> Run:
    """A run on which the act is possible."""
    hall.stage.register("undo2")
    run = hall.unwinding(requiresApproval=True, waiveRequiresApproval=False)
    if what in FAILED_ACTS:
        hall.stage.reject(run)
    return run


@pytest.mark.parametrize("what", ACTS)
def test_an_act_is_for_those_who_hold_it_and_a_refusal_is_one_row(hall: Hall, what: str) -> None:
    """CMP-605, CMP-606: 403 inside the tenant, recorded as denied, and nothing else changes."""
    call, allowed, action = ACTS[what]
    run = _scene(hall, what)
    for role in (role for role in ROLES if role not in allowed):
        before = row_counts()
        reply = call(hall, getattr(hall.us, role), run)
        assert (reply.status, reply.code) == (403, "forbidden"), f"{role}: {reply.text}"
        assert reply.json["details"]["retriable"] is False
        grown = differences(before, row_counts())
        assert grown.pop("audit_decision") == 1
        assert grown in ({}, {"compensation_runevent": 1}), role
        row = Decision.objects.filter(tenant=hall.stage.home.tenant).latest("seq")
        assert (row.action, row.allowed, row.reason) == (action, False, "authority-denied")
        assert row.request_id == reply.headers["X-Request-Id"]
    holder = getattr(hall.us, min(allowed))
    assert call(hall, holder, run).status in {200, 201, 202}


OF_A_RUN: dict[str, Call] = {
    "snapshot": lambda hall, caller, run: caller.get(f"/v1/runs/{run.pk}"),
    "events": lambda hall, caller, run: caller.get(f"/v1/runs/{run.pk}/events"),
    "poll": lambda hall, caller, run: caller.get(f"/v1/runs/{run.pk}/events/poll"),
    "plan": lambda hall, caller, run: caller.get(f"/v1/runs/{run.pk}/compensation"),
    "attempts": lambda hall, caller, run: caller.get(
        f"/v1/runs/{run.pk}/compensation/{hall.stage.entry(run, 'b').effect_id}/attempts"
    ),
    "preview": _on_run("/compensation:preview", {}),
    "start": _on_run("/compensation:start", {}),
    "interrupts": lambda hall, caller, run: caller.get(f"/v1/interrupts/{hall.stage.question(run).pk}"),
}


@pytest.mark.parametrize("what", [*OF_A_RUN, "facts", "cancel", "pause", "resume", "retry", "skip", "substitute",
                                  "terminate", "approve"])  # fmt: skip
def test_another_tenants_run_does_not_exist(hall: Hall, what: str) -> None:
    """CMP-606: 404 with the body of a made-up id, no row in either tenant, a line in the host's security log."""
    run = _scene(hall, "")
    call = OF_A_RUN.get(what) or ACTS[what][0]
    for role in ROLES:
        before = row_counts()
        with structlog.testing.capture_logs() as logged:
            reply = call(hall, getattr(hall.them, role), run)
        made_up = getattr(hall.them, role).get("/v1/runs/01930000-0000-7000-8000-000000000000")
        assert reply.status == 404, f"{role}: {reply.text}"
        assert reply.json == made_up.json
        assert differences(before, row_counts()) == {}
        assert [line["event"] for line in logged if line["event"] == "cross-tenant"] == ["cross-tenant"]


@pytest.mark.parametrize("what", OF_A_RUN)
def test_nothing_is_told_without_a_key(hall: Hall, what: str) -> None:
    run = _scene(hall, "")
    reply = OF_A_RUN[what](hall, Caller(""), run)
    assert (reply.status, reply.code) == (401, "unauthenticated")
    assert reply.headers["WWW-Authenticate"] == "Bearer"


def test_lists_show_only_the_own_tenant(hall: Hall) -> None:
    run = _scene(hall, "")
    lists = {"runs": "runs", "workflows": "workflows", "node-types": "nodeTypes", "interrupts": "interrupts"}
    for path, plural in lists.items():
        assert hall.them.approver.get(f"/v1/{path}").json[plural] == []
    assert hall.them.approver.get(f"/v1/interrupts?runId={run.pk}").json["interrupts"] == []
    assert [each["runId"] for each in hall.us.approver.get("/v1/runs").json["runs"]] == [str(run.pk)]
    assert len(hall.us.approver.get("/v1/interrupts").json["interrupts"]) == 1


@pytest.mark.parametrize("path", ["/v1/runs", "/v1/workflows", "/v1/node-types", "/v1/interrupts", "/v1/workflows/flow",
                                  "/v1/node-types/undo"])  # fmt: skip
def test_a_key_without_the_scope_reads_nothing(hall: Hall, path: str) -> None:
    _scene(hall, "")
    narrow = hall.us.key("operator", ["compensation:retry"])
    reply = narrow.get(path)
    assert (reply.status, reply.code) == (403, "forbidden")
    assert Decision.objects.filter(tenant=hall.stage.home.tenant).latest("seq").allowed is False


def test_inputs_are_for_those_who_may_see_them(hall: Hall) -> None:
    run = _scene(hall, "")
    viewer = hall.us.key("viewer", ["runs:read"])
    for shown in viewer.get(f"/v1/runs/{run.pk}/compensation").json["entries"]:
        assert "input" not in shown
    assert "inputs" not in viewer.get(f"/v1/runs/{run.pk}").json
    question = viewer.get(f"/v1/interrupts/{hall.stage.question(run).pk}").json
    assert (question["artifact"], question["artifactText"], question["mayAnswer"]) == (None, None, False)
    assert hall.entry(run, "b")["input"] == {"id": "b-1"}
    assert "inputs" in hall.us.operator.get(f"/v1/runs/{run.pk}").json


def test_a_scope_is_necessary_and_not_sufficient(hall: Hall) -> None:
    run = hall.unwinding()
    every_scope = hall.us.key("viewer", ["runs:read", "compensation:skip"])
    assert every_scope.post(f"/v1/runs/{run.pk}/compensation:skip", hall.act(run, "b", justification=WHY)).status == 403
    no_scope = hall.us.key("lead", ["runs:read"])
    assert no_scope.post(f"/v1/runs/{run.pk}/compensation:skip", hall.act(run, "b", justification=WHY)).status == 403
    both = hall.us.key("lead", ["runs:read", "compensation:skip"])
    assert both.post(f"/v1/runs/{run.pk}/compensation:skip", hall.act(run, "b", justification=WHY)).status == 200


@pytest.mark.parametrize("header", ["", "Bearer", "Bearer ", "Basic abc", "Bearer nope", "nonsense", "Bearer rck_x y"])
def test_a_header_that_is_no_key(hall: Hall, header: str) -> None:
    reply = Caller("").get("/v1/runs", Authorization=header)
    assert (reply.status, reply.code) == (401, "unauthenticated")


def test_expired_and_revoked_keys_are_told_apart(hall: Hall) -> None:
    key = ApiKey.objects.filter(hash=hash_key(hall.us.operator.key))
    assert hall.us.operator.get("/v1/runs").status == 200
    key.update(expires_at=timezone.now() - timedelta(seconds=1))
    assert (hall.us.operator.get("/v1/runs").status, hall.us.operator.get("/v1/runs").code) == (401, "key_expired")
    key.update(revoked_at=timezone.now())
    assert hall.us.operator.get("/v1/runs").code == "key_revoked"


def test_a_key_ends_with_its_owner(hall: Hall) -> None:
    person = user_of(hall.stage.home.operator)
    type(person).objects.filter(pk=person.pk).update(is_active=False)
    assert hall.us.operator.get("/v1/runs").code == "unauthenticated"


def test_the_use_of_a_key_is_noted_at_most_once_a_minute(hall: Hall) -> None:
    key = ApiKey.objects.filter(hash=hash_key(hall.us.operator.key))
    hall.us.operator.get("/v1/runs")
    first = key.get().last_used_at
    assert first is not None
    hall.us.operator.get("/v1/runs")
    assert key.get().last_used_at == first
    key.update(last_used_at=first - timedelta(minutes=2))
    hall.us.operator.get("/v1/runs")
    last = key.get().last_used_at
    assert last is not None
    assert last >= first


def _session(hall: Hall, **headers: str) -> tuple[Client, dict[str, str]]:
    client = Client(enforce_csrf_checks=True)
    client.force_login(user_of(hall.stage.home.operator), backend="django.contrib.auth.backends.ModelBackend")
    given = {"Sec-Fetch-Site": "same-origin", "HX-Request": "true", "X-Tenant": hall.stage.name, **headers}
    return client, given


def test_a_session_is_for_same_origin_htmx_calls_only(hall: Hall) -> None:
    client, headers = _session(hall)
    assert client.get("/v1/runs", headers=headers).status_code == 200
    for name, value in (("Sec-Fetch-Site", "cross-site"), ("HX-Request", ""), ("X-Tenant", hall.them.home.tenant.slug)):
        assert client.get("/v1/runs", headers={**headers, name: value}).status_code == 401
    assert client.get("/v1/runs").status_code == 401


def test_a_session_needs_its_csrf_token(hall: Hall) -> None:
    run = hall.unwinding()
    client, headers = _session(hall)
    path = f"/v1/runs/{run.pk}/compensation:pause"
    refused = client.post(path, "{}", content_type="application/json", headers=headers)
    assert (refused.status_code, refused.json()["error"]) == (403, "forbidden")
    token = "a" * 32
    client.cookies["csrftoken"] = token
    done = client.post(path, "{}", content_type="application/json", headers={**headers, "X-CSRFToken": token})
    assert done.status_code == 200
    assert done.json()["decision"]["principal"] == hall.stage.home.operator.label
