"""The wave: one transaction records what finished and claims what is due, then the calls go out together.

A slow downstream delays its own plan, not the wave; no transaction is open during a call.
"""

import asyncio
import contextlib
import os
import socket
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import lru_cache
from typing import Final

import structlog
from django.conf import settings
from django.db import IntegrityError, transaction
from django.utils import timezone

from compensation.connectors.egress import EgressPolicy, parse_allow
from compensation.connectors.http import CallResult, call, unsent
from compensation.connectors.readback import ReadbackVerdict, read_back
from compensation.connectors.session import ErrorClass, Sessions
from compensation.runner import claims, judge, quarantine, recovery
from compensation.runner.claims import Claimed
from compensation.runner.record import record_successes
from compensation.runner.results import Done, Order
from compensation.runner.secrets import credentials_for
from compensation.runner.specs import spec_of
from config.failpoints import hit

log = structlog.get_logger(__name__)

GATHER_S: Final = 0.003  # lets a batch of results gather when many calls are out
LOOK_AGAIN_S: Final = 0.1


class Runner:
    """Drains due work: claims, calls, records, until nothing is due or about to be."""

    def __init__(self, database: ThreadPoolExecutor, *, name: str = "") -> None:
        """``database`` is the one thread in which everything is asked and recorded."""
        self._database = database
        self.name = name or f"{socket.gethostname()}:{os.getpid()}"
        self._finished: list[Done] = []
        self._in_flight = 0
        self._wake = asyncio.Event()
        self._tasks: set[asyncio.Task[None]] = set()
        self._recorded = 0

    async def drain(self) -> int:
        """Run until nothing is due within the linger time; returns how many results were recorded."""
        async with Sessions(response_cap=settings.RESPONSE_CAP) as sessions:
            await self._loop(sessions)
        return self._recorded

    async def _loop(self, sessions: Sessions) -> None:
        loop = asyncio.get_running_loop()
        while True:
            done, self._finished = self._finished, []
            free = settings.RUNNER_CONCURRENCY - self._in_flight
            wave = await loop.run_in_executor(self._database, step, done, free, self.name)
            self._recorded += len(done)
            for order in wave:
                self._launch(sessions, order)
            if self._finished:
                continue
            if not self._in_flight and not await self._linger(loop):
                return
            await self._until_something_finished()

    def _launch(self, sessions: Sessions, order: Order) -> None:
        self._in_flight += 1
        task = asyncio.get_running_loop().create_task(self._call(sessions, order))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _call(self, sessions: Sessions, order: Order) -> None:
        try:
            result = await reach(sessions, order)
            self._finished.append(Done(order=order, result=result))  # looked up now: each turn takes the list away
        finally:
            self._in_flight -= 1
            self._wake.set()

    async def _linger(self, loop: asyncio.AbstractEventLoop) -> bool:
        """Whether work comes due soon enough to wait for it here; waits for it if so."""
        due_in = await loop.run_in_executor(self._database, claims.next_due_in_ms)
        if due_in is None or due_in > settings.RUNNER_LINGER_MS:
            return False
        await asyncio.sleep(due_in / 1000)
        return True

    async def _until_something_finished(self) -> None:
        """Wait for a result, but look for newly due work meanwhile: a slow call must not hold up other plans."""
        if not self._in_flight:
            return
        self._wake.clear()
        if not self._finished:
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._wake.wait(), LOOK_AGAIN_S)
        if self._in_flight > settings.RUNNER_CONCURRENCY // 2:
            await asyncio.sleep(GATHER_S)


async def reach(sessions: Sessions, order: Order) -> CallResult | ReadbackVerdict:
    """Make one call, or one readback. It raises nothing: whatever happens is a result."""
    claimed, secrets = order.claimed, order.secrets
    session = sessions.for_policy(policy_of(claimed.egress_allow))
    if claimed.kind == "readback":
        return await read_back(
            session,
            order.spec,
            key=claimed.key,
            frozen_input=claimed.input.encode(),
            credentials=secrets,
            timeout_ms=claimed.timeout_ms,
        )
    hit("before-send")
    if order.is_late():
        return unsent(ErrorClass.LEASE_OVER, timezone.now())
    result = await call(
        session,
        order.spec,
        key=claimed.key,
        frozen_input=claimed.input.encode(),
        credentials=secrets,
        timeout_ms=claimed.timeout_ms,
        intent_at=timezone.now(),
    )
    hit("after-send")
    return result


@lru_cache(maxsize=1024)
def policy_of(allow: tuple[str, ...]) -> EgressPolicy:
    """Parsed once for each allow-list: parsed for each call, it took two fifths of the time a call takes here."""
    return parse_allow(allow)


def step(done: Sequence[Done], free: int, worker: str) -> list[Order]:
    """One turn in the database: take over what was lost, record what finished, claim what is due."""
    if done:
        hit("before-record")
    recovery.recover_expired()
    for item in done:
        if not item.succeeded:
            _record_one(item)
    send_by = time.monotonic() + settings.LEASE_MARGIN_MS / 1000
    claimed = _turn([item for item in done if item.succeeded], free, worker)
    if done:
        hit("after-record")
    if claimed:
        hit("after-claim")
    secrets = credentials_for(claimed)
    return [
        Order(
            claimed=each,
            spec=spec_of(each.node_type_version_id),
            secrets=secrets.get(each.tenant_id, {}),
            send_by=send_by,
        )
        for each in claimed
    ]


def _turn(succeeded: Sequence[Done], free: int, worker: str) -> list[Claimed]:
    """Record the wave's successes and claim the next in one commit; if a wall refuses one row, go one by one."""
    try:
        with transaction.atomic():
            if succeeded:
                record_successes(succeeded)
            claimed = claims.claim(limit=free, worker=worker) if free > 0 else []
            if succeeded:
                hit("record-before-commit")
            return claimed
    except IntegrityError:
        log.exception("the database refused something in a wave; going on one by one")
    for item in succeeded:
        _record_one(item)
    return quarantine.claim_one_by_one(limit=free, worker=worker)


def _record_one(item: Done) -> None:
    with transaction.atomic():
        counted = judge.record(item)
        hit("failure-before-commit")
    if not counted:
        log.info("result came after its lease was taken over; not recorded", obligation=str(item.claimed.obligation_id))
