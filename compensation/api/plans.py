"""The plan of a run: read it, and the operator's acts on it (CMP-609, 409, 201)."""

from typing import Any

from rest_framework.request import Request
from rest_framework.response import Response

from audit.models import Decision
from audit.principals import Principal
from compensation.api import bodies, request_schemas, schemas
from compensation.api.docs import described
from compensation.api.endpoint import Endpoint
from compensation.api.idempotency import once
from compensation.api.requests import PAGING, actor, body, paging, query
from compensation.api.runs import known, readable
from compensation.models import Plan as PlanRow
from compensation.operations import acts, holds
from compensation.operations.acts import ActResult, Seen
from compensation.operations.substitution import Replacement
from compensation.queries.access import may
from compensation.queries.decisions import decision_wire
from compensation.queries.interrupts import interrupt_wire
from compensation.queries.paging import page
from compensation.queries.preview import preview
from compensation.queries.projection import attempt_wire, attempts_of, find_entry, plan_projection

DONE = {200: schemas.ACT_DONE}
DONE_OR_ASKED = {**DONE, 202: schemas.ACT_ASKED}


class Plan(Endpoint):
    @described(summary="The plan of a run: status, order, entries and versions", tag="compensation",
               ok={200: schemas.PLAN})  # fmt: skip
    def get(self, request: Request, run_id: str) -> Response:
        query(request, {})
        return Response(plan_projection(actor(request), readable(request, run_id)))


class Attempts(Endpoint):
    @described(summary="Every attempt of one entry with its readbacks, oldest first", tag="compensation",
               query=schemas.PAGING, ok={200: schemas.page_of("attempts", schemas.ATTEMPT)})  # fmt: skip
    def get(self, request: Request, run_id: str, effect_id: str) -> Response:
        values = query(request, PAGING)
        entry = find_entry(readable(request, run_id), effect_id)
        found = page(attempts_of(entry), order="number", **paging(values))
        return Response({"attempts": [attempt_wire(each) for each in found.rows], "nextCursor": found.next_cursor})


class Preview(Endpoint):
    @described(summary="What an operator-request would mint now; nothing is stored", tag="compensation",
               body=schemas.NOTHING, ok={200: schemas.PREVIEW})  # fmt: skip
    @once
    def post(self, request: Request, run_id: str) -> Response:
        body(request, bodies.NOTHING)
        principal, run = actor(request), readable(request, run_id)
        return Response(preview(run, with_inputs=may(principal, "see_inputs", run)))


class Start(Endpoint):
    @described(summary="Start an unwind by hand (CMP-201)", tag="compensation", body=request_schemas.START, ok=DONE,
               errors=[409])  # fmt: skip
    @once
    def post(self, request: Request, run_id: str) -> Response:
        wanted = body(request, bodies.START)
        result = acts.start(actor=actor(request), run_id=known(run_id), justification=wanted.get("justification", ""))
        return _answer(actor(request), result)


class Retry(Endpoint):
    @described(summary="Retry an entry under its own identity, or a failed mint when no effectId is given",
               tag="compensation", body=request_schemas.RETRY, ok=DONE, errors=[409])  # fmt: skip
    @once
    def post(self, request: Request, run_id: str) -> Response:
        wanted = body(request, bodies.retry)
        result = acts.retry(
            actor=actor(request),
            run_id=known(run_id),
            seen=_seen(wanted),
            effect_id=wanted.get("effectId"),
            justification=wanted.get("justification", ""),
        )
        return _answer(actor(request), result)


class Skip(Endpoint):
    @described(summary="Leave one effect as it is; 202 when another person must approve that first",
               tag="compensation", body=request_schemas.SKIP, ok=DONE_OR_ASKED, errors=[409])  # fmt: skip
    @once
    def post(self, request: Request, run_id: str) -> Response:
        wanted = body(request, bodies.SKIP)
        result = acts.skip(
            actor=actor(request),
            run_id=known(run_id),
            seen=_seen(wanted),
            effect_id=wanted["effectId"],
            justification=wanted["justification"],
        )
        return _answer(actor(request), result)


class Substitute(Endpoint):
    @described(summary="Run another node type with the same frozen input, or record what was done elsewhere",
               tag="compensation", body=request_schemas.SUBSTITUTE, ok=DONE_OR_ASKED, errors=[409])  # fmt: skip
    @once
    def post(self, request: Request, run_id: str) -> Response:
        wanted = body(request, bodies.SUBSTITUTE)
        replacement = Replacement(
            node_type_id=wanted["nodeTypeId"],
            version=wanted.get("nodeTypeVersion"),
            receipt=wanted.get("receipt", ""),
            evidence=wanted.get("evidence", ""),
        )
        result = acts.substitute(
            actor=actor(request),
            run_id=known(run_id),
            seen=_seen(wanted),
            effect_id=wanted["effectId"],
            justification=wanted["justification"],
            replacement=replacement,
        )
        return _answer(actor(request), result)


class Terminate(Endpoint):
    @described(summary="Close the plan for ever; 202 when another person must approve that first",
               tag="compensation", body=request_schemas.TERMINATE, ok=DONE_OR_ASKED, errors=[409])  # fmt: skip
    @once
    def post(self, request: Request, run_id: str) -> Response:
        wanted = body(request, bodies.TERMINATE)
        result = acts.terminate(
            actor=actor(request),
            run_id=known(run_id),
            seen=_seen(wanted),
            justification=wanted["justification"],
        )
        return _answer(actor(request), result)


class Pause(Endpoint):
    @described(summary="Hold the plan: nothing of it starts until it is resumed (CMP-409)", tag="holds",
               body=request_schemas.RELEASE, ok=DONE, errors=[409])  # fmt: skip
    @once
    def post(self, request: Request, run_id: str) -> Response:
        reason = body(request, bodies.RELEASE).get("justification", "")
        plan = holds.pause_plan(actor=actor(request), run_id=known(run_id), reason=reason)
        return _held(actor(request), plan)


class Resume(Endpoint):
    @described(summary="Release the plan from its hold and from a parent cancel (CMP-407, 409)", tag="holds",
               body=request_schemas.RELEASE, ok=DONE, errors=[409])  # fmt: skip
    @once
    def post(self, request: Request, run_id: str) -> Response:
        reason = body(request, bodies.RELEASE).get("justification", "")
        plan = holds.resume_plan(actor=actor(request), run_id=known(run_id), reason=reason)
        return _held(actor(request), plan)


def _seen(wanted: dict[str, Any]) -> Seen:
    return Seen(plan_version=wanted["expectedPlanVersion"], state=wanted.get("expectedState", ""))


def _held(principal: Principal, plan: PlanRow) -> Response:
    mine = Decision.objects.filter(tenant=principal.tenant, request_id=principal.request_id)
    decision = mine.select_related("tenant").order_by("seq").last()
    return _answer(principal, ActResult(run=plan.run, plan=plan, decision=decision))


def _answer(principal: Principal, result: ActResult) -> Response:
    """200 with the new projection and the decision; 202 with the question that must first be answered."""
    answer = plan_projection(principal, result.run)
    if result.decision is not None:
        answer["decision"] = decision_wire(result.decision)
    if result.interrupt is None:
        return Response(answer)
    return Response({**answer, "interrupt": interrupt_wire(principal, result.interrupt)}, status=202)
