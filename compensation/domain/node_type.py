"""A registered node type: what calling it means, with every default made explicit."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from compensation.domain.input_schema import input_problems
from compensation.domain.jsonpath import extract
from compensation.domain.node_type_shape import INPUT_BODY, check_shape, contradictions
from compensation.domain.problems import Problem, capped
from compensation.domain.readback import Match
from compensation.domain.states import NodeKind

__all__ = [
    "CredentialHeader",
    "IdempotencySpec",
    "NodeTypeSpec",
    "ReadbackSpec",
    "RequestSpec",
    "check_node_type",
    "extract",
    "validate_input",
]

DEFAULT_IDEMPOTENCY_HEADER = "Idempotency-Key"
DEFAULT_SUCCESS = frozenset({200, 201, 204})
DEFAULT_RETRYABLE = frozenset({408, 425, 429, 500, 502, 503, 504})
DEFAULT_SETTLE_MS = 2000
DEFAULT_KEY_LIFETIME_HOURS = 24
DEFAULT_MAX_CONCURRENCY = 20
METHODS_WITH_A_BODY = frozenset({"POST", "PUT", "PATCH"})


@dataclass(frozen=True, slots=True)
class CredentialHeader:
    """A header value put together at call time from a stored credential."""

    credential: str
    prefix: str = ""


HeaderValue = str | CredentialHeader


@dataclass(frozen=True, slots=True)
class RequestSpec:
    """`body` is `"$input"` (the frozen input is the body) or None (no body)."""

    method: str
    url: str
    headers: Mapping[str, HeaderValue]
    body: str | None

    @classmethod
    def from_document(cls, document: Mapping[str, Any]) -> RequestSpec:
        method = document["method"]
        default_body = INPUT_BODY if method in METHODS_WITH_A_BODY else None
        return cls(method, document["url"], _headers(document), document.get("body", default_body))


@dataclass(frozen=True, slots=True)
class ReadbackSpec:
    method: str
    url: str
    headers: Mapping[str, HeaderValue]
    applied: Match
    not_applied: Match

    @classmethod
    def from_document(cls, document: Mapping[str, Any]) -> ReadbackSpec:
        applied, not_applied = _match(document["applied"]), _match(document["notApplied"])
        return cls(document["method"], document["url"], _headers(document), applied, not_applied)


@dataclass(frozen=True, slots=True)
class IdempotencySpec:
    """The header that carries the key, sent always, and whether the downstream acts on it."""

    header: str = DEFAULT_IDEMPOTENCY_HEADER
    honoured: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeTypeSpec:
    """The typed view of a registered document. `max_attempts`, `backoff_ms` and `timeout_ms` are None where the
    node type leaves them to others (CMP-302); `request` is None for `kind: manual`."""

    node_type_id: str
    kind: NodeKind
    title: str
    system: str
    request: RequestSpec | None = None
    input_schema: Mapping[str, object] = field(default_factory=dict)
    idempotency: IdempotencySpec = IdempotencySpec()
    readback: ReadbackSpec | None = None
    success: frozenset[int] = DEFAULT_SUCCESS
    retryable: frozenset[int] = DEFAULT_RETRYABLE
    receipt: str | None = None
    output: str = "$"
    credential_ref: str | None = None
    settle_ms: int = DEFAULT_SETTLE_MS
    key_lifetime_hours: int = DEFAULT_KEY_LIFETIME_HOURS
    amount: str | None = None
    currency: str | None = None
    recovery: Mapping[str, int] | None = None
    requires_approval: bool = False
    max_attempts: int | None = None
    backoff_ms: int | None = None
    timeout_ms: int | None = None
    max_concurrency: int = DEFAULT_MAX_CONCURRENCY

    @classmethod
    def from_document(cls, document: Mapping[str, Any]) -> NodeTypeSpec:
        """The spec of a document that `check_node_type` found no fault with."""
        given = {name: document[wire] for wire, name in _PLAIN_MEMBERS.items() if wire in document}
        given |= {name: read(document[wire]) for wire, (name, read) in _READ_MEMBERS.items() if wire in document}
        retry = document.get("retry", {})
        return cls(
            kind=NodeKind(document["kind"]),
            title=document.get("title", document["nodeTypeId"]),
            system=document.get("system", ""),
            max_attempts=retry.get("maxAttempts"),
            backoff_ms=retry.get("backoffMs"),
            **given,
        )


_PLAIN_MEMBERS = {
    "nodeTypeId": "node_type_id",
    "inputSchema": "input_schema",
    "receipt": "receipt",
    "output": "output",
    "credentialRef": "credential_ref",
    "settleMs": "settle_ms",
    "keyLifetimeHours": "key_lifetime_hours",
    "amount": "amount",
    "currency": "currency",
    "recovery": "recovery",
    "requiresApproval": "requires_approval",
    "timeoutMs": "timeout_ms",
    "maxConcurrency": "max_concurrency",
}


def _statuses(document: Mapping[str, Any]) -> frozenset[int]:
    return frozenset(document["status"])


def _idempotency(document: Mapping[str, Any]) -> IdempotencySpec:
    return IdempotencySpec(document.get("header", DEFAULT_IDEMPOTENCY_HEADER), document.get("honoured", False))


_READ_MEMBERS: Mapping[str, tuple[str, Any]] = {
    "request": ("request", RequestSpec.from_document),
    "readback": ("readback", ReadbackSpec.from_document),
    "idempotency": ("idempotency", _idempotency),
    "success": ("success", _statuses),
    "retryable": ("retryable", _statuses),
}


def check_node_type(document: object) -> list[Problem]:
    """Everything that keeps a document from being registered as a node type, at once; never raises."""
    problems = check_shape(document, "")
    if isinstance(document, dict):
        problems += contradictions(document)
    return capped(problems)


def validate_input(spec: NodeTypeSpec, value: object, *, pointer: str = "") -> list[Problem]:
    """Where `value` does not satisfy the node type's input schema (CMP-609, substitute)."""
    return input_problems(spec.input_schema, value, pointer)


def _match(document: Mapping[str, Any]) -> Match:
    return Match(_statuses(document), document.get("path"), document.get("equals"))


def _headers(document: Mapping[str, Any]) -> dict[str, HeaderValue]:
    return {name: _header(value) for name, value in document.get("headers", {}).items()}


def _header(value: str | Mapping[str, str]) -> HeaderValue:
    return value if isinstance(value, str) else CredentialHeader(value["credential"], value.get("prefix", ""))
