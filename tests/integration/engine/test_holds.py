"""Cancels of the parent, scheduling holds and the breaker delay; the plan goes on where it was (CMP-407, 409)."""

import pytest
from django.db.models.functions import Now
from pytest_django.fixtures import Settings

from audit.errors import RunTerminal, VersionConflict
from compensation.models import NodeType, Run
from compensation.operations import holds, runs
from compensation.runner.claims import claim
from tests.support.definitions import node
from tests.support.stage import Stage


@pytest.fixture
def ready(stage: Stage) -> Stage:
    stage.register("undo")
    return stage


def cancel(stage: Stage, run: Run) -> None:
    runs.cancel_run(actor=stage.home.operator, run_id=run.pk)


def resume(stage: Stage, run: Run) -> None:
    holds.resume_plan(actor=stage.home.operator, run_id=run.pk)


def status(run: Run) -> str:
    run.refresh_from_db()
    return run.status


def test_cmp_407_continue_goes_on_and_the_run_reads_cancelled(ready: Stage) -> None:
    ready.chain("a", "b")
    run = ready.fail("a", "b")
    cancel(ready, run)
    assert (status(run), ready.rollup(run)) == ("cancelled", "pending")
    ready.work()
    assert (status(run), ready.rollup(run)) == ("cancelled", "completed")
    assert "paused" not in ready.events(run)


def test_cmp_407_pause_holds_for_an_operator_and_is_not_active(ready: Stage) -> None:
    ready.chain("a", "b", policy={"onParentCancel": "pause"})
    run = ready.fail("a", "b")
    cancel(ready, run)
    assert (status(run), ready.rollup(run)) == ("cancelled", "failed")
    (told,) = ready.payloads(run, "compensation.paused")
    assert "reason" not in told
    assert ready.work() == 0
    resume(ready, run)
    assert ready.rollup(run) == "pending"
    ready.work()
    assert ready.rollup(run) == "completed"


def test_cmp_407_paused_with_something_done_reads_partial(ready: Stage) -> None:
    ready.register("slow", retry={"maxAttempts": 2, "backoffMs": 60_000})
    ready.workflow([node("a", "slow"), node("b", "undo")], policy={"onParentCancel": "pause"})
    ready.fault("slow", "fail", times=1)
    run = ready.fail("a", "b")
    ready.work()
    cancel(ready, run)
    assert (ready.states(run)["b"], ready.rollup(run)) == ("completed", "partial")
    resume(ready, run)
    assert ready.rollup(run) == "running"


def test_cmp_407_manual_calls_for_an_operator_until_resumed(ready: Stage) -> None:
    ready.chain("a", "b", policy={"onParentCancel": "manual"})
    run = ready.fail("a", "b")
    cancel(ready, run)
    assert (status(run), ready.rollup(run)) == ("cancelled", "manual")
    assert ready.events(run)[-1] == "manual_intervention_required"
    assert ready.work() == 0
    resume(ready, run)
    assert (ready.rollup(run), ready.attention(run)) == ("pending", set())
    ready.work()
    assert ready.rollup(run) == "completed"


def test_cmp_407_a_second_cancel_changes_nothing(ready: Stage) -> None:
    ready.chain("a", policy={"onParentCancel": "manual"})
    run = ready.fail("a")
    cancel(ready, run)
    resume(ready, run)
    cancel(ready, run)
    assert (ready.rollup(run), ready.events(run).count("manual_intervention_required")) == ("pending", 1)


def test_cmp_407_a_cancel_after_the_unwind_is_refused(ready: Stage) -> None:
    ready.chain("a")
    run = ready.fail("a")
    ready.work()
    with pytest.raises(RunTerminal):
        cancel(ready, run)
    assert status(run) == "failed"


def test_cmp_409_a_held_plan_starts_nothing_and_keeps_its_outcome(ready: Stage) -> None:
    ready.chain("a", "b")
    run, other = ready.fail("a", "b"), ready.fail("a")
    holds.pause_plan(actor=ready.home.operator, run_id=run.pk, reason="the warehouse is closed")
    ready.work()
    assert ready.states(run) == {"b": "ready", "a": "waiting"}
    assert (ready.rollup(run), ready.rollup(other)) == ("pending", "completed")
    assert "paused" not in ready.events(run), "a scheduling hold is no decision that is waited for"
    resume(ready, run)
    ready.work()
    assert ready.rollup(run) == "completed"
    with pytest.raises(VersionConflict):
        holds.pause_plan(actor=ready.home.operator, run_id=run.pk)


def test_cmp_409_a_held_node_type_holds_its_entries_only(ready: Stage) -> None:
    ready.register("other")
    ready.workflow([node("a", "undo"), node("b", "other")])
    holds.hold_node_type(actor=ready.home.lead, node_type_id="undo", reason="the payments team asked")
    run = ready.fail("a", "b")
    ready.work()
    assert ready.states(run) == {"b": "completed", "a": "ready"}
    assert (ready.rollup(run), ready.entry(run, "a").attempts) == ("running", 0)
    holds.release_node_type(actor=ready.home.lead, node_type_id="undo")
    ready.work()
    assert ready.rollup(run) == "completed"


def test_cmp_409_a_held_tenant_stops_everything_of_that_tenant(ready: Stage) -> None:
    neighbour = Stage(ready.sandbox)
    neighbour.register("undo")
    for each in (ready, neighbour):
        each.chain("a")
    holds.hold_tenant(actor=ready.home.lead, reason="stop everything")
    run, theirs = ready.fail("a"), neighbour.fail("a")
    ready.work()
    assert (ready.rollup(run), neighbour.rollup(theirs)) == ("pending", "completed")
    holds.release_tenant(actor=ready.home.lead)
    ready.work()
    assert ready.rollup(run) == "completed"
    neighbour.close()


def node_type(stage: Stage) -> NodeType:
    return NodeType.objects.get(tenant=stage.home.tenant, node_type_id="undo")


def test_cmp_409_the_breaker_opens_waits_and_one_probe_closes_it(stage: Stage, settings: Settings) -> None:
    settings.BREAKER_THRESHOLD = 3
    settings.BREAKER_COOLDOWN_MS = 60_000
    stage.register("undo", retry={"maxAttempts": 20, "backoffMs": 0}, maxConcurrency=1)
    stage.chain("a")
    stage.fault("undo", "fail", times=4)
    first = stage.fail("a")
    stage.work()
    assert stage.entry(first, "a").attempts == 3, "its entries wait instead of burning attempts"
    assert stage.states(first) == {"a": "retry_scheduled"}
    assert node_type(stage).breaker_until is not None
    others = [stage.fail("a") for _ in range(3)]
    assert stage.work() == 0

    NodeType.objects.filter(tenant=stage.home.tenant).update(breaker_until=Now())
    stage.work()
    total = sum(stage.entry(run, "a").attempts for run in (first, *others))
    assert total == 4, "one probe, which failed and opened it anew"

    NodeType.objects.filter(tenant=stage.home.tenant).update(breaker_until=Now())
    stage.work()
    assert {stage.rollup(run) for run in (first, *others)} == {"completed"}
    assert (node_type(stage).failures, node_type(stage).breaker_until) == (0, None)


def test_cmp_409_only_one_probe_goes_out(stage: Stage) -> None:
    stage.register("undo")
    stage.chain("a")
    for _ in range(3):
        stage.fail("a")
    NodeType.objects.filter(tenant=stage.home.tenant).update(breaker_until=Now(), failures=10)
    assert len(claim(limit=10, worker="probe")) == 1
    assert claim(limit=10, worker="another") == []


def test_cmp_409_an_operators_release_closes_the_breaker(stage: Stage) -> None:
    stage.register("undo")
    stage.chain("a")
    run = stage.fail("a")
    NodeType.objects.filter(tenant=stage.home.tenant).update(breaker_until="2100-01-01T00:00:00Z", failures=10)
    assert stage.work() == 0
    holds.release_node_type(actor=stage.home.lead, node_type_id="undo")
    stage.work()
    assert stage.rollup(run) == "completed"
