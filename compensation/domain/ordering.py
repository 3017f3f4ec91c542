"""In which order inverses run (CMP-320, CMP-321)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from graphlib import TopologicalSorter

from compensation.domain.states import OrderingModel


@dataclass(frozen=True, slots=True)
class Orderable:
    """A plan entry as ordering sees it; `key` is any unique name of it."""

    key: str
    node_id: str
    ordinal: int
    irreversible: bool = False


@dataclass(frozen=True, slots=True)
class Ordered:
    """Position from 1 in a list where every entry stands after its predecessors. Predecessors are the nearest
    entries that run something: an irreversible one is passed through, so it blocks nothing by itself."""

    key: str
    position: int
    predecessors: frozenset[str]


def order(
    entries: Sequence[Orderable], *, model: OrderingModel, edges: Iterable[tuple[str, str]] = ()
) -> list[Ordered]:
    """The entries by position. `edges` are the workflow's `(source, target)` node pairs; they must be a DAG under
    `dependency-graph` (registration refuses others), else `graphlib.CycleError`."""
    descending = sorted(entries, key=lambda entry: -entry.ordinal)
    if model == OrderingModel.REVERSE_COMPLETION:
        return _reverse_completion(descending)
    return _dependency_graph(descending, edges)


def _reverse_completion(descending: Sequence[Orderable]) -> list[Ordered]:
    ordered: list[Ordered] = []
    nearest: frozenset[str] = frozenset()
    for position, entry in enumerate(descending, start=1):
        ordered.append(Ordered(entry.key, position, nearest))
        if not entry.irreversible:
            nearest = frozenset({entry.key})
    return ordered


def _dependency_graph(descending: Sequence[Orderable], edges: Iterable[tuple[str, str]]) -> list[Ordered]:
    runs_at: dict[str, frozenset[str]] = {}
    for entry in descending:
        keys = runs_at.get(entry.node_id, frozenset())
        runs_at[entry.node_id] = keys if entry.irreversible else keys | {entry.key}
    waits_for = _waits_for(runs_at, edges)
    rank = _ranks(descending, waits_for)
    ranked = sorted(descending, key=lambda entry: (rank[entry.node_id], -entry.ordinal))
    return [Ordered(entry.key, position, waits_for[entry.node_id]) for position, entry in enumerate(ranked, start=1)]


def _waits_for(runs_at: Mapping[str, frozenset[str]], edges: Iterable[tuple[str, str]]) -> dict[str, frozenset[str]]:
    """For each node the entries its inverses wait for: the nearest ones downstream that run something, through
    nodes that run nothing. All invocations of a node wait alike, so they share one set."""
    downstream: dict[str, set[str]] = {node_id: set() for node_id in runs_at}
    for source, target in edges:
        downstream.setdefault(source, set()).add(target)
    waits_for: dict[str, frozenset[str]] = {}
    for node_id in TopologicalSorter(downstream).static_order():
        fronts = {runs_at.get(target) or waits_for[target] for target in downstream.get(node_id, ())}
        waits_for[node_id] = fronts.pop() if len(fronts) == 1 else frozenset().union(*fronts)
    return waits_for


def _ranks(descending: Sequence[Orderable], waits_for: Mapping[str, frozenset[str]]) -> dict[str, int]:
    """The longest way, in entries, from each node of the plan to an entry that waits for nothing."""
    node_of = {entry.key: entry.node_id for entry in descending}
    before = {node_id: {node_of[key] for key in waits_for[node_id]} for node_id in node_of.values()}
    ranks: dict[str, int] = {}
    for node_id in TopologicalSorter(before).static_order():
        ranks[node_id] = 1 + max((ranks[each] for each in before[node_id]), default=-1)
    return ranks
