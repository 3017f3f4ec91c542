"""Effective bounds and approval flags (CMP-302, CMP-303)."""

from __future__ import annotations

from dataclasses import dataclass

import pytest
from hypothesis import given
from hypothesis import strategies as st

from compensation.domain.policy import Bounds, Declaration, PolicySpec, effective_approval, effective_bounds
from compensation.domain.states import ApprovalScope, Disposition, OnParentCancel, OrderingModel, Trigger


@dataclass(frozen=True)
class Demand:
    """A node type as far as bounds and approval are concerned."""

    requires_approval: bool = False
    max_attempts: int | None = None
    backoff_ms: int | None = None
    timeout_ms: int | None = None


MAYBE = st.none() | st.integers(0, 9)
SOURCES = st.builds(Demand, st.just(value=False), MAYBE, MAYBE, MAYBE)


def policy(scope: str = "declared", **more: object) -> PolicySpec:
    return PolicySpec.from_document({"triggers": ["node-failure"], "approvalScope": scope, **more})


@given(SOURCES, SOURCES, SOURCES)
def test_cmp_302_each_bound_comes_from_the_nearest_that_sets_it(node: Demand, policy_: Demand, type_: Demand) -> None:
    bounds = effective_bounds(node, policy_, type_)
    for name, default in (("max_attempts", 3), ("backoff_ms", 500), ("timeout_ms", 30_000)):
        given_ = [getattr(source, name) for source in (node, policy_, type_) if getattr(source, name) is not None]
        assert getattr(bounds, name) == (given_[0] if given_ else default)


def test_cmp_302_the_bounds_of_one_entry_may_come_from_three_places() -> None:
    declaration = Declaration.from_document({"nodeTypeId": "x", "retry": {"maxAttempts": 5}})
    bounds = effective_bounds(declaration, policy(retry={"maxAttempts": 9, "backoffMs": 0}), Demand(timeout_ms=7))
    assert bounds == Bounds(5, 0, 7)


@pytest.mark.parametrize("declared", [None, False, True])
@pytest.mark.parametrize("node_type", [False, True])
@pytest.mark.parametrize("scope", ["declared", "all"])
def test_cmp_303_any_of_three_can_demand_an_approval(*, declared: bool | None, node_type: bool, scope: str) -> None:
    declaration = Declaration("x", requires_approval=declared)
    requires, _ = effective_approval(declaration, policy(scope), Demand(requires_approval=node_type))
    assert requires == (declared is True or node_type or scope == "all")


@pytest.mark.parametrize(
    ("declared", "waive", "scope", "expected"),
    [
        (None, None, "declared", False),
        (True, None, "declared", True),
        (False, None, "declared", False),
        (True, False, "declared", False),
        (None, True, "declared", True),
        (False, True, "declared", True),
        (True, False, "all", True),
        (None, None, "all", True),
    ],
)
def test_cmp_303_what_waiving_needs(*, declared: bool | None, waive: bool | None, scope: str, expected: bool) -> None:
    declaration = Declaration("x", requires_approval=declared, waive_requires_approval=waive)
    for node_type in (Demand(requires_approval=True), Demand()):
        assert effective_approval(declaration, policy(scope), node_type)[1] is expected


def test_cmp_103_the_defaults_of_a_policy() -> None:
    assert PolicySpec.from_document({"triggers": ["cap-breach"]}) == PolicySpec(
        triggers=frozenset({Trigger.CAP_BREACH}),
        profile_version="1",
        ordering_model=OrderingModel.REVERSE_COMPLETION,
        exhausted_disposition=Disposition.RECORD_OUTCOME,
        approval_scope=ApprovalScope.DECLARED,
        on_parent_cancel=OnParentCancel.CONTINUE,
    )


def test_cmp_103_every_declared_member_of_a_policy_is_read() -> None:
    spec = policy(
        orderingModel="dependency-graph",
        retry={"maxAttempts": 2, "backoffMs": 10},
        timeoutMs=99,
        exhaustedDisposition="manual-intervention",
        onParentCancel="pause",
    )
    assert (spec.max_attempts, spec.backoff_ms, spec.timeout_ms) == (2, 10, 99)
    assert spec.ordering_model == OrderingModel.DEPENDENCY_GRAPH
    assert spec.exhausted_disposition == Disposition.MANUAL_INTERVENTION
    assert spec.on_parent_cancel == OnParentCancel.PAUSE
