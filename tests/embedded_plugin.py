"""Starts the embedded PostgreSQL for the whole test session, unless DATABASE_URL names another server."""

import pytest

from config.services import ensure_database


@pytest.hookimpl(trylast=True)
def pytest_configure(config: pytest.Config) -> None:
    """After pytest-django has chosen the settings."""
    if not config.option.collectonly:
        ensure_database()
