"""Exhausted, refused and terminated entries: told once, dead-lettered once, then the disposition (CMP-406, 322)."""

import pytest

from audit.errors import VersionConflict
from compensation.models import Attention, RunEvent
from tests.support.definitions import node
from tests.support.stage import WHY, Stage


@pytest.fixture
def ready(stage: Stage) -> Stage:
    stage.register("undo")
    stage.register("broken", retry={"maxAttempts": 2, "backoffMs": 5})
    stage.fault("broken", "fail")
    return stage


def two_of_three_fail(stage: Stage, disposition: str) -> None:
    nodes = [node("a", "undo"), node("b", "broken"), node("c", "broken")]
    stage.workflow(nodes, policy={"exhaustedDisposition": disposition})


def test_cmp_406_record_outcome_goes_on_with_the_rest(ready: Stage) -> None:
    two_of_three_fail(ready, "record-outcome")
    run = ready.fail("a", "b", "c")
    ready.work()
    assert ready.states(run) == {"c": "failed", "b": "failed", "a": "completed"}
    assert ready.rollup(run) == "partial"
    assert ready.plan(run).closed_at is not None
    failures = ready.payloads(run, "compensation.failed")
    assert [(each["nodeId"], each["reason"], each["attempt"]) for each in failures] == [
        ("c", "retries-exhausted", 2),
        ("b", "retries-exhausted", 2),
    ]
    assert ready.attention(run) == {("dead_letter", "retries-exhausted")}
    assert Attention.objects.filter(run=run, kind="dead_letter").count() == 2


def test_cmp_406_the_run_is_dead_lettered_once_per_plan_version_and_cause(ready: Stage) -> None:
    two_of_three_fail(ready, "record-outcome")
    run = ready.fail("a", "b", "c")
    ready.work()
    (told,) = ready.payloads(run, "run.dead_lettered")
    assert told == {"runId": str(run.pk), "nodeId": "c", "reason": "retries-exhausted", "attempts": 2}


def test_cmp_406_manual_intervention_holds_the_plan(ready: Stage) -> None:
    two_of_three_fail(ready, "manual-intervention")
    run = ready.fail("a", "b", "c")
    ready.work()
    assert ready.rollup(run) == "manual"
    assert ready.states(run)["c"] == "failed"
    assert ready.attempts(run, "b") == []
    (told,) = ready.payloads(run, "compensation.manual_intervention_required")
    assert (told["nodeId"], told["reason"]) == ("c", "retries-exhausted")
    assert ready.plan(run).closed_at is None
    assert ready.work() == 0

    ready.skip(run, "b")
    assert ready.rollup(run) == "manual", "the call about `c` still stands"
    ready.sandbox.clear_faults()
    ready.retry(run, "c")
    assert ready.rollup(run) == "running"
    ready.work()
    assert ready.states(run) == {"c": "completed", "b": "skipped", "a": "completed"}
    assert ready.rollup(run) == "partial"
    assert ready.attention(run) == set()


def test_cmp_406_501_a_failure_is_told_once_per_entry_and_version(ready: Stage) -> None:
    two_of_three_fail(ready, "record-outcome")
    run = ready.fail("a", "b")
    for _ in range(2):
        ready.work()
        assert ready.states(run)["b"] == "failed"
        ready.retry(run, "b")
    ready.work()
    assert ready.entry(run, "b").attempts == 6
    assert [each["nodeId"] for each in ready.payloads(run, "compensation.failed")] == ["b"]
    assert len(ready.payloads(run, "run.dead_lettered")) == 1


def test_cmp_406_609_terminate_ends_what_remains_and_closes_for_ever(ready: Stage) -> None:
    two_of_three_fail(ready, "manual-intervention")
    run = ready.fail("a", "b", "c")
    ready.work()
    ready.terminate(run)
    assert ready.states(run) == {"c": "failed", "b": "terminated", "a": "terminated"}
    assert (ready.rollup(run), ready.plan(run).terminated) == ("failed", True)
    assert ready.attention(run) == set()
    reasons = {each["nodeId"]: each["reason"] for each in ready.payloads(run, "compensation.failed")}
    assert reasons == {"c": "retries-exhausted", "b": "operator-terminated", "a": "operator-terminated"}
    with pytest.raises(VersionConflict, match="for ever"):
        ready.retry(run, "c")
    assert ready.work() == 0
    assert not RunEvent.objects.filter(run=run, payload__icontains=WHY).exists()
