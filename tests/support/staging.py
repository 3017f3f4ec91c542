"""Fixtures for tests of the engine: real commits in the test database, and one sandbox for all of them.

Nothing is rolled back or flushed: each test has a tenant of its own, so that what is left of others does not matter.
"""

from collections.abc import Iterator

import pytest
from django.db import connections
from pytest_django import DjangoDbBlocker

from tests.support.sandbox import SandboxProcess
from tests.support.stage import Stage

__all__ = ["db", "downstream", "stage"]


@pytest.fixture(scope="session")
def downstream() -> Iterator[SandboxProcess]:
    """The sandbox that all tests of the engine share; paths and keys keep them apart."""
    with SandboxProcess() as running:
        yield running


@pytest.fixture
def db(django_db_setup: None, django_db_blocker: DjangoDbBlocker) -> Iterator[None]:
    """The database with real commits: the runner and the racers see them on connections of their own."""
    with django_db_blocker.unblock():
        yield
        connections.close_all()


@pytest.fixture
def stage(db: None, downstream: SandboxProcess) -> Iterator[Stage]:
    """A tenant with its people on the shared sandbox."""
    made = Stage(downstream)
    yield made
    made.close()
