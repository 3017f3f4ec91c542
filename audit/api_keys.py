"""API keys: issued once, kept as a hash, checked on every request."""

from collections.abc import Iterable
from datetime import datetime, timedelta
from typing import Final

from django.db.models import BooleanField, ExpressionWrapper, Q
from django.db.models.functions import Now

from audit.errors import KeyExpired, KeyRevoked, Unauthenticated, ValidationFailed
from audit.models import ApiKey, Tenant, User
from audit.models.keys import PREFIX, hash_key
from audit.permissions import SCOPES

HINT_LENGTH: Final = len(PREFIX) + 4
USE_RESOLUTION: Final = timedelta(minutes=1)


def issue(
    *, tenant: Tenant, owner: User, name: str, scopes: Iterable[str], expires_at: datetime | None = None
) -> tuple[ApiKey, str]:
    """A new key and its text, which is shown now and never again. An unknown scope is refused."""
    wanted = sorted(set(scopes))
    unknown = [scope for scope in wanted if scope not in SCOPES]
    if unknown:
        message = f"no such scope: {', '.join(unknown)}; allowed: {', '.join(sorted(SCOPES))}"
        raise ValidationFailed("The key was not issued.", [{"pointer": "/scopes", "message": message}])
    raw = ApiKey.generate()
    key = ApiKey.objects.create(
        tenant=tenant,
        owner=owner,
        name=name,
        hint=raw[:HINT_LENGTH],
        hash=hash_key(raw),
        scopes=wanted,
        expires_at=expires_at,
    )
    return key, raw


def authenticate(raw: str) -> ApiKey:
    """The live key behind a bearer text; `Unauthenticated`, `KeyRevoked` or `KeyExpired` (the database's clock)."""
    expired = ExpressionWrapper(Q(expires_at__isnull=False, expires_at__lte=Now()), output_field=BooleanField())
    idle = ExpressionWrapper(Q(last_used_at__isnull=True) | _used_long_ago(), output_field=BooleanField())
    key = (
        ApiKey.objects.select_related("tenant", "owner")
        .annotate(expired=expired, idle=idle)
        .filter(hash=hash_key(raw))
        .first()
    )
    if key is None or not key.owner.is_active:
        raise Unauthenticated("The API key is not known here.")
    if key.revoked_at is not None:
        raise KeyRevoked("The API key was revoked.")
    if key.expired:
        raise KeyExpired("The API key has expired.")
    if key.idle:
        _note_use(key)
    return key


def _used_long_ago() -> Q:
    return Q(last_used_at__lt=Now() - USE_RESOLUTION)


def _note_use(key: ApiKey) -> None:
    """At most once a minute, whoever comes first: a busy key must not turn every read into a write."""
    unnoted = ApiKey.objects.filter(Q(last_used_at__isnull=True) | _used_long_ago(), pk=key.pk)
    unnoted.update(last_used_at=Now())
