"""Settings, entry points and the default services. The Celery app is loaded here so that every task binds to it."""

from config.celery import app as celery_app

__all__ = ["celery_app"]
