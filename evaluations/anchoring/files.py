"""A file of published heads, one line each, that only grows."""

from __future__ import annotations

import fcntl
import os
from pathlib import Path

from evaluations.anchoring.posting import NotPublished

FLAGS = os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC


def append_line(file: Path, line: str) -> None:
    """Append a whole line, and be sure that the disk has it; NotPublished when it could not be written whole.

    The line is one write, so a killed process leaves no part of one. What a full disk or a crash of the machine tore is
    ended by a line feed first: a reader has one bad line, and loses none.
    """
    try:
        descriptor = os.open(file, FLAGS, 0o644)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX)  # until it is closed: nobody sees the line of another as a torn one
            data = (_ending(descriptor) + line + "\n").encode()
            written = os.write(descriptor, data)
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
    except FileNotFoundError:
        says = f"{file.name} could not be written: the folder that ANCHOR_FILE names does not exist; make it first."
        raise NotPublished(says) from None
    except OSError as error:
        raise NotPublished(f"{file.name} could not be written: {error.strerror}.") from None
    if written != len(data):
        raise NotPublished(f"{file.name} took {written} of {len(data)} bytes: the disk is full.")


def _ending(descriptor: int) -> str:
    size = os.fstat(descriptor).st_size
    return "\n" if size and os.pread(descriptor, 1, size - 1) != b"\n" else ""
