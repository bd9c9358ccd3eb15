"""Dump and restore the database, on SQLite by its online backup, on PostgreSQL by pg_dump and pg_restore."""

from __future__ import annotations

import os
import re
import shutil
import sqlite3
import subprocess
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

from django.apps import apps
from django.db import connection
from django.db.migrations.recorder import MigrationRecorder

from annotation.backups.manifest import BackupError, Head
from annotation.models import Event, Submission

INSTALL = "Install the client programs of PostgreSQL {major} (Debian: apt-get install postgresql-client-{major})."
MOST_SECONDS = 12 * 3600  # of a client program: a dump may take hours, so this only ends one that hangs
LOCK_WAIT = "60s"  # for tables that a migration has locked
MAJOR = re.compile(rb"\) (\d+)")


# --- content ---------------------------------------------------------------------------------------------------------


def list_migrations() -> list[tuple[str, str]]:
    return sorted(MigrationRecorder(connection).applied_migrations())


def count_rows() -> dict[str, int]:
    """Return the number of rows of each model, by its label such as ``annotation.Label``."""
    models = [model for model in apps.get_models(include_auto_created=True) if model._meta.managed]
    return {model._meta.label: model._base_manager.count() for model in models if not model._meta.proxy}


def list_heads() -> Iterator[Head]:
    """Yield the last event of each chain that has one, that of the instance first."""
    for submission in [None, *Submission.objects.order_by("pk").values_list("pk", flat=True)]:
        last = Event.objects.filter(submission=submission).order_by("-sequence").first()
        if last is not None:
            yield Head(submission=submission, sequence=last.sequence, hash=last.hash)


def describe_content() -> str:
    """Return "" for a database without tables; otherwise what it contains, for people."""
    with connection.cursor() as cursor:
        tables = connection.introspection.table_names(cursor)
        if not tables:
            return ""
        found = [f"{len(tables)} tables"]
        for table, noun in (("annotation_person", "people"), ("annotation_submission", "submissions")):
            if table in tables:
                cursor.execute(f"SELECT count(*) FROM {table}")  # noqa: S608 - a name of ours
                found.append(f"{cursor.fetchone()[0]} {noun}")
    return ", ".join(found)


def server_version() -> str:
    return ".".join(map(str, connection.get_database_version()))


# --- dump and restore ------------------------------------------------------------------------------------------------


def check_programs(name: str) -> None:
    """Raise BackupError unless the client program ``name`` is on the PATH and as new as the server."""
    if connection.vendor != "postgresql":
        return
    server = connection.get_database_version()[0]
    remedy = INSTALL.format(major=server)
    path = shutil.which(name)
    if path is None:
        raise BackupError(f"{name} was not found on the PATH. {remedy}")
    said = subprocess.run([path, "--version"], capture_output=True, timeout=60, check=False).stdout  # noqa: S603
    major = MAJOR.search(said)
    if major is None or int(major[1]) < server:
        raise BackupError(
            f"{path} is too old: {said.decode(errors='replace').strip()}. The server has version "
            f"{server_version()}. {remedy}"
        )


def dump(file: Path) -> None:
    """Write the database as the current transaction sees it; see `consistent_reads`. ``file`` must not exist."""
    os.close(os.open(file, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))
    database: Any = connection
    if database.vendor == "sqlite":
        list_migrations()  # a deferred transaction sees the moment of its first query
        with _sqlite_errors(), closing(sqlite3.connect(file)) as target:
            database.connection.backup(target)
            target.execute("PRAGMA journal_mode = DELETE")  # one file, without a journal beside it
        return
    with database.cursor() as cursor:
        cursor.execute("SELECT pg_export_snapshot()")
        (snapshot,) = cursor.fetchone()
    options = ["--format", "custom", "--snapshot", snapshot, "--lock-wait-timeout", LOCK_WAIT]
    _run("pg_dump", *options, "--file", str(file))


def restore(file: Path) -> None:
    """Fill the empty database from a dump, completely or not at all."""
    database: Any = connection
    database.ensure_connection()
    if database.vendor == "sqlite":
        with _sqlite_errors(), closing(sqlite3.connect(f"{file.absolute().as_uri()}?mode=ro", uri=True)) as source:
            source.backup(database.connection)
        return
    _run("pg_restore", "--exit-on-error", "--single-transaction", str(file))
    with database.cursor() as cursor:
        cursor.execute("ANALYZE")  # without statistics, the first queries would be slow


@contextmanager
def _sqlite_errors() -> Iterator[None]:
    try:
        yield
    except sqlite3.Error as error:
        raise BackupError(f"SQLite cannot copy the database: {error}.") from error


def _run(program: str, *arguments: str) -> None:
    """Run a client program on our database, with the options of our connection, so also with its time-outs."""
    from psycopg import conninfo, pq  # noqa: PLC0415 - only in the extra `server`

    known = {option.keyword.decode() for option in pq.Conninfo.get_defaults()}  # the others are for Python
    ours = {name: value for name, value in connection.get_connection_params().items() if name in known}
    secret = ours.pop("password", None)
    password = {"PGPASSWORD": secret} if secret else {}  # not as an argument, which others could read
    address = conninfo.make_conninfo(**ours)
    command = [program, "--no-owner", "--no-privileges", "--no-password", "--dbname", address, *arguments]
    given: dict[str, Any] = {"env": {**os.environ, **password}, "stdin": subprocess.DEVNULL, "timeout": MOST_SECONDS}
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=False, **given)  # noqa: S603 - no shell
    except subprocess.TimeoutExpired:
        raise BackupError(f"{program} did not end within {MOST_SECONDS // 3600} hours.") from None
    if done.returncode:
        lines = done.stderr.strip().splitlines() or [f"exit code {done.returncode}"]
        raise BackupError(f"{program} failed: {lines[0].removeprefix(f'{program}: error: ')}")
