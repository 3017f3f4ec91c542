"""Registration of workflow documents (CMP-101 … CMP-107, CMP-110)."""

from __future__ import annotations

import time
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from compensation.domain.canonical import canonical, parse_ijson
from compensation.domain.node_type import NodeTypeSpec, check_node_type
from compensation.domain.states import OrderingModel, Trigger
from compensation.domain.workflow import WorkflowSpec, check_workflow
from tests.unit.domain.documents import WORKFLOWS
from tests.unit.domain.support import (
    JSON_VALUES,
    Change,
    Document,
    booking,
    changed,
    edge,
    http_node_type,
    node,
    read,
    shared,
    undone_by,
    workflow,
)

KNOWN = {"test.unbook", "test.refund", "test.book"}
EXAMPLES = sorted(path.name for path in shared("examples").glob("*.json"))


def problems_of(document: Any, **more: Any) -> list[tuple[str, str]]:
    return [(problem.pointer, problem.text) for problem in check_workflow(document, known_node_types=KNOWN, **more)]


def inverse_stubs(document: Document) -> dict[str, NodeTypeSpec]:
    """A summary of each inverse an example names, as a tenant's registry would hold it."""
    wanted = {each["compensation"]["nodeTypeId"] for each in document["nodes"] if "compensation" in each}
    documents = [http_node_type(nodeTypeId=node_type_id) for node_type_id in wanted]
    assert not [problem for each in documents for problem in check_node_type(each)]
    return {each["nodeTypeId"]: NodeTypeSpec.from_document(each) for each in documents}


@pytest.mark.parametrize("name", EXAMPLES)
def test_every_example_registers_as_it_is(name: str) -> None:
    document = read("examples", name)
    assert check_workflow(document, known_node_types=inverse_stubs(document)) == []
    assert parse_ijson(canonical(document)) == document


def test_there_are_three_examples() -> None:
    assert len(EXAMPLES) == 3


def at(*path: Any, value: Any) -> Change:
    def change(document: Any) -> None:
        for step in path[:-1]:
            document = document[step]
        document[path[-1]] = value

    return change


def without(*path: Any) -> Change:
    def change(document: Any) -> None:
        for step in path[:-1]:
            document = document[step]
        del document[path[-1]]

    return change


def declared(name: str, value: object) -> Change:
    return at("nodes", 0, "compensation", name, value=value)


def policy(name: str, value: Any) -> Change:
    return at("settings", "compensation", name, value=value)


DECLARATION = "/nodes/0/compensation"
POLICY = "/settings/compensation"
MALFORMED: list[tuple[Change, str, str]] = [
    # CMP-104: the document
    (at("extra", value=1), "/extra", "not a known key"),
    (without("edges"), "/edges", "missing"),
    (without("settings"), "/settings", "missing"),
    (at("id", value="Order"), "/id", "form"),
    (at("id", value="9a"), "/id", "form"),
    (at("id", value="a" * 129), "/id", "length"),
    (at("name", value=""), "/name", "length"),
    (at("version", value=1), "/version", "string"),
    (at("nodes", value=[]), "/nodes", "too few"),
    (at("nodes", value={}), "/nodes", "array"),
    (at("nodes", 0, value="book"), "/nodes/0", "object"),
    (at("nodes", 0, "id", value="a/b"), "/nodes/0/id", "form"),
    (at("nodes", 0, "id", value=".."), "/nodes/0/id", "form"),
    (at("nodes", 1, "id", value="book"), "/nodes/1/id", "duplicate"),
    (at("nodes", 0, "compensate", value={}), "/nodes/0/compensate", "not a known key"),
    (at("nodes", 0, "position", value={"x": 0}), "/nodes/0/position/y", "missing"),
    (at("nodes", 0, "position", "y", value="0"), "/nodes/0/position/y", "number"),
    (at("nodes", 0, "settings", value={"compensation": {}}), "/nodes/0/settings/compensation", "belongs on the node"),
    (at("nodes", 0, "inputs", value={"p": 1}), "/nodes/0/inputs/p", "object"),
    (at("nodes", 0, "inputs", value={"p": {}}), "/nodes/0/inputs/p/type", "missing"),
    (at("nodes", 0, "inputs", value={"p": {"type": "magic"}}), "/nodes/0/inputs/p/type", "not an allowed value"),
    (at("nodes", 0, "inputs", value={"p": {"type": "static"}}), "/nodes/0/inputs/p/value", "missing"),
    (
        at("nodes", 0, "inputs", value={"p": {"type": "variable", "variableName": "no"}}),
        "/nodes/0/inputs/p/variableName",
        "names nothing",
    ),
    (
        at("nodes", 0, "inputs", value={"p": {"type": "connection", "nodeId": "no", "outputKey": "k"}}),
        "/nodes/0/inputs/p/nodeId",
        "names nothing",
    ),
    (at("edges", 0, "sourceNodeId", value="no"), "/edges/0/sourceNodeId", "names no node"),
    (at("edges", 0, "targetNodeId", value="no"), "/edges/0/targetNodeId", "names no node"),
    (at("edges", 0, "to", value="mail"), "/edges/0/to", "not a known key"),
    (at("edges", value=[edge("book", "mail")] * 2), "/edges/1/id", "duplicate"),
    (at("triggers", 0, "type", value=None), "/triggers/0/type", "string"),
    (at("triggers", 0, "when", value=1), "/triggers/0/when", "not a known key"),
    (at("variables", 0, "type", value="money"), "/variables/0/type", "not an allowed value"),
    (at("variables", 0, "name", value="a}"), "/variables/0/name", "form"),
    (at("variables", value=[{"name": "a", "type": "any"}] * 2), "/variables/1/name", "duplicate"),
    (at("metadata", value={"tags": "x"}), "/metadata/tags", "array"),
    (at("settings", "compensaton", value={}), "/settings/compensaton", "not a known key"),
    # CMP-101, CMP-102: the declaration of a node
    (without("nodes", 0, "compensation", "nodeTypeId"), f"{DECLARATION}/nodeTypeId", "missing"),
    (declared("nodeTypeId", ""), f"{DECLARATION}/nodeTypeId", "length"),
    (declared("nodeTypeId", "test.nowhere"), f"{DECLARATION}/nodeTypeId", "not a registered node type"),
    (declared("inputMapping", []), f"{DECLARATION}/inputMapping", "object"),
    (declared("retry", {"maxAttempts": 0}), f"{DECLARATION}/retry/maxAttempts", "whole number"),
    (declared("retry", {"backoffMs": -1}), f"{DECLARATION}/retry/backoffMs", "whole number"),
    (declared("retry", {"max": 1}), f"{DECLARATION}/retry/max", "not a known key"),
    (declared("timeoutMs", 0), f"{DECLARATION}/timeoutMs", "whole number"),
    (declared("timeoutMs", [1]), f"{DECLARATION}/timeoutMs", "whole number"),
    (declared("requiresApproval", "true"), f"{DECLARATION}/requiresApproval", "boolean"),
    (declared("waiveRequiresApproval", 1), f"{DECLARATION}/waiveRequiresApproval", "boolean"),
    (declared("credentialRef", "x"), f"{DECLARATION}/credentialRef", "not a known key"),
    (at("nodes", 0, "compensation", value=None), DECLARATION, "object"),
    (at("nodes", 0, "irreversibleEffect", value=True), "/nodes/0/irreversibleEffect", "beside"),
    (at("nodes", 1, "irreversibleEffect", value=1), "/nodes/1/irreversibleEffect", "boolean"),
    # CMP-103: the policy
    (without("settings", "compensation", "triggers"), f"{POLICY}/triggers", "missing"),
    (policy("triggers", []), f"{POLICY}/triggers", "too few"),
    (policy("triggers", ["node-failure"] * 2), f"{POLICY}/triggers/1", "duplicate"),
    (policy("triggers", ["full-moon"]), f"{POLICY}/triggers/0", "does not fire"),
    (policy("triggers", [["node-failure"]]), f"{POLICY}/triggers/0", "does not fire"),
    (policy("profileVersion", "2"), f"{POLICY}/profileVersion", "not advertise"),
    (policy("profileVersion", "01"), f"{POLICY}/profileVersion", "form"),
    (policy("profileVersion", 1), f"{POLICY}/profileVersion", "string"),
    (policy("orderingModel", "random"), f"{POLICY}/orderingModel", "not advertise"),
    (policy("retry", {"maxAttempts": 1.5}), f"{POLICY}/retry/maxAttempts", "whole number"),
    (policy("timeoutMs", "1"), f"{POLICY}/timeoutMs", "whole number"),
    (policy("exhaustedDisposition", "ignore"), f"{POLICY}/exhaustedDisposition", "not an allowed value"),
    (policy("approvalScope", "none"), f"{POLICY}/approvalScope", "not an allowed value"),
    (policy("onParentCancel", "stop"), f"{POLICY}/onParentCancel", "not an allowed value"),
    (policy("quorum", 2), f"{POLICY}/quorum", "not a known key"),
    # CMP-110: the mapping
    (declared("inputMapping", {"v": "${env.X}"}), f"{DECLARATION}/inputMapping/v", "known form"),
    (declared("inputMapping", {"v": "${inputs.no}"}), f"{DECLARATION}/inputMapping/v", "does not declare"),
    (declared("inputMapping", {"v": "${nodes.no.output.x}"}), f"{DECLARATION}/inputMapping/v", "unknown node"),
]


@pytest.mark.parametrize(("change", "pointer", "word"), MALFORMED)
def test_cmp_104_each_fault_is_named_with_its_pointer(change: Change, pointer: str, word: str) -> None:
    found = problems_of(changed(booking(), change))
    assert any(where == pointer and word in text for where, text in found), found


def test_cmp_104_a_well_formed_document_has_no_problem() -> None:
    assert problems_of(booking()) == []


def test_cmp_104_all_errors_come_in_one_answer() -> None:
    document = booking()
    for change in (at("extra", value=1), declared("timeoutMs", 0), policy("triggers", ["x"]), at("id", value="A")):
        document = changed(document, change)
    document = changed(document, declared("inputMapping", {"v": "${env.X}"}))
    document = changed(document, at("edges", 0, "targetNodeId", value="no"))
    assert {pointer for pointer, _ in problems_of(document)} == {
        "/extra",
        "/id",
        f"{DECLARATION}/timeoutMs",
        f"{POLICY}/triggers/0",
        f"{DECLARATION}/inputMapping/v",
        "/edges/0/targetNodeId",
    }


def test_cmp_104_an_error_names_the_value_and_what_is_allowed() -> None:
    [(_, text)] = problems_of(changed(booking(), policy("orderingModel", "random")))
    assert '"random"' in text
    assert all(model.value in text for model in OrderingModel)


def test_cmp_104_an_unknown_key_is_told_which_are_known() -> None:
    [(_, text)] = problems_of(changed(booking(), at("settings", "compensaton", value={})))
    assert "compensation" in text


def test_cmp_104_a_huge_offending_value_is_cut() -> None:
    found = problems_of(changed(booking(), at("version", value=["x" * 10**6])))
    assert all(len(text) < 500 for _, text in found)


@pytest.mark.parametrize(
    ("name", "value"), [("exhaustedDisposition", "manual-intervention"), ("onParentCancel", "manual")]
)
def test_cmp_104_what_needs_a_person_is_refused_where_that_is_not_advertised(name: str, value: str) -> None:
    document = changed(booking(), policy(name, value))
    assert problems_of(document) == []
    [(pointer, text)] = problems_of(document, manual_intervention=False)
    assert (pointer, "not advertised" in text) == (f"{POLICY}/{name}", True)


def chain_of_types(*pairs: tuple[str, str]) -> Document:
    nodes = [
        node(f"n{index}", typeId=type_id, compensation=undone_by(inverse))
        for index, (type_id, inverse) in enumerate(pairs)
    ]
    return workflow(nodes)


@pytest.mark.parametrize("length", [1, 2, 3, 7])
def test_cmp_104_a_compensation_cycle_of_any_length_is_refused(length: int) -> None:
    names = [f"t{index}" for index in range(length)]
    document = chain_of_types(*((names[index], names[(index + 1) % length]) for index in range(length)))
    [problem] = check_workflow(document, known_node_types=names)
    assert problem.pointer.endswith("/compensation/nodeTypeId")
    assert "cycle" in problem.message
    assert all(name in problem.text for name in names)


def test_cmp_104_each_of_two_cycles_is_named_and_a_chain_is_none() -> None:
    cycles = chain_of_types(("a", "b"), ("b", "a"), ("c", "c"), ("d", "a"))
    assert len(check_workflow(cycles, known_node_types="abcd")) == 2
    assert check_workflow(chain_of_types(("a", "b"), ("b", "c"), ("x", "b")), known_node_types="abc") == []


def looped(model: str) -> Document:
    nodes = [node("a", compensation=undone_by("test.refund")), node("b"), node("c")]
    edges = [edge("a", "b"), edge("b", "c"), edge("c", "a")]
    return workflow(nodes, *edges, policy={"triggers": ["node-failure"], "orderingModel": model})


def test_cmp_104_a_dependency_graph_must_be_a_dag() -> None:
    [(pointer, text)] = problems_of(looped("dependency-graph"))
    assert pointer.startswith("/edges/")
    assert "cycle of edges" in text
    assert problems_of(looped("reverse-completion")) == []


@pytest.mark.parametrize("junk", [None, 1, "x", [], {}, [[]], {"nodes": 1, "edges": {}, "settings": []}])
def test_cmp_104_what_is_no_workflow_at_all_is_refused(junk: Any) -> None:
    assert problems_of(junk)


@given(JSON_VALUES, st.data())
def test_cmp_104_any_value_anywhere_is_checked_without_an_exception(value: Any, data: Any) -> None:
    paths = [("nodes",), ("nodes", 0), ("edges", 0), ("settings",), ("settings", "compensation"), ("variables", 0)]
    path = data.draw(st.sampled_from([*paths, ("nodes", 0, "compensation"), ("nodes", 0, "id"), ("metadata",)]))
    check_workflow(changed(booking(), at(*path, value=value)), known_node_types=KNOWN)
    check_node_type(
        changed(http_node_type(), at(data.draw(st.sampled_from(["request", "kind", "retry"])), value=value))
    )


def test_cmp_106_declarations_without_a_policy_are_accepted_and_inert() -> None:
    document = changed(booking(), without("settings", "compensation"))
    assert problems_of(document) == []
    assert WorkflowSpec.from_document(document).policy is None


@settings(max_examples=40)
@given(WORKFLOWS)
def test_cmp_107_every_accepted_field_survives_storage(document: Document) -> None:
    assert problems_of(document) == []
    assert parse_ijson(canonical(document)) == document
    assert WorkflowSpec.from_document(document).nodes.keys() == {each["id"] for each in document["nodes"]}


def test_the_typed_view_of_a_document() -> None:
    spec = WorkflowSpec.from_document(booking())
    assert list(spec.nodes) == ["book", "mail"]
    assert (spec.owes("book"), spec.owes("mail"), spec.owes("nobody")) == (True, False, False)
    assert spec.nodes["mail"].irreversible
    assert spec.edges == (("book", "mail"),)
    assert spec.variables["amount"].required
    assert spec.policy is not None
    assert spec.policy.triggers == set(Trigger)
    assert spec.policy.ordering_model == OrderingModel.REVERSE_COMPLETION


def test_cmp_104_a_hostile_document_is_refused_quickly_and_in_a_bounded_answer() -> None:
    nodes = [node(f"n{index}") for index in range(3000)]
    nodes[0]["compensation"] = undone_by("test.unbook", {"v": ["${nodes.ghost.output.x}"] * 256})
    document = workflow(nodes, *(edge(f"n{index}", f"ghost{index}") for index in range(5000)))
    document |= {f"unknown{index}": 1 for index in range(5000)}
    started = time.perf_counter()
    found = problems_of(document)
    assert time.perf_counter() - started < 3
    assert len(found) == 1001
    assert "more problems" in found[-1][1]
