"""The closed shape of a workflow document: the one place that says which keys it may have (CMP-104)."""

from __future__ import annotations

from compensation.domain.mapping import MAX_NODE_ID
from compensation.domain.policy import check_declaration
from compensation.domain.problems import Problem, join
from compensation.domain.shapes import (
    MAX_TEXT,
    Check,
    anything,
    array,
    boolean,
    closed,
    free_object,
    integer,
    number,
    one_of,
    record,
    tagged,
    text,
)

VARIABLE_TYPES = ("string", "number", "integer", "boolean", "object", "array", "any")
MISPLACED = ("compensation", "irreversibleEffect")

WORKFLOW_ID = text(
    longest=128, pattern=r"[a-z][a-z0-9_-]*", says="a lower-case letter, then lower-case letters, digits, `_` and `-`"
)
# A node id is also a segment of a URL path.
NODE_ID = text(
    longest=MAX_NODE_ID,
    pattern=r"(?!\.{1,2}$)[^\s/\\?#%{}$\x00-\x1f\x7f]+",
    says="characters other than spaces and / \\ ? # % { } $; not `.` or `..`",
)
_NAME = text(longest=200)
_PROSE = text(longest=MAX_TEXT, shortest=0)
_INPUT_NAME = text(longest=200, pattern=r"[^}]+", says="any characters but `}`")
_TAGS = array(text(longest=100), most=100)


def _node_settings(value: object, pointer: str) -> list[Problem]:
    """Settings of a node are its executor's own, but a declaration that strayed into them would be lost silently."""
    if not isinstance(value, dict):
        return free_object(value, pointer)
    stray = [name for name in MISPLACED if name in value]
    return [Problem(join(pointer, name), "belongs on the node itself, not in its settings") for name in stray]


def _metadata(value: object, pointer: str) -> list[Problem]:
    """The author's own notes, of which only `tags` has a shape."""
    if not isinstance(value, dict):
        return free_object(value, pointer)
    return _TAGS(value["tags"], join(pointer, "tags")) if "tags" in value else []


def _condition(value: object, pointer: str) -> list[Problem]:
    if isinstance(value, (str, dict)):
        return []
    return [Problem(pointer, "must be an expression or an object", value, "a string or an object")]


_TYPE = {"type": anything}
INPUT_PORT = tagged(
    "type",
    {
        "static": closed({**_TYPE, "value": anything}),
        "connection": closed({**_TYPE, "nodeId": NODE_ID, "outputKey": _NAME}, {"optional": boolean}),
        "variable": closed({**_TYPE, "variableName": _INPUT_NAME}, {"optional": boolean}),
        "expression": closed({**_TYPE, "expression": _PROSE}),
    },
)

NODE = closed(
    {
        "id": NODE_ID,
        "typeId": text(longest=256),
        "name": _NAME,
        "position": closed({"x": number, "y": number}),
        "config": free_object,
        "inputs": record(INPUT_PORT),
    },
    {
        "typeVersion": text(longest=64),
        "description": _PROSE,
        "notes": _PROSE,
        "outputs": anything,
        "disabled": boolean,
        "settings": _node_settings,
        "metadata": free_object,
        "compensation": check_declaration,
        "irreversibleEffect": boolean,
    },
)

EDGE = closed(
    {"id": text(longest=300), "sourceNodeId": NODE_ID, "targetNodeId": NODE_ID},
    {
        "sourceHandle": _NAME,
        "targetHandle": _NAME,
        "triggerRule": text(longest=64),
        "condition": _condition,
        "label": _PROSE,
        "metadata": free_object,
    },
)

RUN_TRIGGER = closed(
    {"id": text(longest=128), "type": text(longest=64)},
    {"name": _NAME, "description": _PROSE, "enabled": boolean, "config": free_object},
)

VARIABLE = closed(
    {"name": _INPUT_NAME, "type": one_of(VARIABLE_TYPES)},
    {"required": boolean, "sensitive": boolean, "description": _PROSE, "default": anything, "defaultValue": anything},
)


def settings(check_policy: Check) -> Check:
    return closed(
        {},
        {
            "compensation": check_policy,
            "timeoutMs": integer(1),
            "maxConcurrency": integer(1),
            "maxIterations": integer(1),
            "maxCost": number,
            "retry": free_object,
            "errorHandling": anything,
        },
    )


def workflow(check_policy: Check) -> Check:
    """The whole document; `check_policy` checks its `settings.compensation`."""
    return closed(
        {
            "id": WORKFLOW_ID,
            "name": _NAME,
            "version": text(longest=64),
            "nodes": array(NODE, least=1),
            "edges": array(EDGE),
            "triggers": array(RUN_TRIGGER),
            "variables": array(VARIABLE),
            "metadata": _metadata,
            "settings": settings(check_policy),
        },
        {"description": _PROSE, "configurableSchema": free_object, "outputs": anything},
    )
