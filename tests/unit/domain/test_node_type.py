"""Node type documents: closed, bounded, free of secrets (wire.md, Node type; CMP-104, CMP-304)."""

from __future__ import annotations

from typing import Any

import pytest

from compensation.domain.jsonpath import PathNotFoundError
from compensation.domain.node_type import (
    DEFAULT_RETRYABLE,
    DEFAULT_SUCCESS,
    CredentialHeader,
    IdempotencySpec,
    NodeTypeSpec,
    check_node_type,
    extract,
    validate_input,
)
from compensation.domain.states import NodeKind
from tests.unit.domain.support import Change, Document, changed, http_node_type

# The example of wire.md, word by word.
WIRE_EXAMPLE: Document = {
    "nodeTypeId": "sandbox.payments.refund",
    "kind": "http",
    "title": "Refund a charge",
    "system": "payments",
    "request": {
        "method": "POST",
        "url": "http://127.0.0.1:8090/payments/refund",
        "headers": {"X-Team": "ops"},
        "body": "$input",
    },
    "inputSchema": {"type": "object", "required": ["chargeId"]},
    "idempotency": {"header": "Idempotency-Key", "honoured": True},
    "readback": {
        "method": "GET",
        "url": "http://127.0.0.1:8090/effects/{key}",
        "applied": {"status": [200], "path": "$.state", "equals": "applied"},
        "notApplied": {"status": [404]},
    },
    "success": {"status": [200, 201]},
    "retryable": {"status": [408, 425, 429, 500, 502, 503, 504]},
    "receipt": "$.receiptId",
    "output": "$",
    "credentialRef": "payments-inverse",
    "settleMs": 2000,
    "keyLifetimeHours": 24,
    "amount": "$.amount",
    "currency": "$.currency",
    "recovery": {"restorationGap": 1, "propagationReach": 1, "temporalDecay": 2, "externalDependence": 3},
    "requiresApproval": False,
    "retry": {"maxAttempts": 3, "backoffMs": 500},
    "timeoutMs": 30000,
    "maxConcurrency": 20,
}
MANUAL: Document = {"nodeTypeId": "desk.refund", "kind": "manual", "title": "By hand", "inputSchema": {}}


def put(*path: Any, value: Any) -> Change:
    """A change that sets the member at `path`."""

    def change(document: Document) -> None:
        for step in path[:-1]:
            document = document[step]
        document[path[-1]] = value

    return change


def drop(name: str) -> Change:
    return lambda document: document.pop(name)


def test_the_example_of_the_wire_and_a_manual_type_are_accepted() -> None:
    assert check_node_type(WIRE_EXAMPLE) == []
    assert check_node_type(MANUAL) == []
    assert check_node_type(http_node_type()) == []


def headers(value: Any) -> Change:
    return put("request", "headers", value=value)


def url(value: Any) -> Change:
    return put("request", "url", value=value)


@pytest.mark.parametrize(
    ("change", "pointer", "word"),
    [
        (put("extra", value=1), "/extra", "not a known key"),
        (drop("nodeTypeId"), "/nodeTypeId", "missing"),
        (drop("kind"), "/kind", "missing"),
        (drop("request"), "/request", "missing"),
        (put("kind", value="grpc"), "/kind", "not an allowed value"),
        (put("kind", value=["http"]), "/kind", "not an allowed value"),
        (put("nodeTypeId", value=""), "/nodeTypeId", "length"),
        (put("nodeTypeId", value="a b"), "/nodeTypeId", "form"),
        (put("nodeTypeId", value="x" * 129), "/nodeTypeId", "length"),
        (put("title", value=7), "/title", "string"),
        (put("request", "method", value="GET"), "/request/method", "not an allowed value"),
        (put("request", "verb", value="POST"), "/request/verb", "not a known key"),
        (put("request", "body", value="$.x"), "/request/body", "not an allowed value"),
        (url("ftp://a.example/"), "/request/url", "http"),
        (url("/relative"), "/request/url", "absolute"),
        (url("https://"), "/request/url", "absolute"),
        (url("https://u:p@a.example/"), "/request/url", "user or password"),
        (url("https://a.example/#f"), "/request/url", "fragment"),
        (url("https://a.example/{id}"), "/request/url", "unknown form"),
        (url("https://a.example/{input.}"), "/request/url", "unknown form"),
        (url("https://a.example/{input.id"), "/request/url", "unknown form"),
        (url("https://{input.host}/x"), "/request/url", "scheme or host"),
        (url("{key}://a.example/"), "/request/url", "scheme or host"),
        (url("https://a.example/a b"), "/request/url", "percent-encoded"),
        (url("https://a.example/é"), "/request/url", "percent-encoded"),
        (url("https://a.example:99999/"), "/request/url", "URL"),
        (url("https://[::1/"), "/request/url", "URL"),
        (url("https://a.example/?api_key=abc"), "/request/url", "secret"),
        (url("https://a.example/?t=sk-live-abcdef"), "/request/url", "secret"),
        (url("https://a.example/" + "x" * 2048), "/request/url", "URL"),
        (headers({"Authorization": "anything"}), "/request/headers/Authorization", "secret"),
        (headers({"X-Api-Key": "k"}), "/request/headers/X-Api-Key", "secret"),
        (headers({"X-Auth-Token": "k"}), "/request/headers/X-Auth-Token", "secret"),
        (headers({"X-Note": "Bearer abc"}), "/request/headers/X-Note", "secret"),
        (headers({"X-Note": "sk-test-1"}), "/request/headers/X-Note", "secret"),
        (headers({"X-Note": "Q7dVxP0aLmN3zRt8WyKc5JbE"}), "/request/headers/X-Note", "secret"),
        (headers({"X-Note": "0123456789abcdef" * 2}), "/request/headers/X-Note", "secret"),
        (headers({"Cookie": {"credential": "c"}}), "/request/headers/Cookie", "not a header"),
        (headers({"Host": "a"}), "/request/headers/Host", "not a header"),
        (headers({"Proxy-X": "a"}), "/request/headers/Proxy-X", "not a header"),
        (headers({"X Y": "a"}), "/request/headers/X Y", "form"),
        (headers({"X-A": "a\r\nX-B: b"}), "/request/headers/X-A", "form"),
        (headers({"X-A": 1}), "/request/headers/X-A", "string"),
        (headers({"X-A": "1", "x-a": "2"}), "/request/headers/x-a", "duplicate"),
        (headers({"X-A": {"credential": "c", "suffix": "s"}}), "/request/headers/X-A/suffix", "not a known key"),
        (headers({"X-A": {"prefix": "p"}}), "/request/headers/X-A/credential", "missing"),
        (headers({"idempotency-key": "x"}), "/request/headers/idempotency-key", "idempotency header"),
        (put("readback", "method", value="POST"), "/readback/method", "not an allowed value"),
        (put("readback", "applied", value={"status": []}), "/readback/applied/status", "too few"),
        (put("readback", "applied", value={"status": [200], "path": "$.s"}), "/readback/applied", "path"),
        (put("readback", "notApplied", value=404), "/readback/notApplied", "object"),
        (put("success", value={"status": [401]}), "/success/status/0", "never means success"),
        (put("success", value={"status": [[200]]}), "/success/status/0", "whole number"),
        (put("success", value={"status": [500]}), "/success/status/0", "whole number"),
        (put("retryable", value={"status": [201]}), "/retryable/status/0", "whole number"),
        (put("receipt", value="receiptId"), "/receipt", "JSONPath"),
        (put("receipt", value="$..id"), "/receipt", "JSONPath"),
        (put("output", value="$.a[*]"), "/output", "JSONPath"),
        (put("amount", value=3), "/amount", "JSONPath"),
        (put("credentialRef", value="a/b"), "/credentialRef", "form"),
        (put("settleMs", value=-1), "/settleMs", "whole number"),
        (put("settleMs", value=True), "/settleMs", "whole number"),
        (put("keyLifetimeHours", value=0), "/keyLifetimeHours", "whole number"),
        (put("maxConcurrency", value=1.5), "/maxConcurrency", "whole number"),
        (put("timeoutMs", value=0), "/timeoutMs", "whole number"),
        (put("retry", value={"maxAttempts": 0}), "/retry/maxAttempts", "whole number"),
        (put("retry", value={"attempts": 1}), "/retry/attempts", "not a known key"),
        (put("recovery", "temporalDecay", value=5), "/recovery/temporalDecay", "whole number"),
        (put("recovery", value={"restorationGap": 1}), "/recovery/propagationReach", "missing"),
        (put("requiresApproval", value="yes"), "/requiresApproval", "boolean"),
        (put("inputSchema", value={"type": "strange"}), "/inputSchema/type", "JSON Schema"),
        (put("inputSchema", value=True), "/inputSchema", "object"),
        (put("inputSchema", value={"$ref": "http://a.example/s"}), "/inputSchema/$ref", "outside"),
        (put("inputSchema", value={"$schema": "draft-4"}), "/inputSchema/$schema", "dialect"),
        (put("inputSchema", value={"$id": "urn:x"}), "/inputSchema/$id", "address"),
        (put("inputSchema", value={"pattern": "(a+)+$"}), "/inputSchema/pattern", "very long"),
        (put("inputSchema", value={"allOf": [{"$ref": "#"}] * 25}), "/inputSchema", "25 references"),
    ],
)
def test_cmp_104_each_fault_is_named_with_its_pointer(change: Change, pointer: str, word: str) -> None:
    problems = check_node_type(changed(WIRE_EXAMPLE, change))
    assert any(problem.pointer == pointer and word in problem.text for problem in problems), problems


def test_cmp_104_a_status_is_a_success_or_retryable_not_both() -> None:
    document = changed(WIRE_EXAMPLE, put("success", value={"status": [200, 404]}))
    assert check_node_type(document) == []
    [problem] = check_node_type(changed(document, put("retryable", value={"status": [503, 404]})))
    assert (problem.pointer, problem.value) == ("/retryable/status", 404)


@pytest.mark.parametrize("document", [None, [], "x", 1, {}, {"kind": None}])
def test_cmp_104_what_is_no_node_type_at_all_is_refused(document: Any) -> None:
    assert check_node_type(document)


@pytest.mark.parametrize("secret", ["Bearer topsecretvalue", "sk-live-topsecretvalue"])
def test_cmp_304_a_refused_secret_is_not_repeated_in_the_answer(secret: str) -> None:
    for name in ("X-Note", "Authorization"):
        problems = check_node_type(changed(WIRE_EXAMPLE, headers({name: secret})))
        assert problems
        assert not [problem for problem in problems if "topsecretvalue" in problem.text]


@pytest.mark.parametrize(
    "value",
    ["ops", "application/vnd.company.v2+json", "2026-12-01", "550e8400-e29b-41d4-a716-446655440000", "text/plain; q=1"],
)
def test_an_ordinary_header_is_no_secret(value: str) -> None:
    assert check_node_type(changed(WIRE_EXAMPLE, headers({"X-Note": value}))) == []


@pytest.mark.parametrize("name", ["request", "readback", "idempotency", "success", "receipt", "credentialRef"])
def test_cmp_615_a_manual_type_has_nothing_to_call(name: str) -> None:
    [problem] = check_node_type({**MANUAL, name: WIRE_EXAMPLE[name]})
    assert (problem.pointer, problem.message) == (f"/{name}", "is not a known key")


def test_every_declared_member_is_in_the_spec() -> None:
    spec = NodeTypeSpec.from_document(WIRE_EXAMPLE)
    assert spec.request is not None
    assert spec.readback is not None
    assert (spec.request.method, spec.request.body) == ("POST", "$input")
    assert spec.request.headers == {"X-Team": "ops"}
    assert spec.readback.applied.holds(200, {"state": "applied"})
    assert spec.readback.not_applied.holds(404, None)
    assert spec.idempotency == IdempotencySpec("Idempotency-Key", honoured=True)
    assert spec.success == {200, 201}
    assert spec.retryable == {408, 425, 429, 500, 502, 503, 504}
    assert (spec.receipt, spec.output, spec.credential_ref) == ("$.receiptId", "$", "payments-inverse")
    assert (spec.settle_ms, spec.key_lifetime_hours, spec.max_concurrency) == (2000, 24, 20)
    assert (spec.max_attempts, spec.backoff_ms, spec.timeout_ms) == (3, 500, 30000)
    assert spec.recovery == WIRE_EXAMPLE["recovery"]


def test_the_defaults_of_a_bare_node_type() -> None:
    spec = NodeTypeSpec.from_document({"nodeTypeId": "a", "kind": "http", "request": http_node_type()["request"]})
    assert (spec.title, spec.system, spec.kind) == ("a", "", NodeKind.HTTP)
    assert spec.idempotency == IdempotencySpec("Idempotency-Key", honoured=False)
    assert (spec.success, spec.retryable) == (DEFAULT_SUCCESS, DEFAULT_RETRYABLE)
    assert (spec.max_attempts, spec.backoff_ms, spec.timeout_ms) == (None, None, None)
    assert (spec.readback, spec.requires_approval) == (None, False)


def test_a_request_without_a_body_and_a_credential_header() -> None:
    request = {"method": "DELETE", "url": "https://a.example/{key}", "headers": {"X-K": {"credential": "c"}}}
    spec = NodeTypeSpec.from_document(http_node_type(request=request))
    assert spec.request is not None
    assert spec.request.body is None
    assert spec.request.headers == {"X-K": CredentialHeader("c", "")}


def test_a_manual_spec_has_no_request() -> None:
    assert NodeTypeSpec.from_document(MANUAL).request is None


@pytest.mark.parametrize(
    ("path", "value", "found"),
    [("$", 1, 1), ("$.a.b", {"a": {"b": None}}, None), ("$.a[1]", {"a": [0, "x"]}, "x"), ("$[0][0]", [[5]], 5)],
)
def test_extract(path: str, value: Any, found: Any) -> None:
    assert extract(path, value) == found


@pytest.mark.parametrize(
    ("path", "value"), [("$.a", {}), ("$.a", [1]), ("$[2]", [1]), ("$[0]", {"0": 1}), ("$.a", None)]
)
def test_extract_says_when_there_is_nothing(path: str, value: Any) -> None:
    with pytest.raises(PathNotFoundError):
        extract(path, value)


def test_cmp_609_an_input_is_checked_against_the_schema() -> None:
    schema = {"type": "object", "required": ["id"], "properties": {"id": {"type": "string"}, "n": {"maximum": 5}}}
    spec = NodeTypeSpec.from_document(http_node_type(inputSchema=schema))
    assert validate_input(spec, {"id": "x", "n": 5}) == []
    assert {problem.pointer for problem in validate_input(spec, {"id": 1, "n": 6})} == {"/id", "/n"}
    assert [problem.pointer for problem in validate_input(spec, {}, pointer="/input")] == ["/input"]


@pytest.mark.parametrize("schema", [{"$ref": "#"}, {"$ref": "#/$defs/gone"}])
def test_a_schema_that_leads_nowhere_is_a_problem_not_an_exception(schema: Any) -> None:
    spec = NodeTypeSpec.from_document(http_node_type(inputSchema=schema))
    [problem] = validate_input(spec, {})
    assert "cannot be checked" in problem.message
