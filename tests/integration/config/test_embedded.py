"""The embedded PostgreSQL under real processes and real kills."""

import os
import shutil
import stat
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import psutil
import psycopg
import pytest

from config import embedded
from config.postgres_guardian import OTHERS, EmbeddedPostgresError, bin_dir, cluster_dir, socket_dir
from tests.waiting import eventually

USE = """
import pathlib, sys
from config import embedded
print(embedded.ensure(pathlib.Path(sys.argv[1])), flush=True)
sys.stdin.read()
"""
ACCOUNT_OF_ROOT = 0


class User:
    """A process that uses the server until it is killed."""

    def __init__(self, data_dir: Path) -> None:
        command = [sys.executable, "-c", USE, str(data_dir)]
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def wait_until_ready(self) -> None:
        assert self.process.stdout is not None
        assert self.process.stdout.readline().startswith("host="), "ensure() failed in the user's process"

    def kill(self) -> None:
        self.process.kill()
        self.process.communicate()


class Place:
    """A DATA_DIR, what runs in it, and the users that the test starts there."""

    def __init__(self, data_dir: Path) -> None:
        self.data_dir = data_dir
        self.users: list[User] = []

    def start_user(self) -> User:
        user = User(self.data_dir)
        self.users.append(user)
        user.wait_until_ready()
        return user

    def postmaster(self) -> psutil.Process:
        return psutil.Process(int((cluster_dir(self.data_dir) / "postmaster.pid").read_text().split()[0]))

    def guardians(self) -> list[psutil.Process]:
        found = []
        for process in psutil.process_iter(["cmdline"]):
            words = process.info["cmdline"] or []
            if words[-1:] == [str(self.data_dir)] and words[-2].endswith("postgres_guardian.py"):
                found.append(process)
        return found

    def sql(self, statement: str) -> object:
        """The first value that `statement` answers; None while the server is away."""
        try:
            with psycopg.connect(embedded.dsn(self.data_dir)) as connection:
                cursor = connection.execute(statement)
                row = cursor.fetchone() if cursor.description else None
                return row[0] if row else None
        except psycopg.OperationalError:
            return None

    def close(self) -> None:
        """At once, instead of soon: the guardian stops the server when it is told to."""
        for user in self.users:
            user.kill()
        guardians = self.guardians()
        for guardian in guardians:
            guardian.terminate()
        assert not psutil.wait_procs(guardians, timeout=20)[1]


@pytest.fixture
def place(tmp_path: Path) -> Iterator[Place]:
    place = Place(tmp_path / "data")
    yield place
    place.close()


def test_users_share_one_durable_server_that_ends_soon_after_the_last_of_them(place: Place) -> None:
    first = place.start_user()
    postmaster = place.postmaster()
    second = place.start_user()
    assert place.postmaster() == postmaster
    assert [place.sql(f"SHOW {name}") for name in ("fsync", "synchronous_commit", "listen_addresses")] == [
        *("on", "on", "")
    ]

    first.kill()
    assert place.sql("SELECT 1") == 1
    guardians = place.guardians()
    second.kill()
    assert not psutil.wait_procs([postmaster, *guardians], timeout=20)[1]


def test_a_killed_postmaster_comes_back_with_what_was_committed(place: Place) -> None:
    place.start_user()
    place.sql("CREATE TABLE kept AS SELECT 42 AS n")
    place.postmaster().kill()
    assert eventually(lambda: place.sql("SELECT n FROM kept")) == 42


def test_a_killed_guardian_is_replaced_by_one_that_does_all_the_same(place: Place) -> None:
    place.start_user()
    postmaster = place.postmaster()
    (killed,) = place.guardians()
    killed.kill()
    eventually(lambda: [process for process in place.guardians() if process != killed])
    assert place.postmaster() == postmaster, "the server runs on, and the new guardian adopts it"

    postmaster.kill()
    eventually(lambda: not postmaster.is_running() or postmaster.status() == psutil.STATUS_ZOMBIE)
    assert eventually(lambda: place.sql("SELECT 1")) == 1
    assert place.postmaster() != postmaster


def test_it_starts_again_after_everything_was_killed_and_the_pid_was_given_to_another_process(place: Place) -> None:
    user = place.start_user()
    place.sql("CREATE TABLE kept AS SELECT 42 AS n")
    processes = [*place.guardians(), place.postmaster()]
    user.process.kill()
    for process in processes:
        process.kill()
    psutil.wait_procs(processes)
    pid_file = cluster_dir(place.data_dir) / "postmaster.pid"
    pid_file.write_text("\n".join([str(os.getpid()), *pid_file.read_text().splitlines()[1:]]))

    place.start_user()
    assert place.sql("SELECT n FROM kept") == 42


def test_a_cluster_whose_making_was_cut_short_is_made_anew(place: Place) -> None:
    remains = place.data_dir / "initdb-cut-short"
    remains.mkdir(parents=True)
    (remains / "PG_VERSION").write_text("18\n")
    place.start_user()
    assert place.sql("SELECT 1") == 1
    assert not remains.exists()


def test_it_runs_where_no_other_account_can_enter(place: Place) -> None:
    place.data_dir.mkdir(mode=0o700)
    place.start_user()
    assert place.sql("SELECT 1") == 1
    assert cluster_dir(place.data_dir).stat().st_uid == os.geteuid()


def test_root_steps_down_to_an_account_that_can_enter(place: Place) -> None:
    """Only root must, and only where the account can reach the programs too; elsewhere the server is our own."""
    open_folder = Path(f"/tmp/recourse-open-{os.getpid()}")  # noqa: S108 - pytest's own folders are private
    open_folder.mkdir(mode=0o755)
    try:
        place.data_dir = open_folder / "data"
        place.start_user()
        owner = cluster_dir(place.data_dir).stat().st_uid
        programs_are_open = all(folder.stat().st_mode & stat.S_IXOTH for folder in bin_dir().parents)
        steps_down = os.geteuid() == ACCOUNT_OF_ROOT and programs_are_open
        assert (owner != ACCOUNT_OF_ROOT) if steps_down else (owner == os.geteuid())
        assert place.sql("SELECT 1") == 1
        place.close()
    finally:
        shutil.rmtree(open_folder)


def test_a_path_too_long_for_a_socket_gets_a_private_short_one(place: Place) -> None:
    place.data_dir = place.data_dir / ("long" * 30)
    place.start_user()
    assert place.sql("SELECT 1") == 1
    folder = socket_dir(place.data_dir)
    assert folder != cluster_dir(place.data_dir)
    assert not folder.stat().st_mode & OTHERS
    place.close()
    assert not folder.exists()


def test_a_server_that_cannot_start_is_refused_with_the_name_of_its_log(tmp_path: Path) -> None:
    cluster = cluster_dir(tmp_path)
    cluster.mkdir()
    (cluster / "PG_VERSION").write_text("9.6\n")
    with pytest.raises(EmbeddedPostgresError) as refused:
        embedded.ensure(tmp_path)
    assert str(embedded.log_path(tmp_path)) in str(refused.value)
    assert "DATABASE_URL" in str(refused.value)
