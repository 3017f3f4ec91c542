"""Faults a person or a test injects. They live in memory: a restart is a sandbox without faults."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict, dataclass
from itertools import count
from typing import Any

from compensation.sandbox.problems import invalid

MODES = {
    "fail": "answers an error status, applies nothing",
    "reject": "answers a definite rejection (4xx), applies nothing",
    "delay": "waits, then answers as usual",
    "drop_before": "cuts the connection, applies nothing",
    "drop_after": "applies, then cuts the connection",
    "throttle": "answers 429 with Retry-After, applies nothing",
    "garbage": "applies, then answers 200 with an unreadable body",
    "hang": "never answers, applies nothing",
}
FIELDS = ("match", "mode", "times", "ms", "status")
MAX_MATCH = 300
MAX_MS = 600_000
MAX_TIMES = 1_000_000
_STATUSES = {"reject": range(400, 500)}
_ANY_ERROR = range(400, 600)
_DEFAULT_STATUS = {"reject": 422}
_DEFAULT_MS = {"delay": 1_000, "throttle": 1_000, "hang": MAX_MS}


@dataclass
class Fault:
    """What happens to requests whose path contains `match`.

    `times`: how many more, None for ever. `ms`: how long `hang` holds on, what `throttle` announces in Retry-After,
    and for every other mode how long it waits before it acts. `status`: what `fail` and `reject` answer.
    """

    id: int
    match: str
    mode: str
    times: int | None
    ms: int
    status: int
    hits: int = 0

    def wire(self) -> dict[str, Any]:
        return asdict(self)


class FaultBook:
    """The active faults; of several that match, the oldest acts."""

    def __init__(self) -> None:
        self._active: list[Fault] = []
        self._ids = count(1)

    def __iter__(self) -> Iterator[Fault]:
        return iter(self._active)

    def add(self, asked: dict[str, Any]) -> Fault:
        """Make the fault a body describes active; a 400 names every field that is wrong."""
        fault = Fault(id=next(self._ids), **checked(asked))
        self._active.append(fault)
        return fault

    def take(self, path: str) -> Fault | None:
        """The fault that acts on a request to `path` now, counted; one that is used up is gone."""
        fault = next((fault for fault in self._active if fault.match in path), None)
        if fault is None:
            return None
        fault.hits += 1
        if fault.times is not None:
            fault.times -= 1
            if fault.times == 0:
                self._active.remove(fault)
        return fault

    def clear(self, fault_id: int | None = None) -> None:
        """Drop one fault, or all."""
        self._active = [fault for fault in self._active if fault_id is not None and fault.id != fault_id]

    def wire(self) -> dict[str, Any]:
        return {"faults": [fault.wire() for fault in self._active]}


def checked(asked: dict[str, Any]) -> dict[str, Any]:
    """The five fields of a fault with their defaults; a 400 names each field, what is wrong and what is allowed."""
    mode = asked.get("mode")
    allowed_status = _STATUSES.get(str(mode), _ANY_ERROR)
    unknown = [(f"/{name}", f"is not a field; there are {', '.join(FIELDS)}") for name in asked if name not in FIELDS]
    found = [
        ("/match", _wrong_match(asked.get("match"))),
        ("/mode", None if isinstance(mode, str) and mode in MODES else f"must be one of {', '.join(MODES)}"),
        ("/times", _wrong_number(asked.get("times"), range(1, MAX_TIMES + 1))),
        ("/ms", _wrong_number(asked.get("ms"), range(MAX_MS + 1))),
        ("/status", _wrong_number(asked.get("status"), allowed_status)),
    ]
    errors = unknown + [(pointer, wrong) for pointer, wrong in found if wrong]
    if errors:
        raise invalid(*errors)
    return _with_defaults(str(mode), asked)


def _with_defaults(mode: str, asked: dict[str, Any]) -> dict[str, Any]:
    given = {name: value for name, value in asked.items() if value is not None}
    defaults = {"times": None, "ms": _DEFAULT_MS.get(mode, 0), "status": _DEFAULT_STATUS.get(mode, 503)}
    return defaults | given


def _wrong_match(value: Any) -> str | None:
    fine = isinstance(value, str) and 1 <= len(value) <= MAX_MATCH
    return None if fine else f"must be 1 to {MAX_MATCH} characters that the path contains, such as /payments/refund"


def _wrong_number(value: Any, allowed: range) -> str | None:
    fine = value is None or (type(value) is int and value in allowed)
    return None if fine else f"must be a whole number from {allowed[0]} to {allowed[-1]}, or null"
