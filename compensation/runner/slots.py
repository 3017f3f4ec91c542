"""At most a fixed number of runners at once, over all processes (architecture.md, Throughput)."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from django.conf import settings
from django.db import connection

LOCK_SPACE: Final = 0x7265636F  # "reco": advisory locks are shared by everything in a database


@contextmanager
def runner_slot() -> Iterator[int | None]:
    """A free slot held for the body, or None when all are taken. A dead holder's slot frees itself."""
    slot = next((number for number in range(settings.RUNNER_SLOTS) if _try_lock(number)), None)
    try:
        yield slot
    finally:
        if slot is not None:
            _unlock(slot)


def _try_lock(slot: int) -> bool:
    with connection.cursor() as cursor:
        cursor.execute("select pg_try_advisory_lock(%s, %s)", [LOCK_SPACE, slot])
        row = cursor.fetchone()
    return bool(row and row[0])


def _unlock(slot: int) -> None:
    with connection.cursor() as cursor:
        cursor.execute("select pg_advisory_unlock(%s, %s)", [LOCK_SPACE, slot])
