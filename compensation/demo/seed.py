"""Two tenants, their people, keys and definitions. Starting again changes nothing that is already there."""

import secrets
from typing import Final

from django.db import transaction
from django.db.models.functions import Now

from audit import authority, provisioning
from audit.models import ApiKey, Tenant, User
from audit.models.keys import hash_key
from audit.principals import Principal
from compensation.demo.documents import workflows
from compensation.demo.handout import Handout, Login, TenantHandout
from compensation.demo.people import COMPANIES, Company, Person
from compensation.operations import registration
from compensation.sandbox.node_types import node_types

PASSWORD_BYTES: Final = 9


def seed(*, url: str, sandbox_url: str, earlier: Handout | None) -> Handout:
    """Have everything the demo needs in the database; what ``earlier`` handed out stays valid."""
    known = {tenant["id"]: tenant for tenant in earlier["tenants"]} if earlier else {}
    tenants = [_seed_company(company, known.get(company.slug), sandbox_url) for company in COMPANIES]
    return {"url": url, "sandboxUrl": sandbox_url, "tenants": tenants}


@transaction.atomic
def _seed_company(company: Company, earlier: TenantHandout | None, sandbox_url: str) -> TenantHandout:
    tenant = Tenant.objects.filter(slug=company.slug).first() or provisioning.create_tenant(
        slug=company.slug, name=company.name, colour=company.colour
    )
    _open_egress(tenant, sandbox_url.removeprefix("http://"))
    passwords = {login["username"]: login["password"] for login in earlier["users"]} if earlier else {}
    keys = earlier["apiKeys"] if earlier else {}
    handout = TenantHandout(id=company.slug, apiKeys={}, users=[])
    for person in company.people:
        username = f"{company.slug}-{person.login}"
        user, password = _have_person(tenant, person, username, passwords.get(username))
        handout["users"].append(Login(username=username, password=password, roles=[person.role]))
        if person.key:
            handout["apiKeys"][person.key] = _have_key(tenant, user, person.key, keys.get(person.key, ""))
    _register_definitions(tenant, f"{company.slug}-service", sandbox_url)
    return handout


def _have_person(tenant: Tenant, person: Person, username: str, earlier: str | None) -> tuple[User, str]:
    """The person and their password; a new one when nobody knows the old one any more."""
    user = User.objects.filter(username=username).first()
    if user is not None and earlier is not None:
        return user, earlier
    password = earlier or secrets.token_urlsafe(PASSWORD_BYTES)
    if user is None:
        user = provisioning.create_person(
            tenant=tenant,
            username=username,
            password=password,
            roles=[person.role],
            first_name=person.first_name,
            last_name=person.last_name,
            is_service=person.role == "service",
        )
    else:
        user.set_password(password)
        user.save(update_fields=["password"])
    return user, password


def _have_key(tenant: Tenant, owner: User, role: str, earlier: str) -> str:
    """The key handed out earlier while it is good; else a new one, and the lost ones are revoked."""
    name = f"demo {role}"
    live = ApiKey.objects.filter(tenant=tenant, owner=owner, name=name, revoked_at__isnull=True)
    if earlier and live.filter(hash=hash_key(earlier)).exists():
        return earlier
    live.update(revoked_at=Now())
    return provisioning.issue_key(tenant=tenant, owner=owner, name=name, scopes=provisioning.KEY_SCOPES[role])


def _open_egress(tenant: Tenant, address: str) -> None:
    """Let the tenant's calls reach the sandbox, which listens where only an allow-list entry leads."""
    if address in tenant.egress_allow:
        return
    tenant.egress_allow = [*tenant.egress_allow, address]
    tenant.save(update_fields=["egress_allow"])
    authority.record(
        principal=Principal(tenant=tenant, user=None),
        action="egress:write",
        resource=authority.Resource(type="egress", id=address),
        allowed=True,
    )


def _register_definitions(tenant: Tenant, service: str, sandbox_url: str) -> None:
    actor = Principal(tenant=tenant, user=User.objects.get(username=service))
    for document in node_types(sandbox_url):
        registration.register_node_type(actor=actor, document=document)
    for document in workflows().values():
        registration.register_workflow(actor=actor, document=document)
