"""The hash chain of decisions: pure, so that an exported log can be verified with no framework and no database."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from enum import StrEnum

import rfc8785

GENESIS = "0" * 64


class AnomalyKind(StrEnum):
    CHAIN_BREAK = "chain-break"
    HASH_MISMATCH = "hash-mismatch"
    MERKLE_MISMATCH = "merkle-mismatch"
    SIGNATURE_INVALID = "signature-invalid"
    GAP = "gap"


@dataclass(frozen=True, slots=True)
class Anomaly:
    """Where a log does not verify, and what would have been right."""

    at_seq: int
    kind: AnomalyKind
    expected_prev_hash: str | None = None
    actual_prev_hash: str | None = None

    def to_wire(self) -> dict[str, object]:
        return {
            "atSeq": self.at_seq,
            "kind": self.kind.value,
            "expectedPrevHash": self.expected_prev_hash,
            "actualPrevHash": self.actual_prev_hash,
        }


def entry_hash(entry: Mapping[str, object]) -> str:
    """Hex SHA-256 of the RFC 8785 JSON of an entry without its own `hash`."""
    hashed = {name: value for name, value in entry.items() if name != "hash"}
    return hashlib.sha256(rfc8785.dumps(hashed)).hexdigest()  # type: ignore[arg-type]


def verify(entries: Iterable[Mapping[str, object]], *, genesis: str = GENESIS, first_seq: int = 1) -> Iterator[Anomaly]:
    """Anomalies of entries in order of `seq`, one entry in memory at a time.

    To verify a part of a log, `genesis` is the hash of the entry before `first_seq`. After a gap the chain is taken
    up where it goes on: one missing entry is one anomaly.
    """
    expected_seq, expected_hash = first_seq, genesis
    for entry in entries:
        seq, previous = _integer(entry.get("seq")), _text(entry.get("prevHash"))
        if seq != expected_seq:
            yield Anomaly(seq, AnomalyKind.GAP, expected_hash, previous)
        elif previous != expected_hash:
            yield Anomaly(seq, AnomalyKind.CHAIN_BREAK, expected_hash, previous)
        actual = entry_hash(entry)
        if "hash" in entry and entry["hash"] != actual:
            yield Anomaly(seq, AnomalyKind.HASH_MISMATCH, expected_hash, previous)
        expected_seq, expected_hash = seq + 1, actual


@dataclass(slots=True)
class MerkleTree:
    """A Merkle root over leaves that stream by, in memory logarithmic in their number.

    `_peaks` are the roots of the full subtrees so far, each with its height, highest first.
    """

    _peaks: list[tuple[int, str]] = field(default_factory=list)

    def add(self, leaf: str) -> None:
        height, node = 0, leaf
        while self._peaks and self._peaks[-1][0] == height:
            node = _parent(self._peaks.pop()[1], node)
            height += 1
        self._peaks.append((height, node))

    def root(self) -> str:
        """The root of the leaves added so far, at least one; a last odd node is promoted unchanged."""
        if not self._peaks:
            raise ValueError("a Merkle root needs at least one leaf")
        *higher, (_, node) = self._peaks
        for _, peak in reversed(higher):
            node = _parent(peak, node)
        return node


def merkle_root(hashes: Iterable[str]) -> str:
    """The Merkle root over entry hashes (hex) in order, at least one."""
    tree = MerkleTree()
    for leaf in hashes:
        tree.add(leaf)
    return tree.root()


def _parent(left: str, right: str) -> str:
    """SHA-256 of the ASCII bytes left‖right, as lower-case hex."""
    return hashlib.sha256((left + right).encode("ascii")).hexdigest()


def _integer(value: object) -> int:
    return value if isinstance(value, int) else 0


def _text(value: object) -> str | None:
    return value if isinstance(value, str) else None
