"""A run that somebody holds keeps no runner busy and no other run waiting (architecture.md, Throughput)."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from django.db import connection, transaction
from django.db.models.functions import Now

from compensation.models import Run, Work
from compensation.operations.acting import lock_run
from compensation.runner.claims import claim, something_is_due
from tests.support.stage import Stage

LONG_S = 20


@contextmanager
def held_by_somebody(run: Run) -> Iterator[None]:
    """Another connection holds the run's lock, as an act under way does."""
    is_held, let_go = threading.Event(), threading.Event()

    def hold() -> None:
        with transaction.atomic():
            lock_run(run.tenant_id, run.pk)
            is_held.set()
            let_go.wait(LONG_S)
        connection.close()

    holder = threading.Thread(target=hold)
    holder.start()
    try:
        assert is_held.wait(LONG_S)
        yield
    finally:
        let_go.set()
        holder.join()


@pytest.fixture
def two_runs(stage: Stage) -> tuple[Run, Run]:
    stage.register("undo")
    stage.chain("a", "b")
    return stage.fail("a", "b"), stage.fail("a", "b")


def test_what_is_due_but_held_by_somebody_is_left_to_the_sweep(stage: Stage, two_runs: tuple[Run, Run]) -> None:
    held, free = two_runs
    with held_by_somebody(held):
        stage.work()
        assert something_is_due()
        assert stage.states(held) == {"b": "ready", "a": "waiting"}
        assert stage.states(free) == {"b": "completed", "a": "completed"}
    stage.work()
    assert stage.states(held) == {"b": "completed", "a": "completed"}


def test_cmp_404_a_lost_call_of_a_run_that_somebody_holds_does_not_keep_others_from_being_taken_over(
    stage: Stage, two_runs: tuple[Run, Run]
) -> None:
    held, free = two_runs
    for run in two_runs:
        lose_call(stage, run)
    with held_by_somebody(held):
        stage.work()
        assert stage.states(free) == {"b": "completed", "a": "completed"}
        assert stage.states(held)["b"] == "running"
    stage.work()
    assert stage.states(held) == {"b": "completed", "a": "completed"}
    assert [attempt.error_class for attempt in stage.attempts(held, "b")] == ["worker-lost", ""]


def lose_call(stage: Stage, run: Run) -> None:
    """Claim the first entry as a worker that then dies does, its lease over at once."""
    entry = stage.entry(run, "b")
    with transaction.atomic():
        assert claim(limit=1, worker="gone", only=entry.pk)
    Work.objects.filter(obligation=entry).update(due_at=Now())
