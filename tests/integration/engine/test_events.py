"""The log of a run: six content-free events, gap-free, with the state they tell of (CMP-304, 501, 502, 506)."""

import json

import pytest
from django.db import transaction

from compensation.domain.events import COMPENSATION_EVENTS, EventRefusedError
from compensation.models import Run, RunEvent
from compensation.operations import log
from tests.support.definitions import node
from tests.support.stage import WHY, Stage, committed

ALLOWED = {"compensationId", "nodeId", "effectId", "attempt", "orderingModel", "planVersion", "reason"}


def test_cmp_501_payloads_are_closed_and_content_free(stage: Stage) -> None:
    stage.register("undo", retry={"maxAttempts": 1, "backoffMs": 1})
    stage.chain("a", "b", policy={"exhaustedDisposition": "manual-intervention"}, requiresApproval=True)
    stage.fault("undo", "reject", status=422)
    run = stage.begin()
    secret = {"id": "4929-7226-5370-7810"}
    stage.report(run, committed("a", output=secret), committed("b", output=secret))
    stage.report(run, {"factId": "f", "type": "node.failed", "nodeId": "end", "terminal": True})
    stage.approve(run)
    stage.work()
    stage.skip(run, "b")
    seen = set()
    for event in RunEvent.objects.filter(run=run):
        assert secret["id"] not in json.dumps(event.payload)
        assert WHY not in json.dumps(event.payload)
        assert "injected" not in json.dumps(event.payload)
        if event.type.startswith("compensation."):
            seen.add(event.type)
            assert set(event.payload) <= ALLOWED
            assert event.payload["compensationId"] == str(stage.plan(run).pk)
    assert seen < set(COMPENSATION_EVENTS)
    assert len(seen) >= 5


def test_cmp_501_a_payload_outside_the_schema_is_refused_when_appended(stage: Stage) -> None:
    stage.register("undo")
    stage.chain("a")
    run = stage.fail("a")
    last = RunEvent.objects.filter(run=run).count()
    for payload in ({"compensationId": "x", "error": "no"}, {"compensationId": "x", "reason": "because"}, {}):
        with pytest.raises(EventRefusedError), transaction.atomic():
            log.append(run, "compensation.failed", payload)
    with pytest.raises(EventRefusedError), transaction.atomic():
        log.append(run, "compensation.undone", {"compensationId": "x"})
    assert RunEvent.objects.filter(run=run).count() == last


def test_cmp_502_events_are_numbered_without_gaps(stage: Stage) -> None:
    stage.register("undo")
    stage.chain("a", "b", requiresApproval=True)
    run = stage.fail("a", "b")
    stage.reject(run)
    stage.approve(run)
    stage.work()
    sequences = list(RunEvent.objects.filter(run=run).order_by("sequence").values_list("sequence", flat=True))
    run.refresh_from_db()
    assert sequences == list(range(1, run.last_sequence + 1))


def undone(run: Run) -> None:
    """Append in a transaction that does not commit."""
    with transaction.atomic():
        log.append(run, "run.paused")
        raise ZeroDivisionError


def test_cmp_502_an_act_that_fails_leaves_no_event_and_no_number_used(stage: Stage) -> None:
    stage.register("undo")
    stage.chain("a")
    run = stage.commit("a")
    run.refresh_from_db()
    before = run.last_sequence
    with pytest.raises(ZeroDivisionError):
        undone(run)
    run.refresh_from_db()
    assert run.last_sequence == before
    log.append(run, "run.paused")
    assert RunEvent.objects.get(run=run, type="run.paused").sequence == before + 1


def test_cmp_601_order_of_events_of_an_approved_unwind(stage: Stage) -> None:
    stage.register("undo")
    stage.workflow([node("a", "undo"), node("b", "undo", requiresApproval=True), node("c", "undo")])
    run = stage.fail("a", "b", "c")
    stage.work()
    stage.approve(run)
    stage.work()
    tail = stage.events(run, "")[stage.events(run, "").index("run.failed") :]
    assert tail == [
        "run.failed",
        "compensation.requested",
        "compensation.started",
        "interrupt.requested",
        "compensation.paused",
        "interrupt.resolved",
        "approval.granted",
        "authorization.decided",
        "compensation.completed",
    ]
