"""What came back from a call, and what to do next: decisions as values, the caller acts (CMP-402 … CMP-406)."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from enum import StrEnum

from compensation.domain.states import AttemptOutcome, Reason

MAX_DELAY_MS = 15 * 60 * 1000
JITTER_SHARE = 0.25
CRASH_LIMIT = 10

CREDENTIAL_MISSING = "credential-missing"
REQUEST_INVALID = "request-invalid"
CREDENTIAL_STATUSES = frozenset({401, 403})
# Asked to come again, but none of them proves that nothing was applied: a proxy may have passed the request on
# before it answered. So they leave the effect unknown (CMP-405), and only an honoured key makes a retry safe.
NOT_DEFINITE_STATUSES = frozenset({408, 425, 429})
CLIENT_ERROR = 4
IN_PROGRESS_STATUS = 409
IN_PROGRESS_CODES = frozenset({"idempotency_in_flight"})


@dataclass(frozen=True, slots=True)
class Answer:
    """What one call gave: a status and whether its body could be read, or no status and why.

    `sent` is false only when not one byte of the request left us (refused connection, DNS, egress guard).
    `error_code` is the `error` member of a JSON error body.
    """

    status: int | None = None
    sent: bool = True
    timed_out: bool = False
    body_readable: bool = True
    error_class: str | None = None
    error_code: str | None = None
    retry_after_ms: int | None = None


class Verdict(StrEnum):
    SUCCEEDED = "succeeded"
    REJECTED = "rejected"
    NOT_SENT = "not_sent"
    UNKNOWN = "unknown"
    CREDENTIALS_REFUSED = "credentials_refused"


class StepKind(StrEnum):
    COMPLETE = "complete"
    RETRY = "retry"
    READBACK = "readback"
    HOLD_UNCERTAIN = "hold_uncertain"
    HOLD_NODE_TYPE = "hold_node_type"
    HOLD_ENTRY = "hold_entry"
    EXHAUST = "exhaust"


@dataclass(frozen=True, slots=True)
class Step:
    """What to do next; `after_ms` from now for a retry or a readback, `reason` for an exhaustion."""

    kind: StepKind
    after_ms: int = 0
    reason: Reason | None = None


_SETTLED = {
    Verdict.SUCCEEDED: Step(StepKind.COMPLETE),
    Verdict.REJECTED: Step(StepKind.EXHAUST, reason=Reason.RETRIES_EXHAUSTED),
    Verdict.CREDENTIALS_REFUSED: Step(StepKind.HOLD_NODE_TYPE),
}


@dataclass(frozen=True, slots=True)
class Safety:
    """What makes it safe to present an action again: does the downstream honour keys, since when is this one known
    to it and for how long does it remember, and can an effect be read back."""

    honours_keys: bool
    key_age_hours: float
    key_lifetime_hours: float
    has_readback: bool

    @property
    def key_holds(self) -> bool:
        return self.honours_keys and self.key_age_hours < self.key_lifetime_hours


def delay_ms(attempt: int, backoff_ms: int, jitter: float, retry_after_ms: int | None = None) -> int:
    """Milliseconds before the attempt after number `attempt` (from 1): doubling, up to a quarter more by `jitter`
    in [0, 1), at least the downstream's `Retry-After`, never over 15 minutes (CMP-402)."""
    doublings = min(attempt - 1, 30)
    backoff = (backoff_ms << doublings) * (1 + JITTER_SHARE * jitter)
    return min(MAX_DELAY_MS, max(int(backoff), retry_after_ms or 0))


def classify(answer: Answer, *, success: Collection[int], retryable: Collection[int] = ()) -> Verdict:
    """What an answer proves (CMP-402, CMP-405).

    Only a declared success that can be read, and a definite rejection, prove anything once the request was sent. A
    4xx that the node type declares `retryable` is no definite rejection.
    """
    if answer.status is None:
        return _without_status(answer)
    if answer.status in success:
        return Verdict.SUCCEEDED if answer.body_readable else Verdict.UNKNOWN
    if answer.status in CREDENTIAL_STATUSES:
        return Verdict.CREDENTIALS_REFUSED
    return Verdict.REJECTED if _is_definite(answer, retryable) else Verdict.UNKNOWN


def _without_status(answer: Answer) -> Verdict:
    """No answer at all. What we ourselves refused to send says so: a missing credential is like a refused one, and a
    request that cannot be written will never be."""
    if answer.error_class == CREDENTIAL_MISSING:
        return Verdict.CREDENTIALS_REFUSED
    if answer.error_class == REQUEST_INVALID:
        return Verdict.REJECTED
    return Verdict.UNKNOWN if answer.sent else Verdict.NOT_SENT


def _is_definite(answer: Answer, retryable: Collection[int]) -> bool:
    status = answer.status or 0
    if status // 100 != CLIENT_ERROR or status in NOT_DEFINITE_STATUSES or status in retryable:
        return False
    return not (status == IN_PROGRESS_STATUS and _in_progress(answer))


def _in_progress(answer: Answer) -> bool:
    """A 409 that says "come again": it is still at work on this very key."""
    return answer.retry_after_ms is not None or answer.error_code in IN_PROGRESS_CODES


def attempt_outcome(answer: Answer, verdict: Verdict) -> AttemptOutcome:
    """How the attempt is recorded. A timeout keeps its name, whatever is known of its effect (CMP-403)."""
    if verdict == Verdict.SUCCEEDED:
        return AttemptOutcome.SUCCEEDED
    if answer.timed_out:
        return AttemptOutcome.TIMED_OUT
    return AttemptOutcome.UNKNOWN if verdict == Verdict.UNKNOWN else AttemptOutcome.FAILED


def next_step(
    verdict: Verdict,
    *,
    safety: Safety,
    spent: int,
    max_attempts: int,
    retry_delay_ms: int,
    crash_streak: int = 0,
    crash_limit: int = CRASH_LIMIT,
    earlier_unknown: bool = False,
) -> Step:
    """What follows an attempt. `spent` counts the attempts that count, this one included unless our own crash ended
    it; `crash_streak` the crashes in a row up to now (0 when this attempt gave an answer). `earlier_unknown`: an
    attempt before this one may have been applied, so even a request that was never sent is not safe to repeat once
    the key is forgotten. Nor is it given up as not undone while a readback could tell."""
    if verdict in _SETTLED:
        return _SETTLED[verdict]
    maybe_applied = verdict == Verdict.UNKNOWN or earlier_unknown
    if maybe_applied and not safety.key_holds:
        return Step(StepKind.READBACK if safety.has_readback else StepKind.HOLD_UNCERTAIN)
    step = present_again(
        spent=spent,
        max_attempts=max_attempts,
        retry_delay_ms=retry_delay_ms,
        crash_streak=crash_streak,
        crash_limit=crash_limit,
    )
    giving_up = step.kind == StepKind.EXHAUST
    return Step(StepKind.READBACK) if giving_up and maybe_applied and safety.has_readback else step


def present_again(
    *, spent: int, max_attempts: int, retry_delay_ms: int, crash_streak: int = 0, crash_limit: int = CRASH_LIMIT
) -> Step:
    """The next attempt once it is safe to make one: if one is left (CMP-402), else exhaustion (CMP-406)."""
    if crash_streak >= crash_limit:
        return Step(StepKind.HOLD_ENTRY)
    if spent < max_attempts:
        return Step(StepKind.RETRY, after_ms=retry_delay_ms)
    return Step(StepKind.EXHAUST, reason=Reason.RETRIES_EXHAUSTED)
