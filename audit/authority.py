"""The one door to permission: what may this principal do here, now, and the row that says so.

Authority is what is held now in the tenant (CMP-605): unexpired grants to the person's groups on the plan, the
workflow or the tenant. Superuser-ness, model-level grants and other tenants count for nothing; unknown denies.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

from django.db import models
from django.db.models import F, Q
from django.db.models.functions import Now
from guardian.utils import get_group_obj_perms_model

from audit.models import Decision, Tenant
from audit.permissions import SCOPE_OF
from audit.principals import Principal

DENIED: Final = "authority-denied"
RESOURCE_ID_LENGTH: Final = 512
"""A refused request may name anything; the record keeps this much of it."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Resource:
    """What a decision is about, as the record names it."""

    type: str
    id: str


def granted(principal: Principal, permission: str, model: type[models.Model]) -> models.QuerySet[Any]:
    """Unexpired grants of ``permission`` on objects of ``model`` to the principal's groups; none for the inactive."""
    grants: models.QuerySet[Any] = get_group_obj_perms_model(model()).objects.all()  # type: ignore[attr-defined]
    if principal.user is None or not in_scope(principal, permission):
        return grants.none()
    return grants.filter(
        Q(expires_at__isnull=True) | Q(expires_at__gt=Now()),
        permission__codename=permission,
        group__user__pk=principal.user.pk,
        group__user__is_active=True,
    )


def in_scope(principal: Principal, permission: str) -> bool:
    """Whether the API key in use, if any, carries the scope: necessary, never sufficient."""
    return principal.scopes is None or SCOPE_OF[permission] in principal.scopes


def permits(principal: Principal, permission: str, *scopes: models.Model) -> bool:
    """Whether an unexpired grant on any of ``scopes`` (plan, workflow, tenant) allows it now (CMP-605)."""
    return any(
        granted(principal, permission, type(scope)).filter(content_object=scope).exists()
        for scope in reversed(scopes)  # most grants stand on the tenant, the widest
        if getattr(scope, "tenant_id", scope.pk) == principal.tenant.pk
    )


def decide(
    *,
    principal: Principal,
    action: str,
    permission: str,
    scopes: Sequence[models.Model],
    resource: Resource,
    **bound: Any,
) -> Decision:
    """Judge and record in one step, in the caller's transaction: the returned row says whether it is allowed.

    For an act that learns only later what the row is bound to, `permits` judges first and `record` writes last.
    """
    allowed = permits(principal, permission, *scopes)
    reason = "" if allowed else DENIED
    return record(principal=principal, action=action, resource=resource, allowed=allowed, reason=reason, **bound)


def record(
    *, principal: Principal, action: str, resource: Resource, allowed: bool, reason: str = "", **bound: Any
) -> Decision:
    """Append the `authorization.decided` row in the caller's transaction (CMP-604).

    ``bound``: run_id, effect_id, plan_version, justification, evidence_digest. Takes the tenant's counter lock, which
    is the last lock of every transaction.
    """
    return Decision.objects.create(
        tenant=principal.tenant,
        seq=_next_seq(principal.tenant),
        principal=principal.label,
        principal_kind=principal.kind,
        on_behalf_of=principal.on_behalf_of,
        action=action,
        resource_type=resource.type,
        resource_id=resource.id[:RESOURCE_ID_LENGTH],
        allowed=allowed,
        reason=reason,
        request_id=principal.request_id,
        **bound,
    )


def _next_seq(tenant: Tenant) -> int:
    Tenant.objects.filter(pk=tenant.pk).update(next_decision=F("next_decision") + 1)
    return Tenant.objects.values_list("next_decision", flat=True).get(pk=tenant.pk) - 1
