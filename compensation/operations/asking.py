"""Questions about a plan, put before people as frozen artifacts (CMP-601, 602, 610)."""

from collections.abc import Iterable
from typing import Any, Final

from approvals import operations as approvals
from approvals.models import Interrupt, InterruptState
from audit.errors import ApprovalRequired
from compensation.domain.canonical import canonical, digest
from compensation.domain.states import ObligationState
from compensation.models import Obligation, Plan, Run
from compensation.operations import log
from compensation.operations.frozen import entry_document

RUN_IT: Final = "compensation.inverse"
WAIVE_IT: Final = "compensation.waive"
REPLACE_IT: Final = "compensation.substitute"


def approved(entry: Obligation) -> bool:
    """Whether a granted, unvoided approval of this entry stands at its current digest and version (CMP-614)."""
    return Interrupt.objects.filter(
        tenant_id=entry.tenant_id,
        subject_id=entry.pk,
        handler=RUN_IT,
        state=InterruptState.APPROVED,
        digest=entry.digest,
        subject_version=entry.entry_version,
    ).exists()


def ask_to_run(run: Run, plan: Plan, entry: Obligation) -> None:
    """Open the approval interrupt of an entry unless one is open; ``compensation.paused`` without a reason."""
    if open_question(entry, RUN_IT):
        return
    _ask(run, plan, entry, RUN_IT, entry_document(entry), quorum=entry.quorum, excluded=barred(plan, entry))
    log.entry_event(run, plan, entry, "paused")


def ask_ahead(run: Run, plan: Plan, entry: Obligation) -> None:
    """Where the tenant approves ahead, ask about a waiting entry before its turn (CMP-601)."""
    if run.tenant.approve_ahead and entry.requires_approval and not approved(entry):
        ask_to_run(run, plan, entry)


def expired(entry: Obligation) -> bool:
    """Whether the last question to run this entry expired, so that only a retry asks anew (CMP-603, 614)."""
    last = Interrupt.objects.filter(subject_id=entry.pk, handler=RUN_IT).order_by("id").last()
    waits = entry.state in (ObligationState.WAITING, ObligationState.AWAITING_APPROVAL)
    return waits and last is not None and last.state == InterruptState.EXPIRED


def ask_to_waive(
    run: Run, plan: Plan, entries: Iterable[Obligation], *, act: str, justification: str, requested_by: int
) -> Interrupt:
    """Ask another person to let these entries stay not undone: one entry (skip) or all that remain (terminate)."""
    concerned = list(entries)
    artifact = {
        "act": act,
        "planVersion": plan.plan_version,
        "justification": justification,
        "entries": [entry_document(entry) for entry in concerned],
    }
    subject = concerned[0] if act == "skip" else plan
    quorum = max(entry.quorum for entry in concerned)
    return _ask(
        run, plan, subject, WAIVE_IT, artifact, quorum=quorum, requested_by=requested_by, justification=justification
    )


def ask_about_substitution(
    run: Run, plan: Plan, entry: Obligation, *, claim: dict[str, Any], justification: str, requested_by: int
) -> Interrupt:
    """Ask another person to attest that it was done outside (CMP-615), or that nothing was applied so far."""
    artifact = {
        "act": "substitute",
        "planVersion": plan.plan_version,
        "justification": justification,
        "entry": entry_document(entry),
        **claim,
    }
    return _ask(
        run,
        plan,
        entry,
        REPLACE_IT,
        artifact,
        quorum=entry.quorum,
        requested_by=requested_by,
        justification=justification,
    )


def open_question(subject: Obligation | Plan, handler: str) -> Interrupt | None:
    """The open question of this kind about an entry or a plan."""
    return Interrupt.objects.filter(subject_id=subject.pk, handler=handler, state=InterruptState.OPEN).first()


def withdraw(
    run: Run, subjects: Iterable[Obligation | Plan], state: InterruptState, *, handlers: Iterable[str] = ()
) -> None:
    """Close open questions that lost their subject, and say so in the log."""
    for interrupt in approvals.close_open([subject.pk for subject in subjects], state, handlers=handlers):
        log_resolved(run, interrupt)


def log_resolved(run: Run, interrupt: Interrupt) -> None:
    """``interrupt.resolved``, however it ended; the ends stay distinct (CMP-603)."""
    payload = {"interruptId": str(interrupt.pk), "kind": interrupt.handler, "state": interrupt.state}
    log.append(run, "interrupt.resolved", payload, node_id=interrupt.node_key)


def barred(plan: Plan, entry: Obligation) -> list[int]:
    """Who may not approve this entry: who triggered the unwind by hand, retried a denial or substituted (CMP-608)."""
    people = {plan.triggered_by, *entry.barred}
    return sorted(person for person in people if person is not None)


def _ask(
    run: Run,
    plan: Plan,
    subject: Obligation | Plan,
    handler: str,
    artifact: dict[str, Any],
    *,
    quorum: int,
    excluded: Iterable[int] = (),
    requested_by: int | None = None,
    justification: str = "",
) -> Interrupt:
    _refuse_second_question(subject, handler)
    entry = subject if isinstance(subject, Obligation) else None
    interrupt = approvals.open_interrupt(
        tenant=run.tenant,
        artifact=canonical(artifact).decode(),
        digest=digest(artifact),
        handler=handler,
        subject_id=subject.pk,
        subject_version=entry.entry_version if entry else plan.plan_version,
        context_id=run.pk,
        node_key=entry.node_id if entry else "",
        quorum=quorum,
        requested_by_id=requested_by,
        justification=justification,
        excluded=sorted({*excluded, *([requested_by] if requested_by else [])}),
    )
    payload = {"interruptId": str(interrupt.pk), "kind": handler, "digest": interrupt.digest}
    log.append(run, "interrupt.requested", payload, node_id=interrupt.node_key)
    return interrupt


def _refuse_second_question(subject: Obligation | Plan, handler: str) -> None:
    """One question of a kind at a time: a second request for the same approval is told where the first one stands."""
    asked = open_question(subject, handler)
    if asked is not None:
        raise ApprovalRequired(
            "Another person has already been asked to approve this; nothing was changed.",
            details={"interruptId": str(asked.pk)},
        )
