"""Input schemas: JSON Schema 2020-12 that needs nothing from outside and cannot be turned against its reader."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from itertools import islice

from jsonschema import Draft202012Validator
from jsonschema.exceptions import SchemaError
from referencing import Registry
from referencing.exceptions import Unresolvable

from compensation.domain.problems import Problem, join

DIALECT = "https://json-schema.org/draft/2020-12/schema"
MAX_INPUT_PROBLEMS = 50
MAX_PATTERN = 200
# Definitions that name each other twice double the work with every step.
MAX_REFERENCES = 24

_REFERENCES = ("$ref", "$dynamicRef")
_REBASING = ("$id", "$anchor", "$dynamicAnchor")
_NESTED_REPETITION = re.compile(r"\((?:[^()\\]|\\.)*[+*}](?:[^()\\]|\\.)*\)\s*[+*{]|\)\s*[+*{][^()]*\)\s*[+*{]")


def check_schema(schema: object, pointer: str) -> list[Problem]:
    """What keeps `schema` from being a self-contained JSON Schema 2020-12 that is safe to evaluate."""
    if not isinstance(schema, dict):
        return [Problem(pointer, "must be a JSON Schema object", schema, "an object")]
    problems = list(_unsafe_parts(schema, pointer))
    if (references := _count_references(schema)) > MAX_REFERENCES:
        problems.append(Problem(pointer, f"holds {references} references", allowed=f"at most {MAX_REFERENCES}"))
    if schema.get("$schema", DIALECT) != DIALECT:
        problems.append(Problem(join(pointer, "$schema"), "is not a known dialect", schema["$schema"], DIALECT))
    try:
        Draft202012Validator.check_schema(schema)
    except SchemaError as error:
        problems.append(Problem(_pointer(pointer, error), f"is not valid JSON Schema: {error.message[:200]}"))
    except RecursionError:
        problems.append(Problem(pointer, "is nested too deep to be checked"))
    return problems


def input_problems(schema: Mapping[str, object], value: object, pointer: str = "") -> list[Problem]:
    """Where `value` does not satisfy a registered schema; at most 50."""
    validator = Draft202012Validator(dict(schema), registry=Registry())
    try:
        errors = list(islice(validator.iter_errors(value), MAX_INPUT_PROBLEMS))
    except (Unresolvable, RecursionError):
        return [Problem(pointer, "cannot be checked: the input schema refers to itself without end or to nothing")]
    return [Problem(_pointer(pointer, error), error.message[:200]) for error in errors]


def _unsafe_parts(schema: object, pointer: str) -> Iterator[Problem]:
    if isinstance(schema, dict):
        for name, member in schema.items():
            place = join(pointer, name)
            yield from _unsafe_keyword(name, member, place)
            yield from _unsafe_parts(member, place)
    elif isinstance(schema, list):
        for index, item in enumerate(schema):
            yield from _unsafe_parts(item, join(pointer, index))


def _count_references(schema: object) -> int:
    if isinstance(schema, dict):
        return sum((name in _REFERENCES) + _count_references(member) for name, member in schema.items())
    return sum(map(_count_references, schema)) if isinstance(schema, list) else 0


def _unsafe_keyword(name: str, member: object, pointer: str) -> Iterator[Problem]:
    if name in _REFERENCES and isinstance(member, str) and not re.fullmatch(r"#(?:/.*)?", member):
        yield Problem(pointer, "refers outside of this schema", member, "#/$defs/<name>")
    elif name in _REBASING and isinstance(member, str):
        yield Problem(pointer, "gives a part of the schema another address", member, "schemas without it")
    elif name == "pattern" and isinstance(member, str):
        yield from _unsafe_pattern(member, pointer)
    elif name == "patternProperties" and isinstance(member, dict):
        for pattern in member:
            yield from _unsafe_pattern(pattern, join(pointer, pattern))


def _unsafe_pattern(pattern: str, pointer: str) -> Iterator[Problem]:
    """A repeated group that repeats inside can take exponential time on a hostile input."""
    if len(pattern) > MAX_PATTERN or _NESTED_REPETITION.search(pattern):
        allowed = f"at most {MAX_PATTERN} characters and no repetition of a repetition"
        yield Problem(pointer, "is a pattern that could take very long", pattern, allowed)
        return
    try:
        re.compile(pattern)
    except (re.error, OverflowError, RecursionError):
        yield Problem(pointer, "is not a regular expression", pattern)


def _pointer(base: str, error: object) -> str:
    for step in getattr(error, "absolute_path", ()):
        base = join(base, step)
    return base
