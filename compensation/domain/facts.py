"""What an outside engine may report, and what a run may be started with (wire.md, Facts)."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from datetime import datetime

from compensation.domain.canonical import MAX_INTEGER
from compensation.domain.problems import Problem, few, join
from compensation.domain.shapes import boolean, closed, free_object, integer, nullable, number, tagged, text
from compensation.domain.workflow import Variable, WorkflowSpec

MAX_INVOCATION_ID = 512
MAX_CODE = 128
CLOCKS = ("intentAt", "admittedAt", "effectAt", "observedAt")

_RFC_3339 = re.compile(r"\d{4}-\d{2}-\d{2}[Tt]\d{2}:\d{2}:\d{2}(?:\.\d{1,9})?(?:[Zz]|[+-]\d{2}:\d{2})", re.ASCII)
_TIME_ALLOWED = "an RFC 3339 time with its offset, such as 2026-12-01T10:00:00.000Z"


def check_time(value: object, pointer: str) -> list[Problem]:
    """An RFC 3339 time that exists."""
    if isinstance(value, str) and _RFC_3339.fullmatch(value):
        try:
            datetime.fromisoformat(_microseconds(value.upper()))
        except ValueError:
            return [Problem(pointer, "is not a time that exists", value, _TIME_ALLOWED)]
        return []
    return [Problem(pointer, "is not a time", value, _TIME_ALLOWED)]


def _microseconds(time: str) -> str:
    """Nanoseconds are RFC 3339 and are kept as reported; Python reads six digits."""
    return re.sub(r"(\.\d{6})\d+", r"\1", time)


_CODE = text(longest=MAX_CODE)
_NODE_ID = text(longest=256)
_REQUIRED = {"factId": text(longest=MAX_CODE), "type": text(longest=64)}
_OF_NODE = {**_REQUIRED, "nodeId": _NODE_ID}
_INVOCATION = {"logicalInvocationId": text(longest=MAX_INVOCATION_ID)}
_CLOCKS = {"clocks": closed({}, dict.fromkeys(CLOCKS, nullable(check_time)))}

_SHAPE = tagged(
    "type",
    {
        "node.started": closed(_OF_NODE, {**_INVOCATION, **_CLOCKS}),
        "node.completed": closed(
            {**_OF_NODE, **_INVOCATION},
            {**_CLOCKS, "output": free_object, "completionOrdinal": integer(1, MAX_INTEGER)},
        ),
        "node.failed": closed({**_OF_NODE, "terminal": boolean}, {**_INVOCATION, **_CLOCKS, "errorCode": _CODE}),
        "run.completed": closed(_REQUIRED, _CLOCKS),
        "cap.breached": closed(
            {**_REQUIRED, "cap": _CODE}, {**_CLOCKS, "limit": number, "observed": number, "nodeId": _NODE_ID}
        ),
    },
)


def check_fact(fact: object, *, node_ids: Collection[str]) -> list[Problem]:
    """Everything wrong with one reported fact; pointers are relative to it. Never raises."""
    problems = _SHAPE(fact, "")
    node_id = fact.get("nodeId") if isinstance(fact, dict) else None
    if isinstance(node_id, str) and node_id not in node_ids:
        problems.append(Problem("/nodeId", "names no node of the run's workflow", node_id, few(node_ids)))
    return problems


_PYTHON_TYPES: Mapping[str, type | tuple[type, ...]] = {
    "string": str,
    "number": (int, float),
    "integer": int,
    "boolean": bool,
    "object": dict,
    "array": list,
    "any": object,
}


def check_inputs(workflow: WorkflowSpec, inputs: object, *, pointer: str = "/inputs") -> list[Problem]:
    """Everything that keeps `inputs` from starting a run of this workflow: unknown, missing or of another type."""
    if not isinstance(inputs, dict):
        return [Problem(pointer, "must be an object", inputs, "an object of the workflow's variables")]
    problems = [
        Problem(join(pointer, name), "is not a variable of the workflow", name, few(workflow.variables))
        for name in inputs
        if name not in workflow.variables
    ]
    for variable in workflow.variables.values():
        problems += _variable_problems(variable, inputs, join(pointer, variable.name))
    return problems


def _variable_problems(variable: Variable, inputs: Mapping[str, object], pointer: str) -> list[Problem]:
    if variable.name not in inputs:
        missing = Problem(pointer, "is required and missing", allowed=variable.type)
        return [missing] if variable.required else []
    value = inputs[variable.name]
    if _is_of_type(value, variable.type) or (value is None and not variable.required):
        return []
    # A sensitive value is not repeated in the answer that refuses it (CMP-901).
    return [
        Problem(pointer, "is not of the declared type", allowed=variable.type)
        if variable.sensitive
        else Problem(pointer, "is not of the declared type", value, variable.type)
    ]


def _is_of_type(value: object, declared: str) -> bool:
    """`true` is an `int` in Python, not in JSON."""
    if isinstance(value, bool) and declared in {"number", "integer"}:
        return False
    return isinstance(value, _PYTHON_TYPES[declared])
