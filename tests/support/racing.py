"""Real concurrency: each act on a thread and a connection of its own, begun together."""

from __future__ import annotations

import threading
import uuid
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any

from django.db import connection, transaction

from compensation.models import Run
from tests.waiting import eventually

Act = Callable[[], Any]

WAITERS = """
select count(distinct l.pid) from pg_locks l join pg_stat_activity a on a.pid = l.pid
where not l.granted and a.datname = current_database()
"""


def race(*acts: Act) -> list[Any]:
    """Do all acts at the same moment; what each returned or raised, in order."""
    barrier = threading.Barrier(len(acts))

    def begin_together(act: Act) -> Any:
        connection.ensure_connection()
        barrier.wait()
        return act()

    with ThreadPoolExecutor(len(acts)) as pool:
        return _outcomes([pool.submit(_alone, lambda act=act: begin_together(act)) for act in acts])  # type: ignore[misc]


def queue_up(run_id: uuid.UUID, *acts: Act) -> list[Any]:
    """Do all acts while the run is locked, each begun once those before it wait for a lock; then let the run go.

    So each has begun before any can end: who decides on what it read before it waited is found out. One that needs
    no lock just ends.
    """
    with ThreadPoolExecutor(len(acts)) as pool:
        with transaction.atomic():
            Run.objects.select_for_update(of=("self",)).get(pk=run_id)
            begun: list[Future[Any]] = []
            for act in acts:
                begun.append(pool.submit(_alone, act))
                eventually(lambda: waiters() + sum(each.done() for each in begun) >= len(begun))
        return _outcomes(begun)


def waiters() -> int:
    """How many connections of this database wait for a lock now."""
    with connection.cursor() as cursor:
        cursor.execute("select pg_stat_clear_snapshot()")
        cursor.execute(WAITERS)
        row = cursor.fetchone()
    return int(row[0]) if row else 0


def errors(outcomes: Sequence[Any]) -> list[type[BaseException]]:
    """The kinds of what was raised."""
    return [type(each) for each in outcomes if isinstance(each, BaseException)]


def _alone(act: Act) -> Any:
    try:
        return act()
    finally:
        connection.close()


def _outcomes(begun: Sequence[Future[Any]]) -> list[Any]:
    return [each.exception() or each.result() for each in begun]
