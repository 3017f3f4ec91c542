"""A real Celery worker on the broker that the settings name, and on the folder when it is abused."""

import os
import shutil
import subprocess
import sys
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from django.conf import settings
from kombu import Connection

from config.celery import WORKER_OPTIONS
from tests.integration.config.probe import note
from tests.waiting import eventually


class Worker:
    """A worker process on a queue of its own, so that it meets nobody else's messages."""

    def __init__(self, tmp_path: Path, **environment: str) -> None:
        self.queue = f"probe-{uuid.uuid4().hex}"
        self.notes = tmp_path / "notes"
        self.log = tmp_path / "worker.log"
        command = [sys.executable, "-m", "celery", "--app", "tests.integration.config.probe", "worker"]
        options = ["--queues", self.queue, "--loglevel", "INFO", *WORKER_OPTIONS]
        env = {**os.environ, "DJANGO_SETTINGS_MODULE": "config.settings.test", **environment}
        with self.log.open("w") as log:
            self.process = subprocess.Popen([*command, *options], env=env, stdout=log, stderr=log)
        eventually(lambda: " ready." in self.log.read_text(), timeout=60)

    def send(self, word: str, connection: Connection | None = None) -> None:
        options: dict[str, Any] = {"queue": self.queue, "connection": connection}
        note.apply_async((str(self.notes), word), **options)

    def words(self) -> list[str]:
        return self.notes.read_text().split() if self.notes.exists() else []

    def stop(self) -> None:
        self.process.terminate()
        assert self.process.wait(30) == 0, self.log.read_text()


@pytest.fixture
def worker(tmp_path: Path) -> Iterator[Worker]:
    worker = Worker(tmp_path)
    yield worker
    worker.stop()


@pytest.mark.broker
def test_every_message_runs_once_on_the_broker_of_the_settings(worker: Worker) -> None:
    sent = [f"word-{number}" for number in range(20)]
    for word in sent:
        worker.send(word)
    eventually(lambda: len(worker.words()) >= len(sent))
    assert sorted(worker.words()) == sorted(sent)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "data" / "test" / "broker"


@pytest.fixture
def folder_worker(tmp_path: Path) -> Iterator[Worker]:
    """On a folder that no other test shares; its database is the session's."""
    database = settings.DATABASES["default"]
    url = f"postgresql://postgres@/postgres?host={database['HOST']}"
    worker = Worker(tmp_path, DATA_DIR=str(tmp_path / "data"), CELERY_BROKER_URL="", DATABASE_URL=url)
    yield worker
    worker.stop()


@pytest.fixture
def connection(folder: Path) -> Iterator[Connection]:
    with Connection("filesystem://", transport_options={"folder": str(folder)}) as connection:
        yield connection


def test_a_worker_survives_that_its_folder_is_wiped(
    folder_worker: Worker, folder: Path, connection: Connection
) -> None:
    folder_worker.send("before", connection)
    eventually(lambda: folder_worker.words() == ["before"])
    shutil.rmtree(folder)
    folder_worker.send("after", connection)
    eventually(lambda: folder_worker.words() == ["before", "after"])


def test_a_worker_survives_files_that_are_no_messages(
    folder_worker: Worker, folder: Path, connection: Connection
) -> None:
    garbage = [b"", b'{"body": ', b"[1]", b"null", b'{"properties": {"delivery_tag": 1}}', b"\xff\xfe"]
    garbage.append(
        b'{"body": null, "properties": {"delivery_tag": 1, "delivery_info": {"exchange": "", "routing_key": 1}}}'
    )
    folder.mkdir(parents=True, exist_ok=True)
    for number, content in enumerate(garbage):
        (folder / f"00{number}.{folder_worker.queue}.msg").write_bytes(content)
    folder_worker.send("next", connection)
    eventually(lambda: folder_worker.words() == ["next"])
    assert folder_worker.process.poll() is None
    assert sorted(kept.read_bytes() for kept in folder.glob(".*.taken")) == sorted(garbage)
