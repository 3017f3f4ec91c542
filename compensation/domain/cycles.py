"""Cycles of a directed graph, named one by one."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from graphlib import CycleError, TopologicalSorter

MAX_CYCLES = 20


def find_cycles(arcs: Iterable[tuple[str, str]]) -> Iterator[list[str]]:
    """Cycles as paths `[a, b, …, a]` along the arcs, each after breaking the ones before; at most `MAX_CYCLES`."""
    targets: dict[str, set[str]] = {}
    for source, target in arcs:
        targets.setdefault(source, set()).add(target)
    for _ in range(MAX_CYCLES):
        cycle = _one_cycle(targets)
        if cycle is None:
            return
        yield cycle
        targets[cycle[0]].discard(cycle[1])


def _one_cycle(targets: dict[str, set[str]]) -> list[str] | None:
    try:
        TopologicalSorter(targets).prepare()
    except CycleError as error:
        # graphlib reads an arc as "depends on" and tells a cycle against the arcs.
        path: list[str] = error.args[1]
        return path[::-1]
    return None
