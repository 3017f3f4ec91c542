"""A workflow definition: checked whole when it is registered, read as a typed view ever after."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

from compensation.domain import workflow_shape
from compensation.domain.policy import (
    Bounds,
    Declaration,
    PolicySpec,
    check_policy,
    effective_approval,
    effective_bounds,
)
from compensation.domain.problems import Problem, capped
from compensation.domain.workflow_rules import cross_problems

__all__ = [
    "Bounds",
    "Declaration",
    "NodeSpec",
    "PolicySpec",
    "Variable",
    "WorkflowSpec",
    "check_workflow",
    "effective_approval",
    "effective_bounds",
]


@dataclass(frozen=True, slots=True)
class NodeSpec:
    """A node; `pointer` is where it stands in its document."""

    id: str
    type_id: str
    name: str
    pointer: str
    compensation: Declaration | None
    irreversible: bool
    disabled: bool

    @classmethod
    def from_document(cls, document: Mapping[str, Any], pointer: str) -> NodeSpec:
        declared = document.get("compensation")
        return cls(
            id=document["id"],
            type_id=document["typeId"],
            name=document["name"],
            pointer=pointer,
            compensation=None if declared is None else Declaration.from_document(declared),
            irreversible=document.get("irreversibleEffect", False),
            disabled=document.get("disabled", False),
        )


@dataclass(frozen=True, slots=True)
class Variable:
    """A declared run input; a `sensitive` one is masked except for those who may see inputs (CMP-901)."""

    name: str
    type: str
    required: bool = False
    sensitive: bool = False

    @classmethod
    def from_document(cls, document: Mapping[str, Any]) -> Variable:
        return cls(
            document["name"], document["type"], document.get("required", False), document.get("sensitive", False)
        )


@dataclass(frozen=True, slots=True)
class WorkflowSpec:
    """The typed view of a registered document; `policy` is None where no unwind ever starts (CMP-106)."""

    id: str
    name: str
    nodes: Mapping[str, NodeSpec]
    edges: tuple[tuple[str, str], ...]
    variables: Mapping[str, Variable]
    policy: PolicySpec | None

    @classmethod
    def from_document(cls, document: Mapping[str, Any]) -> WorkflowSpec:
        """The spec of a document that `check_workflow` found no fault with."""
        policy = document["settings"].get("compensation")
        nodes = (NodeSpec.from_document(node, f"/nodes/{index}") for index, node in enumerate(document["nodes"]))
        return cls(
            id=document["id"],
            name=document["name"],
            nodes={node.id: node for node in nodes},
            edges=tuple((edge["sourceNodeId"], edge["targetNodeId"]) for edge in document["edges"]),
            variables={each["name"]: Variable.from_document(each) for each in document["variables"]},
            policy=None if policy is None else PolicySpec.from_document(policy),
        )

    def owes(self, node_id: str) -> bool:
        """Whether a commit of this node is to be compensated when an unwind starts."""
        node = self.nodes.get(node_id)
        return node is not None and node.compensation is not None


def check_workflow(
    document: object, *, known_node_types: Collection[str], manual_intervention: bool = True
) -> list[Problem]:
    """Everything that keeps a document from being registered, at once (CMP-101 … CMP-110); never raises.

    `known_node_types` are the ids in the registry of the workflow's tenant. No problem: it may be stored.
    """
    check = workflow_shape.workflow(partial(check_policy, manual_intervention=manual_intervention))
    problems = check(document, "")
    if isinstance(document, dict):
        problems += cross_problems(document, known_node_types=known_node_types)
    return capped(problems)
