"""Thin Celery shells. A task is a wake-up for a runner and carries nothing; losing it loses nothing."""

import os
import socket

from celery import shared_task
from django.db.models.functions import Now

from compensation.models import WorkerHeartbeat
from compensation.operations.approving import expire_due
from compensation.runner.claims import something_is_due
from compensation.runner.run import run_while_due


@shared_task(name="compensation.tasks.run_due", ignore_result=True)
def run_due() -> None:
    """Run what is due until nothing is."""
    run_while_due()


@shared_task(name="compensation.tasks.sweep", ignore_result=True, expires=30)
def sweep() -> None:
    """The safety net, every second: note that we live, run what is due."""
    worker = f"{socket.gethostname()}:{os.getpid()}"
    WorkerHeartbeat.objects.update_or_create(worker=worker, defaults={"seen_at": Now()})
    if something_is_due():
        run_while_due()


@shared_task(name="compensation.tasks.expire_approvals", ignore_result=True, expires=30)
def expire_approvals() -> None:
    """Expire the questions whose time has passed; apart from the sweep, so that neither can hold up the other."""
    expire_due()
