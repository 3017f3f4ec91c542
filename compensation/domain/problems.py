"""What is wrong with a value, where, and what would have been right."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import islice

PREVIEW_LENGTH = 120
MAX_PROBLEMS = 1000
FEW = 20


class _Absent:
    """Tells "no value to show" from a value that is `None`."""

    def __repr__(self) -> str:
        return "ABSENT"


ABSENT = _Absent()


@dataclass(frozen=True, slots=True)
class Problem:
    """One refusal: an RFC 6901 pointer, what was wrong, the offending value and what is allowed (CMP-104)."""

    pointer: str
    message: str
    value: object = ABSENT
    allowed: object = ABSENT

    @property
    def text(self) -> str:
        """The whole sentence a person reads; a long offending value is cut."""
        got = "" if self.value is ABSENT else f" (got {preview(self.value)})"
        allowed = "" if self.allowed is ABSENT else f"; allowed: {_allowed_text(self.allowed)}"
        return f"{self.message}{got}{allowed}"

    def to_wire(self) -> dict[str, str]:
        return {"pointer": self.pointer, "message": self.text}


def to_wire(problems: Iterable[Problem]) -> list[dict[str, str]]:
    """The `details.errors` of a `validation_error`."""
    return [problem.to_wire() for problem in problems]


def capped(problems: Sequence[Problem]) -> list[Problem]:
    """All problems of an honest document; of a hostile one as many as anybody will read."""
    if len(problems) <= MAX_PROBLEMS:
        return list(problems)
    rest = Problem("", f"has {len(problems) - MAX_PROBLEMS} more problems, which are not listed")
    return [*problems[:MAX_PROBLEMS], rest]


def few(names: Iterable[str]) -> list[str]:
    """The first of what is allowed, in the order it was declared."""
    return list(islice(names, FEW))


def join(pointer: str, token: str | int) -> str:
    """The RFC 6901 pointer to member or item `token` of what `pointer` names.

    A hostile name must not break the answer that reports it: it is cut when long, and lone surrogates are escaped.
    """
    name = str(token)
    if len(name) > PREVIEW_LENGTH:
        name = name[:PREVIEW_LENGTH] + "…"
    escaped = name.replace("~", "~0").replace("/", "~1").encode("utf-8", "backslashreplace").decode()
    return f"{pointer}/{escaped}"


def preview(value: object) -> str:
    """`value` as short JSON that is always printable ASCII, whatever it holds."""
    shown = value[: PREVIEW_LENGTH + 1] if isinstance(value, str) else value
    try:
        text = json.dumps(shown, default=repr)
    except (ValueError, RecursionError):
        text = f"a {type(value).__name__}"
    return text if len(text) <= PREVIEW_LENGTH else text[:PREVIEW_LENGTH] + "…"


def _allowed_text(allowed: object) -> str:
    if isinstance(allowed, str):
        return allowed
    if isinstance(allowed, Iterable):
        return ", ".join(str(item) for item in allowed) or "nothing"
    return str(allowed)
