"""Who is acting, as the engine sees it."""

import uuid
from dataclasses import dataclass, field

from audit.models import ApiKey, Tenant, User


@dataclass(frozen=True, kw_only=True, slots=True)
class Principal:
    """Somebody in one tenant. A key acts for its owner; the system acts for nobody.

    ``scopes`` is None when no API key limits what is done; ``request_id`` ties the decision to its request.
    """

    tenant: Tenant
    user: User | None
    key: ApiKey | None = None
    request_id: str = field(default_factory=lambda: uuid.uuid4().hex)

    @property
    def kind(self) -> str:
        if self.key is not None:
            return "api_key"
        return "system" if self.user is None else "user"

    @property
    def label(self) -> str:
        """The name the record carries: ``user:7``, ``api_key:<id>`` or ``system:engine``."""
        if self.key is not None:
            return f"api_key:{self.key.pk}"
        return "system:engine" if self.user is None else f"user:{self.user.pk}"

    @property
    def on_behalf_of(self) -> str:
        """The owner an API key acts for, who counts in separation of duties (CMP-608)."""
        return f"user:{self.user.pk}" if self.key is not None and self.user is not None else ""

    @property
    def scopes(self) -> frozenset[str] | None:
        return None if self.key is None else frozenset(self.key.scopes)
