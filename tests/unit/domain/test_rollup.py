"""The fold of CMP §5: vectors, totality, and what the values exclude (CMP-503, CMP-505)."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from compensation.domain.rollup import fold, is_active
from compensation.domain.states import TERMINAL_STATES, ObligationState, RollupStatus
from tests.unit.domain.support import read

VECTORS = read("vectors", "rollup.json")
STATES = st.lists(st.sampled_from(ObligationState), max_size=6)
FLAGS = st.fixed_dictionaries(
    dict.fromkeys(("requested", "started", "manual_open", "closed", "parent_paused", "mint_failed"), st.booleans())
)


def folded(entries: list[ObligationState], flags: dict[str, bool]) -> RollupStatus:
    plan = {name: flags[name] for name in ("parent_paused", "mint_failed")}
    active = is_active(entries, closed=flags["closed"], **plan)
    named = {name: flags[name] for name in ("requested", "started", "manual_open")}
    return fold(entries=entries, active=active, **named, **plan)


@pytest.mark.parametrize("vector", VECTORS, ids=[vector["name"] for vector in VECTORS])
def test_cmp_5_vector(vector: dict[str, Any]) -> None:
    plan = {"parent_paused": vector["parentPaused"], "mint_failed": vector["mintFailed"]}
    status = fold(
        entries=vector["entries"],
        requested=vector["requested"],
        started=vector["started"],
        manual_open=vector["manualOpen"],
        active=vector["active"],
        **plan,
    )
    assert status == vector["expect"]


@pytest.mark.parametrize("vector", VECTORS, ids=[vector["name"] for vector in VECTORS])
def test_cmp_5_active_is_what_the_vectors_say(vector: dict[str, Any]) -> None:
    plan = {"parent_paused": vector["parentPaused"], "mint_failed": vector["mintFailed"]}
    assert is_active(vector["entries"], closed=False, **plan) == vector["active"]


@given(STATES, FLAGS)
def test_cmp_5_the_fold_is_total_and_its_values_exclude_each_other(
    entries: list[ObligationState], flags: dict[str, bool]
) -> None:
    status = folded(entries, flags)
    completed = entries.count(ObligationState.COMPLETED)
    over = flags["closed"] or flags["parent_paused"] or flags["mint_failed"]
    moving = not over and any(state not in TERMINAL_STATES for state in entries)
    expected = {
        RollupStatus.NONE: not flags["requested"],
        RollupStatus.MANUAL: flags["requested"] and flags["manual_open"],
        RollupStatus.PENDING: moving and not flags["started"],
        RollupStatus.RUNNING: moving and flags["started"],
        RollupStatus.COMPLETED: not moving and 0 < completed == len(entries),
        RollupStatus.PARTIAL: not moving and 0 < completed < len(entries),
        RollupStatus.FAILED: not moving and completed == 0,
    }
    assert expected[status]


@given(STATES, FLAGS)
def test_cmp_503_never_completed_beside_an_irreversible_entry(
    entries: list[ObligationState], flags: dict[str, bool]
) -> None:
    assert folded([*entries, ObligationState.IRREVERSIBLE], flags) != RollupStatus.COMPLETED


def test_cmp_503_an_irreversible_only_remainder_never_reads_pending() -> None:
    flags = dict.fromkeys(("started", "manual_open", "closed", "parent_paused", "mint_failed"), False)
    assert folded([ObligationState.IRREVERSIBLE], {**flags, "requested": True}) == RollupStatus.FAILED


@given(STATES)
def test_cmp_407_a_parent_paused_plan_is_not_active_whatever_the_caller_says(entries: list[ObligationState]) -> None:
    status = fold(
        entries=entries,
        requested=True,
        started=True,
        manual_open=False,
        active=True,
        parent_paused=True,
        mint_failed=False,
    )
    assert status in {RollupStatus.COMPLETED, RollupStatus.PARTIAL, RollupStatus.FAILED}
