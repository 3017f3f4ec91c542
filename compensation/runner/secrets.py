"""The credentials of a wave of calls, read at call time and kept nowhere (CMP-304)."""

from collections.abc import Iterable

from django.conf import settings

from compensation.connectors.credentials import CredentialUnreadableError, Secret, parse_keys, unseal
from compensation.connectors.request import credential_refs
from compensation.models import Credential
from compensation.runner.claims import Claimed
from compensation.runner.specs import spec_of


def credentials_for(calls: Iterable[Claimed]) -> dict[int, dict[str, Secret]]:
    """Unsealed credentials by tenant and reference, for what these calls' own node types refer to."""
    wanted = {
        (call.tenant_id, call.tenant, ref)
        for call in calls
        for ref in credential_refs(spec_of(call.node_type_version_id))
    }
    found: dict[int, dict[str, Secret]] = {}
    if not wanted:
        return found
    keys = parse_keys(settings.CREDENTIAL_KEYS)
    slugs = {tenant_id: slug for tenant_id, slug, _ in wanted}
    refs = {ref for _, _, ref in wanted}
    for row in Credential.objects.filter(tenant_id__in=slugs, ref__in=refs):
        try:
            secret = unseal(bytes(row.sealed), keys, owner=owner_of(slugs[row.tenant_id], row.ref))
        except CredentialUnreadableError:
            continue  # the call is then refused before it is sent, as a missing credential
        found.setdefault(row.tenant_id, {})[row.ref] = secret
    return found


def owner_of(tenant: str, ref: str) -> str:
    """What a sealed credential is bound to, so that its row serves no other tenant or reference."""
    return f"{tenant}/{ref}"
