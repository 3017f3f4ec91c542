"""The processes of the demo, and how it is known that each of them answers."""

import fcntl
import http.client
import socket
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from django.conf import settings

from compensation.management.supervision import Child
from config import env

HOST: Final = "127.0.0.1"
HIGHEST_PORT: Final = 65_535
GRACE_S: Final = 4.0
WORKER_GRACE_S: Final = 2.5
ANSWER_TIMEOUT_S: Final = 2.0
LOCK: Final = "demo.lock"


class CannotStart(RuntimeError):
    """The demo cannot start here; the text says why and which variable to change."""


@contextmanager
def sole_demo(data_dir: Path) -> Iterator[None]:
    """Hold DATA_DIR for this demo alone; the kernel lets go of it at any death."""
    with (data_dir / LOCK).open("a") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise CannotStart(
                f"A demo already runs on {data_dir}. Stop it first, or set DATA_DIR, PORT and SANDBOX_PORT "
                "to run another one beside it."
            ) from None
        yield


def require_free_ports() -> None:
    """Refuse, naming the variable, before anything is started."""
    wanted = {"PORT": settings.PORT, "SANDBOX_PORT": settings.SANDBOX_PORT}
    if settings.PORT == settings.SANDBOX_PORT:
        raise CannotStart(f"PORT and SANDBOX_PORT are both {settings.PORT}: they must differ.")
    for name, port in wanted.items():
        if port > HIGHEST_PORT:
            raise CannotStart(f"{name}={port} is not valid: a port is at most {HIGHEST_PORT}.")
        if not _is_free(port):
            raise CannotStart(f"Port {port} is in use. Set {name} to a free port, such as {name}={port + 1000}.")


def web() -> Child:
    place = ["--host", HOST, "--port", str(settings.PORT)]
    manner = ["--timeout-graceful-shutdown", "3", "--no-access-log", "--log-level", "warning"]
    return _child("web", sys.executable, "-m", "uvicorn", "config.asgi:application", *place, *manner)


def sandbox() -> Child:
    place = ["--host", HOST, "--port", str(settings.SANDBOX_PORT), "--data-dir", str(settings.DATA_DIR)]
    return _child("sandbox", sys.executable, "-m", "compensation.sandbox", *place)


def worker() -> Child:
    return _child("worker", sys.executable, "manage.py", "worker", "--grace", f"{WORKER_GRACE_S:g}")


def generator() -> Child:
    return _child("generator", sys.executable, "-m", "compensation.demo.generator", str(settings.DATA_DIR))


def answers(port: int, path: str) -> bool:
    """Whether GET answers 200 there."""
    connection = http.client.HTTPConnection(HOST, port, timeout=ANSWER_TIMEOUT_S)
    try:
        connection.request("GET", path)
        return connection.getresponse().status == http.client.OK
    except (OSError, http.client.HTTPException):
        return False
    finally:
        connection.close()


def _child(name: str, *command: str) -> Child:
    """One process in the repository's folder; its output goes to DATA_DIR/logs, afresh for each demo."""
    logs = settings.DATA_DIR / "logs"
    logs.mkdir(exist_ok=True)
    log = logs / f"{name}.log"
    log.unlink(missing_ok=True)
    # A relative DATA_DIR means something else in another folder.
    environment = {"DATA_DIR": str(env.data_dir()), "LOG_LEVEL": env.text("LOG_LEVEL", "WARNING")}
    return Child(name=name, command=command, environment=environment, folder=settings.BASE_DIR, log=log)


def _is_free(port: int) -> bool:
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((HOST, port))
        except OSError:
            return False
    return True
