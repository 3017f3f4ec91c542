"""A tenant's settings: credentials and the egress allow-list. Each change is an act on record."""

from collections.abc import Sequence

from django.conf import settings
from django.db.models.functions import Now

from audit import authority
from audit.errors import ValidationFailed
from audit.models import Tenant
from audit.principals import Principal
from compensation.connectors.credentials import Secret, parse_keys, seal
from compensation.connectors.egress import AllowListError, parse_allow
from compensation.models import Credential
from compensation.operations.acting import acting_on_tenant
from compensation.runner.secrets import owner_of


def set_credential(*, actor: Principal, ref: str, secret: str) -> bool:
    """Seal a secret under its reference, replacing the one before; True when the reference is new (CMP-304)."""
    resource = authority.Resource(type="credential", id=ref)
    with acting_on_tenant(actor=actor, action="credentials:write", permission="manage_credentials", resource=resource):
        sealed = seal(Secret(secret), parse_keys(settings.CREDENTIAL_KEYS), owner=owner_of(actor.tenant.slug, ref))
        values = {"sealed": sealed, "set_by": actor.user, "set_at": Now()}
        _, created = Credential.objects.update_or_create(tenant=actor.tenant, ref=ref, defaults=values)
    return created


def set_egress_allow(*, actor: Principal, entries: Sequence[str]) -> list[str]:
    """Replace the tenant's egress allow-list; an entry that is none is refused with its place."""
    resource = authority.Resource(type="egress", id=actor.tenant.slug)
    with acting_on_tenant(actor=actor, action="egress:write", permission="manage_egress", resource=resource):
        try:
            parse_allow(entries)
        except AllowListError as error:
            problem = {"pointer": f"/allow/{error.index}", "message": str(error)}
            raise ValidationFailed("The allow-list was not changed.", [problem]) from None
        Tenant.objects.filter(pk=actor.tenant.pk).update(egress_allow=list(entries))
    return list(entries)
