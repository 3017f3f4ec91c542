"""Workflow documents that use every key a registration accepts (CMP-107)."""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st

from tests.unit.domain.support import EVERY_TRIGGER, JSON_VALUES, TEXT, Document

NODE_IDS = ["a", "b.c", "d-1", "é"]
INVERSES = ["test.unbook", "test.refund"]
WORDS = st.text("abc XYZ-_.é", min_size=1, max_size=10)
FREE = st.dictionaries(
    WORDS.filter(lambda name: name not in {"tags", "compensation", "irreversibleEffect"}), JSON_VALUES
)
POSITIVE = st.integers(1, 10**6)
RETRY = st.fixed_dictionaries({}, optional={"maxAttempts": POSITIVE, "backoffMs": st.integers(0, 10**6)})
MAPPED = st.sampled_from(["${inputs.amount}", "plain", "x ${nodes.a.output.id} y", "${nodes.b.c.output.id}", 7, None])

INPUTS = st.one_of(
    st.fixed_dictionaries({"type": st.just("static"), "value": JSON_VALUES}),
    st.fixed_dictionaries(
        {"type": st.just("connection"), "nodeId": st.just("a"), "outputKey": WORDS},
        optional={"optional": st.booleans()},
    ),
    st.fixed_dictionaries(
        {"type": st.just("variable"), "variableName": st.just("amount")}, optional={"optional": st.booleans()}
    ),
    st.fixed_dictionaries({"type": st.just("expression"), "expression": TEXT}),
)
DECLARATIONS = st.fixed_dictionaries(
    {"nodeTypeId": st.sampled_from(INVERSES)},
    optional={
        "inputMapping": st.dictionaries(WORDS, MAPPED | st.lists(MAPPED, max_size=2), max_size=3),
        "retry": RETRY,
        "timeoutMs": POSITIVE,
        "requiresApproval": st.booleans(),
        "waiveRequiresApproval": st.booleans(),
    },
)
UNDOING = DECLARATIONS.map(lambda made: {"compensation": made}) | st.booleans().map(
    lambda on: {"irreversibleEffect": on}
)


def _node(node_id: str) -> st.SearchStrategy[Document]:
    plain = st.fixed_dictionaries(
        {
            "id": st.just(node_id),
            "typeId": st.just(f"forward.{node_id}"),
            "name": WORDS,
            "position": st.fixed_dictionaries({"x": st.integers(-999, 999), "y": st.floats(-999, 999)}),
            "config": FREE,
            "inputs": st.dictionaries(WORDS, INPUTS, max_size=2),
        },
        optional={
            "typeVersion": WORDS,
            "description": TEXT,
            "notes": TEXT,
            "outputs": JSON_VALUES,
            "disabled": st.booleans(),
            "settings": FREE,
            "metadata": FREE,
        },
    )
    return st.builds(lambda made, undoing: {**made, **undoing}, plain, st.just({}) | UNDOING)


def _edge(index: int) -> st.SearchStrategy[Document]:
    return st.fixed_dictionaries(
        {
            "id": st.just(f"e{index}"),
            "sourceNodeId": st.just(NODE_IDS[index]),
            "targetNodeId": st.sampled_from(NODE_IDS[index + 1 :]),
        },
        optional={
            "sourceHandle": WORDS,
            "targetHandle": WORDS,
            "triggerRule": WORDS,
            "condition": TEXT | FREE,
            "label": TEXT,
            "metadata": FREE,
        },
    )


POLICIES = st.fixed_dictionaries(
    {"triggers": st.lists(st.sampled_from(EVERY_TRIGGER), min_size=1, unique=True)},
    optional={
        "profileVersion": st.just("1"),
        "orderingModel": st.sampled_from(["reverse-completion", "dependency-graph"]),
        "retry": RETRY,
        "timeoutMs": POSITIVE,
        "exhaustedDisposition": st.sampled_from(["record-outcome", "manual-intervention"]),
        "approvalScope": st.sampled_from(["declared", "all"]),
        "onParentCancel": st.sampled_from(["continue", "pause", "manual"]),
    },
)
SETTINGS = st.fixed_dictionaries(
    {},
    optional={
        "compensation": POLICIES,
        "timeoutMs": POSITIVE,
        "maxConcurrency": POSITIVE,
        "maxIterations": POSITIVE,
        "maxCost": st.floats(0, 1000),
        "retry": FREE,
        "errorHandling": JSON_VALUES,
    },
)
AMOUNT: dict[str, Any] = {"name": "amount", "type": "number", "required": True, "sensitive": True, "default": 1.5}
VARIABLES = st.fixed_dictionaries(
    {"name": st.just("note"), "type": st.sampled_from(["string", "integer", "boolean", "object", "array", "any"])},
    optional={"description": TEXT, "required": st.booleans(), "sensitive": st.booleans(), "defaultValue": JSON_VALUES},
)
RUN_TRIGGERS = st.fixed_dictionaries(
    {"id": st.just("t"), "type": WORDS},
    optional={"name": WORDS, "description": TEXT, "enabled": st.booleans(), "config": FREE},
)

WORKFLOWS: st.SearchStrategy[Document] = st.fixed_dictionaries(
    {
        "id": st.from_regex(r"[a-z][a-z0-9_-]{0,20}", fullmatch=True),
        "name": WORDS,
        "version": WORDS,
        "nodes": st.tuples(*map(_node, NODE_IDS)).map(list),
        "edges": st.tuples(*(_edge(index) for index in range(len(NODE_IDS) - 1))).map(list),
        "triggers": st.lists(RUN_TRIGGERS, max_size=1),
        "variables": VARIABLES.map(lambda made: [AMOUNT, made]),
        "metadata": FREE | st.lists(WORDS, max_size=3).map(lambda tags: {"tags": tags}),
        "settings": SETTINGS,
    },
    optional={"description": TEXT, "configurableSchema": FREE, "outputs": JSON_VALUES},
)
"""Registrable documents over the inverse node types `INVERSES`, each optional key present or not."""
