"""I-JSON in, RFC 8785 out: one meaning for one text (wire.md, Conventions; CMP-306)."""

from __future__ import annotations

import json
import time
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from compensation.domain.canonical import MAX_INTEGER, IJsonError, canonical, check_ijson, digest, parse_ijson
from compensation.domain.problems import Problem
from tests.unit.domain.support import JSON_VALUES


def refused(raw: bytes) -> list[tuple[str, str]]:
    with pytest.raises(IJsonError) as caught:
        parse_ijson(raw)
    return [(problem.pointer, problem.message) for problem in caught.value.errors]


def outcome(raw: bytes) -> tuple[object, list[Problem]]:
    """The value, or the problems it was refused with; any other exception is the test's failure."""
    try:
        return parse_ijson(raw), []
    except IJsonError as error:
        return None, error.errors


@given(JSON_VALUES)
def test_what_is_written_canonically_is_read_back_equal(value: Any) -> None:
    assert parse_ijson(canonical(value)) == value
    assert check_ijson(value) == []


@given(st.dictionaries(st.text("abc", max_size=3), st.integers(0, 9), max_size=6), st.randoms(use_true_random=False))
def test_cmp_306_a_digest_does_not_depend_on_member_order(members: dict[str, int], random: Any) -> None:
    shuffled = list(members.items())
    random.shuffle(shuffled)
    assert digest(dict(shuffled)) == digest(members)


@given(st.text(max_size=60))
def test_any_text_is_parsed_or_refused_never_something_else(text: str) -> None:
    value, problems = outcome(text.encode("utf-8", "surrogatepass"))
    assert problems or check_ijson(value) == []


@pytest.mark.parametrize(
    ("raw", "pointer", "word"),
    [
        (b'{"a":1,"a":2}', "/a", "duplicate"),
        (b'{"x":[{"b":1},{"b":1,"b":1}]}', "/x/1/b", "duplicate"),
        (b'{"a/b":{"~":1,"~":2}}', "/a~1b/~0", "duplicate"),
        (b"[NaN]", "/0", "out of range"),
        (b'{"a":-Infinity}', "/a", "out of range"),
        (b"[1,9007199254740992]", "/1", "out of range"),
        (b"[-9007199254740992]", "/0", "out of range"),
        (b"[1e16]", "/0", "out of range"),
        (b"[1e400]", "/0", "out of range"),
        (b"9" * 5000, "", "out of range"),
        (b'{"a":"\\ud800"}', "/a", "lone surrogate"),
        (b'{"\\udc00":1}', "/\\udc00", "lone surrogate"),
        (b'["a\\u0000b"]', "/0", "NUL"),
        (b'["a\x00b"]', "", "not JSON"),
        (b"\xff", "", "UTF-8"),
        (b"[] []", "", "not JSON"),
        (b"", "", "not JSON"),
        (b'\xef\xbb\xbf{"a":1}', "", "not JSON"),
        (b"{'a':1}", "", "not JSON"),
        (b'{"a":[0,' + b"[" * 63, "/a/1" + "/0" * 62, "too deep"),
    ],
)
def test_each_text_without_one_meaning_is_refused_with_its_pointer(raw: bytes, pointer: str, word: str) -> None:
    [(where, message)] = refused(raw)
    assert where == pointer
    assert word in message


def test_all_faults_are_named_at_once() -> None:
    assert [pointer for pointer, _ in refused(b'{"a":NaN,"b":["\\ud800",1e999],"a":1}')] == ["/a", "/b/0", "/b/1", "/a"]


@pytest.mark.parametrize(
    ("raw", "value"),
    [
        (b'"\\ud83d\\ude00"', "\U0001f600"),
        (b'"\\\\u0000"', "\\u0000"),
        (b"9007199254740991", MAX_INTEGER),
        (b"1e300", 1e300),
        (b"[" * 64 + b"]" * 64, json.loads("[" * 64 + "]" * 64)),
        (b'"[[[[' + b"[" * 100 + b'"', "[[[[" + "[" * 100),
    ],
)
def test_what_only_looks_suspicious_is_accepted(raw: bytes, value: Any) -> None:
    assert parse_ijson(raw) == value


@pytest.mark.parametrize(
    "raw",
    [
        b"[" * 2**20,
        b'{"a":' * 200_000,
        b'"' + b'\\"' * 500_000,
        b"[" + b"[]," * 349_000 + b"1]",
        b"[" + b'{"a":1},' * 130_000 + b"1]",
        b"[" + b'{"a":1,"a":1},' * 70_000 + b"1]",
        b'["' + b"\\ud800" * 170_000 + b'"]',
    ],
    ids=["brackets", "braces", "quotes", "arrays", "objects", "duplicates", "surrogates"],
)
def test_a_hostile_mebibyte_is_answered_within_two_seconds_and_never_blows_the_stack(raw: bytes) -> None:
    started = time.perf_counter()
    _, problems = outcome(raw)
    assert time.perf_counter() - started < 2
    assert len(problems) <= 100
    assert all(len(problem.text) < 600 and len(problem.pointer) < 600 for problem in problems)


def test_a_parsed_value_is_checked_without_recursing_into_it() -> None:
    deep: list[Any] = []
    for _ in range(100_000):
        deep = [deep]
    [problem] = check_ijson(deep)
    assert problem.pointer == "/0" * 64


@pytest.mark.parametrize(
    ("value", "pointer"),
    [
        ({1: 2}, "/1"),
        ({"a": {3}}, "/a"),
        ([float("nan")], "/0"),
        ([2**53], "/0"),
        (["\ud800"], "/0"),
        ({"a\0": 1}, None),
    ],
)
def test_a_python_value_that_json_has_not_is_named(value: Any, pointer: str | None) -> None:
    [problem] = check_ijson(value)
    assert pointer is None or problem.pointer == pointer
