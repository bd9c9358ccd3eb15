"""Rows of a parquet file, read in a process of its own: a file of some kB may unpack to any number of bytes.

The library decides for itself how much memory a batch takes, and what the file says of its sizes need not be true. So
the process has a bound of memory, and ends where a row needs more.
"""

from __future__ import annotations

import base64
import json
import os
import resource
import struct
import subprocess
import sys
from collections.abc import Collection, Iterator
from pathlib import Path
from typing import IO, Any

from annotation.formats.documents import FormatError
from annotation.formats.external.multimodal_mind2web.parquet import parquet_rows
from annotation.formats.external.multimodal_mind2web.rows import Row
from annotation.records import Problem

MEMORY = 1536 * 2**20  # bytes of address space
LARGEST_MESSAGE = 256 * 2**20  # bytes of one row
LENGTH = struct.Struct(">Q")
ROOT = Path(__file__).parents[4]
PROGRAM = f"import sys; sys.path.insert(0, {str(ROOT)!r}); from {__name__} import serve; serve()"
COMMAND = [sys.executable, "-I", "-B", "-X", "utf8", "-c", PROGRAM]
# The system's own allocator, in one arena, which gives back what is large: others keep address space unused.
ENVIRONMENT = {
    "LC_ALL": "C.UTF-8",
    "ARROW_DEFAULT_MEMORY_POOL": "system",
    "MALLOC_ARENA_MAX": "1",
    "MALLOC_MMAP_THRESHOLD_": "131072",  # bytes
}

# ("row", number, values, problems), ("progress", done, total), ("refused", problems) or, last, ("end",)
Message = tuple[Any, ...]


class ProcessEnded(Exception):
    """The process ended before the file, as it does when it needs more memory than it may use."""


def read_messages(path: Path, columns: Collection[str], required: Collection[str]) -> Iterator[Message]:
    """Yield the messages of the process, except the last ("end",). Raises ProcessEnded."""
    arguments = [str(path.absolute()), ",".join(columns), ",".join(required)]
    with subprocess.Popen(  # noqa: S603 - our own module, in an interpreter of our own
        [*COMMAND, *arguments],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        env=ENVIRONMENT,
        cwd="/",
    ) as process:
        assert process.stdout is not None  # noqa: S101 - it is a pipe
        try:
            while (message := _receive(process.stdout)) != ("end",):
                yield message
        finally:
            process.kill()


def _receive(stream: IO[bytes]) -> Message:
    head = stream.read(LENGTH.size)
    if len(head) < LENGTH.size or (length := LENGTH.unpack(head)[0]) > LARGEST_MESSAGE:
        raise ProcessEnded
    data = stream.read(length)
    if len(data) < length:
        raise ProcessEnded
    try:
        return tuple(_decode(one) for one in json.loads(data))
    except (
        ValueError,
        TypeError,
        AttributeError,
        RecursionError,
    ) as error:  # not ours any more
        raise ProcessEnded from error


# JSON has no bytes, so a value is wrapped: bytes as {"bytes": base64}, an object as {"object": {...}}.


def _encode(value: Any) -> Any:
    """Return the value for JSON; ValueError where it is, or holds, neither text, bytes, number, list nor object."""
    if isinstance(value, bytes):
        return {"bytes": base64.b64encode(value).decode()}
    if isinstance(value, list | tuple):
        return [_encode(one) for one in value]
    if isinstance(value, dict):
        return {"object": {str(name): _encode(one) for name, one in value.items()}}
    if value is None or isinstance(value, str | int | float):
        return value
    raise ValueError(f"{type(value)} is not known")


def _decode(value: Any) -> Any:
    if isinstance(value, list):
        return [_decode(one) for one in value]
    if not isinstance(value, dict):
        return value
    if "bytes" in value:
        return base64.b64decode(value["bytes"])
    return {name: _decode(one) for name, one in value.get("object", {}).items()}


# --- the process ------------------------------------------------------------------------------------------------------


def serve() -> None:
    """Read the file that the arguments name, and write messages to the standard output."""
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    path, columns, required = Path(sys.argv[1]), sys.argv[2].split(","), sys.argv[3].split(",")
    try:
        for row in parquet_rows(path, columns, required, lambda done, total: _send("progress", done, total)):
            _send_row(row)
        _send("end")
    except FormatError as error:
        _send("refused", _plain(error.problems))
    sys.stdout.flush()
    os._exit(0)


def _send_row(row: Row) -> None:
    for name in [name for name, value in row.values.items() if not _is_known(value)]:
        row.refuse("value_unreadable", f"{name} has values of a kind that is not known")
        del row.values[name]
    _send("row", row.number, row.values, _plain(row.problems))


def _is_known(value: Any) -> bool:
    try:
        _encode(value)
    except ValueError:
        return False
    return True


def _plain(problems: Collection[Problem]) -> list[tuple[str, str, str]]:
    return [(one.code, one.message, one.where) for one in problems]


def _send(*message: Any) -> None:
    data = json.dumps(_encode(message)).encode()
    if len(data) > LARGEST_MESSAGE:
        raise MemoryError
    sys.stdout.buffer.write(LENGTH.pack(len(data)) + data)
