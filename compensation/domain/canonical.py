"""One meaning for one JSON text: RFC 8785 out, RFC 7493 (I-JSON) in."""

from __future__ import annotations

import hashlib
import json
import math
import re
from collections.abc import Iterator, Sequence
from itertools import islice

import rfc8785

from compensation.domain.problems import Problem, join

MAX_DEPTH = 64
MAX_INTEGER = 2**53 - 1
MAX_PROBLEMS = 100

# From here on RFC 8785 writes an exponent, so the number cannot be read back as an integer.
_EXPONENT_FROM = 1e21
_INTEGER_RANGE = f"integers from -{MAX_INTEGER} to {MAX_INTEGER}"
_DIGITS_TO_CONVERT = 20

_STRUCTURE = re.compile(r'"(?:[^"\\]++|\\.)*+"?|[\[\]{}]', re.DOTALL)
_SUSPICIOUS_ESCAPE = re.compile(r"\\u(?:0000|[dD][89a-fA-F])")
_SURROGATE = re.compile("[\ud800-\udfff]")


class IJsonError(ValueError):
    """The text is not I-JSON; `errors` says where and why."""

    def __init__(self, errors: Sequence[Problem]) -> None:
        super().__init__("; ".join(f"{error.pointer or '/'}: {error.text}" for error in errors))
        self.errors = list(errors)


def canonical(value: object) -> bytes:
    """The RFC 8785 bytes of a JSON value."""
    return rfc8785.dumps(value)  # type: ignore[arg-type]


def digest(value: object) -> str:
    """Hex SHA-256 of the RFC 8785 bytes (CMP-306)."""
    return hashlib.sha256(canonical(value)).hexdigest()


def parse_ijson(raw: bytes, *, max_depth: int = MAX_DEPTH) -> object:
    """Parse one I-JSON text, or raise `IJsonError` with a pointer for each thing that has no single meaning."""
    try:
        text = raw.decode("utf-8")
    except UnicodeDecodeError as error:
        raise IJsonError([Problem("", f"is not UTF-8 at byte {error.start}", allowed="UTF-8 text")]) from None
    _refuse_deep(text, max_depth)
    if not _SUSPICIOUS_ESCAPE.search(text):
        try:
            return _parse_fast(text)
        except _SuspiciousError:
            pass
        except json.JSONDecodeError as error:
            raise _not_json(error) from None
    return _parse_slowly(text)


def check_ijson(value: object, *, pointer: str = "", max_depth: int = MAX_DEPTH) -> list[Problem]:
    """What keeps an already parsed value from being I-JSON; at most 100, and never deeper
    than `max_depth`."""
    return list(islice(_walk(value, pointer, max_depth), MAX_PROBLEMS))


def _refuse_deep(text: str, max_depth: int) -> None:
    """Count brackets before any recursive parser sees the text."""
    depth = 0
    for match in _STRUCTURE.finditer(text):
        mark = match[0]
        if mark in "[{":
            depth += 1
            if depth > max_depth:
                pointer = _pointer_at(text, match.start())
                raise IJsonError([Problem(pointer, "is nested too deep", allowed=f"at most {max_depth} levels")])
        elif mark in "]}":
            depth -= 1


def _pointer_at(text: str, end: int) -> str:
    """The pointer of the container that opens at `end`: object members by last key, items by count of commas."""
    path: list[str | int] = []
    string = ""
    for match in re.finditer(r'"(?:[^"\\]++|\\.)*+"?|[\[\]{}:,]', text[:end], re.DOTALL):
        mark = match[0]
        if mark in "[{":
            path.append(0 if mark == "[" else "")
        elif mark in "]}":
            del path[-1:]
        elif mark == ":" and path:
            path[-1] = _unquoted(string)
        elif mark == "," and path and isinstance(path[-1], int):
            path[-1] += 1
        else:
            string = mark
    pointer = ""
    for step in path:
        pointer = join(pointer, step)
    return pointer


def _unquoted(mark: str) -> str:
    try:
        return str(json.loads(mark, strict=False))
    except ValueError:
        return mark


class _SuspiciousError(Exception):
    """Something needs the slow parse, which knows pointers."""


class _Members(list[tuple[str, object]]):
    """An object as written, duplicate keys and all."""


class _Bad:
    """A literal without an I-JSON meaning."""

    def __init__(self, literal: str) -> None:
        self.literal = literal


def _parse_fast(text: str) -> object:
    """Parse without pointers; raises `_SuspiciousError` at the first thing that may need one."""
    parsed: object = json.loads(
        text,
        object_pairs_hook=_unique_members,
        parse_int=_fast_integer,
        parse_float=_fast_float,
        parse_constant=_fast_constant,
    )
    return parsed


def _unique_members(pairs: list[tuple[str, object]]) -> dict[str, object]:
    members = dict(pairs)
    if len(members) != len(pairs):
        raise _SuspiciousError
    return members


def _fast_integer(literal: str) -> int:
    if len(literal) > _DIGITS_TO_CONVERT or not -MAX_INTEGER <= (number := int(literal)) <= MAX_INTEGER:
        raise _SuspiciousError
    return number


def _fast_float(literal: str) -> float:
    number = float(literal)
    if not _representable(number):
        raise _SuspiciousError
    return number


def _fast_constant(literal: str) -> object:
    raise _SuspiciousError(literal)


def _representable(number: float) -> bool:
    """A finite double whose canonical form is not an integer literal beyond the I-JSON range."""
    return abs(number) <= MAX_INTEGER or (math.isfinite(number) and abs(number) >= _EXPONENT_FROM)


def _slow_number(literal: str) -> object:
    if len(literal) > _DIGITS_TO_CONVERT and literal.lstrip("-").isdigit():
        return _Bad(literal)
    number = int(literal) if literal.lstrip("-").isdigit() else float(literal)
    fits = abs(number) <= MAX_INTEGER if isinstance(number, int) else _representable(number)
    return number if fits else _Bad(literal)


def _parse_slowly(text: str) -> object:
    """Parse into a tree that still shows every fault, and name them all."""
    try:
        tree = json.loads(
            text, object_pairs_hook=_Members, parse_int=_slow_number, parse_float=_slow_number, parse_constant=_Bad
        )
    except json.JSONDecodeError as error:
        raise _not_json(error) from None
    if problems := check_ijson(tree):
        raise IJsonError(problems)
    return _settled(tree)


def _not_json(error: json.JSONDecodeError) -> IJsonError:
    place = f"at line {error.lineno} column {error.colno}"
    return IJsonError([Problem("", f"is not JSON {place}: {error.msg}", allowed="one JSON value")])


def _settled(tree: object) -> object:
    if isinstance(tree, _Members):
        return {name: _settled(member) for name, member in tree}
    if isinstance(tree, list):
        return [_settled(item) for item in tree]
    return tree


def _walk(value: object, pointer: str, levels: int) -> Iterator[Problem]:
    if isinstance(value, (dict, list)) and levels == 0:
        yield Problem(pointer, "is nested too deep", allowed="fewer levels")
    elif isinstance(value, dict):
        yield from _walk_members(list(value.items()), pointer, levels)
    elif isinstance(value, _Members):
        yield from _walk_members(value, pointer, levels)
    elif isinstance(value, list):
        for index, item in enumerate(value):
            yield from _walk(item, join(pointer, index), levels - 1)
    else:
        yield from _scalar_problems(value, pointer)


def _walk_members(members: Sequence[tuple[object, object]], pointer: str, levels: int) -> Iterator[Problem]:
    seen: set[object] = set()
    for name, member in members:
        place = join(pointer, str(name))
        if not isinstance(name, str):
            yield Problem(place, "is a member whose name is not a string", name, "strings")
            continue
        if name in seen:
            yield Problem(place, "is a duplicate member", allowed="each name once in an object")
        seen.add(name)
        yield from _text_problems(name, place)
        yield from _walk(member, place, levels - 1)


def _scalar_problems(value: object, pointer: str) -> Iterator[Problem]:
    if isinstance(value, str):
        yield from _text_problems(value, pointer)
    elif isinstance(value, _Bad):
        yield _unrepresentable(pointer, value.literal)
    elif isinstance(value, int) and not isinstance(value, bool):
        if abs(value) > MAX_INTEGER:
            yield _unrepresentable(pointer, hex(value))
    elif isinstance(value, float):
        if not _representable(value):
            yield _unrepresentable(pointer, repr(value))
    elif value is not None and not isinstance(value, bool):
        yield Problem(pointer, f"is a {type(value).__name__}, which JSON has not", allowed="JSON values")


def _unrepresentable(pointer: str, literal: str) -> Problem:
    return Problem(pointer, f"is a number out of range: {literal[:40]}", allowed=f"finite numbers, {_INTEGER_RANGE}")


def _text_problems(text: str, pointer: str) -> Iterator[Problem]:
    if "\0" in text:
        yield Problem(pointer, "holds a NUL character", text, "text without U+0000")
    if _SURROGATE.search(text):
        yield Problem(pointer, "holds a lone surrogate", text, "Unicode text")
