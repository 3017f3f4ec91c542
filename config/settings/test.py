"""Tests: a DATA_DIR of their own, so that they never meet the server or the messages of a running demo."""

from config import env
from config.settings.base import *  # noqa: F403
from config.settings.base import databases

DATA_DIR = env.data_dir() / "test"
DATABASES = databases(DATA_DIR)
BROKER_DIR = DATA_DIR / "broker"
CELERY_BROKER_TRANSPORT_OPTIONS = {} if env.text("CELERY_BROKER_URL") else {"folder": str(BROKER_DIR)}
CELERY_BEAT_SCHEDULE_FILENAME = str(DATA_DIR / "beat-schedule")
SECRET_KEY = env.generated(DATA_DIR / "secret.key")
CREDENTIAL_KEYS = env.generated(DATA_DIR / "credential.key", env.new_credential_key)
FAILPOINT = env.text("RECOURSE_FAILPOINT")
PASSWORD_HASHERS = ["django.contrib.auth.hashers.MD5PasswordHasher"]
