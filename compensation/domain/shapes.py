"""Closed shapes: small checks that compose, each answering with every problem it sees and none raised."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from compensation.domain.problems import Problem, join

Check = Callable[[object, str], list[Problem]]
"""A check of one value at one pointer."""

MAX_STORED_INTEGER = 2**31 - 1
MAX_TEXT = 10_000


def closed(required: Mapping[str, Check], optional: Mapping[str, Check] | None = None) -> Check:
    """An object with these members and no other."""
    members = {**required, **(optional or {})}

    def check(value: object, pointer: str) -> list[Problem]:
        if not isinstance(value, dict):
            return [Problem(pointer, "must be an object", value, f"an object with {_names(members)}")]
        problems = [
            Problem(join(pointer, name), "is required and missing", allowed=f"an object with {_names(members)}")
            for name in required
            if name not in value
        ]
        for name, member in value.items():
            place = join(pointer, name)
            if name in members:
                problems += members[name](member, place)
            else:
                problems.append(Problem(place, "is not a known key", name, sorted(members)))
        return problems

    return check


def text(*, longest: int = MAX_TEXT, shortest: int = 1, pattern: str | None = None, says: str | None = None) -> Check:
    """A string of bounded length that matches `pattern` as a whole; `says` is the pattern in words."""
    compiled = re.compile(pattern) if pattern else None
    allowed = says or (f"a string matching {pattern}" if pattern else "a string") + f", {shortest} to {longest} long"

    def check(value: object, pointer: str) -> list[Problem]:
        if not isinstance(value, str):
            return [Problem(pointer, "must be a string", value, allowed)]
        if not shortest <= len(value) <= longest:
            return [Problem(pointer, "has a length out of bounds", value, allowed)]
        if compiled and not compiled.fullmatch(value):
            return [Problem(pointer, "is not of the right form", value, allowed)]
        return []

    return check


def integer(least: int, most: int = MAX_STORED_INTEGER) -> Check:
    """A whole number from `least` to `most`; `true` is not one."""

    def check(value: object, pointer: str) -> list[Problem]:
        if isinstance(value, int) and not isinstance(value, bool) and least <= value <= most:
            return []
        return [Problem(pointer, "must be a whole number in range", value, f"{least} to {most}")]

    return check


def number(value: object, pointer: str) -> list[Problem]:
    """Any finite number."""
    if isinstance(value, (int, float)) and not isinstance(value, bool) and math.isfinite(value):
        return []
    return [Problem(pointer, "must be a number", value, "a finite number")]


def boolean(value: object, pointer: str) -> list[Problem]:
    if isinstance(value, bool):
        return []
    return [Problem(pointer, "must be a boolean", value, "true, false")]


def anything(_value: object, _pointer: str) -> list[Problem]:
    return []


def free_object(value: object, pointer: str) -> list[Problem]:
    """An object whose members are the author's own business."""
    if isinstance(value, dict):
        return []
    return [Problem(pointer, "must be an object", value, "an object")]


def one_of(values: Iterable[Any], *, what: str = "is not an allowed value") -> Check:
    """One of some strings or integers."""
    allowed = [getattr(value, "value", value) for value in values]

    def check(value: object, pointer: str) -> list[Problem]:
        if not isinstance(value, bool) and isinstance(value, (str, int)) and value in allowed:
            return []
        return [Problem(pointer, what, value, allowed)]

    return check


def array(item: Check, *, least: int = 0, most: int | None = None, unique: bool = False) -> Check:
    """A list whose items all pass `item`."""

    def check(value: object, pointer: str) -> list[Problem]:
        bounds = f"an array of {least} items or more" if most is None else f"an array of {least} to {most} items"
        if not isinstance(value, list):
            return [Problem(pointer, "must be an array", value, bounds)]
        if len(value) < least or (most is not None and len(value) > most):
            return [Problem(pointer, "has too few or too many items", value, bounds)]
        problems = [found for index, each in enumerate(value) for found in item(each, join(pointer, index))]
        return problems + (duplicates(value, pointer) if unique else [])

    return check


def record(member: Check, *, name: Check | None = None) -> Check:
    """An object with free names (each passing `name`) whose members all pass `member`."""

    def check(value: object, pointer: str) -> list[Problem]:
        if not isinstance(value, dict):
            return [Problem(pointer, "must be an object", value, "an object")]
        problems: list[Problem] = []
        for key, each in value.items():
            place = join(pointer, key)
            problems += [*(name(key, place) if name else []), *member(each, place)]
        return problems

    return check


def nullable(check: Check) -> Check:
    """`null`, or what `check` accepts."""
    return lambda value, pointer: [] if value is None else check(value, pointer)


def tagged(tag: str, variants: Mapping[str, Check]) -> Check:
    """An object whose string member `tag` says which closed shape it has."""
    which = one_of(sorted(variants))

    def check(value: object, pointer: str) -> list[Problem]:
        if not isinstance(value, dict):
            return [Problem(pointer, "must be an object", value, f"an object with `{tag}`")]
        if tag not in value:
            return [Problem(join(pointer, tag), "is required and missing", allowed=sorted(variants))]
        return which(value[tag], join(pointer, tag)) or variants[value[tag]](value, pointer)

    return check


def duplicates(values: Iterable[object], pointer: str, *, member: str | None = None) -> list[Problem]:
    """A problem for each string of a list (or string `member` of its objects) that stood there before."""
    problems: list[Problem] = []
    seen: set[str] = set()
    for index, value in enumerate(values):
        each = value.get(member) if member is not None and isinstance(value, dict) else value
        if not isinstance(each, str):
            continue
        if each in seen:
            place = join(pointer, index)
            problems.append(
                Problem(place if member is None else join(place, member), "is a duplicate", each, "each value once")
            )
        seen.add(each)
    return problems


def _names(members: Mapping[str, Check]) -> str:
    return ", ".join(sorted(members))
