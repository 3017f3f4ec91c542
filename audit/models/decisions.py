"""The record: who decided what, with which authority, and who was refused."""

import uuid

import pgtrigger
from django.db import models
from django.db.models.functions import Now

from audit.ids import uuid7
from audit.models.tenants import Tenant


class Decision(models.Model):
    """One `authorization.decided` row (CMP-604). Append-only; ``seq`` runs 1, 2, 3 … per tenant without gaps."""

    id: models.UUIDField[uuid.UUID, uuid.UUID] = models.UUIDField(primary_key=True, default=uuid7, editable=False)
    tenant = models.ForeignKey(Tenant, on_delete=models.PROTECT, related_name="decisions")
    seq = models.BigIntegerField()
    at = models.DateTimeField(db_default=Now())
    principal = models.CharField(max_length=128)
    principal_kind = models.CharField(max_length=16)
    on_behalf_of = models.CharField(max_length=128, blank=True, default="")
    action = models.CharField(max_length=64)
    resource_type = models.CharField(max_length=64)
    resource_id = models.CharField(max_length=512)
    run_id = models.UUIDField(null=True)
    effect_id = models.CharField(max_length=64, blank=True, default="")
    plan_version = models.PositiveIntegerField(null=True)
    allowed = models.BooleanField()
    reason = models.TextField(blank=True, default="")
    justification = models.TextField(blank=True, default="")
    evidence_digest = models.CharField(max_length=64, blank=True, default="")
    request_id = models.CharField(max_length=64, blank=True, default="")

    class Meta:
        constraints = (
            models.UniqueConstraint(fields=["tenant", "seq"], name="decision_seq_unique"),
            models.CheckConstraint(
                condition=models.Q(principal_kind__in=["user", "api_key", "system"]), name="decision_principal_kind"
            ),
            models.CheckConstraint(condition=models.Q(seq__gte=1), name="decision_seq_positive"),
        )
        indexes = (models.Index(fields=["tenant", "run_id", "seq"], name="decision_of_run"),)
        triggers = (
            pgtrigger.Protect(name="append_only", operation=pgtrigger.Update | pgtrigger.Delete),
            pgtrigger.Trigger(
                name="gap_free",
                when=pgtrigger.Before,
                operation=pgtrigger.Insert,
                func="""
                if new.seq > 1 and not exists (
                    select 1 from audit_decision where tenant_id = new.tenant_id and seq = new.seq - 1
                ) then
                    raise exception 'decision % of tenant % leaves a gap', new.seq, new.tenant_id
                        using errcode = 'check_violation';
                end if;
                return new;
                """,
            ),
        )
        default_permissions = ()

    def __str__(self) -> str:
        return f"{self.tenant_id}/{self.seq} {self.action}"
