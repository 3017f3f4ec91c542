"""Both ordering models against an independent, naive oracle (CMP-320, CMP-321)."""

from __future__ import annotations

import time
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from compensation.domain.ordering import Orderable, Ordered, order
from compensation.domain.states import OrderingModel

NODES = "abcdefg"
# Arcs only lead forward in the alphabet, so the graph is a DAG.
EDGES = st.sets(st.tuples(st.sampled_from(NODES), st.sampled_from(NODES)).filter(lambda pair: pair[0] < pair[1]))
PLANS = st.lists(st.tuples(st.sampled_from(NODES), st.booleans()), min_size=1, max_size=10).flatmap(
    lambda made: st.permutations(range(1, len(made) + 1)).map(
        lambda ordinals: [
            Orderable(f"{node_id}{at}", node_id, at, irreversible)
            for (node_id, irreversible), at in zip(made, ordinals, strict=True)
        ]
    )
)


def everything_before(ordered: list[Ordered]) -> dict[str, set[str]]:
    """The transitive closure of the predecessors."""
    closure: dict[str, set[str]] = {}
    for entry in sorted(ordered, key=lambda each: each.position):
        closure[entry.key] = {*entry.predecessors}.union(*(closure[key] for key in entry.predecessors))
    return closure


def depends_on(target: str, source: str, edges: set[tuple[str, str]]) -> bool:
    return any(
        (source, middle) in edges and (middle == target or depends_on(target, middle, edges)) for middle in NODES
    )


@given(PLANS)
def test_cmp_320_strictly_descending_completion_ordinal(plan: list[Orderable]) -> None:
    ordered = order(plan, model=OrderingModel.REVERSE_COMPLETION)
    ordinal = {entry.key: entry.ordinal for entry in plan}
    assert [each.position for each in ordered] == list(range(1, len(plan) + 1))
    assert all(ordinal[one.key] > ordinal[next_.key] for one, next_ in pairwise(ordered))


@given(PLANS)
def test_cmp_320_one_at_a_time_through_irreversible_entries(plan: list[Orderable]) -> None:
    before = everything_before(order(plan, model=OrderingModel.REVERSE_COMPLETION))
    for entry in plan:
        later = {each.key for each in plan if each.ordinal > entry.ordinal and not each.irreversible}
        assert before[entry.key] == later


@given(PLANS, EDGES)
def test_cmp_321_an_entry_waits_for_everything_that_depended_on_it(
    plan: list[Orderable], edges: set[tuple[str, str]]
) -> None:
    before = everything_before(order(plan, model=OrderingModel.DEPENDENCY_GRAPH, edges=edges))
    for entry in plan:
        dependants = {
            each.key for each in plan if not each.irreversible and depends_on(each.node_id, entry.node_id, edges)
        }
        assert before[entry.key] == dependants


@given(PLANS, EDGES, st.sampled_from(OrderingModel))
def test_every_entry_has_one_position_after_its_predecessors(
    plan: list[Orderable], edges: set[tuple[str, str]], model: OrderingModel
) -> None:
    ordered = order(plan, model=model, edges=edges)
    position = {each.key: each.position for each in ordered}
    assert sorted(position.values()) == list(range(1, len(plan) + 1))
    assert all(position[key] < each.position for each in ordered for key in each.predecessors)


@given(PLANS, EDGES, st.sampled_from(OrderingModel))
def test_cmp_203_an_irreversible_entry_blocks_nothing(
    plan: list[Orderable], edges: set[tuple[str, str]], model: OrderingModel
) -> None:
    irreversible = {entry.key for entry in plan if entry.irreversible}
    assert not [each for each in order(plan, model=model, edges=edges) if each.predecessors & irreversible]


@given(PLANS, EDGES, st.sampled_from(OrderingModel), st.randoms(use_true_random=False))
def test_the_order_does_not_depend_on_how_the_entries_are_listed(
    plan: list[Orderable], edges: set[tuple[str, str]], model: OrderingModel, random: Any
) -> None:
    shuffled = list(plan)
    random.shuffle(shuffled)
    assert order(shuffled, model=model, edges=edges) == order(plan, model=model, edges=edges)


def test_cmp_321_unordered_entries_stand_by_descending_ordinal_and_wait_alike() -> None:
    """The shape of the travel example: budget → three bookings → payment."""
    plan = [Orderable(name, name, at) for at, name in enumerate(["budget", "flight", "hotel", "car", "pay"], start=1)]
    booked = [(("budget", each), (each, "pay")) for each in ("flight", "hotel", "car")]
    ordered = order(plan, model=OrderingModel.DEPENDENCY_GRAPH, edges=[pair for both in booked for pair in both])
    assert [each.key for each in ordered] == ["pay", "car", "hotel", "flight", "budget"]
    assert [set(each.predecessors) for each in ordered] == [
        set(),
        {"pay"},
        {"pay"},
        {"pay"},
        {"car", "hotel", "flight"},
    ]


def test_cmp_321_all_invocations_of_a_node_wait_and_are_waited_for() -> None:
    plan = [Orderable("a1", "a", 1), Orderable("b2", "b", 2), Orderable("a3", "a", 3), Orderable("b4", "b", 4)]
    ordered = order(plan, model=OrderingModel.DEPENDENCY_GRAPH, edges=[("a", "b")])
    waits = {each.key: set(each.predecessors) for each in ordered}
    assert waits == {"b4": set(), "b2": set(), "a3": {"b2", "b4"}, "a1": {"b2", "b4"}}


def test_cmp_321_a_node_outside_the_plan_passes_the_dependency_on() -> None:
    plan = [Orderable("a", "a", 1), Orderable("c", "c", 2)]
    chain = [("a", "outside"), ("outside", "also-outside"), ("also-outside", "c")]
    ordered = order(plan, model=OrderingModel.DEPENDENCY_GRAPH, edges=chain)
    assert {each.key: set(each.predecessors) for each in ordered} == {"c": set(), "a": {"c"}}


@pytest.mark.parametrize("model", OrderingModel)
def test_five_thousand_entries_are_ordered_within_two_seconds(model: OrderingModel) -> None:
    names = [f"n{at}" for at in range(5000)]
    plan = [Orderable(name, name, at) for at, name in enumerate(names)]
    started = time.perf_counter()
    ordered = order(plan, model=model, edges=list(pairwise(names)))
    assert time.perf_counter() - started < 2
    assert [each.key for each in ordered] == names[::-1]


def test_five_thousand_invocations_of_two_nodes_are_ordered_within_two_seconds() -> None:
    plan = [Orderable(str(at), "ab"[at % 2], at) for at in range(5000)]
    started = time.perf_counter()
    order(plan, model=OrderingModel.DEPENDENCY_GRAPH, edges=[("a", "b")])
    assert time.perf_counter() - started < 2
