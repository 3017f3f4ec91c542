"""Rows of every kind, made by the engine, for hand-written SQL to try itself on."""

from collections.abc import Iterator

import pytest
from django.db import connection
from pytest_django import DjangoDbBlocker

from compensation.models import Attention
from tests.integration.tables.sql import Subject
from tests.support.definitions import node, readback
from tests.support.sandbox import SandboxProcess
from tests.support.stage import Stage, committed
from tests.support.staging import *  # noqa: F403

NOT_HONOURED = {"header": "Idempotency-Key", "honoured": False}


@pytest.fixture(scope="package")
def subjects(
    django_db_setup: None, django_db_blocker: DjangoDbBlocker, downstream: SandboxProcess
) -> Iterator[tuple[Subject, Subject]]:
    """The same rows in two tenants: in the first one call is due, in the second all that could run has run."""
    with django_db_blocker.unblock():
        second = _played(Stage(downstream))
        second.stage.work()
        first = _played(Stage(downstream))
        yield first, second
        for subject in (first, second):
            subject.stage.close()
        connection.close()


@pytest.fixture
def subject(db: None, subjects: tuple[Subject, Subject]) -> Subject:
    return subjects[0]


@pytest.fixture
def stranger(db: None, subjects: tuple[Subject, Subject]) -> Subject:
    """The same in another tenant."""
    return subjects[1]


def _played(stage: Stage) -> Subject:
    """Entries in order: mail irreversible, read completed by readback, asked approved and due, plain waiting."""
    stage.register("undo")
    stage.register("reading", idempotency=NOT_HONOURED, readback=readback(stage.sandbox.url))
    asked = node("asked", "undo", requiresApproval=True)
    nodes = [node("plain", "undo"), asked, node("read", "reading"), node("mail", irreversibleEffect=True)]
    stage.workflow([*nodes, node("late", "undo")])
    stage.fault("reading", "drop_after", times=1)
    run = stage.fail("plain", "asked", "read", "mail")
    stage.report(run, committed("late"))
    stage.work()
    stage.approve(run)
    plain = stage.entry(run, "plain")
    Attention.objects.create(
        tenant=stage.home.tenant, run=run, plan=stage.plan(run), obligation=plain, kind="dead_letter", cause="test"
    )
    return Subject(stage, run)
