"""Opening a question, answering it, closing it. The caller holds the lock of whatever the question is about."""

import uuid
from collections.abc import Callable, Iterable
from datetime import timedelta
from typing import Any

from django.db.models.functions import Now

from approvals.models import Answer, Interrupt, InterruptState, Vote
from audit.errors import InterruptAlreadyResolved, InterruptExpired, VersionConflict
from audit.models import Tenant, User
from audit.principals import Principal
from audit.times import wire_time


def open_interrupt(*, tenant: Tenant, artifact: str, digest: str, **about: Any) -> Interrupt:
    """Put a frozen artifact before people. It expires only where the tenant set a time (CMP-603)."""
    after = tenant.approval_expires_after_s
    expires_at = Now() + timedelta(seconds=after) if after else None
    interrupt = Interrupt.objects.create(
        tenant=tenant, artifact=artifact, digest=digest, expires_at=expires_at, **about
    )
    interrupt.refresh_from_db(fields=["opened_at", "expires_at"])
    return interrupt


def lock_open(interrupt: Interrupt) -> Interrupt:
    """The question under its row lock, still open and in time; otherwise an error that says how it ended."""
    locked = Interrupt.objects.select_for_update(of=("self",)).get(pk=interrupt.pk)
    overdue = Interrupt.objects.filter(pk=interrupt.pk, state=InterruptState.OPEN, expires_at__lte=Now()).exists()
    if locked.state == InterruptState.EXPIRED or overdue:
        raise InterruptExpired("This question has expired; nothing was decided. An operator can ask it again.")
    if locked.state != InterruptState.OPEN:
        raise InterruptAlreadyResolved(
            f"This question was already {locked.state}; nothing was decided now.", details=ending(locked)
        )
    return locked


def ending(interrupt: Interrupt) -> dict[str, Any]:
    """How a question ended: its state, when, and whose answers it got."""
    votes = interrupt.votes.order_by("at").values_list("principal", "answer")
    return {
        "state": interrupt.state,
        "resolvedAt": wire_time(interrupt.resolved_at),
        "answers": [{"principal": principal, "action": answer} for principal, answer in votes],
    }


def refuse_drift(interrupt: Interrupt, *, digest: str, plan_version: int, current_version: int) -> None:
    """409 with what changed when the artifact or the plan is no longer the one that was displayed (CMP-602)."""
    drift: dict[str, Any] = {}
    if digest != interrupt.digest:
        drift["digest"] = {"yours": digest, "current": interrupt.digest}
    if plan_version != current_version:
        drift["planVersion"] = {"yours": plan_version, "current": current_version}
    if drift:
        raise VersionConflict(
            "What you saw is not what is there now; nothing was decided. Read it again.", details={"changed": drift}
        )


def cast(
    *,
    interrupt: Interrupt,
    actor: Principal,
    answer: Answer,
    plan_version: int,
    feedback: str,
    still_holds: Callable[[User], bool],
) -> InterruptState:
    """Record one person's answer and close the question if that settles it (CMP-608).

    One rejection rejects; approval needs ``quorum`` distinct people, each holding the authority at this moment.
    """
    if actor.user is None:
        raise ValueError("only a person answers")
    if interrupt.votes.filter(user=actor.user).exists():
        raise InterruptAlreadyResolved("You have already answered this question.", details=ending(interrupt))
    Vote.objects.create(
        tenant_id=interrupt.tenant_id,
        interrupt=interrupt,
        user=actor.user,
        principal=actor.label,
        answer=answer,
        digest=interrupt.digest,
        plan_version=plan_version,
        feedback=feedback,
    )
    if answer == Answer.REJECT:
        return close(interrupt, InterruptState.REJECTED)
    accepted = [vote.user for vote in interrupt.votes.filter(answer=Answer.ACCEPT).select_related("user")]
    if sum(still_holds(user) for user in accepted) >= interrupt.quorum:
        return close(interrupt, InterruptState.APPROVED)
    return InterruptState.OPEN


def close(interrupt: Interrupt, state: InterruptState) -> InterruptState:
    """End a question; the database lets it end once."""
    Interrupt.objects.filter(pk=interrupt.pk).update(state=state, resolved_at=Now())
    interrupt.refresh_from_db(fields=["state", "resolved_at"])
    return InterruptState(interrupt.state)


def close_open(
    subject_ids: Iterable[uuid.UUID], state: InterruptState, *, handlers: Iterable[str] = ()
) -> list[Interrupt]:
    """End every open question about these subjects (of these handlers, or of all) and return them."""
    found = Interrupt.objects.select_for_update(of=("self",)).filter(
        subject_id__in=list(subject_ids), state=InterruptState.OPEN
    )
    if handlers:
        found = found.filter(handler__in=list(handlers))
    closed = list(found)
    for interrupt in closed:
        close(interrupt, state)
    return closed


def exclude(interrupt: Interrupt, user_ids: Iterable[int]) -> None:
    """Bar people from answering an open question because of what they did about its subject (CMP-608)."""
    barred = sorted({*interrupt.excluded, *user_ids})
    if barred != interrupt.excluded:
        interrupt.excluded = barred
        interrupt.save(update_fields=["excluded"])


def expired_now() -> list[Interrupt]:
    """Open questions whose time has passed by the database's clock, oldest first, at most 200."""
    return list(
        Interrupt.objects.filter(state=InterruptState.OPEN, expires_at__lte=Now())
        .select_related("tenant")
        .order_by("expires_at")[:200]
    )
