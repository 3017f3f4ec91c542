"""People and services, and the tenants they belong to."""

from django.contrib.auth.models import AbstractUser
from django.db import models
from django.db.models.functions import Now

from audit.models.tenants import Tenant


class User(AbstractUser):
    """Someone who acts: a person, or a service that acts under its own name."""

    is_service = models.BooleanField(default=False)
    tenants = models.ManyToManyField(Tenant, through="Membership", related_name="members")

    class Meta:
        default_permissions = ()

    def __str__(self) -> str:
        return self.get_full_name() or self.username


class Membership(models.Model):
    """That somebody belongs to a tenant. It shows the tenant in their switcher and grants nothing by itself."""

    id = models.BigAutoField(primary_key=True)
    tenant = models.ForeignKey(Tenant, on_delete=models.PROTECT, related_name="memberships")
    user = models.ForeignKey(User, on_delete=models.CASCADE, related_name="memberships")
    since = models.DateTimeField(db_default=Now())

    class Meta:
        constraints = (models.UniqueConstraint(fields=["tenant", "user"], name="membership_unique"),)
        default_permissions = ()

    def __str__(self) -> str:
        return f"{self.user} in {self.tenant}"
