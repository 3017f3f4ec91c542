"""Two people, or a person and a trigger, at once: one wins, the other is told (CMP-204, 407, 603, 608, 609)."""

from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from django.db import transaction
from django.db.models.functions import Now

from approvals.models import Answer, Interrupt
from audit.errors import InterruptAlreadyResolved, InterruptExpired, VersionConflict
from audit.models import Decision
from compensation.models import NodeType, Plan, Run
from compensation.operations import acts, approving, holds, runs
from compensation.operations.substitution import Replacement
from tests.support.racing import errors, queue_up, race
from tests.support.stage import WHY, Stage, failed

BREACH = {"factId": "breach", "type": "cap.breached", "cap": "cost"}


@pytest.fixture
def ready(stage: Stage) -> Stage:
    stage.register("undo")
    stage.register("other")
    return stage


def cancel(stage: Stage, run: Run) -> Any:
    return runs.cancel_run(actor=stage.home.operator, run_id=run.pk)


def fail(stage: Stage, run: Run) -> Any:
    return stage.report(run, failed("end"))[0]["status"]


def breach(stage: Stage, run: Run) -> Any:
    return stage.report(run, BREACH)[0]["status"]


def start(stage: Stage, run: Run) -> Any:
    return acts.start(actor=stage.home.operator, run_id=run.pk)


@pytest.mark.parametrize("pair", [(fail, cancel), (fail, breach), (cancel, breach), (fail, fail), (cancel, cancel)])
def test_cmp_204_two_triggers_make_one_plan(ready: Stage, pair: tuple[Callable[[Stage, Run], Any], ...]) -> None:
    ready.chain("a", "b")
    run = ready.commit("a", "b")
    outcomes = queue_up(run.pk, *(lambda each=each: each(ready, run) for each in pair))
    assert errors(outcomes) == []
    assert Plan.objects.filter(run=run).count() == 1
    assert ready.events(run) == ["requested"]
    assert list(ready.states(run)) == ["b", "a"]
    ready.work()
    assert ready.effects(run) == {"b": 1, "a": 1}


def test_cmp_204_two_operators_start_one_unwind_and_one_is_told(ready: Stage) -> None:
    ready.chain("a")
    run = ready.commit("a")
    ready.report(run, {"factId": "done", "type": "run.completed"})
    outcomes = queue_up(run.pk, lambda: start(ready, run), lambda: start(ready, run))
    assert errors(outcomes) == [VersionConflict]
    assert Plan.objects.filter(run=run).count() == 1
    assert len(ready.decisions(action="compensation:start")) == 1


@pytest.mark.parametrize("policy", ["continue", "pause", "manual"])
def test_cmp_407_cancel_against_the_mint_is_one_plan_and_one_story(ready: Stage, policy: str) -> None:
    ready.chain("a", policy={"onParentCancel": policy})
    run = ready.commit("a")
    outcomes = queue_up(run.pk, lambda: cancel(ready, run), lambda: fail(ready, run))
    assert errors(outcomes) == []
    run.refresh_from_db()
    plan = ready.plan(run)
    expected = {"continue": "pending", "pause": "failed", "manual": "manual"}[policy]
    if plan.trigger == "run-cancel":
        assert outcomes[1] == "rejected"
        expected = "pending"
    assert (run.status, ready.rollup(run)) == ("cancelled", expected)


def failed_entry(stage: Stage) -> tuple[Run, acts.Seen, str]:
    stage.chain("a")
    stage.fault("undo", "reject", times=1)
    run = stage.fail("a")
    stage.work()
    return run, stage.seen(run, "a"), stage.entry(run, "a").effect_id


def act_of(stage: Stage, run: Run, seen: acts.Seen, effect_id: str, name: str) -> Callable[[], Any]:
    """An act on what was seen before any of the others began."""
    about: dict[str, Any] = {"run_id": run.pk, "seen": seen, "effect_id": effect_id}
    home = stage.home
    return {
        "retry": lambda: acts.retry(actor=home.operator, **about),
        "skip": lambda: acts.skip(actor=home.lead, justification=WHY, **about),
        "substitute": lambda: acts.substitute(
            actor=home.second_lead, justification=WHY, replacement=Replacement(node_type_id="other"), **about
        ),
    }[name]


@pytest.mark.parametrize(
    "names", [("retry", "retry"), ("skip", "skip"), ("retry", "skip"), ("substitute", "retry"), ("substitute",) * 2]
)
def test_cmp_609_two_operators_are_one_effect_and_one_conflict(ready: Stage, names: tuple[str, str]) -> None:
    run, seen, effect_id = failed_entry(ready)
    before = Decision.objects.filter(tenant=ready.home.tenant).count()
    outcomes = queue_up(run.pk, *(act_of(ready, run, seen, effect_id, name) for name in names))
    assert errors(outcomes) == [VersionConflict]
    assert Decision.objects.filter(tenant=ready.home.tenant).count() == before + 1
    ready.work()
    skipped = ready.states(run) == {"a": "skipped"}
    assert len(ready.sandbox.effects(key=effect_id)) + ready.applied(ready.entry(run, "a")) <= 2
    assert ready.applied(ready.entry(run, "a")) == (0 if skipped else 1)


def expire(question: Interrupt) -> None:
    """What the sweep does with a question it found overdue."""
    with transaction.atomic():
        approving._expire(question)


def test_cmp_603_approval_against_expiry_is_one_or_the_other(ready: Stage) -> None:
    ready.chain("a", requiresApproval=True)
    run = ready.fail("a")
    question = ready.question(run)
    outcomes = queue_up(run.pk, lambda: ready.answer(question), lambda: expire(question))
    question.refresh_from_db()
    assert question.state in ("approved", "expired")
    if question.state == "approved":
        assert (errors(outcomes), ready.rollup(run)) == ([], "pending")
    else:
        assert (errors(outcomes), ready.rollup(run)) == ([InterruptExpired], "manual")
    assert len(ready.payloads(run, "interrupt.resolved")) == 1


def test_cmp_603_two_sweeps_expire_a_question_once(ready: Stage) -> None:
    ready.chain("a", requiresApproval=True)
    run = ready.fail("a")
    Interrupt.objects.filter(context_id=run.pk).update(expires_at=Now() - timedelta(seconds=1))
    outcomes = queue_up(run.pk, approving.expire_due, approving.expire_due)
    assert errors(outcomes) == []
    assert ready.events(run).count("manual_intervention_required") == 1
    assert len(ready.payloads(run, "interrupt.resolved")) == 1


@pytest.mark.parametrize("other", [Answer.ACCEPT, Answer.REJECT])
def test_cmp_608_two_approvers_at_once_are_one_answer(ready: Stage, other: Answer) -> None:
    ready.chain("a", requiresApproval=True)
    run = ready.fail("a")
    question = ready.question(run)
    outcomes = queue_up(
        run.pk,
        lambda: ready.answer(question, actor=ready.home.approver),
        lambda: ready.answer(question, other, actor=ready.home.second_approver),
    )
    assert errors(outcomes) == [InterruptAlreadyResolved]
    assert question.votes.count() == 1
    assert len(ready.decisions(action="approvals:respond")) == 1
    assert len(ready.payloads(run, "interrupt.resolved")) == 1


def test_cmp_608_one_person_twice_is_no_quorum(ready: Stage) -> None:
    NodeType.objects.filter(tenant=ready.home.tenant, node_type_id="undo").update(quorum=2)
    ready.chain("a", requiresApproval=True)
    run = ready.fail("a")
    question = ready.question(run)
    outcomes = queue_up(run.pk, lambda: ready.answer(question), lambda: ready.answer(question))
    assert errors(outcomes) == [InterruptAlreadyResolved]
    assert (question.votes.count(), ready.states(run)) == (1, {"a": "awaiting_approval"})


def test_cmp_608_two_people_at_once_are_a_quorum_that_closes_once(ready: Stage) -> None:
    NodeType.objects.filter(tenant=ready.home.tenant, node_type_id="undo").update(quorum=2)
    ready.chain("a", requiresApproval=True)
    run = ready.fail("a")
    question = ready.question(run)
    outcomes = queue_up(
        run.pk,
        lambda: ready.answer(question, actor=ready.home.approver),
        lambda: ready.answer(question, actor=ready.home.second_approver),
    )
    assert errors(outcomes) == []
    assert (ready.states(run), ready.events(run, "approval.")) == ({"a": "ready"}, ["granted"])


def test_cmp_604_decisions_are_numbered_without_gaps_under_concurrency(ready: Stage) -> None:
    ready.chain("a")
    many = [ready.fail("a") for _ in range(6)]
    outcomes = race(*(lambda run=run: holds.pause_plan(actor=ready.home.operator, run_id=run.pk) for run in many))
    assert errors(outcomes) == []
    assert [row.seq for row in ready.decisions()] == list(range(1, len(ready.decisions()) + 1))
