"""Settings shared by every environment; dev, test and prod add theirs."""

from pathlib import Path
from typing import Any

import django_stubs_ext
import structlog
from csp.constants import NONCE, NONE, SELF

from config import env

django_stubs_ext.monkeypatch()  # annotations such as UUIDField[UUID, UUID] are evaluated when models are defined

BASE_DIR: Path = env.BASE_DIR
DATA_DIR: Path = env.data_dir()
PORT = env.number("PORT", 8000)
SANDBOX_PORT = env.number("SANDBOX_PORT", 8090)
SANDBOX_URL = f"http://127.0.0.1:{SANDBOX_PORT}"

DEBUG = False
ALLOWED_HOSTS = env.words("ALLOWED_HOSTS", ["localhost", "127.0.0.1", "[::1]"])
CSRF_TRUSTED_ORIGINS = env.words("CSRF_TRUSTED_ORIGINS", [])
ROOT_URLCONF = "config.urls"
WSGI_APPLICATION = "config.wsgi.application"
ASGI_APPLICATION = "config.asgi.application"

INSTALLED_APPS = [
    "audit",
    "approvals",
    "compensation",
    "django.contrib.auth",
    "django.contrib.contenttypes",
    "django.contrib.sessions",
    "django.contrib.messages",
    "django.contrib.staticfiles",
    "django.contrib.postgres",
    "guardian",
    "pgtrigger",
    "rest_framework",
    "django_filters",
    "drf_spectacular",
    "django_htmx",
    "csp",
    "axes",
]

MIDDLEWARE = [
    "django.middleware.security.SecurityMiddleware",
    "whitenoise.middleware.WhiteNoiseMiddleware",
    "csp.middleware.CSPMiddleware",
    "django.contrib.sessions.middleware.SessionMiddleware",
    "django.middleware.common.CommonMiddleware",
    "django.middleware.csrf.CsrfViewMiddleware",
    "django.contrib.auth.middleware.AuthenticationMiddleware",
    "django.contrib.messages.middleware.MessageMiddleware",
    "django.middleware.clickjacking.XFrameOptionsMiddleware",
    "django_htmx.middleware.HtmxMiddleware",
    "axes.middleware.AxesMiddleware",
]

TEMPLATES = [
    {
        "BACKEND": "django.template.backends.django.DjangoTemplates",
        "DIRS": [BASE_DIR / "templates"],
        "APP_DIRS": True,
        "OPTIONS": {
            "context_processors": [
                "django.template.context_processors.request",
                "django.contrib.auth.context_processors.auth",
                "django.contrib.messages.context_processors.messages",
                "csp.context_processors.nonce",
            ],
        },
    }
]

# --- database ----------------------------------------------------------------
EMBEDDED_DATABASE = not env.text("DATABASE_URL")
# One pool per process: 16 web threads share it, and a pooled connection must not also be kept by Django.
POOL = {"min_size": 1, "max_size": 16, "timeout": 10}


def databases(directory: Path) -> dict[str, dict[str, Any]]:
    """Django's DATABASES for the server that the environment names, or for the embedded one of `directory`."""
    connection = env.database(directory)
    options = {**connection["OPTIONS"], "pool": POOL}
    # A connection that a restart of the server cut is found out when it leaves the pool, not by whom it is given to.
    more = {"CONN_MAX_AGE": 0, "CONN_HEALTH_CHECKS": True, "ATOMIC_REQUESTS": False}
    return {"default": {**connection, "OPTIONS": options, **more}}


DATABASES = databases(DATA_DIR)
DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"

# --- people ------------------------------------------------------------------
AUTH_USER_MODEL = "audit.User"
AUTHENTICATION_BACKENDS = ["axes.backends.AxesStandaloneBackend", "django.contrib.auth.backends.ModelBackend"]
AXES_LOCKOUT_TEMPLATE = "locked_out.html"
AUTH_PASSWORD_VALIDATORS = [
    {"NAME": f"django.contrib.auth.password_validation.{name}"}
    for name in (
        "UserAttributeSimilarityValidator",
        "MinimumLengthValidator",
        "CommonPasswordValidator",
        "NumericPasswordValidator",
    )
]
LOGIN_URL = "/login/"
LOGIN_REDIRECT_URL = "/"
SESSION_COOKIE_AGE = 12 * 60 * 60
SESSION_COOKIE_HTTPONLY = True
SESSION_COOKIE_SAMESITE = "Lax"
CSRF_COOKIE_HTTPONLY = True

ANONYMOUS_USER_NAME = None
GUARDIAN_MONKEY_PATCH_USER = False
GUARDIAN_MONKEY_PATCH_GROUP = False
# Permission is asked through audit.authority alone, so guardian's backend stays out of AUTHENTICATION_BACKENDS.
SILENCED_SYSTEM_CHECKS = ["guardian.W001"]

AXES_FAILURE_LIMIT = 10
AXES_COOLOFF_TIME = 0.25  # hours
AXES_LOCKOUT_PARAMETERS = [["username", "ip_address"]]
AXES_RESET_ON_SUCCESS = True
AXES_VERBOSE = False

# --- web ---------------------------------------------------------------------
STATIC_URL = "/static/"
STATICFILES_DIRS = [BASE_DIR / "static"]
WHITENOISE_USE_FINDERS = True

X_FRAME_OPTIONS = "DENY"
SECURE_REFERRER_POLICY = "same-origin"
CONTENT_SECURITY_POLICY = {
    "DIRECTIVES": {
        "default-src": [NONE],
        "script-src": [SELF, NONCE],
        "style-src": [SELF, NONCE],
        "img-src": [SELF, "data:"],
        "font-src": [SELF],
        "connect-src": [SELF],
        "form-action": [SELF],
        "base-uri": [NONE],
        "frame-ancestors": [NONE],
    }
}

REST_FRAMEWORK = {
    "DEFAULT_RENDERER_CLASSES": ["rest_framework.renderers.JSONRenderer"],
    "DEFAULT_PARSER_CLASSES": ["rest_framework.parsers.JSONParser"],
    "DEFAULT_SCHEMA_CLASS": "drf_spectacular.openapi.AutoSchema",
    "DEFAULT_FILTER_BACKENDS": ["django_filters.rest_framework.DjangoFilterBackend"],
    "UNAUTHENTICATED_USER": None,
}
SPECTACULAR_SETTINGS = {"TITLE": "Recourse", "VERSION": "1.0.0", "SERVE_INCLUDE_SCHEMA": False}

# --- language and time -------------------------------------------------------
LANGUAGE_CODE = "en"
USE_I18N = False
USE_TZ = True
TIME_ZONE = "UTC"

# --- workers -----------------------------------------------------------------
BROKER_DIR = DATA_DIR / "broker"
CELERY_BROKER_URL = env.text("CELERY_BROKER_URL", "filesystem://")
CELERY_BROKER_TRANSPORT_OPTIONS = {"folder": str(BROKER_DIR)} if CELERY_BROKER_URL == "filesystem://" else {}
CELERY_BROKER_CONNECTION_RETRY_ON_STARTUP = True
CELERY_TASK_DEFAULT_QUEUE = env.text("RECOURSE_QUEUE", "recourse")
CELERY_RESULT_BACKEND = None
CELERY_TASK_IGNORE_RESULT = True
CELERY_TIMEZONE = TIME_ZONE
CELERY_WORKER_POOL = "threads"
CELERY_WORKER_PREFETCH_MULTIPLIER = 1
CELERY_WORKER_ENABLE_REMOTE_CONTROL = False
CELERY_WORKER_HIJACK_ROOT_LOGGER = False
CELERY_BEAT_SCHEDULE_FILENAME = str(DATA_DIR / "beat-schedule")
CELERY_BEAT_SCHEDULE = {
    # The safety net: it finds whatever is due, so losing every message loses nothing. A late one is worth nothing.
    "sweep": {"task": "compensation.tasks.sweep", "schedule": 1.0, "options": {"expires": 5.0}},
    "expire-approvals": {"task": "compensation.tasks.expire_approvals", "schedule": 2.0, "options": {"expires": 5.0}},
}

# --- the engine --------------------------------------------------------------
COMPENSATION_ENABLED = env.flag("COMPENSATION_ENABLED", default=True)
LEASE_MARGIN_MS = env.number("RECOURSE_LEASE_MARGIN_MS", 5_000)
RUNNER_SLOTS = env.number("RECOURSE_RUNNER_SLOTS", 2)
RUNNER_CONCURRENCY = env.number("RECOURSE_RUNNER_CONCURRENCY", 200)
RUNNER_LINGER_MS = env.number("RECOURSE_RUNNER_LINGER_MS", 1_500, least=0)
BREAKER_THRESHOLD = env.number("RECOURSE_BREAKER_THRESHOLD", 10)
BREAKER_COOLDOWN_MS = env.number("RECOURSE_BREAKER_COOLDOWN_MS", 15_000)
CRASH_LIMIT = env.number("RECOURSE_CRASH_LIMIT", 10)
RESPONSE_CAP = env.number("RECOURSE_RESPONSE_CAP", 262_144)
RATE_LIMIT_PER_MINUTE = env.number("RECOURSE_RATE_LIMIT_PER_MINUTE", 6_000)
# A named point at which a process kills itself, for crash tests; dev and test alone read it from the environment.
FAILPOINT = ""
CELERY_WORKER_CONCURRENCY = RUNNER_SLOTS + 2  # every runner may be draining while a sweep still gets a thread

# --- logs --------------------------------------------------------------------
LOG_PROCESSORS: list[structlog.typing.Processor] = [
    structlog.contextvars.merge_contextvars,
    structlog.stdlib.add_log_level,
    structlog.stdlib.add_logger_name,
    structlog.processors.TimeStamper(fmt="iso", utc=True),
    structlog.processors.StackInfoRenderer(),
]


def logging_config(renderer: structlog.typing.Processor) -> dict[str, Any]:
    """One handler on stderr for structlog and for the standard library alike, written by `renderer`."""
    remove_meta = structlog.stdlib.ProcessorFormatter.remove_processors_meta
    return {
        "version": 1,
        "disable_existing_loggers": False,
        "formatters": {
            "line": {
                "()": structlog.stdlib.ProcessorFormatter,
                "foreign_pre_chain": LOG_PROCESSORS,
                "processors": [remove_meta, structlog.processors.format_exc_info, renderer],
            }
        },
        "handlers": {"stderr": {"class": "logging.StreamHandler", "formatter": "line"}},
        "root": {"handlers": ["stderr"], "level": env.text("LOG_LEVEL", "INFO")},
    }


structlog.configure(
    processors=[*LOG_PROCESSORS, structlog.stdlib.ProcessorFormatter.wrap_for_formatter],
    logger_factory=structlog.stdlib.LoggerFactory(),
    cache_logger_on_first_use=True,
)
LOGGING = logging_config(structlog.processors.JSONRenderer())
