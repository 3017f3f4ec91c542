"""The ways a runner is started: by a wake-up, by the sweep, or by hand."""

import asyncio
from typing import Final

from compensation.runner.claims import something_is_due
from compensation.runner.slots import runner_slot
from compensation.runner.wave import Runner

ENOUGH: Final = 2  # drains in a row that got nothing


def run_while_due(*, name: str = "") -> int:
    """Drain due work if a runner slot is free; returns how many results were recorded.

    Looks again after letting the slot go, so that a wake-up that found all slots taken is never lost. What is due but
    stays out of reach, since somebody holds its run, is left to the sweep.
    """
    recorded, in_vain = 0, 0
    while in_vain < ENOUGH:
        with runner_slot() as database:
            if database is None:
                return recorded
            drained = asyncio.run(Runner(database, name=name).drain())
        if not something_is_due():
            return recorded + drained
        recorded, in_vain = recorded + drained, 0 if drained else in_vain + 1
    return recorded
