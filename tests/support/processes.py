"""The product's own processes, for tests that kill and stop them: workers, a beat, whatever else runs on a DATA_DIR."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, Final, Self
from urllib.parse import quote

import psutil

from compensation.management.supervision import TETHER
from config.celery import WORKER_OPTIONS
from tests.waiting import eventually

REPOSITORY: Final = Path(__file__).resolve().parents[2]
START_S: Final = 60.0
END_S: Final = 30.0

# Leases and waits short enough that a test sees them end.
BRISK: Final = {
    "RECOURSE_LEASE_MARGIN_MS": "600",
    "RECOURSE_RUNNER_LINGER_MS": "300",
    "RECOURSE_BREAKER_COOLDOWN_MS": "500",
}


class Program:
    """One process, tethered so that it never outlives the tests; everything it says goes into a file."""

    def __init__(self, command: Sequence[str], *, environment: dict[str, str], log: Path) -> None:
        tethered = [sys.executable, "-I", "-S", str(TETHER), str(os.getpid()), *command]
        self.log = log
        with log.open("w") as output:
            self._process = subprocess.Popen(
                tethered, cwd=REPOSITORY, env=environment, stdin=subprocess.DEVNULL, stdout=output, stderr=output
            )
        self.pid = self._process.pid

    @property
    def code(self) -> int | None:
        """The exit code, negative for a signal; None while it runs."""
        return self._process.poll()

    @property
    def said(self) -> str:
        return self.log.read_text(errors="replace")

    def is_stopped(self) -> bool:
        """Whether a SIGSTOP holds it."""
        return self.code is None and psutil.Process(self.pid).status() == psutil.STATUS_STOPPED

    def signal(self, number: signal.Signals) -> None:
        if self.code is None:
            self._process.send_signal(number)

    def wait(self, timeout: float = END_S) -> int:
        """The exit code once it has ended; AssertionError with what it said when it does not end."""
        try:
            return self._process.wait(timeout)
        except subprocess.TimeoutExpired:
            raise AssertionError(f"process {self.pid} did not end within {timeout:g} s:\n{self.said}") from None

    def kill(self) -> None:
        """SIGKILL, whatever state it is in; returns when it is gone."""
        self.signal(signal.SIGKILL)
        self.wait()


class Site:
    """One DATA_DIR with all that runs on it. At the end every process it started is gone, by its pid."""

    def __init__(self, folder: Path, *, database_url: str = "", broker_url: str = "", **environment: str) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self.folder = folder
        self.environment = {
            **os.environ,
            "DJANGO_SETTINGS_MODULE": "config.settings.test",
            "DATA_DIR": str(folder),
            "DATABASE_URL": database_url,
            "CELERY_BROKER_URL": broker_url,
            "CELERY_SKIP_CHECKS": "1",
            **BRISK,
            **environment,
        }
        self._programs: list[Program] = []

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for program in self._programs:
            program.kill()

    @property
    def broker_folder(self) -> Path:
        """Where the messages of the default broker lie."""
        return self.folder / "test" / "broker"

    def start(self, *command: str, failpoint: str = "", **environment: str) -> Program:
        """Start `python <command>` here; with a failpoint armed it dies, or stops, when it comes by there."""
        program = Program(
            [sys.executable, *command],
            environment={**self.environment, "RECOURSE_FAILPOINT": failpoint, **environment},
            log=self.folder / f"{len(self._programs)}.log",
        )
        self._programs.append(program)
        return program

    def worker(self, *, failpoint: str = "", **environment: str) -> Program:
        """A Celery worker that is ready, or has met its failpoint already."""
        name = f"worker{len(self._programs)}@%h"
        options = ["--pool", "threads", "--concurrency", "4", "--loglevel", "INFO", "--hostname", name]
        worker = self.start(*_celery("worker"), *options, *WORKER_OPTIONS, failpoint=failpoint, **environment)
        eventually(lambda: " ready." in worker.said or worker.code is not None or worker.is_stopped(), timeout=START_S)
        assert worker.code is None or failpoint, worker.said
        return worker

    def beat(self) -> Program:
        """The beat that wakes the sweep every second."""
        schedule = str(self.folder / f"schedule-{len(self._programs)}")
        return self.start(*_celery("beat"), "--loglevel", "WARNING", "--pidfile", "", "--schedule", schedule)


def url_of(database: dict[str, Any]) -> str:
    """Django's connection settings as the DATABASE_URL that leads another process to the same database."""
    login = ":".join(quote(str(database[name]), safe="") for name in ("USER", "PASSWORD") if database.get(name))
    port = f"&port={database['PORT']}" if database.get("PORT") else ""
    return f"postgresql://{login}@/{database['NAME']}?host={quote(str(database['HOST']))}{port}"


def _celery(what: str) -> tuple[str, ...]:
    return ("-m", "celery", "--app", "config.celery", what)
