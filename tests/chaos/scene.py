"""Runs of the three example workflows that fail and unwind, and the people who answer what waits for them."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from django.db import InterfaceError, OperationalError, connection
from django.db.models.functions import Now

from approvals.models import Answer, Interrupt
from audit.errors import RecourseError
from audit.models import Tenant
from compensation.models import Obligation, Plan, Run, Work
from compensation.operations import approving, facts, registration, runs
from compensation.sandbox.node_types import node_types
from tests.support.sandbox import SandboxProcess
from tests.support.stage import committed, failed
from tests.support.world import EXAMPLE_NAMES, House, example, house
from tests.waiting import eventually

TIMEOUT_MS: Final = 1_500
RETRY: Final = {"maxAttempts": 8, "backoffMs": 40}
END_S: Final = 60.0


@dataclass(frozen=True, kw_only=True, slots=True)
class Story:
    """What one example workflow had done before which of its nodes failed."""

    inputs: Mapping[str, Any]
    outputs: Mapping[str, Mapping[str, Any]]
    fails: str

    @property
    def facts(self) -> list[dict[str, Any]]:
        done = [committed(node_id, output=output) for node_id, output in self.outputs.items()]
        return [*done, failed(self.fails)]


STORIES: Final = {
    "order-fulfilment": Story(
        inputs=dict.fromkeys(("orderId", "sku", "customerId", "currency", "email"), "any")
        | {"quantity": 2, "amount": 40},
        outputs={
            "reserve-inventory": {"reservationId": "reservation-1"},
            "charge-card": {"chargeId": "charge-1"},
            "book-shipment": {"shipmentId": "shipment-1"},
            "send-receipt": {"messageId": "message-1"},
        },
        fails="post-ledger",
    ),
    "travel-booking": Story(
        inputs={"trip": {"to": "Oslo"}, "customerId": "c-1", "amount": 900, "currency": "EUR"},
        outputs={
            "hold-budget": {"holdId": "hold-1"},
            "book-flight": {"bookingId": "flight-1"},
            "book-hotel": {"bookingId": "hotel-1"},
            "book-car": {"bookingId": "car-1"},
            "pay-total": {"chargeId": "charge-2"},
        },
        fails="issue-tickets",
    ),
    "supplier-payment": Story(
        inputs=dict.fromkeys(("supplierId", "invoiceId", "currency", "supplierEmail"), "any") | {"amount": 70},
        outputs={
            "reserve-funds": {"holdId": "hold-2"},
            "transfer": {"transferId": "transfer-1"},
            "notify-supplier": {"messageId": "message-2"},
        },
        fails="close-invoice",
    ),
}


class Scene:
    """A tenant with the example workflows on the sandbox. `different` goes into each of its node types."""

    def __init__(self, sandbox: SandboxProcess, **different: Any) -> None:
        self.sandbox = sandbox
        self.home: House = house(f"chaos-{uuid.uuid4().hex[:10]}")
        for document in node_types(sandbox.url):
            self.register(document, **different)
        for name in EXAMPLE_NAMES:
            registration.register_workflow(actor=self.home.service, document=brisk(example(name)))

    def register(self, document: Mapping[str, Any], **different: Any) -> None:
        """A node type with short bounds."""
        bounds = {"retry": RETRY, "timeoutMs": TIMEOUT_MS} if document["kind"] == "http" else {}
        more = different if document["kind"] == "http" else {}
        registration.register_node_type(actor=self.home.service, document={**document, **bounds, **more})

    def begin(self, name: str) -> Run:
        """A run of an example workflow of which nothing is known yet."""
        return runs.create_run(actor=self.home.service, workflow_id=name, inputs=STORIES[name].inputs)

    def fail(self, name: str) -> Run:
        """A run that did what its story says and then failed, so that it unwinds."""
        run = self.begin(name)
        facts.report_facts(actor=self.home.service, run_id=run.pk, facts=STORIES[name].facts)
        return run

    def unwind(self, *, each: int = 2) -> list[Run]:
        """Several runs of every example, all to be unwound."""
        return [self.fail(name) for _ in range(each) for name in EXAMPLE_NAMES]

    def runs(self) -> list[Run]:
        return list(Run.objects.filter(tenant=self.home.tenant).order_by("pk"))

    def answer_questions(self) -> int:
        """The approver accepts every open question that they may; how many there were."""
        questions = list(Interrupt.objects.filter(tenant=self.home.tenant, state="open"))
        for question in questions:
            version = approving.current_plan_version(question)
            reply = approving.Reply(answer=Answer.ACCEPT, digest=question.digest, plan_version=version)
            try:
                approving.resolve_interrupt(actor=self.home.approver, interrupt_id=question.pk, reply=reply)
            except RecourseError:
                continue  # it changed under us, as it may: the next look sees how
        return len(questions)

    def all_ended(self) -> bool:
        """Whether every run with a plan has nothing left to do."""
        tenant = self.home.tenant
        open_plans = Plan.objects.filter(tenant=tenant, closed_at__isnull=True)
        open_entries = Obligation.objects.filter(tenant=tenant, outcome__isnull=True)
        return not open_plans.exists() and not open_entries.exists()

    def bring_to_an_end(self, meanwhile: Callable[[], object] = lambda: None) -> None:
        """Answer whatever waits for a person until every plan has ended."""

        def ended() -> bool:
            try:
                meanwhile()
                self.answer_questions()
                return self.all_ended()
            except (OperationalError, InterfaceError):  # the database is away for a moment, as some tests mean it to be
                connection.close()
                return False

        try:
            eventually(ended, timeout=END_S)
        except AssertionError:
            left = Obligation.objects.filter(tenant=self.home.tenant, outcome__isnull=True).order_by("run", "position")
            states = [f"{entry.node_id}: {entry.state} after {entry.attempts} attempts" for entry in left]
            raise AssertionError(f"still open after {END_S:g} s: {states}") from None

    def close(self) -> None:
        """Hold the tenant, so that nothing it left due runs during later tests."""
        Tenant.objects.filter(pk=self.home.tenant.pk).update(held_at=Now(), held_reason="its test is over")
        Work.objects.filter(tenant=self.home.tenant).delete()


def brisk(document: dict[str, Any]) -> dict[str, Any]:
    """An example workflow with short bounds, so that leases end while a test watches."""
    policy = document["settings"]["compensation"]
    nodes = [_brisk_node(node) for node in document["nodes"]]
    settings = {"compensation": {**policy, "retry": RETRY, "timeoutMs": TIMEOUT_MS}}
    return {**document, "nodes": nodes, "settings": settings}


def _brisk_node(node: dict[str, Any]) -> dict[str, Any]:
    if "compensation" not in node:
        return node
    return {**node, "compensation": {**node["compensation"], "retry": RETRY, "timeoutMs": TIMEOUT_MS}}
