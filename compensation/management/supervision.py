"""Processes kept running together: started, restarted when they die, stopped by pid, never outliving the supervisor."""

import contextlib
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import FrameType
from typing import Final

TETHER: Final = Path(__file__).with_name("tether.py")
POLL_S: Final = 0.1
QUICK_DEATH_S: Final = 30.0
MAX_QUICK_DEATHS: Final = 4
LOG_LINES: Final = 15


class SupervisionError(RuntimeError):
    """Something cannot be kept running; the text says what and how it ended."""


@dataclass(kw_only=True)
class Child:
    """One program to keep running, in a process group of its own so that a terminal's Ctrl-C reaches only us."""

    name: str
    command: Sequence[str]
    environment: Mapping[str, str] = field(default_factory=dict)
    folder: Path | None = None
    log: Path | None = None
    process: subprocess.Popen[bytes] | None = None
    started: float = 0.0
    quick_deaths: int = 0

    def start(self) -> None:
        tethered = [sys.executable, "-I", "-S", str(TETHER), str(os.getpid()), *self.command]
        environment = {**os.environ, **self.environment}
        with self.log.open("ab") if self.log else contextlib.nullcontext() as output:
            self.process = subprocess.Popen(
                tethered,
                cwd=self.folder,
                env=environment,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                process_group=0,
            )
        self.started = time.monotonic()

    def last_words(self) -> str:
        """The end of its log, to go with bad news; nothing when it logs elsewhere."""
        if self.log is None:
            return ""
        lines = self.log.read_text(errors="replace").splitlines()[-LOG_LINES:]
        return "\n".join(["", f"Its log is {self.log}; it ends with:", *(f"  {line}" for line in lines)])

    def ended(self) -> int | None:
        """The exit code, None while it runs."""
        return None if self.process is None else self.process.poll()

    def signal(self, number: signal.Signals) -> None:
        if self.process is not None and self.process.poll() is None:
            self.process.send_signal(number)


class Supervisor:
    """Keeps children running from `run` until SIGTERM or SIGINT; a second signal ends the grace they are given."""

    def __init__(self, children: Iterable[Child], *, grace_s: float, say: Callable[[str], object]) -> None:
        self._children = list(children)
        self._grace_s = grace_s
        self._say = say
        self._asked = threading.Event()
        self._hurried = False

    @property
    def is_stopping(self) -> bool:
        return self._asked.is_set()

    def run(self, *, when_started: Callable[["Supervisor"], None] = lambda _: None) -> None:
        """Start all, call `when_started`, keep all running. Raises SupervisionError when one keeps dying.

        However it ends, nothing that was started is left.
        """
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, self._asked_to_stop)
        try:
            for child in self._children:
                child.start()
            when_started(self)
            while not self.pause():
                pass
        finally:
            self._stop()

    def add(self, child: Child) -> None:
        """Start one more and keep it running too."""
        child.start()
        self._children.append(child)

    def wait_until_ready(self, name: str, is_ready: Callable[[], bool], *, timeout_s: float) -> bool:
        """Look after all children until the one of that name is ready; False when asked to stop first.

        Raises SupervisionError when it is not ready in time.
        """
        until = time.monotonic() + timeout_s
        child = next(child for child in self._children if child.name == name)
        while not is_ready():
            if time.monotonic() > until:
                raise SupervisionError(f"{child.name} was not ready within {timeout_s:g} s.{child.last_words()}")
            if self.pause():
                return False
        return True

    def pause(self) -> bool:
        """Look after the children once, then wait a moment; whether it is time to stop."""
        for child in self._children:
            if not self.is_stopping and child.ended() is not None:
                self._restart(child)
        return self._asked.wait(POLL_S)

    def _restart(self, child: Child) -> None:
        quick = time.monotonic() - child.started < QUICK_DEATH_S
        child.quick_deaths = child.quick_deaths + 1 if quick else 1
        how = f"{child.name} ended with code {child.ended()}"
        if child.quick_deaths >= MAX_QUICK_DEATHS:
            often = f"{how}, {child.quick_deaths} times soon after its start; giving up."
            raise SupervisionError(often + child.last_words())
        self._say(f"{how}; starting it again.{child.last_words()}")
        child.start()

    def _stop(self) -> None:
        """SIGTERM to all at once; SIGKILL to what is left after the grace."""
        for child in self._children:
            child.signal(signal.SIGTERM)
        until = time.monotonic() + self._grace_s
        while any(child.ended() is None for child in self._running()):
            if time.monotonic() > until or self._hurried:
                break
            time.sleep(POLL_S / 2)
        for child in self._running():
            child.signal(signal.SIGKILL)
            if child.process is not None:
                child.process.wait()

    def _running(self) -> list[Child]:
        return [child for child in self._children if child.process is not None]

    def _asked_to_stop(self, _number: int, _frame: FrameType | None) -> None:
        self._hurried = self.is_stopping
        self._asked.set()
