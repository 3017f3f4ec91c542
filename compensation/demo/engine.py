"""An outside engine as a customer would write it: it commits effects in other systems and reports the facts."""

import asyncio
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Final, Self

import aiohttp

from compensation.demo.documents import workflows

FAULT_POLL_S: Final = 0.1


class Unwelcome(RuntimeError):
    """The API or the sandbox did not do what was asked; the text says what it answered."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Api:
    """One tenant's API with one of its keys."""

    session: aiohttp.ClientSession
    url: str
    key: str

    async def get(self, path: str, **query: str) -> Any:
        return await self._ask("GET", path, params=query)

    async def post(self, path: str, body: Any) -> Any:
        return await self._ask("POST", path, json=body)

    async def _ask(self, method: str, path: str, **rest: Any) -> Any:
        headers = {"Authorization": f"Bearer {self.key}"}
        async with self.session.request(method, self.url + path, headers=headers, **rest) as response:
            return await _answer(response)


@dataclass(frozen=True, kw_only=True, slots=True)
class Sandbox:
    """The downstream, as the forward side and the one who disturbs it see it."""

    session: aiohttp.ClientSession
    url: str

    async def commit(self, node_type_id: str, body: dict[str, Any], key: str) -> Any:
        """Do ``sandbox.<system>.<verb>`` for real, once per key; answers what that system answered."""
        _, system, verb = node_type_id.split(".")
        headers = {"Idempotency-Key": key}
        async with self.session.post(f"{self.url}/{system}/{verb}", json=body, headers=headers) as response:
            return await _answer(response)

    async def disturb(self, fault: dict[str, Any]) -> int:
        """Inject a fault; its id."""
        async with self.session.post(f"{self.url}/faults", json=fault) as response:
            return max(int(each["id"]) for each in (await _answer(response))["faults"])

    async def until_met(self, fault_id: int) -> None:
        """Wait until the call that fault was for has come."""
        while await self._is_active(fault_id):  # noqa: ASYNC110 - another process meets it, so there is no event
            await asyncio.sleep(FAULT_POLL_S)

    async def calm(self, fault_id: int) -> None:
        """Remove that fault and no other: a visitor's own faults stay."""
        async with self.session.post(f"{self.url}/faults/clear", data={"fault": str(fault_id)}) as response:
            response.raise_for_status()

    async def _is_active(self, fault_id: int) -> bool:
        async with self.session.get(f"{self.url}/faults") as response:
            return any(each["id"] == fault_id for each in (await _answer(response))["faults"])


@dataclass(kw_only=True)
class ReportedRun:
    """One run of ours: its facts are numbered, its effects keyed by its id."""

    api: Api
    sandbox: Sandbox
    run_id: str
    workflow: dict[str, Any]
    inputs: dict[str, Any]
    facts: int = 0

    @classmethod
    async def create(cls, api: Api, sandbox: Sandbox, workflow_id: str, inputs: dict[str, Any], tag: str) -> Self:
        wanted = {"workflowId": workflow_id, "mode": "reported", "inputs": inputs, "tags": ["demo", tag]}
        made = await api.post("/v1/runs", wanted)
        workflow = workflows()[workflow_id]
        return cls(api=api, sandbox=sandbox, run_id=made["runId"], workflow=workflow, inputs=inputs)

    def node_id(self, place: int) -> str:
        """The id of the node at that place in the document; of the last one beyond the end."""
        nodes = self.workflow["nodes"]
        return str(nodes[min(place, len(nodes) - 1)]["id"])

    async def commit(self, node_id: str, *, losing_output: bool = False) -> None:
        """Make the node's effect happen, then report it."""
        node = next(node for node in self.workflow["nodes"] if node["id"] == node_id)
        invocation, intent_at = f"{self.run_id}:{node_id}:1", _now()
        answer = await self.sandbox.commit(node["typeId"], self._inputs_of(node), invocation)
        clocks = {"intentAt": intent_at, "effectAt": _now(), "observedAt": _now()}
        output = {} if losing_output else answer
        await self._report("node.completed", node_id, output=output, clocks=clocks)

    async def fail(self, node_id: str, error_code: str) -> None:
        await self._report("node.failed", node_id, terminal=True, errorCode=error_code)

    async def complete(self) -> None:
        await self.report({"type": "run.completed"})

    async def breach_cap(self) -> None:
        await self.report({"type": "cap.breached", "cap": "spend", "limit": 1000, "observed": 1250})

    async def cancel(self) -> None:
        await self.api.post(f"/v1/runs/{self.run_id}/cancel", {})

    async def report(self, fact: dict[str, Any]) -> None:
        """Report one fact; raises Unwelcome when it is not taken."""
        self.facts += 1
        facts = [{"factId": f"f-{self.facts}", **fact}]
        results = (await self.api.post(f"/v1/runs/{self.run_id}/facts", {"facts": facts}))["results"]
        if results[0]["status"] != "accepted":
            raise Unwelcome(f"the fact {facts[0]} was not taken: {results[0]}")

    async def _report(self, kind: str, node_id: str, **rest: Any) -> None:
        named = {"type": kind, "nodeId": node_id, "logicalInvocationId": f"{self.run_id}:{node_id}:1"}
        await self.report({**named, **rest})

    def _inputs_of(self, node: dict[str, Any]) -> dict[str, Any]:
        return {port: self.inputs[value["variableName"]] for port, value in node["inputs"].items()}


async def _answer(response: aiohttp.ClientResponse) -> Any:
    if response.status >= 400:  # noqa: PLR2004 - any refusal
        raise Unwelcome(f"{response.method} {response.url} answered {response.status}: {await response.text()}")
    return await response.json()


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
