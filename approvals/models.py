"""Questions put to people, and their answers. Nothing here knows what a plan is."""

import uuid
from typing import Final

import pgtrigger
from django.conf import settings
from django.contrib.postgres.fields import ArrayField
from django.db import models
from django.db.models import Q
from django.db.models.functions import Now

from audit.ids import uuid7
from audit.models import Tenant


class InterruptState(models.TextChoices):
    """How a question stands. The ends are distinct for ever: a timeout is nobody's denial (CMP-603)."""

    OPEN = "open"
    APPROVED = "approved"
    REJECTED = "rejected"
    EXPIRED = "expired"
    WITHDRAWN = "withdrawn"
    VOID = "void"
    SUPERSEDED = "superseded"


class Answer(models.TextChoices):
    ACCEPT = "accept"
    REJECT = "reject"


OPEN_INTERRUPT: Final = Q(state=InterruptState.OPEN)


class Interrupt(models.Model):
    """A frozen artifact that waits for a person's word.

    ``handler`` says who is told of the answer; ``subject_id`` what it is about; ``context_id`` and ``node_key`` where
    it is listed; ``artifact`` the exact text that is shown and signed, with its ``digest`` (CMP-602).
    """

    id: models.UUIDField[uuid.UUID, uuid.UUID] = models.UUIDField(primary_key=True, default=uuid7, editable=False)
    tenant = models.ForeignKey(Tenant, on_delete=models.PROTECT, related_name="interrupts")
    handler = models.CharField(max_length=64)
    subject_id = models.UUIDField()
    subject_version = models.PositiveIntegerField()
    context_id = models.UUIDField()
    node_key = models.CharField(max_length=256, blank=True, default="")
    artifact = models.TextField()
    digest = models.CharField(max_length=64)
    quorum = models.PositiveIntegerField(default=1)
    state = models.CharField(max_length=16, choices=InterruptState, default=InterruptState.OPEN)
    opened_at = models.DateTimeField(db_default=Now())
    expires_at = models.DateTimeField(null=True)
    resolved_at = models.DateTimeField(null=True)
    requested_by = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.PROTECT, null=True, related_name="+")
    justification = models.TextField(blank=True, default="")
    excluded = ArrayField(models.BigIntegerField(), default=list)

    class Meta:
        constraints = (
            models.UniqueConstraint(fields=["tenant", "id"], name="interrupt_tenant_key"),
            models.UniqueConstraint(
                fields=["tenant", "subject_id", "handler"], condition=OPEN_INTERRUPT, name="interrupt_one_open"
            ),
            models.CheckConstraint(condition=Q(state__in=InterruptState.values), name="interrupt_state"),
            models.CheckConstraint(
                condition=(OPEN_INTERRUPT & Q(resolved_at__isnull=True))
                | (~OPEN_INTERRUPT & Q(resolved_at__isnull=False)),
                name="interrupt_resolved_iff_not_open",
            ),
            models.CheckConstraint(condition=Q(quorum__gte=1), name="interrupt_quorum"),
        )
        indexes = (
            models.Index(fields=["tenant", "-id"], condition=OPEN_INTERRUPT, name="interrupt_open"),
            models.Index(fields=["tenant", "context_id"], name="interrupt_context"),
            models.Index(fields=["subject_id"], name="interrupt_subject"),
            models.Index(fields=["expires_at"], condition=OPEN_INTERRUPT, name="interrupt_expiring"),
        )
        triggers = (
            pgtrigger.ReadOnly(
                name="frozen",
                exclude=["state", "resolved_at", "expires_at", "excluded"],
            ),
            pgtrigger.Protect(name="kept", operation=pgtrigger.Delete),
            pgtrigger.FSM(
                name="ends_once",
                field="state",
                transitions=[("open", end.value) for end in InterruptState if end != InterruptState.OPEN]
                + [("approved", "void")],
            ),
        )
        default_permissions = ()

    def __str__(self) -> str:
        return f"{self.handler} {self.id}"


class Vote(models.Model):
    """One person's answer to one question, once (CMP-608)."""

    id: models.UUIDField[uuid.UUID, uuid.UUID] = models.UUIDField(primary_key=True, default=uuid7, editable=False)
    tenant = models.ForeignKey(Tenant, on_delete=models.PROTECT, related_name="+")
    interrupt = models.ForeignKey(Interrupt, on_delete=models.PROTECT, related_name="votes", db_constraint=False)
    user = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.PROTECT, related_name="+")
    principal = models.CharField(max_length=128)
    answer = models.CharField(max_length=8, choices=Answer)
    digest = models.CharField(max_length=64)
    plan_version = models.PositiveIntegerField()
    feedback = models.TextField(blank=True, default="")
    at = models.DateTimeField(db_default=Now())

    class Meta:
        constraints = (
            models.UniqueConstraint(fields=["tenant", "interrupt", "user"], name="vote_once"),
            models.CheckConstraint(condition=Q(answer__in=Answer.values), name="vote_answer"),
        )
        triggers = (pgtrigger.Protect(name="append_only", operation=pgtrigger.Update | pgtrigger.Delete),)
        default_permissions = ()

    def __str__(self) -> str:
        return f"{self.principal}: {self.answer}"
