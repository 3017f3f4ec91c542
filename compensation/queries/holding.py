"""What keeps an entry from starting, besides its order (CMP-409): who holds what, and why."""

from collections.abc import Sequence
from dataclasses import dataclass

from audit.models import Tenant
from compensation.domain.states import TERMINAL_STATES
from compensation.models import Attention, NodeType, Obligation, Plan

Hold = dict[str, str]


@dataclass(frozen=True, kw_only=True, slots=True)
class Holds:
    """The holds on a plan as a whole, and those on single node types."""

    everywhere: Sequence[Hold]
    of_node_type: dict[object, list[Hold]]

    def on(self, entry: Obligation) -> list[Hold]:
        """``[{"scope": tenant | plan | manual | node-type | breaker, "reason"}]``; nothing for a settled entry."""
        if entry.state in TERMINAL_STATES:
            return []
        version = entry.node_type_version
        return [*self.everywhere, *(self.of_node_type.get(version.node_type_id, []) if version else [])]


def holds_of(tenant: Tenant, plan: Plan, entries: Sequence[Obligation]) -> Holds:
    """Every hold on a plan now."""
    node_types = {entry.node_type_version.node_type_id for entry in entries if entry.node_type_version}
    rows = NodeType.objects.filter(pk__in=node_types)
    return Holds(
        everywhere=[*_tenant_hold(tenant), *_plan_holds(plan), *_manual_holds(plan)],
        of_node_type={row.pk: node_type_holds(row) for row in rows},
    )


def node_type_holds(node_type: NodeType) -> list[Hold]:
    """The hold and the breaker of a node type. A breaker holds until its probe succeeds, not only until it is due."""
    holds = []
    if node_type.held_at is not None:
        holds.append({"scope": "node-type", "reason": node_type.held_reason})
    if node_type.breaker_until is not None:
        holds.append({"scope": "breaker", "reason": f"{node_type.failures} failures in a row"})
    return holds


def _tenant_hold(tenant: Tenant) -> list[Hold]:
    return [{"scope": "tenant", "reason": tenant.held_reason}] if tenant.held_at else []


def _plan_holds(plan: Plan) -> list[Hold]:
    holds = [{"scope": "plan", "reason": plan.held_reason}] if plan.held_at else []
    return [*holds, *([{"scope": "plan", "reason": "parent-cancel"}] if plan.parent_paused else [])]


def _manual_holds(plan: Plan) -> list[Hold]:
    causes = Attention.objects.filter(plan=plan, kind="manual", resolved_at__isnull=True).order_by("id")
    return [{"scope": "manual", "reason": cause} for cause in causes.values_list("cause", flat=True)]
