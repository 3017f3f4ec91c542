"""The three published examples, whole, on the real sandbox (CMP-320 … 322, 405, 406, 601, 609)."""

from collections.abc import Iterator
from itertools import pairwise
from typing import Any

import pytest
from django.db.models.functions import Now

from compensation.models import Run, Work
from tests.support.stage import Stage, committed
from tests.support.world import register_examples

ORDER = {
    "orderId": "o-1", "sku": "s-1", "quantity": 2, "customerId": "c-1", "amount": 10.5, "currency": "EUR",
    "email": "a@example.org",
}  # fmt: skip
TRIP = {"trip": {"to": "Lisbon"}, "customerId": "c-1", "amount": 900, "currency": "EUR"}
INVOICE = {"supplierId": "s-1", "invoiceId": "i-1", "amount": 70, "currency": "EUR", "supplierEmail": "s@example.org"}


@pytest.fixture
def shop(stage: Stage) -> Iterator[Stage]:
    """With the sandbox's node types and the examples."""
    register_examples(stage.home, stage.sandbox.url)
    yield stage
    stage.sandbox.clear_faults()


def output(node_id: str, **ids: str) -> dict[str, Any]:
    return committed(node_id, output=ids)


def ended(node_id: str) -> dict[str, Any]:
    return {"factId": "end", "type": "node.failed", "nodeId": node_id, "terminal": True, "errorCode": "E"}


def order(shop: Stage) -> Run:
    run = shop.begin("order-fulfilment", **ORDER)
    shop.report(
        run,
        output("reserve-inventory", reservationId="res-1"),
        output("charge-card", chargeId="ch-1"),
        output("book-shipment", shipmentId="shp-1"),
        output("send-receipt"),
        ended("post-ledger"),
    )
    return run


def test_order_fulfilment_cmp_320_601_503(shop: Stage) -> None:
    run = order(shop)
    assert list(shop.states(run)) == ["send-receipt", "book-shipment", "charge-card", "reserve-inventory"]
    shop.work()
    assert shop.states(run) == {
        "send-receipt": "irreversible",
        "book-shipment": "completed",
        "charge-card": "awaiting_approval",
        "reserve-inventory": "waiting",
    }
    assert (shop.rollup(run), shop.events(run)) == ("running", ["requested", "started", "paused"])
    question = shop.approve(run)
    shop.work()
    assert shop.rollup(run) == "partial"
    assert shop.events(run) == ["requested", "started", "paused"]
    assert shop.effects(run) == {"send-receipt": 0, "book-shipment": 1, "charge-card": 1, "reserve-inventory": 1}
    assert shop.entry(run, "charge-card").input == {"chargeId": "ch-1", "amount": 10.5, "memo": "Order o-1 reversed"}
    (approval,) = shop.decisions(action="approvals:respond")
    assert (approval.principal, approval.plan_version) == (shop.home.approver.label, 1)
    assert approval.evidence_digest == question.digest == shop.entry(run, "charge-card").digest
    rows = [shop.attempts(run, node_id)[0] for node_id in ("book-shipment", "charge-card", "reserve-inventory")]
    for before, after in pairwise(rows):
        assert before.finished_at is not None
        assert before.finished_at <= after.started_at


def test_travel_booking_cmp_321_322_refund_first_then_three_at_once_then_the_budget(shop: Stage) -> None:
    run = shop.begin("travel-booking", **TRIP)
    shop.report(
        run,
        output("hold-budget", holdId="hold-1"),
        output("book-hotel", bookingId="htl-1"),
        output("book-flight", bookingId="flt-1"),
        output("book-car", bookingId="car-1"),
        output("pay-total", chargeId="ch-1"),
        ended("issue-tickets"),
    )
    assert shop.work() == 0, "the refund, which everything waits for, waits for its approval"
    shop.approve(run)
    shop.sandbox.faults("/travel/cancel", "delay", ms=150)
    shop.work()
    assert shop.rollup(run) == "completed"
    (refund,), (release,) = shop.attempts(run, "pay-total"), shop.attempts(run, "hold-budget")
    cancels = [shop.attempts(run, node_id)[0] for node_id in ("book-flight", "book-hotel", "book-car")]
    ends = [row.finished_at for row in (refund, *cancels) if row.finished_at is not None]
    assert len(ends) == 4
    assert all(ends[0] <= row.started_at for row in cancels)
    assert max(row.started_at for row in cancels) < min(ends[1:]), "the three are in flight together"
    assert max(ends) <= release.started_at
    assert set(shop.effects(run).values()) == {1}


def payment(shop: Stage) -> Run:
    run = shop.begin("supplier-payment", **INVOICE)
    shop.report(
        run,
        output("reserve-funds", holdId="hold-1"),
        output("transfer", transferId="tr-1"),
        output("notify-supplier"),
        ended("close-invoice"),
    )
    return run


def exhaust_the_recall(shop: Stage, run: Run) -> None:
    shop.sandbox.faults("/payments/recall", "fail", times=2)
    shop.approve(run)
    shop.work()
    Work.objects.filter(run=run).update(due_at=Now())
    shop.work()


def test_supplier_payment_cmp_303_406_609_recall_exhausts_then_a_retry_works_under_the_same_key(shop: Stage) -> None:
    run = payment(shop)
    assert shop.work() == 0
    assert shop.states(run)["transfer"] == "awaiting_approval"
    exhaust_the_recall(shop, run)
    assert (shop.states(run)["transfer"], shop.rollup(run)) == ("failed", "manual")
    assert shop.events(run)[-3:] == ["failed", "manual_intervention_required", "paused"]
    shop.retry(run, "transfer")
    shop.work()
    rows = shop.attempts(run, "transfer")
    assert [(row.number, row.outcome) for row in rows] == [(1, "unknown"), (2, "unknown"), (3, "succeeded")]
    assert len({row.idempotency_key for row in rows}) == 1
    assert shop.entry(run, "transfer").attempts == 3
    shop.approve(run)
    shop.work()
    assert shop.rollup(run) == "partial"
    assert shop.effects(run) == {"notify-supplier": 0, "transfer": 1, "reserve-funds": 1}


def test_supplier_payment_cmp_609_610_skip_needs_a_second_person(shop: Stage) -> None:
    run = payment(shop)
    exhaust_the_recall(shop, run)
    asked = shop.skip(run, "transfer")
    assert asked.interrupt is not None
    assert (shop.states(run)["transfer"], shop.rollup(run)) == ("failed", "manual")
    shop.answer(asked.interrupt)
    assert shop.states(run) == {
        "notify-supplier": "irreversible",
        "transfer": "skipped",
        "reserve-funds": "awaiting_approval",
    }
    shop.approve(run)
    shop.work()
    assert (shop.rollup(run), shop.effects(run)["transfer"]) == ("partial", 0)
