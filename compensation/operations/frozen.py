"""The frozen side of an obligation, as the domain digests, shows and substitutes it (CMP-302, 306, 602)."""

from typing import Any

from compensation.domain import plan as domain
from compensation.domain.plan import MintedEntry
from compensation.domain.policy import Bounds
from compensation.models import Obligation


def as_minted(entry: Obligation) -> MintedEntry:
    """The domain's view of a stored entry. Its digest is the stored one, since both read the same columns."""
    version = entry.node_type_version
    return MintedEntry(
        tenant_id=entry.tenant.slug,
        run_id=str(entry.run_id),
        node_id=entry.node_id,
        forward_logical_invocation_id=entry.forward_logical_invocation_id,
        ordinal=entry.ordinal,
        compensation_ordinal=entry.compensation_ordinal,
        effect_id=entry.effect_id,
        idempotency_key=entry.idempotency_key,
        node_type_id=version.node_type.node_type_id if version else None,
        node_type_version=version.number if version else None,
        input=entry.input,
        bounds=Bounds(entry.max_attempts, entry.backoff_ms, entry.timeout_ms),
        requires_approval=entry.requires_approval,
        waive_requires_approval=entry.waive_requires_approval,
        quorum=entry.quorum,
        profile_version=entry.profile_version,
        position=entry.position,
        predecessors=frozenset(entry.predecessors),
        plan_version=entry.entry_version,
    )


def entry_document(entry: Obligation) -> dict[str, Any]:
    """What is shown and signed, byte for byte as RFC 8785 JSON."""
    return domain.entry_document(as_minted(entry))


def columns_of(minted: MintedEntry) -> dict[str, Any]:
    """The columns of a new obligation that freeze with it, but for its node type version, which is a row."""
    return {
        "node_id": minted.node_id,
        "forward_logical_invocation_id": minted.forward_logical_invocation_id,
        "ordinal": minted.ordinal,
        "compensation_ordinal": minted.compensation_ordinal,
        "effect_id": minted.effect_id,
        "profile_version": minted.profile_version,
        "position": minted.position,
        "predecessors": sorted(minted.predecessors),
        "input": minted.input,
        "max_attempts": minted.bounds.max_attempts,
        "backoff_ms": minted.bounds.backoff_ms,
        "timeout_ms": minted.bounds.timeout_ms,
        **substitutable_columns_of(minted),
    }


def substitutable_columns_of(minted: MintedEntry) -> dict[str, Any]:
    """The columns that an authorised substitution changes together, and nothing else does (CMP-305)."""
    return {
        "idempotency_key": minted.idempotency_key,
        "requires_approval": minted.requires_approval,
        "waive_requires_approval": minted.waive_requires_approval,
        "quorum": minted.quorum,
        "entry_version": minted.plan_version,
        "digest": minted.digest,
    }
