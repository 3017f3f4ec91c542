"""Minting plans (CMP-111, CMP-112, CMP-202, CMP-203, CMP-302, CMP-306, CMP-310, CMP-311, CMP-609)."""

from __future__ import annotations

import time
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from compensation.domain.canonical import digest
from compensation.domain.identity import effect_id
from compensation.domain.mapping import CommittedEffect
from compensation.domain.node_type import NodeTypeSpec
from compensation.domain.plan import (
    MintedEntry,
    MintedPlan,
    MintFailure,
    entry_document,
    mint,
    plan_digest,
    substituted,
)
from compensation.domain.policy import Bounds
from compensation.domain.workflow import WorkflowSpec
from tests.unit.domain.support import (
    Document,
    booking,
    committed,
    edge,
    http_node_type,
    node,
    read,
    undone_by,
    workflow,
)


def node_type(node_type_id: str, **more: Any) -> NodeTypeSpec:
    return NodeTypeSpec.from_document(http_node_type(nodeTypeId=node_type_id, **more))


def registry(document: Document, **more: Any) -> dict[str, tuple[NodeTypeSpec, int]]:
    wanted = {each["compensation"]["nodeTypeId"] for each in document["nodes"] if "compensation" in each}
    return {node_type_id: (node_type(node_type_id, **more), 4) for node_type_id in wanted}


def minted(
    document: Document, effects: list[CommittedEffect], inputs: dict[str, Any] | None = None, **more: Any
) -> MintedPlan | MintFailure | None:
    return mint(
        tenant_id="acme",
        run_id="run-1",
        workflow=WorkflowSpec.from_document(document),
        effects=effects,
        inputs=inputs or {},
        **{"node_types": registry(document), **more},
    )


def plan_of(*args: Any, **more: Any) -> MintedPlan:
    found = minted(*args, **more)
    assert isinstance(found, MintedPlan)
    return found


ORDER = read("examples", "order-fulfilment.json")
ORDER_INPUTS = {"orderId": "o-1", "quantity": 2, "amount": 19.9}
ORDER_EFFECTS = [
    committed("reserve-inventory", 1, {"reservationId": "R-1"}),
    committed("charge-card", 2, {"chargeId": "C-1"}),
    committed("book-shipment", 3, {"shipmentId": "S-1"}),
    committed("send-receipt", 4, {"messageId": "M-1"}),
]


def order_plan() -> MintedPlan:
    return plan_of(ORDER, ORDER_EFFECTS, ORDER_INPUTS)


def entry(node_id: str) -> MintedEntry:
    [found] = [each for each in order_plan().entries if each.node_id == node_id]
    return found


def test_cmp_320_the_order_example_unwinds_shipping_then_refund_then_release() -> None:
    entries = order_plan().entries
    assert [each.node_id for each in entries] == ["send-receipt", "book-shipment", "charge-card", "reserve-inventory"]
    assert [each.position for each in entries] == [1, 2, 3, 4]
    assert [each.irreversible for each in entries] == [True, False, False, False]
    keys = {each.node_id: each.key for each in entries}
    assert [each.predecessors for each in entries] == [
        set(),
        set(),
        {keys["book-shipment"]},
        {keys["charge-card"]},
    ]


def test_cmp_111_inputs_are_resolved_from_recorded_facts() -> None:
    assert {each.node_id: each.input for each in order_plan().entries} == {
        "send-receipt": None,
        "book-shipment": {"shipmentId": "S-1"},
        "charge-card": {"chargeId": "C-1", "amount": 19.9, "memo": "Order o-1 reversed"},
        "reserve-inventory": {"reservationId": "R-1", "quantity": 2},
    }


def test_cmp_302_an_entry_freezes_everything_it_will_run_with() -> None:
    found = entry("charge-card")
    assert entry_document(found) == {
        "tenantId": "acme",
        "runId": "run-1",
        "nodeId": "charge-card",
        "forwardLogicalInvocationId": "run-1:charge-card:2",
        "completionOrdinal": 2,
        "compensationOrdinal": 3,
        "effectId": found.effect_id,
        "idempotencyKey": found.effect_id,
        "nodeTypeId": "sandbox.payments.refund",
        "nodeTypeVersion": 4,
        "input": {"chargeId": "C-1", "amount": 19.9, "memo": "Order o-1 reversed"},
        "retry": {"maxAttempts": 3, "backoffMs": 500},
        "timeoutMs": 30000,
        "requiresApproval": True,
        "waiveRequiresApproval": False,
        "quorum": 1,
        "profileVersion": "1",
        "position": 3,
        "predecessors": [entry("book-shipment").effect_id],
        "planVersion": 1,
    }


def test_cmp_302_bounds_and_quorum_are_frozen_per_entry() -> None:
    assert entry("reserve-inventory").bounds == Bounds(5, 1000, 30_000)
    assert entry("book-shipment").bounds == Bounds(3, 500, 5_000)
    plan = plan_of(ORDER, ORDER_EFFECTS, ORDER_INPUTS, quorum_of=lambda name: 2 if "refund" in name else 1)
    assert [each.quorum for each in plan.entries] == [1, 1, 2, 1]


def test_cmp_203_an_irreversible_entry_has_a_place_and_nothing_to_run() -> None:
    found = entry("send-receipt")
    assert (found.node_type_id, found.node_type_version, found.input) == (None, None, None)
    assert (found.requires_approval, found.waive_requires_approval) == (False, False)
    assert entry_document(found)["nodeTypeId"] is None


def test_cmp_203_commits_without_a_declaration_are_not_in_the_plan() -> None:
    plan = plan_of(ORDER, [*ORDER_EFFECTS, committed("post-ledger", 5, {})], ORDER_INPUTS)
    assert "post-ledger" not in {each.node_id for each in plan.entries}


def test_cmp_310_the_compensation_ordinal_ranks_all_entries_by_descending_commit() -> None:
    assert [(each.ordinal, each.compensation_ordinal) for each in order_plan().entries] == [
        (4, 1),
        (3, 2),
        (2, 3),
        (1, 4),
    ]
    found = entry("charge-card")
    assert found.effect_id == effect_id("acme", "run-1", "run-1:charge-card:2", 3, "1")
    assert found.idempotency_key == found.effect_id


def test_cmp_310_the_rank_is_the_same_in_either_ordering_model() -> None:
    travel = read("examples", "travel-booking.json")
    effects = [
        committed("hold-budget", 1, {"holdId": 1}),
        committed("book-car", 2, {"bookingId": 2}),
        committed("book-flight", 3, {"bookingId": 3}),
        committed("book-hotel", 4, {"bookingId": 4}),
        committed("pay-total", 5, {"chargeId": 5}),
    ]
    plan = plan_of(travel, effects, {"amount": 1})
    assert {each.ordinal + each.compensation_ordinal for each in plan.entries} == {6}
    names = {each.key: each.node_id for each in plan.entries}
    waits = {each.node_id: {names[key] for key in each.predecessors} for each in plan.entries}
    bookings = {"book-car", "book-flight", "book-hotel"}
    assert waits == {"pay-total": set(), **{each: {"pay-total"} for each in bookings}, "hold-budget": bookings}


def test_cmp_202_nothing_to_unwind_even_with_irreversible_effects() -> None:
    assert minted(ORDER, []) is None
    assert minted(ORDER, [committed("send-receipt", 1), committed("post-ledger", 2)]) is None


def test_cmp_106_without_a_policy_nothing_is_minted() -> None:
    assert minted({**ORDER, "settings": {}}, ORDER_EFFECTS, ORDER_INPUTS) is None


@pytest.mark.parametrize(
    ("effects", "inputs", "reference", "pointer"),
    [
        (
            [committed("charge-card", 1, {})],
            ORDER_INPUTS,
            "${nodes.charge-card.output.chargeId}",
            "/nodes/1/compensation/inputMapping/chargeId",
        ),
        (ORDER_EFFECTS, {"amount": 1, "quantity": 2}, "${inputs.orderId}", "/nodes/1/compensation/inputMapping/memo"),
    ],
)
def test_cmp_112_an_unresolved_reference_fails_the_whole_mint(
    effects: list[CommittedEffect], inputs: dict[str, Any], reference: str, pointer: str
) -> None:
    found = minted(ORDER, effects, inputs)
    assert isinstance(found, MintFailure)
    assert (found.reference, found.node_id, found.pointer) == (reference, "charge-card", pointer)
    assert found.to_wire() == {"reference": reference, "nodeId": "charge-card", "pointer": pointer, "why": found.why}


def test_cmp_112_a_late_fact_makes_the_same_mint_succeed() -> None:
    early = [committed("charge-card", 1, {})]
    assert isinstance(minted(ORDER, early, ORDER_INPUTS), MintFailure)
    assert isinstance(minted(ORDER, [committed("charge-card", 1, {"chargeId": None})], ORDER_INPUTS), MintedPlan)


def test_an_inverse_that_is_not_registered_fails_the_mint_by_name() -> None:
    found = minted(ORDER, ORDER_EFFECTS, ORDER_INPUTS, node_types={})
    assert isinstance(found, MintFailure)
    assert found.reference == "sandbox.shipping.cancel"


def test_cmp_111_each_invocation_of_a_looping_node_refers_to_itself() -> None:
    effects = [committed("book", at, {"id": f"B-{at}"}) for at in (1, 2, 3)]
    assert [each.input for each in plan_of(booking(), effects).entries] == [{"id": "B-3"}, {"id": "B-2"}, {"id": "B-1"}]


def test_cmp_306_the_plan_digest_covers_its_entries_in_order() -> None:
    plan = order_plan()
    digests = [digest(entry_document(each)) for each in plan.entries]
    assert [each.digest for each in plan.entries] == digests
    assert plan.digest == plan_digest(digests) != plan_digest(digests[::-1])


@given(st.text("xyz", min_size=1))
def test_cmp_306_another_fact_is_another_digest(value: str) -> None:
    effects = [*ORDER_EFFECTS[:1], committed("charge-card", 2, {"chargeId": value}), *ORDER_EFFECTS[2:]]
    assert plan_of(ORDER, effects, ORDER_INPUTS).digest != order_plan().digest


@given(st.permutations(ORDER_EFFECTS))
def test_cmp_111_a_mint_does_not_depend_on_how_facts_are_listed(effects: list[CommittedEffect]) -> None:
    assert plan_of(ORDER, effects, ORDER_INPUTS) == order_plan()


def test_cmp_311_a_substituted_entry_keeps_its_input_and_gets_a_key_of_its_own() -> None:
    before = entry("book-shipment")
    after = substituted(
        before,
        node_type=node_type("test.other", requiresApproval=True),
        node_type_version=2,
        plan_version=3,
        quorum=2,
    )
    assert after.idempotency_key == f"{before.effect_id}:v3"
    assert (after.effect_id, after.input, after.bounds) == (before.effect_id, before.input, before.bounds)
    assert (after.node_type_id, after.node_type_version, after.plan_version) == ("test.other", 2, 3)
    assert after.digest != before.digest


def test_cmp_609_approval_flags_and_quorum_rise_and_never_fall() -> None:
    calm = node_type("test.other", requiresApproval=False)
    strict = plan_of(ORDER, ORDER_EFFECTS, ORDER_INPUTS, quorum_of=lambda name: 3).entries[2]
    kept = substituted(strict, node_type=calm, node_type_version=1, plan_version=2)
    assert (kept.requires_approval, kept.waive_requires_approval, kept.quorum) == (True, False, 3)
    raised = substituted(
        entry("book-shipment"),
        node_type=node_type("test.other", requiresApproval=True),
        node_type_version=1,
        plan_version=2,
        quorum=2,
    )
    assert (raised.requires_approval, raised.quorum) == (True, 2)


def test_cmp_303_scope_all_asks_for_everything() -> None:
    supplier = read("examples", "supplier-payment.json")
    effects = [committed("reserve-funds", 1, {"holdId": 1}), committed("transfer", 2, {"transferId": 2})]
    plan = plan_of(supplier, effects, {"invoiceId": "i", "supplierId": "s"})
    assert [(each.requires_approval, each.waive_requires_approval) for each in plan.entries] == [(True, True)] * 2
    assert plan.entries[0].input == {"transferId": 2, "invoice": {"id": "i", "supplier": "s"}}


def test_a_plan_of_a_thousand_entries_is_minted_within_five_seconds() -> None:
    names = [f"n{at}" for at in range(1000)]
    document = workflow(
        [node(name, compensation=undone_by("test.unbook", {"id": f"${{nodes.{name}.output.id}}"})) for name in names],
        *(edge(one, two) for one, two in pairwise(names)),
        policy={"triggers": ["run-cancel"], "orderingModel": "dependency-graph"},
    )
    effects = [committed(name, at, {"id": at}) for at, name in enumerate(names, start=1)]
    started = time.perf_counter()
    assert len(plan_of(document, effects).entries) == 1000
    assert time.perf_counter() - started < 5
