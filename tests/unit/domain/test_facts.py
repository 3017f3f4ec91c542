"""Reported facts and run inputs (wire.md, Facts)."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given

from compensation.domain.facts import check_fact, check_inputs, check_time
from compensation.domain.workflow import WorkflowSpec
from tests.unit.domain.support import JSON_VALUES, Document, node, workflow

NODE_IDS = {"charge-card"}
CLOCKS = {"intentAt": "2026-12-01T10:00:00.000Z", "admittedAt": "2026-12-01T10:00:00+02:00", "effectAt": None}
COMPLETED: Document = {
    "factId": "f-1",
    "type": "node.completed",
    "nodeId": "charge-card",
    "logicalInvocationId": "run-1:charge-card:1",
    "output": {"chargeId": "C"},
    "clocks": CLOCKS,
}
FAILED: Document = {"factId": "f", "type": "node.failed", "nodeId": "charge-card", "terminal": True, "errorCode": "E"}
BREACHED: Document = {"factId": "f", "type": "cap.breached", "cap": "time", "limit": 60, "observed": 61.5}


@pytest.mark.parametrize(
    "fact",
    [
        COMPLETED,
        {**COMPLETED, "completionOrdinal": 7},
        {"factId": "f", "type": "node.started", "nodeId": "charge-card"},
        FAILED,
        {"factId": "f", "type": "run.completed"},
        BREACHED,
    ],
)
def test_a_well_formed_fact_is_accepted(fact: Document) -> None:
    assert check_fact(fact, node_ids=NODE_IDS) == []


@pytest.mark.parametrize(
    ("fact", "pointer", "word"),
    [
        ("x", "", "object"),
        (None, "", "object"),
        ({}, "/type", "missing"),
        ({**COMPLETED, "type": "node.exploded"}, "/type", "not an allowed value"),
        ({**COMPLETED, "type": 7}, "/type", "not an allowed value"),
        ({**COMPLETED, "factId": ""}, "/factId", "length"),
        ({**COMPLETED, "factId": 1}, "/factId", "string"),
        ({**COMPLETED, "factId": "x" * 129}, "/factId", "length"),
        ({**COMPLETED, "nodeId": "ghost"}, "/nodeId", "names no node"),
        ({**COMPLETED, "nodeId": None}, "/nodeId", "string"),
        ({**COMPLETED, "logicalInvocationId": "x" * 513}, "/logicalInvocationId", "length"),
        (
            {name: COMPLETED[name] for name in COMPLETED if name != "logicalInvocationId"},
            "/logicalInvocationId",
            "miss",
        ),
        ({**COMPLETED, "output": [1]}, "/output", "object"),
        ({**COMPLETED, "completionOrdinal": 0}, "/completionOrdinal", "whole number"),
        ({**COMPLETED, "completionOrdinal": "1"}, "/completionOrdinal", "whole number"),
        ({**COMPLETED, "clocks": {"effectAt": "yesterday"}}, "/clocks/effectAt", "not a time"),
        ({**COMPLETED, "clocks": {"effectAt": "2026-13-01T00:00:00Z"}}, "/clocks/effectAt", "exists"),
        ({**COMPLETED, "clocks": {"at": None}}, "/clocks/at", "not a known key"),
        ({**COMPLETED, "late": True}, "/late", "not a known key"),
        ({**FAILED, "terminal": "yes"}, "/terminal", "boolean"),
        ({name: FAILED[name] for name in FAILED if name != "terminal"}, "/terminal", "missing"),
        ({**FAILED, "errorCode": "x" * 129}, "/errorCode", "length"),
        ({**BREACHED, "limit": "60"}, "/limit", "number"),
        ({**BREACHED, "cap": ""}, "/cap", "length"),
        ({"factId": "f", "type": "run.completed", "output": {}}, "/output", "not a known key"),
    ],
)
def test_each_fault_of_a_fact_is_named_with_its_pointer(fact: Any, pointer: str, word: str) -> None:
    found = check_fact(fact, node_ids=NODE_IDS)
    assert any(problem.pointer == pointer and word in problem.text for problem in found), found


@given(JSON_VALUES)
def test_any_value_is_checked_without_an_exception(value: Any) -> None:
    assert check_fact(value, node_ids=NODE_IDS)
    for name in COMPLETED:
        check_fact({**COMPLETED, name: value}, node_ids=NODE_IDS)


@pytest.mark.parametrize(
    "time", ["2026-12-01T10:00:00Z", "2026-12-01t10:00:00.123456789z", "2024-02-29T23:59:59.9-05:30"]
)
def test_an_rfc_3339_time_is_accepted(time: str) -> None:
    assert check_time(time, "") == []


@pytest.mark.parametrize(
    "time", ["2026-12-01", "2026-12-01T10:00:00", "2025-02-29T00:00:00Z", "2026-12-01T24:01:00Z", "20261201T100000Z", 5]
)
def test_anything_else_is_not_a_time(time: Any) -> None:
    assert len(check_time(time, "")) == 1


WORKFLOW = WorkflowSpec.from_document(
    workflow(
        [node("a")],
        variables=[
            {"name": "id", "type": "string", "required": True},
            {"name": "n", "type": "integer"},
            {"name": "amount", "type": "number"},
            {"name": "on", "type": "boolean"},
            {"name": "o", "type": "object"},
            {"name": "l", "type": "array"},
            {"name": "x", "type": "any"},
            {"name": "pin", "type": "string", "sensitive": True},
        ],
    )
)


@pytest.mark.parametrize(
    "inputs",
    [
        {"id": ""},
        {"id": "i", "n": 1, "amount": 1.5, "on": False, "o": {}, "l": [], "x": None, "pin": "p"},
        {"id": "i", "n": None, "amount": 1},
    ],
)
def test_inputs_that_fit_the_variables(inputs: Any) -> None:
    assert check_inputs(WORKFLOW, inputs) == []


@pytest.mark.parametrize(
    ("inputs", "pointer", "word"),
    [
        ([], "/inputs", "object"),
        ({}, "/inputs/id", "missing"),
        ({"id": None}, "/inputs/id", "type"),
        ({"id": "i", "extra": 1}, "/inputs/extra", "not a variable"),
        ({"id": "i", "n": True}, "/inputs/n", "type"),
        ({"id": "i", "n": 1.5}, "/inputs/n", "type"),
        ({"id": "i", "amount": "1"}, "/inputs/amount", "type"),
        ({"id": "i", "amount": False}, "/inputs/amount", "type"),
        ({"id": "i", "on": 1}, "/inputs/on", "type"),
        ({"id": "i", "o": []}, "/inputs/o", "type"),
        ({"id": "i", "l": {}}, "/inputs/l", "type"),
    ],
)
def test_each_fault_of_the_inputs_is_named(inputs: Any, pointer: str, word: str) -> None:
    [problem] = check_inputs(WORKFLOW, inputs)
    assert problem.pointer == pointer
    assert word in problem.text


def test_cmp_901_a_sensitive_value_is_not_repeated() -> None:
    [problem] = check_inputs(WORKFLOW, {"id": "i", "pin": 98765})
    assert "98765" not in problem.text
