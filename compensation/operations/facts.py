"""What an outside engine reports, and what follows from it (wire.md, Facts; CMP-201, 205)."""

import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from django.db import transaction
from django.db.models.functions import Now

from audit import authority
from audit.errors import Forbidden, ValidationFailed
from audit.principals import Principal
from compensation.domain.canonical import digest
from compensation.domain.facts import check_fact
from compensation.domain.problems import Problem, to_wire
from compensation.domain.states import RunStatus, Trigger
from compensation.domain.workflow import WorkflowSpec
from compensation.models import Effect, Fact, Plan, Run
from compensation.models.runs import ENDED
from compensation.operations import attention, log, minting, waking
from compensation.operations.acting import lock_plan, lock_run, scopes_of

MAX_FACTS: Final = 500
REFUSED: Final = "rejected"


@dataclass(kw_only=True)
class Report:
    """A batch under way on its locked run."""

    actor: Principal
    run: Run
    plan: Plan | None
    workflow: WorkflowSpec
    known: dict[str, Fact] = field(default_factory=dict)


class FactRefused(Exception):
    """One fact cannot be taken; the rest of the batch still counts."""

    def __init__(self, code: str, message: str, problems: Sequence[Problem] = ()) -> None:
        super().__init__(message)
        self.wire: dict[str, Any] = {"error": code, "message": message}
        if problems:
            self.wire["details"] = {"errors": to_wire(problems)}


def report_facts(*, actor: Principal, run_id: uuid.UUID, facts: Sequence[Any]) -> list[dict[str, Any]]:
    """Take a batch in order and answer each fact: accepted, duplicate or rejected with its reason, never half-silent.

    At most 500 facts. All that is accepted, and the plan it may trigger, is one transaction.
    """
    if not 1 <= len(facts) <= MAX_FACTS:
        problem = {"pointer": "/facts", "message": f"expected 1 to {MAX_FACTS} facts (got {len(facts)})"}
        raise ValidationFailed("The batch was not taken; no fact was recorded.", [problem])
    with transaction.atomic():
        run = lock_run(actor.tenant.pk, run_id)
        plan = lock_plan(run)
        allowed = authority.permits(actor, "report_facts", *scopes_of(run, plan))
        results = _take_all(actor, run, plan, facts) if allowed else []
        if not allowed:
            _record_denial(actor, run)
    if not allowed:
        raise Forbidden("You do not hold 'report_facts' here. No fact was recorded; the refusal is on record.")
    waking.wake_after_commit()
    return results


def _record_denial(actor: Principal, run: Run) -> None:
    resource = authority.Resource(type="run", id=f"tenant/{actor.tenant.slug}/run/{run.pk}")
    authority.record(
        principal=actor,
        action="facts:write",
        resource=resource,
        allowed=False,
        reason=authority.DENIED,
        run_id=run.pk,
    )


def _take_all(actor: Principal, run: Run, plan: Plan | None, facts: Sequence[Any]) -> list[dict[str, Any]]:
    names = [fact["factId"] for fact in facts if isinstance(fact, Mapping) and isinstance(fact.get("factId"), str)]
    known = {fact.fact_id: fact for fact in Fact.objects.filter(run=run, fact_id__in=names)}
    workflow = WorkflowSpec.from_document(run.workflow_version.document)
    report = Report(actor=actor, run=run, plan=plan, workflow=workflow, known=known)
    return [_take(report, fact) for fact in facts]


def _take(report: Report, fact: Any) -> dict[str, Any]:
    fact_id = fact.get("factId") if isinstance(fact, Mapping) else None
    try:
        return {"factId": fact_id, **_accept(report, fact)}
    except FactRefused as refused:
        return {"factId": fact_id, "status": REFUSED, "error": refused.wire}


def _accept(report: Report, fact: Any) -> dict[str, Any]:
    problems = check_fact(fact, node_ids=report.workflow.nodes.keys())
    if problems:
        raise FactRefused("validation_error", "the fact is malformed and was not recorded", problems)
    seen = report.known.get(fact["factId"])
    if seen is not None:
        return _repeat(seen, fact)
    result = {"status": "accepted", **HANDLERS[fact["type"]](report, fact)}
    report.known[fact["factId"]] = Fact.objects.create(
        tenant_id=report.run.tenant_id,
        run=report.run,
        fact_id=fact["factId"],
        digest=digest(fact),
        result=result,
    )
    return result


def _repeat(seen: Fact, fact: Mapping[str, Any]) -> dict[str, Any]:
    if seen.digest != digest(fact):
        message = "this factId was already taken with another body; the first one stands"
        raise FactRefused("idempotency_key_mismatch", message)
    return {**seen.result, "status": "duplicate"}


def _node_completed(report: Report, fact: Mapping[str, Any]) -> dict[str, Any]:
    """A commit: it gets its place in the order of commits, however late it arrives (CMP-205).

    After the mint every commit is loose, whatever its node declares; after an end without a plan, one that is owed.
    """
    run = report.run
    _refuse_second_commit(run, fact)
    late = run.status in ENDED or report.plan is not None
    effect = Effect.objects.create(
        tenant_id=run.tenant_id,
        run=run,
        node_id=fact["nodeId"],
        logical_invocation_id=fact["logicalInvocationId"],
        ordinal=_ordinal(run, fact),
        output=fact.get("output") or {},
        clocks=fact.get("clocks") or {},
        late=late,
    )
    payload = {**_node_payload(fact), "completionOrdinal": effect.ordinal, **({"late": True} if late else {})}
    event = log.append(run, fact["type"], payload, node_id=fact["nodeId"])
    if report.plan is not None or (late and report.workflow.owes(fact["nodeId"])):
        attention.uncompensated(run, effect, report.plan)
    result: dict[str, Any] = {"sequence": event.sequence, "completionOrdinal": effect.ordinal}
    return {**result, "late": True} if late else result


def _refuse_second_commit(run: Run, fact: Mapping[str, Any]) -> None:
    if Effect.objects.filter(run=run, logical_invocation_id=fact["logicalInvocationId"]).exists():
        problem = Problem("/logicalInvocationId", "this invocation has already been reported as completed")
        raise FactRefused("validation_error", "an invocation commits once; the first report stands", [problem])


def _ordinal(run: Run, fact: Mapping[str, Any]) -> int:
    """The reporter's own order when it sends one (all of a run's facts or none), else the order of arrival."""
    given = fact.get("completionOrdinal")
    if run.caller_ordinals is not None and run.caller_ordinals != (given is not None):
        problem = Problem("/completionOrdinal", "all of a run's commits carry it or none does")
        raise FactRefused("validation_error", "the order of commits would be ambiguous", [problem])
    if given is not None and Effect.objects.filter(run=run, ordinal=given).exists():
        problem = Problem("/completionOrdinal", "another commit of this run already has it", given)
        raise FactRefused("validation_error", "a completion ordinal is unique in its run", [problem])
    run.caller_ordinals = given is not None
    run.last_ordinal = max(run.last_ordinal, given) if given is not None else run.last_ordinal + 1
    run.save(update_fields=["caller_ordinals", "last_ordinal"])
    return int(given) if given is not None else run.last_ordinal


def _node_started(report: Report, fact: Mapping[str, Any]) -> dict[str, Any]:
    _refuse_after_end(report.run)
    return _logged(report, fact, _node_payload(fact))


def _node_failed(report: Report, fact: Mapping[str, Any]) -> dict[str, Any]:
    """A failure; a terminal one ends the run and fires `node-failure` (CMP-201)."""
    _refuse_after_end(report.run)
    terminal = bool(fact.get("terminal"))
    payload = {**_node_payload(fact), "terminal": terminal}
    result = _logged(report, fact, payload)
    if terminal:
        error = {"nodeId": fact["nodeId"], "errorCode": fact.get("errorCode", "")}
        _fail(report, error, Trigger.NODE_FAILURE)
    return result


def _run_completed(report: Report, fact: Mapping[str, Any]) -> dict[str, Any]:
    _refuse_after_end(report.run)
    _end(report.run, RunStatus.COMPLETED)
    return _logged(report, fact, {})


def _cap_breached(report: Report, fact: Mapping[str, Any]) -> dict[str, Any]:
    """A hard limit stopped the run: it fails and `cap-breach` fires (CMP-201)."""
    _refuse_after_end(report.run)
    payload = {name: fact[name] for name in ("cap", "limit", "observed") if name in fact}
    result = _logged(report, fact, payload)
    _fail(report, {"errorCode": "cap_breached", **payload}, Trigger.CAP_BREACH)
    return result


HANDLERS: Final = {
    "node.started": _node_started,
    "node.completed": _node_completed,
    "node.failed": _node_failed,
    "run.completed": _run_completed,
    "cap.breached": _cap_breached,
}


def _refuse_after_end(run: Run) -> None:
    if run.status in ENDED:
        raise FactRefused("run_terminal", f"the run has already ended as '{run.status}'; only commits are still taken")


def _logged(report: Report, fact: Mapping[str, Any], payload: dict[str, Any]) -> dict[str, Any]:
    event = log.append(report.run, fact["type"], payload, node_id=fact.get("nodeId", ""))
    return {"sequence": event.sequence}


def _node_payload(fact: Mapping[str, Any]) -> dict[str, Any]:
    """Ids and codes only: outputs are data of the run, kept on the effect and never in the log (CMP-304)."""
    return {name: fact[name] for name in ("nodeId", "logicalInvocationId", "errorCode") if name in fact}


def _fail(report: Report, error: dict[str, Any], trigger: Trigger) -> None:
    run = report.run
    run.error = error
    run.save(update_fields=["error"])
    _end(run, RunStatus.FAILED)
    log.append(run, "run.failed", error)
    report.plan = minting.trigger(run=run, trigger=trigger)


def _end(run: Run, status: RunStatus) -> None:
    run.status = status
    Run.objects.filter(pk=run.pk).update(status=status, ended_at=Now())
    run.refresh_from_db(fields=["status", "ended_at"])
