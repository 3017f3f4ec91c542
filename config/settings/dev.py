"""The default: nothing to configure; every secret is generated once in DATA_DIR."""

import structlog

from config import env
from config.settings.base import *  # noqa: F403
from config.settings.base import DATA_DIR, logging_config

SECRET_KEY = env.text("SECRET_KEY") or env.generated(DATA_DIR / "secret.key")
CREDENTIAL_KEYS = env.text("RECOURSE_CREDENTIAL_KEYS") or env.generated(
    DATA_DIR / "credential.key", env.new_credential_key
)
FAILPOINT = env.text("RECOURSE_FAILPOINT")
LOGGING = logging_config(structlog.dev.ConsoleRenderer(colors=False, exception_formatter=structlog.dev.plain_traceback))
