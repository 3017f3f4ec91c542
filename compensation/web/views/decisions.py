import uuid
from typing import Any, Final

from django.db import transaction
from django.http import Http404, HttpResponse, QueryDict
from django.views.decorators.http import require_safe

from audit import authority
from audit.errors import Forbidden
from audit.models import User
from compensation.queries.access import as_uuid, not_held
from compensation.queries.decisions import DecisionFilter, decision_wire
from compensation.queries.decisions import decisions as recorded
from compensation.queries.paging import page
from compensation.web.pages import Here, tenant_page
from compensation.web.people import names_of
from compensation.web.words import ACTIONS

NO_RUN: Final = uuid.UUID(int=0)
PEOPLE_SHOWN: Final = 200


@require_safe
@tenant_page
def decisions(here: Here) -> HttpResponse:
    """The record, newest first: who was allowed or refused what, on which run, and why."""
    _require_reader(here)
    query = here.request.GET
    cursor = query.get("cursor", "")
    found = page(recorded(here.tenant, _filter(query)), cursor=cursor, order="-seq")
    rows = [decision_wire(decision) for decision in found.rows]
    return here.render(
        "decisions/page.html",
        section="decisions",
        decisions=rows,
        names=names_of(_principals(rows)),
        people=_people(here),
        actions=ACTIONS,
        wanted=query,
        next_cursor=found.next_cursor,
        paged=bool(cursor),
    )


@require_safe
@tenant_page
def decision(here: Here, seq: int) -> HttpResponse:
    """One decision, whole."""
    _require_reader(here)
    found = recorded(here.tenant, DecisionFilter()).filter(seq=seq).first()
    if found is None:
        raise Http404
    row = decision_wire(found)
    return here.render("decisions/decision.html", section="decisions", decision=row, names=names_of(_principals([row])))


def _people(here: Here) -> dict[str, str]:
    members = User.objects.filter(memberships__tenant=here.tenant).order_by("username")[:PEOPLE_SHOWN]
    return {f"user:{user.pk}": str(user) for user in members}


def _require_reader(here: Here) -> None:
    """Only those who may read the record; a refusal is recorded (CMP-606)."""
    if authority.permits(here.principal, "read_audit", here.tenant):
        return
    with transaction.atomic():
        authority.decide(
            principal=here.principal,
            action="audit:read",
            permission="read_audit",
            scopes=[here.tenant],
            resource=authority.Resource(type="tenant", id=here.tenant.slug),
        )
    raise Forbidden(f"{not_held('read_audit').capitalize()}. The refusal is on record.")


def _filter(query: QueryDict) -> DecisionFilter:
    """An id that is none matches no run, never every run."""
    run = query.get("run", "").strip()
    answer = {"allowed": True, "denied": False}.get(query.get("outcome", ""))
    return DecisionFilter(
        run_id=(as_uuid(run) or NO_RUN) if run else None,
        principal=query.get("principal", "").strip(),
        action=query.get("action", "").strip(),
        allowed=answer,
    )


def _principals(rows: list[dict[str, Any]]) -> list[str | None]:
    return [*(row["principal"] for row in rows), *(row.get("onBehalfOf") for row in rows)]
