"""How every act on a run happens: lock, judge, change, record, all in one transaction (CMP-604…606)."""

import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from django.db import models, transaction

from audit import authority
from audit.errors import Forbidden, NotFound
from audit.models import Decision
from audit.principals import Principal
from compensation.models import Plan, Run
from compensation.operations import log


@dataclass(kw_only=True)
class Act:
    """An act under way: who, on which locked run and plan, and what its decision row will be bound to."""

    actor: Principal
    action: str
    run: Run
    plan: Plan | None
    effect_id: str = ""
    reason: str = ""
    justification: str = ""
    evidence_digest: str = ""
    decision: Decision | None = field(default=None)

    def resource(self) -> authority.Resource:
        """``tenant/<t>/run/<r>/plan/v<n>/effect/<id>``: tenant and plan version are bound in the log too."""
        name = f"tenant/{self.actor.tenant.slug}/run/{self.run.pk}"
        if self.plan is not None:
            name += f"/plan/v{self.plan.plan_version}"
        if self.effect_id:
            name += f"/effect/{self.effect_id}"
        return authority.Resource(type="run" if self.plan is None else "plan", id=name)


class Refused(Exception):
    """Raised inside an act by someone who holds the permission and may not all the same (separation of duties)."""

    def __init__(self, reason: str, message: str) -> None:
        super().__init__(message)
        self.reason = reason
        self.message = message


def lock_run(tenant_id: int, run_id: uuid.UUID) -> Run:
    """The run under its row lock; 404 for another tenant's as for none (CMP-606)."""
    run = (
        Run.objects.select_for_update(of=("self",), no_key=True)
        .select_related("workflow_version__workflow", "tenant")
        .filter(tenant_id=tenant_id, pk=run_id)
        .first()
    )
    if run is None:
        raise NotFound
    return run


def lock_plan(run: Run) -> Plan | None:
    """The run's plan under its row lock, if it has one."""
    return Plan.objects.select_for_update(no_key=True).filter(tenant_id=run.tenant_id, run=run).first()


def scopes_of(run: Run, plan: Plan | None) -> list[models.Model]:
    """The objects a grant may stand on, narrowest first."""
    return [*([plan] if plan else []), run.workflow_version.workflow, run.tenant]


@contextmanager
def acting(*, actor: Principal, action: str, permission: str, run_id: uuid.UUID, effect_id: str = "") -> Iterator[Act]:
    """One act on a run: yields under lock with authority proven now, then writes its decision and commits both.

    Without authority: the denied row is committed, nothing else, and `Forbidden` is raised. If the body raises,
    nothing was changed and nothing is recorded as allowed.
    """
    with transaction.atomic():
        run = lock_run(actor.tenant.pk, run_id)
        act = Act(actor=actor, action=action, run=run, plan=lock_plan(run), effect_id=effect_id)
        refusal = ""
        allowed = authority.permits(actor, permission, *scopes_of(run, act.plan))
        if allowed:
            try:
                with transaction.atomic():
                    yield act
            except Refused as refused:
                allowed, refusal, act.reason = False, refused.message, refused.reason
                run.refresh_from_db(fields=["last_sequence"])
        else:
            act.reason = authority.DENIED
        decided(act, allowed=allowed)
    if not allowed:
        raise Forbidden(refusal or _refusal(permission))


def decided(act: Act, *, allowed: bool) -> Decision:
    """Write the decision row and its twin in the run's log (CMP-604)."""
    resource = act.resource()
    act.decision = authority.record(
        principal=act.actor,
        action=act.action,
        resource=resource,
        allowed=allowed,
        reason=act.reason,
        run_id=act.run.pk,
        effect_id=act.effect_id,
        plan_version=act.plan.plan_version if act.plan else None,
        justification=act.justification,
        evidence_digest=act.evidence_digest,
    )
    log.append(
        act.run,
        "authorization.decided",
        {
            "principal": act.actor.label,
            "action": act.action,
            "resource": resource.id,
            "allowed": allowed,
            "reason": act.reason,
        },
    )
    return act.decision


@dataclass(kw_only=True)
class TenantAct:
    """An act on a tenant under way. One that turned out to change nothing leaves no row."""

    changed: bool = True
    justification: str = ""


@contextmanager
def acting_on_tenant(
    *, actor: Principal, action: str, permission: str, resource: authority.Resource
) -> Iterator[TenantAct]:
    """One act on the tenant itself (a registration, a hold, a setting): the same promise without a run."""
    with transaction.atomic():
        act = TenantAct()
        allowed = authority.permits(actor, permission, actor.tenant)
        if allowed:
            yield act
        if act.changed:
            authority.record(
                principal=actor,
                action=action,
                resource=resource,
                allowed=allowed,
                reason="" if allowed else authority.DENIED,
                justification=act.justification,
            )
    if not allowed:
        raise Forbidden(_refusal(permission))


def _refusal(permission: str) -> str:
    return f"You do not hold '{permission}' here. Nothing was changed; the refusal is on record."
