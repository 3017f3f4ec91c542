"""The record: who decided what, and who was refused."""

from typing import Any

from rest_framework.request import Request
from rest_framework.response import Response

from audit import authority
from audit.errors import NotFound
from compensation.api import schemas
from compensation.api.docs import described
from compensation.api.endpoint import Endpoint
from compensation.api.requests import PAGING, actor, flag, paging, query, time, words
from compensation.operations.reading import require_to_read
from compensation.queries.access import as_uuid
from compensation.queries.decisions import DecisionFilter, decision_wire, decisions
from compensation.queries.paging import page

FILTERS = {
    **PAGING,
    "runId": words,
    "effectId": words,
    "principal": words,
    "action": words,
    "allowed": flag,
    "since": time,
    "until": time,
}


class Decisions(Endpoint):
    @described(summary="The decisions of the tenant, newest first", tag="audit", query=schemas.DECISION_FILTERS,
               ok={200: schemas.page_of("decisions", schemas.DECISION)})  # fmt: skip
    def get(self, request: Request) -> Response:
        principal, values = actor(request), query(request, FILTERS)
        require_to_read(
            actor=principal,
            action="audit:read",
            permission="read_audit",
            scopes=[principal.tenant],
            resource=authority.Resource(type="decisions", id=principal.tenant.slug),
        )
        found = page(decisions(principal.tenant, _filter(values)), order="-seq", **paging(values))
        return Response({"decisions": [decision_wire(row) for row in found.rows], "nextCursor": found.next_cursor})


def _filter(values: dict[str, Any]) -> DecisionFilter:
    run_id = as_uuid(values["runId"]) if "runId" in values else None
    if "runId" in values and run_id is None:
        raise NotFound
    return DecisionFilter(
        run_id=run_id,
        effect_id=values.get("effectId", ""),
        principal=values.get("principal", ""),
        action=values.get("action", ""),
        allowed=values.get("allowed"),
        since=values.get("since"),
        until=values.get("until"),
    )
