"""At most a fixed number of runners at once, over all processes (architecture.md, Throughput).

A slot is an advisory lock of the very session that does the runner's work. It ends with that session, and the server
ends the session of a runner that has fallen silent: one that was stopped, or whose machine is gone, holds up nobody.
"""

import contextlib
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Final

from django.conf import settings
from django.db import DatabaseError, connection

LOCK_SPACE: Final = 0x7265636F  # "reco": advisory locks are shared by everything in a database
END_WHEN_SILENT: Final = (
    "select set_config('idle_session_timeout', %(idle)s, false),"
    " set_config('idle_in_transaction_session_timeout', %(in_transaction)s, false)"
)
AS_BEFORE: Final = "reset idle_session_timeout; reset idle_in_transaction_session_timeout"


@contextlib.contextmanager
def runner_slot() -> Iterator[ThreadPoolExecutor | None]:
    """The one thread whose database session holds a free slot for the body, or None when all are taken."""
    with ThreadPoolExecutor(1, thread_name_prefix="recourse-db") as database:
        try:
            yield database if database.submit(_take).result() else None
        finally:
            database.submit(_give_back).result()


def silences_ms() -> dict[str, str]:
    """How long a session of a runner that works is never silent: it looks for work many times within the first, and
    asks nobody but the database within a transaction, which holds up others who want the same runs."""
    margin = settings.LEASE_MARGIN_MS
    return {"idle": str(margin + 2 * settings.RUNNER_LINGER_MS), "in_transaction": str(margin)}


def _take() -> bool:
    if not any(_try_lock(number) for number in range(settings.RUNNER_SLOTS)):
        return False
    with connection.cursor() as cursor:
        cursor.execute(END_WHEN_SILENT, silences_ms())
    return True


def _try_lock(slot: int) -> bool:
    with connection.cursor() as cursor:
        cursor.execute("select pg_try_advisory_lock(%s, %s)", [LOCK_SPACE, slot])
        row = cursor.fetchone()
    return bool(row and row[0])


def _give_back() -> None:
    """Leave the session to the pool as it came from there. One that is lost has let everything go already."""
    try:
        with contextlib.suppress(DatabaseError), connection.cursor() as cursor:
            cursor.execute(f"select pg_advisory_unlock_all(); {AS_BEFORE}")
    finally:
        connection.close()
