"""Unwinds and actions a second: runs minted while their tenant is held, then released to waiting workers."""

import cProfile
import time
from dataclasses import dataclass

from django.db.models import Count, Q

from tests.bench.stage import STEPS, WORKFLOW_ID, Stage, staged, workers
from tests.waiting import eventually

DRAIN_S = 900.0


@dataclass(frozen=True, kw_only=True)
class Drained:
    """How long ``runs`` runs of `STEPS` inverses took, first call to last closed plan, and what was wrong."""

    delay_ms: int
    runs: int
    seconds: float
    mint_seconds: float
    effects: int
    duplicates: int

    def lines(self) -> list[str]:
        per_second = self.runs / self.seconds
        return [
            f"sandbox at {self.delay_ms} ms: {self.runs} runs x {STEPS} inverses in {self.seconds:.2f} s",
            f"  {per_second:,.0f} unwinds/s, {per_second * STEPS:,.0f} actions/s",
            f"  sandbox: {self.effects} effects, {self.duplicates} duplicates",
            f"  (recording the facts and minting the plans, one process: {self.runs / self.mint_seconds:,.0f} runs/s)",
        ]


def drain(*, runs: int, delay_ms: int, processes: int = 2, profile: str | None = None) -> Drained:
    """Unwind ``runs`` runs with two worker processes; in this process under the profiler when ``profile`` names a
    file."""
    from compensation.operations import holds

    with staged(slug=f"drain-{delay_ms}-ms", delay_ms=delay_ms) as stage:
        holds.hold_tenant(actor=stage.lead, reason="until all is minted")
        began = time.monotonic()
        for _ in range(runs):
            stage.fail(stage.mint(WORKFLOW_ID))
        mint_seconds = time.monotonic() - began
        seconds = _drain_here(stage, profile) if profile else _drain_by_workers(stage, processes)
        stats = stage.sandbox.stats()
    return Drained(
        delay_ms=delay_ms,
        runs=runs,
        seconds=seconds,
        mint_seconds=mint_seconds,
        effects=stats["effects"],
        duplicates=stats["duplicates"],
    )


def _drain_by_workers(stage: Stage, processes: int) -> float:
    from compensation.operations import holds

    with workers(processes=processes):
        began = time.monotonic()
        holds.release_tenant(actor=stage.lead)
        eventually(lambda: _open_plans(stage) == 0, timeout=DRAIN_S)
        return time.monotonic() - began


def _drain_here(stage: Stage, profile: str) -> float:
    from compensation.operations import holds
    from compensation.runner.run import run_while_due

    holds.release_tenant(actor=stage.lead)
    profiler = cProfile.Profile()
    began = time.monotonic()
    profiler.runcall(run_while_due)
    seconds = time.monotonic() - began
    profiler.dump_stats(profile)
    if _open_plans(stage):
        raise RuntimeError(f"{_open_plans(stage)} plans are not closed")
    return seconds


def _open_plans(stage: Stage) -> int:
    from compensation.models import Plan

    counted = Plan.objects.filter(tenant=stage.actor.tenant).aggregate(open=Count("pk", filter=Q(closed_at=None)))
    return int(counted["open"])
