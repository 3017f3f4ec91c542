"""Answers kept for a repeated request."""

from django.conf import settings
from django.db import models
from django.db.models.functions import Now

from compensation.models.base import TenantRow


class IdempotencyRecord(TenantRow):
    """The first final answer under an `Idempotency-Key`, replayed for 24 h (wire.md, Conventions)."""

    user = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="+")
    key = models.CharField(max_length=255)
    fingerprint = models.CharField(max_length=64)
    status = models.PositiveIntegerField()
    body = models.JSONField()
    created_at = models.DateTimeField(db_default=Now())

    class Meta:
        constraints = (models.UniqueConstraint(fields=["tenant", "user", "key"], name="idempotency_key_unique"),)
        indexes = (models.Index(fields=["created_at"], name="idempotency_age"),)
        default_permissions = ()

    def __str__(self) -> str:
        return self.key
