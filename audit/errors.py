"""Every refusal a client can meet, with its wire code. One class a code; the envelope is made at the edge."""

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar


class RecourseError(Exception):
    """A refusal with a wire code, an HTTP status and closed details. Nothing was changed when it is raised."""

    code: ClassVar[str] = "internal_error"
    status: ClassVar[int] = 500
    retriable: ClassVar[bool] = False

    def __init__(self, message: str, *, details: Mapping[str, Any] | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.details: dict[str, Any] = {**(details or {}), "retriable": self.retriable}


class Unauthenticated(RecourseError):
    code, status = "unauthenticated", 401


class KeyExpired(RecourseError):
    code, status = "key_expired", 401


class KeyRevoked(RecourseError):
    code, status = "key_revoked", 401


class Forbidden(RecourseError):
    """Same tenant, no authority (CMP-606). The denied decision is already recorded."""

    code, status = "forbidden", 403


class NotFound(RecourseError):
    """Not there, or not there for you: the two are told apart by nobody (CMP-606)."""

    code, status = "not_found", 404

    def __init__(self, message: str = "There is no such thing here.") -> None:
        super().__init__(message)


class ValidationFailed(RecourseError):
    """Bad input. ``problems``: ``[{"pointer": JSON pointer, "message": what was wrong and what is allowed}]``."""

    code, status = "validation_error", 400

    def __init__(self, message: str, problems: Sequence[Mapping[str, Any]]) -> None:
        super().__init__(message, details={"errors": [dict(problem) for problem in problems]})


class CapabilityRequired(RecourseError):
    code, status = "capability_required", 422


class VersionConflict(RecourseError):
    """What was seen is not what is there now; ``details`` carry the current values and nothing was decided."""

    code, status = "version_conflict", 409


class ApprovalRequired(RecourseError):
    code, status = "approval_required", 409


class RunTerminal(RecourseError):
    code, status = "run_terminal", 409


class InterruptAlreadyResolved(RecourseError):
    code, status = "interrupt_already_resolved", 409


class InterruptExpired(RecourseError):
    code, status = "interrupt_expired", 410


class IdempotencyKeyMismatch(RecourseError):
    code, status = "idempotency_key_mismatch", 409


class IdempotencyInFlight(RecourseError):
    code, status, retriable = "idempotency_in_flight", 409, True


class PayloadTooLarge(RecourseError):
    code, status = "payload_too_large", 413


class RateLimited(RecourseError):
    code, status, retriable = "rate_limited", 429, True
