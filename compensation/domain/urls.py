"""URL templates of node types: `{key}` and `{input.<port>}` in the path and query, nowhere else."""

from __future__ import annotations

import re
from collections.abc import Iterator
from urllib.parse import SplitResult, parse_qsl, urlsplit

from compensation.domain.problems import Problem
from compensation.domain.secrets import has_telling_name, looks_like_secret

MAX_LENGTH = 2048
ALLOWED = "an absolute http or https URL; {key} and {input.<port>} in its path and query"

_PLACEHOLDER = re.compile(r"\{(?:key|input\.[^{}]+)\}")
_URL_TEXT = re.compile(r"[\x21-\x7e]+")


def check_url(value: object, pointer: str) -> list[Problem]:
    """Every fault of a URL template; the port of a placeholder may be any name."""
    if not isinstance(value, str) or not 1 <= len(value) <= MAX_LENGTH:
        return [Problem(pointer, "must be a URL", value, f"{ALLOWED}, at most {MAX_LENGTH} characters")]
    literal = _PLACEHOLDER.sub("x", value)
    if not _URL_TEXT.fullmatch(literal) or "\\" in literal:
        return [Problem(pointer, "holds a character that must be percent-encoded", value, ALLOWED)]
    try:
        parts = urlsplit(literal)
        port = parts.port
    except ValueError as error:
        return [Problem(pointer, f"is not a URL: {error}", value, ALLOWED)]
    return [Problem(pointer, why, shown, ALLOWED) for why, shown in _faults(value, literal, parts, port)]


def _faults(value: str, literal: str, parts: SplitResult, port: int | None) -> Iterator[tuple[str, str]]:
    if "@" in parts.netloc:
        yield "carries a user or password; name a credential instead", f"{parts.scheme}://…"
        return
    if parts.scheme not in {"http", "https"} or not parts.hostname or port == 0:
        yield "is not an absolute http or https URL", value
    if "#" in literal:
        yield "has a fragment, which is never sent", value
    if "{" in literal or "}" in literal:
        yield "has a placeholder of an unknown form", value
    elif "{" in value[: len(parts.scheme) + len("://") + len(parts.netloc)]:
        yield "has a placeholder in its scheme or host", value
    for name, shown in parse_qsl(parts.query):
        if (has_telling_name(name) and shown != "x") or looks_like_secret(shown):
            yield f"carries what looks like a secret in its parameter {name!r}; name a credential instead", "…"
