"""The hash chain and its Merkle roots (wire.md, Audit integrity)."""

from __future__ import annotations

import copy
import hashlib
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from audit.chain import GENESIS, Anomaly, AnomalyKind, MerkleTree, entry_hash, merkle_root, verify
from tests.unit.domain.support import read

VECTOR = read("vectors", "audit.json")
HASHES: list[str] = VECTOR["hashes"]


def log() -> list[dict[str, Any]]:
    """The vector's entries, each with its hash, as an export holds them."""
    return [{**entry, "hash": digest} for entry, digest in zip(copy.deepcopy(VECTOR["entries"]), HASHES, strict=True)]


def found(entries: list[dict[str, Any]]) -> list[tuple[int, str]]:
    return [(anomaly.at_seq, anomaly.kind.value) for anomaly in verify(entries)]


def test_vector_hashes() -> None:
    assert [entry_hash(entry) for entry in VECTOR["entries"]] == HASHES


@pytest.mark.parametrize(("span", "root"), VECTOR["merkleRoots"].items())
def test_vector_merkle_root(span: str, root: str) -> None:
    first, last = map(int, span.split(".."))
    assert merkle_root(HASHES[first - 1 : last]) == root


def test_an_untouched_log_has_no_anomaly() -> None:
    assert found(log()) == []
    assert found(VECTOR["entries"]) == []


def test_a_part_of_a_log_verifies_from_the_hash_before_it() -> None:
    assert list(verify(log()[3:], genesis=HASHES[2], first_seq=4)) == []
    assert [each.kind.value for each in verify(log()[3:], genesis=GENESIS, first_seq=4)] == ["chain-break"]


def test_a_changed_entry_shows_at_itself_and_in_the_link_after_it() -> None:
    entries = log()
    entries[2]["allowed"] = False
    assert found(entries) == [(3, "hash-mismatch"), (4, "chain-break")]


def test_a_changed_and_rehashed_entry_still_breaks_the_chain() -> None:
    entries = log()
    entries[2]["allowed"] = False
    entries[2]["hash"] = entry_hash(entries[2])
    assert list(verify(entries)) == [Anomaly(4, AnomalyKind.CHAIN_BREAK, entries[2]["hash"], HASHES[2])]


def test_a_missing_entry_is_one_gap() -> None:
    entries = log()
    del entries[4]
    assert found(entries) == [(6, "gap")]


def test_a_doubled_or_swapped_entry_is_seen() -> None:
    entries = log()
    assert (2, "gap") in found([*entries[:2], entries[1], *entries[2:]])
    assert found([entries[1], entries[0], *entries[2:]])


@pytest.mark.parametrize("seq", range(1, 8))
@pytest.mark.parametrize("field", ["tenant", "principal", "planVersion", "at", "prevHash"])
def test_every_field_of_every_entry_is_covered(seq: int, field: str) -> None:
    entries = log()
    entries[seq - 1][field] = "forged"
    assert (seq, "hash-mismatch") in found(entries)


def test_an_anomaly_has_its_wire_shape() -> None:
    assert Anomaly(4, AnomalyKind.GAP, "a", None).to_wire() == {
        "atSeq": 4,
        "kind": "gap",
        "expectedPrevHash": "a",
        "actualPrevHash": None,
    }


def level_by_level(leaves: list[str]) -> str:
    """The definition of wire.md, word by word, as an independent oracle."""
    while len(leaves) > 1:
        pairs = [leaves[index : index + 2] for index in range(0, len(leaves), 2)]
        leaves = [hashlib.sha256("".join(pair).encode()).hexdigest() if len(pair) == 2 else pair[0] for pair in pairs]
    return leaves[0]


@given(st.integers(1, 200))
def test_a_streamed_root_is_the_root_built_level_by_level(count: int) -> None:
    leaves = [hashlib.sha256(bytes([index])).hexdigest() for index in range(count)]
    assert merkle_root(leaves) == level_by_level(leaves)


def test_a_root_needs_a_leaf() -> None:
    with pytest.raises(ValueError, match="at least one leaf"):
        MerkleTree().root()
