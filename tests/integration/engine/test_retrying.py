"""Attempts under one identity, their bounds and their delays (CMP-311, 312, 401, 402, 505)."""

from datetime import timedelta
from itertools import pairwise

import pytest

from audit.errors import VersionConflict
from compensation.models import Obligation, Run, Work
from compensation.operations import holds
from tests.support.stage import Stage


@pytest.fixture
def ready(stage: Stage) -> Stage:
    stage.register("undo")
    stage.chain("a", "b")
    return stage


def started_gaps(stage: Stage, run: Run, node_id: str) -> list[timedelta]:
    """The time from the end of each attempt to the start of the next."""
    rows = stage.attempts(run, node_id)
    return [
        later.started_at - earlier.finished_at for earlier, later in pairwise(rows) if earlier.finished_at is not None
    ]


def test_cmp_402_311_every_failure_retries_under_the_same_key_with_a_fresh_number(ready: Stage) -> None:
    ready.fault("undo", "fail", times=2)
    run = ready.fail("a")
    ready.work()
    rows = ready.attempts(run, "a")
    assert [(row.number, row.outcome, row.http_status) for row in rows] == [
        (1, "unknown", 503),
        (2, "unknown", 503),
        (3, "succeeded", 201),
    ]
    entry = ready.entry(run, "a")
    assert {row.idempotency_key for row in rows} == {entry.effect_id}
    assert (entry.state, entry.attempts, entry.spent) == ("completed", 3, 3)
    assert ready.sandbox.stats(key=entry.effect_id)["byKey"][entry.effect_id]["requests"] == 3
    assert ready.effects(run) == {"a": 1}


def test_cmp_401_an_attempt_row_is_durable_before_the_call_and_closed_before_the_next(ready: Stage) -> None:
    run = ready.fail("a", "b")
    ready.work()
    (first,), (second,) = ready.attempts(run, "b"), ready.attempts(run, "a")
    assert first.finished_at is not None
    assert first.started_at < first.finished_at <= second.started_at
    assert first.clocks["admittedAt"] >= first.started_at.isoformat()[:19]
    assert (first.worker, str(first.receipt)[:5]) == ("test", "rcpt_")


def test_cmp_402_backoff_doubles_with_jitter_and_is_kept_in_the_database(stage: Stage) -> None:
    stage.register("undo", retry={"maxAttempts": 4, "backoffMs": 40})
    stage.chain("a")
    stage.fault("undo", "fail")
    run = stage.fail("a")
    stage.work()
    gaps = started_gaps(stage, run, "a")
    assert len(gaps) == 3
    for gap, least in zip(gaps, (40, 80, 160), strict=True):
        assert gap >= timedelta(milliseconds=least)
    assert stage.states(run) == {"a": "failed"}


def test_cmp_402_the_due_time_of_a_retry_waits_in_the_database(stage: Stage) -> None:
    stage.register("undo", retry={"maxAttempts": 2, "backoffMs": 60_000})
    stage.chain("a")
    stage.fault("undo", "fail")
    run = stage.fail("a")
    stage.work()
    entry = stage.entry(run, "a")
    assert (entry.state, entry.attempts) == ("retry_scheduled", 1)
    assert entry.next_attempt_at == Work.objects.get(obligation=entry).due_at
    finished = stage.attempts(run, "a")[0].finished_at
    assert finished is not None
    assert entry.next_attempt_at is not None
    delay = entry.next_attempt_at - finished
    assert timedelta(seconds=59) <= delay <= timedelta(seconds=76)


def test_cmp_402_retry_after_is_honoured(ready: Stage) -> None:
    ready.fault("undo", "throttle", times=1, ms=1_000)
    run = ready.fail("a")
    ready.work()
    assert ready.states(run) == {"a": "completed"}
    (gap,) = started_gaps(ready, run, "a")
    assert gap >= timedelta(seconds=0.99)


@pytest.mark.parametrize("status", [400, 404, 409, 410, 422])
def test_cmp_402_a_definite_rejection_exhausts_at_once(ready: Stage, status: int) -> None:
    ready.fault("undo", "reject", status=status)
    run = ready.fail("a")
    ready.work()
    entry = ready.entry(run, "a")
    assert (entry.state, entry.reason, entry.attempts) == ("failed", "retries-exhausted", 1)
    assert ready.attempts(run, "a")[0].outcome == "failed"


@pytest.mark.parametrize("status", [408, 425, 429])
def test_cmp_402_a_plea_to_come_again_is_no_rejection(ready: Stage, status: int) -> None:
    ready.fault("undo", "reject", status=status, times=1)
    run = ready.fail("a")
    ready.work()
    assert ready.states(run) == {"a": "completed"}
    assert ready.entry(run, "a").attempts == 2


@pytest.mark.parametrize("status", [401, 403])
def test_cmp_402_refused_credentials_hold_the_node_type_and_spend_no_attempt(ready: Stage, status: int) -> None:
    ready.fault("undo", "reject", status=status)
    run = ready.fail("a", "b")
    other = ready.fail("a")
    ready.work()
    entry = ready.entry(run, "b")
    assert entry.node_type_version is not None
    assert entry.node_type_version.node_type.held_at is not None
    assert (entry.state, entry.spent, entry.attempts) == ("held", 0, 1)
    assert ready.rollup(run) == "running", "a hold delays and decides nothing"
    (held,) = ready.decisions(action="node-types:hold")
    assert (held.principal, held.allowed) == ("system:engine", True)
    assert ready.work() == 0

    ready.sandbox.clear_faults()
    holds.release_node_type(actor=ready.home.lead, node_type_id="undo", reason="the key was renewed")
    ready.work()
    assert ready.effects(run) == {"b": 1, "a": 1}
    assert (ready.rollup(run), ready.rollup(other)) == ("completed", "completed")


def test_cmp_505_609_retry_reopens_under_the_same_key_with_bounds_afresh_and_the_total_kept(ready: Stage) -> None:
    ready.fault("undo", "fail", times=3)
    run = ready.fail("a")
    ready.work()
    entry = ready.entry(run, "a")
    assert (entry.state, entry.attempts, entry.spent) == ("failed", 3, 3)
    assert ready.rollup(run) == "failed"
    ready.retry(run, "a")
    assert ready.rollup(run) == "running"
    ready.work()
    again = ready.entry(run, "a")
    assert (again.state, again.attempts, again.spent) == ("completed", 4, 1)
    assert {row.idempotency_key for row in ready.attempts(run, "a")} == {again.effect_id}
    assert [row.number for row in ready.attempts(run, "a")] == [1, 2, 3, 4]
    assert again.node_type_version == entry.node_type_version
    assert ready.effects(run) == {"a": 1}


def test_cmp_312_completed_is_final_for_every_act(ready: Stage) -> None:
    run = ready.fail("a")
    ready.work()
    for act in (ready.retry, ready.skip):
        with pytest.raises(VersionConflict):
            act(run, "a")
    with pytest.raises(VersionConflict):
        ready.substitute(run, "a", "undo")
    with pytest.raises(VersionConflict):
        ready.terminate(run)
    assert ready.states(run) == {"a": "completed"}
    assert Obligation.objects.get(run=run).attempts == 1
