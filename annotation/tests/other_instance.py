"""Another, empty instance for the rest of a block: its own database on the same server, and its own image folder."""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from django.db import connection


@contextmanager
def other_instance(settings: Any, folder: Path) -> Iterator[None]:
    """``folder`` must not exist. The secret key stays the same."""
    folder.mkdir()
    images, database = settings.MEDIA_ROOT, connection.settings_dict["NAME"]
    settings.MEDIA_ROOT = folder / "images"
    with _empty_database(folder) as name:
        _connect(name)
        try:
            yield
        finally:
            _connect(database)
            settings.MEDIA_ROOT = images


@contextmanager
def _empty_database(folder: Path) -> Iterator[str]:
    if connection.vendor == "sqlite":
        yield str(folder / "database.sqlite3")
        return
    name = f"test_webverdict_{uuid.uuid4().hex[:12]}"
    with connection._nodb_cursor() as cursor:
        cursor.execute(f"CREATE DATABASE {name}")
    try:
        yield name
    finally:
        with connection._nodb_cursor() as cursor:
            cursor.execute(f"DROP DATABASE {name} WITH (FORCE)")


def _connect(name: str) -> None:
    connection.close()
    connection.settings_dict["NAME"] = name
