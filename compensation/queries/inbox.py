"""What waits for this person, most urgent first: questions, holds, dead letters, effects that nothing undoes."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import cached_property
from typing import Any, Final

from django.db.models import Exists, F, OuterRef, Q, QuerySet

from approvals.models import Interrupt
from audit.principals import Principal
from compensation.models import Attention, NodeType, Obligation, Plan, Run
from compensation.queries import interrupts
from compensation.queries.access import visible_node_types, visible_runs

SHOWN: Final = 200
COUNTED: Final = 10_001
"""Counting stops here: an exact count of a big set is too dear for a page, which then says "10,000+"."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Held:
    """Something that stands still until a person acts. ``scope``: manual, plan, node-type or breaker."""

    scope: str
    reason: str
    since: datetime
    run: Run | None = None
    entry: Obligation | None = None
    node_type: NodeType | None = None


@dataclass(frozen=True, kw_only=True)
class Inbox:
    """At most 200 of each; ``count`` counts all of them, up to 10,001 of each."""

    approvals: Sequence[Interrupt]
    held: Sequence[Held]
    dead_letters: Sequence[Attention]
    uncompensated: Sequence[Attention]
    counted: Iterable[QuerySet[Any]]

    @cached_property
    def count(self) -> int:
        return min(COUNTED, sum(rows.order_by()[:COUNTED].count() for rows in self.counted))


def inbox(principal: Principal) -> Inbox:
    """The inbox of a person in a tenant, by the same restricted sets as every list (CMP-605)."""
    runs = visible_runs(principal)
    questions = interrupts.mine(principal)
    calls, plans, node_types = _calls(runs, "manual"), _held_plans(principal, runs), _held_node_types(principal)
    dead, loose = _only_dead(_calls(runs, "dead_letter")), _calls(runs, "uncompensated")
    return Inbox(
        approvals=list(questions.order_by(F("expires_at").asc(nulls_last=True), "opened_at")[:SHOWN]),
        held=_held(calls, plans, node_types),
        dead_letters=list(dead.order_by("opened_at")[:SHOWN]),
        uncompensated=list(loose.order_by("opened_at")[:SHOWN]),
        counted=(questions, calls, plans, node_types, dead, loose),
    )


def waiting_count(principal: Principal) -> int:
    """How much waits for this person, up to 10,001."""
    return inbox(principal).count


def _calls(runs: QuerySet[Run], kind: str) -> QuerySet[Attention]:
    """Open calls for a person about runs that may be seen."""
    return Attention.objects.filter(run__in=runs.values("pk"), kind=kind, resolved_at__isnull=True).select_related(
        "run__workflow_version__workflow", "obligation__node_type_version__node_type", "effect", "plan"
    )


def _only_dead(calls: QuerySet[Attention]) -> QuerySet[Attention]:
    """The dead letters that do not stand still already: one thing to do is listed and counted once."""
    still = Attention.objects.filter(plan=OuterRef("plan"), kind="manual", resolved_at__isnull=True)
    unmade = Q(obligation__isnull=True) & Exists(still.filter(obligation__isnull=True, cause="mint-failed"))
    return calls.exclude(Exists(still.filter(obligation=OuterRef("obligation"))) | unmade)


def _held_plans(principal: Principal, runs: QuerySet[Run]) -> QuerySet[Plan]:
    paused = Q(held_at__isnull=False) | Q(parent_paused=True)
    plans = Plan.objects.filter(paused, tenant=principal.tenant, closed_at__isnull=True, run__in=runs.values("pk"))
    return plans.select_related("run__workflow_version__workflow")


def _held_node_types(principal: Principal) -> QuerySet[NodeType]:
    return visible_node_types(principal).filter(Q(held_at__isnull=False) | Q(breaker_until__isnull=False))


def _held(calls: QuerySet[Attention], plans: QuerySet[Plan], node_types: QuerySet[NodeType]) -> list[Held]:
    """The longest held first."""
    by_call = [
        Held(scope="manual", reason=each.cause, since=each.opened_at, run=each.run, entry=each.obligation)
        for each in calls.order_by("opened_at")[:SHOWN]
    ]
    by_plan = [
        Held(
            scope="plan",
            reason=each.held_reason or ("parent-cancel" if each.parent_paused else ""),
            since=each.held_at or each.requested_at,
            run=each.run,
        )
        for each in plans.order_by("requested_at")[:SHOWN]
    ]
    by_node_type = [_held_node_type(each) for each in node_types.order_by("node_type_id")[:SHOWN]]
    return sorted([*by_call, *by_plan, *by_node_type], key=lambda held: held.since)[:SHOWN]


def _held_node_type(node_type: NodeType) -> Held:
    if node_type.held_at is not None:
        return Held(scope="node-type", reason=node_type.held_reason, since=node_type.held_at, node_type=node_type)
    if node_type.breaker_until is None:
        raise ValueError("not held")
    reason = f"{node_type.failures} failures in a row"
    return Held(scope="breaker", reason=reason, since=node_type.breaker_until, node_type=node_type)
