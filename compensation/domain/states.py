"""The words of compensation, spelled as on the wire, and the moves an obligation may make."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum

PROFILE_VERSIONS = ("1",)
DEFAULT_PROFILE_VERSION = "1"


class ObligationState(StrEnum):
    WAITING = "waiting"
    AWAITING_APPROVAL = "awaiting_approval"
    READY = "ready"
    RUNNING = "running"
    RETRY_SCHEDULED = "retry_scheduled"
    UNCERTAIN = "uncertain"
    HELD = "held"
    COMPLETED = "completed"
    FAILED = "failed"
    SKIPPED = "skipped"
    TERMINATED = "terminated"
    IRREVERSIBLE = "irreversible"


class Outcome(StrEnum):
    COMPLETED = "completed"
    FAILED = "failed"
    SKIPPED = "skipped"
    TERMINATED = "terminated"
    IRREVERSIBLE = "irreversible"


class RunStatus(StrEnum):
    PENDING = "pending"
    RUNNING = "running"
    COMPLETED = "completed"
    FAILED = "failed"
    CANCELLED = "cancelled"
    PAUSED = "paused"


class Trigger(StrEnum):
    NODE_FAILURE = "node-failure"
    RUN_CANCEL = "run-cancel"
    CAP_BREACH = "cap-breach"
    OPERATOR_REQUEST = "operator-request"


class OrderingModel(StrEnum):
    REVERSE_COMPLETION = "reverse-completion"
    DEPENDENCY_GRAPH = "dependency-graph"


class Disposition(StrEnum):
    RECORD_OUTCOME = "record-outcome"
    MANUAL_INTERVENTION = "manual-intervention"


class ApprovalScope(StrEnum):
    DECLARED = "declared"
    ALL = "all"


class OnParentCancel(StrEnum):
    CONTINUE = "continue"
    PAUSE = "pause"
    MANUAL = "manual"


class Reason(StrEnum):
    """The closed reasons a compensation event may carry (CMP-501)."""

    RETRIES_EXHAUSTED = "retries-exhausted"
    APPROVAL_DENIED = "approval-denied"
    AUTHORITY_DENIED = "authority-denied"
    DEAD_LETTERED = "dead-lettered"
    OPERATOR_TERMINATED = "operator-terminated"


class AttemptOutcome(StrEnum):
    SUCCEEDED = "succeeded"
    FAILED = "failed"
    TIMED_OUT = "timed_out"
    UNKNOWN = "unknown"


class RollupStatus(StrEnum):
    NONE = "none"
    PENDING = "pending"
    RUNNING = "running"
    COMPLETED = "completed"
    PARTIAL = "partial"
    FAILED = "failed"
    MANUAL = "manual"


class NodeKind(StrEnum):
    HTTP = "http"
    MANUAL = "manual"


OUTCOME_OF_STATE: Mapping[ObligationState, Outcome] = {ObligationState(outcome.value): outcome for outcome in Outcome}
"""States with a recorded outcome; an obligation in any other state has none."""

TERMINAL_STATES = frozenset(OUTCOME_OF_STATE)
"""Nothing more will happen by itself. `failed` is among them although a person may reopen it (CMP-505)."""

_S = ObligationState
_REOPENED = (_S.WAITING, _S.AWAITING_APPROVAL, _S.READY, _S.RETRY_SCHEDULED)
_SETTLED_BY_A_PERSON = (_S.SKIPPED, _S.TERMINATED)
_MOVES: Mapping[ObligationState, tuple[ObligationState, ...]] = {
    # An entry may be rejected ahead of its turn (CMP-601) or turn out to be done elsewhere (CMP-615).
    _S.WAITING: (_S.AWAITING_APPROVAL, _S.READY, _S.HELD, _S.COMPLETED, _S.FAILED, *_SETTLED_BY_A_PERSON),
    # Approved ahead of its turn an entry waits again; a manual entry completes when its approver signs (CMP-615).
    _S.AWAITING_APPROVAL: (_S.WAITING, _S.READY, _S.COMPLETED, _S.FAILED, _S.HELD, *_SETTLED_BY_A_PERSON),
    _S.READY: (
        _S.WAITING,
        _S.AWAITING_APPROVAL,
        _S.RUNNING,
        _S.UNCERTAIN,
        _S.HELD,
        _S.COMPLETED,
        _S.FAILED,
        *_SETTLED_BY_A_PERSON,
    ),
    # `ready` and `retry_scheduled` are also how a crashed or credential-refused attempt is presented again (CMP-404);
    # `terminated` is a plan that was terminated while a call was in flight (CMP-609).
    _S.RUNNING: (
        _S.READY,
        _S.RETRY_SCHEDULED,
        _S.UNCERTAIN,
        _S.HELD,
        _S.COMPLETED,
        _S.FAILED,
        _S.TERMINATED,
    ),
    _S.RETRY_SCHEDULED: (
        _S.WAITING,
        _S.AWAITING_APPROVAL,
        _S.READY,
        _S.RUNNING,
        _S.UNCERTAIN,
        _S.HELD,
        _S.COMPLETED,
        _S.FAILED,
        *_SETTLED_BY_A_PERSON,
    ),
    _S.UNCERTAIN: (*_REOPENED, _S.HELD, _S.COMPLETED, _S.FAILED, *_SETTLED_BY_A_PERSON),
    _S.HELD: (*_REOPENED, _S.UNCERTAIN, _S.COMPLETED, *_SETTLED_BY_A_PERSON),
    # Reopened, what may have been applied is read back first (CMP-405).
    _S.FAILED: (*_REOPENED, _S.UNCERTAIN, _S.HELD, _S.COMPLETED, *_SETTLED_BY_A_PERSON),
    # Final for ever: `completed` (CMP-312), `irreversible` (CMP-203), and what a person settled.
    _S.COMPLETED: (),
    _S.SKIPPED: (),
    _S.TERMINATED: (),
    _S.IRREVERSIBLE: (),
}

LEGAL: frozenset[tuple[ObligationState, ObligationState]] = frozenset(
    (before, after) for before, afters in _MOVES.items() for after in afters
)
"""Every legal move of an obligation, `(from, to)`; the database refuses any other."""

INITIAL_STATES = frozenset({_S.WAITING, _S.IRREVERSIBLE})
"""The states an entry may be minted in."""

FINAL_STATES = frozenset(state for state, afters in _MOVES.items() if not afters)
"""No act and no attempt leaves these."""


def is_legal(before: str, after: str) -> bool:
    """True when an obligation in state `before` may move to `after`."""
    return (before, after) in LEGAL
