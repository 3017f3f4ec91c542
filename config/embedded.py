"""The default PostgreSQL: one server per DATA_DIR, shared by every process that calls `ensure`, gone soon after them.

Three flocks carry the whole protocol, because the kernel drops them at any death, SIGKILL included:
- users.lock: shared, held for life by each process that uses the server;
- guardian.lock: exclusive, held by the one guardian, the process that owns the server (config.postgres_guardian);
- start.lock: exclusive, held while somebody starts the server, so that a stopping guardian cannot cross them.
"""

import contextlib
import fcntl
import os
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import NoReturn

from config import postgres_guardian
from config.postgres_guardian import EmbeddedPostgresError, bin_dir, is_locked, socket_dir

START_TIMEOUT_S = 60.0
POLL_S = 0.05
RETRY_S = 0.25
LOG_LINES = 3

# For this process, for life: the shared lock of each server it uses, and the pid of the guardian it started, if it did.
_held: dict[Path, int] = {}
_guardians: dict[Path, int] = {}


def connection_settings(data_dir: Path) -> dict[str, str]:
    """Django's NAME, USER and HOST of the server of `data_dir`, whether it runs or not."""
    return {"NAME": "postgres", "USER": "postgres", "HOST": str(socket_dir(data_dir.resolve()))}


def dsn(data_dir: Path) -> str:
    """The same for libpq."""
    return f"host='{socket_dir(data_dir.resolve())}' user=postgres dbname=postgres"


def log_path(data_dir: Path) -> Path:
    return data_dir / "embedded.log"


def ensure(data_dir: Path, timeout: float = START_TIMEOUT_S) -> str:
    """Have the server of `data_dir` running for as long as this process lives; answers its libpq dsn.

    Starting takes about a second the first time and 0.2 s later. `timeout` is in seconds.
    Raises EmbeddedPostgresError, naming the log, when the server does not come up.
    """
    data_dir = data_dir.resolve()
    data_dir.mkdir(parents=True, exist_ok=True)
    is_first = data_dir not in _held
    if is_first:
        _held[data_dir] = os.open(data_dir / "users.lock", os.O_RDWR | os.O_CREAT, 0o600)
        fcntl.flock(_held[data_dir], fcntl.LOCK_SH)  # waits while a guardian is stopping
    _start(data_dir, timeout)
    if is_first:
        threading.Thread(target=_watch, args=(data_dir,), name="embedded-postgres", daemon=True).start()
    return dsn(data_dir)


def _start(data_dir: Path, timeout: float) -> None:
    """Return once a guardian lives and the server accepts connections."""
    deadline = time.monotonic() + timeout
    with _locked(data_dir / "start.lock", fcntl.LOCK_EX):
        while True:
            _have_guardian(data_dir)
            if _accepts(data_dir):
                return
            if time.monotonic() > deadline:
                _refuse(data_dir, f"did not answer within {timeout:g} s")
            time.sleep(POLL_S)


def _have_guardian(data_dir: Path) -> None:
    mine = _guardians.get(data_dir)
    if mine is not None:
        code = _exit_code(mine)
        if code is None:
            return
        del _guardians[data_dir]
        if code > 0:  # it gave up; a negative code is a signal, and 0 says that it met another guardian
            _refuse(data_dir, "could not be started")
    if not is_locked(data_dir / "guardian.lock"):
        _guardians[data_dir] = _spawn_guardian(data_dir)


def _exit_code(pid: int) -> int | None:
    """None while our child `pid` runs."""
    try:
        done, status = os.waitpid(pid, os.WNOHANG)
    except ChildProcessError:  # somebody else in this process reaped it
        return 0
    return os.waitstatus_to_exitcode(status) if done else None


def _watch(data_dir: Path) -> None:
    """Replace a guardian that dies: waits on its lock, without polling, for as long as this process lives."""
    while True:
        with contextlib.suppress(OSError, EmbeddedPostgresError):
            with _locked(data_dir / "guardian.lock", fcntl.LOCK_SH):
                pass
            _start(data_dir, START_TIMEOUT_S)
        time.sleep(RETRY_S)


def _spawn_guardian(data_dir: Path) -> int:
    """The pid of a new guardian, which outlives us. (A Popen would complain of that at exit.)"""
    log = os.open(log_path(data_dir), os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    output = [(os.POSIX_SPAWN_DUP2, log, descriptor) for descriptor in (1, 2)]
    streams = [(os.POSIX_SPAWN_OPEN, 0, os.devnull, os.O_RDONLY, 0), *output]
    try:
        command = [sys.executable, "-P", postgres_guardian.__file__, str(data_dir)]
        return os.posix_spawn(sys.executable, command, os.environ, file_actions=streams)
    finally:
        os.close(log)


def _accepts(data_dir: Path) -> bool:
    where = ("--host", str(socket_dir(data_dir)), "--username=postgres", "--dbname=postgres")
    command = [str(bin_dir() / "pg_isready"), "--quiet", "--timeout=2", *where]
    return subprocess.run(command, check=False).returncode == 0


def _refuse(data_dir: Path, what: str) -> NoReturn:
    log = log_path(data_dir)
    last = [line for line in log.read_text(errors="replace").splitlines() if line.strip()][-LOG_LINES:]
    raise EmbeddedPostgresError(
        f"The embedded PostgreSQL {what}. Its log is {log}; it ends with:\n  "
        + "\n  ".join(last)
        + "\nSet DATABASE_URL to use a PostgreSQL server of your own, or DATA_DIR to use another folder."
    )


@contextlib.contextmanager
def _locked(path: Path, mode: int) -> Iterator[None]:
    with path.open("a") as file:
        fcntl.flock(file, mode)
        yield
