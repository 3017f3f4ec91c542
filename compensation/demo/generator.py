"""`python -m compensation.demo.generator DATA_DIR`: keeps runs coming, over real HTTP, for both tenants of demo.json.

It knows no more than a customer would: the addresses and a key. It stops making what waits for people once enough of
it is open, so that a demo left alone overnight is as usable in the morning.
"""

import asyncio
import random
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import chain, repeat
from pathlib import Path
from typing import Final

import aiohttp

from compensation.demo import handout
from compensation.demo.engine import Api, ReportedRun, Sandbox, Unwelcome
from compensation.demo.scenarios import DISTURBED, OPENING, Needs, Scenario, choose, new_inputs

OPENING_PACE_S: Final = 1.5
CALM_PACE_S: Final = 5.0
BETWEEN_NODES_S: Final = 0.15
MAX_OPEN_APPROVALS: Final = 40
MAX_STUCK: Final = 25
FAULT_TIMEOUT_S: Final = 10.0
AFTER_TROUBLE_S: Final = 3.0


@dataclass(kw_only=True)
class Generator:
    """The engine of one tenant. ``faults`` lets one disturbance at a time into the sandbox both tenants share."""

    service: Api
    approver: Api
    sandbox: Sandbox
    faults: asyncio.Lock
    chance: random.Random = field(default_factory=random.Random)

    async def run_for_ever(self) -> None:
        opening: Iterator[Scenario | None] = iter(OPENING)
        for scenario in chain(opening, repeat(None)):
            try:
                await self._play(scenario or choose(await self._affordable(), self.chance))
            except (aiohttp.ClientError, TimeoutError, Unwelcome) as error:
                print(f"the generator met trouble and goes on: {error}", file=sys.stderr, flush=True)
                await asyncio.sleep(AFTER_TROUBLE_S)
            pace = OPENING_PACE_S if scenario else CALM_PACE_S
            await asyncio.sleep(pace * self.chance.uniform(0.5, 1.5))

    async def _affordable(self) -> frozenset[Needs]:
        """What a new run may need: nobody, and whoever has not too much to do already."""
        waiting = await self.approver.get("/v1/interrupts", limit="200")
        stuck = await self.service.get("/v1/runs", compensationStatus="manual", limit="200")
        allowed: set[Needs] = {""}
        if len(waiting["interrupts"]) < MAX_OPEN_APPROVALS:
            allowed.add("approval")
        if len(stuck["runs"]) < MAX_STUCK:
            allowed.add("person")
        return frozenset(allowed)

    async def _play(self, scenario: Scenario) -> None:
        inputs = new_inputs(scenario.workflow, self.chance)
        run = await ReportedRun.create(self.service, self.sandbox, scenario.workflow, inputs, scenario.name)
        for place in range(scenario.commits):
            node_id = run.node_id(place)
            await run.commit(node_id, losing_output=node_id == scenario.loses)
            await asyncio.sleep(BETWEEN_NODES_S)
        if scenario.fault is None:
            await _end(run, scenario)
        else:
            await self._end_disturbed(run, scenario)

    async def _end_disturbed(self, run: ReportedRun, scenario: Scenario) -> None:
        """End the run while its inverse will meet a fault, and see that the fault does not outlive it."""
        async with self.faults:
            fault_id = await self.sandbox.disturb({"match": DISTURBED, "times": 1, **(scenario.fault or {})})
            try:
                await _end(run, scenario)
                async with asyncio.timeout(FAULT_TIMEOUT_S):
                    await self.sandbox.until_met(fault_id)
            finally:
                await self.sandbox.calm(fault_id)


async def _end(run: ReportedRun, scenario: Scenario) -> None:
    match scenario.ending:
        case "completes":
            await run.complete()
        case "fails":
            await run.fail(run.node_id(scenario.commits), scenario.name)
        case "is-cancelled":
            await run.cancel()
        case "breaches-a-cap":
            await run.breach_cap()
    if scenario.commits_late:
        await run.commit(scenario.commits_late)
    if scenario.cancelled_while_unwinding:
        await run.cancel()


async def generate(given: handout.Handout) -> None:
    """Keep both tenants busy until cancelled."""
    faults = asyncio.Lock()
    timeout = aiohttp.ClientTimeout(total=30)
    async with aiohttp.ClientSession(timeout=timeout) as session, asyncio.TaskGroup() as tenants:
        sandbox = Sandbox(session=session, url=given["sandboxUrl"])
        for tenant in given["tenants"]:
            service, approver = (
                Api(session=session, url=given["url"], key=tenant["apiKeys"][role]) for role in ("service", "approver")
            )
            generator = Generator(service=service, approver=approver, sandbox=sandbox, faults=faults)
            tenants.create_task(generator.run_for_ever())


def main(data_dir: Path) -> int:
    given = handout.read(data_dir)
    if given is None:
        print(f"There is no {handout.NAME} in {data_dir}: `manage.py demo` writes it.", file=sys.stderr)
        return 1
    asyncio.run(generate(given))
    return 0


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1])))
