"""One vocabulary for every page: the wire's word, what people call it, its shape, its tone and its meaning."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from compensation.domain.states import RollupStatus


@dataclass(frozen=True, slots=True)
class Word:
    """A state as pages show it. ``shape`` names an icon, ``tone`` a colour role; never the colour alone."""

    wire: str
    human: str
    shape: str
    tone: str
    meaning: str = ""


def _by_wire(*words: Word) -> Mapping[str, Word]:
    return {word.wire: word for word in words}


ENTRY: Final = _by_wire(
    Word("waiting", "Waiting its turn", "circle", "quiet", "Something ordered before it has no outcome yet."),
    Word("awaiting_approval", "Needs approval", "hand", "ask", "A person must approve it before its first attempt."),
    Word("ready", "Ready", "dot", "active", "Its turn has come; a worker will take it."),
    Word("running", "Running", "spinner", "active", "A call is in flight."),
    Word("retry_scheduled", "Retry scheduled", "clock", "warn", "An attempt failed; the next one has a time."),
    Word("uncertain", "Uncertain", "question", "warn", "Nobody knows whether the last attempt took effect."),
    Word("held", "Held", "pause", "warn", "Stopped until a person or a hold lets it go on."),
    Word("completed", "Undone", "check", "done", "The inverse action succeeded. Final."),
    Word("failed", "Not undone", "cross", "bad", "Rejected, refused or never sent: surely without effect."),
    Word("skipped", "Skipped", "skip", "final", "Left as it is, by a person's decision. Final."),
    Word("terminated", "Terminated", "stop", "bad", "The unwind was ended before this could run. Final."),
    Word("irreversible", "Cannot be undone", "lock", "final", "Declared irreversible; nothing runs for it."),
)

EFFECT_UNKNOWN: Final = "failed-unknown"
PLAN_WAITS: Final = "ready-waits"
ENTRY_AS_SHOWN: Final = {
    **ENTRY,
    EFFECT_UNKNOWN: Word(
        "failed", "Failed, effect unknown", "question", "bad", "Given up, and nothing proves that it took no effect."
    ),
    PLAN_WAITS: Word(
        "ready", "Ready, but the plan waits for a person", "pause", "warn", "Its turn has come; the plan is held."
    ),
}
"""The states, and where the state alone would say too much or too little."""

ROLLUP: Final = _by_wire(
    Word("none", "No unwind", "dash", "quiet", "Nothing was started, or nothing is owed."),
    Word("pending", "Unwind requested", "circle", "active", "The plan is durable; no inverse has started."),
    Word("running", "Unwinding", "spinner", "active", "Inverses are running or waiting for their turn."),
    Word("completed", "Fully undone", "check", "done", "Every entry of the plan completed."),
    Word("partial", "Partly undone", "half", "warn", "Some entries completed and some did not."),
    Word("failed", "Nothing undone", "cross", "bad", "No entry completed."),
    Word("manual", "Needs a person", "hand", "ask", "The unwind is held until an operator acts."),
)

RUN: Final = _by_wire(
    Word("pending", "Pending", "circle", "quiet", "Created, not started."),
    Word("running", "Running", "spinner", "active", "Its forward steps are under way."),
    Word("completed", "Completed", "check", "done", "The forward run succeeded."),
    Word("failed", "Failed", "cross", "bad", "The forward run ended in failure."),
    Word("cancelled", "Cancelled", "stop", "final", "Somebody cancelled the forward run."),
    Word("paused", "Paused", "pause", "warn", "The forward run is paused."),
    Word("waiting-approval", "Waiting for approval", "hand", "ask", "A question of this run is open."),
)

INTERRUPT: Final = _by_wire(
    Word("open", "Open", "hand", "ask", "Waiting for an answer."),
    Word("approved", "Approved", "check", "done", "Enough people accepted."),
    Word("rejected", "Rejected", "cross", "bad", "A person said no."),
    Word("expired", "Expired", "clock", "warn", "Nobody answered in time. This is nobody's denial."),
    Word("withdrawn", "Withdrawn", "skip", "final", "The question lost its reason before an answer."),
    Word("void", "Void", "dash", "final", "What was asked about changed; an answer no longer counts."),
    Word("superseded", "Superseded", "dash", "final", "A newer question took its place."),
)

ATTEMPT: Final = _by_wire(
    Word("", "In flight", "spinner", "active", "The call has not come back."),
    Word("succeeded", "Succeeded", "check", "done", "The other system confirmed it."),
    Word("failed", "Failed", "cross", "bad", "The other system surely did not do it."),
    Word("timed_out", "Timed out", "question", "warn", "No answer in time; the effect is unknown."),
    Word("unknown", "Unknown", "question", "warn", "The answer does not tell whether it took effect."),
)

READBACK: Final = _by_wire(
    Word("applied", "Applied", "check", "done", "The other system shows the effect."),
    Word("not_applied", "Not applied", "dash", "quiet", "The other system does not show the effect."),
    Word("unknown", "Unknown", "question", "warn", "The other system could not tell."),
)

DECISION: Final = _by_wire(
    Word("allowed", "Allowed", "check", "done", "It was done."),
    Word("denied", "Refused", "cross", "bad", "It was not done."),
)

HOLD: Final = _by_wire(
    Word("plan", "This unwind is paused", "pause", "warn"),
    Word("node-type", "The node type is on hold", "pause", "warn"),
    Word("breaker", "The breaker is open", "pause", "warn"),
    Word("tenant", "Everything is on hold", "stop", "bad"),
    Word("manual", "An operator must act", "hand", "ask"),
)

VOCABULARIES: Final[Mapping[str, Mapping[str, Word]]] = {
    "entry": ENTRY_AS_SHOWN,
    "rollup": ROLLUP,
    "run": RUN,
    "interrupt": INTERRUPT,
    "attempt": ATTEMPT,
    "readback": READBACK,
    "decision": DECISION,
    "hold": HOLD,
}

GLOSSARY: Final = (
    ("A plan entry", ENTRY_AS_SHOWN),
    ("An unwind as a whole", ROLLUP),
    ("A run", RUN),
    ("A question put to people", INTERRUPT),
    ("An attempt", ATTEMPT),
)

PHRASES: Final[Mapping[str, str]] = {
    # triggers
    "node-failure": "a step failed",
    "run-cancel": "the run was cancelled",
    "cap-breach": "a hard limit stopped the run",
    "operator-request": "an operator asked for it",
    # reasons
    "retries-exhausted": "no attempt succeeded, and none is left",
    "approval-denied": "a person rejected it",
    "authority-denied": "no authority to do it",
    "dead-lettered": "the plan could not be made",
    "operator-terminated": "an operator ended the unwind",
    "separation-of-duties": "may not decide on their own doing",
    # causes of attention
    "exhausted": "an inverse did not succeed, and the policy wants a person",
    "mint-failed": "the plan could not be made",
    "parent-cancel": "the run was cancelled during the unwind",
    "approval-expired": "nobody answered the approval in time",
    "uncertain": "nobody knows whether the last attempt took effect",
    "crash-limit": "the worker crashed again and again on this call",
    "late-commit": "an effect was committed after the plan was made",
    # ordering
    "reverse-completion": "newest effect first, one at a time",
    "dependency-graph": "what depended on it first, the rest side by side",
    # questions
    "compensation.inverse": "Run an inverse action",
    "compensation.waive": "Leave something not undone",
    "compensation.substitute": "Replace an inverse action",
}

ACTIONS: Final[Mapping[str, str]] = {
    "compensation:retry": "Retry",
    "compensation:skip": "Skip",
    "compensation:substitute": "Substitute",
    "compensation:terminate": "Terminate",
    "compensation:start": "Start unwind",
    "compensation:pause": "Pause unwind",
    "compensation:resume": "Resume unwind",
    "approvals:respond": "Answer an approval",
    "runs:create": "Create a run",
    "runs:cancel": "Cancel a run",
    "facts:write": "Report facts",
    "workflows:write": "Register a workflow",
    "node-types:write": "Register a node type",
    "node-types:hold": "Hold a node type",
    "node-types:release": "Release a node type",
    "tenant:hold": "Hold the whole tenant",
    "tenant:release": "Release the tenant",
    "audit:read": "Read the record",
}


def word(kind: str, wire: str | None) -> Word:
    """The word of a state; one that is new here is shown as the wire spells it."""
    return VOCABULARIES[kind].get(wire or "", Word(wire or "", wire or "none", "dot", "quiet"))


def rollup_word(wire: str | None, late: int) -> Word:
    """The word of a rollup; `completed` is not the whole truth beside ``late`` effects that no plan undoes."""
    plain = word("rollup", wire)
    if not late or wire != RollupStatus.COMPLETED:
        return plain
    return Word(plain.wire, f"Undone, except {late} late", "half", "warn", "What came after the plan is not undone.")


def phrase(wire: str) -> str:
    """What a wire value means in a sentence; the value itself when nothing better is known."""
    return PHRASES.get(wire) or ACTIONS.get(wire) or wire.replace("-", " ").replace("_", " ")
