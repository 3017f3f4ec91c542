"""Which entries may start (CMP-320, CMP-321, CMP-322), against the definition spelled out."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from compensation.domain.heads import Standing, unblocked
from compensation.domain.ordering import Orderable, order
from compensation.domain.states import OUTCOME_OF_STATE, ObligationState, OrderingModel
from tests.unit.domain.test_ordering import EDGES, PLANS, everything_before

S = ObligationState
STATES = st.lists(st.sampled_from(ObligationState), min_size=10, max_size=10)


@given(PLANS, EDGES, STATES)
def test_cmp_322_an_entry_starts_only_when_everything_before_it_has_an_outcome(
    plan: list[Orderable], edges: set[tuple[str, str]], states: list[ObligationState]
) -> None:
    ordered = order(plan, model=OrderingModel.DEPENDENCY_GRAPH, edges=edges)
    state = {each.key: given_ for each, given_ in zip(ordered, states, strict=False)}
    before = everything_before(ordered)
    expected = {
        key
        for key in state
        if state[key] not in OUTCOME_OF_STATE and all(state[each] in OUTCOME_OF_STATE for each in before[key])
    }
    standing = [Standing(key=each.key, state=state[each.key], predecessors=each.predecessors) for each in ordered]
    assert unblocked(standing, OrderingModel.DEPENDENCY_GRAPH) == expected


@given(PLANS, STATES)
def test_cmp_320_at_most_one_entry_may_start_and_it_is_the_first_without_an_outcome(
    plan: list[Orderable], states: list[ObligationState]
) -> None:
    ordered = order(plan, model=OrderingModel.REVERSE_COMPLETION)
    state = {each.key: given_ for each, given_ in zip(ordered, states, strict=False)}
    standing = [Standing(key=each.key, state=state[each.key], predecessors=each.predecessors) for each in ordered]
    without = [each.key for each in ordered if state[each.key] not in OUTCOME_OF_STATE]
    in_flight = [key for key in without[1:] if state[key] == S.RUNNING]
    assert unblocked(standing, OrderingModel.REVERSE_COMPLETION) == (set() if in_flight else set(without[:1]))


@pytest.mark.parametrize("state", [S.WAITING, S.AWAITING_APPROVAL, S.RUNNING, S.UNCERTAIN, S.HELD, S.RETRY_SCHEDULED])
@pytest.mark.parametrize("settled", [S.SKIPPED, S.FAILED, S.TERMINATED, S.COMPLETED])
def test_cmp_322_a_settled_entry_does_not_hide_an_open_one_before_it(
    state: ObligationState, settled: ObligationState
) -> None:
    standing = [
        Standing(key="first", state=state),
        Standing(key="second", state=settled, predecessors=["first"]),
        Standing(key="third", state=S.WAITING, predecessors=["second"]),
    ]
    assert unblocked(standing, OrderingModel.DEPENDENCY_GRAPH) == {"first"}
