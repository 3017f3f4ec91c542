"""The Celery application. A message is only a wake-up: the database is the one place where work waits."""

import logging.config
import os
from typing import Any

from celery import Celery, signals
from django.conf import settings
from kombu.transport import TRANSPORT_ALIASES

from config.services import ensure_database

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "config.settings.dev")
# A scheme cannot name a module, so the stock transport's name leads to ours (see config.broker for why).
TRANSPORT_ALIASES["filesystem"] = "config.broker:Transport"

WORKER_OPTIONS = ("--without-gossip", "--without-mingle", "--without-heartbeat")

app = Celery("recourse")
app.config_from_object("django.conf:settings", namespace="CELERY")
app.autodiscover_tasks()


@signals.celeryd_init.connect
@signals.beat_init.connect
def _ensure_database(**_: Any) -> None:
    ensure_database()


@signals.setup_logging.connect
def _log_as_django_does(**_: Any) -> None:
    logging.config.dictConfig(settings.LOGGING)
