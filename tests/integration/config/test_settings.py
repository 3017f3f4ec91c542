"""Settings are chosen and refused when a process starts, so each case here is a process."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from config.env import BASE_DIR

COMPLETE = {
    "DATABASE_URL": "postgresql://recourse@db.internal/recourse",
    "CELERY_BROKER_URL": "redis://broker.internal:6379/0",
    "SECRET_KEY": "only-for-this-test-" * 3,
    "ALLOWED_HOSTS": "recourse.internal",
}
SHOW = """
import django
django.setup()
from django.conf import settings
print(settings.{name})
"""


def run(settings: str, tmp_path: Path, *command: str, **environment: str) -> subprocess.CompletedProcess[str]:
    kept = {name: value for name, value in os.environ.items() if name not in COMPLETE}
    env = {**kept, "DJANGO_SETTINGS_MODULE": f"config.settings.{settings}", "DATA_DIR": str(tmp_path), **environment}
    return subprocess.run(
        [sys.executable, *command], env=env, cwd=BASE_DIR, capture_output=True, text=True, check=False
    )


def test_production_refuses_to_start_and_names_all_that_is_missing(tmp_path: Path) -> None:
    refused = run("prod", tmp_path, "manage.py", "check", CELERY_BROKER_URL=COMPLETE["CELERY_BROKER_URL"])
    assert refused.returncode != 0
    assert "missing: DATABASE_URL, SECRET_KEY." in refused.stderr
    assert not list(tmp_path.iterdir()), "production neither starts a server of its own nor makes up a secret"


def test_production_is_safe_by_default(tmp_path: Path) -> None:
    shown = "DEBUG, settings.SESSION_COOKIE_SECURE, settings.CSRF_COOKIE_SECURE, settings.SECURE_SSL_REDIRECT"
    started = run("prod", tmp_path, "-c", SHOW.format(name=shown), **COMPLETE)
    assert started.stdout.strip() == "False True True True", started.stderr


def test_production_passes_djangos_own_deployment_checks(tmp_path: Path) -> None:
    checked = run(
        "prod", tmp_path, "manage.py", "check", "--deploy", "--tag=security", "--fail-level=WARNING", **COMPLETE
    )
    assert checked.returncode == 0, checked.stderr


def test_development_needs_nothing_and_keeps_its_secret(tmp_path: Path) -> None:
    first, second = (run("dev", tmp_path, "-c", SHOW.format(name="SECRET_KEY")) for _ in range(2))
    assert len(first.stdout.strip()) >= 50, first.stderr
    assert first.stdout == second.stdout


@pytest.mark.parametrize("settings", ["dev", "test"])
def test_the_folder_is_the_broker_unless_a_url_names_another(tmp_path: Path, settings: str) -> None:
    shown = "CELERY_BROKER_URL, settings.CELERY_BROKER_TRANSPORT_OPTIONS"
    default = run(settings, tmp_path, "-c", SHOW.format(name=shown))
    assert default.stdout.startswith("filesystem://"), default.stderr
    assert str(tmp_path) in default.stdout
    named = run(settings, tmp_path, "-c", SHOW.format(name=shown), CELERY_BROKER_URL=COMPLETE["CELERY_BROKER_URL"])
    assert named.stdout.strip() == f"{COMPLETE['CELERY_BROKER_URL']} {{}}"


def test_a_database_that_cannot_start_ends_the_command_with_the_reason(tmp_path: Path) -> None:
    (tmp_path / "pg").mkdir()
    (tmp_path / "pg" / "PG_VERSION").write_text("9.6\n")
    refused = run("dev", tmp_path, "manage.py", "check")
    assert refused.returncode == 2
    assert str(tmp_path / "embedded.log") in refused.stderr
    assert "Traceback" not in refused.stderr
