"""What only shows when the parts of a workflow document are read together (CMP-102, CMP-104, CMP-110).

Every rule reads whatever is well-formed and leaves the rest to the shape, so that all errors come in one answer.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from itertools import chain

from compensation.domain.cycles import find_cycles
from compensation.domain.mapping import check_mapping
from compensation.domain.problems import Problem, few, join
from compensation.domain.shapes import duplicates
from compensation.domain.states import OrderingModel

Document = Mapping[str, object]


def cross_problems(document: Document, *, known_node_types: Collection[str]) -> list[Problem]:
    """All faults between parts, in the order of the rules below."""
    return list(
        chain(
            _duplicates(document),
            _loose_edges(document),
            _loose_inputs(document),
            _contradicting_declarations(document),
            _unknown_inverses(document, known_node_types),
            _compensation_cycles(document),
            _dependency_cycles(document),
            _mappings(document),
        )
    )


def _objects(document: Document, name: str) -> list[tuple[int, Document]]:
    """The well-formed items of a list member, with their indices."""
    items = document.get(name)
    return (
        [(index, item) for index, item in enumerate(items) if isinstance(item, dict)] if isinstance(items, list) else []
    )


def _named(document: Document, name: str, key: str) -> Collection[str]:
    """The string member `key` of the items of a list member, in the order of the document."""
    values = (item.get(key) for _, item in _objects(document, name))
    return dict.fromkeys(value for value in values if isinstance(value, str)).keys()


def _inverses(document: Document) -> Iterator[tuple[int, Document, Document, str]]:
    """`(index, node, declaration, inverse node type id)` of every node that names one."""
    for index, node in _objects(document, "nodes"):
        declaration = node.get("compensation")
        inverse = declaration.get("nodeTypeId") if isinstance(declaration, dict) else None
        if isinstance(declaration, dict) and isinstance(inverse, str):
            yield index, node, declaration, inverse


def _duplicates(document: Document) -> Iterator[Problem]:
    for name, key in (("nodes", "id"), ("edges", "id"), ("triggers", "id"), ("variables", "name")):
        items = document.get(name)
        if isinstance(items, list):
            yield from duplicates(items, f"/{name}", member=key)


def _loose_edges(document: Document) -> Iterator[Problem]:
    node_ids = _named(document, "nodes", "id")
    for index, edge in _objects(document, "edges"):
        for end in ("sourceNodeId", "targetNodeId"):
            node_id = edge.get(end)
            if isinstance(node_id, str) and node_id not in node_ids:
                yield Problem(f"/edges/{index}/{end}", "names no node of this workflow", node_id, few(node_ids))


def _loose_inputs(document: Document) -> Iterator[Problem]:
    known = {
        ("connection", "nodeId"): _named(document, "nodes", "id"),
        ("variable", "variableName"): _named(document, "variables", "name"),
    }
    for index, node in _objects(document, "nodes"):
        inputs = node.get("inputs")
        for port, value in inputs.items() if isinstance(inputs, dict) else ():
            for (kind, key), names in known.items():
                name = value.get(key) if isinstance(value, dict) and value.get("type") == kind else None
                if isinstance(name, str) and name not in names:
                    pointer = join(join(f"/nodes/{index}/inputs", port), key)
                    yield Problem(pointer, "names nothing in this workflow", name, few(names))


def _contradicting_declarations(document: Document) -> Iterator[Problem]:
    for index, node in _objects(document, "nodes"):
        if node.get("irreversibleEffect") is True and "compensation" in node:
            yield Problem(
                f"/nodes/{index}/irreversibleEffect",
                "stands beside `compensation`: an effect is either undone or irreversible",
                allowed="one of the two",
            )


def _unknown_inverses(document: Document, known_node_types: Collection[str]) -> Iterator[Problem]:
    for index, _, _, inverse in _inverses(document):
        if inverse not in known_node_types:
            pointer = f"/nodes/{index}/compensation/nodeTypeId"
            yield Problem(pointer, "is not a registered node type of this tenant", inverse, few(known_node_types))


def _compensation_cycles(document: Document) -> Iterator[Problem]:
    arcs: dict[tuple[str, str], int] = {}
    for index, node, _, inverse in _inverses(document):
        type_id = node.get("typeId")
        if isinstance(type_id, str):
            arcs.setdefault((type_id, inverse), index)
    for cycle in find_cycles(arcs):
        pointer = f"/nodes/{arcs[cycle[0], cycle[1]]}/compensation/nodeTypeId"
        yield Problem(pointer, "closes a compensation cycle", " → ".join(cycle), "inverses that end somewhere")


def _dependency_cycles(document: Document) -> Iterator[Problem]:
    settings = document.get("settings")
    policy = settings.get("compensation") if isinstance(settings, dict) else None
    if not isinstance(policy, dict) or policy.get("orderingModel") != OrderingModel.DEPENDENCY_GRAPH:
        return
    arcs: dict[tuple[str, str], int] = {}
    for index, edge in _objects(document, "edges"):
        source, target = edge.get("sourceNodeId"), edge.get("targetNodeId")
        if isinstance(source, str) and isinstance(target, str):
            arcs.setdefault((source, target), index)
    for cycle in find_cycles(arcs):
        pointer = f"/edges/{arcs[cycle[0], cycle[1]]}"
        allowed = f"a graph without cycles, as `{OrderingModel.DEPENDENCY_GRAPH}` needs"
        yield Problem(pointer, "closes a cycle of edges", " → ".join(cycle), allowed)


def _mappings(document: Document) -> Iterator[Problem]:
    node_ids = _named(document, "nodes", "id")
    variables = _named(document, "variables", "name")
    for index, _, declaration, _ in _inverses(document):
        mapping = declaration.get("inputMapping")
        if isinstance(mapping, dict):
            pointer = f"/nodes/{index}/compensation/inputMapping"
            yield from check_mapping(mapping, node_ids=node_ids, variable_names=variables, pointer=pointer)
