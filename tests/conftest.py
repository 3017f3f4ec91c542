"""Fixtures for every kind of test. Each pytest-xdist process gets a database of its own (test_postgres_gw0, …)."""

from collections.abc import Iterator

import pytest
from django.db import connection
from pytest_django import DjangoDbBlocker

END_THE_OTHERS = (
    "select pg_terminate_backend(pid) from pg_stat_activity"
    " where datname = current_database() and pid <> pg_backend_pid()"
)


@pytest.fixture(scope="session")
def django_db_setup(django_db_setup: None, django_db_blocker: DjangoDbBlocker) -> Iterator[None]:
    """The test database, dropped at the end even if a server or a program of some test still has a session in it."""
    yield
    with django_db_blocker.unblock(), connection.cursor() as cursor:
        cursor.execute(END_THE_OTHERS)
