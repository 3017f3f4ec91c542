"""A worker that dies by SIGKILL, at every point where something is half done, loses nothing (CMP-401…405, 502)."""

import signal
from collections.abc import Iterator
from contextlib import AbstractContextManager

import pytest

from compensation.models import Attempt, Readback
from tests.chaos.scene import END_S, Scene
from tests.chaos.verdict import problems_of
from tests.support.processes import Program, Site
from tests.support.sandbox import SandboxProcess
from tests.waiting import eventually

pytestmark = pytest.mark.chaos

# Where a call was in flight, which can only be told of as lost.
IN_FLIGHT = (
    *("after-claim", "after-claim:3", "before-send", "before-send:5", "after-send", "after-send:7"),
    *("before-record", "record-before-commit", "record-before-commit:4"),
)
# Where everything was on record; what was claimed in the same commit is lost with it, if anything was.
ON_RECORD = ("after-record", "after-record:3")

Relief = AbstractContextManager[Program]


def dies(site: Site, scene: Scene, failpoint: str) -> None:
    """A worker that dies at the point while people answer what waits, by that signal and by nothing else."""
    worker = site.worker(failpoint=failpoint)

    def is_dead() -> bool:
        scene.answer_questions()
        return worker.code is not None

    try:
        eventually(is_dead, timeout=END_S)
    finally:
        worker.kill()
    assert worker.code == -signal.SIGKILL, worker.said


def lost(scene: Scene) -> int:
    """How many attempts are told of as lost with their worker."""
    attempts = Attempt.objects.filter(tenant=scene.home.tenant, outcome="unknown", error_class="worker-lost")
    return attempts.count()


def repeats(scene: Scene) -> int:
    """How many requests of this scene were sent although their effect stood already."""
    by_key = scene.sandbox.stats()["byKey"]
    sent = Attempt.objects.filter(tenant=scene.home.tenant).values_list("idempotency_key", flat=True)
    return sum(by_key[key]["duplicates"] for key in set(sent) & set(by_key))


@pytest.mark.parametrize("failpoint", [*IN_FLIGHT, *ON_RECORD])
def test_cmp_404_a_killed_worker_loses_nothing(site: Site, scene: Scene, relief: Relief, failpoint: str) -> None:
    scene.unwind()
    dies(site, scene, failpoint)
    with relief:
        scene.bring_to_an_end()
    assert problems_of(scene.home.tenant, scene.sandbox) == []
    assert lost(scene) or failpoint in ON_RECORD


def test_cmp_402_a_worker_killed_while_recording_a_failure_loses_nothing(
    site: Site, scene: Scene, relief: Relief
) -> None:
    scene.sandbox.faults("/", "fail", times=4, status=503)
    scene.unwind()
    dies(site, scene, "failure-before-commit:2")
    with relief:
        scene.bring_to_an_end()
    assert problems_of(scene.home.tenant, scene.sandbox) == []
    assert lost(scene)


def test_cmp_404_a_worker_killed_while_taking_over_from_another_loses_nothing(
    site: Site, scene: Scene, relief: Relief
) -> None:
    scene.unwind()
    dies(site, scene, "after-send:2")
    dies(site, scene, "recovery-before-commit")
    with relief:
        scene.bring_to_an_end()
    assert problems_of(scene.home.tenant, scene.sandbox) == []
    assert lost(scene)


@pytest.fixture
def asked_back(db: None, downstream: SandboxProcess) -> Iterator[Scene]:
    """A tenant whose node types promise nothing about keys: only a readback tells what was applied."""
    made = Scene(downstream, idempotency={"header": "Idempotency-Key", "honoured": False}, settleMs=100)
    yield made
    made.close()
    downstream.clear_faults()


@pytest.mark.parametrize("failpoint", ["after-send:2", "readback-before-record", "readback-before-record:3"])
def test_cmp_405_what_a_killed_worker_had_applied_is_read_back_and_never_sent_again(
    site: Site, asked_back: Scene, relief: Relief, failpoint: str
) -> None:
    asked_back.sandbox.faults("/", "drop_after", times=4)
    asked_back.unwind(each=1)
    dies(site, asked_back, failpoint)
    with relief:
        asked_back.bring_to_an_end()
    assert problems_of(asked_back.home.tenant, asked_back.sandbox) == []
    assert Readback.objects.filter(tenant=asked_back.home.tenant, verdict="applied").exists()
    assert repeats(asked_back) == 0
