"""Liveness and readiness. Readiness asks for rows and sockets, never `celery inspect`, which needs fan-out."""

from collections.abc import Callable
from datetime import timedelta

from celery import current_app
from django.db import Error as DatabaseError
from django.db import connection
from django.db.migrations.executor import MigrationExecutor
from django.db.models import Max
from django.http import HttpRequest, JsonResponse
from django.utils import timezone
from django.views.decorators.http import require_safe
from kombu.exceptions import OperationalError as BrokerError

from compensation.models import WorkerHeartbeat

HEARTBEAT_MAX_AGE = timedelta(seconds=15)
BROKER_TIMEOUT_S = 2


@require_safe
def alive(request: HttpRequest) -> JsonResponse:
    """200 as long as this process answers at all."""
    return JsonResponse({"status": "ok"})


@require_safe
def ready(request: HttpRequest) -> JsonResponse:
    """200 when work offered now would be done, else 503; each check says "ok" or what is wrong."""
    checks = {name: check() for name, check in CHECKS.items()}
    if all(result == "ok" for result in checks.values()):
        return JsonResponse({"status": "ok", "checks": checks})
    return JsonResponse({"status": "unavailable", "checks": checks}, status=503)


def _database() -> str:
    try:
        with connection.cursor() as cursor:
            cursor.execute("SELECT 1")
    except DatabaseError:
        return "unreachable"
    return "ok"


def _migrations() -> str:
    try:
        executor = MigrationExecutor(connection)
        pending = executor.migration_plan(executor.loader.graph.leaf_nodes())
    except DatabaseError:
        return "unknown"
    return f"{len(pending)} pending" if pending else "ok"


def _broker() -> str:
    try:
        with current_app.connection_for_write(connect_timeout=BROKER_TIMEOUT_S) as broker:
            broker.ensure_connection(max_retries=0, timeout=BROKER_TIMEOUT_S)
    except (BrokerError, OSError):
        return "unreachable"
    return "ok"


def _worker() -> str:
    try:
        seen_at = WorkerHeartbeat.objects.aggregate(latest=Max("seen_at"))["latest"]
    except DatabaseError:
        return "unknown"
    if seen_at is None:
        return "never seen"
    age = timezone.now() - seen_at
    return "ok" if age <= HEARTBEAT_MAX_AGE else f"last seen {age.total_seconds():.0f} s ago"


CHECKS: dict[str, Callable[[], str]] = {
    "database": _database,
    "migrations": _migrations,
    "broker": _broker,
    "worker": _worker,
}
