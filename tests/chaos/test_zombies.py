"""A worker that stood still while another took over changes nothing, sends nothing and holds up nobody (CMP-404)."""

import signal
from contextlib import AbstractContextManager
from typing import Any

import pytest

from compensation.models import Attempt, Obligation, Run, RunEvent
from tests.chaos.scene import END_S, Scene
from tests.chaos.verdict import problems_of
from tests.support.processes import Program, Site
from tests.waiting import eventually

pytestmark = pytest.mark.chaos

Relief = AbstractContextManager[Program]
ENDS = (" succeeded in ", " raised unexpected: ")
# Its database session outlives its standing still, so that nothing but the fencing keeps it from recording; and it
# has but the one runner slot, which it keeps meanwhile.
PATIENT = {"RECOURSE_RUNNER_LINGER_MS": "30000", "RECOURSE_RUNNER_SLOTS": "1"}


def stands_still(site: Site, scene: Scene, failpoint: str, **environment: str) -> Program:
    """A worker that stopped at the point while people answered what waits."""
    worker = site.worker(failpoint=f"{failpoint}:1:STOP", **environment)

    def is_stopped() -> bool:
        scene.answer_questions()
        return worker.is_stopped()

    eventually(is_stopped, timeout=END_S)
    return worker


def goes_on(worker: Program) -> None:
    """Continue it, and return when it has done with what it had in hand."""
    drained = ended_drains(worker)
    worker.signal(signal.SIGCONT)
    eventually(lambda: ended_drains(worker) > drained, timeout=END_S)


def ended_drains(worker: Program) -> int:
    """How many of its tasks have ended, well or badly. It runs one at a time until it is continued."""
    return sum(worker.said.count(word) for word in ENDS)


def record(scene: Scene) -> dict[str, Any]:
    """All that a late result could change, and what reached the other system."""
    tenant = scene.home.tenant
    keys = set(Attempt.objects.filter(tenant=tenant).values_list("idempotency_key", flat=True))
    return {
        "entries": list(Obligation.objects.filter(tenant=tenant).order_by("pk").values()),
        "attempts": list(Attempt.objects.filter(tenant=tenant).order_by("pk").values()),
        "events": list(RunEvent.objects.filter(tenant=tenant).order_by("pk").values_list("pk", flat=True)),
        "sent": {key: seen for key, seen in scene.sandbox.stats()["byKey"].items() if key in keys},
    }


@pytest.mark.parametrize("failpoint", ["before-send", "after-send", "before-record"])
def test_cmp_404_a_zombie_neither_records_nor_sends(site: Site, scene: Scene, relief: Relief, failpoint: str) -> None:
    scene.unwind()
    zombie = stands_still(site, scene, failpoint, **PATIENT)
    try:
        with relief:
            scene.bring_to_an_end()
        before = record(scene)
        goes_on(zombie)
        assert record(scene) == before
    finally:
        zombie.kill()
    assert problems_of(scene.home.tenant, scene.sandbox) == []
    lost = Attempt.objects.filter(tenant=scene.home.tenant, worker__endswith=f":{zombie.pid}", outcome="unknown")
    assert lost.exists()
    assert set(lost.values_list("error_class", flat=True)) == {"worker-lost"}


def test_cmp_404_a_call_in_flight_when_its_worker_stops_is_lost_although_it_is_answered(
    site: Site, scene: Scene, relief: Relief
) -> None:
    scene.sandbox.faults("/shipping/cancel", "delay", times=1, ms=1_000)
    run = scene.fail("order-fulfilment")
    zombie = site.worker(**PATIENT)
    try:
        eventually(Attempt.objects.filter(obligation__run=run).exists, timeout=END_S)
        zombie.signal(signal.SIGSTOP)
        with relief:
            scene.bring_to_an_end()
        before = record(scene)
        goes_on(zombie)
        assert record(scene) == before
    finally:
        zombie.kill()
    assert first_outcome(run) == ("unknown", "worker-lost", None)
    assert problems_of(scene.home.tenant, scene.sandbox) == []


def test_cmp_404_a_zombies_answer_does_not_end_the_attempt_that_took_over(
    site: Site, scene: Scene, relief: Relief
) -> None:
    run = scene.fail("order-fulfilment")
    zombie = stands_still(site, scene, "after-send", **PATIENT)
    scene.sandbox.faults("/shipping/cancel", "delay", times=1, ms=1_200)
    second = Attempt.objects.filter(obligation__run=run, obligation__node_id="book-shipment", number=2)
    try:
        with relief:
            eventually(second.filter(finished_at__isnull=True).exists, timeout=END_S)
            goes_on(zombie)
            scene.bring_to_an_end()
    finally:
        zombie.kill()
    assert first_outcome(run) == ("unknown", "worker-lost", None)
    assert second.get().outcome == "succeeded"
    assert problems_of(scene.home.tenant, scene.sandbox) == []


def first_outcome(run: Run) -> tuple[Any, ...]:
    """What is on record of the first attempt to cancel the shipment."""
    first = Attempt.objects.get(obligation__run=run, obligation__node_id="book-shipment", number=1)
    return first.outcome, first.error_class, first.receipt


@pytest.mark.parametrize("failpoint", ["after-send", "record-before-commit"])
def test_cmp_404_workers_that_stand_still_in_every_runner_slot_hold_up_nobody(
    site: Site, scene: Scene, relief: Relief, failpoint: str
) -> None:
    scene.unwind()
    zombies = [stands_still(site, scene, failpoint) for _ in range(2)]
    try:
        with relief:
            scene.bring_to_an_end()
        for zombie in zombies:
            goes_on(zombie)
    finally:
        for zombie in zombies:
            zombie.kill()
    assert problems_of(scene.home.tenant, scene.sandbox) == []
