"""The plan as the wire shows it (wire.md, Plan projection), and the attempts of one of its entries."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from django.db.models import QuerySet

from approvals.models import Interrupt, InterruptState
from audit.errors import NotFound
from audit.principals import Principal
from audit.times import wire_time
from compensation.domain.states import TERMINAL_STATES, RollupStatus
from compensation.models import Attempt, Attention, Obligation, Plan, PlanVersion, Readback, Run
from compensation.operations import asking
from compensation.queries.access import may
from compensation.queries.holding import Holds, holds_of


def plan_projection(principal: Principal, run: Run) -> dict[str, Any]:
    """Status, versions and entries in order; inputs only for those who may see them. ``run`` has its workflow loaded.

    A run without a plan reads ``none``. Nine queries at most, whatever the plan's size.
    """
    plan = Plan.objects.filter(tenant_id=run.tenant_id, run=run).first()
    late = uncompensated_effects(run)
    if plan is None:
        return _no_plan(run, late)
    entries = entries_of(plan)
    questions = _open_questions(run)
    holds = holds_of(principal.tenant, plan, entries)
    blocking = blocked_by(entries)
    inputs = may(principal, "see_inputs", run, plan)
    return {
        **_head(run, plan),
        "uncompensatedEffects": late,
        "entries": [_entry(entry, blocking[entry.effect_id], questions, holds, with_input=inputs) for entry in entries],
        "interruptId": questions.get(plan.pk),
        "versions": [_version(version) for version in plan.versions.order_by("number")],
    }


def entries_of(plan: Plan) -> list[Obligation]:
    """The entries in order, each with its node type; the documents stay where they are."""
    entries = plan.entries.select_related("node_type_version__node_type").defer("node_type_version__document")
    return list(entries.order_by("position"))


def find_entry(run: Run, effect_id: str) -> Obligation:
    """The entry of this run that owes this effect, or `NotFound` (CMP-607)."""
    entry = (
        Obligation.objects.select_related("node_type_version__node_type", "plan", "tenant")
        .filter(tenant_id=run.tenant_id, run=run, effect_id=effect_id)
        .first()
    )
    if entry is None:
        raise NotFound("This run owes no such effect.")
    return entry


def blocked_by(entries: Sequence[Obligation]) -> dict[str, list[str]]:
    """For each unsettled entry the nearest unsettled ones before it, through settled ones (CMP-322)."""
    settled = {entry.effect_id: entry.state in TERMINAL_STATES for entry in entries}
    nearest: dict[str, set[str]] = {}
    for entry in entries:
        before: set[str] = set()
        for key in entry.predecessors:
            before |= nearest[key] if settled[key] else {key}
        nearest[entry.effect_id] = before
    return {key: [] if settled[key] else sorted(before) for key, before in nearest.items()}


def uncompensated_effects(run: Run) -> list[dict[str, Any]]:
    """Commits that came after the plan, or after the end without one, and that nothing undoes (CMP-205)."""
    loose = Attention.objects.filter(run=run, kind="uncompensated", resolved_at__isnull=True).select_related("effect")
    return [
        {
            "nodeId": each.effect.node_id,
            "ordinal": each.effect.ordinal,
            "logicalInvocationId": each.effect.logical_invocation_id,
            "committedAt": wire_time(each.effect.at),
        }
        for each in loose.order_by("effect__ordinal")
    ]


def attempts(run: Run, effect_id: str) -> list[dict[str, Any]]:
    """Every attempt of one entry with its readbacks, oldest first; `NotFound` for another run's effect (CMP-607)."""
    entry = find_entry(run, effect_id)
    return [attempt_wire(attempt) for attempt in attempts_of(entry).order_by("number")]


def attempts_of(entry: Obligation) -> QuerySet[Attempt]:
    """The attempts of an entry with what their wire form reads, unordered."""
    rows = entry.attempt_rows.select_related("node_type_version__node_type").defer("node_type_version__document")
    return rows.prefetch_related("readbacks")


def attempt_wire(attempt: Attempt) -> dict[str, Any]:
    version = attempt.node_type_version
    return {
        "attempt": attempt.number,
        "startedAt": wire_time(attempt.started_at),
        "deadlineAt": wire_time(attempt.deadline_at),
        "finishedAt": wire_time(attempt.finished_at),
        "outcome": attempt.outcome,
        "httpStatus": attempt.http_status,
        "errorClass": attempt.error_class or None,
        "receipt": attempt.receipt,
        "idempotencyKey": attempt.idempotency_key,
        "nodeTypeId": version.node_type.node_type_id,
        "nodeTypeVersion": version.number,
        "worker": attempt.worker,
        "clocks": attempt.clocks,
        "readbacks": [_readback(each) for each in sorted(attempt.readbacks.all(), key=lambda each: each.number)],
    }


def _readback(readback: Readback) -> dict[str, Any]:
    return {
        "number": readback.number,
        "at": wire_time(readback.at),
        "verdict": readback.verdict,
        "httpStatus": readback.http_status,
        "errorClass": readback.error_class or None,
    }


def _no_plan(run: Run, late: list[dict[str, Any]]) -> dict[str, Any]:
    unknown = ("digest", "orderingModel", "profileVersion", "trigger", "requestedAt", "startedAt", "closedAt", "heldAt")
    return {
        "runId": str(run.pk),
        "compensationId": None,
        "status": RollupStatus.NONE.value,
        "planVersion": None,
        **dict.fromkeys(unknown),
        "terminated": False,
        "mintFailure": None,
        "uncompensatedEffects": late,
        "entries": [],
        "interruptId": None,
        "versions": [],
    }


def _head(run: Run, plan: Plan) -> dict[str, Any]:
    return {
        "runId": str(run.pk),
        "compensationId": str(plan.pk),
        "status": run.compensation_status,
        "planVersion": plan.plan_version,
        "digest": plan.digest or None,
        "orderingModel": plan.ordering_model,
        "profileVersion": plan.profile_version,
        "trigger": plan.trigger,
        "requestedAt": wire_time(plan.requested_at),
        "startedAt": wire_time(plan.started_at),
        "closedAt": wire_time(plan.closed_at),
        "heldAt": wire_time(plan.held_at),
        "terminated": plan.terminated,
        "mintFailure": plan.mint_failure,
    }


def _entry(
    entry: Obligation,
    blocking: Iterable[str],
    questions: Mapping[Any, str],
    holds: Holds,
    *,
    with_input: bool,
) -> dict[str, Any]:
    version = entry.node_type_version
    return {
        "position": entry.position,
        "nodeId": entry.node_id,
        "ordinal": entry.ordinal,
        "compensationOrdinal": entry.compensation_ordinal,
        "forwardLogicalInvocationId": entry.forward_logical_invocation_id,
        "effectId": entry.effect_id,
        "idempotencyKey": entry.idempotency_key,
        "nodeTypeId": version.node_type.node_type_id if version else None,
        "nodeTypeVersion": version.number if version else None,
        "state": entry.state,
        "outcome": entry.outcome,
        "reason": entry.reason or None,
        "attempts": entry.attempts,
        **({"input": entry.input} if with_input else {}),
        "digest": entry.digest,
        "entryVersion": entry.entry_version,
        "requiresApproval": entry.requires_approval,
        "waiveRequiresApproval": entry.waive_requires_approval,
        "quorum": entry.quorum,
        "retry": {"maxAttempts": entry.max_attempts, "backoffMs": entry.backoff_ms},
        "timeoutMs": entry.timeout_ms,
        "predecessors": entry.predecessors,
        "blockedBy": list(blocking),
        "heldBy": holds.on(entry),
        "nextAttemptAt": wire_time(entry.next_attempt_at),
        "finishedAt": wire_time(entry.finished_at),
        "interruptId": questions.get(entry.pk),
        "receipt": entry.receipt,
        "completedBy": entry.completed_by or None,
    }


def _open_questions(run: Run) -> dict[Any, str]:
    """The open question of each entry or plan by its id; that of running it before any other."""
    found = (
        Interrupt.objects.filter(tenant_id=run.tenant_id, context_id=run.pk, state=InterruptState.OPEN)
        .order_by("id")
        .values_list("subject_id", "handler", "pk")
    )
    ordered = sorted(found, key=lambda row: row[1] == asking.RUN_IT)
    return {subject: str(interrupt) for subject, _, interrupt in ordered}


def _version(version: PlanVersion) -> dict[str, Any]:
    return {
        "planVersion": version.number,
        "digest": version.digest,
        "at": wire_time(version.at),
        "by": version.by or None,
        "change": version.change,
    }
