"""What starts an unwind, and what does not (CMP-201 … 205)."""

import pytest

from tests.support.definitions import node
from tests.support.stage import Stage, committed, failed


def test_cmp_201_a_terminal_node_failure_starts_the_unwind(stage: Stage) -> None:
    stage.register("undo")
    stage.chain("a", "b")
    run = stage.fail("a", "b")
    assert stage.rollup(run) == "pending"
    stage.work()
    assert stage.states(run) == {"b": "completed", "a": "completed"}
    assert stage.rollup(run) == "completed"
    assert stage.events(run) == ["requested", "started", "completed"]
    assert stage.effects(run) == {"a": 1, "b": 1}
