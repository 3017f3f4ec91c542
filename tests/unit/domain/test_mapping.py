"""Mapping values: their grammar and how they resolve (CMP-110, CMP-111, CMP-112)."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from compensation.domain.canonical import canonical
from compensation.domain.mapping import (
    BadReferenceError,
    NodeOutput,
    Recorded,
    RunInput,
    UnresolvedReferenceError,
    check_mapping,
    read_token,
    resolve,
    split_tokens,
)
from tests.unit.domain.support import JSON_VALUES, committed

NODE_IDS = st.text("ab.-", min_size=1, max_size=8).filter(lambda text: text not in {".", ".."})
NAMES = st.text(st.characters(exclude_characters="}", exclude_categories=["Cs"]), min_size=1, max_size=12)
PLAIN = st.text(st.characters(exclude_characters="$", exclude_categories=["Cs"]), max_size=12)
FACTS = Recorded.of(
    [committed("a", 1, {"id": "A-1", "n": 7, "none": None, "o": {"k": [1]}}), committed("b", 2, {"id": "${inputs.x}"})],
    {"x": "X", "amount": 12.5, "yes": True},
)


def value_of(mapping: Any, recorded: Recorded = FACTS, *, own: str = "a", at: int = 1, nodes: str = "a b c") -> Any:
    return resolve(mapping, node_ids=set(nodes.split()), own_node_id=own, own_ordinal=at, recorded=recorded)


def faults(mapping: Any, *, nodes: str = "a b", inputs: str = "x") -> list[tuple[str, str]]:
    found = check_mapping(
        mapping, node_ids=set(nodes.split()), variable_names=set(inputs.split()), pointer="/nodes/0/m"
    )
    return [(problem.pointer, problem.message) for problem in found]


@given(NODE_IDS, NAMES)
def test_cmp_110_a_token_names_the_node_and_port_it_was_written_from(node_id: str, port: str) -> None:
    read = read_token(f"${{nodes.{node_id}.output.{port}}}", {node_id})
    assert read == NodeOutput(node_id, port)


@given(NAMES)
def test_cmp_110_an_input_token_names_the_input_it_was_written_from(name: str) -> None:
    assert read_token(f"${{inputs.{name}}}", set()) == RunInput(name)


@given(
    st.sets(st.sampled_from(["a", "b", "a.output", "a.output.b", "b.output.b", "a.output.output"]), min_size=1),
    st.data(),
)
def test_cmp_110_a_token_with_two_valid_splits_is_refused_and_any_other_is_read(nodes: set[str], data: Any) -> None:
    node_id = data.draw(st.sampled_from(sorted(nodes)))
    port = data.draw(st.sampled_from(["p", "b.output.p", "output.b", "b.output.b.output.p"]))
    content = f"{node_id}.output.{port}"
    readings = [each for each in nodes if content.startswith(f"{each}.output.") and content != f"{each}.output."]
    if len(readings) == 1:
        assert read_token(f"${{nodes.{content}}}", nodes) == NodeOutput(node_id, port)
    else:
        with pytest.raises(BadReferenceError, match="two ways"):
            read_token(f"${{nodes.{content}}}", nodes)


@given(st.lists(PLAIN | NAMES.map("${{inputs.{}}}".format), max_size=6))
def test_cmp_110_tokens_and_text_between_them_lose_nothing(parts: list[str]) -> None:
    assert "".join(split_tokens("".join(parts))) == "".join(parts)


@pytest.mark.parametrize(
    ("token", "why"),
    [
        ("${nodes.a.output.}", "known form"),
        ("${nodes..output.id}", "known form"),
        ("${nodes.a.id}", "known form"),
        ("${nodes.a.outputs.id}", "known form"),
        ("${inputs.}", "known form"),
        ("${inputs}", "known form"),
        ("${}", "known form"),
        ("${env.HOME}", "known form"),
        ("${secrets.key}", "known form"),
        ("${ inputs.x}", "known form"),
        ("${INPUTS.x}", "known form"),
        ("${inputs.x", "not closed"),
        ("${", "not closed"),
        ("before ${run.id} after", "known form"),
        ("${nodes.zz.output.id}", "unknown node"),
        ("${inputs.nope}", "does not declare"),
    ],
)
def test_cmp_110_any_other_reference_is_refused_with_its_place(token: str, why: str) -> None:
    [(pointer, message)] = faults({"deep": [{"k/v": token}]})
    assert pointer == "/nodes/0/m/deep/0/k~1v"
    assert why in message


def test_cmp_110_two_nodes_make_one_token_ambiguous() -> None:
    mapping = {"v": "${nodes.a.output.b.output.c}"}
    assert faults(mapping, nodes="a") == []
    assert faults(mapping, nodes="a.output.b") == []
    [(_, message)] = faults(mapping, nodes="a a.output.b")
    assert "two ways" in message
    [(_, message)] = faults({"v": "${nodes.a.output.output.b}"}, nodes="a a.output")
    assert "two ways" in message


def test_cmp_104_every_bad_reference_of_a_mapping_is_named() -> None:
    assert [pointer for pointer, _ in faults({"one": "${x}", "two": ["${y} ${inputs.x} ${z}"]})] == [
        "/nodes/0/m/one",
        "/nodes/0/m/two/0",
        "/nodes/0/m/two/0",
    ]


def test_cmp_110_references_of_one_mapping_are_bounded() -> None:
    [(_, message)] = faults({"v": "${inputs.x}" * 257})
    assert "257 references" in message


@pytest.mark.parametrize("literal", ["$", "$ {inputs.x}", "{inputs.x}", "}", "$$", "100 $", "a}b{c"])
def test_cmp_110_what_is_no_token_is_itself(literal: str) -> None:
    assert faults({"v": literal}) == []
    assert value_of({"v": literal}) == {"v": literal}


@given(JSON_VALUES)
def test_cmp_111_json_without_tokens_becomes_itself(value: Any) -> None:
    assume("${" not in json.dumps(value))
    assert value_of(value) == value


@given(JSON_VALUES)
def test_cmp_111_an_exact_reference_gives_the_raw_typed_value(value: Any) -> None:
    recorded = Recorded.of([committed("a", 1, {"p": value})], {"i": value})
    assert value_of(["${nodes.a.output.p}", "${inputs.i}"], recorded) == [value, value]


@given(JSON_VALUES, PLAIN, PLAIN)
def test_cmp_111_inside_text_a_string_stands_verbatim_and_the_rest_as_canonical_json(
    value: Any, before: str, after: str
) -> None:
    assume(before or after)
    recorded = Recorded.of([], {"i": value})
    text = value if isinstance(value, str) else canonical(value).decode()
    assert value_of(f"{before}${{inputs.i}}{after}", recorded) == before + text + after


def test_cmp_111_a_result_is_never_scanned_again() -> None:
    assert value_of("${nodes.b.output.id}") == "${inputs.x}"
    assert value_of("<${nodes.b.output.id}>") == "<${inputs.x}>"
    split = Recorded.of([], {"l": "${inputs", "r": ".x}", "x": "leak"})
    assert value_of("${inputs.l}${inputs.r}", split) == "${inputs.x}"


def test_cmp_111_nested_values_are_walked_and_names_are_not() -> None:
    mapping = {"${inputs.x}": {"n": ["${nodes.a.output.n}", {"o": "${nodes.a.output.o}"}, None, 1.5]}}
    assert value_of(mapping) == {"${inputs.x}": {"n": [7, {"o": {"k": [1]}}, None, 1.5]}}


LOOPED = Recorded.of([committed(node_id, at, {"at": at}) for at, node_id in enumerate("babbab", start=1)], {})


@pytest.mark.parametrize(("at", "seen"), [(2, 1), (5, 4)])
def test_cmp_111_another_node_is_seen_as_of_its_last_commit_before(at: int, seen: int) -> None:
    assert value_of("${nodes.b.output.at}", LOOPED, own="a", at=at) == seen


def test_cmp_111_a_node_that_only_committed_later_is_seen_as_of_its_first_commit() -> None:
    assert value_of("${nodes.a.output.at}", LOOPED, own="b", at=1) == 2


@pytest.mark.parametrize("at", [1, 3, 4, 6])
def test_cmp_111_an_entry_sees_its_own_invocation_of_its_own_node(at: int) -> None:
    assert value_of("${nodes.b.output.at}", LOOPED, own="b", at=at) == at


@given(st.lists(st.sampled_from("abc"), min_size=1, max_size=12), st.data())
def test_cmp_111_invocations_follow_the_rule_as_written(order: list[str], data: Any) -> None:
    recorded = Recorded.of([committed(each, at, {"at": at}) for at, each in enumerate(order, start=1)], {})
    own_at = data.draw(st.integers(1, len(order)))
    other = data.draw(st.sampled_from(sorted(set(order))))
    own = order[own_at - 1]
    places = [at for at, each in enumerate(order, start=1) if each == other]
    before, after = [at for at in places if at < own_at], [at for at in places if at > own_at]
    expected = own_at if other == own else (before[-1] if before else after[0])
    assert value_of(f"${{nodes.{other}.output.at}}", recorded, own=own, at=own_at) == expected


@pytest.mark.parametrize(
    ("token", "why"),
    [
        ("${nodes.c.output.id}", "never committed"),
        ("${nodes.a.output.gone}", "no such port"),
        ("${inputs.gone}", "no such input"),
        ("text ${inputs.gone}", "no such input"),
        ("${nodes.unknown.output.id}", "unknown node"),
    ],
)
def test_cmp_112_a_reference_without_a_fact_names_itself_and_its_place(token: str, why: str) -> None:
    with pytest.raises(UnresolvedReferenceError) as caught:
        value_of({"list": [0, token]})
    assert why in caught.value.why
    assert caught.value.pointer == "/list/1"
    assert token.endswith(caught.value.reference)


def test_cmp_112_a_recorded_null_does_resolve() -> None:
    assert value_of({"v": "${nodes.a.output.none}", "t": "<${nodes.a.output.none}>"}) == {"v": None, "t": "<null>"}


def test_cmp_110_a_very_long_token_is_read_in_linear_time() -> None:
    token = "${nodes." + ".output." * 100_000 + "}"
    [(_, message)] = faults({"v": token})
    assert "unknown node" in message
