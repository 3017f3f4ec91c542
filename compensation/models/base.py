"""What every row of a tenant has in common."""

import uuid
from typing import Any

import pgtrigger
from django.db import models

from audit.ids import uuid7
from audit.models import Tenant


class TenantRow(models.Model):
    """A row that belongs to a tenant. Its parents are joined by (tenant, id), so no row can point across the wall."""

    id: models.UUIDField[uuid.UUID, uuid.UUID] = models.UUIDField(primary_key=True, default=uuid7, editable=False)
    tenant = models.ForeignKey(Tenant, on_delete=models.PROTECT, related_name="+")

    class Meta:
        abstract = True
        default_permissions = ()


def parent(to: str, **options: Any) -> Any:
    """A foreign key whose constraint is the composite (tenant_id, x_id), made in the migration."""
    return models.ForeignKey(to, on_delete=models.PROTECT, db_constraint=False, **options)


def tenant_key(table: str) -> models.UniqueConstraint:
    """The unique (tenant, id) that composite foreign keys refer to."""
    return models.UniqueConstraint(fields=["tenant", "id"], name=f"{table}_tenant_key")


def mirrors(name: str, field: str, values: object) -> models.CheckConstraint:
    """A CHECK that holds a column to an enum of the domain."""
    return models.CheckConstraint(condition=models.Q(**{f"{field}__in": [str(v) for v in values]}), name=name)  # type: ignore[attr-defined]


APPEND_ONLY = pgtrigger.Protect(name="append_only", operation=pgtrigger.Update | pgtrigger.Delete)
KEPT = pgtrigger.Protect(name="kept", operation=pgtrigger.Delete)
