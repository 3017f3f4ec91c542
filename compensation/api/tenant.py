"""The tenant itself: stop everything, credentials by reference, the egress allow-list."""

from rest_framework.request import Request
from rest_framework.response import Response

from audit import authority
from audit.errors import ValidationFailed
from audit.models import Tenant
from audit.times import wire_time
from compensation.api import bodies, request_schemas, schemas
from compensation.api.docs import described
from compensation.api.endpoint import Endpoint
from compensation.api.idempotency import once
from compensation.api.requests import PAGING, actor, body, paging, query
from compensation.domain.node_type_shape import CREDENTIAL_REF
from compensation.domain.problems import to_wire
from compensation.models import Credential as CredentialRow
from compensation.operations import holds, settings
from compensation.operations.reading import require_to_read
from compensation.queries.paging import page


class TenantHold(Endpoint):
    @described(summary="Stop everything of the tenant: no inverse starts until it is released (CMP-409)", tag="holds",
               body=request_schemas.HOLD, ok={200: schemas.TENANT})  # fmt: skip
    @once
    def post(self, request: Request) -> Response:
        reason = body(request, bodies.HOLD)["justification"]
        return _standing(holds.hold_tenant(actor=actor(request), reason=reason))


class TenantRelease(Endpoint):
    @described(summary="Let the tenant's unwinds go on", tag="holds", body=request_schemas.RELEASE,
               ok={200: schemas.TENANT})  # fmt: skip
    @once
    def post(self, request: Request) -> Response:
        reason = body(request, bodies.RELEASE).get("justification", "")
        return _standing(holds.release_tenant(actor=actor(request), reason=reason))


class Credentials(Endpoint):
    @described(summary="The references of the stored credentials; a secret is never read back", tag="settings",
               query=schemas.PAGING, ok={200: schemas.page_of("credentials", schemas.CREDENTIAL)})  # fmt: skip
    def get(self, request: Request) -> Response:
        values = query(request, PAGING)
        _require(request, "manage_credentials", "credentials:read")
        rows = CredentialRow.objects.filter(tenant=actor(request).tenant).defer("sealed")
        found = page(rows, **paging(values))
        return Response({"credentials": [_credential(row) for row in found.rows], "nextCursor": found.next_cursor})

    @described(summary="Store a secret under a reference, write-only", tag="settings",
               body=request_schemas.NEW_CREDENTIAL,
               ok={201: schemas.CREDENTIAL_REF, 200: schemas.CREDENTIAL_REF})  # fmt: skip
    @once
    def post(self, request: Request) -> Response:
        wanted = body(request, bodies.CREDENTIAL)
        return _stored(request, wanted["ref"], wanted["secret"])


class Credential(Endpoint):
    @described(summary="Replace the secret of a reference, write-only", tag="settings", body=request_schemas.SECRET,
               ok={201: schemas.CREDENTIAL_REF, 200: schemas.CREDENTIAL_REF})  # fmt: skip
    def put(self, request: Request, ref: str) -> Response:
        problems = CREDENTIAL_REF(ref, "/ref")
        if problems:
            raise ValidationFailed("The reference is not valid; nothing was stored.", to_wire(problems))
        return _stored(request, ref, body(request, bodies.SECRET)["secret"])


class Egress(Endpoint):
    @described(summary="What the tenant's calls may reach besides public addresses", tag="settings",
               ok={200: request_schemas.EGRESS})  # fmt: skip
    def get(self, request: Request) -> Response:
        query(request, {})
        _require(request, "manage_egress", "egress:read")
        return Response({"allow": actor(request).tenant.egress_allow})

    @described(summary="Replace the egress allow-list", tag="settings", body=request_schemas.EGRESS,
               ok={200: request_schemas.EGRESS})  # fmt: skip
    def put(self, request: Request) -> Response:
        entries = body(request, bodies.EGRESS)["allow"]
        return Response({"allow": settings.set_egress_allow(actor=actor(request), entries=entries)})


def _require(request: Request, permission: str, action: str) -> None:
    principal = actor(request)
    resource = authority.Resource(type="tenant", id=principal.tenant.slug)
    require_to_read(actor=principal, action=action, permission=permission, scopes=[principal.tenant], resource=resource)


def _stored(request: Request, ref: str, secret: str) -> Response:
    created = settings.set_credential(actor=actor(request), ref=ref, secret=secret)
    return Response({"ref": ref}, status=201 if created else 200)


def _credential(row: CredentialRow) -> dict[str, object]:
    return {"ref": row.ref, "setAt": wire_time(row.set_at), "setBy": f"user:{row.set_by_id}" if row.set_by_id else None}


def _standing(tenant: Tenant) -> Response:
    return Response(
        {"tenant": tenant.slug, "heldAt": wire_time(tenant.held_at), "heldReason": tenant.held_reason or None}
    )
