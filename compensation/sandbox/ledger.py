"""The durable store: one SQLite file, written in groups.

An answer goes out only after the commit that holds its effect: WAL with synchronous=FULL, so an answered effect
survives a SIGKILL of this process (and a power cut, as far as the disk keeps its word). Requests that arrive while a
commit is under way share the next one, which is what makes thousands a second possible.
"""

from __future__ import annotations

import asyncio
import json
import sqlite3
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from enum import Enum
from pathlib import Path
from typing import TypeVar

from compensation.sandbox.postings import Posting

_Read = TypeVar("_Read")

_TABLES = """
CREATE TABLE IF NOT EXISTS effects (
    seq INTEGER PRIMARY KEY AUTOINCREMENT, key TEXT UNIQUE, system TEXT NOT NULL, verb TEXT NOT NULL,
    body TEXT NOT NULL, answer TEXT NOT NULL, subject TEXT, inverse INTEGER NOT NULL, correlation TEXT,
    at INTEGER NOT NULL
) STRICT;
CREATE INDEX IF NOT EXISTS effects_subject ON effects (subject, inverse) WHERE subject IS NOT NULL;
CREATE INDEX IF NOT EXISTS effects_system ON effects (system, seq);
CREATE TABLE IF NOT EXISTS arrivals (
    seq INTEGER PRIMARY KEY, key TEXT NOT NULL UNIQUE,
    requests INTEGER NOT NULL, effects INTEGER NOT NULL, duplicates INTEGER NOT NULL
) STRICT;
CREATE TABLE IF NOT EXISTS totals (
    only INTEGER PRIMARY KEY CHECK (only = 1),
    requests INTEGER NOT NULL, effects INTEGER NOT NULL, duplicates INTEGER NOT NULL
) STRICT;
INSERT OR IGNORE INTO totals VALUES (1, 0, 0, 0);
"""
_INSERT_EFFECT = """
INSERT INTO effects (key, system, verb, body, answer, subject, inverse, correlation, at)
VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT (key) DO NOTHING
"""
_COUNT_ARRIVAL = """
INSERT INTO arrivals (key, requests, effects, duplicates) VALUES (?, 1, ?, ?) ON CONFLICT (key)
DO UPDATE SET requests = requests + 1,
    effects = effects + excluded.effects, duplicates = duplicates + excluded.duplicates
"""
_COUNT_TOTALS = "UPDATE totals SET requests = requests + ?, effects = effects + ?, duplicates = duplicates + ?"


class Verdict(Enum):
    """What became of an arrival."""

    APPLIED = "applied"
    DUPLICATE = "duplicate"
    CONFLICT = "conflict"
    REFUSED = "refused"


@dataclass(frozen=True, slots=True)
class Arrival:
    """A request that reached a system. Without a posting it is counted and applies nothing."""

    key: str | None
    posting: Posting | None = None


@dataclass(frozen=True, slots=True)
class Outcome:
    """The verdict, and the JSON text of the (first) answer when an effect stands."""

    verdict: Verdict
    answer: str = ""


class Ledger:
    """Open it inside a running loop, close it before the loop ends."""

    def __init__(self, path: Path) -> None:
        self._db = _connect(path)
        self._db.executescript(_TABLES)
        self._reading = _connect(path)
        self._reading.execute("PRAGMA query_only = ON")
        self._committer = ThreadPoolExecutor(1, "sandbox-commit")
        self._reader = ThreadPoolExecutor(1, "sandbox-read")
        self._waiting: list[tuple[Arrival, asyncio.Future[Outcome]]] = []
        self._arrived = asyncio.Event()
        self._writer = asyncio.create_task(self._write_for_ever())

    async def record(self, arrival: Arrival) -> Outcome:
        """Count the arrival and apply its effect once; returns after the commit. Raises sqlite3.Error."""
        done: asyncio.Future[Outcome] = asyncio.get_running_loop().create_future()
        self._waiting.append((arrival, done))
        self._arrived.set()
        return await done

    async def read(self, query: Callable[[sqlite3.Connection], _Read]) -> _Read:
        """Run a read of committed data off the loop. Raises sqlite3.Error."""
        return await asyncio.get_running_loop().run_in_executor(self._reader, query, self._reading)

    async def close(self) -> None:
        """Stop writing. Requests that were still waiting for their commit get no answer."""
        self._writer.cancel()
        with suppress(asyncio.CancelledError):
            await self._writer
        self._committer.shutdown()
        self._reader.shutdown()
        self._db.close()
        self._reading.close()

    async def _write_for_ever(self) -> None:
        while True:
            await self._arrived.wait()
            self._arrived.clear()
            group, self._waiting = self._waiting, []
            try:
                outcomes = await self._commit([arrival for arrival, _ in group])
            except sqlite3.Error as failure:
                _settle(group, failure)
            else:
                _settle(group, outcomes)

    async def _commit(self, arrivals: list[Arrival]) -> list[Outcome]:
        try:
            self._db.execute("BEGIN IMMEDIATE")
            # Statements run here, on the loop's thread: in another thread each would fight for the interpreter lock.
            outcomes = [self._record(arrival) for arrival in arrivals]
            self._db.execute(_COUNT_TOTALS, _sums(outcomes))
            await asyncio.get_running_loop().run_in_executor(self._committer, self._db.execute, "COMMIT")
        except sqlite3.Error:
            self._db.rollback()
            raise
        return outcomes

    def _record(self, arrival: Arrival) -> Outcome:
        outcome = self._apply(arrival.posting) if arrival.posting else Outcome(Verdict.REFUSED)
        if arrival.key is not None:
            self._db.execute(_COUNT_ARRIVAL, (arrival.key, *_counts(outcome)))
        return outcome

    def _apply(self, posting: Posting) -> Outcome:
        deed = posting.deed
        answer = json.dumps(deed.answer)
        asked = (posting.key, posting.system, posting.verb, posting.body)
        made = (answer, deed.subject, deed.inverse, posting.correlation, time.time_ns() // 1_000_000)
        if self._db.execute(_INSERT_EFFECT, asked + made).rowcount:
            return Outcome(Verdict.APPLIED, answer)
        first = self._db.execute(
            "SELECT key, system, verb, body, answer FROM effects WHERE key = ?", asked[:1]
        ).fetchone()
        if tuple(first[:4]) != asked:
            return Outcome(Verdict.CONFLICT)
        return Outcome(Verdict.DUPLICATE, first[4])


def _connect(path: Path) -> sqlite3.Connection:
    db = sqlite3.connect(path, isolation_level=None, check_same_thread=False, timeout=5.0)
    db.row_factory = sqlite3.Row
    db.execute("PRAGMA journal_mode = WAL")
    db.execute("PRAGMA synchronous = FULL")
    return db


def _counts(outcome: Outcome) -> tuple[int, int]:
    return int(outcome.verdict is Verdict.APPLIED), int(outcome.verdict is Verdict.DUPLICATE)


def _sums(outcomes: list[Outcome]) -> tuple[int, int, int]:
    effects, duplicates = zip(*map(_counts, outcomes), strict=True)
    return len(outcomes), sum(effects), sum(duplicates)


def _settle(group: list[tuple[Arrival, asyncio.Future[Outcome]]], result: list[Outcome] | sqlite3.Error) -> None:
    """Wake those who wait; one that has gone meanwhile is passed over, its effect stands all the same."""
    for index, (_, done) in enumerate(group):
        if done.done():
            continue
        if isinstance(result, sqlite3.Error):
            done.set_exception(result)
        else:
            done.set_result(result[index])
