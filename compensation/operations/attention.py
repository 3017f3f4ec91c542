"""Calling a person, and noting that one came (CMP-406, 603, 205)."""

from django.db.models import Q
from django.db.models.functions import Now

from compensation.domain.states import Reason
from compensation.models import Attention, Effect, Obligation, Plan, Run
from compensation.operations import log


def call_for_manual(run: Run, plan: Plan, entry: Obligation | None, *, cause: str, reason: str = "") -> None:
    """Hold the plan for an operator and say so in the log, once while the same call is open."""
    if not _open(run, plan, entry, kind="manual", cause=cause):
        return
    if entry is None:
        log.plan_event(run, plan, "manual_intervention_required", reason=reason)
    else:
        log.entry_event(run, plan, entry, "manual_intervention_required", reason=reason)


def dead_letter(run: Run, plan: Plan, entry: Obligation | None, *, cause: Reason) -> None:
    """Route the run to the dead letter; ``run.dead_lettered`` once per plan version and cause (CMP-406)."""
    told = Attention.objects.filter(plan=plan, kind="dead_letter", cause=cause, plan_version=plan.plan_version).exists()
    _open(run, plan, entry, kind="dead_letter", cause=cause)
    if not told:
        attempts = entry.attempts if entry else 0
        payload = {"runId": str(run.pk), "reason": str(cause), "attempts": attempts}
        if entry:
            payload["nodeId"] = entry.node_id
        log.append(run, "run.dead_lettered", payload, node_id=entry.node_id if entry else "")


def already_dead_lettered(plan: Plan, entry: Obligation | None) -> bool:
    """Whether the failure of this entry (or of the mint) was already told for this plan version: once (CMP §5)."""
    return Attention.objects.filter(
        plan=plan, obligation=entry, kind="dead_letter", plan_version=plan.plan_version
    ).exists()


def uncompensated(run: Run, effect: Effect, plan: Plan | None) -> None:
    """A late commit that no plan covers: a task for the lead (CMP-205)."""
    Attention.objects.create(
        tenant_id=run.tenant_id, run=run, plan=plan, effect=effect, kind="uncompensated", cause="late-commit"
    )


def resolve(plan: Plan, entry: Obligation | None, *, by: str) -> None:
    """Close what called for a person about this entry, or about the plan as a whole when ``entry`` is None."""
    about = Q(obligation=entry) if entry else Q(obligation__isnull=True, effect__isnull=True)
    _resolve(Q(plan=plan) & about, by)


def resolve_all(plan: Plan, *, by: str) -> None:
    """Close every open call about a plan, except for late effects, which no act on the plan undoes."""
    _resolve(Q(plan=plan, effect__isnull=True), by)


def _resolve(which: Q, by: str) -> None:
    Attention.objects.filter(which, resolved_at__isnull=True).update(resolved_at=Now(), resolved_by=by)


def _open(run: Run, plan: Plan, entry: Obligation | None, *, kind: str, cause: str) -> bool:
    _, created = Attention.objects.get_or_create(
        tenant_id=run.tenant_id,
        run=run,
        plan=plan,
        obligation=entry,
        kind=kind,
        cause=cause,
        resolved_at=None,
        defaults={"plan_version": plan.plan_version},
    )
    return created


def now_in_plan(run: Run, *, by: str) -> None:
    """Late commits that a mint took in, even a mint made again (CMP-112), are no longer loose."""
    _resolve(Q(run=run, kind="uncompensated"), by)
