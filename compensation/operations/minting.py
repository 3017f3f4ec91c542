"""From a trigger to a durable plan, in one transaction, before any inverse runs (CMP-201…204, 301…306, 112)."""

from typing import Any

from django.db.models.functions import Now

from audit.models import User
from compensation.domain.mapping import CommittedEffect
from compensation.domain.node_type import NodeTypeSpec
from compensation.domain.plan import MintedEntry, MintedPlan, MintFailure, mint
from compensation.domain.policy import PolicySpec
from compensation.domain.states import OUTCOME_OF_STATE, Disposition, ObligationState, Reason, Trigger
from compensation.domain.workflow import WorkflowSpec
from compensation.models import Effect, Obligation, Plan, PlanVersion, Run
from compensation.operations import asking, attention, log, rollup
from compensation.operations.advance import advance
from compensation.operations.frozen import columns_of
from compensation.operations.registration import newest_versions
from config.failpoints import hit


def trigger(*, run: Run, trigger: Trigger, by: User | None = None) -> Plan | None:
    """Fire a trigger on a locked run: mint its plan if the policy lists it and something is owed.

    Returns the new plan; the existing one when another trigger came first (CMP-204); None when nothing starts
    (CMP-106, 201, 202). ``by`` is the person who did it by hand and so may not approve (CMP-608).
    """
    existing = Plan.objects.filter(run=run).first()
    if existing is not None:
        return existing
    policy = WorkflowSpec.from_document(run.workflow_version.document).policy
    if policy is None or trigger not in policy.triggers:
        return None
    minted = compute(run)
    if minted is None:
        return None
    return _persist(run, policy, minted, trigger, by)


def compute(run: Run) -> MintedPlan | MintFailure | None:
    """What a mint would give now, from recorded facts only; nothing is stored (CMP-111)."""
    found = newest_versions(run.tenant)
    return mint(
        tenant_id=run.tenant.slug,
        run_id=str(run.pk),
        workflow=WorkflowSpec.from_document(run.workflow_version.document),
        node_types={name: (NodeTypeSpec.from_document(each.document), each.number) for name, each in found.items()},
        effects=[_committed(effect) for effect in Effect.objects.filter(run=run).order_by("ordinal")],
        inputs=run.inputs,
        quorum_of=lambda name: found[name].node_type.quorum,
    )


def mint_again(run: Run, plan: Plan) -> None:
    """An operator's retry of a failed mint: resolve again under the same ``compensationId`` (CMP-112)."""
    minted = compute(run)
    if isinstance(minted, MintFailure):
        _record_failure(run, plan, minted)
    elif minted is not None:
        _record_success(run, plan, minted)
        _ask_ahead(run, plan)
    advance(run, plan)


def _committed(effect: Effect) -> CommittedEffect:
    return CommittedEffect(
        node_id=effect.node_id,
        logical_invocation_id=effect.logical_invocation_id,
        ordinal=effect.ordinal,
        output=effect.output,
    )


def _persist(run: Run, policy: PolicySpec, minted: MintedPlan | MintFailure, trigger: Trigger, by: User | None) -> Plan:
    plan = Plan.objects.create(
        tenant_id=run.tenant_id,
        run=run,
        digest="",
        ordering_model=policy.ordering_model,
        profile_version=policy.profile_version,
        disposition=policy.exhausted_disposition,
        on_parent_cancel=policy.on_parent_cancel,
        trigger=trigger,
        triggered_by=by.pk if by else None,
    )
    plan.refresh_from_db(fields=["requested_at"])
    if isinstance(minted, MintFailure):
        log.plan_event(run, plan, "requested")
        _record_failure(run, plan, minted)
    else:
        _record_success(run, plan, minted)
        hit("mint-before-events")
        log.plan_event(run, plan, "requested")
        _ask_ahead(run, plan)
    advance(run, plan)
    hit("mint-before-commit")
    return plan


def _record_success(run: Run, plan: Plan, minted: MintedPlan) -> None:
    PlanVersion.objects.create(tenant_id=run.tenant_id, plan=plan, number=1, digest=minted.digest)
    plan.digest, plan.mint_failure = minted.digest, None
    plan.save(update_fields=["digest", "mint_failure"])
    found = newest_versions(run.tenant)
    Obligation.objects.bulk_create(
        Obligation(
            tenant_id=run.tenant_id,
            plan=plan,
            run=run,
            node_type_version=found[entry.node_type_id] if entry.node_type_id else None,
            **_standing(entry),
            **columns_of(entry),
        )
        for entry in minted.entries
    )
    attention.now_in_plan(run, by="system:engine")


def _standing(entry: MintedEntry) -> dict[str, Any]:
    """An irreversible effect enters with its outcome; everything else waits for its turn (CMP-203)."""
    if entry.irreversible:
        settled = ObligationState.IRREVERSIBLE
        return {"state": settled, "outcome": OUTCOME_OF_STATE[settled], "finished_at": Now()}
    return {"state": ObligationState.WAITING}


def _ask_ahead(run: Run, plan: Plan) -> None:
    """Approve ahead: every question of the plan opens at mint, each on its own digest (CMP-601)."""
    for entry in plan.entries.filter(state=ObligationState.WAITING).order_by("position"):
        asking.ask_ahead(run, plan, entry)


def _record_failure(run: Run, plan: Plan, failure: MintFailure) -> None:
    """A mint that cannot resolve a reference runs nothing and says which one (CMP-112)."""
    plan.mint_failure = failure.to_wire()
    plan.save(update_fields=["mint_failure"])
    if not attention.already_dead_lettered(plan, None):
        log.plan_event(run, plan, "failed", reason=Reason.DEAD_LETTERED, nodeId=failure.node_id)
    attention.dead_letter(run, plan, None, cause=Reason.DEAD_LETTERED)
    if plan.disposition == Disposition.MANUAL_INTERVENTION:
        attention.call_for_manual(run, plan, None, cause="mint-failed", reason=Reason.DEAD_LETTERED)
    rollup.refresh(run, plan, [], manual=rollup.manual_open(plan))
