"""A tenant of its own on the shared sandbox, and short words for what happens to one run of it."""

from __future__ import annotations

import uuid
from collections.abc import Mapping, Sequence
from typing import Any

from django.db.models.functions import Now

from approvals.models import Answer, Interrupt
from audit.models import Decision, Tenant
from audit.principals import Principal
from compensation.models import Attempt, Attention, Obligation, Plan, Run, RunEvent, Work
from compensation.operations import acts, approving, facts, registration, rollup, runs
from compensation.operations.substitution import Replacement
from compensation.runner.run import run_while_due
from tests.support import definitions
from tests.support.sandbox import SandboxProcess
from tests.support.world import House, house

WHY = "the supplier confirmed it by telephone"


def committed(node_id: str, **different: Any) -> dict[str, Any]:
    """The fact that a node's effect was committed, with the output `{"id": "<node>-1"}`."""
    return {
        "factId": f"{node_id}-completed",
        "type": "node.completed",
        "nodeId": node_id,
        "logicalInvocationId": f"{node_id}:1",
        "output": {"id": f"{node_id}-1"},
        **different,
    }


def failed(node_id: str) -> dict[str, Any]:
    """The fact that a node failed for good."""
    return {
        "factId": f"{node_id}-failed",
        "type": "node.failed",
        "nodeId": node_id,
        "logicalInvocationId": f"{node_id}:1",
        "terminal": True,
        "errorCode": "BOOM",
    }


class Stage:
    """What a test acts on. `verb` names are unique to it, so that its faults and counts are its own."""

    def __init__(self, sandbox: SandboxProcess, **tenant: Any) -> None:
        self.sandbox = sandbox
        self.name = f"t{uuid.uuid4().hex[:10]}"
        self.home: House = house(self.name, **tenant)

    def close(self) -> None:
        """Hold the tenant, so that nothing it left due runs during later tests."""
        Tenant.objects.filter(pk=self.home.tenant.pk).update(held_at=Now(), held_reason="its test is over")
        Work.objects.filter(tenant=self.home.tenant).delete()

    # -- definitions

    def path(self, verb: str) -> str:
        """The sandbox path of a verb of this stage."""
        return f"/payments/{self.name}_{verb}"

    def register(self, node_type_id: str, **different: Any) -> str:
        """A node type whose verb is its id; returns the id."""
        url = self.sandbox.url + self.path(node_type_id)
        self.register_document(definitions.node_type(node_type_id, url, **different))
        return node_type_id

    def register_document(self, document: Mapping[str, Any]) -> None:
        registration.register_node_type(actor=self.home.service, document=document)

    def workflow(self, nodes: Sequence[Mapping[str, Any]], **different: Any) -> None:
        """Register the workflow `flow` with these nodes and a last one, `end`, that owes nothing."""
        document = definitions.workflow("flow", [*nodes, definitions.node("end")], **different)
        registration.register_workflow(actor=self.home.service, document=document)

    def chain(self, *node_ids: str, policy: Mapping[str, Any] | None = None, **different: Any) -> None:
        """Register `flow` of nodes that share the inverse `undo`; `different` goes into each compensation."""
        self.workflow([definitions.node(node_id, "undo", **different) for node_id in node_ids], policy=policy)

    # -- a run

    def begin(self, workflow_id: str = "flow", **inputs: Any) -> Run:
        """A run that has begun."""
        return runs.create_run(actor=self.home.service, workflow_id=workflow_id, inputs=inputs)

    def report(self, run: Run, *reported: Mapping[str, Any]) -> list[dict[str, Any]]:
        """Report facts; the results."""
        return facts.report_facts(actor=self.home.service, run_id=run.pk, facts=reported)

    def commit(self, *node_ids: str) -> Run:
        """A run in which these nodes committed."""
        run = self.begin()
        self.report(run, *(committed(node_id) for node_id in node_ids))
        return run

    def fail(self, *node_ids: str) -> Run:
        """A run in which these nodes committed and then `end` failed."""
        run = self.begin()
        results = self.report(run, *(committed(node_id) for node_id in node_ids), failed("end"))
        assert [each["status"] for each in results] == ["accepted"] * len(results), results
        return run

    def work(self) -> int:
        """Run what is due, and what comes due soon, until nothing is; how many results were recorded."""
        return run_while_due(name="test")

    # -- faults

    def fault(self, verb: str, mode: str, **how: Any) -> None:
        """Inject a fault into a verb of this stage."""
        self.sandbox.faults(self.path(verb), mode, **how)

    def effects(self, run: Run) -> dict[str, int]:
        """How many effects the sandbox applied for each entry of a run's plan, by node id."""
        return {entry.node_id: self.applied(entry) for entry in self.entries(run)}

    def applied(self, entry: Obligation) -> int:
        """How many effects stand under an entry's key: 0 or 1, whatever was sent."""
        return len(self.sandbox.effects(key=entry.idempotency_key))

    # -- acts

    def entry(self, run: Run, node_id: str) -> Obligation:
        return Obligation.objects.select_related("node_type_version__node_type").get(run=run, node_id=node_id)

    def seen(self, run: Run, node_id: str = "") -> acts.Seen:
        """What an operator sees now."""
        state = self.entry(run, node_id).state if node_id else ""
        return acts.Seen(plan_version=self.plan(run).plan_version, state=state)

    def retry(self, run: Run, node_id: str, *, actor: Principal | None = None) -> acts.ActResult:
        entry = self.entry(run, node_id)
        return acts.retry(
            actor=actor or self.home.operator, run_id=run.pk, seen=self.seen(run, node_id), effect_id=entry.effect_id
        )

    def skip(self, run: Run, node_id: str, *, actor: Principal | None = None) -> acts.ActResult:
        entry = self.entry(run, node_id)
        return acts.skip(
            actor=actor or self.home.lead,
            run_id=run.pk,
            seen=self.seen(run, node_id),
            effect_id=entry.effect_id,
            justification=WHY,
        )

    def terminate(self, run: Run) -> acts.ActResult:
        return acts.terminate(actor=self.home.lead, run_id=run.pk, seen=self.seen(run), justification=WHY)

    def substitute(self, run: Run, node_id: str, node_type_id: str, **replacement: Any) -> acts.ActResult:
        entry = self.entry(run, node_id)
        return acts.substitute(
            actor=self.home.lead,
            run_id=run.pk,
            seen=self.seen(run, node_id),
            effect_id=entry.effect_id,
            justification=WHY,
            replacement=Replacement(node_type_id=node_type_id, **replacement),
        )

    def question(self, run: Run) -> Interrupt:
        """The one open question of a run."""
        return Interrupt.objects.get(context_id=run.pk, state="open")

    def answer(
        self, interrupt: Interrupt, answer: Answer = Answer.ACCEPT, *, actor: Principal | None = None
    ) -> Interrupt:
        """Answer a question as it stands now."""
        version = approving.current_plan_version(interrupt)
        reply = approving.Reply(answer=answer, digest=interrupt.digest, plan_version=version)
        who = actor or self.home.approver
        return approving.resolve_interrupt(actor=who, interrupt_id=interrupt.pk, reply=reply)

    def approve(self, run: Run, *, actor: Principal | None = None) -> Interrupt:
        return self.answer(self.question(run), actor=actor)

    def reject(self, run: Run, *, actor: Principal | None = None) -> Interrupt:
        return self.answer(self.question(run), Answer.REJECT, actor=actor)

    # -- what is there now

    def plan(self, run: Run) -> Plan:
        return Plan.objects.get(run=run)

    def entries(self, run: Run) -> list[Obligation]:
        return list(Obligation.objects.filter(run=run).order_by("position"))

    def states(self, run: Run) -> dict[str, str]:
        """State by node id, in order of position."""
        return {entry.node_id: entry.state for entry in self.entries(run)}

    def rollup(self, run: Run) -> str:
        """The stored rollup, which must be what a fresh fold gives (CMP §5)."""
        run.refresh_from_db()
        derived = rollup.derive(Plan.objects.filter(run=run).first())
        assert run.compensation_status == derived, f"stored {run.compensation_status}, derived {derived}"
        return run.compensation_status

    def events(self, run: Run, prefix: str = "compensation.") -> list[str]:
        """The types of a run's events in order, without the prefix that chose them."""
        found = RunEvent.objects.filter(run=run, type__startswith=prefix).order_by("sequence")
        return [type_.removeprefix(prefix) for type_ in found.values_list("type", flat=True)]

    def payloads(self, run: Run, type_: str) -> list[dict[str, Any]]:
        return list(RunEvent.objects.filter(run=run, type=type_).order_by("sequence").values_list("payload", flat=True))

    def attempts(self, run: Run, node_id: str) -> list[Attempt]:
        return list(Attempt.objects.filter(obligation__run=run, obligation__node_id=node_id).order_by("number"))

    def attention(self, run: Run) -> set[tuple[str, str]]:
        """(kind, cause) of what calls for a person now."""
        return set(Attention.objects.filter(run=run, resolved_at=None).values_list("kind", "cause"))

    def decisions(self, **which: Any) -> list[Decision]:
        return list(Decision.objects.filter(tenant=self.home.tenant, **which).order_by("seq"))
