"""Closed, content-free event payloads (CMP-501)."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from jsonschema import Draft202012Validator

from compensation.domain.events import (
    COMPENSATION_EVENTS,
    COMPENSATION_PAYLOAD_SCHEMA,
    PAYLOADS,
    EventRefusedError,
    check_event,
)
from compensation.domain.states import OrderingModel, Reason
from tests.unit.domain.support import JSON_VALUES

FULL: dict[str, Any] = {
    "compensationId": "c-1",
    "nodeId": "charge-card",
    "effectId": "a" * 64,
    "attempt": 1,
    "orderingModel": "reverse-completion",
    "planVersion": 1,
    "reason": "retries-exhausted",
}
RUN = ["started", "completed", "failed", "cancelled", "paused", "resumed", "dead_lettered"]
NODE = ["started", "completed", "failed", "retried", "cancelled"]
UNWIND = ["requested", "started", "completed", "failed", "paused", "manual_intervention_required"]
WIRE_TYPES = {
    *(f"run.{name}" for name in RUN),
    *(f"node.{name}" for name in NODE),
    *(f"compensation.{name}" for name in UNWIND),
    "cap.breached",
    "interrupt.requested",
    "interrupt.resolved",
    "approval.granted",
    "approval.rejected",
    "authorization.decided",
}


def accepted(event_type: str, payload: Any) -> bool:
    try:
        check_event(event_type, payload)
    except EventRefusedError:
        return False
    return True


def test_exactly_the_event_types_of_the_wire_are_written() -> None:
    assert set(PAYLOADS) == WIRE_TYPES
    assert set(COMPENSATION_EVENTS) == {name for name in WIRE_TYPES if name.startswith("compensation.")}


def test_cmp_501_the_published_schema_is_closed_and_names_seven_members() -> None:
    Draft202012Validator.check_schema(COMPENSATION_PAYLOAD_SCHEMA)
    assert COMPENSATION_PAYLOAD_SCHEMA["additionalProperties"] is False
    assert set(COMPENSATION_PAYLOAD_SCHEMA["properties"]) == set(FULL)


MEMBERS: dict[str, st.SearchStrategy[Any]] = {
    "compensationId": st.text(max_size=3) | JSON_VALUES,
    "nodeId": st.text(max_size=3) | JSON_VALUES,
    "effectId": st.just("0" * 64) | st.text("0f", max_size=65) | JSON_VALUES,
    "attempt": st.integers(-1, 3) | JSON_VALUES,
    "orderingModel": st.sampled_from(OrderingModel).map(str) | JSON_VALUES,
    "planVersion": st.integers(-1, 3) | JSON_VALUES,
    "reason": st.sampled_from(Reason).map(str) | JSON_VALUES,
    "error": JSON_VALUES,
}


@given(st.sampled_from(COMPENSATION_EVENTS), st.fixed_dictionaries({}, optional=MEMBERS) | JSON_VALUES)
def test_cmp_501_the_fast_check_is_the_published_schema(event_type: str, payload: Any) -> None:
    # JSON Schema takes 1.0 for an integer; the log is written from Python integers only.
    assume(not any(isinstance(value, float) for value in (payload.values() if isinstance(payload, dict) else ())))
    validator = Draft202012Validator(dict(COMPENSATION_PAYLOAD_SCHEMA))
    assert accepted(event_type, payload) == validator.is_valid(payload)


@pytest.mark.parametrize("event_type", COMPENSATION_EVENTS)
def test_cmp_501_a_full_payload_and_the_least_one(event_type: str) -> None:
    assert accepted(event_type, FULL)
    assert accepted(event_type, {"compensationId": "c"})


@pytest.mark.parametrize("name", ["message", "justification", "input", "credential", "providerResponse", "body"])
@pytest.mark.parametrize("event_type", COMPENSATION_EVENTS)
def test_cmp_501_no_content_in_an_event(event_type: str, name: str) -> None:
    with pytest.raises(EventRefusedError, match=name):
        check_event(event_type, {**FULL, name: "x"})


@pytest.mark.parametrize("event_type", sorted(WIRE_TYPES))
def test_every_payload_is_closed(event_type: str) -> None:
    with pytest.raises(EventRefusedError, match="unheardOf"):
        check_event(event_type, {"unheardOf": 1})


def test_an_event_of_another_type_is_not_written() -> None:
    with pytest.raises(EventRefusedError, match="not an event type"):
        check_event("compensation.retried", {})


def test_cmp_604_the_decision_event_has_five_members() -> None:
    decided = {"principal": "user:7", "action": "compensation:retry", "resource": "r", "allowed": True, "reason": ""}
    assert accepted("authorization.decided", decided)
    for name in decided:
        assert not accepted("authorization.decided", {key: decided[key] for key in decided if key != name})


@pytest.mark.parametrize(
    ("event_type", "payload"),
    [
        ("run.dead_lettered", {"runId": "r", "reason": "retries-exhausted", "attempts": 3, "nodeId": "n"}),
        ("run.failed", {"nodeId": "n", "errorCode": ""}),
        ("run.failed", {"errorCode": "cap_breached", "cap": "time", "limit": 60, "observed": 61}),
        ("node.completed", {"nodeId": "n", "logicalInvocationId": "i", "completionOrdinal": 1, "late": True}),
        ("node.failed", {"nodeId": "n", "terminal": True, "errorCode": "E"}),
        ("cap.breached", {"cap": "time", "limit": 60, "observed": 61}),
        ("interrupt.requested", {"interruptId": "i", "kind": "compensation.inverse", "digest": "d"}),
        ("interrupt.resolved", {"interruptId": "i", "kind": "compensation.inverse", "state": "approved"}),
        ("approval.granted", {"interruptId": "i", "principal": "user:7", "digest": "d", "planVersion": 1}),
    ],
)
def test_what_the_engine_says(event_type: str, payload: Any) -> None:
    assert accepted(event_type, payload)
