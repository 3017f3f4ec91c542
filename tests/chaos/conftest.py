"""One site for all chaos tests of a test process: its own folder, beat and relief worker, on the test database."""

import signal
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager

import pytest
from django.db import connection

from tests.chaos.scene import Scene
from tests.support.processes import Program, Site, url_of
from tests.support.sandbox import SandboxProcess
from tests.support.staging import *  # noqa: F403


@pytest.fixture(scope="session")
def site(django_db_setup: None, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    """Where the processes of a test run. They share the test's database, and nobody else's messages."""
    with Site(tmp_path_factory.mktemp("site"), database_url=url_of(connection.settings_dict)) as site:
        site.beat()
        yield site


@pytest.fixture(scope="session")
def standby(site: Site) -> Program:
    """A worker that stands still: it has nothing in hand, and takes part only while it is relieving another."""
    worker = site.worker()
    worker.signal(signal.SIGSTOP)
    return worker


@pytest.fixture
def relief(standby: Program) -> AbstractContextManager[Program]:
    """`with relief:` the other worker goes on with what is there."""

    @contextmanager
    def at_work() -> Iterator[Program]:
        standby.signal(signal.SIGCONT)
        try:
            yield standby
        finally:
            standby.signal(signal.SIGSTOP)

    return at_work()


@pytest.fixture
def scene(db: None, downstream: SandboxProcess) -> Iterator[Scene]:
    """A tenant whose runs are unwound."""
    made = Scene(downstream)
    yield made
    made.close()
    downstream.clear_faults()
