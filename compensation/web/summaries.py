"""What an action is about, in one line: its amount and the first plain values of its frozen input."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

from django.db.models import Q

from audit.models import Tenant
from compensation.domain.jsonpath import PathNotFoundError, extract
from compensation.domain.node_type import NodeTypeSpec
from compensation.models import NodeTypeVersion

LONGEST: Final = 60
SCALARS_SHOWN: Final = 3

Action = Mapping[str, Any]
Specs = Mapping[tuple[str, int], NodeTypeSpec]


def actions_of(artifact: Mapping[str, Any] | None) -> Sequence[Action]:
    """The frozen actions that a question is about; none for those who may not see inputs."""
    if artifact is None:
        return []
    found = artifact.get("entries") or [artifact.get("entry", artifact)]
    return [action for action in found if action.get("nodeTypeId")]


def specs_of(tenant: Tenant, actions: Iterable[Action]) -> Specs:
    """The frozen node types of these actions, in one query."""
    wanted = {(action["nodeTypeId"], action["nodeTypeVersion"]) for action in actions}
    named = Q(pk__in=[])
    for node_type_id, number in wanted:
        named |= Q(node_type__node_type_id=node_type_id, number=number)
    rows = NodeTypeVersion.objects.filter(named, tenant=tenant).select_related("node_type")
    return {(row.node_type.node_type_id, row.number): NodeTypeSpec.from_document(row.document) for row in rows}


def money(action: Action, specs: Specs) -> str:
    """The amount with its currency, where the node type declares them; else nothing."""
    spec = specs.get((action["nodeTypeId"], action["nodeTypeVersion"]))
    paths = (spec.amount, spec.currency) if spec and spec.amount else ()
    return " ".join(str(value) for value in (_found(path, action["input"]) for path in paths) if value is not None)


def summaries(tenant: Tenant, questions: Sequence[Mapping[str, Any]]) -> dict[str, str]:
    """One line for each question whose input this reader may see, by its id; one query for any number of them."""
    actions = {each["interruptId"]: actions_of(each["artifact"]) for each in questions}
    specs = specs_of(tenant, [action for each in actions.values() for action in each])
    return {id_: _summary(found, specs) for id_, found in actions.items() if found}


def _summary(actions: Sequence[Action], specs: Specs) -> str:
    first, more = actions[0], len(actions) - 1
    amount = money(first, specs)
    plain = [value for value in _plain_values(first["input"]) if value not in amount.split()]
    text = " · ".join([*([amount] if amount else []), *plain[:SCALARS_SHOWN]])
    cut = text if len(text) <= LONGEST else f"{text[: LONGEST - 1]}…"
    return f"{cut} and {more} more" if more else cut


def _plain_values(value: object) -> list[str]:
    """The memo first, then the other texts and numbers as they come."""
    if not isinstance(value, dict):
        return []
    ordered = sorted(value.items(), key=lambda member: member[0] != "memo")
    return [str(each) for _, each in ordered if isinstance(each, str | int | float) and not isinstance(each, bool)]


def _found(path: str | None, value: object) -> object:
    try:
        return extract(path, value) if path else None
    except PathNotFoundError:
        return None
