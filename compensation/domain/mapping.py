"""Mapping values: where an inverse's input comes from (CMP-110, CMP-111, CMP-112)."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from compensation.domain.canonical import canonical
from compensation.domain.problems import Problem, few, join

MAX_REFERENCES = 256
MAX_NODE_ID = 128
FORMS = "${nodes.<nodeId>.output.<port>}, ${inputs.<name>}"

_OPEN, _CLOSE = "${", "}"
_NODES, _OUTPUT, _INPUTS = "nodes.", ".output.", "inputs."


@dataclass(frozen=True, slots=True)
class NodeOutput:
    node_id: str
    port: str


@dataclass(frozen=True, slots=True)
class RunInput:
    name: str


Reference = NodeOutput | RunInput


class BadReferenceError(ValueError):
    """A token that is not one of the two forms, or that could be read in two ways."""

    def __init__(self, token: str, why: str, allowed: object = FORMS) -> None:
        super().__init__(f"{token}: {why}")
        self.token, self.why, self.allowed = token, why, allowed


class UnresolvedReferenceError(LookupError):
    """A reference without a recorded fact behind it; the mint fails (CMP-112)."""

    def __init__(self, reference: str, pointer: str, why: str) -> None:
        super().__init__(f"{reference} at {pointer or '/'}: {why}")
        self.reference, self.pointer, self.why = reference, pointer, why


@dataclass(frozen=True, slots=True)
class CommittedEffect:
    """One committed forward invocation with its recorded output (an object: port name → value)."""

    node_id: str
    logical_invocation_id: str
    ordinal: int
    output: object


@dataclass(frozen=True, slots=True)
class Recorded:
    """The recorded facts of a run that references may read: commits by node in ordinal order, and inputs."""

    commits: Mapping[str, Sequence[CommittedEffect]]
    inputs: Mapping[str, object]
    _ordinals: Mapping[str, Sequence[int]] = field(repr=False)

    @classmethod
    def of(cls, effects: Iterable[CommittedEffect], inputs: Mapping[str, object]) -> Recorded:
        commits: dict[str, list[CommittedEffect]] = {}
        for effect in sorted(effects, key=lambda effect: effect.ordinal):
            commits.setdefault(effect.node_id, []).append(effect)
        ordinals = {node_id: [effect.ordinal for effect in found] for node_id, found in commits.items()}
        return cls(commits, inputs, ordinals)

    def invocation(self, node_id: str, *, seen_from: str, at: int) -> CommittedEffect | None:
        """The invocation of `node_id` that the commit `at` of node `seen_from` refers to (CMP-111): its own one;
        of another node the last commit before it, else the first after it."""
        commits = self.commits.get(node_id, ())
        if not commits:
            return None
        before = bisect_left(self._ordinals[node_id], at)
        if node_id == seen_from:
            own = before < len(commits) and commits[before].ordinal == at
            return commits[before] if own else None
        return commits[before - 1] if before else commits[0]


def split_tokens(value: str) -> Iterator[str]:
    """The literal and token parts of a string in order; a part is a token iff it starts with `${`."""
    start = 0
    while (at := value.find(_OPEN, start)) >= 0:
        if at > start:
            yield value[start:at]
        end = value.find(_CLOSE, at)
        start = len(value) if end < 0 else end + 1
        yield value[at:start]
    if start < len(value):
        yield value[start:]


def is_token(part: str) -> bool:
    return part.startswith(_OPEN)


def read_token(token: str, node_ids: Collection[str]) -> Reference:
    """The reference a `${…}` token spells, given the workflow's node ids; raises `BadReferenceError` (CMP-110).

    Node ids and ports may both hold `.output.`, so a token is read at every place it could be split: exactly one
    split must name a node.
    """
    if not token.endswith(_CLOSE):
        raise BadReferenceError(token, "is a reference that is not closed")
    content = token[len(_OPEN) : -len(_CLOSE)]
    if content.startswith(_INPUTS) and len(content) > len(_INPUTS):
        return RunInput(content[len(_INPUTS) :])
    splits = list(_splits(content.removeprefix(_NODES))) if content.startswith(_NODES) else []
    if not splits:
        raise BadReferenceError(token, "is not a reference of a known form")
    known = [split for split in splits if split.node_id in node_ids]
    if not known:
        raise BadReferenceError(token, "names an unknown node", few(node_ids))
    if len(known) > 1:
        raise BadReferenceError(token, "could be read in two ways", "a token that names exactly one node and port")
    return known[0]


def _splits(path: str) -> Iterator[NodeOutput]:
    at = path.find(_OUTPUT, 1)
    while 0 < at < len(path) - len(_OUTPUT) and at <= MAX_NODE_ID:
        yield NodeOutput(path[:at], path[at + len(_OUTPUT) :])
        at = path.find(_OUTPUT, at + 1)


def check_mapping(
    mapping: object, *, node_ids: Collection[str], variable_names: Collection[str], pointer: str
) -> list[Problem]:
    """Every malformed, unknown or ambiguous reference of an `inputMapping` (CMP-104, CMP-110)."""
    if not isinstance(mapping, dict):
        return [Problem(pointer, "must be an object", mapping, "an object of mapping values")]
    tokens = [(place, part) for place, value in _strings(mapping, pointer) for part in split_tokens(value)]
    tokens = [(place, part) for place, part in tokens if is_token(part)]
    if len(tokens) > MAX_REFERENCES:
        return [Problem(pointer, f"holds {len(tokens)} references", allowed=f"at most {MAX_REFERENCES}")]
    return [problem for place, token in tokens for problem in _token_problems(token, place, node_ids, variable_names)]


def _token_problems(
    token: str, pointer: str, node_ids: Collection[str], variable_names: Collection[str]
) -> Iterator[Problem]:
    try:
        reference = read_token(token, node_ids)
    except BadReferenceError as error:
        yield Problem(pointer, error.why, token, error.allowed)
        return
    if isinstance(reference, RunInput) and reference.name not in variable_names:
        yield Problem(pointer, "names an input the workflow does not declare", token, few(variable_names))


def _strings(value: object, pointer: str) -> Iterator[tuple[str, str]]:
    if isinstance(value, str):
        yield pointer, value
    elif isinstance(value, dict):
        for name, member in value.items():
            yield from _strings(member, join(pointer, name))
    elif isinstance(value, list):
        for index, item in enumerate(value):
            yield from _strings(item, join(pointer, index))


def resolve(
    mapping: object,
    *,
    node_ids: Collection[str],
    own_node_id: str,
    own_ordinal: int,
    recorded: Recorded,
    pointer: str = "",
) -> object:
    """The frozen value of a registered mapping for the commit `own_ordinal` of node `own_node_id` (CMP-111).

    Reads recorded facts only and scans no result again. Raises `UnresolvedReferenceError` (CMP-112).
    """
    return _Resolver(node_ids, own_node_id, own_ordinal, recorded).value(mapping, pointer)


@dataclass(frozen=True, slots=True)
class _Resolver:
    node_ids: Collection[str]
    own_node_id: str
    own_ordinal: int
    recorded: Recorded

    def value(self, value: object, pointer: str) -> object:
        if isinstance(value, str):
            return self._string(value, pointer)
        if isinstance(value, dict):
            return {name: self.value(member, join(pointer, name)) for name, member in value.items()}
        if isinstance(value, list):
            return [self.value(item, join(pointer, index)) for index, item in enumerate(value)]
        return value

    def _string(self, value: str, pointer: str) -> object:
        parts = list(split_tokens(value))
        if len(parts) == 1 and is_token(parts[0]):
            return self._fact(parts[0], pointer)
        return "".join(_as_text(self._fact(part, pointer)) if is_token(part) else part for part in parts)

    def _fact(self, token: str, pointer: str) -> object:
        try:
            reference = read_token(token, self.node_ids)
        except BadReferenceError as error:
            raise UnresolvedReferenceError(token, pointer, error.why) from error
        if isinstance(reference, RunInput):
            return _member(self.recorded.inputs, reference.name, token, pointer, "the run carries no such input")
        effect = self.recorded.invocation(reference.node_id, seen_from=self.own_node_id, at=self.own_ordinal)
        if effect is None:
            raise UnresolvedReferenceError(token, pointer, f"node {reference.node_id!r} never committed")
        return _member(effect.output, reference.port, token, pointer, "the node's output has no such port")


def _member(source: object, name: str, token: str, pointer: str, otherwise: str) -> object:
    """A recorded `null` is a fact like any other; only an absent member is not."""
    if not isinstance(source, Mapping) or name not in source:
        raise UnresolvedReferenceError(token, pointer, otherwise)
    return source[name]


def _as_text(value: object) -> str:
    return value if isinstance(value, str) else canonical(value).decode("utf-8")
