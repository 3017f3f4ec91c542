"""`manage.py sandbox`: the downstream that the demo and a person at a terminal call."""

from __future__ import annotations

import sys
from argparse import ArgumentParser
from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand

from compensation.sandbox.process import add_arguments, run


class Command(BaseCommand):
    """Serve the sandbox until SIGTERM or SIGINT; exit code 1 when it cannot start."""

    help = "Run the sandbox downstream: a real HTTP server with a durable ledger and fault injection."
    requires_system_checks = ()

    def add_arguments(self, parser: ArgumentParser) -> None:
        add_arguments(parser, data_dir=str(settings.DATA_DIR))

    def handle(self, *args: Any, **options: Any) -> None:
        sys.exit(run(**{name: options[name] for name in ("host", "port", "data_dir", "delay_ms")}))
