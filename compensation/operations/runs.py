"""A run's beginning and its cancellation."""

import uuid
from collections.abc import Mapping, Sequence
from typing import Any

from django.db import transaction
from django.db.models.functions import Now

from audit import authority
from audit.errors import Forbidden, NotFound, RunTerminal, ValidationFailed
from audit.principals import Principal
from compensation.domain.facts import check_inputs
from compensation.domain.problems import to_wire
from compensation.domain.states import OnParentCancel, RunStatus, Trigger
from compensation.domain.workflow import WorkflowSpec
from compensation.models import Plan, Run, WorkflowVersion
from compensation.models.runs import ENDED
from compensation.operations import attention, log, minting, waking
from compensation.operations.acting import Act, acting
from compensation.operations.advance import advance


def create_run(
    *,
    actor: Principal,
    workflow_id: str,
    inputs: Mapping[str, Any],
    tags: Sequence[str] = (),
    metadata: Mapping[str, Any] | None = None,
    traceparent: str = "",
) -> Run:
    """Begin a reported run of the workflow's newest version, which it is pinned to (CMP-107)."""
    version = (
        WorkflowVersion.objects.select_related("workflow")
        .filter(tenant=actor.tenant, workflow__workflow_id=workflow_id)
        .order_by("-number")
        .first()
    )
    _require_may_create(actor, version)
    if version is None:
        raise NotFound(f"There is no workflow '{workflow_id}' here; nothing was created.")
    problems = check_inputs(WorkflowSpec.from_document(version.document), inputs)
    if problems:
        raise ValidationFailed("The inputs do not fit the workflow; nothing was created.", to_wire(problems))
    with transaction.atomic():
        run = Run.objects.create(
            tenant=actor.tenant,
            workflow_version=version,
            inputs=dict(inputs),
            tags=list(tags),
            metadata=dict(metadata or {}),
            traceparent=traceparent,
            created_by=actor.user,
        )
        log.append(run, "run.started", {"workflowId": workflow_id, "workflowVersion": version.number})
    return run


def cancel_run(*, actor: Principal, run_id: uuid.UUID) -> Run:
    """Cancel a run: fire the `run-cancel` trigger, or act on a plan that is under way (CMP-201, 407).

    A run that has ended and has no active plan answers `RunTerminal`. Cancelling a cancelled run changes nothing.
    """
    with acting(actor=actor, action="runs:cancel", permission="cancel_run", run_id=run_id) as act:
        run, plan = act.run, act.plan
        underway = plan is not None and plan.closed_at is None
        if run.status in ENDED and not underway:
            raise RunTerminal(f"The run has already ended as '{run.status}'; nothing was cancelled.")
        already = run.status == RunStatus.CANCELLED
        if not already:
            _end_as_cancelled(run)
        if plan is None:
            minting.trigger(run=run, trigger=Trigger.RUN_CANCEL, by=actor.user)
        elif not already:
            _hold_by_parent_cancel(act, plan)
    waking.wake_after_commit()
    return run


def _require_may_create(actor: Principal, version: WorkflowVersion | None) -> None:
    scopes = [actor.tenant] if version is None else [version.workflow, actor.tenant]
    if authority.permits(actor, "create_run", *scopes):
        return
    with transaction.atomic():
        authority.decide(
            principal=actor,
            action="runs:create",
            permission="create_run",
            scopes=scopes,
            resource=authority.Resource(type="workflow", id=version.workflow.workflow_id if version else ""),
        )
    raise Forbidden("You do not hold 'create_run' here. Nothing was created; the refusal is on record.")


def _end_as_cancelled(run: Run) -> None:
    ended_at = run.ended_at or Now()
    Run.objects.filter(pk=run.pk).update(status=RunStatus.CANCELLED, ended_at=ended_at)
    run.refresh_from_db(fields=["status", "ended_at"])
    log.append(run, "run.cancelled")


def _hold_by_parent_cancel(act: Act, plan: Plan) -> None:
    """What the policy says of a cancel during the unwind (CMP-407)."""
    if plan.on_parent_cancel == OnParentCancel.PAUSE and not plan.parent_paused:
        plan.parent_paused = True
        plan.save(update_fields=["parent_paused"])
        log.plan_event(act.run, plan, "paused")
    elif plan.on_parent_cancel == OnParentCancel.MANUAL:
        attention.call_for_manual(act.run, plan, None, cause="parent-cancel")
    advance(act.run, plan)
