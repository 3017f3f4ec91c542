"""What starts an unwind, and what does not (CMP-106, 201 … 205)."""

import pytest

from audit.errors import RunTerminal, ValidationFailed, VersionConflict
from compensation.models import Plan, Run
from compensation.operations import acts, registration, runs
from tests.support.definitions import ALL_TRIGGERS, node, workflow
from tests.support.stage import Stage, committed, failed

BREACH = {"factId": "breach", "type": "cap.breached", "cap": "cost", "limit": 10, "observed": 11}
ENDED = {"factId": "done", "type": "run.completed"}


def fire(stage: Stage, run: Run, trigger: str) -> None:
    """Do to a run what the trigger stands for; its end comes first where the trigger needs one."""
    if trigger == "node-failure":
        stage.report(run, failed("end"))
    elif trigger == "cap-breach":
        stage.report(run, BREACH)
    elif trigger == "run-cancel":
        runs.cancel_run(actor=stage.home.operator, run_id=run.pk)
    else:
        stage.report(run, ENDED)
        acts.start(actor=stage.home.operator, run_id=run.pk)


@pytest.fixture
def ready(stage: Stage) -> Stage:
    """With the inverse `undo` registered."""
    stage.register("undo")
    return stage


@pytest.mark.parametrize("trigger", ALL_TRIGGERS)
def test_cmp_201_each_listed_trigger_starts_the_unwind(ready: Stage, trigger: str) -> None:
    ready.chain("a", "b", policy={"triggers": [trigger]})
    run = ready.commit("a", "b")
    fire(ready, run, trigger)
    assert ready.plan(run).trigger == trigger
    assert ready.rollup(run) == "pending"
    ready.work()
    assert ready.states(run) == {"b": "completed", "a": "completed"}
    assert ready.rollup(run) == "completed"
    assert ready.effects(run) == {"b": 1, "a": 1}


@pytest.mark.parametrize(
    ("trigger", "status"),
    [
        ("node-failure", "failed"),
        ("cap-breach", "failed"),
        ("run-cancel", "cancelled"),
        ("operator-request", "completed"),
    ],
)
def test_cmp_201_the_forward_outcome_is_never_reinterpreted(ready: Stage, trigger: str, status: str) -> None:
    ready.chain("a")
    run = ready.commit("a")
    fire(ready, run, trigger)
    ready.work()
    run.refresh_from_db()
    assert (run.status, ready.rollup(run)) == (status, "completed")


@pytest.mark.parametrize("trigger", ["node-failure", "cap-breach", "run-cancel"])
def test_cmp_201_a_trigger_that_is_not_listed_leaves_the_effects(ready: Stage, trigger: str) -> None:
    others = [each for each in ALL_TRIGGERS if each != trigger]
    ready.chain("a", policy={"triggers": others})
    run = ready.commit("a")
    fire(ready, run, trigger)
    assert not Plan.objects.filter(run=run).exists()
    assert ready.rollup(run) == "none"
    assert ready.events(run) == []
    assert ready.work() == 0


def test_cmp_201_an_operator_request_that_is_not_listed_is_refused(ready: Stage) -> None:
    ready.chain("a", policy={"triggers": ["node-failure"]})
    run = ready.commit("a")
    with pytest.raises(ValidationFailed, match="Nothing was started"):
        fire(ready, run, "operator-request")
    assert not Plan.objects.filter(run=run).exists()
    assert ready.decisions(action="compensation:start") == []


def test_cmp_201_an_operator_request_waits_for_the_end_of_the_run(ready: Stage) -> None:
    ready.chain("a")
    run = ready.commit("a")
    with pytest.raises(RunTerminal):
        acts.start(actor=ready.home.operator, run_id=run.pk)
    assert not Plan.objects.filter(run=run).exists()


def test_cmp_201_a_failure_that_is_not_terminal_starts_nothing(ready: Stage) -> None:
    ready.chain("a")
    run = ready.commit("a")
    ready.report(run, {**failed("end"), "terminal": False})
    run.refresh_from_db()
    assert (run.status, ready.rollup(run)) == ("running", "none")


def test_cmp_106_without_a_policy_no_unwind_ever_starts(ready: Stage) -> None:
    document = workflow("flow", [node("a", "undo"), node("end")])
    del document["settings"]["compensation"]
    registration.register_workflow(actor=ready.home.service, document=document)
    run = ready.fail("a")
    assert ready.rollup(run) == "none"
    assert ready.events(run) == []


@pytest.mark.parametrize("trigger", ["node-failure", "cap-breach", "run-cancel"])
def test_cmp_202_nothing_to_unwind_emits_nothing_even_with_irreversible_effects(ready: Stage, trigger: str) -> None:
    ready.workflow([node("a", "undo"), node("mail", irreversibleEffect=True)])
    run = ready.commit("mail")
    fire(ready, run, trigger)
    assert not Plan.objects.filter(run=run).exists()
    assert ready.rollup(run) == "none"
    assert ready.events(run) == []


def test_cmp_203_irreversible_effects_enter_with_their_outcome_and_run_nothing(ready: Stage) -> None:
    ready.workflow([node("a", "undo"), node("mail", irreversibleEffect=True), node("quiet"), node("never", "undo")])
    run = ready.fail("a", "mail", "quiet")
    mail = ready.entry(run, "mail")
    assert ready.states(run) == {"mail": "irreversible", "a": "ready"}
    assert (mail.outcome, mail.node_type_version, mail.compensation_ordinal) == ("irreversible", None, 1)
    ready.work()
    assert ready.attempts(run, "mail") == []
    assert ready.rollup(run) == "partial"
    assert "completed" not in ready.events(run)
    with pytest.raises(VersionConflict):
        ready.retry(run, "mail")


def test_cmp_203_503_irreversible_and_failed_read_failed(ready: Stage) -> None:
    ready.workflow([node("a", "undo"), node("mail", irreversibleEffect=True)])
    ready.fault("undo", "reject")
    run = ready.fail("a", "mail")
    assert ready.rollup(run) == "pending"
    ready.work()
    assert ready.states(run) == {"mail": "irreversible", "a": "failed"}
    assert ready.rollup(run) == "failed"


def test_cmp_204_a_second_trigger_finds_the_same_plan(ready: Stage) -> None:
    ready.chain("a", "b")
    run = ready.fail("a", "b")
    first = ready.plan(run)
    runs.cancel_run(actor=ready.home.operator, run_id=run.pk)
    assert ready.report(run, BREACH)[0]["error"]["error"] == "run_terminal"
    with pytest.raises(VersionConflict) as told:
        acts.start(actor=ready.home.operator, run_id=run.pk)
    assert told.value.details["compensationId"] == str(first.pk)
    assert (ready.plan(run).pk, ready.plan(run).trigger) == (first.pk, "node-failure")
    assert ready.events(run).count("requested") == 1


def test_cmp_205_a_commit_after_the_mint_is_late_and_calls_for_a_person(ready: Stage) -> None:
    ready.chain("a", "b")
    run = ready.fail("a")
    (result,) = ready.report(run, committed("b"))
    assert result == {**result, "status": "accepted", "late": True, "completionOrdinal": 2}
    assert list(ready.states(run)) == ["a"]
    assert ("uncompensated", "late-commit") in ready.attention(run)
    assert ready.payloads(run, "node.completed")[-1]["late"] is True
    ready.work()
    assert ready.rollup(run) == "completed"
    assert ("uncompensated", "late-commit") in ready.attention(run)


def test_cmp_205_a_commit_after_the_end_joins_the_plan_that_an_operator_starts(ready: Stage) -> None:
    ready.chain("a", "b")
    run = ready.commit("a")
    ready.report(run, ENDED, committed("b"))
    assert ("uncompensated", "late-commit") in ready.attention(run)
    acts.start(actor=ready.home.operator, run_id=run.pk)
    assert list(ready.states(run)) == ["b", "a"]
    assert ready.attention(run) == set()


def test_cmp_205_other_facts_after_the_end_are_rejected(ready: Stage) -> None:
    ready.chain("a")
    run = ready.fail("a")
    results = ready.report(run, ENDED, BREACH, {**failed("a"), "factId": "again"}, committed("end"))
    assert [each["status"] for each in results] == ["rejected", "rejected", "rejected", "accepted"]
    assert {each["error"]["error"] for each in results[:3]} == {"run_terminal"}
    assert ("uncompensated", "late-commit") in ready.attention(run), "loose, though `end` declares nothing"


def test_cmp_205_a_late_commit_that_owes_nothing_calls_nobody_when_there_is_no_plan(ready: Stage) -> None:
    ready.chain("a")
    run = ready.begin()
    ready.report(run, ENDED, committed("end"))
    assert ready.attention(run) == set()
