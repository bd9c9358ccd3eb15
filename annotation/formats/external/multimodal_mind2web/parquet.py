"""Read rows of a parquet file in a separate process: a file of some kB may unpack to any number of bytes.

The library decides how much memory a batch takes, and the sizes stated in the file may be false. So the process has a
memory limit, and ends if a row needs more. Memory contains a few rows, never a column.
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
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any

from annotation.extras import explain_missing
from annotation.formats.documents import FormatError
from annotation.formats.printable import listing, printable
from annotation.formats.registry import Progress
from annotation.records import Problem

MIB = 2**20
LONGEST_ROW = 64 * MIB  # bytes of a line of JSON, of a value in a parquet file
ROWS_AT_ONCE = 4  # each has a page of 300 kB, its candidates and an image: some MB
BUFFER = MIB  # bytes of a column that are read from the disk at once
MOST_ITEMS = 1_000_000  # of a value; pages have some thousand candidates
LARGEST_PART = 1024 * MIB  # unpacked bytes of one column in one row group

MEMORY = 1536 * 2**20  # bytes of address space
LARGEST_MESSAGE = 256 * 2**20  # bytes of one row
LENGTH = struct.Struct(">Q")
ROOT = Path(__file__).parents[4]
PROGRAM = f"import sys; sys.path.insert(0, {str(ROOT)!r}); from {__name__} import serve; serve()"
COMMAND = [sys.executable, "-I", "-B", "-X", "utf8", "-c", PROGRAM]
# The system's allocator, in one arena, returns large blocks; other allocators keep unused address space.
ENVIRONMENT = {
    "LC_ALL": "C.UTF-8",
    "ARROW_DEFAULT_MEMORY_POOL": "system",
    "MALLOC_ARENA_MAX": "1",
    "MALLOC_MMAP_THRESHOLD_": "131072",  # bytes
}


@dataclass(slots=True)
class Row:
    """A row, counted from 1; with ``problems`` it must not be used."""

    number: int
    values: dict[str, Any] = field(default_factory=dict)
    problems: list[Problem] = field(default_factory=list)

    def refuse(self, code: str, says: str) -> None:
        self.problems.append(row_problem(self.number, code, says))


def row_problem(number: int, code: str, says: str) -> Problem:
    where = f"row {number}"
    return Problem(code, f"{where}: {says}.", where)


def refusal(path: Path, code: str, says: str) -> FormatError:
    """Return the error for a problem of the whole file."""
    name = printable(path.name)
    return FormatError(Problem(code, f"{name}: {says}.", name))


class ProcessEnded(Exception):
    """The process ended before the end of the file, for example because it needed too much memory."""


def read_parquet(path: Path, columns: Collection[str], required: Collection[str], progress: Progress) -> Iterator[Row]:
    """Yield the rows in order. Raises FormatError for problems of the file."""
    if missing := explain_missing("pyarrow", "Reading a parquet file"):
        raise FormatError(Problem("parquet_unsupported", missing, printable(path.name)))
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
                kind, *content = message
                if kind == "row":
                    number, values, problems = content
                    yield Row(number, values, [Problem(*each) for each in problems])
                elif kind == "progress":
                    progress(*content)
                else:
                    raise FormatError(*(Problem(*each) for each in content[0]))
        except ProcessEnded as error:
            says = f"needs more than {MEMORY:,} bytes of memory to read, or is damaged; use shorter values"
            raise refusal(path, "parquet_too_large", says) from error
        finally:
            process.kill()


def _receive(stream: IO[bytes]) -> tuple[Any, ...]:
    """Return ("row", number, values, problems), ("progress", done, total), ("refused", problems) or ("end",)."""
    head = stream.read(LENGTH.size)
    if len(head) < LENGTH.size or (length := LENGTH.unpack(head)[0]) > LARGEST_MESSAGE:
        raise ProcessEnded
    data = stream.read(length)
    if len(data) < length:
        raise ProcessEnded
    try:
        return tuple(_decode(one) for one in json.loads(data))
    except (ValueError, TypeError, AttributeError, RecursionError) as error:  # a hostile file may control the process
        raise ProcessEnded from error


# JSON has no bytes, so a value is wrapped: bytes as {"bytes": base64}, an object as {"object": {...}}.


def _encode(value: Any) -> Any:
    """Return the value for JSON. Raises ValueError for other types than text, bytes, numbers, lists and objects."""
    if isinstance(value, bytes):
        return {"bytes": base64.b64encode(value).decode()}
    if isinstance(value, list | tuple):
        return [_encode(one) for one in value]
    if isinstance(value, dict):
        return {"object": {str(name): _encode(one) for name, one in value.items()}}
    if value is None or isinstance(value, str | int | float):
        return value
    raise ValueError(f"the type {type(value)} is not supported")


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
    """Read the file in the command-line arguments, and write messages to standard output."""
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    path, columns, required = Path(sys.argv[1]), sys.argv[2].split(","), sys.argv[3].split(",")
    try:
        with _open_parquet(path) as file:
            _send_rows(path, file, columns, required)
        _send("end")
    except FormatError as error:
        _send("refused", _plain(error.problems))
    sys.stdout.flush()
    os._exit(0)


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


@contextmanager
def _open_parquet(path: Path) -> Iterator[Any]:
    # The import is slow.
    from pyarrow import ArrowException  # noqa: PLC0415
    from pyarrow.parquet import ParquetFile  # noqa: PLC0415

    try:
        # Without the buffer, or with pre-buffering, whole columns of a row group would be read into memory.
        with ParquetFile(path, buffer_size=BUFFER, pre_buffer=False, memory_map=False) as file:
            yield file
    except MemoryError:  # Arrow raises it too: the file is too large, not damaged
        raise
    except (ArrowException, OSError, UnicodeDecodeError) as error:
        reason = printable(" ".join(str(error).split()), 200).rstrip(".")
        raise refusal(path, "parquet_damaged", f"cannot be read as a parquet file: {reason}") from error


def _send_rows(path: Path, file: Any, columns: Collection[str], required: Collection[str]) -> None:
    found = list(file.schema_arrow.names)
    if missing := sorted(set(required) - set(found)):
        raise refusal(path, "column_missing", f"has no column {', '.join(missing)}; it has {listing(found)}")
    _check_parts(path, file.metadata)
    total, number = file.metadata.num_rows, 0
    chosen = [name for name in columns if name in found]
    for batch in file.iter_batches(batch_size=ROWS_AT_ONCE, columns=chosen, use_threads=False):
        for place in range(batch.num_rows):
            number += 1
            row = _read_row(batch, place, number)
            _send("row", row.number, row.values, _plain(row.problems))
        _send("progress", min(number, total), total)


def _check_parts(path: Path, metadata: Any) -> None:
    for group in range(metadata.num_row_groups):
        part = metadata.row_group(group)
        for column in range(part.num_columns):
            if part.column(column).total_uncompressed_size > LARGEST_PART:
                says = f"a column of row group {group + 1} unpacks to more than {LARGEST_PART:,} bytes"
                raise refusal(path, "parquet_too_large", says)


def _read_row(batch: Any, place: int, number: int) -> Row:
    row = Row(number)
    for name in batch.schema.names:
        try:
            value = batch.column(name)[place].as_py()
        except (UnicodeDecodeError, ValueError, OverflowError) as error:
            row.refuse("value_unreadable", f"{name} cannot be read: {printable(str(error), 100)}")
            continue
        if isinstance(value, (str, bytes)) and len(value) > LONGEST_ROW:
            row.refuse("value_too_long", f"{name} has more than {LONGEST_ROW:,} characters")
        elif _has_too_many(value):
            row.refuse("value_too_long", f"{name} has more than {MOST_ITEMS:,} items")
        elif not _is_known(value):
            row.refuse("value_unreadable", f"{name} has values of an unsupported type")
        else:
            row.values[name] = value
    return row


def _has_too_many(value: Any) -> bool:
    """Return whether nested lists and objects have over `MOST_ITEMS` items; nulls need no bytes in the file."""
    waiting, count = [value], 0
    while waiting and count <= MOST_ITEMS:
        one = waiting.pop()
        inner = one.values() if isinstance(one, dict) else one if isinstance(one, list) else ()
        count += len(inner)
        if count <= MOST_ITEMS:
            waiting += [each for each in inner if isinstance(each, (list, dict))]
    return count > MOST_ITEMS
