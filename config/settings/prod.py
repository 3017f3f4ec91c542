"""Production: a PostgreSQL URL, a Redis or RabbitMQ URL and secrets from the environment, and HTTPS in front."""

from config import env

env.require("DATABASE_URL", "CELERY_BROKER_URL", "SECRET_KEY")

from config.settings.base import *  # noqa: E402, F403
from config.settings.base import BASE_DIR, SILENCED_SYSTEM_CHECKS  # noqa: E402

SECRET_KEY = env.text("SECRET_KEY")
CREDENTIAL_KEYS = env.text("RECOURSE_CREDENTIAL_KEYS")

SESSION_COOKIE_SECURE = True
CSRF_COOKIE_SECURE = True
SECURE_SSL_REDIRECT = env.flag("SECURE_SSL_REDIRECT", default=True)
SECURE_REDIRECT_EXEMPT = [r"^healthz$", r"^readyz$"]
SECURE_HSTS_SECONDS = env.number("SECURE_HSTS_SECONDS", 31_536_000, least=0)
# Subdomains and preload lists bind more than this host: that is for its operator to decide, at the proxy.
SILENCED_SYSTEM_CHECKS = [*SILENCED_SYSTEM_CHECKS, "security.W005", "security.W021"]
SECURE_PROXY_SSL_HEADER = ("HTTP_X_FORWARDED_PROTO", "https")

STATIC_ROOT = BASE_DIR / "staticfiles"
WHITENOISE_USE_FINDERS = False
STORAGES = {
    "default": {"BACKEND": "django.core.files.storage.FileSystemStorage"},
    "staticfiles": {"BACKEND": "whitenoise.storage.CompressedManifestStaticFilesStorage"},
}
