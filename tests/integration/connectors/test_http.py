"""One attempt of a node type against a real server, as the retry rules will read it (CMP-304, CMP-402, CMP-405)."""

from __future__ import annotations

import json
import logging
from datetime import UTC, datetime
from typing import Any

import pytest

from compensation.connectors.credentials import REDACTED, Secret
from compensation.connectors.egress import EgressPolicy, parse_allow
from compensation.connectors.http import CallResult, call
from compensation.connectors.readback import ReadbackVerdict, read_back
from compensation.connectors.session import Sessions
from compensation.domain.node_type import NodeTypeSpec, check_node_type
from compensation.domain.readback import ReadVerdict
from compensation.domain.retry import Verdict, classify
from tests.integration.connectors.downstream import Downstream, Exchanged, Respond, applied, in_loop

LOOPBACK = parse_allow(["127.0.0.1"])
KEY = "ab" * 32
INTENT = datetime(2026, 3, 1, 12, 0, 0, tzinfo=UTC)
PASSWORD = "hunter2-hunter2-hunter2"
CREDENTIALS = {"payments-inverse": Secret(PASSWORD)}


def node_type(origin: str, **members: Any) -> NodeTypeSpec:
    document = {
        "nodeTypeId": "sandbox.payments.refund",
        "kind": "http",
        "request": {"method": "POST", "url": f"{origin}/payments/refund"},
        "readback": {
            "method": "GET",
            "url": origin + "/effects/{key}",
            "applied": {"status": [200], "path": "$.state", "equals": "applied"},
            "notApplied": {"status": [404]},
        },
        "receipt": "$.receiptId",
        "credentialRef": "payments-inverse",
        **members,
    }
    assert check_node_type(document) == []
    return NodeTypeSpec.from_document(document)


async def attempt(
    respond: Respond = applied,
    *,
    policy: EgressPolicy = LOOPBACK,
    credentials: dict[str, Secret] = CREDENTIALS,
    key: str = KEY,
    **members: Any,
) -> tuple[CallResult, Downstream]:
    async with Downstream(respond) as server, Sessions() as sessions:
        result = await call(
            sessions.for_policy(policy),
            node_type(server.url, **members),
            key=key,
            frozen_input=b'{"chargeId":"c-1"}',
            credentials=credentials,
            timeout_ms=30_000,
            intent_at=INTENT,
        )
    return result, server


def verdict(result: CallResult, spec: NodeTypeSpec) -> Verdict:
    return classify(result.answer(), success=spec.success, retryable=spec.retryable)


@in_loop
async def test_success_carries_receipt_output_and_clocks() -> None:
    result, server = await attempt()
    assert (result.status, result.error_class, result.sent, result.timed_out) == (200, None, True, False)
    assert (result.receipt, result.output) == ("r-1", {"receiptId": "r-1", "state": "applied"})
    (request,) = server.received
    assert (request.method, request.target, request.body) == ("POST", "/payments/refund", b'{"chargeId":"c-1"}')
    assert request.headers["idempotency-key"] == KEY
    assert request.headers["authorization"] == f"Bearer {PASSWORD}"


@in_loop
async def test_clocks_are_the_callers_wall_clock_plus_monotonic_durations() -> None:
    result, _ = await attempt()
    clocks = result.clocks()
    assert clocks["intentAt"] == "2026-03-01T12:00:00.000Z"
    assert clocks["effectAt"] is None
    assert clocks["admittedAt"] is not None
    assert clocks["observedAt"] is not None
    assert clocks["intentAt"] <= clocks["admittedAt"] <= clocks["observedAt"] < "2026-03-01T12:00:30.000Z"


def answering(body: bytes = b"{}", *, status: int = 200, headers: dict[str, str] | None = None) -> Respond:
    async def respond(exchanged: Exchanged) -> None:
        await exchanged.answer(body, status=status, headers=headers)

    return respond


@pytest.mark.parametrize(
    ("status", "body", "error_class", "expected"),
    [
        (201, b"{}", None, Verdict.SUCCEEDED),
        (200, b"", None, Verdict.SUCCEEDED),
        (202, b"{}", "http-202", Verdict.UNKNOWN),
        (302, b"{}", "redirect", Verdict.UNKNOWN),
        (422, b"not json", "http-422", Verdict.REJECTED),
        (409, b'{"error":"idempotency_in_flight"}', "http-409", Verdict.UNKNOWN),
        (409, b'{"error":"idempotency_key_mismatch"}', "http-409", Verdict.REJECTED),
        (401, b"{}", "http-401", Verdict.CREDENTIALS_REFUSED),
        (429, b"{}", "http-429", Verdict.UNKNOWN),
        (503, b"<html>", "http-503", Verdict.UNKNOWN),
    ],
)
@in_loop
async def test_status_decides(status: int, body: bytes, error_class: str | None, expected: Verdict) -> None:
    """CMP-402, CMP-405."""
    result, server = await attempt(answering(body, status=status))
    assert (result.status, result.error_class, result.sent) == (status, error_class, True)
    assert verdict(result, node_type(server.url)) == expected


@pytest.mark.parametrize(
    "body",
    [
        b"OK", b"<html></html>", b"{", b"\xff\xfe", b'{"a":1,"a":2}', b"NaN", b"1e999", b'"\\ud800"', b'"\\u0000"',
        b"9007199254740993", b"[" * 10_000, b"[" * 65 + b"]" * 65, b"1" * 5000,
    ],
)  # fmt: skip
@in_loop
async def test_success_that_cannot_be_read_leaves_the_effect_unknown(body: bytes) -> None:
    """CMP-405: an unreadable answer is no declared success."""
    result, server = await attempt(answering(body))
    assert (result.error_class, result.body, result.receipt, result.output) == ("unreadable", None, None, None)
    assert verdict(result, node_type(server.url)) == Verdict.UNKNOWN


@pytest.mark.parametrize(
    ("receipt", "expected"), [('"r"', "r"), ("7", "7"), ("null", None), ("{}", None), ("true", None)]
)
@in_loop
async def test_receipt_is_text(receipt: str, expected: str | None) -> None:
    result, _ = await attempt(answering(f'{{"receiptId":{receipt}}}'.encode()))
    assert (result.error_class, result.receipt) == (None, expected)


@in_loop
async def test_long_receipt_is_cut_and_absent_one_is_none() -> None:
    long, _ = await attempt(answering(json.dumps({"receiptId": "x" * 5000}).encode()))
    absent, _ = await attempt(answering(b'{"other":1}'), output="$.deeper")
    assert long.receipt == "x" * 512
    assert (absent.receipt, absent.output, absent.error_class) == (None, None, None)


@pytest.mark.parametrize(
    ("header", "milliseconds"),
    [
        ("2", 2000), ("0", 0), (" 7 ", 7000), ("-1", None), ("1.5", None), ("soon", None), ("9" * 40, None),
        ("Sun, 01 Mar 2026 11:00:00 GMT", 0), ("Sun, 99 Mar 2026 11:00:00 GMT", None),
    ],
)  # fmt: skip
@in_loop
async def test_retry_after_is_read_in_both_forms(header: str, milliseconds: int | None) -> None:
    """CMP-402."""
    result, _ = await attempt(answering(status=503, headers={"Retry-After": header}))
    assert result.retry_after_ms == milliseconds


@in_loop
async def test_retry_after_as_a_date_counts_from_the_answer() -> None:
    result, _ = await attempt(answering(status=429, headers={"Retry-After": "Sun, 01 Mar 2026 12:01:00 GMT"}))
    assert result.retry_after_ms == round(60_000 - result.observed_ms)


@in_loop
async def test_refused_egress_sends_nothing() -> None:
    result, server = await attempt(policy=EgressPolicy())
    assert (result.error_class, result.sent, server.connections) == ("egress-refused", False, 0)
    assert verdict(result, node_type(server.url)) == Verdict.NOT_SENT


@pytest.mark.parametrize(
    ("credentials", "error_class"),
    [({}, "credential-missing"), ({"payments": Secret("a\r\nX-Evil: 1")}, "request-invalid")],
)
@in_loop
async def test_request_that_cannot_be_made_sends_nothing(credentials: dict[str, Secret], error_class: str) -> None:
    async with Downstream() as server, Sessions() as sessions:
        headers = {"X-Api-Key": {"credential": "payments"}}
        request = {"method": "POST", "url": server.url, "headers": headers}
        result = await call(
            sessions.for_policy(LOOPBACK),
            node_type(server.url, request=request),
            key=KEY,
            frozen_input=b"{}",
            credentials=credentials,
            timeout_ms=30_000,
            intent_at=INTENT,
        )
    assert (result.error_class, result.sent, result.clocks()["admittedAt"]) == (error_class, False, None)
    assert server.connections == 0


async def echo_the_credential(exchanged: Exchanged) -> None:
    shown = exchanged.request.headers["authorization"]
    await exchanged.answer_json(
        {"receiptId": f"r-{shown}", shown: [shown], "escaped": PASSWORD}, headers={"X-Echo": shown}
    )


async def fail_with_the_credential(exchanged: Exchanged) -> None:
    await exchanged.answer(exchanged.request.headers["authorization"].encode(), status=500)


async def hang_up(exchanged: Exchanged) -> None:
    exchanged.reset()


@pytest.mark.parametrize("respond", [echo_the_credential, fail_with_the_credential, hang_up])
@pytest.mark.parametrize("policy", [LOOPBACK, EgressPolicy()])
@in_loop
async def test_credential_shows_nowhere(
    respond: Respond, policy: EgressPolicy, caplog: pytest.LogCaptureFixture
) -> None:
    """CMP-304: not in a result, its repr or a log line, even when the other system sends it back."""
    caplog.set_level(logging.DEBUG)
    result, _ = await attempt(respond, policy=policy)
    shown = [repr(result), repr(result.body), repr(result.output), str(result.receipt), repr(result.answer())]
    assert not any(PASSWORD in text for text in [*shown, caplog.text])


@in_loop
async def test_echoed_credential_is_scrubbed_from_receipt_and_output() -> None:
    result, _ = await attempt(echo_the_credential)
    assert result.receipt == f"r-Bearer {REDACTED}"
    assert result.output == {
        "receiptId": f"r-Bearer {REDACTED}",
        f"Bearer {REDACTED}": [f"Bearer {REDACTED}"],
        "escaped": REDACTED,
    }


async def reading(respond: Respond, *, policy: EgressPolicy = LOOPBACK, timeout_ms: int = 30_000) -> ReadbackVerdict:
    async with Downstream(respond) as server, Sessions() as sessions:
        read = await read_back(
            sessions.for_policy(policy),
            node_type(server.url),
            key=KEY,
            frozen_input=b"{}",
            credentials=CREDENTIALS,
            timeout_ms=timeout_ms,
        )
    assert all((request.method, request.target) == ("GET", f"/effects/{KEY}") for request in server.received)
    return read


async def hang(exchanged: Exchanged) -> None:
    await exchanged.hang()


@pytest.mark.parametrize(
    ("respond", "expected"),
    [
        (applied, ReadbackVerdict(ReadVerdict.APPLIED, 200, "r-1", None)),
        (answering(status=404), ReadbackVerdict(ReadVerdict.NOT_APPLIED, 404, None, None)),
        (answering(b"gone", status=404), ReadbackVerdict(ReadVerdict.NOT_APPLIED, 404, None, None)),
        (answering(b'{"state":"pending"}'), ReadbackVerdict(ReadVerdict.UNKNOWN, 200, None, "http-200")),
        (answering(b"applied"), ReadbackVerdict(ReadVerdict.UNKNOWN, 200, None, "unreadable")),
        (answering(status=401), ReadbackVerdict(ReadVerdict.UNKNOWN, 401, None, "http-401")),
        (answering(status=503), ReadbackVerdict(ReadVerdict.UNKNOWN, 503, None, "http-503")),
        (hang_up, ReadbackVerdict(ReadVerdict.UNKNOWN, None, None, "connection-lost")),
    ],
)
@in_loop
async def test_readback_says_only_what_was_declared(respond: Respond, expected: ReadbackVerdict) -> None:
    """CMP-405."""
    assert await reading(respond) == expected


@in_loop
async def test_readback_that_is_late_refused_or_not_makeable_is_unknown() -> None:
    late = await reading(hang, timeout_ms=100)
    refused = await reading(applied, policy=EgressPolicy())
    assert (late.verdict, late.error_class) == (ReadVerdict.UNKNOWN, "timeout")
    assert (refused.verdict, refused.error_class) == (ReadVerdict.UNKNOWN, "egress-refused")
