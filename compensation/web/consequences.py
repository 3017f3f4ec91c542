"""What stays undone and what does not, in words, before anybody presses a button (CMP-609).

Pure sentences over the projection; the rollup they name is the domain's own fold.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from compensation.domain.rollup import fold
from compensation.domain.states import TERMINAL_STATES, ObligationState
from compensation.web import words

Entry = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Stop:
    """How things would stand if nothing more ran: sentences, and the rollup that would be read."""

    done: str
    standing: Sequence[str]
    rollup: str


def if_stopped(entries: Sequence[Entry], *, started: bool, skipping: str = "") -> Stop:
    """As if every entry that is not settled, or only the one ``skipping`` names, were left as it is."""
    after = [_left(entry, skipping) for entry in entries]
    completed = [entry for entry in entries if entry["state"] == ObligationState.COMPLETED]
    standing = [_standing(entry) for entry in entries if entry["state"] != ObligationState.COMPLETED]
    rollup = fold(
        entries=after,
        requested=True,
        started=started,
        manual_open=False,
        active=any(state not in TERMINAL_STATES for state in after),
        parent_paused=False,
        mint_failed=False,
    )
    return Stop(_counted(completed, len(entries)), standing, rollup)


def blocked_behind(entries: Sequence[Entry], effect_id: str) -> list[str]:
    """The nodes whose inverses cannot start before this entry has an outcome, directly or through others."""
    blocked, found = {effect_id}, []
    for entry in entries:
        if blocked.intersection(entry["blockedBy"]):
            blocked.add(entry["effectId"])
            found.append(entry["nodeId"])
    return found


def _left(entry: Entry, skipping: str) -> str:
    if entry["state"] in TERMINAL_STATES and entry["effectId"] != skipping:
        return str(entry["state"])
    if skipping:
        return ObligationState.SKIPPED if entry["effectId"] == skipping else str(entry["state"])
    return ObligationState.TERMINATED


def _counted(completed: Sequence[Entry], total: int) -> str:
    if not completed:
        return f"None of {total} committed effects is undone."
    names = ", ".join(entry["nodeId"] for entry in completed)
    return f"{len(completed)} of {total} committed effects {'is' if len(completed) == 1 else 'are'} undone: {names}."


def _standing(entry: Entry) -> str:
    now = words.word("entry", entry["shown"]).human.lower()
    why = f" ({entry['because']})" if entry["because"] else ""
    if entry["state"] == ObligationState.RUNNING:
        return f"{entry['nodeId']} may yet be undone: the call in flight ends by itself"
    if entry["maybeApplied"]:
        return f"{entry['nodeId']} may or may not be undone: {now}{why}"
    if entry["state"] in TERMINAL_STATES:
        return f"{entry['nodeId']} stays done: {now}{why}"
    return f"{entry['nodeId']} stays done; its inverse would not run (now: {now})"
