"""Read many tables as they were at one moment, while others write."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from django.db import connection, transaction


@contextmanager
def consistent_reads() -> Iterator[None]:
    """Let all queries of the block see one snapshot of the database, without blocking others.

    Inside an outer transaction its isolation applies: only tests do that.
    """
    database: Any = connection
    if database.in_atomic_block:
        yield
        return
    if database.vendor == "postgresql":
        with transaction.atomic():
            with database.cursor() as cursor:
                cursor.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ, READ ONLY")
            yield
        return
    database.ensure_connection()  # also sets the transaction mode of the settings
    mode = database.transaction_mode
    database.transaction_mode = "DEFERRED"  # IMMEDIATE would block all other writers
    try:
        with transaction.atomic():
            yield
    finally:
        database.transaction_mode = mode
