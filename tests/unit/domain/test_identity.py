"""Effect ids and idempotency keys (CMP-310, CMP-311)."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from compensation.domain.canonical import canonical
from compensation.domain.identity import effect_id, idempotency_key
from tests.unit.domain.support import TEXT, read

VECTORS = read("vectors", "identity.json")
TUPLES = st.tuples(TEXT, TEXT, TEXT, st.integers(1, 10_000), st.sampled_from(["1", "2", "12"]))


@pytest.mark.parametrize("vector", VECTORS)
def test_cmp_310_vector(vector: dict[str, Any]) -> None:
    assert canonical(vector["tuple"]).decode() == vector["canonical"]
    assert effect_id(*vector["tuple"]) == vector["effectId"]


@given(TUPLES, TUPLES)
def test_cmp_310_two_obligations_share_an_id_only_if_they_are_one(one: Any, other: Any) -> None:
    assert (effect_id(*one) == effect_id(*other)) == (one == other)


@given(TEXT, TEXT, st.sampled_from(list(':|,"[]\\/')))
def test_cmp_310_a_delimiter_inside_a_value_does_not_alias(left: str, right: str, delimiter: str) -> None:
    shifted = effect_id(left + delimiter + right, "r", "i", 1, "1")
    assert shifted != effect_id(left, right + delimiter + "r", "i", 1, "1")


@given(TUPLES, st.none() | st.integers(2, 99), st.none() | st.integers(2, 99))
def test_cmp_311_a_key_is_the_effect_id_until_this_entry_is_substituted(
    parts: Any, one: int | None, other: int | None
) -> None:
    identity = effect_id(*parts)
    assert idempotency_key(identity, None) == identity
    assert (idempotency_key(identity, one) == idempotency_key(identity, other)) == (one == other)


def test_cmp_311_the_key_of_a_substituted_entry_names_the_version() -> None:
    assert idempotency_key("ab", 3) == "ab:v3"
