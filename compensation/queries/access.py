"""The restricted querysets: deny by default, and the same for a list, a count, a search and a badge (CMP-605, 606).

A person's grants are few, so they are resolved first and the big tables are filtered by plain ids.
"""

import uuid
from typing import TypeVar

from django.db import models
from django.db.models import Q, QuerySet

from approvals.models import Interrupt
from audit import authority
from audit.errors import NotFound
from audit.permissions import PERMISSIONS
from audit.principals import Principal
from compensation.models import NodeType, Plan, Run, Workflow
from compensation.operations.acting import scopes_of

Row = TypeVar("Row", bound=models.Model)


def visible_runs(principal: Principal) -> QuerySet[Run]:
    """The runs whose `view` is granted on the tenant, the workflow or the plan."""
    return runs_with(principal, "view")


def runs_with(principal: Principal, permission: str) -> QuerySet[Run]:
    """The runs of the tenant on which this permission is granted now."""
    runs = Run.objects.filter(tenant=principal.tenant)
    if authority.permits(principal, permission, principal.tenant):
        return runs
    on_workflows = Q(workflow_version__workflow__in=_granted_ids(principal, permission, Workflow))
    on_plans = Q(pk__in=Plan.objects.filter(pk__in=_granted_ids(principal, permission, Plan)).values("run"))
    return runs.filter(on_workflows | on_plans)


def visible_workflows(principal: Principal) -> QuerySet[Workflow]:
    workflows = Workflow.objects.filter(tenant=principal.tenant)
    if authority.permits(principal, "view", principal.tenant):
        return workflows
    return workflows.filter(pk__in=_granted_ids(principal, "view", Workflow))


def visible_node_types(principal: Principal) -> QuerySet[NodeType]:
    """The registry of the tenant, for those who may see the whole tenant."""
    node_types = NodeType.objects.filter(tenant=principal.tenant)
    return node_types if authority.permits(principal, "view", principal.tenant) else node_types.none()


def visible_interrupts(principal: Principal) -> QuerySet[Interrupt]:
    """The questions about runs that may be seen."""
    interrupts = Interrupt.objects.filter(tenant=principal.tenant)
    return interrupts.filter(context_id__in=visible_runs(principal).values("pk"))


def not_held(permission: str) -> str:
    """Why somebody without this permission may not, in words and with its code."""
    does = PERMISSIONS[permission]
    return f"you may not {does[0].lower()}{does[1:]} ({permission})"


def may(principal: Principal, permission: str, run: Run, plan: Plan | None = None) -> bool:
    """Whether the principal holds it on this run, without recording that they asked."""
    return authority.permits(principal, permission, *scopes_of(run, plan))


def require_run(principal: Principal, run_id: str | uuid.UUID) -> Run:
    """A run that may be seen, with its workflow; else `NotFound`, the same for all reasons."""
    runs = visible_runs(principal).select_related("workflow_version__workflow", "tenant")
    return require(runs, run_id)


def require(rows: QuerySet[Row], id_: str | uuid.UUID) -> Row:
    """The row of this id among ``rows``; an id that is none is simply not there."""
    key = as_uuid(id_)
    row = rows.filter(pk=key).first() if key else None
    if row is None:
        raise NotFound
    return row


def as_uuid(id_: str | uuid.UUID) -> uuid.UUID | None:
    """A wire id as the database knows it. One spelling only: what we hand out."""
    if isinstance(id_, uuid.UUID):
        return id_
    try:
        parsed = uuid.UUID(id_)
    except ValueError:
        return None
    return parsed if str(parsed) == id_ else None


def _granted_ids(principal: Principal, permission: str, model: type[models.Model]) -> list[uuid.UUID]:
    grants = authority.granted(principal, permission, model).filter(content_object__tenant=principal.tenant)
    return list(grants.values_list("content_object", flat=True).distinct())
