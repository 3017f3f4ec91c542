"""The ways a runner is started: by a wake-up, by the sweep, or by hand."""

import asyncio

from compensation.runner.claims import something_is_due
from compensation.runner.slots import runner_slot
from compensation.runner.wave import Runner


def run_while_due(*, name: str = "") -> int:
    """Drain due work if a runner slot is free; returns how many results were recorded.

    Looks again after letting the slot go, so that a wake-up that found all slots taken is never lost.
    """
    recorded = 0
    while True:
        with runner_slot() as slot:
            if slot is None:
                return recorded
            recorded += asyncio.run(Runner(name=name).drain())
        if not something_is_due():
            return recorded
