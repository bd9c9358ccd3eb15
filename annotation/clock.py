"""The database's clock. What decides by time, such as a lease, must not depend on which machine asks."""

from __future__ import annotations

import time
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from django.db import connection
from django.utils import timezone

MEASURED_FOR = 60.0  # seconds; in between the time is counted on, so that most calls need no query


@dataclass(frozen=True, slots=True)
class _Measurement:
    """The database's time at an instant of the monotonic clock, which no setting of this machine's clock changes."""

    at: float
    time: datetime


_last: _Measurement | None = None


def now() -> datetime:
    """Return the database's time, give or take half a round trip. SQLite has the clock of this machine.

    On PostgreSQL it needs a query a minute, outside of what Django counts as one.
    """
    global _last  # noqa: PLW0603 - one for all threads; two that measure at the same time do no harm
    if connection.vendor != "postgresql":
        return timezone.now()
    if _last is None or time.monotonic() - _last.at > MEASURED_FOR:
        _last = _measure()
    return _last.time + timedelta(seconds=time.monotonic() - _last.at)


def _measure() -> _Measurement:
    connection.ensure_connection()
    asked_at = time.monotonic()
    with connection.wrap_database_errors:
        (found,) = connection.connection.execute("SELECT clock_timestamp()").fetchone()
    return _Measurement((asked_at + time.monotonic()) / 2, found.astimezone(UTC))
