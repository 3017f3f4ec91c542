"""Who an obligation is: the effect id, and the key its calls carry (CMP-310, CMP-311)."""

from __future__ import annotations

from compensation.domain.canonical import digest


def effect_id(
    tenant_id: str,
    run_id: str,
    forward_logical_invocation_id: str,
    compensation_ordinal: int,
    profile_version: str,
) -> str:
    """Hex SHA-256 of the RFC 8785 array, never of a concatenation (CMP-310). `run_id` is the root run's."""
    return digest([tenant_id, run_id, forward_logical_invocation_id, compensation_ordinal, profile_version])


def idempotency_key(effect_id: str, substituted_at_version: int | None) -> str:
    """The key sent downstream on every attempt: the effect id, or after a substitution of this very entry the
    effect id with the plan version of its last substitution (CMP-311)."""
    return effect_id if substituted_at_version is None else f"{effect_id}:v{substituted_at_version}"
