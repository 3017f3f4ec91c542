"""Every refusal is in the envelope, whatever was wrong with the request (wire.md, Conventions)."""

from __future__ import annotations

import json
from typing import Any

import pytest
import structlog

from compensation.api import runs
from compensation.queries.discovery import MAX_BODY_BYTES
from tests.integration.api.conftest import Hall
from tests.support.callers import Caller, Reply, differences, row_counts
from tests.support.stage import WHY


def envelope(reply: Reply, status: int, code: str) -> dict[str, Any]:
    body: dict[str, Any] = reply.json
    assert reply.status == status, reply.text
    assert set(body) == {"error", "message", "details"}
    assert body["error"] == code
    assert isinstance(body["details"]["retriable"], bool)
    assert reply.headers["X-Request-Id"]
    return body


@pytest.mark.parametrize("path", ["/v1/nothing", "/v1", "/v1/", "/v1/runs/x/y/z", "/v1:what", "/.well-known/other"])
def test_an_unknown_url_is_not_found_in_the_envelope(hall: Hall, path: str) -> None:
    for caller in (hall.us.operator, Caller("")):
        envelope(caller.get(path), 404, "not_found")
        envelope(caller.post(path, {}), 404, "not_found")


@pytest.mark.parametrize("method", ["DELETE", "PATCH", "OPTIONS", "PUT"])
def test_a_method_that_is_not_offered(hall: Hall, method: str) -> None:
    reply = hall.us.operator.call(method, "/v1/runs", {})
    envelope(reply, 405, "validation_error")
    assert {"GET", "POST"} <= set(reply.headers["Allow"].split(", "))


@pytest.mark.parametrize("media_type", ["text/plain", "application/x-www-form-urlencoded", "multipart/form-data"])
def test_a_body_of_another_media_type(hall: Hall, media_type: str) -> None:
    reply = hall.us.service.post("/v1/runs", b"workflowId=flow", Content_Type=media_type)
    envelope(reply, 415, "validation_error")


def test_whatever_is_accepted_the_answer_is_json(hall: Hall) -> None:
    reply = hall.us.operator.get("/v1/runs", Accept="text/html")
    assert reply.status == 200
    assert reply.headers["Content-Type"] == "application/json"


@pytest.mark.parametrize(
    ("text", "pointer"),
    [
        (b'{"workflowId": "a", "workflowId": "b"}', "/workflowId"),
        (b'{"inputs": {"n": NaN}}', "/inputs/n"),
        (b'{"inputs": {"n": -Infinity}}', "/inputs/n"),
        (b'{"inputs": {"n": 9007199254740993}}', "/inputs/n"),
        (b'{"tags": ["\\ud800"]}', "/tags/0"),
        (b'{"tags": ["a\\u0000b"]}', "/tags/0"),
        (b'{"workflowId": ', ""),
        (b"\xff\xfe", ""),
        (b"[" * 65 + b"]" * 65, "/0" * 64),
        (b"not json", ""),
    ],
)
def test_a_body_that_is_not_i_json(hall: Hall, text: bytes, pointer: str) -> None:
    before = row_counts()
    reply = hall.us.service.post("/v1/runs", text)
    envelope(reply, 400, "validation_error")
    assert pointer in reply.pointers
    assert differences(before, row_counts()) == {}


def test_a_body_of_more_than_a_mebibyte_is_read_and_refused(hall: Hall) -> None:
    body = b'{"workflowId": "' + b"x" * MAX_BODY_BYTES + b'"}'
    envelope(hall.us.service.post("/v1/runs", body), 413, "payload_too_large")


def test_a_body_of_unknown_length_is_refused_and_not_taken_for_none(hall: Hall) -> None:
    reply = hall.us.service.call("POST", "/v1/runs", None, Transfer_Encoding="chunked", Content_Length="")
    envelope(reply, 411, "validation_error")


def test_a_body_of_just_a_mebibyte_is_taken(hall: Hall) -> None:
    shell = b'{"workflowId": ""}'
    body = shell[:-2] + b"x" * (MAX_BODY_BYTES - len(shell)) + shell[-2:]
    assert len(body) == MAX_BODY_BYTES
    assert "/workflowId" in hall.us.service.post("/v1/runs", body).pointers


def test_a_fault_of_ours_is_told_by_its_correlation_id_only(hall: Hall, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: Any, **__: Any) -> None:
        raise RuntimeError("the secret recipe")

    monkeypatch.setattr(runs, "page", broken)
    with structlog.testing.capture_logs() as logged:
        reply = hall.us.operator.get("/v1/runs")
    body = envelope(reply, 500, "internal_error")
    assert body["details"]["correlationId"] == reply.headers["X-Request-Id"]
    assert "recipe" not in reply.text
    assert "Traceback" not in reply.text
    [line] = [line for line in logged if line["event"] == "uncaught"]
    assert line["correlation_id"] == body["details"]["correlationId"]
    assert line["error"] == "RuntimeError"


@pytest.mark.parametrize(
    "run_id", ["x", "%00", "a%00b", "../x", "0", "01930000-0000-7000-8000-00000000ABCD", "é" * 300]
)
def test_an_id_that_is_none_is_simply_not_there(hall: Hall, run_id: str) -> None:
    for tail in ("", "/compensation", "/events/poll"):
        envelope(hall.us.operator.get(f"/v1/runs/{run_id}{tail}"), 404, "not_found")
    envelope(hall.us.operator.post(f"/v1/runs/{run_id}/compensation:pause", {}), 404, "not_found")


@pytest.mark.parametrize("name", ["a%00b", "x" * 2000, "%F0%9F%A6%9C"])
def test_a_name_that_nothing_bears(hall: Hall, name: str) -> None:
    for path in (f"/v1/workflows/{name}", f"/v1/node-types/{name}", f"/v1/interrupts/{name}"):
        envelope(hall.us.operator.get(path), 404, "not_found")


@pytest.mark.parametrize(
    "query",
    ["limit=0", "limit=201", "limit=-1", "limit=x", "limit=", "limit=1&limit=2", "cursor=x", "cursor=", "status=odd",
     "compensationStatus=1", "unknown=1", "tag=%00", "workflowId=" + "x" * 600, "limit=" + "9" * 5000],
)  # fmt: skip
def test_a_query_that_is_not_valid(hall: Hall, query: str) -> None:
    reply = hall.us.operator.get(f"/v1/runs?{query}")
    envelope(reply, 400, "validation_error")
    assert reply.pointers == [f"/{query.split('=', maxsplit=1)[0]}"]


def test_the_request_is_named_in_its_answer_its_decision_and_its_trace_is_echoed(hall: Hall) -> None:
    trace = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"
    run = hall.begin(traceparent=trace)
    assert run.headers["traceparent"] == trace
    shown = hall.us.service.get(f"/v1/runs/{run.json['runId']}").json
    assert shown["traceparent"] == trace
    paused = hall.us.operator.post(f"/v1/runs/{hall.unwinding().pk}/compensation:pause", {})
    assert paused.json["decision"]["requestId"] == paused.headers["X-Request-Id"]


NO_TRACE_ID = f"00-{'0' * 32}-00f067aa0ba902b7-01"
BAD_VERSION = f"ff-{'1' * 32}-00f067aa0ba902b7-01"


@pytest.mark.parametrize("trace", ["", "junk", NO_TRACE_ID, BAD_VERSION])
def test_a_trace_context_that_is_not_valid_is_not_passed_on(hall: Hall, trace: str) -> None:
    reply = hall.us.operator.get("/v1/runs", traceparent=trace)
    assert reply.status == 200
    assert "traceparent" not in reply.headers


def test_times_are_rfc_3339_in_utc_with_milliseconds(hall: Hall) -> None:
    shown = hall.us.operator.get(f"/v1/runs/{hall.unwinding().pk}").json
    for name in ("startedAt", "completedAt"):
        assert len(shown[name]) == len("2026-12-01T10:00:00.000Z")
        assert shown[name].endswith("Z")
    assert json.dumps(shown)


@pytest.mark.parametrize(
    ("path", "body"),
    [("/v1/workflows", {"id": "x" * 2000}), ("/v1/node-types", {"nodeTypeId": "x" * 2000}),
     ("/v1/workflows:validate", {"id": "x" * 2000}), (f"/v1/node-types/{'x' * 2000}:hold", {"justification": WHY}),
     ("/v1/workflows", {"id": {"deep": ["x"] * 400}})],
)  # fmt: skip
def test_a_refusal_of_something_with_an_endless_name_is_recorded(hall: Hall, path: str, body: Any) -> None:
    before = row_counts()
    envelope(hall.us.auditor.post(path, body), 403, "forbidden")
    assert differences(before, row_counts()) == {"audit_decision": 1}


@pytest.mark.parametrize("who", ["admin", "lead"])
def test_holding_what_is_not_there(hall: Hall, who: str) -> None:
    before = row_counts()
    envelope(getattr(hall.us, who).post("/v1/node-types/ghost:hold", {"justification": WHY}), 404, "not_found")
    assert differences(before, row_counts()) == {}
