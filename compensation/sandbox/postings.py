"""A request to a system, read strictly: path, key, body and correlation."""

from __future__ import annotations

import json
import re
import uuid
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from compensation.sandbox.catalogue import SYSTEMS, Deed, perform
from compensation.sandbox.problems import RequestError, invalid

KEY_HEADER = "Idempotency-Key"
CORRELATION_HEADER = "X-Correlation-Id"

_VERB = re.compile(r"[a-z][a-z0-9_]{0,63}")
_PRINTABLE = re.compile(r"[\x21-\x7e]{1,255}")
_TRACEPARENT = re.compile(r"[0-9a-f]{2}-([0-9a-f]{32})-[0-9a-f]{16}-[0-9a-f]{2}")


@dataclass(frozen=True, slots=True)
class Posting:
    """One effect asked for. `body` is canonical JSON, so that the order of its keys is no difference."""

    system: str
    verb: str
    key: str | None
    body: str
    correlation: str | None
    deed: Deed


def check_target(system: str, verb: str) -> None:
    """Raise a 404 for a system that does not exist or a verb that is no name."""
    if system not in SYSTEMS:
        raise RequestError(404, "not_found", f"There is no such system; there are {', '.join(SYSTEMS)}.")
    if not _VERB.fullmatch(verb):
        raise RequestError(404, "not_found", "A verb is 1 to 64 of a-z, 0-9 and _, and starts with a letter.")


def read_key(headers: Mapping[str, str]) -> str | None:
    """The idempotency key, None when there is none; 400 when it is not 1 to 255 printable ASCII characters."""
    key = headers.get(KEY_HEADER)
    if key is not None and not _PRINTABLE.fullmatch(key):
        raise invalid((f"/headers/{KEY_HEADER}", "must be 1 to 255 printable ASCII characters without spaces"))
    return key


def read_posting(*, system: str, verb: str, key: str | None, headers: Mapping[str, str], raw: bytes) -> Posting:
    """The posting of a request body; 400 when the body is not one JSON object."""
    body = parse_object(raw)
    deed = perform(system=system, verb=verb, seed=key or uuid.uuid4().hex, body=body)
    return Posting(system, verb, key, _canonical(body), _correlation(headers), deed)


def parse_object(raw: bytes) -> dict[str, Any]:
    """One JSON object out of `raw`; 400 otherwise, NaN, infinities and lone surrogates included."""
    try:
        body = json.loads(raw)
        _canonical(body).encode()
    except (ValueError, RecursionError) as unreadable:
        raise invalid(("", "must be one JSON object in UTF-8 (no NaN, no infinity, no lone surrogate)")) from unreadable
    if not isinstance(body, dict):
        raise invalid(("", f"must be a JSON object, not {type(body).__name__}"))
    return body


def _canonical(body: Any) -> str:
    return json.dumps(body, sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False)


def _correlation(headers: Mapping[str, str]) -> str | None:
    named = headers.get(CORRELATION_HEADER, "")
    if _PRINTABLE.fullmatch(named):
        return named
    traced = _TRACEPARENT.fullmatch(headers.get("traceparent", ""))
    return traced[1] if traced else None
