"""`manage.py worker`: what runs unwinds on one machine, without the web."""

import sys
from argparse import ArgumentParser
from collections.abc import Iterator
from typing import Any, Final

from django.conf import settings
from django.core.management.base import BaseCommand, CommandError

from compensation.management.supervision import Child, SupervisionError, Supervisor
from config.celery import WORKER_OPTIONS

GRACE_S: Final = 10.0
CELERY: Final = (sys.executable, "-m", "celery", "--quiet", "--app", "config")
# Django's checks load every page and API view, which a worker never serves.
NO_CHECKS: Final = {"CELERY_SKIP_CHECKS": "1"}


class Command(BaseCommand):
    """Runs until SIGTERM or SIGINT, exit code 0; 1 when a part of it keeps dying.

    A call in flight may finish within the grace. One that is cut off loses nothing: its lease ends and the entry is
    presented again under the same key (CMP-404).
    """

    requires_system_checks = ()
    help = "Run unwinds: the Celery worker processes and the beat of one machine."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--processes", type=int, default=2, help="worker processes (default: 2)")
        parser.add_argument("--no-beat", action="store_true", help="another machine runs the beat")
        parser.add_argument("--grace", type=float, default=GRACE_S, help=f"seconds to finish (default: {GRACE_S:g})")

    def handle(self, *args: Any, **options: Any) -> None:
        if options["processes"] < 1:
            raise CommandError("--processes must be at least 1.")
        children = list(_children(processes=options["processes"], beat=not options["no_beat"]))
        try:
            Supervisor(children, grace_s=options["grace"], say=self.stderr.write).run()
        except SupervisionError as error:
            raise CommandError(str(error)) from error


def _children(*, processes: int, beat: bool) -> Iterator[Child]:
    for number in range(1, processes + 1):
        name = f"worker{number}"
        options = ["worker", "--hostname", f"{name}@%h", *WORKER_OPTIONS]
        yield Child(name=name, command=[*CELERY, *options], environment=NO_CHECKS)
    if beat:
        schedule = ["--schedule", settings.CELERY_BEAT_SCHEDULE_FILENAME]
        options = ["beat", "--pidfile", "", *schedule]
        yield Child(name="beat", command=[*CELERY, *options], environment=NO_CHECKS)
