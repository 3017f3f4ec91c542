"""Registered definitions as the wire shows them."""

from collections.abc import Sequence
from typing import Any, TypeVar

from django.db.models import QuerySet

from audit.errors import NotFound
from audit.principals import Principal
from audit.times import wire_time
from compensation.models import NodeType, NodeTypeVersion, Workflow, WorkflowVersion
from compensation.queries.access import visible_node_types, visible_workflows
from compensation.queries.holding import node_type_holds

Version = TypeVar("Version", WorkflowVersion, NodeTypeVersion)


def workflow_wire(version: WorkflowVersion) -> dict[str, Any]:
    """One version of a workflow with its document as it was registered."""
    return {**_workflow_head(version), "workflow": version.document}


def workflow_wires(workflows: Sequence[Workflow]) -> list[dict[str, Any]]:
    """The newest version of each, without the documents: one query."""
    newest = _newest(WorkflowVersion.objects.defer("document"), "workflow", workflows)
    return [_workflow_head(newest[workflow.pk, workflow.latest]) for workflow in workflows]


def node_type_wire(version: NodeTypeVersion) -> dict[str, Any]:
    """One version of a node type with its document and how the node type stands."""
    return {**_node_type_head(version), "nodeType": version.document}


def node_type_wires(node_types: Sequence[NodeType]) -> list[dict[str, Any]]:
    newest = _newest(NodeTypeVersion.objects.defer("document"), "node_type", node_types)
    return [_node_type_head(newest[node_type.pk, node_type.latest]) for node_type in node_types]


def find_workflow(principal: Principal, workflow_id: str, number: int | None = None) -> WorkflowVersion:
    """A version that may be seen, the newest when no number is given; else `NotFound`."""
    workflows = visible_workflows(principal).filter(workflow_id=workflow_id)
    return _version(WorkflowVersion.objects.filter(workflow__in=workflows).select_related("workflow"), number)


def find_node_type(principal: Principal, node_type_id: str, number: int | None = None) -> NodeTypeVersion:
    node_types = visible_node_types(principal).filter(node_type_id=node_type_id)
    return _version(NodeTypeVersion.objects.filter(node_type__in=node_types).select_related("node_type"), number)


def _version(versions: QuerySet[Version], number: int | None) -> Version:
    wanted = versions if number is None else versions.filter(number=number)
    found = wanted.order_by("-number").first()
    if found is None:
        raise NotFound
    return found


def _newest(versions: QuerySet[Any], parent: str, parents: Sequence[Any]) -> dict[tuple[Any, int], Any]:
    numbers = {each.latest for each in parents}
    rows = versions.filter(**{f"{parent}__in": parents, "number__in": numbers}).select_related(parent)
    return {(getattr(row, f"{parent}_id"), row.number): row for row in rows}


def _workflow_head(version: WorkflowVersion) -> dict[str, Any]:
    return {
        "workflowId": version.workflow.workflow_id,
        "version": version.number,
        "latestVersion": version.workflow.latest,
        "digest": version.digest,
        "registeredAt": wire_time(version.registered_at),
    }


def _node_type_head(version: NodeTypeVersion) -> dict[str, Any]:
    node_type = version.node_type
    return {
        "nodeTypeId": node_type.node_type_id,
        "version": version.number,
        "latestVersion": node_type.latest,
        "kind": version.kind,
        "digest": version.digest,
        "registeredAt": wire_time(version.registered_at),
        "quorum": node_type.quorum,
        "heldAt": wire_time(node_type.held_at),
        "heldBy": node_type_holds(node_type),
        "breakerUntil": wire_time(node_type.breaker_until),
    }
