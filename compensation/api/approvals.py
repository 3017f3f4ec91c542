"""Questions to people: those that wait for the caller, and their answers (CMP-602)."""

from typing import Any

from rest_framework.request import Request
from rest_framework.response import Response

from approvals.models import Answer, Interrupt, InterruptState
from audit.errors import NotFound, VersionConflict
from audit.principals import Principal
from compensation.api import bodies, request_schemas, schemas
from compensation.api.docs import described
from compensation.api.endpoint import Endpoint
from compensation.api.idempotency import once
from compensation.api.requests import PAGING, actor, body, choice, paging, query, words
from compensation.api.runs import known
from compensation.operations import approving
from compensation.operations.approving import Reply
from compensation.operations.reading import readable_run, require_scope
from compensation.queries import interrupts
from compensation.queries.access import require, visible_interrupts
from compensation.queries.paging import page
from compensation.queries.snapshots import run_snapshot

NO_NODE = "-"
"""Addresses a question that belongs to no node (the whole plan) in a path that names one."""
FILTERS = {**PAGING, "runId": words, "state": choice(*(state.value for state in InterruptState))}


class Interrupts(Endpoint):
    @described(
        summary="The open questions that you may answer; with `runId` or `state`, those that you may see",
        tag="approvals", query=schemas.INTERRUPT_FILTERS,
        ok={200: schemas.page_of("interrupts", schemas.INTERRUPT)},
    )  # fmt: skip
    def get(self, request: Request) -> Response:
        principal, values = actor(request), query(request, FILTERS)
        require_scope(actor=principal, action="runs:read")
        found = page(_wanted(principal, values), **paging(values))
        wires = interrupts.interrupt_wires(principal, found.rows)
        return Response({"interrupts": wires, "nextCursor": found.next_cursor})


class InterruptDetail(Endpoint):
    @described(summary="One question with what is to be signed, byte for byte", tag="approvals",
               ok={200: schemas.INTERRUPT})  # fmt: skip
    def get(self, request: Request, interrupt_id: str) -> Response:
        query(request, {})
        principal = actor(request)
        found = _of_tenant(principal, interrupt_id)
        readable_run(actor=principal, run_id=found.context_id)
        return Response(interrupts.interrupt_wire(principal, found))

    @described(summary="Answer one question, quoting what was displayed", tag="approvals", body=request_schemas.ANSWER,
               ok={200: schemas.ANSWERED}, errors=[409, 410])  # fmt: skip
    @once
    def post(self, request: Request, interrupt_id: str) -> Response:
        reply = _reply(body(request, bodies.ANSWER))
        return _resolve(actor(request), _of_tenant(actor(request), interrupt_id), reply)


class NodeInterrupt(Endpoint):
    @described(
        summary="Answer the open question of a node of a run; `-` stands for the whole plan",
        tag="approvals", body=request_schemas.ANSWER, query=[schemas.INTERRUPT_ID], ok={200: schemas.ANSWERED},
        errors=[409, 410],
    )  # fmt: skip
    @once
    def post(self, request: Request, run_id: str, node_id: str) -> Response:
        values, reply = query(request, {"interruptId": words}), _reply(body(request, bodies.ANSWER))
        node_key = "" if node_id == NO_NODE else node_id
        found = _of_node(actor(request), run_id, node_key, values.get("interruptId"))
        return _resolve(actor(request), found, reply)


def _wanted(principal: Principal, values: dict[str, Any]) -> Any:
    if "runId" not in values and "state" not in values:
        return interrupts.mine(principal)
    found = visible_interrupts(principal)
    if "state" in values:
        found = found.filter(state=values["state"])
    return found.filter(context_id=known(values["runId"])) if "runId" in values else found


def _of_tenant(principal: Principal, interrupt_id: str) -> Interrupt:
    return require(Interrupt.objects.filter(tenant=principal.tenant), interrupt_id)


def _of_node(principal: Principal, run_id: str, node_key: str, interrupt_id: str | None) -> Interrupt:
    """The one that is named, else the open one, else the last one; several open ones are told apart by the caller."""
    at_node = Interrupt.objects.filter(tenant=principal.tenant, context_id=known(run_id), node_key=node_key)
    if interrupt_id is not None:
        return require(at_node, interrupt_id)
    open_ones = list(at_node.filter(state=InterruptState.OPEN).order_by("id"))
    if len(open_ones) > 1:
        raise VersionConflict(
            "Several questions are open here; nothing was decided. Say which with ?interruptId=.",
            details={"interruptIds": [str(each.pk) for each in open_ones]},
        )
    found = open_ones[0] if open_ones else at_node.order_by("id").last()
    if found is None:
        raise NotFound
    return found


def _reply(wanted: dict[str, Any]) -> Reply:
    value = wanted["resumeValue"]
    return Reply(
        answer=Answer(value["action"]),
        digest=value["digest"],
        plan_version=value["planVersion"],
        feedback=value.get("feedback", ""),
    )


def _resolve(principal: Principal, found: Interrupt, reply: Reply) -> Response:
    """``status`` is the run's; ``interrupt`` how the question stands now (open while a quorum is not reached)."""
    resolved = approving.resolve_interrupt(actor=principal, interrupt_id=found.pk, reply=reply)
    run = readable_run(actor=principal, run_id=resolved.context_id)
    return Response(
        {
            "runId": str(run.pk),
            "nodeId": resolved.node_key,
            "status": run_snapshot(run)["status"],
            "interrupt": interrupts.interrupt_wire(principal, resolved),
        }
    )
