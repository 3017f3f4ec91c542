"""What this person could do now, and why not: the same states and permissions as the acts themselves (CMP-612)."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from audit.principals import Principal
from compensation.domain.states import ObligationState, Trigger
from compensation.domain.workflow import WorkflowSpec
from compensation.models import Obligation, Plan, Run
from compensation.models.runs import ENDED
from compensation.operations import asking, minting
from compensation.operations.acts import RETRYABLE, UNTOUCHABLE, done_by_hand, nothing_to_end
from compensation.queries.access import may, not_held

PERMISSION: Final = {
    "start": "start",
    "cancel": "cancel_run",
    "pause": "pause",
    "resume": "pause",
    "retry": "retry",
    "skip": "skip",
    "substitute": "substitute",
    "terminate": "terminate",
}


@dataclass(frozen=True, kw_only=True, slots=True)
class Offer:
    """An act and whether the API would accept it from this person now; ``why_not`` is None when it would."""

    act: str
    why_not: str | None

    @property
    def allowed(self) -> bool:
        return self.why_not is None


def offers(principal: Principal, run: Run, plan: Plan | None, entry: Obligation | None = None) -> list[Offer]:
    """The acts on an entry, or on the run and its plan when ``entry`` is None. ``run`` has its workflow loaded."""
    reasons = _on_run(run, plan) if entry is None or plan is None else _on_entry(plan, entry)
    return [Offer(act=act, why_not=_unheld(principal, act, run, plan) or reason) for act, reason in reasons]


def offers_to_show(principal: Principal, run: Run, plan: Plan | None, entry: Obligation | None = None) -> list[Offer]:
    """The offers with their reasons; none where nothing goes on any more and this person could do nothing anyway."""
    made = offers(principal, run, plan, entry)
    over = run.status in ENDED and (plan is None or plan.closed_at is not None)
    if over and all(_unheld(principal, offer.act, run, plan) for offer in made):
        return []
    return made


def _unheld(principal: Principal, act: str, run: Run, plan: Plan | None) -> str | None:
    permission = PERMISSION[act]
    return None if may(principal, permission, run, plan) else f"{not_held(permission).capitalize()}."


def _on_run(run: Run, plan: Plan | None) -> Iterator[tuple[str, str | None]]:
    yield "start", why_not_start(run, plan)
    yield "cancel", _why_not_cancel(run, plan)
    if plan is not None:
        yield "pause", _why_not_pause(plan)
        yield "resume", _why_not_resume(plan)
        yield "retry", _why_not_retry_mint(plan)
        yield "terminate", _why_not_terminate(plan)


def _on_entry(plan: Plan, entry: Obligation) -> Iterator[tuple[str, str | None]]:
    stopped = _why_not_touch(plan, entry)
    yield "retry", stopped or _why_not_retry(entry)
    yield "skip", stopped or _already_asked(entry, asking.WAIVE_IT)
    yield "substitute", stopped or _already_asked(entry, asking.REPLACE_IT)


def why_not_start(run: Run, plan: Plan | None) -> str | None:
    """Why an operator-request would start nothing (CMP-201, 202); None when it would mint a plan."""
    if plan is not None:
        return "The run already has a plan."
    if run.status not in ENDED:
        return f"The run is still '{run.status}'."
    policy = WorkflowSpec.from_document(run.workflow_version.document).policy
    if policy is None or Trigger.OPERATOR_REQUEST not in policy.triggers:
        return "The workflow's policy does not list the trigger 'operator-request'."
    return None if minting.compute(run) is not None else "Nothing of this run is owed an inverse action."


def _why_not_cancel(run: Run, plan: Plan | None) -> str | None:
    underway = plan is not None and plan.closed_at is None
    return None if run.status not in ENDED or underway else f"The run has already ended as '{run.status}'."


def _why_not_pause(plan: Plan) -> str | None:
    if plan.closed_at is not None:
        return "The plan is closed."
    return None if plan.held_at is None else "The plan is already held."


def _why_not_resume(plan: Plan) -> str | None:
    if plan.closed_at is not None:
        return "The plan is closed."
    called = plan.attention.filter(kind="manual", obligation__isnull=True, resolved_at__isnull=True).exists()
    return None if plan.held_at or plan.parent_paused or called else "The plan is not held."


def _why_not_retry_mint(plan: Plan) -> str | None:
    if plan.terminated:
        return "The plan was terminated for ever."
    return None if plan.mint_failure is not None else "The plan was minted; retry its entries."


def _why_not_terminate(plan: Plan) -> str | None:
    if plan.terminated:
        return "The plan was terminated for ever."
    return "Every entry has its outcome." if nothing_to_end(plan) else _already_asked(plan, asking.WAIVE_IT)


def _why_not_touch(plan: Plan, entry: Obligation) -> str | None:
    if plan.terminated:
        return "The plan was terminated for ever."
    if entry.state == ObligationState.RUNNING:
        return "A call of this entry is in flight."
    if entry.state in (*UNTOUCHABLE, ObligationState.SKIPPED):
        return f"The entry is '{entry.state}' for ever."
    return None


def _why_not_retry(entry: Obligation) -> str | None:
    if entry.state not in RETRYABLE and not asking.expired(entry):
        return f"The entry is '{entry.state}': it goes on by itself."
    return "A person does this one: record what was done." if done_by_hand(entry) else None


def _already_asked(subject: Obligation | Plan, handler: str) -> str | None:
    asked = asking.open_question(subject, handler)
    return "Another person has already been asked to approve this." if asked else None
