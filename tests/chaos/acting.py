"""One act of one person as a process of its own, which may die in the midst of it.

`python -m tests.chaos.acting ACT TENANT PERSON RUN [JSON]`; prints what the act answered.
"""

from __future__ import annotations

import json
import os
import sys
import uuid
from collections.abc import Callable
from typing import Any, Final

import django

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "config.settings.test")
django.setup()

from approvals.models import Answer, Interrupt  # noqa: E402
from audit.models import Tenant, User  # noqa: E402
from audit.principals import Principal  # noqa: E402
from compensation.models import Obligation, Plan  # noqa: E402
from compensation.operations import acts, approving, facts, runs  # noqa: E402
from compensation.operations.substitution import Replacement  # noqa: E402

WHY: Final = "the supplier confirmed it by telephone"


def main() -> None:
    act, tenant, person, run_id, *more = sys.argv[1:]
    actor = Principal(tenant=Tenant.objects.get(slug=tenant), user=User.objects.get(username=f"{tenant}-{person}"))
    print(ACTS[act](actor, uuid.UUID(run_id), json.loads(more[0]) if more else {}))


def report(actor: Principal, run_id: uuid.UUID, how: dict[str, Any]) -> object:
    return facts.report_facts(actor=actor, run_id=run_id, facts=how["facts"])


def cancel(actor: Principal, run_id: uuid.UUID, _: dict[str, Any]) -> object:
    return runs.cancel_run(actor=actor, run_id=run_id)


def start(actor: Principal, run_id: uuid.UUID, _: dict[str, Any]) -> object:
    return acts.start(actor=actor, run_id=run_id)


def approve(actor: Principal, run_id: uuid.UUID, how: dict[str, Any]) -> object:
    question = Interrupt.objects.get(context_id=run_id, node_key=how["nodeId"], state="open")
    version = approving.current_plan_version(question)
    reply = approving.Reply(answer=Answer(how["answer"]), digest=question.digest, plan_version=version)
    return approving.resolve_interrupt(actor=actor, interrupt_id=question.pk, reply=reply)


def retry(actor: Principal, run_id: uuid.UUID, how: dict[str, Any]) -> object:
    return acts.retry(actor=actor, run_id=run_id, **_seen(run_id, how))


def skip(actor: Principal, run_id: uuid.UUID, how: dict[str, Any]) -> object:
    return acts.skip(actor=actor, run_id=run_id, justification=WHY, **_seen(run_id, how))


def substitute(actor: Principal, run_id: uuid.UUID, how: dict[str, Any]) -> object:
    replacement = Replacement(node_type_id=how["nodeTypeId"])
    return acts.substitute(actor=actor, run_id=run_id, justification=WHY, replacement=replacement, **_seen(run_id, how))


def terminate(actor: Principal, run_id: uuid.UUID, _: dict[str, Any]) -> object:
    seen = acts.Seen(plan_version=Plan.objects.get(run_id=run_id).plan_version)
    return acts.terminate(actor=actor, run_id=run_id, seen=seen, justification=WHY)


def _seen(run_id: uuid.UUID, how: dict[str, Any]) -> dict[str, Any]:
    entry = Obligation.objects.select_related("plan").get(run_id=run_id, node_id=how["nodeId"])
    seen = acts.Seen(plan_version=entry.plan.plan_version, state=entry.state)
    return {"seen": seen, "effect_id": entry.effect_id}


ACTS: Final[dict[str, Callable[[Principal, uuid.UUID, dict[str, Any]], object]]] = {
    "report": report,
    "cancel": cancel,
    "start": start,
    "approve": approve,
    "retry": retry,
    "skip": skip,
    "substitute": substitute,
    "terminate": terminate,
}


if __name__ == "__main__":
    main()
