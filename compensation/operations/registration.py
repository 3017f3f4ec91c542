"""Registering definitions: checked whole, refused whole, versioned, never changed (CMP-104, 107)."""

from collections.abc import Iterable, Mapping
from typing import Any, TypeVar

from django.conf import settings
from django.db.models import F

from audit import authority
from audit.errors import CapabilityRequired, ValidationFailed
from audit.models import Tenant
from audit.principals import Principal
from compensation.domain.canonical import digest
from compensation.domain.node_type import NodeTypeSpec, check_node_type
from compensation.domain.problems import Problem, to_wire
from compensation.domain.workflow import check_workflow
from compensation.models import NodeType, NodeTypeVersion, Workflow, WorkflowVersion
from compensation.operations.acting import acting_on_tenant

Row = TypeVar("Row", Workflow, NodeType)


def register_workflow(*, actor: Principal, document: Mapping[str, Any]) -> tuple[WorkflowVersion, bool]:
    """Store a definition as the workflow's next version; ``(version, False)`` when it equals the newest one.

    Raises `ValidationFailed` with every problem at once, nothing stored (CMP-104).
    """
    resource = authority.Resource(type="workflow", id=str(document.get("id", "")))
    with acting_on_tenant(actor=actor, action="workflows:write", permission="register", resource=resource) as act:
        refuse_malformed_workflow(tenant=actor.tenant, document=document)
        workflow = _locked(Workflow, actor.tenant, workflow_id=document["id"])
        newest = WorkflowVersion.objects.filter(workflow=workflow, number=workflow.latest).first()
        if newest is not None and newest.digest == digest(document):
            act.changed = False
            return newest, False
        return _next_workflow_version(actor, workflow, document), True


def refuse_malformed_workflow(*, tenant: Tenant, document: Mapping[str, Any]) -> None:
    """The dry run of a registration: raises what `register_workflow` would (CMP-101…110)."""
    if not settings.COMPENSATION_ENABLED and "compensation" in (document.get("settings") or {}):
        raise CapabilityRequired(
            "Compensation is switched off on this host; the workflow was not stored.",
            details={"requiredCapability": "compensation"},
        )
    _refuse("workflow", check_workflow(document, known_node_types=newest_versions(tenant).keys()))


def register_node_type(*, actor: Principal, document: Mapping[str, Any]) -> tuple[NodeTypeVersion, bool]:
    """Store a node type as its next version; ``(version, False)`` when it equals the newest one."""
    resource = authority.Resource(type="node-type", id=str(document.get("nodeTypeId", "")))
    with acting_on_tenant(
        actor=actor, action="node-types:write", permission="manage_node_types", resource=resource
    ) as act:
        _refuse("node type", check_node_type(document))
        node_type = _locked(NodeType, actor.tenant, node_type_id=document["nodeTypeId"])
        newest = NodeTypeVersion.objects.filter(node_type=node_type, number=node_type.latest).first()
        if newest is not None and newest.digest == digest(document):
            act.changed = False
            return newest, False
        return _next_node_type_version(actor, node_type, document), True


def newest_versions(tenant: Tenant) -> dict[str, NodeTypeVersion]:
    """The newest version of every node type of a tenant, by id."""
    newest = NodeTypeVersion.objects.filter(tenant=tenant, number=F("node_type__latest")).select_related("node_type")
    return {version.node_type.node_type_id: version for version in newest}


def _next_workflow_version(actor: Principal, workflow: Workflow, document: Mapping[str, Any]) -> WorkflowVersion:
    workflow.latest += 1
    workflow.save(update_fields=["latest"])
    return WorkflowVersion.objects.create(
        tenant=actor.tenant,
        workflow=workflow,
        number=workflow.latest,
        document=document,
        digest=digest(document),
        registered_by=actor.user,
    )


def _next_node_type_version(actor: Principal, node_type: NodeType, document: Mapping[str, Any]) -> NodeTypeVersion:
    spec = NodeTypeSpec.from_document(document)
    node_type.latest += 1
    node_type.max_concurrency = spec.max_concurrency
    node_type.save(update_fields=["latest", "max_concurrency"])
    return NodeTypeVersion.objects.create(
        tenant=actor.tenant,
        node_type=node_type,
        number=node_type.latest,
        kind=spec.kind,
        document=document,
        digest=digest(document),
        registered_by=actor.user,
    )


def _locked(model: type[Row], tenant: Tenant, **named: str) -> Row:
    """The row by name, made if new, under its lock, so that two registrations number one after the other."""
    model.objects.bulk_create([model(tenant=tenant, **named)], ignore_conflicts=True)
    return model.objects.select_for_update(of=("self",)).get(tenant=tenant, **named)


def _refuse(what: str, problems: Iterable[Problem]) -> None:
    found = to_wire(problems)
    if found:
        raise ValidationFailed(f"The {what} has {len(found)} problem(s); nothing was stored.", found)
