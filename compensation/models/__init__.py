from compensation.models.idempotency import IdempotencyRecord
from compensation.models.plans import Obligation, Plan, PlanGrant, PlanVersion
from compensation.models.registry import (
    Credential,
    NodeType,
    NodeTypeVersion,
    Workflow,
    WorkflowGrant,
    WorkflowVersion,
)
from compensation.models.runs import Effect, Fact, Run, RunEvent
from compensation.models.work import Attempt, Attention, Readback, Work, WorkerHeartbeat

__all__ = [
    "Attempt",
    "Attention",
    "Credential",
    "Effect",
    "Fact",
    "IdempotencyRecord",
    "NodeType",
    "NodeTypeVersion",
    "Obligation",
    "Plan",
    "PlanGrant",
    "PlanVersion",
    "Readback",
    "Run",
    "RunEvent",
    "Work",
    "WorkerHeartbeat",
    "Workflow",
    "WorkflowGrant",
    "WorkflowVersion",
]
