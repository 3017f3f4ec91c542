"""Runs and what is known of them: their log, the reported facts, the committed effects."""

import pgtrigger
from django.conf import settings
from django.contrib.postgres.fields import ArrayField
from django.db import models
from django.db.models import Q
from django.db.models.functions import Now

from compensation.domain.states import RollupStatus, RunStatus
from compensation.models.base import APPEND_ONLY, KEPT, TenantRow, mirrors, parent, tenant_key
from compensation.models.fields import CanonicalJSONField

ENDED = (RunStatus.COMPLETED, RunStatus.FAILED, RunStatus.CANCELLED)


class Run(TenantRow):
    """One execution of a workflow. Its row lock is the lock of everything that belongs to it.

    ``compensation_status`` is a cache of the rollup, which `check_rollups` derives again (CMP §5).
    """

    workflow_version = parent("WorkflowVersion", related_name="runs")
    mode = models.CharField(max_length=16, default="reported")
    status = models.CharField(max_length=16, default=RunStatus.RUNNING)
    compensation_status = models.CharField(max_length=16, default=RollupStatus.NONE)
    inputs = CanonicalJSONField()
    tags = ArrayField(models.CharField(max_length=128), default=list)
    metadata = models.JSONField(default=dict)
    error = models.JSONField(null=True)
    caller_ordinals = models.BooleanField(null=True)
    last_sequence = models.PositiveIntegerField(default=0)
    last_ordinal = models.BigIntegerField(default=0)
    traceparent = models.CharField(max_length=64, blank=True, default="")
    created_by = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.PROTECT, null=True, related_name="+")
    started_at = models.DateTimeField(db_default=Now())
    ended_at = models.DateTimeField(null=True)

    class Meta:
        constraints = (
            tenant_key("run"),
            mirrors("run_status", "status", RunStatus),
            mirrors("run_compensation_status", "compensation_status", RollupStatus),
            models.CheckConstraint(condition=Q(mode__in=["hosted", "reported"]), name="run_mode"),
            models.CheckConstraint(
                condition=(Q(status__in=ENDED) & Q(ended_at__isnull=False))
                | (~Q(status__in=ENDED) & Q(ended_at__isnull=True)),
                name="run_ended_iff_terminal",
            ),
        )
        indexes = (
            models.Index(fields=["tenant", "-id"], name="run_newest"),
            models.Index(fields=["tenant", "compensation_status", "-id"], name="run_by_rollup"),
        )
        triggers = (
            KEPT,
            pgtrigger.ReadOnly(
                name="frozen", fields=["tenant", "workflow_version", "mode", "inputs", "started_at", "created_by"]
            ),
        )
        default_permissions = ()

    def __str__(self) -> str:
        return str(self.id)


class RunEvent(TenantRow):
    """One line of a run's log: append-only, numbered 1, 2, 3 … without gaps (CMP-502). ``id`` is the event id."""

    run = parent("Run", related_name="events")
    sequence = models.PositiveIntegerField()
    type = models.CharField(max_length=64)
    payload = models.JSONField(default=dict)
    node_id = models.CharField(max_length=256, blank=True, default="")
    causation_id = models.CharField(max_length=64, blank=True, default="")
    at = models.DateTimeField(db_default=Now())

    class Meta:
        constraints = (
            models.UniqueConstraint(fields=["tenant", "run", "sequence"], name="run_event_sequence"),
            models.CheckConstraint(condition=Q(sequence__gte=1), name="run_event_sequence_positive"),
        )
        triggers = (
            APPEND_ONLY,
            pgtrigger.Trigger(
                name="gap_free",
                when=pgtrigger.Before,
                operation=pgtrigger.Insert,
                func="""
                if new.sequence > 1 and not exists (
                    select 1 from compensation_runevent
                    where tenant_id = new.tenant_id and run_id = new.run_id and sequence = new.sequence - 1
                ) then
                    raise exception 'event % of run % leaves a gap', new.sequence, new.run_id
                        using errcode = 'check_violation';
                end if;
                return new;
                """,
            ),
        )
        default_permissions = ()

    def __str__(self) -> str:
        return f"{self.run_id}#{self.sequence} {self.type}"


class Fact(TenantRow):
    """A fact as it was reported, for deduplication by ``fact_id`` and content (wire.md, Facts)."""

    run = parent("Run", related_name="facts")
    fact_id = models.CharField(max_length=256)
    digest = models.CharField(max_length=64)
    result = models.JSONField()
    at = models.DateTimeField(db_default=Now())

    class Meta:
        constraints = (models.UniqueConstraint(fields=["tenant", "run", "fact_id"], name="fact_id_unique"),)
        triggers = (APPEND_ONLY,)
        default_permissions = ()

    def __str__(self) -> str:
        return self.fact_id


class Effect(TenantRow):
    """A committed forward effect: a node invocation with its output and its completion ordinal."""

    run = parent("Run", related_name="effects")
    node_id = models.CharField(max_length=256)
    logical_invocation_id = models.CharField(max_length=512)
    ordinal = models.BigIntegerField()
    output = CanonicalJSONField()
    clocks = models.JSONField(default=dict)
    late = models.BooleanField(default=False)
    at = models.DateTimeField(db_default=Now())

    class Meta:
        constraints = (
            tenant_key("effect"),
            models.UniqueConstraint(fields=["tenant", "run", "ordinal"], name="effect_ordinal_unique"),
            models.UniqueConstraint(fields=["tenant", "run", "logical_invocation_id"], name="effect_invocation_unique"),
            models.CheckConstraint(condition=Q(ordinal__gte=1), name="effect_ordinal_positive"),
        )
        triggers = (APPEND_ONLY,)
        default_permissions = ()

    def __str__(self) -> str:
        return f"{self.node_id}#{self.ordinal}"
