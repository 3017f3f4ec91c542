"""Doing it: due work, attempts, readbacks, and what needs a person."""

import pgtrigger
from django.db import models
from django.db.models import Q
from django.db.models.functions import Now

from compensation.domain.states import AttemptOutcome
from compensation.models.base import APPEND_ONLY, KEPT, TenantRow, parent, tenant_key


class Work(models.Model):
    """A row exists iff an entry is due or leased. ``due_at`` is the lease's end while ``token`` is set.

    ``token`` fences: it is the id of the attempt (or of the readback) in flight, and only its holder can record.
    ``stale_at``: from then on the downstream may have forgotten the key of an effect that may have been applied, so
    it is not sent again but read back or held (CMP-405).
    """

    obligation = models.OneToOneField(
        "Obligation", on_delete=models.PROTECT, primary_key=True, db_constraint=False, related_name="work"
    )
    tenant = models.ForeignKey("audit.Tenant", on_delete=models.PROTECT, related_name="+")
    run = parent("Run", related_name="+")
    node_type = parent("NodeType", related_name="+")
    kind = models.CharField(max_length=8, default="attempt")
    due_at = models.DateTimeField()
    stale_at = models.DateTimeField(null=True)
    token = models.UUIDField(null=True)

    class Meta:
        constraints = (models.CheckConstraint(condition=Q(kind__in=["attempt", "readback"]), name="work_kind"),)
        indexes = (
            models.Index(fields=["due_at"], name="work_due"),
            models.Index(fields=["node_type"], condition=Q(token__isnull=False), name="work_in_flight"),
        )
        default_permissions = ()

    def __str__(self) -> str:
        return f"{self.kind} {self.obligation_id}"


class Attempt(TenantRow):
    """One send of one inverse action, durable before the call leaves (CMP-401). Its id is the fencing token."""

    obligation = parent("Obligation", related_name="attempt_rows")
    number = models.PositiveIntegerField()
    worker = models.CharField(max_length=128)
    idempotency_key = models.CharField(max_length=96)
    node_type_version = parent("NodeTypeVersion", related_name="+")
    started_at = models.DateTimeField(db_default=Now())
    deadline_at = models.DateTimeField()
    finished_at = models.DateTimeField(null=True)
    outcome = models.CharField(max_length=16, null=True)  # noqa: DJ001 - null is the wire's "in flight"
    http_status = models.PositiveIntegerField(null=True)
    error_class = models.CharField(max_length=64, blank=True, default="")
    receipt = models.JSONField(null=True)
    clocks = models.JSONField(default=dict)

    class Meta:
        constraints = (
            tenant_key("attempt"),
            models.UniqueConstraint(fields=["tenant", "obligation", "number"], name="attempt_number_unique"),
            models.UniqueConstraint(
                fields=["tenant", "obligation"], condition=Q(finished_at__isnull=True), name="attempt_one_in_flight"
            ),
            models.CheckConstraint(
                condition=Q(outcome__isnull=True) | Q(outcome__in=[o.value for o in AttemptOutcome]),
                name="attempt_outcome",
            ),
            models.CheckConstraint(
                condition=Q(outcome__isnull=True, finished_at__isnull=True)
                | Q(outcome__isnull=False, finished_at__isnull=False),
                name="attempt_finished_iff_outcome",
            ),
        )
        triggers = (
            KEPT,
            pgtrigger.Protect(
                name="recorded_once", operation=pgtrigger.Update, condition=pgtrigger.Q(old__finished_at__isnull=False)
            ),
            pgtrigger.ReadOnly(
                name="frozen",
                fields=[
                    "tenant",
                    "obligation",
                    "number",
                    "worker",
                    "idempotency_key",
                    "node_type_version",
                    "started_at",
                ],
            ),
            pgtrigger.Trigger(
                name="may_start",
                when=pgtrigger.Before,
                operation=pgtrigger.Insert,
                declare=[("entry", "compensation_obligation%rowtype")],
                func="""
                select * into entry from compensation_obligation
                where tenant_id = new.tenant_id and id = new.obligation_id;
                if entry.outcome is not null then
                    raise exception 'obligation % is already %', entry.id, entry.outcome
                        using errcode = 'check_violation';
                end if;
                if entry.requires_approval and not exists (
                    select 1 from approvals_interrupt
                    where subject_id = entry.id and tenant_id = entry.tenant_id
                        and handler = 'compensation.inverse' and state = 'approved'
                        and digest = entry.digest and subject_version = entry.entry_version
                ) then
                    raise exception 'obligation % is not approved at its digest', entry.id
                        using errcode = 'check_violation';
                end if;
                return new;
                """,
            ),
        )
        default_permissions = ()

    def __str__(self) -> str:
        return f"{self.obligation_id} attempt {self.number}"


class Readback(TenantRow):
    """One look at the target system about an unknown effect (CMP-405)."""

    obligation = parent("Obligation", related_name="readbacks")
    attempt = parent("Attempt", related_name="readbacks")
    number = models.PositiveIntegerField()
    verdict = models.CharField(max_length=16)
    http_status = models.PositiveIntegerField(null=True)
    error_class = models.CharField(max_length=64, blank=True, default="")
    receipt = models.JSONField(null=True)
    started_at = models.DateTimeField(db_default=Now())
    at = models.DateTimeField(db_default=Now())

    class Meta:
        constraints = (
            models.UniqueConstraint(fields=["tenant", "attempt", "number"], name="readback_number_unique"),
            models.CheckConstraint(
                condition=Q(verdict__in=["applied", "not_applied", "unknown"]), name="readback_verdict"
            ),
        )
        triggers = (APPEND_ONLY,)
        default_permissions = ()

    def __str__(self) -> str:
        return f"{self.attempt_id} readback {self.number}: {self.verdict}"


class Attention(TenantRow):
    """What needs a person, until it was dealt with: a dead letter, a plan held for an operator, a late effect.

    An open row of kind ``manual`` holds its plan and makes the rollup read ``manual``.
    """

    run = parent("Run", related_name="attention")
    plan = parent("Plan", null=True, related_name="attention")
    obligation = parent("Obligation", null=True, related_name="attention")
    effect = parent("Effect", null=True, related_name="attention")
    kind = models.CharField(max_length=16)
    cause = models.CharField(max_length=32)
    plan_version = models.PositiveIntegerField(null=True)
    opened_at = models.DateTimeField(db_default=Now())
    resolved_at = models.DateTimeField(null=True)
    resolved_by = models.CharField(max_length=128, blank=True, default="")

    class Meta:
        constraints = (
            models.CheckConstraint(
                condition=Q(kind__in=["dead_letter", "manual", "uncompensated"]), name="attention_kind"
            ),
            models.UniqueConstraint(
                fields=["tenant", "run", "obligation", "kind", "cause"],
                condition=Q(resolved_at__isnull=True, effect__isnull=True),
                nulls_distinct=False,
                name="attention_one_open",
            ),
        )
        indexes = (
            models.Index(
                fields=["tenant", "kind", "-id"], condition=Q(resolved_at__isnull=True), name="attention_open"
            ),
            models.Index(fields=["run"], name="attention_of_run"),
            models.Index(fields=["plan"], name="attention_of_plan"),
        )
        triggers = (KEPT,)
        default_permissions = ()

    def __str__(self) -> str:
        return f"{self.kind}: {self.cause}"


class WorkerHeartbeat(models.Model):
    """When a worker was last seen; readiness reads it."""

    worker = models.CharField(max_length=128, primary_key=True)
    seen_at = models.DateTimeField(db_default=Now())

    class Meta:
        default_permissions = ()

    def __str__(self) -> str:
        return self.worker
