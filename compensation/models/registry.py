"""What a tenant registered: workflows, node types, credentials. A version never changes (CMP-107)."""

import pgtrigger
from django.conf import settings
from django.db import models
from django.db.models import Q
from django.db.models.functions import Now

from audit.models.grants import ExpiringGrant
from audit.permissions import PERMISSIONS
from compensation.models.base import APPEND_ONLY, KEPT, TenantRow, parent, tenant_key
from compensation.models.fields import CanonicalJSONField


class Workflow(TenantRow):
    """A workflow by its authored id; ``latest`` is the number of its newest version."""

    workflow_id = models.CharField(max_length=128)
    latest = models.PositiveIntegerField(default=0)

    class Meta:
        constraints = (
            tenant_key("workflow"),
            models.UniqueConstraint(fields=["tenant", "workflow_id"], name="workflow_id_unique"),
        )
        default_permissions = ()
        permissions = tuple(PERMISSIONS.items())

    def __str__(self) -> str:
        return self.workflow_id


class WorkflowVersion(TenantRow):
    """One registered definition, immutable; runs are pinned to it."""

    workflow = parent("Workflow", related_name="versions")
    number = models.PositiveIntegerField()
    document = CanonicalJSONField()
    digest = models.CharField(max_length=64)
    registered_by = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.PROTECT, null=True, related_name="+")
    registered_at = models.DateTimeField(db_default=Now())

    class Meta:
        constraints = (
            tenant_key("workflow_version"),
            models.UniqueConstraint(fields=["tenant", "workflow", "number"], name="workflow_version_number"),
        )
        triggers = (APPEND_ONLY,)
        default_permissions = ()

    def __str__(self) -> str:
        return f"{self.workflow_id} v{self.number}"


class WorkflowGrant(ExpiringGrant):
    """A grant on one workflow and what ran under it."""

    content_object = models.ForeignKey(Workflow, on_delete=models.CASCADE)

    class Meta(ExpiringGrant.Meta):
        default_permissions = ()

    def __str__(self) -> str:
        return f"{self.group} on workflow {self.content_object}"


class NodeType(TenantRow):
    """A node type by its id: its newest version, its hold and its breaker (CMP-409)."""

    node_type_id = models.CharField(max_length=256)
    latest = models.PositiveIntegerField(default=0)
    quorum = models.PositiveIntegerField(default=1)
    held_at = models.DateTimeField(null=True)
    held_reason = models.CharField(max_length=200, blank=True, default="")
    max_concurrency = models.PositiveIntegerField(null=True)
    failures = models.PositiveIntegerField(default=0)
    breaker_until = models.DateTimeField(null=True)

    class Meta:
        constraints = (
            tenant_key("node_type"),
            models.UniqueConstraint(fields=["tenant", "node_type_id"], name="node_type_id_unique"),
            models.CheckConstraint(condition=Q(quorum__gte=1), name="node_type_quorum"),
        )
        triggers = (KEPT, pgtrigger.ReadOnly(name="named_once", fields=["tenant", "node_type_id"]))
        default_permissions = ()

    def __str__(self) -> str:
        return self.node_type_id


class NodeTypeVersion(TenantRow):
    """One registered version of a node type, immutable; obligations freeze it."""

    node_type = parent("NodeType", related_name="versions")
    number = models.PositiveIntegerField()
    kind = models.CharField(max_length=16)
    document = CanonicalJSONField()
    digest = models.CharField(max_length=64)
    registered_by = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.PROTECT, null=True, related_name="+")
    registered_at = models.DateTimeField(db_default=Now())

    class Meta:
        constraints = (
            tenant_key("node_type_version"),
            models.UniqueConstraint(fields=["tenant", "node_type", "number"], name="node_type_version_number"),
            models.CheckConstraint(condition=Q(kind__in=["http", "manual"]), name="node_type_kind"),
        )
        triggers = (APPEND_ONLY,)
        default_permissions = ()

    def __str__(self) -> str:
        return f"{self.node_type_id} v{self.number}"


class Credential(TenantRow):
    """A secret by reference, sealed at rest (CMP-304); it is read only when a call goes out."""

    ref = models.CharField(max_length=128)
    sealed = models.BinaryField()
    set_by = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.PROTECT, null=True, related_name="+")
    set_at = models.DateTimeField(db_default=Now())

    class Meta:
        constraints = (models.UniqueConstraint(fields=["tenant", "ref"], name="credential_ref_unique"),)
        default_permissions = ()

    def __str__(self) -> str:
        return self.ref
