"""Object grants: a group may do something on one object, perhaps until a certain time."""

from django.conf import settings
from django.db import models
from django.db.models.functions import Now
from guardian.models import GroupObjectPermissionBase

from audit.models.tenants import Tenant


class ExpiringGrant(GroupObjectPermissionBase):
    """Guardian's direct-FK group grant with an end and a giver. Only `audit.authority` reads it."""

    expires_at = models.DateTimeField(null=True, blank=True)
    granted_by = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.PROTECT, null=True, related_name="+")
    granted_at = models.DateTimeField(db_default=Now())
    reason = models.TextField(blank=True, default="")

    class Meta(GroupObjectPermissionBase.Meta):
        abstract = True


class TenantGrant(ExpiringGrant):
    """A grant on everything of a tenant."""

    content_object = models.ForeignKey(Tenant, on_delete=models.CASCADE)

    class Meta(ExpiringGrant.Meta):
        default_permissions = ()

    def __str__(self) -> str:
        return f"{self.group} on tenant {self.content_object}"
