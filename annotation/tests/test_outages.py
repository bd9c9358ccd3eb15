"""Errors that report an outage, as the drivers raise them, and errors that do not."""

import errno
import sqlite3
from contextlib import closing

import psycopg
import pytest
from botocore.exceptions import ClientError, EndpointConnectionError, ReadTimeoutError
from django.db import DataError, OperationalError, ProgrammingError
from django.http import UnreadablePostError

from annotation.outages import Outage, find_outage


def database_error(driver_error, kind=OperationalError):
    error = kind(str(driver_error))
    error.__cause__ = driver_error  # as Django raises it
    return error


def sqlite_error(tmp_path, statement, *, pages=0):
    with closing(sqlite3.connect(tmp_path / "database")) as connection:
        connection.execute("CREATE TABLE t (x)")
        if pages:
            connection.execute(f"PRAGMA max_page_count = {pages}")
        with pytest.raises(sqlite3.OperationalError) as raised:
            connection.execute(statement)
    return database_error(raised.value)


def test_a_full_sqlite_database_is_a_full_disk(tmp_path):
    error = sqlite_error(tmp_path, "INSERT INTO t VALUES (zeroblob(1000000))", pages=2)
    assert find_outage(error) is Outage.DISK


def test_a_locked_sqlite_database_is_not_available(tmp_path):
    file = tmp_path / "database"
    with closing(sqlite3.connect(file)) as writer, closing(sqlite3.connect(file, timeout=0)) as other:
        writer.execute("BEGIN EXCLUSIVE")
        with pytest.raises(sqlite3.OperationalError) as raised:
            other.execute("BEGIN IMMEDIATE")
    assert find_outage(database_error(raised.value)) is Outage.DATABASE


def test_a_sqlite_file_that_cannot_be_opened_is_not_available(tmp_path):
    with pytest.raises(sqlite3.OperationalError) as raised:
        sqlite3.connect(tmp_path / "no folder" / "database")
    assert find_outage(database_error(raised.value)) is Outage.DATABASE


def test_a_wrong_sqlite_statement_is_our_error(tmp_path):
    assert find_outage(sqlite_error(tmp_path, "SELECT y FROM t")) is None


def test_a_postgresql_that_refuses_connections_is_not_available():
    with pytest.raises(psycopg.OperationalError) as raised:
        psycopg.connect("host=127.0.0.1 port=1", connect_timeout=2)
    assert find_outage(database_error(raised.value)) is Outage.DATABASE


@pytest.mark.parametrize(
    ("kind", "outage"),
    [
        (psycopg.errors.DiskFull, Outage.DISK),
        (psycopg.errors.AdminShutdown, Outage.DATABASE),
        (psycopg.errors.QueryCanceled, Outage.DATABASE),
        (psycopg.errors.StatementTooComplex, None),
    ],
)
def test_postgresql_errors_are_distinguished_by_sqlstate(kind, outage):
    assert find_outage(database_error(kind("..."))) is outage


@pytest.mark.parametrize(
    ("error", "outage"),
    [
        (OSError(errno.ENOSPC, "No space left on device"), Outage.DISK),
        (OSError(errno.EDQUOT, "Disk quota exceeded"), Outage.DISK),
        (OSError(errno.EIO, "Input/output error"), Outage.STORE),
        (EndpointConnectionError(endpoint_url="http://store"), Outage.STORE),
        (ReadTimeoutError(endpoint_url="http://store"), Outage.STORE),
        (ClientError({"Error": {"Code": "503"}}, "GetObject"), Outage.STORE),
        (FileNotFoundError(errno.ENOENT, "lost"), None),
        (OSError("the stored file is damaged"), None),
        (UnreadablePostError("the client left"), None),
        (database_error(psycopg.errors.NumericValueOutOfRange("..."), DataError), None),
        (database_error(psycopg.errors.UndefinedTable("..."), ProgrammingError), None),
        (ValueError("ours"), None),
        (None, None),
    ],
)
def test_file_errors_are_distinguished_from_our_own_errors(error, outage):
    assert find_outage(error) is outage


def test_an_outage_is_found_behind_the_error_that_it_caused():
    error = RuntimeError("The export failed.")
    error.__cause__ = OSError(errno.ENOSPC, "No space left on device")
    assert find_outage(error) is Outage.DISK
