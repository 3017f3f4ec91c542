"""JSON Schemas of what the API takes and answers, as OpenAPI shows them. Shapes only: the checks are the domain's."""

from collections.abc import Mapping, Sequence
from typing import Any, Final

from approvals.models import Answer, InterruptState
from compensation.api.bodies import RUN_MODES
from compensation.domain.states import (
    AttemptOutcome,
    NodeKind,
    ObligationState,
    OrderingModel,
    Outcome,
    Reason,
    RollupStatus,
    RunStatus,
    Trigger,
)
from compensation.operations.facts import MAX_FACTS
from compensation.queries.paging import DEFAULT_LIMIT, MAX_LIMIT
from compensation.queries.snapshots import WAITING_APPROVAL

Schema = dict[str, Any]

TEXT: Final[Schema] = {"type": "string"}
WHOLE: Final[Schema] = {"type": "integer"}
FLAG: Final[Schema] = {"type": "boolean"}
TIME: Final[Schema] = {"type": "string", "format": "date-time", "description": "RFC 3339, UTC, milliseconds"}
SHA256: Final[Schema] = {"type": "string", "pattern": "^[0-9a-f]{64}$"}
ANY: Final[Schema] = {}
ANY_OBJECT: Final[Schema] = {"type": "object", "additionalProperties": True}
JUSTIFICATION: Final[Schema] = {
    "type": "string",
    "maxLength": 4000,
    "description": "Why; it is kept in the record only. Acts that need one need at least 10 characters.",
}


def some(values: Any) -> Schema:
    return {"type": "string", "enum": [getattr(value, "value", value) for value in values]}


def maybe(schema: Schema) -> Schema:
    """``schema`` or null."""
    if "$ref" in schema or "enum" in schema:
        return {"oneOf": [schema, {"type": "null"}]}
    return {**schema, "type": [schema["type"], "null"]}


def items(schema: Schema, **bounds: Any) -> Schema:
    return {"type": "array", "items": schema, **bounds}


def closed(required: Mapping[str, Schema], optional: Mapping[str, Schema] | None = None) -> Schema:
    """An object of these members and no other: a request body."""
    properties = {**required, **(optional or {})}
    schema: Schema = {"type": "object", "properties": properties, "additionalProperties": False}
    return {**schema, "required": list(required)} if required else schema


def answer(members: Mapping[str, Schema], *, optional: Sequence[str] = ()) -> Schema:
    """An object that carries at least these members: an answer. New members may come."""
    required = [name for name in members if name not in optional]
    return {"type": "object", "properties": dict(members), "required": required}


def page_of(plural: str, schema: Schema) -> Schema:
    """A page of a list."""
    return answer({plural: items(schema), "nextCursor": maybe(TEXT)})


def parameter(name: str, schema: Schema, description: str = "") -> Schema:
    return {"name": name, "in": "query", "required": False, "schema": schema, "description": description}


CURSOR: Final = parameter("cursor", TEXT, "the `nextCursor` of the page before")
LIMIT: Final = parameter("limit", {"type": "integer", "minimum": 1, "maximum": MAX_LIMIT, "default": DEFAULT_LIMIT})
PAGING: Final = [CURSOR, LIMIT]
VERSION: Final = parameter("version", {"type": "integer", "minimum": 1}, "a registered version; absent = the newest")
INTERRUPT_ID: Final = parameter("interruptId", TEXT, "which question, where several are open")
RUN_FILTERS: Final = [
    *PAGING,
    parameter("status", some(RunStatus)),
    parameter("compensationStatus", some(RollupStatus)),
    parameter("workflowId", TEXT),
    parameter("tag", TEXT),
]
POLLING: Final = [
    parameter("lastSequence", {"type": "integer", "minimum": 0}, "events after this one; absent = from the first"),
    parameter("timeout", {"type": "integer", "minimum": 0, "maximum": 3600},
              "seconds to wait for something new; the host waits 10 at most"),
]  # fmt: skip
INTERRUPT_FILTERS: Final = [*PAGING, parameter("runId", TEXT), parameter("state", some(InterruptState))]
DECISION_FILTERS: Final = [
    *PAGING,
    *(parameter(name, TEXT) for name in ("runId", "effectId", "principal", "action")),
    parameter("allowed", FLAG),
    parameter("since", TIME, "included"),
    parameter("until", TIME, "not included"),
]

PROBLEM: Final = answer({"pointer": TEXT, "message": TEXT})
ERROR: Final = answer(
    {
        "error": TEXT,
        "message": TEXT,
        "details": {
            "type": "object",
            "properties": {
                "retriable": FLAG,
                "errors": items(PROBLEM),
                "correlationId": TEXT,
                "requiredCapability": TEXT,
            },
            "required": ["retriable"],
            "additionalProperties": True,
        },
    }
)

NOTHING: Final = closed({})
WORKFLOW: Final[Schema] = {
    "type": "object",
    "description": "The OpenWOP v1 workflow document; closed, every fault is answered with its JSON pointer",
    "required": ["id", "name", "version", "nodes", "edges", "triggers", "variables", "metadata", "settings"],
}
WORKFLOW_HEAD: Final = answer(
    {"workflowId": TEXT, "version": WHOLE, "latestVersion": WHOLE, "digest": SHA256, "registeredAt": TIME}
)
WORKFLOW_VERSION: Final = {
    **WORKFLOW_HEAD,
    "properties": {**WORKFLOW_HEAD["properties"], "workflow": WORKFLOW},
    "required": [*WORKFLOW_HEAD["required"], "workflow"],
}
VALID: Final = answer({"valid": FLAG})
NODE_TYPE: Final[Schema] = {
    "type": "object",
    "description": "A node type: how a system is called, how it says yes, and how it is asked what became of a call",
    "required": ["nodeTypeId", "kind"],
    "properties": {"nodeTypeId": TEXT, "kind": some(NodeKind)},
}
HELD_BY: Final = items(answer({"scope": some(("tenant", "plan", "manual", "node-type", "breaker")), "reason": TEXT}))
NODE_TYPE_HEAD: Final = answer(
    {
        "nodeTypeId": TEXT,
        "version": WHOLE,
        "latestVersion": WHOLE,
        "kind": some(NodeKind),
        "digest": SHA256,
        "registeredAt": TIME,
        "quorum": WHOLE,
        "heldAt": maybe(TIME),
        "heldBy": HELD_BY,
        "breakerUntil": maybe(TIME),
    }
)
NODE_TYPE_VERSION: Final = {
    **NODE_TYPE_HEAD,
    "properties": {**NODE_TYPE_HEAD["properties"], "nodeType": NODE_TYPE},
    "required": [*NODE_TYPE_HEAD["required"], "nodeType"],
}

RUN_STATUSES: Final = some([*RunStatus, WAITING_APPROVAL])
RUN_CREATED: Final = answer({"runId": TEXT, "status": RUN_STATUSES, "eventsUrl": TEXT, "statusUrl": TEXT, "mode": TEXT})
RUN_STATUS: Final = answer({"runId": TEXT, "status": RUN_STATUSES})
RUN: Final = answer(
    {
        "runId": TEXT,
        "workflowId": TEXT,
        "workflowVersion": WHOLE,
        "mode": some(RUN_MODES),
        "status": RUN_STATUSES,
        "compensationStatus": some(RollupStatus),
        "uncompensatedEffects": {**WHOLE, "description": "late commits that no plan covers (CMP-205)"},
        "startedAt": TIME,
        "completedAt": maybe(TIME),
        "nodeStates": ANY_OBJECT,
        "error": maybe(answer({"code": TEXT, "message": TEXT, "details": ANY_OBJECT}, optional=["details"])),
        "tags": items(TEXT),
        "metadata": ANY_OBJECT,
        "lastSequence": WHOLE,
        "traceparent": maybe(TEXT),
        "eventLogSchemaVersion": WHOLE,
        "inputs": {**ANY_OBJECT, "description": "one run only, and only for those who may see inputs"},
    },
    optional=["compensationStatus", "uncompensatedEffects", "inputs"],
)
FACT: Final[Schema] = {
    "type": "object",
    "required": ["factId", "type"],
    "properties": {
        "factId": TEXT,
        "type": some(("node.started", "node.completed", "node.failed", "run.completed", "cap.breached")),
        "nodeId": TEXT,
        "logicalInvocationId": TEXT,
        "output": ANY_OBJECT,
        "completionOrdinal": WHOLE,
        "terminal": FLAG,
        "errorCode": TEXT,
        "clocks": ANY_OBJECT,
        "cap": TEXT,
        "limit": {"type": "number"},
        "observed": {"type": "number"},
    },
}
FACTS: Final = closed({"facts": items(FACT, minItems=1, maxItems=MAX_FACTS)})
FACT_RESULTS: Final = answer(
    {
        "results": items(
            answer(
                {
                    "factId": maybe(TEXT),
                    "status": some(("accepted", "duplicate", "rejected")),
                    "sequence": WHOLE,
                    "completionOrdinal": WHOLE,
                    "late": FLAG,
                    "error": ANY_OBJECT,
                },
                optional=["sequence", "completionOrdinal", "late", "error"],
            )
        )
    }
)
EVENT: Final = answer(
    {
        "eventId": TEXT,
        "runId": TEXT,
        "type": TEXT,
        "payload": ANY_OBJECT,
        "timestamp": TIME,
        "sequence": WHOLE,
        "nodeId": TEXT,
        "causationId": TEXT,
    },
    optional=["nodeId", "causationId"],
)
EVENTS: Final = answer({"events": items(EVENT), "isComplete": FLAG})

RETRY_BOUNDS: Final = answer({"maxAttempts": WHOLE, "backoffMs": WHOLE})
ENTRY: Final = answer(
    {
        "position": WHOLE,
        "nodeId": TEXT,
        "ordinal": WHOLE,
        "compensationOrdinal": WHOLE,
        "forwardLogicalInvocationId": TEXT,
        "effectId": SHA256,
        "idempotencyKey": TEXT,
        "nodeTypeId": maybe(TEXT),
        "nodeTypeVersion": maybe(WHOLE),
        "state": some(ObligationState),
        "outcome": maybe(some(Outcome)),
        "reason": maybe(some(Reason)),
        "attempts": WHOLE,
        "input": {"description": "only for those who may see inputs"},
        "digest": SHA256,
        "entryVersion": WHOLE,
        "requiresApproval": FLAG,
        "waiveRequiresApproval": FLAG,
        "quorum": WHOLE,
        "retry": RETRY_BOUNDS,
        "timeoutMs": WHOLE,
        "predecessors": items(SHA256),
        "blockedBy": items(SHA256),
        "heldBy": HELD_BY,
        "nextAttemptAt": maybe(TIME),
        "finishedAt": maybe(TIME),
        "interruptId": maybe(TEXT),
        "receipt": {"description": "what the other system answered as its receipt"},
        "completedBy": maybe(TEXT),
    },
    optional=["input"],
)
LOOSE_EFFECT: Final = answer({"nodeId": TEXT, "ordinal": WHOLE, "logicalInvocationId": TEXT, "committedAt": TIME})
PLAN: Final = answer(
    {
        "runId": TEXT,
        "compensationId": maybe(TEXT),
        "status": some(RollupStatus),
        "planVersion": maybe(WHOLE),
        "digest": maybe(TEXT),
        "orderingModel": maybe(some(OrderingModel)),
        "profileVersion": maybe(TEXT),
        "trigger": maybe(some(Trigger)),
        "requestedAt": maybe(TIME),
        "startedAt": maybe(TIME),
        "closedAt": maybe(TIME),
        "heldAt": maybe(TIME),
        "terminated": FLAG,
        "mintFailure": maybe(ANY_OBJECT),
        "uncompensatedEffects": items(LOOSE_EFFECT),
        "entries": items(ENTRY),
        "interruptId": maybe(TEXT),
        "versions": items(
            answer({"planVersion": WHOLE, "digest": TEXT, "at": TIME, "by": maybe(TEXT), "change": maybe(ANY_OBJECT)})
        ),
    }
)
ATTEMPT: Final = answer(
    {
        "attempt": WHOLE,
        "startedAt": TIME,
        "deadlineAt": TIME,
        "finishedAt": maybe(TIME),
        "outcome": maybe(some(AttemptOutcome)),
        "httpStatus": maybe(WHOLE),
        "errorClass": maybe(TEXT),
        "receipt": ANY,
        "idempotencyKey": TEXT,
        "nodeTypeId": TEXT,
        "nodeTypeVersion": WHOLE,
        "worker": TEXT,
        "clocks": ANY_OBJECT,
        "readbacks": items(
            answer(
                {
                    "number": WHOLE,
                    "at": TIME,
                    "verdict": some(("applied", "not_applied", "unknown")),
                    "httpStatus": maybe(WHOLE),
                    "errorClass": maybe(TEXT),
                }
            )
        ),
    }
)
PREVIEW: Final = answer(
    {
        "runId": TEXT,
        "wouldStart": FLAG,
        "whyNot": maybe(TEXT),
        "orderingModel": maybe(some(OrderingModel)),
        "digest": maybe(TEXT),
        "mintFailure": maybe(ANY_OBJECT),
        "entries": items(ANY_OBJECT),
    }
)
DECISION: Final = answer(
    {
        "seq": WHOLE,
        "tenant": TEXT,
        "at": TIME,
        "principal": TEXT,
        "principalKind": some(("user", "api_key", "system")),
        "onBehalfOf": TEXT,
        "action": TEXT,
        "resource": answer({"type": TEXT, "id": TEXT}),
        "runId": TEXT,
        "effectId": TEXT,
        "planVersion": WHOLE,
        "allowed": FLAG,
        "reason": maybe(TEXT),
        "justification": TEXT,
        "evidenceDigest": TEXT,
        "requestId": TEXT,
    },
    optional=["onBehalfOf", "runId", "effectId", "planVersion", "justification", "evidenceDigest"],
)
INTERRUPT: Final = answer(
    {
        "interruptId": TEXT,
        "runId": TEXT,
        "nodeId": {**TEXT, "description": 'the node; "" for a question about the whole plan'},
        "kind": TEXT,
        "state": some(InterruptState),
        "digest": SHA256,
        "planVersion": maybe(WHOLE),
        "artifact": {"description": "what is signed, parsed; null for those who may not see inputs"},
        "artifactText": {**maybe(TEXT), "description": "the exact text whose SHA-256 is the digest"},
        "quorum": answer({"needed": WHOLE, "given": WHOLE}),
        "openedAt": TIME,
        "expiresAt": maybe(TIME),
        "resolvedAt": maybe(TIME),
        "requestedBy": maybe(TEXT),
        "justification": maybe(TEXT),
        "mayAnswer": FLAG,
        "whyNot": maybe(TEXT),
        "votes": items(answer({"principal": TEXT, "userId": WHOLE, "action": some(Answer), "at": TIME})),
    }
)
ANSWERED: Final = answer({"runId": TEXT, "nodeId": TEXT, "status": RUN_STATUSES, "interrupt": INTERRUPT})

ACT_DONE: Final = {**PLAN, "properties": {**PLAN["properties"], "decision": DECISION}}
ACT_ASKED: Final = {**PLAN, "properties": {**ACT_DONE["properties"], "interrupt": INTERRUPT}}
TENANT: Final = answer({"tenant": TEXT, "heldAt": maybe(TIME), "heldReason": maybe(TEXT)})
CREDENTIAL_REF: Final = answer({"ref": TEXT})
CREDENTIAL: Final = answer({"ref": TEXT, "setAt": TIME, "setBy": maybe(TEXT)})
MANIFEST: Final = answer(
    {
        "protocolVersion": TEXT,
        "implementation": ANY_OBJECT,
        "limits": ANY_OBJECT,
        "deadLetter": ANY_OBJECT,
        "authorization": ANY_OBJECT,
        "interrupt": ANY_OBJECT,
        "compensation": {**ANY_OBJECT, "description": "absent where the feature is switched off"},
    },
    optional=["compensation"],
)
