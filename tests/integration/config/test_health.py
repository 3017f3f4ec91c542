"""/healthz and /readyz: what a load balancer is told."""

from datetime import timedelta

import pytest
from celery import current_app
from django.db import connection
from django.db.migrations.recorder import MigrationRecorder
from django.test import Client
from django.utils import timezone

from compensation.models import WorkerHeartbeat
from config.health import HEARTBEAT_MAX_AGE


@pytest.fixture
def heartbeat(db: None) -> WorkerHeartbeat:
    return WorkerHeartbeat.objects.create(worker="one", seen_at=timezone.now())


def checks(client: Client, status: int) -> dict[str, str]:
    response = client.get("/readyz")
    assert response.status_code == status, response.json()
    found: dict[str, str] = response.json()["checks"]
    return found


def test_alive_asks_for_nothing_but_the_process(client: Client) -> None:
    response = client.get("/healthz")
    assert (response.status_code, response.json()) == (200, {"status": "ok"})


def test_only_reading_is_allowed(client: Client) -> None:
    assert client.post("/healthz").status_code == 405
    assert client.post("/readyz").status_code == 405


def test_ready_when_everything_is(client: Client, heartbeat: WorkerHeartbeat) -> None:
    assert set(checks(client, 200).values()) == {"ok"}


def test_not_ready_without_any_worker(client: Client, db: None) -> None:
    assert checks(client, 503)["worker"] == "never seen"


def test_not_ready_when_the_last_worker_fell_silent(client: Client, heartbeat: WorkerHeartbeat) -> None:
    heartbeat.seen_at -= HEARTBEAT_MAX_AGE + timedelta(seconds=1)
    heartbeat.save()
    assert checks(client, 503)["worker"] == "last seen 16 s ago"


def test_not_ready_while_a_migration_is_pending(client: Client, heartbeat: WorkerHeartbeat) -> None:
    MigrationRecorder(connection).record_unapplied("sessions", "0001_initial")
    assert checks(client, 503)["migrations"] == "1 pending"


def test_not_ready_while_the_broker_cannot_be_reached(
    client: Client, heartbeat: WorkerHeartbeat, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(current_app.conf, "broker_write_url", "redis://127.0.0.1:1/0")
    assert checks(client, 503)["broker"] == "unreachable"
