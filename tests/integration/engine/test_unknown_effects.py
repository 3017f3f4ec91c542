"""Unknown is a state: what may be presented again, and who decides when nothing can tell (CMP-403, 405)."""

from datetime import timedelta

import pytest
from django.db import connection

from compensation.models import Attempt, Readback, Run
from tests.support.definitions import readback
from tests.support.stage import Stage

NOT_HONOURED = {"header": "Idempotency-Key", "honoured": False}
QUICK = {"maxAttempts": 3, "backoffMs": 5}
UNKNOWNS = ["drop_after", "drop_before", "garbage", "fail"]


def reading(stage: Stage, verb: str = "undo", **different: object) -> None:
    """A node type that honours no keys and reads back, and a workflow of it."""
    back = readback(stage.sandbox.url)
    stage.register(verb, idempotency=NOT_HONOURED, readback=back, retry=QUICK, **different)
    stage.chain("a", "b")


def verdicts(run: Run, node_id: str) -> list[str]:
    found = Readback.objects.filter(obligation__run=run, obligation__node_id=node_id)
    return list(found.order_by("at").values_list("verdict", flat=True))


@pytest.mark.parametrize("mode", ["drop_after", "hang"])
def test_cmp_403_405_an_honoured_key_is_presented_again(stage: Stage, mode: str) -> None:
    stage.register("undo", timeoutMs=150)
    stage.chain("a")
    stage.fault("undo", mode, times=1)
    run = stage.fail("a")
    stage.work()
    first, second = stage.attempts(run, "a")
    assert first.outcome == ("timed_out" if mode == "hang" else "unknown")
    assert (second.outcome, second.idempotency_key) == ("succeeded", first.idempotency_key)
    assert stage.effects(run) == {"a": 1}


def test_cmp_403_the_timeout_is_wall_clock_over_the_whole_exchange(stage: Stage) -> None:
    stage.register("undo", timeoutMs=150, retry={"maxAttempts": 1, "backoffMs": 5})
    stage.chain("a")
    stage.fault("undo", "hang")
    run = stage.fail("a")
    stage.work()
    (only,) = stage.attempts(run, "a")
    assert only.finished_at is not None
    assert timedelta(milliseconds=140) <= only.finished_at - only.started_at < timedelta(seconds=2)
    assert (only.outcome, stage.states(run)) == ("timed_out", {"a": "failed"})


def test_cmp_405_read_back_as_applied_completes_with_the_receipt(stage: Stage) -> None:
    reading(stage)
    stage.fault("undo", "drop_after", times=1)
    run = stage.fail("a", "b")
    stage.work()
    entry = stage.entry(run, "b")
    assert (entry.state, entry.attempts, verdicts(run, "b")) == ("completed", 1, ["applied"])
    assert str(entry.receipt).startswith("rcpt_")
    assert stage.effects(run) == {"b": 1, "a": 1}
    assert stage.rollup(run) == "completed"


def test_cmp_405_read_back_twice_as_not_applied_is_presented_again(stage: Stage) -> None:
    """The second reading comes at least `settleMs` after the attempt's deadline."""
    reading(stage, settleMs=60, timeoutMs=200)
    stage.fault("undo", "drop_before", times=1)
    run = stage.fail("a")
    stage.work()
    first, second = stage.attempts(run, "a")
    assert verdicts(run, "a") == ["not_applied", "not_applied"]
    last = Readback.objects.filter(attempt=first).latest("number")
    assert last.at - first.deadline_at >= timedelta(milliseconds=60)
    assert second.started_at > last.at
    assert (second.outcome, stage.effects(run)) == ("succeeded", {"a": 1})


def test_cmp_405_an_unknown_reading_is_read_again(stage: Stage) -> None:
    reading(stage)
    stage.fault("undo", "drop_after", times=1)
    run = stage.fail("a")
    stage.sandbox.faults(f"/effects/{stage.entry(run, 'a').effect_id}", "fail", times=2)
    stage.work()
    assert verdicts(run, "a") == ["unknown", "unknown", "applied"]
    assert (stage.states(run), stage.entry(run, "a").attempts) == ({"a": "completed"}, 1)
    assert stage.effects(run) == {"a": 1}


def test_cmp_405_322_an_entry_that_is_being_read_back_blocks_those_after_it(stage: Stage) -> None:
    reading(stage, settleMs=60_000)
    stage.fault("undo", "drop_before", times=1)
    run = stage.fail("a", "b")
    stage.work()
    assert stage.states(run) == {"b": "uncertain", "a": "waiting"}
    assert stage.rollup(run) == "running"


@pytest.mark.parametrize("mode", UNKNOWNS)
def test_cmp_405_what_neither_honours_nor_reads_back_is_never_sent_again_by_itself(stage: Stage, mode: str) -> None:
    stage.register("undo", idempotency=NOT_HONOURED)
    stage.chain("a", "b")
    stage.fault("undo", mode, times=1)
    run = stage.fail("a", "b")
    stage.work()
    entry = stage.entry(run, "b")
    assert (stage.states(run), stage.rollup(run)) == ({"b": "uncertain", "a": "waiting"}, "manual")
    assert stage.attention(run) == {("manual", "uncertain")}
    (told,) = stage.payloads(run, "compensation.manual_intervention_required")
    assert "reason" not in told
    assert stage.work() == 0
    assert stage.sandbox.stats(key=entry.effect_id)["byKey"].get(entry.effect_id, {"requests": 1})["requests"] == 1

    stage.retry(run, "b")
    stage.work()
    assert stage.rollup(run) == "completed"


def test_cmp_405_a_refused_connection_proves_that_nothing_was_sent(stage: Stage) -> None:
    stage.register("undo", idempotency=NOT_HONOURED, request={"method": "POST", "url": "http://127.0.0.1:1/x"})
    stage.chain("a")
    run = stage.fail("a")
    stage.work()
    rows = stage.attempts(run, "a")
    assert [row.outcome for row in rows] == ["failed"] * 3
    assert stage.states(run) == {"a": "failed"}


@pytest.mark.parametrize(("reads", "state"), [(True, "completed"), (False, "uncertain")])
def test_cmp_405_beyond_its_lifetime_a_key_counts_as_not_honoured(stage: Stage, *, reads: bool, state: str) -> None:
    back = readback(stage.sandbox.url) if reads else None
    stage.register("undo", readback=back, keyLifetimeHours=1, retry={"maxAttempts": 9, "backoffMs": 60_000})
    stage.chain("a")
    stage.fault("undo", "drop_after", times=1)
    run = stage.fail("a")
    stage.work()
    assert stage.states(run) == {"a": "retry_scheduled"}
    age(stage.attempts(run, "a")[0], hours=2)
    stage.work()
    assert stage.states(run) == {"a": state}
    assert stage.entry(run, "a").attempts == 1, "it waited too long: sent again, it could be applied twice"
    assert verdicts(run, "a") == (["applied"] if reads else [])
    assert stage.effects(run) == {"a": 1}


@pytest.mark.parametrize(
    ("mode", "state", "read", "applied"),
    [("drop_after", "completed", ["applied"], 1), ("drop_before", "failed", ["not_applied"], 0)],
)
def test_cmp_405_406_what_may_have_been_applied_is_read_back_before_it_is_given_up(
    stage: Stage, mode: str, state: str, read: list[str], applied: int
) -> None:
    """The bounds are spent and the key is honoured, yet "failed" would say what nobody knows."""
    stage.register("undo", readback=readback(stage.sandbox.url), retry={"maxAttempts": 2, "backoffMs": 5})
    stage.chain("a")
    stage.fault("undo", mode, times=2)
    run = stage.fail("a")
    stage.work()
    assert (stage.states(run), stage.entry(run, "a").attempts) == ({"a": state}, 2)
    assert verdicts(run, "a") == read
    assert stage.effects(run) == {"a": applied}


def test_cmp_405_an_operator_may_still_present_what_nothing_can_tell(stage: Stage) -> None:
    """The key is forgotten and nothing reads back: held for a person, whose retry is their own decision."""
    stage.register("undo", readback=None, keyLifetimeHours=1, retry={"maxAttempts": 9, "backoffMs": 60_000})
    stage.chain("a")
    stage.fault("undo", "drop_before", times=1)
    run = stage.fail("a")
    stage.work()
    age(stage.attempts(run, "a")[0], hours=2)
    stage.work()
    assert (stage.states(run), stage.rollup(run)) == ({"a": "uncertain"}, "manual")
    stage.retry(run, "a")
    stage.work()
    assert (stage.states(run), stage.effects(run)) == ({"a": "completed"}, {"a": 1})


def age(attempt: Attempt, *, hours: int) -> None:
    """Let an attempt have begun earlier and its entry be due; the walls around recorded rows are down meanwhile."""
    with connection.cursor() as cursor:
        cursor.execute("alter table compensation_attempt disable trigger user")
        cursor.execute(
            "update compensation_attempt set started_at = started_at - make_interval(hours => %s) where id = %s",
            [hours, attempt.pk],
        )
        cursor.execute("alter table compensation_attempt enable trigger user")
        cursor.execute(
            "update compensation_work set due_at = clock_timestamp(), stale_at = stale_at - make_interval(hours => %s)"
            " where obligation_id = %s",
            [hours, attempt.obligation_id],
        )
