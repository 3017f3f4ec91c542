"""Starts what the settings leave to the project itself: today the embedded PostgreSQL."""

import sys

from django.conf import settings

from config import embedded
from config.postgres_guardian import EmbeddedPostgresError


def ensure_database() -> None:
    """Start the embedded server unless DATABASE_URL names one; exits with code 2 and the reason when it cannot."""
    if not settings.EMBEDDED_DATABASE:
        return
    try:
        embedded.ensure(settings.DATA_DIR)
    except EmbeddedPostgresError as error:
        sys.stderr.write(f"{error}\n")
        sys.exit(2)
