"""The closed shape of a node type document (wire.md, Node type)."""

from __future__ import annotations

from collections.abc import Iterator

from compensation.domain.input_schema import check_schema
from compensation.domain.jsonpath import check_path
from compensation.domain.problems import Problem, join
from compensation.domain.retry import CREDENTIAL_STATUSES, NOT_DEFINITE_STATUSES
from compensation.domain.secrets import has_telling_name, looks_like_secret
from compensation.domain.shapes import (
    Check,
    anything,
    array,
    boolean,
    closed,
    integer,
    nullable,
    one_of,
    record,
    tagged,
    text,
)
from compensation.domain.states import NodeKind
from compensation.domain.urls import check_url

NODE_TYPE_ID = text(
    longest=128, pattern=r"[A-Za-z][A-Za-z0-9_.-]*", says="a letter, then letters, digits, `_`, `.` and `-`"
)
CREDENTIAL_REF = text(
    longest=128, pattern=r"[A-Za-z0-9][A-Za-z0-9_.-]*", says="letters, digits, `_`, `.` and `-`; a credential's name"
)
RETRY = closed({}, {"maxAttempts": integer(1), "backoffMs": integer(0)})
TIMEOUT_MS = integer(1)
INPUT_BODY = "$input"

# How a message is framed is the connection's business; a node type that could say it could smuggle a second one.
FORBIDDEN_HEADERS = frozenset(
    {
        "connection",
        "content-length",
        "cookie",
        "expect",
        "host",
        "keep-alive",
        "te",
        "trailer",
        "transfer-encoding",
        "upgrade",
    }
)
RECOVERY_SCORES = ("restorationGap", "propagationReach", "temporalDecay", "externalDependence")

_HEADER_NAME = text(longest=128, pattern=r"[!#$%&'*+.^_`|~0-9A-Za-z-]+", says="an HTTP header name")
_HEADER_TEXT = text(longest=1024, pattern=r"[\x21-\x7e](?:[\x20-\x7e]*[\x21-\x7e])?", says="printable ASCII")
_PREFIX = text(longest=32, shortest=0, pattern=r"[\x20-\x7e]*", says="printable ASCII")
_CREDENTIAL_HEADER = closed({"credential": CREDENTIAL_REF}, {"prefix": _PREFIX})
_HEADER_ALLOWED = 'a literal that is no secret, or {"credential": "<ref>", "prefix": "Bearer "}'


def _header_name(value: object, pointer: str) -> list[Problem]:
    lower = str(value).lower()
    if lower in FORBIDDEN_HEADERS or lower.startswith("proxy-"):
        return [Problem(pointer, "is not a header that a node type may set", value)]
    return _HEADER_NAME(value, pointer)


def _header_value(value: object, pointer: str) -> list[Problem]:
    if isinstance(value, dict):
        return _CREDENTIAL_HEADER(value, pointer)
    problems = _HEADER_TEXT(value, pointer)
    looks_secret = isinstance(value, str) and looks_like_secret(value)
    # A secret is not repeated in the answer that refuses it.
    return [Problem(pointer, "looks like a secret", allowed=_HEADER_ALLOWED)] if looks_secret else problems


_EACH_HEADER = record(_header_value, name=_header_name)


def _headers(value: object, pointer: str) -> list[Problem]:
    problems = _EACH_HEADER(value, pointer)
    seen: set[str] = set()
    for name, literal in value.items() if isinstance(value, dict) else ():
        if name.lower() in seen:
            problems.append(Problem(join(pointer, name), "is a duplicate: header names have no case"))
        seen.add(name.lower())
        if isinstance(literal, str) and has_telling_name(name) and not looks_like_secret(literal):
            problems.append(
                Problem(join(pointer, name), "is a header for a secret with a literal value", allowed=_HEADER_ALLOWED)
            )
    return problems


def _success_status(value: object, pointer: str) -> list[Problem]:
    problems = integer(200, 499)(value, pointer)
    if not problems and value in CREDENTIAL_STATUSES | NOT_DEFINITE_STATUSES:
        return [
            Problem(pointer, "is a status that never means success", value, "200 to 499 but 401, 403, 408, 425, 429")
        ]
    return problems


def _statuses(item: Check) -> Check:
    return closed({"status": array(item, least=1, most=100)})


_MATCH_SHAPE = closed({"status": array(integer(200, 599), least=1, most=100)}, {"path": check_path, "equals": anything})


def _match(value: object, pointer: str) -> list[Problem]:
    problems = _MATCH_SHAPE(value, pointer)
    if isinstance(value, dict) and ("path" in value) != ("equals" in value):
        problems.append(Problem(pointer, "has one of `path` and `equals`", allowed="both or neither"))
    return problems


_REQUEST = closed(
    {"method": one_of(("POST", "PUT", "PATCH", "DELETE")), "url": check_url},
    {"headers": _headers, "body": nullable(one_of((INPUT_BODY,)))},
)
_READBACK = closed(
    {"method": one_of(("GET", "HEAD")), "url": check_url, "applied": _match, "notApplied": _match},
    {"headers": _headers},
)
_RECOVERY = closed(dict.fromkeys(RECOVERY_SCORES, integer(0, 4)))

_COMMON_REQUIRED = {"nodeTypeId": NODE_TYPE_ID, "kind": one_of(NodeKind)}
_COMMON = {
    "title": text(longest=200),
    "system": text(longest=64),
    "inputSchema": check_schema,
    "amount": check_path,
    "currency": check_path,
    "recovery": _RECOVERY,
    "requiresApproval": boolean,
    "retry": RETRY,
    "timeoutMs": TIMEOUT_MS,
}
_HTTP = {
    "idempotency": closed({}, {"header": _header_name, "honoured": boolean}),
    "readback": _READBACK,
    "success": _statuses(_success_status),
    "retryable": _statuses(integer(400, 599)),
    "receipt": check_path,
    "output": check_path,
    "credentialRef": CREDENTIAL_REF,
    "settleMs": integer(0, 86_400_000),
    "keyLifetimeHours": integer(1, 87_600),
    "maxConcurrency": integer(1, 10_000),
}

check_shape: Check = tagged(
    "kind",
    {
        NodeKind.HTTP: closed({**_COMMON_REQUIRED, "request": _REQUEST}, {**_COMMON, **_HTTP}),
        NodeKind.MANUAL: closed(_COMMON_REQUIRED, _COMMON),
    },
)


def contradictions(document: dict[str, object]) -> Iterator[Problem]:
    """What only shows when members of a well-formed document are read together."""
    success, retryable = _status_set(document, "success"), _status_set(document, "retryable")
    for status in sorted(success & retryable):
        yield Problem("/retryable/status", "names a status that is also a success", status)
    header = _member(_member(document, "idempotency"), "header")
    for part in ("request", "readback"):
        headers = _member(_member(document, part), "headers")
        for name in headers if isinstance(headers, dict) else ():
            if isinstance(header, str) and name.lower() == header.lower():
                yield Problem(f"/{part}/headers/{name}", "is the idempotency header, which the engine sets", name)


def _status_set(document: dict[str, object], name: str) -> set[int]:
    statuses = _member(_member(document, name), "status")
    return {each for each in statuses if isinstance(each, int)} if isinstance(statuses, list) else set()


def _member(value: object, name: str) -> object:
    return value.get(name) if isinstance(value, dict) else None
