"""Waking a runner. A wake-up is a hint: losing every one loses nothing, since the sweep finds due work."""

from typing import Final

import structlog
from django.db import transaction
from kombu.exceptions import OperationalError

from config.celery import app

RUN_DUE: Final = "compensation.tasks.run_due"

log = structlog.get_logger(__name__)


def wake_after_commit() -> None:
    """Ask for a runner once this transaction is durable."""
    transaction.on_commit(_wake, robust=True)


def _wake() -> None:
    try:
        app.send_task(RUN_DUE, ignore_result=True, retry=False)
    except (OSError, OperationalError) as error:
        log.warning("wake-up not sent; the sweep will find the work", error=type(error).__name__)
