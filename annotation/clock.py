"""The database's clock. Leases and other decisions by time must not depend on the caller's machine."""

from __future__ import annotations

import time
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

from django.db import connection, models
from django.utils import timezone

MEASURED_FOR = 60.0  # seconds; in between the monotonic clock is used, so that most calls need no query


@dataclass(frozen=True, slots=True)
class _Measurement:
    """The database's time at an instant of the monotonic clock, which does not depend on this machine's date."""

    at: float
    time: datetime


class CreatedAtField(models.DateTimeField):
    """The database's time at which a row was created: ``auto_now_add`` without the clock of this machine."""

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options | {"auto_now_add": True})

    def pre_save(self, model_instance: models.Model, add: bool) -> Any:
        if not add:
            return getattr(model_instance, self.attname)
        setattr(model_instance, self.attname, created_at := now())
        return created_at

    def deconstruct(self) -> Any:
        # The column is that of Django's field, so that migrations need not name this one.
        name, _, args, options = super().deconstruct()
        return name, "django.db.models.DateTimeField", args, options


_last: _Measurement | None = None


def now() -> datetime:
    """Return the database's time, exact to half a round trip. SQLite uses the clock of this machine.

    On PostgreSQL it sends one query a minute, which Django does not count.
    """
    global _last  # noqa: PLW0603 - shared by all threads; simultaneous measurements do no harm
    if connection.vendor != "postgresql":
        return timezone.now()
    if _last is None or time.monotonic() - _last.at > MEASURED_FOR:
        _last = _measure()
    return _last.time + timedelta(seconds=time.monotonic() - _last.at)


def _measure() -> _Measurement:
    connection.close_if_health_check_failed()  # as Django does before each query
    connection.ensure_connection()
    asked_at = time.monotonic()
    with connection.wrap_database_errors:
        (found,) = connection.connection.execute("SELECT clock_timestamp()").fetchone()
    return _Measurement((asked_at + time.monotonic()) / 2, found.astimezone(UTC))
