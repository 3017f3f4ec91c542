"""Builders of small, well-formed documents, and where the vectors and examples are."""

from __future__ import annotations

import copy
import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from hypothesis import strategies as st

from compensation.domain.canonical import MAX_INTEGER
from compensation.domain.mapping import CommittedEffect

TESTS = Path(__file__).parents[2]
SHARED = TESTS.parents[1] / "shared"

Document = dict[str, Any]
Change = Callable[[Document], object]


def shared(kind: str) -> Path:
    """The folder of `vectors` or `examples`: the shared one where there is one, else our copy."""
    folder = SHARED / kind
    return folder if folder.is_dir() else TESTS / kind


def read(kind: str, name: str) -> Any:
    return json.loads((shared(kind) / name).read_text(encoding="utf-8"))


def node(node_id: str, **more: Any) -> Document:
    return {
        "id": node_id,
        "typeId": f"test.{node_id}",
        "name": node_id,
        "position": {"x": 0, "y": 0},
        "config": {},
        "inputs": {},
        **more,
    }


def undone_by(node_type_id: str, mapping: Mapping[str, Any] | None = None, **more: Any) -> Document:
    return {"nodeTypeId": node_type_id, "inputMapping": dict(mapping or {}), **more}


def edge(source: str, target: str) -> Document:
    return {"id": f"{source}--{target}", "sourceNodeId": source, "targetNodeId": target}


def workflow(
    nodes: list[Document],
    *edges: Document,
    policy: Document | None = None,
    variables: list[Document] | None = None,
) -> Document:
    return {
        "id": "wf",
        "name": "A workflow",
        "version": "1",
        "nodes": nodes,
        "edges": list(edges),
        "triggers": [{"id": "manual", "type": "manual", "enabled": True}],
        "variables": variables or [],
        "metadata": {"tags": ["test"]},
        "settings": {} if policy is None else {"compensation": policy},
    }


EVERY_TRIGGER = ["node-failure", "run-cancel", "cap-breach", "operator-request"]


def booking() -> Document:
    """Two nodes, one with an inverse, under a policy: the least that unwinds."""
    return workflow(
        [
            node("book", compensation=undone_by("test.unbook", {"id": "${nodes.book.output.id}"})),
            node("mail", irreversibleEffect=True),
        ],
        edge("book", "mail"),
        policy={"triggers": EVERY_TRIGGER},
        variables=[{"name": "amount", "type": "number", "required": True}],
    )


def http_node_type(**more: Any) -> Document:
    return {
        "nodeTypeId": "test.unbook",
        "kind": "http",
        "title": "Cancel a booking",
        "system": "travel",
        "request": {"method": "POST", "url": "https://travel.example/cancel/{input.id}?k={key}"},
        **more,
    }


def changed(document: Document, change: Change) -> Document:
    """A deep copy with one change made to it."""
    made = copy.deepcopy(document)
    change(made)
    return made


def committed(node_id: str, ordinal: int, output: Any = None) -> CommittedEffect:
    return CommittedEffect(node_id, f"run-1:{node_id}:{ordinal}", ordinal, {} if output is None else output)


TEXT = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=12)
NUMBERS = st.integers(-MAX_INTEGER, MAX_INTEGER) | st.floats(-1e15, 1e15, allow_nan=False)
JSON_VALUES = st.recursive(
    st.none() | st.booleans() | NUMBERS | TEXT,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(TEXT, inner, max_size=4),
    max_leaves=12,
)
