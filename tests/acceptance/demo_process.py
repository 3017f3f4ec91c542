"""`manage.py demo` as a stranger starts it: a process on ports and a DATA_DIR of its own."""

import json
import os
import signal
import socket
import stat
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Self

import psutil

from tests.acceptance.client import Client
from tests.waiting import eventually

REPOSITORY = Path(__file__).resolve().parents[2]
START_S = 120.0
STOP_S = 20.0


class DemoProcess:
    """Start it, ask it, stop it by its pid. What it printed is in ``output``."""

    def __init__(self, data_dir: Path, *, port: int, sandbox_port: int) -> None:
        self.data_dir = data_dir
        self.environment = demo_environment(data_dir, port=port, sandbox_port=sandbox_port)
        self.url = f"http://127.0.0.1:{port}"
        self.sandbox = Client(f"http://127.0.0.1:{sandbox_port}")
        self.output = data_dir / "output.txt"
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> Self:
        """Start and return at once."""
        self.data_dir.mkdir(parents=True, exist_ok=True)
        command = [sys.executable, "manage.py", "demo"]
        with self.output.open("wb") as output:
            self._process = subprocess.Popen(
                command, cwd=REPOSITORY, env=self.environment, stdout=output, stderr=output, start_new_session=True
            )
        return self

    def until_first_page(self) -> Self:
        """Return when the sign-in page answers."""
        page = Client(self.url)
        eventually(lambda: self._alive() and page.answers("/login/"), timeout=START_S)
        return self

    def until_introduced(self) -> Self:
        """Return when the demo has said where to look: everything it started answers."""
        eventually(lambda: self._alive() and "Ctrl-C stops" in self.output.read_text(), timeout=START_S)
        return self

    @property
    def pid(self) -> int:
        assert self._process is not None
        return self._process.pid

    def handout(self) -> dict[str, Any]:
        return dict(json.loads((self.data_dir / "demo.json").read_text()))

    def handout_mode(self) -> int:
        return stat.S_IMODE((self.data_dir / "demo.json").stat().st_mode)

    def client(self, role: str, tenant: int = 0) -> Client:
        """The API with the key demo.json gives for that role."""
        return Client(self.url, key=self.handout()["tenants"][tenant]["apiKeys"][role])

    def family(self) -> list[psutil.Process]:
        """Every process the demo started, directly or not."""
        return list(psutil.Process(self.pid).children(recursive=True))

    def end(self, number: signal.Signals) -> int:
        """Send a signal and return the exit code."""
        assert self._process is not None
        self._process.send_signal(number)
        return self._process.wait(STOP_S)

    def _alive(self) -> bool:
        assert self._process is not None
        assert self._process.poll() is None, f"the demo ended: {self.output.read_text()}"
        return True


@contextmanager
def running_demo(data_dir: Path) -> Iterator[DemoProcess]:
    """A started demo, ended for certain; it may be up or not yet."""
    port, sandbox_port = free_ports(2)
    demo = DemoProcess(data_dir, port=port, sandbox_port=sandbox_port).start()
    try:
        yield demo
    finally:
        family = demo.family() if psutil.pid_exists(demo.pid) else []
        demo.end(signal.SIGKILL)
        psutil.wait_procs(family, timeout=STOP_S)


def free_ports(count: int) -> list[int]:
    """Ports that nothing listens on now."""
    sockets = [socket.socket() for _ in range(count)]
    for each in sockets:
        each.bind(("127.0.0.1", 0))
    ports = [each.getsockname()[1] for each in sockets]
    for each in sockets:
        each.close()
    return ports


def demo_environment(data_dir: Path, *, port: int, sandbox_port: int) -> dict[str, str]:
    """What a stranger's shell has: nothing of the test session's settings, database or broker."""
    ours = ("DJANGO_SETTINGS_MODULE", "DATABASE_URL", "CELERY_BROKER_URL", "PYTHONUNBUFFERED")
    kept = {name: value for name, value in os.environ.items() if name not in ours}
    return {**kept, "DATA_DIR": str(data_dir), "PORT": str(port), "SANDBOX_PORT": str(sandbox_port)}
