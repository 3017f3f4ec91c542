"""Small workflow and node type documents, for tests that need one thing to differ."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

ALL_TRIGGERS = ("node-failure", "run-cancel", "cap-breach", "operator-request")


def node_type(node_type_id: str, url: str, **different: Any) -> dict[str, Any]:
    """An HTTP node type that honours keys and reads back nothing; members given as None are left out."""
    document: dict[str, Any] = {
        "nodeTypeId": node_type_id,
        "kind": "http",
        "title": node_type_id,
        "system": "payments",
        "request": {"method": "POST", "url": url, "body": "$input"},
        "inputSchema": {"type": "object"},
        "idempotency": {"header": "Idempotency-Key", "honoured": True},
        "success": {"status": [200, 201]},
        "receipt": "$.receiptId",
        "settleMs": 20,
        "retry": {"maxAttempts": 3, "backoffMs": 5},
        "timeoutMs": 3_000,
        "maxConcurrency": 50,
        **different,
    }
    return {name: value for name, value in document.items() if value is not None}


def manual_type(node_type_id: str) -> dict[str, Any]:
    """A node type that a person does."""
    return {"nodeTypeId": node_type_id, "kind": "manual", "title": node_type_id, "inputSchema": {"type": "object"}}


def readback(base_url: str) -> dict[str, Any]:
    """How the sandbox is asked whether an effect was applied."""
    return {
        "method": "GET",
        "url": f"{base_url}/effects/{{key}}",
        "applied": {"status": [200], "path": "$.state", "equals": "applied"},
        "notApplied": {"status": [404]},
    }


def node(node_id: str, inverse: str | None = None, **different: Any) -> dict[str, Any]:
    """A node; with `inverse` one whose inverse takes `{"id": its own output's id}`. `different` goes into its
    compensation object, or into the node when it has none."""
    bare = {
        "id": node_id,
        "typeId": "test.forward",
        "name": node_id,
        "position": {"x": 0, "y": 0},
        "config": {},
        "inputs": {},
    }
    if inverse is None:
        return {**bare, **different}
    mapping = {"id": f"${{nodes.{node_id}.output.id}}"}
    return {**bare, "compensation": {"nodeTypeId": inverse, "inputMapping": mapping, **different}}


def edges(*pairs: tuple[str, str]) -> list[dict[str, Any]]:
    """Edges between nodes."""
    return [{"id": f"{source}--{target}", "sourceNodeId": source, "targetNodeId": target} for source, target in pairs]


def workflow(
    workflow_id: str,
    nodes: Sequence[Mapping[str, Any]],
    *,
    pairs: Iterable[tuple[str, str]] = (),
    policy: Mapping[str, Any] | None = None,
    variables: Sequence[Mapping[str, Any]] = (),
) -> dict[str, Any]:
    """A workflow with a policy that lists every trigger; `policy` adds to it or replaces its members."""
    return {
        "id": workflow_id,
        "name": workflow_id,
        "version": "1.0",
        "nodes": [dict(each) for each in nodes],
        "edges": edges(*pairs),
        "triggers": [{"id": "manual", "type": "manual", "enabled": True}],
        "variables": [dict(each) for each in variables],
        "metadata": {},
        "settings": {"compensation": {"triggers": list(ALL_TRIGGERS), **(policy or {})}},
    }
