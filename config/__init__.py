"""Settings, URLs, the server and the worker. This package may import every app; apps do not import it."""

from config.celery import app as celery_app

__all__ = ["celery_app"]
