"""What a page offers is what the API accepts from that person, and the rest says why not (CMP-612)."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from typing import Any, Final

import pytest
from django.db import transaction
from django.utils import timezone

from approvals.models import Interrupt
from audit.errors import RecourseError
from audit.principals import Principal
from compensation.models import Obligation, Plan, Run
from compensation.operations import acts, approving, holds, runs
from compensation.operations.substitution import Replacement
from compensation.queries.acts import offers
from tests.integration.api.conftest import Hall
from tests.support import definitions
from tests.support.stage import WHY

PEOPLE: Final = ("viewer", "approver", "operator", "lead", "auditor", "service")


def _minted(hall: Hall) -> Run:
    return hall.unwinding()


def _rejected(hall: Hall) -> Run:
    run = hall.unwinding(requiresApproval=True, waiveRequiresApproval=False)
    hall.stage.reject(run)
    return run


def _done(hall: Hall) -> Run:
    run = hall.unwinding()
    hall.stage.work()
    return run


def _waive_asked(hall: Hall) -> Run:
    run = hall.unwinding(waiveRequiresApproval=True)
    hall.stage.skip(run, "b")
    return run


def _terminated(hall: Hall) -> Run:
    run = hall.unwinding()
    hall.stage.terminate(run)
    return run


def _paused(hall: Hall) -> Run:
    run = hall.unwinding()
    holds.pause_plan(actor=hall.stage.home.operator, run_id=run.pk)
    return run


def _no_plan(hall: Hall) -> Run:
    hall.stage.register("undo")
    hall.stage.chain("a", "b", policy={"triggers": ["operator-request"]})
    return hall.stage.fail("a", "b")


def _running(hall: Hall) -> Run:
    hall.stage.register("undo")
    hall.stage.chain("a", "b")
    return hall.stage.commit("a", "b")


def _mint_failed(hall: Hall) -> Run:
    hall.stage.register("undo")
    hall.stage.chain("a", inputMapping={"id": "${nodes.a.output.missing}"})
    return hall.stage.fail("a")


def _by_hand(hall: Hall) -> Run:
    hall.stage.register_document(definitions.manual_type("undo"))
    hall.stage.chain("a", "b")
    return hall.stage.fail("a", "b")


def _expired(hall: Hall) -> Run:
    run = hall.unwinding(requiresApproval=True, waiveRequiresApproval=False)
    Interrupt.objects.filter(context_id=run.pk).update(expires_at=timezone.now() - timedelta(seconds=1))
    approving.expire_due()
    return run


SCENES: Final[dict[str, Callable[[Hall], Run]]] = {
    "minted": _minted, "rejected": _rejected, "done": _done, "waive asked": _waive_asked, "terminated": _terminated,
    "paused": _paused, "no plan": _no_plan, "running": _running, "mint failed": _mint_failed,
    "by hand": _by_hand, "expired": _expired,
}  # fmt: skip


def attempt(act: str, actor: Principal, run: Run, plan: Plan | None, entry: Obligation | None) -> Any:
    """Do the act as the API does it, with what the person sees."""
    seen = acts.Seen(plan_version=plan.plan_version if plan else 1, state=entry.state if entry else "")
    effect = entry.effect_id if entry else ""
    why: dict[str, Any] = {"actor": actor, "run_id": run.pk, "justification": WHY}
    calls: dict[str, Callable[[], Any]] = {
        "start": lambda: acts.start(**why),
        "cancel": lambda: runs.cancel_run(actor=actor, run_id=run.pk),
        "pause": lambda: holds.pause_plan(actor=actor, run_id=run.pk),
        "resume": lambda: holds.resume_plan(actor=actor, run_id=run.pk),
        "retry": lambda: acts.retry(**why, seen=seen, effect_id=effect or None),
        "skip": lambda: acts.skip(**why, seen=seen, effect_id=effect),
        "substitute": lambda: acts.substitute(
            **why, seen=seen, effect_id=effect, replacement=Replacement(node_type_id="undo2")
        ),
        "terminate": lambda: acts.terminate(**why, seen=seen),
    }
    return calls[act]()


def accepted(*arguments: Any) -> bool:
    """Whether the act goes through; it is taken back."""
    try:
        with transaction.atomic():
            attempt(*arguments)
            transaction.set_rollback(True)
    except RecourseError:
        return False
    return True


@pytest.mark.parametrize("scene", SCENES)
def test_an_offer_is_kept_and_what_is_not_offered_is_refused(hall: Hall, scene: str) -> None:
    hall.stage.register("undo2")
    made = SCENES[scene](hall)
    run = Run.objects.select_related("workflow_version__workflow", "tenant").get(pk=made.pk)
    plan = Plan.objects.filter(run=run).first()
    subjects = [None, *(hall.stage.entries(run) if plan else [])]
    for person in PEOPLE:
        actor = getattr(hall.stage.home, person)
        for entry in subjects:
            for offer in offers(actor, run, plan, entry):
                case = (scene, person, entry.node_id if entry else None, offer)
                assert offer.allowed == (offer.why_not is None)
                # Holding what is held, or releasing what is not, changes nothing: the API takes it, no page offers it.
                if not offer.allowed and offer.why_not in {"The plan is already held.", "The plan is not held."}:
                    continue
                assert accepted(offer.act, actor, run, plan, entry) == offer.allowed, case
