"""Who is calling: an API key, or a console session for the console's own htmx calls (wire.md, Conventions)."""

from typing import Final

from rest_framework.authentication import BaseAuthentication, SessionAuthentication
from rest_framework.request import Request

from audit import api_keys
from audit.errors import Unauthenticated
from audit.models import Tenant, User
from audit.principals import Principal
from compensation.api.requests import request_id

SCHEME: Final = "Bearer"
TENANT_HEADER: Final = "X-Tenant"


class BearerKey(BaseAuthentication):
    """`Authorization: Bearer <api key>`; the key says which tenant and which principal."""

    def authenticate(self, request: Request) -> tuple[User, Principal] | None:
        header = request.headers.get("Authorization")
        if header is None:
            return None
        scheme, _, raw = header.partition(" ")
        if scheme.lower() != SCHEME.lower() or not raw.strip():
            raise Unauthenticated("The Authorization header is not 'Bearer <api key>'.")
        key = api_keys.authenticate(raw.strip())
        return key.owner, Principal(tenant=key.tenant, user=key.owner, key=key, request_id=request_id(request))

    def authenticate_header(self, request: Request) -> str:
        return SCHEME


class SameSiteSession(SessionAuthentication):
    """A console session, only for a same-origin htmx call with its CSRF token, in a tenant the person belongs to."""

    def authenticate(self, request: Request) -> tuple[User, Principal] | None:
        same_origin = request.headers.get("Sec-Fetch-Site") == "same-origin"
        if not same_origin or request.headers.get("HX-Request") != "true":
            return None
        found = super().authenticate(request)
        if found is None or not isinstance(found[0], User):
            return None
        tenant = self._tenant(request, found[0])
        return found[0], Principal(tenant=tenant, user=found[0], request_id=request_id(request))

    def _tenant(self, request: Request, user: User) -> Tenant:
        slug = request.headers.get(TENANT_HEADER, "").replace("\0", "")
        tenant = Tenant.objects.filter(slug=slug, memberships__user=user).first()
        if tenant is None:
            raise Unauthenticated(f"The {TENANT_HEADER} header names no tenant that you belong to.")
        return tenant
