"""Reads of the ledger. Each function takes an open connection and returns plain values."""

from __future__ import annotations

import json
import sqlite3
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

STATS_KEYS = 10_000
_EFFECT = """
SELECT effects.*, coalesce(arrivals.duplicates, 0) AS duplicates, coalesce(arrivals.requests, 1) AS requests
FROM effects LEFT JOIN arrivals ON arrivals.key = effects.key
"""
_ARRIVAL = "SELECT key, requests, effects, duplicates FROM arrivals"


@dataclass(frozen=True)
class Effect:
    """One applied effect. `subject` is `<port>:<id>` of what it made or undid, None for a verb that names nothing."""

    seq: int
    key: str | None
    system: str
    verb: str
    input: dict[str, Any]
    answer: dict[str, Any]
    subject: str | None
    inverse: bool
    correlation: str | None
    at: datetime
    requests: int
    duplicates: int

    def wire(self) -> dict[str, Any]:
        """The effect as `GET /effects` shows it: the first answer and what led to it."""
        at = self.at.isoformat(timespec="milliseconds").replace("+00:00", "Z")
        return self.answer | {
            "key": self.key,
            "input": self.input,
            "at": at,
            "correlation": self.correlation,
            "duplicates": self.duplicates,
        }


@dataclass
class Movement:
    """Something that was made, with all that undid it; `made` is None when it was not made here."""

    subject: str | None
    made: Effect | None = None
    undone_by: list[Effect] = field(default_factory=list)

    @property
    def newest(self) -> Effect:
        return max([*self.undone_by, *([self.made] if self.made else [])], key=lambda effect: effect.seq)

    @property
    def correlation(self) -> str | None:
        return self.made.correlation if self.made else self.newest.correlation


@dataclass(frozen=True)
class Totals:
    """Requests that reached a system, effects applied, and repeats answered with the first answer."""

    requests: int
    effects: int
    duplicates: int


def _effect(row: sqlite3.Row) -> Effect:
    values = dict(row)
    values["input"] = json.loads(values.pop("body"))
    values["answer"] = json.loads(values["answer"])
    values["inverse"] = bool(values["inverse"])
    values["at"] = datetime.fromtimestamp(values["at"] / 1000, UTC)
    return Effect(**values)


def effect_of_key(db: sqlite3.Connection, key: str) -> Effect | None:
    """The effect applied under `key`, if any."""
    row = db.execute(f"{_EFFECT} WHERE effects.key = ?", (key,)).fetchone()
    return _effect(row) if row else None


def newest_effects(
    db: sqlite3.Connection, *, limit: int, before: int | None = None, key: str | None = None, system: str | None = None
) -> list[Effect]:
    """At most `limit` effects, newest first, older than sequence `before`, of that key and that system."""
    wanted = {"effects.seq < ?": before, "effects.key = ?": key, "effects.system = ?": system}
    given = {condition: value for condition, value in wanted.items() if value is not None}
    where = " AND ".join(["TRUE", *given])
    rows = db.execute(f"{_EFFECT} WHERE {where} ORDER BY effects.seq DESC LIMIT ?", (*given.values(), limit))
    return [_effect(row) for row in rows]


def movements(db: sqlite3.Connection, *, effects: list[Effect]) -> list[Movement]:
    """What those effects were about, each once, in the order of its newest effect; older halves are looked up."""
    found = {effect.seq: effect for effect in effects}
    subjects = list({effect.subject for effect in effects if effect.subject})
    marks = ",".join("?" * len(subjects))
    for row in db.execute(f"{_EFFECT} WHERE effects.subject IN ({marks})", subjects):
        found[row["seq"]] = _effect(row)
    grouped: dict[str, Movement] = {}
    for effect in sorted(found.values(), key=lambda effect: effect.seq):
        movement = grouped.setdefault(effect.subject or f"#{effect.seq}", Movement(effect.subject))
        if effect.inverse:
            movement.undone_by.append(effect)
        else:
            movement.made = effect
    return sorted(grouped.values(), key=lambda movement: -movement.newest.seq)


def undone_twice(db: sqlite3.Connection) -> list[str]:
    """Every subject with more than one inverse effect, over the whole ledger. Empty is what everybody wants."""
    rows = db.execute(
        "SELECT subject FROM effects WHERE subject IS NOT NULL AND inverse = 1 "
        "GROUP BY subject HAVING count(*) > 1 ORDER BY subject"
    )
    return [row["subject"] for row in rows]


def undone_count(db: sqlite3.Connection) -> int:
    """How many inverse effects stand in the ledger."""
    return int(db.execute("SELECT count(*) FROM effects WHERE subject IS NOT NULL AND inverse = 1").fetchone()[0])


def totals(db: sqlite3.Connection) -> Totals:
    """The counters over everything that ever arrived."""
    return Totals(*db.execute("SELECT requests, effects, duplicates FROM totals").fetchone())


def stats(db: sqlite3.Connection, *, key: str | None = None) -> dict[str, Any]:
    """`{requests, effects, duplicates, byKey, byKeyComplete}`; byKey holds the newest 10,000 keys, or only `key`."""
    if key is None:
        rows = db.execute(f"{_ARRIVAL} ORDER BY seq DESC LIMIT ?", (STATS_KEYS + 1,)).fetchall()
    else:
        rows = db.execute(f"{_ARRIVAL} WHERE key = ?", (key,)).fetchall()
    by_key = {name: vars(Totals(*counts)) for name, *counts in rows[:STATS_KEYS]}
    return {**vars(totals(db)), "byKey": by_key, "byKeyComplete": len(rows) <= STATS_KEYS}
