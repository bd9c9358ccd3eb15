"""The database's clock. Leases and other decisions by time must not depend on the caller's machine."""

from __future__ import annotations

import time
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from django.db import connection
from django.utils import timezone

MEASURED_FOR = 60.0  # seconds; in between the monotonic clock is used, so that most calls need no query


@dataclass(frozen=True, slots=True)
class _Measurement:
    """The database's time at an instant of the monotonic clock, which does not depend on this machine's date."""

    at: float
    time: datetime


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
