"""The run events we write, each with a closed, content-free payload (CMP-501)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any

from compensation.domain.problems import Problem
from compensation.domain.shapes import (
    MAX_STORED_INTEGER,
    Check,
    boolean,
    closed,
    free_object,
    integer,
    nullable,
    number,
    one_of,
    text,
)
from compensation.domain.states import OrderingModel, Reason

COMPENSATION_EVENTS = (
    "compensation.requested",
    "compensation.started",
    "compensation.completed",
    "compensation.failed",
    "compensation.paused",
    "compensation.manual_intervention_required",
)

HEX_DIGEST = "[0-9a-f]{64}"
MAX_ID = 512

COMPENSATION_PAYLOAD_SCHEMA: Mapping[str, Any] = {
    "$schema": "https://json-schema.org/draft/2020-12/schema",
    "type": "object",
    "additionalProperties": False,
    "required": ["compensationId"],
    "properties": {
        "compensationId": {"type": "string", "minLength": 1, "maxLength": MAX_ID},
        "nodeId": {"type": "string", "minLength": 1, "maxLength": MAX_ID},
        "effectId": {"type": "string", "pattern": f"^{HEX_DIGEST}$", "maxLength": 64},
        "attempt": {"type": "integer", "minimum": 1, "maximum": MAX_STORED_INTEGER},
        "orderingModel": {"enum": [model.value for model in OrderingModel]},
        "planVersion": {"type": "integer", "minimum": 1, "maximum": MAX_STORED_INTEGER},
        "reason": {"enum": [reason.value for reason in Reason]},
    },
}
"""The published JSON Schema of all six compensation events; `check_event` is the same rule, faster."""


class EventRefusedError(ValueError):
    """A payload outside its closed schema, or a type that is not ours: a fault of the caller, never of a client."""

    def __init__(self, event_type: str, problems: Sequence[Problem]) -> None:
        super().__init__(f"{event_type}: " + "; ".join(f"{each.pointer or '/'} {each.message}" for each in problems))
        self.event_type, self.problems = event_type, list(problems)


_ID = text(longest=MAX_ID)
_WORDS = text(longest=MAX_ID, shortest=0)
_ATTEMPT = integer(1)

_COMPENSATION = closed(
    {"compensationId": _ID},
    {
        "nodeId": _ID,
        "effectId": text(longest=64, pattern=HEX_DIGEST),
        "attempt": _ATTEMPT,
        "orderingModel": one_of(OrderingModel),
        "planVersion": integer(1),
        "reason": one_of(Reason),
    },
)

_NODE = {"nodeId": _ID}
_NODE_OPTIONAL = {"logicalInvocationId": _ID, "attempt": _ATTEMPT, "clocks": nullable(free_object)}
_INTERRUPT = {"nodeId": _ID, "kind": _ID, "effectId": _ID, "planVersion": integer(1), "digest": _ID}
_VOTE = closed({"interruptId": _ID}, {**_INTERRUPT, "principal": _ID})
_CAP = {"cap": _ID, "limit": number, "observed": number}
_RUN_MOVED = closed({}, {"reason": _WORDS, "principal": _ID})

PAYLOADS: Mapping[str, Check] = MappingProxyType(
    {
        "run.started": closed(
            {}, {"workflowId": _ID, "workflowVersion": integer(1), "mode": _ID, "principal": _ID, "traceparent": _ID}
        ),
        "run.completed": _RUN_MOVED,
        "run.failed": closed({}, {"nodeId": _ID, "errorCode": _WORDS, "reason": _WORDS, **_CAP}),
        "run.cancelled": _RUN_MOVED,
        "run.paused": _RUN_MOVED,
        "run.resumed": _RUN_MOVED,
        "run.dead_lettered": closed({"runId": _ID, "reason": _ID}, {"nodeId": _ID, "attempts": integer(0)}),
        "node.started": closed(_NODE, _NODE_OPTIONAL),
        "node.completed": closed(_NODE, {**_NODE_OPTIONAL, "completionOrdinal": integer(1), "late": boolean}),
        "node.failed": closed(_NODE, {**_NODE_OPTIONAL, "terminal": boolean, "errorCode": _WORDS}),
        "node.retried": closed(_NODE, _NODE_OPTIONAL),
        "node.cancelled": closed(_NODE, _NODE_OPTIONAL),
        "cap.breached": closed({"cap": _ID}, {**_CAP, "nodeId": _ID}),
        **dict.fromkeys(COMPENSATION_EVENTS, _COMPENSATION),
        "interrupt.requested": closed({"interruptId": _ID}, _INTERRUPT),
        "interrupt.resolved": closed({"interruptId": _ID}, {**_INTERRUPT, "state": _ID}),
        "approval.granted": _VOTE,
        "approval.rejected": _VOTE,
        "authorization.decided": closed(
            {"principal": _ID, "action": _ID, "resource": _ID, "allowed": boolean, "reason": _WORDS}
        ),
    }
)
"""Every event type this host writes, with the closed shape of its payload."""


def check_event(event_type: str, payload: object) -> None:
    """Refuse an unknown event type or a payload that is not of its closed shape: `EventRefusedError` (CMP-501)."""
    check = PAYLOADS.get(event_type)
    if check is None:
        raise EventRefusedError(event_type, [Problem("", "is not an event type this host writes")])
    if problems := check(payload, ""):
        raise EventRefusedError(event_type, problems)
