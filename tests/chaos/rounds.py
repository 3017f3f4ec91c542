"""A round of the fault campaign: what goes wrong, at random, and the verdict when all has come to its end."""

from __future__ import annotations

import contextlib
import os
import random
import shutil
import signal
import time
from collections import Counter
from collections.abc import Iterable
from typing import Any, Final

from django.conf import settings

from audit.errors import RecourseError
from compensation.models import Attention, Obligation
from compensation.operations import acts
from config.postgres_guardian import cluster_dir
from tests.chaos.scene import Scene
from tests.chaos.verdict import problems_of, summary
from tests.support.processes import Program, Site
from tests.support.sandbox import SandboxProcess

RUNS_OF_EACH: Final = 4
DISTURBANCES: Final = 12  # in a round, before it is left in peace to end
PAUSE_S: Final = (0.05, 0.5)
FAULTS: Final = ("drop_after", "drop_before", "delay", "fail", "hang", "garbage", "throttle")
SYSTEMS: Final = ("/payments/", "/travel/", "/shipping/", "/inventory/", "/ledger/", "/effects/")
WORKERS: Final = 2


class Round:
    """One round on a site, disturbed by what `only` names. `chance` decides everything that is random."""

    def __init__(self, site: Site, sandbox: SandboxProcess, chance: random.Random, only: Iterable[str]) -> None:
        self._site = site
        self._sandbox = sandbox
        self._chance = chance
        self._only = list(only)
        self._workers: list[Program] = []
        self._done: Counter[str] = Counter()
        self._next = 0.0
        self._disturb = {
            "kill": self._kill,
            "stop": self._stop,
            "continue": self._continue,
            "messages": self._lose_messages,
            "database": self._kill_postmaster,
            "fault": self._inject,
        }

    def play(self) -> dict[str, Any]:
        """What was done, and how it came out: `{"done", "problems", "runs", "attempts", "lost"}`."""
        scene = Scene(self._sandbox)
        scene.unwind(each=RUNS_OF_EACH)
        try:
            scene.bring_to_an_end(lambda: self._look_in(scene))
            problems = problems_of(scene.home.tenant, self._sandbox)
        except AssertionError as still_open:
            problems = [str(still_open)]
        finally:
            self._leave_in_peace()
            for worker in self._workers:
                worker.kill()
        return {"done": dict(self._done), "problems": problems, **summary(scene.home.tenant)}

    def _look_in(self, scene: Scene) -> None:
        self._man()
        if self._done.total() == DISTURBANCES:
            self._leave_in_peace()
            lend_a_hand(scene)
        elif time.monotonic() >= self._next:
            what = self._chance.choice(self._only)
            self._done[what] += 1
            self._next = time.monotonic() + self._chance.uniform(*PAUSE_S)
            self._disturb[what]()

    def _man(self) -> None:
        """Start workers where some died."""
        self._workers = [worker for worker in self._workers if worker.code is None]
        for _ in range(WORKERS - len(self._workers)):
            self._workers.append(self._site.worker())

    def _leave_in_peace(self) -> None:
        self._sandbox.clear_faults()
        for worker in self._workers:
            worker.signal(signal.SIGCONT)

    def _kill(self) -> None:
        self._chance.choice(self._workers).kill()

    def _stop(self) -> None:
        self._chance.choice(self._workers).signal(signal.SIGSTOP)

    def _continue(self) -> None:
        self._chance.choice(self._workers).signal(signal.SIGCONT)

    def _lose_messages(self) -> None:
        shutil.rmtree(self._site.broker_folder, ignore_errors=True)

    def _kill_postmaster(self) -> None:
        with contextlib.suppress(OSError, ValueError):  # it may be on its way up just now
            os.kill(int((cluster_dir(settings.DATA_DIR) / "postmaster.pid").read_text().split()[0]), signal.SIGKILL)

    def _inject(self) -> None:
        mode, system = self._chance.choice(FAULTS), self._chance.choice(SYSTEMS)
        self._sandbox.faults(system, mode, times=self._chance.randint(1, 3), ms=self._chance.randint(0, 1_000))


def lend_a_hand(scene: Scene) -> None:
    """The operator presents again whatever was given up, so that every unwind can end."""
    wanted = Obligation.objects.filter(tenant=scene.home.tenant, state__in=acts.RETRYABLE).select_related("plan")
    called = Attention.objects.filter(tenant=scene.home.tenant, kind="manual", resolved_at__isnull=True)
    for entry in wanted.exclude(state="uncertain", work__isnull=False) | wanted.filter(attention__in=called):
        seen = acts.Seen(plan_version=entry.plan.plan_version, state=entry.state)
        with contextlib.suppress(RecourseError):  # it has moved on since we looked
            acts.retry(actor=scene.home.operator, run_id=entry.run_id, seen=seen, effect_id=entry.effect_id)
