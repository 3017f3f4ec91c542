"""The plan: what is owed for a run, in order, frozen before the first inverse runs."""

import pgtrigger
from django.contrib.postgres.fields import ArrayField
from django.db import models
from django.db.models import Q
from django.db.models.functions import Now

from audit.models.grants import ExpiringGrant
from audit.permissions import PERMISSIONS
from compensation.domain.states import (
    LEGAL,
    OUTCOME_OF_STATE,
    Disposition,
    ObligationState,
    OnParentCancel,
    OrderingModel,
    Outcome,
    Reason,
    Trigger,
)
from compensation.models.base import APPEND_ONLY, KEPT, TenantRow, mirrors, parent, tenant_key
from compensation.models.fields import CanonicalJSONField

FROZEN = (
    "tenant",
    "plan",
    "run",
    "position",
    "predecessors",
    "node_id",
    "forward_logical_invocation_id",
    "ordinal",
    "compensation_ordinal",
    "effect_id",
    "profile_version",
    "input",
    "max_attempts",
    "backoff_ms",
    "timeout_ms",
)


class Plan(TenantRow):
    """The plan of a run, at most one (CMP-204); its id is the ``compensationId``.

    ``closed_at`` is set when nothing more will run unless an operator reopens an entry; ``terminated`` closes it for
    ever. ``parent_paused`` is the hold of CMP-407, ``held_at`` the scheduling hold of CMP-409.
    """

    run = parent("Run", related_name="plans")
    plan_version = models.PositiveIntegerField(default=1)
    digest = models.CharField(max_length=64)
    ordering_model = models.CharField(max_length=32)
    profile_version = models.CharField(max_length=8)
    disposition = models.CharField(max_length=32)
    on_parent_cancel = models.CharField(max_length=16)
    trigger = models.CharField(max_length=32)
    triggered_by = models.BigIntegerField(null=True)
    mint_failure = models.JSONField(null=True)
    requested_at = models.DateTimeField(db_default=Now())
    started_at = models.DateTimeField(null=True)
    closed_at = models.DateTimeField(null=True)
    terminated = models.BooleanField(default=False)
    parent_paused = models.BooleanField(default=False)
    held_at = models.DateTimeField(null=True)
    held_reason = models.CharField(max_length=200, blank=True, default="")

    class Meta:
        constraints = (
            tenant_key("plan"),
            models.UniqueConstraint(fields=["tenant", "run"], name="plan_one_per_run"),
            mirrors("plan_ordering_model", "ordering_model", OrderingModel),
            mirrors("plan_disposition", "disposition", Disposition),
            mirrors("plan_on_parent_cancel", "on_parent_cancel", OnParentCancel),
            mirrors("plan_trigger", "trigger", Trigger),
            models.CheckConstraint(
                condition=Q(terminated=False) | Q(closed_at__isnull=False), name="plan_terminated_is_closed"
            ),
        )
        triggers = (
            KEPT,
            pgtrigger.ReadOnly(
                name="frozen",
                fields=[
                    "tenant",
                    "run",
                    "ordering_model",
                    "profile_version",
                    "disposition",
                    "on_parent_cancel",
                    "trigger",
                    "triggered_by",
                    "requested_at",
                ],
            ),
            pgtrigger.Trigger(
                name="version_is_recorded",
                when=pgtrigger.Before,
                operation=pgtrigger.UpdateOf("plan_version", "digest", "terminated"),  # type: ignore[no-untyped-call]
                func="""
                if old.terminated and not new.terminated then
                    raise exception 'plan % was terminated for ever', old.id using errcode = 'check_violation';
                end if;
                if (new.plan_version, new.digest) is distinct from (old.plan_version, old.digest)
                    and not exists (
                        select 1 from compensation_planversion
                        where tenant_id = new.tenant_id and plan_id = new.id
                            and number = new.plan_version and digest = new.digest
                    ) then
                    raise exception 'plan % has no recorded version %', new.id, new.plan_version
                        using errcode = 'check_violation';
                end if;
                return new;
                """,
            ),
        )
        default_permissions = ()
        permissions = tuple(PERMISSIONS.items())

    def __str__(self) -> str:
        return str(self.id)


class PlanGrant(ExpiringGrant):
    """A grant on one plan."""

    content_object = models.ForeignKey(Plan, on_delete=models.CASCADE)

    class Meta(ExpiringGrant.Meta):
        default_permissions = ()

    def __str__(self) -> str:
        return f"{self.group} on plan {self.content_object}"


class PlanVersion(TenantRow):
    """A version of a plan with its author, reason and digest (CMP-305)."""

    plan = parent("Plan", related_name="versions")
    number = models.PositiveIntegerField()
    digest = models.CharField(max_length=64)
    at = models.DateTimeField(db_default=Now())
    by = models.CharField(max_length=128, blank=True, default="")
    change = models.JSONField(null=True)

    class Meta:
        constraints = (models.UniqueConstraint(fields=["tenant", "plan", "number"], name="plan_version_number"),)
        triggers = (APPEND_ONLY,)
        default_permissions = ()

    def __str__(self) -> str:
        return f"{self.plan_id} v{self.number}"


class Obligation(TenantRow):
    """A plan entry: the frozen inverse action owed for one forward effect, and how it stands.

    ``attempts`` counts every attempt ever made; ``spent`` those that count against ``max_attempts`` since the bounds
    last started afresh; ``crash_streak`` our own crashes in a row (CMP-402). ``entry_version`` is the plan version at
    which this entry last changed; its digest, key and node type change only together with it. ``barred`` are the people
    who may not approve it because of what they did to it (CMP-608).
    """

    plan = parent("Plan", related_name="entries")
    run = parent("Run", related_name="obligations")
    position = models.PositiveIntegerField()
    predecessors = ArrayField(models.CharField(max_length=64), default=list)
    node_id = models.CharField(max_length=256)
    forward_logical_invocation_id = models.CharField(max_length=512)
    ordinal = models.BigIntegerField()
    compensation_ordinal = models.PositiveIntegerField()
    effect_id = models.CharField(max_length=64)
    profile_version = models.CharField(max_length=8)
    input = CanonicalJSONField(null=True)
    max_attempts = models.PositiveIntegerField()
    backoff_ms = models.PositiveBigIntegerField()
    timeout_ms = models.PositiveBigIntegerField()

    node_type_version = parent("NodeTypeVersion", null=True, related_name="obligations")
    requires_approval = models.BooleanField()
    waive_requires_approval = models.BooleanField()
    quorum = models.PositiveIntegerField(default=1)
    entry_version = models.PositiveIntegerField(default=1)
    idempotency_key = models.CharField(max_length=96)
    digest = models.CharField(max_length=64)

    state = models.CharField(max_length=20)
    outcome = models.CharField(max_length=16, null=True)  # noqa: DJ001 - null is the wire's "no outcome yet"
    reason = models.CharField(max_length=24, blank=True, default="")
    attempts = models.PositiveIntegerField(default=0)
    spent = models.PositiveIntegerField(default=0)
    crash_streak = models.PositiveIntegerField(default=0)
    next_attempt_at = models.DateTimeField(null=True)
    receipt = models.JSONField(null=True)
    completed_by = models.CharField(max_length=128, blank=True, default="")
    barred = ArrayField(models.BigIntegerField(), default=list)
    finished_at = models.DateTimeField(null=True)

    class Meta:
        constraints = (
            tenant_key("obligation"),
            models.UniqueConstraint(fields=["tenant", "effect_id"], name="obligation_effect_unique"),
            models.UniqueConstraint(fields=["tenant", "plan", "position"], name="obligation_position_unique"),
            models.UniqueConstraint(
                fields=["tenant", "plan", "compensation_ordinal"], name="obligation_ordinal_unique"
            ),
            mirrors("obligation_state", "state", ObligationState),
            models.CheckConstraint(
                condition=Q(outcome__isnull=True) | Q(outcome__in=[o.value for o in Outcome]),
                name="obligation_outcome",
            ),
            mirrors("obligation_reason", "reason", ("", *Reason)),
            models.CheckConstraint(
                condition=Q(outcome__isnull=True, finished_at__isnull=True)
                | Q(outcome__isnull=False, finished_at__isnull=False),
                name="obligation_finished_iff_outcome",
            ),
            models.CheckConstraint(
                condition=Q(outcome__isnull=True, state__in=[s for s in ObligationState if s not in OUTCOME_OF_STATE])
                | Q(outcome__isnull=False, outcome=models.F("state")),
                name="obligation_outcome_is_state",
            ),
        )
        indexes = (models.Index(fields=["tenant", "idempotency_key"], name="obligation_key"),)
        triggers = (
            KEPT,
            pgtrigger.ReadOnly(name="frozen", fields=list(FROZEN)),
            pgtrigger.FSM(
                name="legal_moves",
                field="state",
                transitions=sorted((str(old), str(new)) for old, new in LEGAL if old != new),
            ),
            pgtrigger.Trigger(
                name="settled_is_final",
                when=pgtrigger.Before,
                operation=pgtrigger.Update,
                condition=pgtrigger.Q(old__state__in=["completed", "irreversible"]),
                func="""
                raise exception 'obligation % is % for ever', old.id, old.state using errcode = 'check_violation';
                """,
            ),
            pgtrigger.Trigger(
                name="changes_with_its_version",
                when=pgtrigger.Before,
                operation=pgtrigger.UpdateOf(  # type: ignore[no-untyped-call]
                    "node_type_version_id",
                    "requires_approval",
                    "waive_requires_approval",
                    "quorum",
                    "entry_version",
                    "idempotency_key",
                    "digest",
                ),
                func="""
                if (new.node_type_version_id, new.requires_approval, new.waive_requires_approval, new.quorum,
                    new.entry_version, new.idempotency_key, new.digest)
                    is not distinct from
                   (old.node_type_version_id, old.requires_approval, old.waive_requires_approval, old.quorum,
                    old.entry_version, old.idempotency_key, old.digest) then
                    return new;
                end if;
                if new.entry_version <= old.entry_version
                    or (old.requires_approval and not new.requires_approval)
                    or (old.waive_requires_approval and not new.waive_requires_approval)
                    or new.quorum < old.quorum
                    or not exists (
                        select 1 from compensation_planversion
                        where tenant_id = new.tenant_id and plan_id = new.plan_id and number = new.entry_version
                    ) then
                    raise exception 'obligation % changes only by a recorded substitution', old.id
                        using errcode = 'check_violation';
                end if;
                return new;
                """,
            ),
        )
        default_permissions = ()

    def __str__(self) -> str:
        return f"{self.node_id} {self.effect_id[:8]}"
