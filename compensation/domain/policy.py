"""What an author declares about compensation: per node, and for the whole workflow (CMP-101 … CMP-103, 302, 303)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

from compensation.domain.node_type_shape import NODE_TYPE_ID, RETRY, TIMEOUT_MS
from compensation.domain.problems import Problem, join
from compensation.domain.shapes import array, boolean, closed, free_object, one_of, text
from compensation.domain.states import (
    DEFAULT_PROFILE_VERSION,
    PROFILE_VERSIONS,
    ApprovalScope,
    Disposition,
    OnParentCancel,
    OrderingModel,
    Trigger,
)

DEFAULT_MAX_ATTEMPTS = 3
DEFAULT_BACKOFF_MS = 500
DEFAULT_TIMEOUT_MS = 30_000


@dataclass(frozen=True, slots=True)
class Bounds:
    """How often, how fast and how long one inverse is tried."""

    max_attempts: int
    backoff_ms: int
    timeout_ms: int


class Bounded(Protocol):
    """Something that may set each bound, or leave it to others (None)."""

    @property
    def max_attempts(self) -> int | None: ...
    @property
    def backoff_ms(self) -> int | None: ...
    @property
    def timeout_ms(self) -> int | None: ...


class DemandsApproval(Protocol):
    """Something with a default of its own about approval: a node type."""

    @property
    def requires_approval(self) -> bool: ...


@dataclass(frozen=True, slots=True)
class Declaration:
    """A node's `compensation` object; None where the author said nothing (CMP-101)."""

    node_type_id: str
    input_mapping: Mapping[str, object] = field(default_factory=dict)
    max_attempts: int | None = None
    backoff_ms: int | None = None
    timeout_ms: int | None = None
    requires_approval: bool | None = None
    waive_requires_approval: bool | None = None

    @classmethod
    def from_document(cls, document: Mapping[str, Any]) -> Declaration:
        retry = document.get("retry", {})
        return cls(
            node_type_id=document["nodeTypeId"],
            input_mapping=document.get("inputMapping", {}),
            max_attempts=retry.get("maxAttempts"),
            backoff_ms=retry.get("backoffMs"),
            timeout_ms=document.get("timeoutMs"),
            requires_approval=document.get("requiresApproval"),
            waive_requires_approval=document.get("waiveRequiresApproval"),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class PolicySpec:
    """A workflow's `settings.compensation` with its defaults (CMP-103)."""

    triggers: frozenset[Trigger]
    profile_version: str = DEFAULT_PROFILE_VERSION
    ordering_model: OrderingModel = OrderingModel.REVERSE_COMPLETION
    max_attempts: int | None = None
    backoff_ms: int | None = None
    timeout_ms: int | None = None
    exhausted_disposition: Disposition = Disposition.RECORD_OUTCOME
    approval_scope: ApprovalScope = ApprovalScope.DECLARED
    on_parent_cancel: OnParentCancel = OnParentCancel.CONTINUE

    @classmethod
    def from_document(cls, document: Mapping[str, Any]) -> PolicySpec:
        retry = document.get("retry", {})
        return cls(
            triggers=frozenset(map(Trigger, document["triggers"])),
            profile_version=document.get("profileVersion", DEFAULT_PROFILE_VERSION),
            ordering_model=OrderingModel(document.get("orderingModel", OrderingModel.REVERSE_COMPLETION)),
            max_attempts=retry.get("maxAttempts"),
            backoff_ms=retry.get("backoffMs"),
            timeout_ms=document.get("timeoutMs"),
            exhausted_disposition=Disposition(document.get("exhaustedDisposition", Disposition.RECORD_OUTCOME)),
            approval_scope=ApprovalScope(document.get("approvalScope", ApprovalScope.DECLARED)),
            on_parent_cancel=OnParentCancel(document.get("onParentCancel", OnParentCancel.CONTINUE)),
        )


check_declaration = closed(
    {"nodeTypeId": NODE_TYPE_ID},
    {
        "inputMapping": free_object,
        "retry": RETRY,
        "timeoutMs": TIMEOUT_MS,
        "requiresApproval": boolean,
        "waiveRequiresApproval": boolean,
    },
)

_PROFILE_VERSION_FORM = text(longest=8, pattern=r"[1-9][0-9]*", says="a version number as a string")
_PROFILE_VERSION_KNOWN = one_of(PROFILE_VERSIONS, what="is a profile version this host does not advertise")


def _profile_version(value: object, pointer: str) -> list[Problem]:
    return _PROFILE_VERSION_FORM(value, pointer) or _PROFILE_VERSION_KNOWN(value, pointer)


_check_shape = closed(
    {"triggers": array(one_of(Trigger, what="is a trigger this host does not fire"), least=1, unique=True)},
    {
        "profileVersion": _profile_version,
        "orderingModel": one_of(OrderingModel, what="is an ordering model this host does not advertise"),
        "retry": RETRY,
        "timeoutMs": TIMEOUT_MS,
        "exhaustedDisposition": one_of(Disposition),
        "approvalScope": one_of(ApprovalScope),
        "onParentCancel": one_of(OnParentCancel),
    },
)

_NEEDS_A_PERSON = {
    "exhaustedDisposition": (Disposition.MANUAL_INTERVENTION, Disposition.RECORD_OUTCOME),
    "onParentCancel": (OnParentCancel.MANUAL, f"{OnParentCancel.CONTINUE}, {OnParentCancel.PAUSE}"),
}


def check_policy(policy: object, pointer: str, *, manual_intervention: bool) -> list[Problem]:
    """Every fault of a `settings.compensation`; values that need a person only where that is advertised (CMP-104)."""
    problems = _check_shape(policy, pointer)
    if manual_intervention or not isinstance(policy, dict):
        return problems
    unadvertised = (name for name, (value, _) in _NEEDS_A_PERSON.items() if policy.get(name) == value)
    return problems + [
        Problem(
            join(pointer, name),
            "needs manual intervention, which is not advertised",
            policy[name],
            _NEEDS_A_PERSON[name][1],
        )
        for name in unadvertised
    ]


def effective_bounds(declaration: Bounded | None, policy: Bounded | None, node_type: Bounded | None) -> Bounds:
    """Each bound by itself: the node's own, else the policy's, else the node type's, else the default (CMP-302)."""
    sources = [source for source in (declaration, policy, node_type) if source is not None]
    return Bounds(
        _first((source.max_attempts for source in sources), DEFAULT_MAX_ATTEMPTS),
        _first((source.backoff_ms for source in sources), DEFAULT_BACKOFF_MS),
        _first((source.timeout_ms for source in sources), DEFAULT_TIMEOUT_MS),
    )


def _first(declared: Iterable[int | None], default: int) -> int:
    return next((value for value in declared if value is not None), default)


def effective_approval(declaration: Declaration, policy: PolicySpec, node_type: DemandsApproval) -> tuple[bool, bool]:
    """`(requiresApproval, waiveRequiresApproval)` as they will be frozen (CMP-303).

    To run: the author, the node type or the policy's scope can each demand it. To waive: the author's explicit
    word, else what the author *declared* for running (not what the node type adds), and always under scope `all`.
    """
    everything = policy.approval_scope == ApprovalScope.ALL
    declared = bool(declaration.requires_approval)
    waive = declaration.waive_requires_approval
    return declared or node_type.requires_approval or everything, (declared if waive is None else waive) or everything
