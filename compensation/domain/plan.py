"""Minting: from recorded facts to the frozen entries of a plan (CMP-111, 112, 202, 203, 302, 303, 306, 310)."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from compensation.domain.canonical import digest
from compensation.domain.identity import effect_id, idempotency_key
from compensation.domain.mapping import CommittedEffect, Recorded, UnresolvedReferenceError, resolve
from compensation.domain.node_type import NodeTypeSpec
from compensation.domain.ordering import Orderable, Ordered, order
from compensation.domain.policy import Bounds, Declaration, PolicySpec, effective_approval, effective_bounds
from compensation.domain.problems import join
from compensation.domain.states import OrderingModel
from compensation.domain.workflow import NodeSpec, WorkflowSpec

FIRST_VERSION = 1

NodeTypes = Mapping[str, tuple[NodeTypeSpec, int]]
"""A tenant's node types by id, each with the version number that is to be frozen."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MintedEntry:
    """One frozen plan entry (CMP-302). An irreversible one has no node type and no input, and runs nothing.

    `predecessors` are effect ids; `plan_version` is the version of the plan at which this entry last changed.
    """

    tenant_id: str
    run_id: str
    node_id: str
    forward_logical_invocation_id: str
    ordinal: int
    compensation_ordinal: int
    effect_id: str
    idempotency_key: str
    node_type_id: str | None
    node_type_version: int | None
    input: object
    bounds: Bounds
    requires_approval: bool
    waive_requires_approval: bool
    quorum: int
    profile_version: str
    position: int = 0
    predecessors: frozenset[str] = frozenset()
    plan_version: int = FIRST_VERSION

    @property
    def key(self) -> str:
        """The entry's unique name within its plan, as `predecessors` uses it."""
        return self.effect_id

    @property
    def irreversible(self) -> bool:
        return self.node_type_id is None

    @property
    def digest(self) -> str:
        return digest(entry_document(self))


@dataclass(frozen=True, slots=True, kw_only=True)
class MintedPlan:
    """The entries by position, and a digest that covers them in order (CMP-306)."""

    entries: Sequence[MintedEntry]
    ordering_model: OrderingModel
    profile_version: str
    digest: str


@dataclass(frozen=True, slots=True)
class MintFailure:
    """The first reference that did not resolve (CMP-112); `pointer` is its place in the workflow document."""

    reference: str
    node_id: str
    pointer: str
    why: str

    def to_wire(self) -> dict[str, str]:
        return {"reference": self.reference, "nodeId": self.node_id, "pointer": self.pointer, "why": self.why}


def entry_document(entry: MintedEntry) -> dict[str, object]:
    """What is digested, shown and signed, byte for byte as RFC 8785 JSON (CMP-306, CMP-602)."""
    return {
        "tenantId": entry.tenant_id,
        "runId": entry.run_id,
        "nodeId": entry.node_id,
        "forwardLogicalInvocationId": entry.forward_logical_invocation_id,
        "completionOrdinal": entry.ordinal,
        "compensationOrdinal": entry.compensation_ordinal,
        "effectId": entry.effect_id,
        "idempotencyKey": entry.idempotency_key,
        "nodeTypeId": entry.node_type_id,
        "nodeTypeVersion": entry.node_type_version,
        "input": entry.input,
        "retry": {"maxAttempts": entry.bounds.max_attempts, "backoffMs": entry.bounds.backoff_ms},
        "timeoutMs": entry.bounds.timeout_ms,
        "requiresApproval": entry.requires_approval,
        "waiveRequiresApproval": entry.waive_requires_approval,
        "quorum": entry.quorum,
        "profileVersion": entry.profile_version,
        "position": entry.position,
        "predecessors": sorted(entry.predecessors),
        "planVersion": entry.plan_version,
    }


def plan_digest(entry_digests: Iterable[str]) -> str:
    """The digest over the entries' digests in order of position (CMP-306)."""
    return digest(list(entry_digests))


def mint(
    *,
    tenant_id: str,
    run_id: str,
    workflow: WorkflowSpec,
    node_types: NodeTypes,
    effects: Iterable[CommittedEffect],
    inputs: Mapping[str, object],
    quorum_of: Callable[[str], int] = lambda node_type_id: 1,
) -> MintedPlan | MintFailure | None:
    """The plan a trigger would make now, from recorded facts only.

    None: no policy (CMP-106), or nothing to unwind even if irreversible effects exist (CMP-202). `run_id` is the
    root run's (CMP-310); `quorum_of` answers the tenant's rule for an inverse node type id.
    """
    policy = workflow.policy
    recorded = list(effects)
    owed = sorted((each for each in recorded if _enters(workflow, each)), key=lambda each: -each.ordinal)
    if policy is None or not any(workflow.owes(each.node_id) for each in owed):
        return None
    freezer = _Freezer(tenant_id, run_id, workflow, policy, node_types, Recorded.of(recorded, inputs), quorum_of)
    try:
        entries = [freezer.entry(effect, rank) for rank, effect in enumerate(owed, start=1)]
    except _NotMintedError as error:
        return error.failure
    return _in_order(entries, workflow, policy)


def substituted(
    entry: MintedEntry, *, node_type: NodeTypeSpec, node_type_version: int, plan_version: int, quorum: int = 1
) -> MintedEntry:
    """The entry with another action for the same input: a new key, approval flags and quorum that only rise
    (CMP-311, CMP-609)."""
    return replace(
        entry,
        node_type_id=node_type.node_type_id,
        node_type_version=node_type_version,
        idempotency_key=idempotency_key(entry.effect_id, plan_version),
        requires_approval=entry.requires_approval or node_type.requires_approval,
        quorum=max(entry.quorum, quorum),
        plan_version=plan_version,
    )


def _enters(workflow: WorkflowSpec, effect: CommittedEffect) -> bool:
    """A commit enters the plan iff its node declares what to do about it (CMP-203)."""
    node = workflow.nodes.get(effect.node_id)
    return node is not None and (node.compensation is not None or node.irreversible)


def _in_order(entries: Sequence[MintedEntry], workflow: WorkflowSpec, policy: PolicySpec) -> MintedPlan:
    orderable = [Orderable(each.key, each.node_id, each.ordinal, each.irreversible) for each in entries]
    by_key = {each.key: each for each in entries}
    placed = [
        _placed(by_key[each.key], each) for each in order(orderable, model=policy.ordering_model, edges=workflow.edges)
    ]
    return MintedPlan(
        entries=placed,
        ordering_model=policy.ordering_model,
        profile_version=policy.profile_version,
        digest=plan_digest(each.digest for each in placed),
    )


def _placed(entry: MintedEntry, place: Ordered) -> MintedEntry:
    return replace(entry, position=place.position, predecessors=place.predecessors)


class _NotMintedError(Exception):
    def __init__(self, failure: MintFailure) -> None:
        super().__init__(failure.why)
        self.failure = failure


@dataclass(frozen=True, slots=True)
class _Freezer:
    """Freezes one entry at a time out of what one mint knows."""

    tenant_id: str
    run_id: str
    workflow: WorkflowSpec
    policy: PolicySpec
    node_types: NodeTypes
    recorded: Recorded
    quorum_of: Callable[[str], int]

    def entry(self, effect: CommittedEffect, rank: int) -> MintedEntry:
        node = self.workflow.nodes[effect.node_id]
        if node.compensation is None:
            return self._irreversible(effect, rank)
        return self._obligation(effect, rank, node, node.compensation)

    def _irreversible(self, effect: CommittedEffect, rank: int) -> MintedEntry:
        """Its place and its outcome, nothing to run (CMP-203)."""
        identity = self._identity(effect, rank)
        return MintedEntry(
            tenant_id=self.tenant_id,
            run_id=self.run_id,
            node_id=effect.node_id,
            forward_logical_invocation_id=effect.logical_invocation_id,
            ordinal=effect.ordinal,
            compensation_ordinal=rank,
            effect_id=identity,
            idempotency_key=idempotency_key(identity, None),
            node_type_id=None,
            node_type_version=None,
            input=None,
            bounds=effective_bounds(None, self.policy, None),
            requires_approval=False,
            waive_requires_approval=False,
            quorum=1,
            profile_version=self.policy.profile_version,
        )

    def _obligation(self, effect: CommittedEffect, rank: int, node: NodeSpec, declaration: Declaration) -> MintedEntry:
        spec, version = self._node_type(node, declaration)
        requires, waive = effective_approval(declaration, self.policy, spec)
        return replace(
            self._irreversible(effect, rank),
            node_type_id=spec.node_type_id,
            node_type_version=version,
            input=self._input(effect, node, declaration),
            bounds=effective_bounds(declaration, self.policy, spec),
            requires_approval=requires,
            waive_requires_approval=waive,
            quorum=self.quorum_of(spec.node_type_id),
        )

    def _identity(self, effect: CommittedEffect, rank: int) -> str:
        return effect_id(self.tenant_id, self.run_id, effect.logical_invocation_id, rank, self.policy.profile_version)

    def _node_type(self, node: NodeSpec, declaration: Declaration) -> tuple[NodeTypeSpec, int]:
        wanted = declaration.node_type_id
        if wanted not in self.node_types:
            pointer = f"{node.pointer}/compensation/nodeTypeId"
            raise _NotMintedError(MintFailure(wanted, node.id, pointer, "the node type is not registered"))
        return self.node_types[wanted]

    def _input(self, effect: CommittedEffect, node: NodeSpec, declaration: Declaration) -> object:
        try:
            return resolve(
                declaration.input_mapping,
                node_ids=self.workflow.nodes,
                own_node_id=effect.node_id,
                own_ordinal=effect.ordinal,
                recorded=self.recorded,
                pointer=join(join(node.pointer, "compensation"), "inputMapping"),
            )
        except UnresolvedReferenceError as error:
            raise _NotMintedError(MintFailure(error.reference, node.id, error.pointer, error.why)) from error
