"""Tenants with a person in every role, and the definitions they share, against a real sandbox downstream."""

from __future__ import annotations

import json
import uuid
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from django.contrib.auth.models import Group, Permission

from audit.models import ApiKey, Membership, Tenant, TenantGrant, User
from audit.models.keys import hash_key
from audit.permissions import ROLES
from audit.principals import Principal
from compensation.operations import registration
from compensation.sandbox.node_types import node_types

EXAMPLES: Final = Path(__file__).resolve().parents[1] / "examples"
EXAMPLE_NAMES: Final = ("order-fulfilment", "travel-booking", "supplier-payment")

# Where quorum and separation of duties need a second person of the same role.
PEOPLE: Final = {**{role: role for role in ROLES}, "second_approver": "approver", "second_lead": "lead"}


@dataclass(frozen=True, kw_only=True, slots=True)
class House:
    """One tenant and its people, each a different person, ready to act."""

    tenant: Tenant
    viewer: Principal
    approver: Principal
    second_approver: Principal
    operator: Principal
    lead: Principal
    second_lead: Principal
    auditor: Principal
    admin: Principal
    service: Principal

    def key_of(self, owner: Principal, scopes: Iterable[str]) -> Principal:
        """An API key of `owner`, acting: it counts as its owner."""
        text = ApiKey.generate()
        key = ApiKey.objects.create(
            tenant=self.tenant,
            owner=user_of(owner),
            name="key",
            hint=text[:8],
            hash=hash_key(text),
            scopes=list(scopes),
        )
        return Principal(tenant=self.tenant, user=owner.user, key=key)


def house(slug: str, **settings: Any) -> House:
    """A tenant whose roles are the groups `<slug>:<role>`, and one person called `<slug>-<name>` for each of PEOPLE."""
    tenant = Tenant.objects.create(slug=slug, name=slug.title(), egress_allow=["127.0.0.0/8"], **settings)
    groups = {group.name: group for group in Group.objects.bulk_create(Group(name=f"{slug}:{role}") for role in ROLES)}
    grant_roles(tenant, groups)
    users = User.objects.bulk_create(User(username=f"{slug}-{name}") for name in PEOPLE)
    Membership.objects.bulk_create(Membership(tenant=tenant, user=user) for user in users)
    joined = zip(users, PEOPLE.values(), strict=True)
    User.groups.through.objects.bulk_create(
        User.groups.through(user=user, group=groups[f"{slug}:{role}"]) for user, role in joined
    )
    people = {name: Principal(tenant=tenant, user=user) for name, user in zip(PEOPLE, users, strict=True)}
    return House(tenant=tenant, **people)


def grant_roles(tenant: Tenant, groups: dict[str, Group]) -> None:
    """Every permission of every role, on the tenant."""
    known = Permission.objects.filter(content_type__app_label="audit", content_type__model="tenant")
    permissions = {permission.codename: permission for permission in known}
    TenantGrant.objects.bulk_create(
        TenantGrant(content_object=tenant, group=groups[f"{tenant.slug}:{role}"], permission=permissions[codename])
        for role, codenames in ROLES.items()
        for codename in sorted(codenames)
    )


def two_houses(*, unique: bool = False) -> tuple[House, House]:
    """`acme` and `globex`; with `unique`, under slugs that no other test has."""
    suffix = f"-{uuid.uuid4().hex[:8]}" if unique else ""
    return house(f"acme{suffix}"), house(f"globex{suffix}")


def user_of(principal: Principal) -> User:
    """The person behind a principal."""
    assert principal.user is not None
    return principal.user


def example(name: str) -> dict[str, Any]:
    """An example workflow as it is published."""
    document: dict[str, Any] = json.loads((EXAMPLES / f"{name}.json").read_text())
    return document


def register_sandbox(home: House, url: str) -> None:
    """Every sandbox node type, its requests going to `url`."""
    for document in node_types(url):
        registration.register_node_type(actor=home.service, document=document)


def register_examples(home: House, url: str) -> None:
    """The sandbox's node types and the three example workflows."""
    register_sandbox(home, url)
    for name in EXAMPLE_NAMES:
        registration.register_workflow(actor=home.service, document=example(name))
