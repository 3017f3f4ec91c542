"""The API over HTTP, against the real database and a real sandbox."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pytest

from compensation.api.ratelimit import WINDOWS
from compensation.models import Run
from tests.support.callers import Callers, Reply, callers
from tests.support.stage import Stage
from tests.support.staging import *  # noqa: F403
from tests.support.world import house


@dataclass
class Hall:
    """A stage whose people call over HTTP, and a neighbour who must see nothing of it."""

    stage: Stage
    us: Callers
    them: Callers

    def unwinding(self, **compensation: Any) -> Run:
        """A failed run with the plan `b`, `a`; nothing of it has run yet."""
        self.stage.register("undo")
        self.stage.chain("a", "b", **compensation)
        return self.stage.fail("a", "b")

    def begin(self, **headers: str) -> Reply:
        """A run begun over HTTP."""
        self.stage.register("undo")
        self.stage.chain("a", "b")
        return self.us.service.post("/v1/runs", {"workflowId": "flow"}, **headers)

    def entry(self, run: Run, node_id: str) -> dict[str, Any]:
        """A plan entry as the API shows it."""
        shown = self.us.operator.get(f"/v1/runs/{run.pk}/compensation").json
        return next(entry for entry in shown["entries"] if entry["nodeId"] == node_id)

    def act(self, run: Run, node_id: str, **more: Any) -> dict[str, Any]:
        """The body of an act on an entry as it stands."""
        entry = self.entry(run, node_id)
        return {
            "effectId": entry["effectId"],
            "expectedPlanVersion": self.stage.plan(run).plan_version,
            "expectedState": entry["state"],
            **more,
        }


@pytest.fixture
def hall(stage: Stage) -> Hall:
    WINDOWS.clear()
    return Hall(stage=stage, us=callers(stage.home), them=callers(house(f"{stage.name}-next")))
