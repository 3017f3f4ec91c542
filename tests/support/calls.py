"""Calls that a test holds in its hand: claimed by a worker, and given back with what came of them."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from django.conf import settings
from django.utils import timezone

from compensation.connectors.http import CallResult
from compensation.connectors.session import Sessions
from compensation.runner.results import Done, Order
from compensation.runner.wave import reach, step


def take(*, limit: int = 10, worker: str = "w") -> list[Order]:
    """Claim what is due; the attempts are durable and nothing has left yet."""
    return step([], limit, worker)


def give_back(*orders: Order, result: CallResult | None = None, worker: str = "w") -> None:
    """Record what came of calls, a success unless said otherwise."""
    step([Done(order=order, result=result or answered(201)) for order in orders], 0, worker)


def answered(status: int) -> CallResult:
    """A call that was answered with this status and a receipt."""
    success = status in (200, 201)
    return CallResult(
        status=status,
        error_class=None if success else f"http-{status}",
        sent=True,
        intent_at=timezone.now(),
        observed_ms=1.0,
        admitted_ms=0.5,
        readable=True,
        body={"receiptId": "rcpt_1"},
        receipt="rcpt_1" if success else None,
    )


def cut() -> CallResult:
    """A call whose connection was lost after the request had left."""
    return CallResult(status=None, error_class="connection-lost", sent=True, intent_at=timezone.now(), observed_ms=1.0)


def send(*orders: Order) -> list[Done]:
    """Make claimed calls for real, and hold what they brought back in the hand."""
    return asyncio.run(_send(orders))


async def _send(orders: Sequence[Order]) -> list[Done]:
    async with Sessions(response_cap=settings.RESPONSE_CAP) as sessions:
        return [Done(order=order, result=await reach(sessions, order)) for order in orders]


def hand_in(*done: Done, worker: str = "w") -> None:
    """Record what calls brought back."""
    step(done, 0, worker)
