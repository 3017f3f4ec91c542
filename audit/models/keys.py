"""API keys: one tenant, one owner, some scopes, an end."""

import hashlib
import secrets
import uuid

from django.contrib.postgres.fields import ArrayField
from django.db import models
from django.db.models.functions import Now

from audit.ids import uuid7
from audit.models.people import User
from audit.models.tenants import Tenant

PREFIX = "rck_"


def hash_key(key: str) -> str:
    """Hex SHA-256. A key holds 256 random bits, so a slow hash would protect nothing more."""
    return hashlib.sha256(key.encode()).hexdigest()


class ApiKey(models.Model):
    """A bearer key that acts for its owner. Only its hash is kept; the key is shown once."""

    id: models.UUIDField[uuid.UUID, uuid.UUID] = models.UUIDField(primary_key=True, default=uuid7, editable=False)
    tenant = models.ForeignKey(Tenant, on_delete=models.PROTECT, related_name="api_keys")
    owner = models.ForeignKey(User, on_delete=models.PROTECT, related_name="api_keys")
    name = models.CharField(max_length=200)
    hint = models.CharField(max_length=16)
    hash = models.CharField(max_length=64)
    scopes = ArrayField(models.CharField(max_length=64))
    created_at = models.DateTimeField(db_default=Now())
    expires_at = models.DateTimeField(null=True)
    revoked_at = models.DateTimeField(null=True)
    last_used_at = models.DateTimeField(null=True)

    class Meta:
        constraints = (models.UniqueConstraint(fields=["hash"], name="api_key_hash_unique"),)
        default_permissions = ()

    def __str__(self) -> str:
        return f"{self.name} ({self.hint}…)"

    @staticmethod
    def generate() -> str:
        """A new key with 256 random bits."""
        return PREFIX + secrets.token_urlsafe(32)
