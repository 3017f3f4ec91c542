"""The JSONPath subset of node types: `$`, `$.a.b`, `$.a[0]`."""

from __future__ import annotations

import re

from compensation.domain.problems import Problem

_STEP = re.compile(r"\.([A-Za-z_][A-Za-z0-9_-]*)|\[(0|[1-9][0-9]{0,8})\]")
_PATH = re.compile(rf"\$(?:{_STEP.pattern})*")
MAX_LENGTH = 256
ALLOWED = "`$`, `$.member.member`, `$.member[0]`"


class PathNotFoundError(LookupError):
    """The path leads nowhere in this value."""


def check_path(value: object, pointer: str) -> list[Problem]:
    if isinstance(value, str) and len(value) <= MAX_LENGTH and _PATH.fullmatch(value):
        return []
    return [Problem(pointer, "is not a JSONPath of the supported subset", value, ALLOWED)]


def extract(path: str, value: object) -> object:
    """What `path` (checked by `check_path`) names in `value`; `PathNotFoundError` when a step is missing."""
    for name, index in _STEP.findall(path):
        value = _member(value, name) if name else _item(value, int(index))
    return value


def _member(value: object, name: str) -> object:
    if isinstance(value, dict) and name in value:
        return value[name]
    raise PathNotFoundError(name)


def _item(value: object, index: int) -> object:
    if isinstance(value, list) and index < len(value):
        return value[index]
    raise PathNotFoundError(str(index))
