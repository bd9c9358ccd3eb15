"""Distinguish an outage (a server that does not answer, a full disk) from our own errors."""

from __future__ import annotations

import errno
import sqlite3
from enum import Enum
from http import HTTPStatus

from django.db import InterfaceError, OperationalError
from django.http import UnreadablePostError

from annotation.screenshots import STORE_ERRORS, BotoCoreError

FULL_DISK_STATE = "53100"  # SQLSTATE disk_full
OUR_ERROR_STATES = "54"  # SQLSTATE class program_limit_exceeded: the statement itself is too large
FULL_DISK_NUMBERS = (errno.ENOSPC, errno.EDQUOT)
AWAY_IN_SQLITE = {
    sqlite3.SQLITE_BUSY,
    sqlite3.SQLITE_LOCKED,
    sqlite3.SQLITE_READONLY,
    sqlite3.SQLITE_IOERR,
    sqlite3.SQLITE_CANTOPEN,
    sqlite3.SQLITE_PROTOCOL,
}


class Outage(Enum):
    """An unavailable service: HTTP status, seconds for Retry-After, title and advice."""

    DATABASE = (
        HTTPStatus.SERVICE_UNAVAILABLE,
        5,
        "The database is not available",
        "WebVerdict cannot connect to its database. Try again in a few seconds.",
    )
    STORE = (
        HTTPStatus.SERVICE_UNAVAILABLE,
        10,
        "The file store is not available",
        "WebVerdict cannot read or save files. Try again in a few seconds.",
    )
    DISK = (
        HTTPStatus.INSUFFICIENT_STORAGE,
        60,
        "The disk is full",
        "WebVerdict cannot save anything until the operator frees disk space. Try again later.",
    )

    def __init__(self, status: HTTPStatus, retry_after: int, title: str, advice: str) -> None:
        self.status, self.retry_after, self.title, self.advice = status, retry_after, title, advice


def find_outage(error: BaseException | None) -> Outage | None:
    """Return the outage that ``error`` or one of its causes reports; None for any other error."""
    while error is not None:
        if (outage := _outage(error)) is not None:
            return outage
        error = error.__cause__
    return None


def _outage(error: BaseException) -> Outage | None:
    if isinstance(error, (OperationalError, InterfaceError)):
        return _database_outage(error.__cause__)
    if isinstance(error, (FileNotFoundError, UnreadablePostError)):  # a lost file; a client that disconnected
        return None
    if isinstance(error, OSError) and error.errno in FULL_DISK_NUMBERS:
        return Outage.DISK
    if isinstance(error, BotoCoreError):  # some are OSErrors too, without a number
        return Outage.STORE
    if isinstance(error, OSError) and error.errno is None:  # raised by Python code and not by the system
        return None
    return Outage.STORE if isinstance(error, STORE_ERRORS) else None


def _database_outage(driver_error: BaseException | None) -> Outage | None:
    if isinstance(driver_error, sqlite3.Error):
        code = getattr(driver_error, "sqlite_errorcode", sqlite3.SQLITE_ERROR) & 0xFF  # without the extension
        if code == sqlite3.SQLITE_FULL:
            return Outage.DISK
        return Outage.DATABASE if code in AWAY_IN_SQLITE else None
    state = getattr(driver_error, "sqlstate", None) or ""
    if state == FULL_DISK_STATE:
        return Outage.DISK
    return None if state.startswith(OUR_ERROR_STATES) else Outage.DATABASE
