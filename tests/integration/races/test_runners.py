"""Runners against each other, against operators and against the dead (CMP-312, 401, 404, 409, 609)."""

from datetime import timedelta
from functools import partial
from typing import Any

import pytest
from django.db import transaction
from django.db.models.functions import Now

from audit.errors import RunTerminal, VersionConflict
from audit.models import Tenant
from compensation.models import Attempt, NodeType, Plan, Run, RunEvent, Work
from compensation.operations import acts, holds, runs
from compensation.runner import recovery
from compensation.runner.claims import Claimed, begin, claim
from compensation.runner.recovery import recover_expired
from tests.support.calls import cut, give_back, take
from tests.support.definitions import readback
from tests.support.racing import errors, queue_up, race
from tests.support.stage import WHY, Stage

ROUNDS = 12


@pytest.fixture
def ready(stage: Stage) -> Stage:
    stage.register("undo")
    stage.chain("a", "b")
    return stage


def claimed(limit: int = 10) -> list[Claimed]:
    with transaction.atomic():
        return claim(limit=limit, worker="racer")


def settled(outcomes: list[Any]) -> list[Any]:
    """What was returned; nothing may have been raised."""
    assert errors(outcomes) == [], outcomes
    return outcomes


def test_cmp_401_two_runners_never_claim_one_entry_twice(ready: Stage) -> None:
    for _ in range(ROUNDS):
        run = ready.fail("a", "b")
        found = settled(race(claimed, claimed, claimed))
        assert sum(len(each) for each in found) == 1
        assert Attempt.objects.filter(obligation__run=run).count() == 1


@pytest.mark.parametrize("hold", ["plan", "node type", "tenant"])
def test_cmp_409_a_hold_that_came_before_the_lock_is_seen_after_it(ready: Stage, hold: str) -> None:
    """The second look of a claim: what was startable when it looked is judged again once it is locked."""
    run = ready.fail("a")
    entry = ready.entry(run, "a")
    if hold == "plan":
        Plan.objects.filter(run=run).update(held_at=Now())
    elif hold == "node type":
        NodeType.objects.filter(tenant=ready.home.tenant).update(held_at=Now())
    else:
        Tenant.objects.filter(pk=ready.home.tenant.pk).update(held_at=Now())
    with transaction.atomic():
        assert begin([entry.pk], worker="late") == []
    assert (ready.states(run), Attempt.objects.filter(obligation=entry).count()) == ({"a": "ready"}, 0)


def test_cmp_401_many_due_entries_are_shared_out_each_once(ready: Stage) -> None:
    many = [ready.fail("a") for _ in range(10)]
    found = settled(race(lambda: claimed(5), lambda: claimed(5), lambda: claimed(5)))
    found.append(claimed(10))
    entries = [each.obligation_id for part in found for each in part]
    assert len(entries) == len(set(entries)) == len(many)


def test_cmp_409_two_runners_send_one_probe(ready: Stage) -> None:
    for _ in range(ROUNDS):
        made = [ready.fail("a") for _ in range(2)]
        NodeType.objects.filter(tenant=ready.home.tenant).update(breaker_until=Now(), failures=10)
        found = settled(race(claimed, claimed))
        assert sum(len(each) for each in found) == 1
        Work.objects.filter(run__in=made).delete()


def test_cmp_609_an_act_against_a_claim_is_one_or_the_other(ready: Stage) -> None:
    for _ in range(ROUNDS):
        run = ready.fail("a", "b")
        effect_id, seen = ready.entry(run, "b").effect_id, acts.Seen(plan_version=1, state="ready")
        skipping, found = race(partial(_skip, ready, run, seen, effect_id), claimed)
        won = {each.key for each in found}
        if effect_id in won:
            assert isinstance(skipping, VersionConflict)
            assert ready.states(run) == {"b": "running", "a": "waiting"}
        else:
            assert not isinstance(skipping, BaseException)
            assert ready.states(run)["b"] == "skipped"
            assert ready.attempts(run, "b") == []
        Work.objects.filter(run=run).delete()


def _skip(stage: Stage, run: Run, seen: acts.Seen, effect_id: str) -> Any:
    return acts.skip(actor=stage.home.lead, run_id=run.pk, seen=seen, effect_id=effect_id, justification=WHY)


@pytest.mark.parametrize("state", ["running", "failed", "uncertain", "held"])
def test_cmp_609_a_retry_against_a_running_attempt_is_refused(ready: Stage, state: str) -> None:
    """Whatever the operator saw before: a call in flight is never doubled."""
    run = ready.fail("a", "b")
    take()
    seen = acts.Seen(plan_version=1, state=state)
    with pytest.raises(VersionConflict) as told:
        acts.retry(actor=ready.home.operator, run_id=run.pk, seen=seen, effect_id=ready.entry(run, "b").effect_id)
    assert told.value.details["state"] == "running"
    assert len(ready.attempts(run, "b")) == 1


def expire_leases(run: Run) -> None:
    Work.objects.filter(run=run, token__isnull=False).update(due_at=Now() - timedelta(seconds=1))


def test_cmp_404_a_worker_whose_lease_was_taken_over_cannot_record(ready: Stage) -> None:
    run = ready.fail("a", "b")
    zombie = take(worker="zombie")
    expire_leases(run)
    assert recover_expired() == 1
    successor = take(worker="successor")
    give_back(*zombie, worker="zombie")
    first, second = ready.attempts(run, "b")
    assert (first.outcome, first.error_class, second.outcome) == ("unknown", "worker-lost", None)
    assert (ready.states(run)["b"], ready.entry(run, "b").spent) == ("running", 1)
    give_back(*zombie, result=cut(), worker="zombie")
    assert ready.states(run)["b"] == "running"
    give_back(*successor, worker="successor")
    assert ready.states(run) == {"b": "completed", "a": "ready"}
    assert {row.idempotency_key for row in ready.attempts(run, "b")} == {ready.entry(run, "b").effect_id}


def test_cmp_404_a_success_against_a_takeover_is_one_or_the_other(ready: Stage) -> None:
    for _ in range(ROUNDS):
        run = ready.fail("a", "b")
        calls = take()
        expire_leases(run)
        settled(race(partial(give_back, *calls), recover_expired))
        (first,) = [row for row in ready.attempts(run, "b") if row.number == 1]
        story = (ready.states(run)["b"], first.outcome)
        assert story in {("completed", "succeeded"), ("retry_scheduled", "unknown"), ("running", "unknown")}
        assert RunEvent.objects.filter(run=run, type="compensation.started").count() == 1
        Work.objects.filter(run=run).delete()


def test_cmp_404_two_sweeps_take_a_lease_over_once(ready: Stage) -> None:
    for _ in range(ROUNDS // 2):
        run = ready.fail("a", "b")
        take()
        expire_leases(run)
        assert sorted(settled(race(recover_expired, recover_expired))) == [0, 1]
        entry = ready.entry(run, "b")
        assert (entry.state, entry.crash_streak, entry.attempts) == ("retry_scheduled", 1, 1)
        Work.objects.filter(run=run).delete()


def test_cmp_404_a_sweep_that_comes_second_finds_nothing_to_take_over(ready: Stage) -> None:
    """Both listed the lease before either locked its run."""
    run = ready.fail("a", "b")
    take()
    expire_leases(run)
    listed = (ready.entry(run, "b").pk, ready.home.tenant.pk, run.pk)
    assert [recovery._recover(*listed), recovery._recover(*listed)] == [True, False]
    assert ready.entry(run, "b").crash_streak == 1


def test_cmp_402_ten_crashes_in_a_row_hold_the_entry_and_spend_nothing(ready: Stage) -> None:
    run = ready.fail("a", "b")
    for _ in range(10):
        Work.objects.filter(run=run).update(due_at=Now())
        assert len(take()) == 1
        expire_leases(run)
        recover_expired()
    entry = ready.entry(run, "b")
    assert (entry.state, entry.attempts, entry.spent) == ("held", 10, 0)
    assert ready.attention(run) == {("manual", "crash-loop")}
    ready.retry(run, "b")
    ready.work()
    assert ready.rollup(run) == "completed"


def test_cmp_404_405_a_crash_mid_call_reads_back_before_anything_is_sent_again(stage: Stage) -> None:
    back = readback(stage.sandbox.url)
    stage.register("undo", idempotency={"header": "Idempotency-Key", "honoured": False}, readback=back)
    stage.chain("a")
    run = stage.fail("a")
    assert len(take()) == 1
    stage.sandbox.post(stage.path("undo"), {"id": "a-1"}, key=stage.entry(run, "a").effect_id)
    expire_leases(run)
    stage.work()
    assert (stage.states(run), stage.entry(run, "a").attempts) == ({"a": "completed"}, 1)


def test_an_operator_and_a_recording_runner_lock_in_one_order(stage: Stage) -> None:
    """Whoever comes first: neither ever holds what the other needs while it waits for what the other holds."""
    stage.register("undo")
    stage.chain("a")
    for operator_first in (True, False):
        run = stage.fail("a")
        calls = take()
        pair = [partial(stage.terminate, run), partial(give_back, *calls)]
        outcomes = queue_up(run.pk, *(pair if operator_first else reversed(pair)))
        assert set(errors(outcomes)) <= {VersionConflict}, outcomes
        assert (stage.states(run), stage.rollup(run)) == ({"a": "completed"}, "completed")


def test_operators_and_a_recording_runner_never_deadlock(ready: Stage) -> None:
    for _ in range(ROUNDS):
        run = ready.fail("a", "b")
        calls = take()
        outcomes = race(
            partial(give_back, *calls),
            partial(holds.pause_plan, actor=ready.home.operator, run_id=run.pk),
            partial(runs.cancel_run, actor=ready.home.operator, run_id=run.pk),
            partial(ready.terminate, run),
        )
        assert set(errors(outcomes)) <= {VersionConflict, RunTerminal}, outcomes
        assert ready.entry(run, "b").state == "completed"
        assert ready.rollup(run) == "partial"
        sequences = list(RunEvent.objects.filter(run=run).order_by("sequence").values_list("sequence", flat=True))
        assert sequences == list(range(1, len(sequences) + 1))


def test_cmp_407_409_nothing_starts_once_a_cancel_called_for_a_person(stage: Stage) -> None:
    stage.register("undo")
    stage.chain("a", policy={"onParentCancel": "manual"})
    for _ in range(ROUNDS * 2):
        run = stage.fail("a")
        settled(race(partial(runs.cancel_run, actor=stage.home.operator, run_id=run.pk), claimed))
        assert stage.rollup(run) == "manual"
        if "started" in (told := stage.events(run)):
            assert told.index("started") < told.index("manual_intervention_required")
        Work.objects.filter(run=run).delete()
