"""Workflows and node types: register, read, dry-run, hold and release."""

from typing import Any

from rest_framework.request import Request
from rest_framework.response import Response

from audit import authority
from compensation.api import bodies, request_schemas, schemas
from compensation.api.docs import described
from compensation.api.endpoint import Endpoint
from compensation.api.idempotency import once
from compensation.api.requests import PAGING, actor, body, paging, query, whole
from compensation.models import NodeType as NodeTypeRow
from compensation.models import Workflow as WorkflowRow
from compensation.operations import holds, registration
from compensation.operations.reading import readable_definition, require_scope, require_to_read
from compensation.queries import registry
from compensation.queries.access import visible_node_types, visible_workflows
from compensation.queries.paging import page

VERSION = {"version": whole(1)}


class Workflows(Endpoint):
    @described(
        summary="Register a workflow: 201 for a new version, 200 when it equals the newest one",
        tag="registry", body=schemas.WORKFLOW, ok={201: schemas.WORKFLOW_VERSION, 200: schemas.WORKFLOW_VERSION},
        errors=[422],
    )  # fmt: skip
    @once
    def post(self, request: Request) -> Response:
        document = body(request, bodies.document)
        version, created = registration.register_workflow(actor=actor(request), document=document)
        return Response(registry.workflow_wire(version), status=201 if created else 200)

    @described(summary="The workflows of the tenant, newest first", tag="registry", query=schemas.PAGING,
               ok={200: schemas.page_of("workflows", schemas.WORKFLOW_HEAD)})  # fmt: skip
    def get(self, request: Request) -> Response:
        values = query(request, PAGING)
        require_scope(actor=actor(request), action="definitions:read")
        found = page(visible_workflows(actor(request)).filter(latest__gte=1), **paging(values))
        return Response({"workflows": registry.workflow_wires(found.rows), "nextCursor": found.next_cursor})


class Workflow(Endpoint):
    @described(summary="One workflow, its newest version or the one asked for", tag="registry",
               query=[schemas.VERSION], ok={200: schemas.WORKFLOW_VERSION})  # fmt: skip
    def get(self, request: Request, workflow_id: str) -> Response:
        principal, number = actor(request), query(request, VERSION).get("version")
        readable_definition(actor=principal, kind=WorkflowRow, workflow_id=workflow_id)
        return Response(registry.workflow_wire(registry.find_workflow(principal, workflow_id, number)))


class WorkflowValidation(Endpoint):
    @described(summary="Check a workflow as its registration would; nothing is stored", tag="registry",
               body=schemas.WORKFLOW, ok={200: schemas.VALID}, errors=[422])  # fmt: skip
    @once
    def post(self, request: Request) -> Response:
        principal, document = actor(request), body(request, bodies.document)
        require_to_read(
            actor=principal,
            action="workflows:validate",
            permission="register",
            scopes=[principal.tenant],
            resource=authority.Resource(type="workflow", id=str(document.get("id", ""))),
        )
        registration.refuse_malformed_workflow(tenant=principal.tenant, document=document)
        return Response({"valid": True})


class NodeTypes(Endpoint):
    @described(
        summary="Register a node type: 201 for a new version, 200 when it equals the newest one",
        tag="registry", body=schemas.NODE_TYPE, ok={201: schemas.NODE_TYPE_VERSION, 200: schemas.NODE_TYPE_VERSION},
    )  # fmt: skip
    @once
    def post(self, request: Request) -> Response:
        document = body(request, bodies.document)
        version, created = registration.register_node_type(actor=actor(request), document=document)
        return Response(registry.node_type_wire(version), status=201 if created else 200)

    @described(summary="The node types of the tenant, newest first", tag="registry", query=schemas.PAGING,
               ok={200: schemas.page_of("nodeTypes", schemas.NODE_TYPE_HEAD)})  # fmt: skip
    def get(self, request: Request) -> Response:
        values = query(request, PAGING)
        require_scope(actor=actor(request), action="definitions:read")
        found = page(visible_node_types(actor(request)).filter(latest__gte=1), **paging(values))
        return Response({"nodeTypes": registry.node_type_wires(found.rows), "nextCursor": found.next_cursor})


class NodeType(Endpoint):
    @described(summary="One node type, its newest version or the one asked for, and how it stands", tag="registry",
               query=[schemas.VERSION], ok={200: schemas.NODE_TYPE_VERSION})  # fmt: skip
    def get(self, request: Request, node_type_id: str) -> Response:
        principal, number = actor(request), query(request, VERSION).get("version")
        readable_definition(actor=principal, kind=NodeTypeRow, node_type_id=node_type_id)
        return Response(registry.node_type_wire(registry.find_node_type(principal, node_type_id, number)))


class NodeTypeHold(Endpoint):
    @described(summary="Hold a node type: its entries wait and burn no attempts (CMP-409)", tag="holds",
               body=request_schemas.HOLD, ok={200: schemas.NODE_TYPE_VERSION})  # fmt: skip
    @once
    def post(self, request: Request, node_type_id: str) -> Response:
        reason = body(request, bodies.HOLD)["justification"]
        holds.hold_node_type(actor=actor(request), node_type_id=node_type_id, reason=reason)
        return _standing(request, node_type_id)


class NodeTypeRelease(Endpoint):
    @described(summary="Release a node type and close its breaker", tag="holds",
               body=request_schemas.RELEASE, ok={200: schemas.NODE_TYPE_VERSION})  # fmt: skip
    @once
    def post(self, request: Request, node_type_id: str) -> Response:
        reason: Any = body(request, bodies.RELEASE).get("justification", "")
        holds.release_node_type(actor=actor(request), node_type_id=node_type_id, reason=reason)
        return _standing(request, node_type_id)


def _standing(request: Request, node_type_id: str) -> Response:
    return Response(registry.node_type_wire(registry.find_node_type(actor(request), node_type_id)))
