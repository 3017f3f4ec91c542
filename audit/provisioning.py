"""Setting up who there is: tenants, people, their roles and their keys."""

import re
from collections.abc import Iterable
from datetime import datetime
from typing import Final

from django.contrib.auth.models import Group, Permission
from django.contrib.contenttypes.models import ContentType
from django.db import transaction

from audit import api_keys, authority
from audit.errors import ValidationFailed
from audit.models import Membership, Tenant, TenantGrant, User
from audit.permissions import ROLES
from audit.principals import Principal

_ACT: Final = frozenset({"compensation:retry", "compensation:start"})

KEY_SCOPES: Final[dict[str, frozenset[str]]] = {
    "service": frozenset(
        {
            "workflows:write",
            "runs:create",
            "runs:read",
            "runs:cancel",
            "facts:write",
            "actions:propose",
            "manifest:read",
        }
    ),
    "operator": frozenset({"runs:read", *_ACT}),
    "lead": frozenset({"runs:read", *_ACT, "compensation:skip", "compensation:substitute", "compensation:terminate"}),
    "approver": frozenset({"runs:read", "approvals:respond"}),
    "auditor": frozenset({"runs:read", "audit:read", "audit:export"}),
}
"""The scopes of a key for each role that works through the API (wire.md, What the demo's API keys may do)."""


def slug_problem(slug: str) -> str | None:
    """Why this cannot be a tenant's id; None when it can."""
    if re.fullmatch(r"[a-z][a-z0-9-]{0,63}", slug, re.ASCII):
        return None
    return (
        f"'{slug}' cannot be a tenant's id: expected a lower-case letter, then letters, digits and dashes, 64 at most."
    )


@transaction.atomic
def create_tenant(*, slug: str, name: str, colour: str = "indigo") -> Tenant:
    """A tenant with a group and its grants for every role."""
    tenant = Tenant.objects.create(slug=slug, name=name, colour=colour)
    _record(tenant, "tenants:create", "tenant", slug)
    for role in ROLES:
        grant_role(tenant=tenant, role=role)
    return tenant


def create_person(
    *,
    tenant: Tenant,
    username: str,
    password: str | None,
    roles: Iterable[str] = (),
    first_name: str = "",
    last_name: str = "",
    is_service: bool = False,
) -> User:
    """A person (or a service, with ``password`` None) of a tenant, in these roles."""
    with transaction.atomic():
        user = User(username=username, first_name=first_name, last_name=last_name, is_service=is_service)
        user.set_password(password)
        user.save()
        join_tenant(tenant=tenant, user=user)
        for role in roles:
            give_role(tenant=tenant, user=user, role=role)
    return user


def join_tenant(*, tenant: Tenant, user: User) -> None:
    """Make somebody a member; that grants nothing by itself."""
    _, joined = Membership.objects.get_or_create(tenant=tenant, user=user)
    if joined:
        _record(tenant, "members:write", "user", str(user.pk))


def give_role(*, tenant: Tenant, user: User, role: str) -> None:
    """Put a member into a role's group of this tenant."""
    with transaction.atomic():
        group = grant_role(tenant=tenant, role=role)
        join_tenant(tenant=tenant, user=user)
        if not user.groups.filter(pk=group.pk).exists():
            user.groups.add(group)
            _record(tenant, "grants:write", "user", f"{user.pk} {role}")


def grant_role(*, tenant: Tenant, role: str, expires_at: datetime | None = None) -> Group:
    """The role's group of this tenant, holding exactly the grants that the role bundles."""
    if role not in ROLES:
        message = f"no such role; allowed: {', '.join(ROLES)}"
        raise ValidationFailed("Nothing was granted.", [{"pointer": "/role", "message": message}])
    group, _ = Group.objects.get_or_create(name=f"{tenant.slug}:{role}")
    content_type = ContentType.objects.get_for_model(Tenant)
    held = TenantGrant.objects.filter(group=group, content_object=tenant).values("permission__codename")
    wanted = Permission.objects.filter(content_type=content_type, codename__in=ROLES[role])
    TenantGrant.objects.bulk_create(
        TenantGrant(group=group, content_object=tenant, permission=permission, expires_at=expires_at)
        for permission in wanted.exclude(codename__in=held)
    )
    return group


def issue_key(
    *, tenant: Tenant, owner: User, scopes: Iterable[str], name: str = "", expires_at: datetime | None = None
) -> str:
    """A key for a member of the tenant; its text is returned once and kept nowhere."""
    if not Membership.objects.filter(tenant=tenant, user=owner).exists():
        message = f"'{owner.username}' is not a member of '{tenant.slug}'"
        raise ValidationFailed("The key was not issued.", [{"pointer": "/principal", "message": message}])
    with transaction.atomic():
        key, raw = api_keys.issue(
            tenant=tenant, owner=owner, name=name or owner.username, scopes=scopes, expires_at=expires_at
        )
        _record(tenant, "api-keys:write", "api-key", str(key.pk))
    return raw


def _record(tenant: Tenant, action: str, resource_type: str, resource_id: str) -> None:
    """Provisioning is done by whoever runs the host: the record says so."""
    authority.record(
        principal=Principal(tenant=tenant, user=None),
        action=action,
        resource=authority.Resource(type=resource_type, id=resource_id),
        allowed=True,
    )
