"""Scheduling holds: they delay and never change an outcome (CMP-409)."""

import uuid

from django.db import transaction
from django.db.models import Exists, OuterRef, Value
from django.db.models.functions import Coalesce, Now

from audit import authority
from audit.errors import NotFound, VersionConflict
from audit.models import Tenant
from audit.principals import Principal
from compensation.domain.states import ObligationState
from compensation.models import Attention, NodeType, Obligation, Plan
from compensation.operations import attention, waking
from compensation.operations.acting import acting, acting_on_tenant, lock_plan, lock_run
from compensation.operations.advance import advance
from compensation.operations.entries import move

CREDENTIALS_REFUSED = "credentials refused by the downstream"


def pause_plan(*, actor: Principal, run_id: uuid.UUID, reason: str = "") -> Plan:
    """Hold one plan: nothing of it starts until it is resumed; what is in flight ends by itself."""
    with acting(actor=actor, action="compensation:pause", permission="pause", run_id=run_id) as act:
        plan = _active(act.plan)
        act.justification = reason
        Plan.objects.filter(pk=plan.pk).update(held_at=Coalesce("held_at", Now()), held_reason=reason[:200])
        plan.refresh_from_db()
    return plan


def resume_plan(*, actor: Principal, run_id: uuid.UUID, reason: str = "") -> Plan:
    """Release a plan from its hold and from what a parent cancel did to it (CMP-407, 409)."""
    with acting(actor=actor, action="compensation:resume", permission="pause", run_id=run_id) as act:
        plan = _active(act.plan)
        act.justification = reason
        plan.held_at, plan.held_reason, plan.parent_paused = None, "", False
        plan.save(update_fields=["held_at", "held_reason", "parent_paused"])
        if plan.mint_failure is None:
            attention.resolve(plan, None, by=actor.label)
        advance(act.run, plan)
    waking.wake_after_commit()
    return plan


def hold_node_type(*, actor: Principal, node_type_id: str, reason: str) -> NodeType:
    """Hold a node type of the tenant: its entries wait, visibly, and burn no attempts."""
    resource = authority.Resource(type="node-type", id=node_type_id)
    with acting_on_tenant(actor=actor, action="node-types:hold", permission="hold", resource=resource) as act:
        act.justification = reason
        node_type = _node_type(actor.tenant, node_type_id)
        NodeType.objects.filter(pk=node_type.pk).update(held_at=Coalesce("held_at", Now()), held_reason=reason[:200])
    node_type.refresh_from_db()
    return node_type


def release_node_type(*, actor: Principal, node_type_id: str, reason: str = "") -> NodeType:
    """Release a node type, close its breaker, and put its held entries back in line."""
    resource = authority.Resource(type="node-type", id=node_type_id)
    with acting_on_tenant(actor=actor, action="node-types:release", permission="hold", resource=resource) as act:
        act.justification = reason
        node_type = _node_type(actor.tenant, node_type_id)
        NodeType.objects.filter(pk=node_type.pk).update(held_at=None, held_reason="", failures=0, breaker_until=None)
    _put_back(node_type)
    waking.wake_after_commit()
    node_type.refresh_from_db()
    return node_type


def hold_tenant(*, actor: Principal, reason: str) -> Tenant:
    """Stop everything of a tenant: no inverse starts until it is released."""
    return _set_tenant_hold(actor, "tenant:hold", held_at=Coalesce("held_at", Now()), reason=reason)


def release_tenant(*, actor: Principal, reason: str = "") -> Tenant:
    """Let a tenant's unwinds go on."""
    return _set_tenant_hold(actor, "tenant:release", held_at=Value(None), reason=reason)


def hold_for_credentials(tenant: Tenant, node_type: NodeType) -> None:
    """The engine's own hold after a 401 or 403: recorded once, as the system's decision (CMP-402)."""
    held = NodeType.objects.filter(pk=node_type.pk, held_at__isnull=True).update(
        held_at=Now(), held_reason=CREDENTIALS_REFUSED
    )
    if held:
        authority.record(
            principal=Principal(tenant=tenant, user=None),
            action="node-types:hold",
            resource=authority.Resource(type="node-type", id=node_type.node_type_id),
            allowed=True,
            reason=CREDENTIALS_REFUSED,
        )


def _set_tenant_hold(actor: Principal, action: str, *, held_at: object, reason: str) -> Tenant:
    resource = authority.Resource(type="tenant", id=actor.tenant.slug)
    with acting_on_tenant(actor=actor, action=action, permission="hold", resource=resource) as act:
        act.justification = reason
        held_reason = reason[:200] if action == "tenant:hold" else ""
        Tenant.objects.filter(pk=actor.tenant.pk).update(held_at=held_at, held_reason=held_reason)
        waking.wake_after_commit()
    actor.tenant.refresh_from_db()
    return actor.tenant


def _put_back(node_type: NodeType) -> None:
    """Entries that the hold had stopped go on: each under its own run's lock, so none waits for the others."""
    called_for = Attention.objects.filter(obligation=OuterRef("pk"), kind="manual", resolved_at__isnull=True)
    held = Obligation.objects.filter(
        ~Exists(called_for),
        tenant_id=node_type.tenant_id,
        node_type_version__node_type=node_type,
        state=ObligationState.HELD,
    )
    for entry_id, run_id in held.values_list("pk", "run_id"):
        with transaction.atomic():
            run = lock_run(node_type.tenant_id, run_id)
            plan = lock_plan(run)
            entry = Obligation.objects.select_for_update(no_key=True).get(pk=entry_id)
            if plan is not None and entry.state == ObligationState.HELD:
                move(entry, ObligationState.WAITING)
                advance(run, plan)


def _node_type(tenant: Tenant, node_type_id: str) -> NodeType:
    found = NodeType.objects.filter(tenant=tenant, node_type_id=node_type_id).first()
    if found is None:
        raise NotFound
    return found


def _active(plan: Plan | None) -> Plan:
    if plan is None:
        raise NotFound("This run has no plan; nothing was changed.")
    if plan.closed_at is not None:
        raise VersionConflict("This plan is closed; nothing was changed.", details={"planVersion": plan.plan_version})
    return plan
