"""Hand-over: from a trigger that is accepted to the first inverse request at the sandbox, on idle real workers."""

import time
import uuid
from dataclasses import dataclass
from datetime import datetime
from statistics import median, quantiles

from tests.bench.stage import WORKFLOW_ID, Stage, staged, workers
from tests.waiting import eventually


@dataclass(frozen=True, kw_only=True)
class Handovers:
    """Milliseconds, one a sample: from the commit of the trigger, and from before it was even reported."""

    from_accepted: list[float]
    from_reported: list[float]

    def lines(self) -> list[str]:
        return [
            f"hand-over, trigger → first inverse request at the sandbox, {len(self.from_accepted)} samples:",
            _line("since the trigger was committed", self.from_accepted),
            _line("since it was reported", self.from_reported),
        ]


def measure(*, samples: int) -> Handovers:
    """One run at a time, each begun when the one before is undone, so that a worker has to be woken for every one."""
    handovers = Handovers(from_accepted=[], from_reported=[])
    with staged(slug="hand-over", delay_ms=0) as stage, workers():
        for _ in range(samples):
            reported, accepted, received = _sample(stage)
            handovers.from_accepted.append((received - accepted) * 1000)
            handovers.from_reported.append((received - reported) * 1000)
    return handovers


def _sample(stage: Stage) -> tuple[float, float, float]:
    """When the trigger was reported, when it was committed, and when the sandbox got the first request."""
    run_id = stage.mint(WORKFLOW_ID)
    reported = time.time()
    stage.fail(run_id)
    accepted = time.time()
    eventually(lambda: _is_undone(run_id))
    return reported, accepted, _first_request(stage, run_id)


def _first_request(stage: Stage, run_id: uuid.UUID) -> float:
    from compensation.models import Obligation

    first = Obligation.objects.filter(run_id=run_id).order_by("position").values_list("idempotency_key", flat=True)[0]
    effect = stage.sandbox.effect(first)
    if effect is None:
        raise RuntimeError("the sandbox never saw the first inverse")
    return datetime.fromisoformat(effect["at"]).timestamp()


def _is_undone(run_id: uuid.UUID) -> bool:
    from compensation.models import Plan

    return Plan.objects.filter(run_id=run_id, closed_at__isnull=False).exists()


def _line(what: str, values: list[float]) -> str:
    return f"  {what:<34} median {median(values):6.1f} ms   p95 {quantiles(values, n=20)[-1]:6.1f} ms"
