"""A tenant: the wall that nothing crosses."""

import pgtrigger
from django.db import models
from django.db.models.functions import Now

from audit.permissions import PERMISSIONS


class Tenant(models.Model):
    """One customer. ``slug`` is the wire id and part of every effect identity (CMP-310), so it never changes."""

    id = models.BigAutoField(primary_key=True)
    slug = models.CharField(max_length=64)
    name = models.CharField(max_length=200)
    colour = models.CharField(max_length=16, default="indigo")
    approve_ahead = models.BooleanField(default=False)
    approval_expires_after_s = models.PositiveIntegerField(null=True)
    egress_allow = models.JSONField(default=list)
    held_at = models.DateTimeField(null=True)
    held_reason = models.TextField(blank=True, default="")
    next_decision = models.BigIntegerField(default=1)
    created_at = models.DateTimeField(db_default=Now())

    class Meta:
        constraints = (
            models.UniqueConstraint(fields=["slug"], name="tenant_slug_unique"),
            models.CheckConstraint(condition=models.Q(slug__regex=r"^[a-z][a-z0-9-]*$"), name="tenant_slug_shape"),
        )
        triggers = (pgtrigger.ReadOnly(name="slug_frozen", fields=["slug"]),)
        default_permissions = ()
        permissions = tuple(PERMISSIONS.items())

    def __str__(self) -> str:
        return self.slug
