"""What every benchmark stands on: a migrated database, a sandbox, one tenant with a service, and real workers."""

import os
import signal
import subprocess
import sys
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import django
from django.core.management import call_command

from tests.support.sandbox import SandboxProcess
from tests.waiting import eventually

START_S = 60.0
STEPS = 5
WORKFLOW_ID = "five-steps"


def set_up() -> None:
    """Django, and an empty migrated database."""
    from config.services import ensure_database

    django.setup()
    ensure_database()
    call_command("migrate", verbosity=0)


@dataclass(kw_only=True)
class Stage:
    """One tenant whose node types call one sandbox."""

    sandbox: SandboxProcess
    actor: Any
    lead: Any

    def mint(self, workflow_id: str) -> uuid.UUID:
        """A run with `STEPS` committed nodes; its id. `fail` gives it its plan."""
        from compensation.operations import facts, runs

        run = runs.create_run(actor=self.actor, workflow_id=workflow_id, inputs={})
        facts.report_facts(actor=self.actor, run_id=run.pk, facts=list(_commits(str(run.pk))))
        return run.pk

    def fail(self, run_id: uuid.UUID) -> None:
        """Report the terminal failure: the trigger."""
        from compensation.operations import facts

        facts.report_facts(actor=self.actor, run_id=run_id, facts=[FAILURE])


@contextmanager
def staged(*, slug: str, delay_ms: int) -> Iterator[Stage]:
    """A tenant of its own on a sandbox of its own that waits ``delay_ms`` before every answer."""
    from audit import provisioning
    from audit.principals import Principal
    from compensation.operations import registration

    with SandboxProcess(delay_ms=delay_ms) as sandbox:
        tenant = provisioning.create_tenant(slug=slug, name=slug)
        tenant.egress_allow = [sandbox.url.removeprefix("http://")]
        tenant.save(update_fields=["egress_allow"])
        people = {
            role: Principal(
                tenant=tenant,
                user=provisioning.create_person(tenant=tenant, username=f"{slug}-{role}", password=None, roles=[role]),
            )
            for role in ("service", "lead")
        }
        for document in sandbox.node_types():
            registration.register_node_type(actor=people["service"], document=document)
        registration.register_workflow(actor=people["service"], document=WORKFLOW)
        yield Stage(sandbox=sandbox, actor=people["service"], lead=people["lead"])


@contextmanager
def workers(*, processes: int = 2) -> Iterator[None]:
    """`manage.py worker`, from the moment each of its processes has run a sweep."""
    from compensation.models import WorkerHeartbeat

    started = WorkerHeartbeat.objects.count()
    command = [sys.executable, "manage.py", "worker", "--processes", str(processes)]
    process = subprocess.Popen(command, env=os.environ)
    try:
        eventually(lambda: WorkerHeartbeat.objects.count() >= started + processes, timeout=START_S)
        yield
    finally:
        process.send_signal(signal.SIGTERM)
        process.wait()


def _commits(run_id: str) -> Iterator[dict[str, Any]]:
    for step in range(1, STEPS + 1):
        yield {
            "factId": f"f-{step}",
            "type": "node.completed",
            "nodeId": f"step-{step}",
            "logicalInvocationId": f"{run_id}:{step}",
            "output": {"reservationId": f"{run_id}-{step}"},
        }


def _node(number: int) -> dict[str, Any]:
    node: dict[str, Any] = {
        "id": f"step-{number}",
        "typeId": "sandbox.inventory.reserve",
        "name": f"Step {number}",
        "position": {"x": 200 * number, "y": 0},
        "config": {},
        "inputs": {},
    }
    if number <= STEPS:
        mapping = {"reservationId": f"${{nodes.step-{number}.output.reservationId}}"}
        node["compensation"] = {"nodeTypeId": "sandbox.inventory.release", "inputMapping": mapping}
    return node


WORKFLOW = {
    "id": WORKFLOW_ID,
    "name": "Five steps",
    "version": "1.0",
    "nodes": [_node(number) for number in range(1, STEPS + 2)],
    "edges": [
        {"id": f"e{number}", "sourceNodeId": f"step-{number}", "targetNodeId": f"step-{number + 1}"}
        for number in range(1, STEPS + 1)
    ],
    "triggers": [{"id": "manual", "type": "manual", "enabled": True}],
    "variables": [],
    "metadata": {},
    "settings": {"compensation": {"triggers": ["node-failure"]}},
}

FAILURE = {
    "factId": "f-last",
    "type": "node.failed",
    "nodeId": f"step-{STEPS + 1}",
    "logicalInvocationId": "last",
    "terminal": True,
    "errorCode": "bench",
}
