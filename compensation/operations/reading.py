"""Reading what needs a permission of its own: a refusal inside the tenant is on record (CMP-606)."""

import uuid
from collections.abc import Sequence
from typing import TypeVar

from django.db import models, transaction

from audit import authority
from audit.errors import Forbidden, NotFound
from audit.principals import Principal
from compensation.models import NodeType, Plan, Run, Workflow
from compensation.operations.acting import scopes_of

Definition = TypeVar("Definition", Workflow, NodeType)


def require_to_read(
    *, actor: Principal, action: str, permission: str, scopes: Sequence[models.Model], resource: authority.Resource
) -> None:
    """Nothing when the permission is held; else the denied row is committed and `Forbidden` raised.

    A read that is allowed leaves no row: it changes nothing.
    """
    if authority.permits(actor, permission, *scopes):
        return
    with transaction.atomic():
        authority.decide(principal=actor, action=action, permission=permission, scopes=scopes, resource=resource)
    raise Forbidden(f"You do not hold '{permission}' here; the refusal is on record.")


def readable_run(*, actor: Principal, run_id: uuid.UUID | None, permission: str = "view") -> Run:
    """A run with its workflow, for somebody who may read it; 404 for another tenant's as for none (CMP-606)."""
    runs = Run.objects.select_related("workflow_version__workflow", "tenant")
    run = runs.filter(tenant=actor.tenant, pk=run_id).first() if run_id else None
    if run is None:
        raise NotFound
    plan = Plan.objects.filter(tenant_id=run.tenant_id, run=run).first()
    require_to_read(
        actor=actor,
        action="runs:read",
        permission=permission,
        scopes=scopes_of(run, plan),
        resource=authority.Resource(type="run", id=f"tenant/{actor.tenant.slug}/run/{run.pk}"),
    )
    return run


def readable_definition(*, actor: Principal, kind: type[Definition], **named: str) -> None:
    """Nothing when the definition of this name may be read; 404 when the tenant has none (CMP-606)."""
    found = kind.objects.filter(tenant=actor.tenant, **named).first()
    if found is None:
        raise NotFound
    grantable: list[models.Model] = [found] if isinstance(found, Workflow) else []
    name = next(iter(named.values()))
    require_to_read(
        actor=actor,
        action="definitions:read",
        permission="view",
        scopes=[*grantable, actor.tenant],
        resource=authority.Resource(type="workflow" if kind is Workflow else "node-type", id=name),
    )


def require_scope(*, actor: Principal, action: str, permission: str = "view") -> None:
    """A list shows what may be seen, perhaps nothing; a key without the scope is refused, on record."""
    if authority.in_scope(actor, permission):
        return
    resource = authority.Resource(type="tenant", id=actor.tenant.slug)
    require_to_read(actor=actor, action=action, permission=permission, scopes=[actor.tenant], resource=resource)
