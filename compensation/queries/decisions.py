"""The record as the wire shows it."""

import uuid
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.db.models import QuerySet

from audit.models import Decision, Tenant
from audit.times import wire_time


@dataclass(frozen=True, kw_only=True, slots=True)
class DecisionFilter:
    """What to show of a record; None and "" leave it open. ``since`` is included, ``until`` is not."""

    run_id: uuid.UUID | None = None
    effect_id: str = ""
    principal: str = ""
    action: str = ""
    allowed: bool | None = None
    since: datetime | None = None
    until: datetime | None = None


def decisions(tenant: Tenant, wanted: DecisionFilter) -> QuerySet[Decision]:
    """The decisions of a tenant, unordered. Who may read the record is asked before (`read_audit`)."""
    given = {
        "run_id": wanted.run_id,
        "effect_id": wanted.effect_id or None,
        "principal": wanted.principal or None,
        "action": wanted.action or None,
        "allowed": wanted.allowed,
        "at__gte": wanted.since,
        "at__lt": wanted.until,
    }
    set_ones = {name: value for name, value in given.items() if value is not None}
    return Decision.objects.filter(tenant=tenant, **set_ones).select_related("tenant")


def decision_wire(decision: Decision) -> dict[str, Any]:
    """One decision; members that say nothing are absent where the wire calls them optional."""
    optional = {
        "onBehalfOf": decision.on_behalf_of,
        "runId": str(decision.run_id) if decision.run_id else "",
        "effectId": decision.effect_id,
        "planVersion": decision.plan_version,
        "justification": decision.justification,
        "evidenceDigest": decision.evidence_digest,
    }
    return {
        "seq": decision.seq,
        "tenant": decision.tenant.slug,
        "at": wire_time(decision.at),
        "principal": decision.principal,
        "principalKind": decision.principal_kind,
        "action": decision.action,
        "resource": {"type": decision.resource_type, "id": decision.resource_id},
        "allowed": decision.allowed,
        "reason": decision.reason or None,
        "requestId": decision.request_id,
        **{name: value for name, value in optional.items() if value not in ("", None)},
    }
