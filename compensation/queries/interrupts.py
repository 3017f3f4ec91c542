"""Questions to people as the wire shows them, each with whether this person may answer and why not (CMP-602, 612)."""

import json
import uuid
from collections.abc import Sequence
from typing import Any

from django.db.models import Q, QuerySet

from approvals.models import Answer, Interrupt, InterruptState, Vote
from audit.principals import Principal
from audit.times import wire_time
from compensation.models import Plan
from compensation.operations.approving import PERMISSION, refuse_if_barred
from compensation.queries.access import not_held, runs_with, visible_interrupts


def mine(principal: Principal) -> QuerySet[Interrupt]:
    """The open questions this person may answer and has not answered."""
    answerable = Q(pk__in=[])
    for handler, permission in PERMISSION.items():
        answerable |= Q(handler=handler, context_id__in=runs_with(principal, permission).values("pk"))
    if principal.user is None:
        return Interrupt.objects.none()
    return (
        visible_interrupts(principal)
        .filter(answerable, state=InterruptState.OPEN)
        .exclude(excluded__contains=[principal.user.pk])
        .exclude(votes__user=principal.user)
    )


def interrupt_wire(principal: Principal, interrupt: Interrupt) -> dict[str, Any]:
    return interrupt_wires(principal, [interrupt])[0]


def interrupt_wires(principal: Principal, interrupts: Sequence[Interrupt]) -> list[dict[str, Any]]:
    """The questions in the given order, in a constant number of queries.

    The artifact is the frozen entry, inputs and all: its text only for those who may see inputs.
    """
    runs = {each.context_id for each in interrupts}
    versions = dict(Plan.objects.filter(run__in=runs).values_list("run", "plan_version"))
    readable = _among(principal, "see_inputs", runs)
    holders = {permission: _among(principal, permission, runs) for permission in set(PERMISSION.values())}
    votes = _votes(interrupts)
    wires = []
    for each in interrupts:
        may_hold = each.context_id in holders[PERMISSION[each.handler]]
        why_not = _why_not(principal, each, votes.get(each.pk, []), holds=may_hold)
        shown = _artifact(each) if each.context_id in readable else {"artifact": None, "artifactText": None}
        wires.append({**_head(each, versions.get(each.context_id), votes.get(each.pk, [])), **shown,
                      "mayAnswer": why_not is None, "whyNot": why_not})  # fmt: skip
    return wires


def _head(interrupt: Interrupt, plan_version: int | None, votes: Sequence[dict[str, Any]]) -> dict[str, Any]:
    return {
        "interruptId": str(interrupt.pk),
        "runId": str(interrupt.context_id),
        "nodeId": interrupt.node_key,
        "kind": interrupt.handler,
        "state": interrupt.state,
        "digest": interrupt.digest,
        "planVersion": plan_version,
        "quorum": {"needed": interrupt.quorum, "given": sum(vote["action"] == Answer.ACCEPT for vote in votes)},
        "openedAt": wire_time(interrupt.opened_at),
        "expiresAt": wire_time(interrupt.expires_at),
        "resolvedAt": wire_time(interrupt.resolved_at),
        "requestedBy": f"user:{interrupt.requested_by_id}" if interrupt.requested_by_id else None,
        "justification": interrupt.justification or None,
        "votes": list(votes),
    }


def _artifact(interrupt: Interrupt) -> dict[str, Any]:
    return {"artifact": json.loads(interrupt.artifact), "artifactText": interrupt.artifact}


def _why_not(principal: Principal, interrupt: Interrupt, votes: Sequence[dict[str, Any]], *, holds: bool) -> str | None:
    """The first thing that keeps this person from answering; None when they may."""
    if interrupt.state != InterruptState.OPEN:
        return f"it is already {interrupt.state}"
    if not holds:
        return not_held(PERMISSION[interrupt.handler])
    if principal.user is not None and any(vote["userId"] == principal.user.pk for vote in votes):
        return "you have already answered"
    return refuse_if_barred(interrupt, principal)


def _votes(interrupts: Sequence[Interrupt]) -> dict[uuid.UUID, list[dict[str, Any]]]:
    found: dict[uuid.UUID, list[dict[str, Any]]] = {}
    rows = Vote.objects.filter(interrupt__in=[each.pk for each in interrupts])
    for vote in rows.order_by("at"):
        wire = {"principal": vote.principal, "userId": vote.user_id, "action": vote.answer, "at": wire_time(vote.at)}
        found.setdefault(vote.interrupt_id, []).append(wire)
    return found


def _among(principal: Principal, permission: str, runs: set[uuid.UUID]) -> set[uuid.UUID]:
    return set(runs_with(principal, permission).filter(pk__in=runs).values_list("pk", flat=True))
