from collections.abc import Callable

import pytest

from audit.principals import Principal
from tests.integration.web.visitor import Visitor
from tests.support.stage import Stage
from tests.support.staging import *  # noqa: F403

Visit = Callable[[Principal], Visitor]


@pytest.fixture
def visit(stage: Stage) -> Visit:
    """Somebody of the stage's tenant, signed in."""
    return lambda principal: Visitor(stage.home.tenant.slug, principal)


@pytest.fixture
def unwinding(stage: Stage) -> Stage:
    """A stage with the workflow `flow` of two nodes, `a` and `b`, undone by `undo`."""
    stage.register("undo")
    stage.chain("a", "b")
    return stage


@pytest.fixture
def asking(stage: Stage) -> Stage:
    """The same, where a person must approve every inverse and every waive."""
    stage.register("undo")
    stage.chain("a", "b", requiresApproval=True)
    return stage
