"""Rows of a parquet file or of JSON Lines, one after the other: what is in memory is a few rows, never a column."""

from __future__ import annotations

import gzip
import zlib
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, BinaryIO, cast

from annotation.formats.documents import FormatError, kind_of, parse_json
from annotation.formats.mind2web_rows import apart
from annotation.formats.printable import listing, printable
from annotation.records import Problem

Progress = Callable[[int, int], None]

MIB = 2**20
ROWS_AT_ONCE = 4  # of a page of 300 kB, its candidates and a picture: some MB
BUFFER = MIB  # bytes of a column that are read from the disk at once
LONGEST_ROW = 64 * MIB  # bytes of a line of JSON, of a value in a parquet file
MOST_ITEMS = 1_000_000  # of a value in a parquet file; pages have some thousand candidates
MOST_ROWS = 200_000  # the whole data set has 14,193
LARGEST_PART = 1024 * MIB  # unpacked bytes of one column in one row group
PARQUET, GZIP = b"PAR1", b"\x1f\x8b"
LOOKED_AT = MIB  # bytes at the beginning of a file that say what it is
READING_FAILURES = (OSError, EOFError, ValueError, zlib.error)


@dataclass(slots=True)
class Row:
    """A row as its file has it: ``number`` from 1, ``values`` by column. ``problems``: it cannot be read whole."""

    number: int
    values: dict[str, Any] = field(default_factory=dict)
    problems: list[Problem] = field(default_factory=list)

    def refuse(self, code: str, says: str) -> None:
        self.problems.append(row_problem(self.number, code, says))


def row_problem(number: int, code: str, says: str) -> Problem:
    where = f"row {number}"
    return Problem(code, f"{where}: {says}.", where)


def is_rows(path: Path) -> bool:
    """Whether a file looks like rows of Multimodal-Mind2Web, by its content: uploads have no name that says it.

    Nothing else that is imported comes in gzip alone, so one that cannot be unpacked counts: reading says what it has.
    """
    begin = b""
    try:
        with path.open("rb") as stream:
            begin = stream.read(LOOKED_AT)
        if begin.startswith(GZIP):
            with gzip.open(path, "rb") as packed:
                begin = packed.read(LOOKED_AT)
    except READING_FAILURES:
        return begin.startswith(GZIP)
    if begin.startswith(PARQUET):
        return True
    # A page may stand before the id in the line: a long first line of an object is taken for a row as well.
    one_line = begin.lstrip(b"\xef\xbb\xbf \r\n\t")
    return one_line.startswith(b"{") and (b'"annotation_id"' in begin or b'"cleaned_html"' in begin)


def rows_of(
    path: Path, columns: Collection[str], required: Collection[str], progress: Progress = lambda done, total: None
) -> Iterator[Row]:
    """Every row with the ``columns`` that the file has, in order.

    A row that cannot be read has problems and perhaps no values. Raises FormatError for what concerns the file:
    damaged, no rows at all, a required column missing (of JSON Lines each row says so itself), too many rows.
    """
    with path.open("rb") as stream:
        begin = stream.read(4)
    reader = _parquet_apart if begin == PARQUET else _json_lines
    number = 0
    for number, row in enumerate(reader(path, columns, required, progress), 1):
        if number > MOST_ROWS:
            raise _error(path, "too_many_rows", f"has more than {MOST_ROWS:,} rows; split it by tasks")
        yield row
    if not number:
        raise _error(path, "no_rows", "has no rows")


def _error(path: Path, code: str, says: str) -> FormatError:
    name = printable(path.name)
    return FormatError(Problem(code, f"{name}: {says}.", name))


# --- parquet ----------------------------------------------------------------------------------------------------------


@contextmanager
def _opened(path: Path) -> Iterator[Any]:
    # Takes a while to import, which only a process that reads such a file need spend.
    from pyarrow import ArrowException  # noqa: PLC0415
    from pyarrow.parquet import ParquetFile  # noqa: PLC0415

    try:
        # Without buffer and with pre-buffering whole columns of a row group would be read into memory.
        with ParquetFile(path, buffer_size=BUFFER, pre_buffer=False, memory_map=False) as file:
            yield file
    except MemoryError:  # of Arrow as well: the file is not damaged, it is too large
        raise
    except (ArrowException, OSError, UnicodeDecodeError) as error:
        reason = printable(" ".join(str(error).split()), 200).rstrip(".")
        raise _error(path, "parquet_damaged", f"cannot be read as a parquet file: {reason}") from error


def _parquet_apart(
    path: Path, columns: Collection[str], required: Collection[str], progress: Progress
) -> Iterator[Row]:
    try:
        for kind, *said in apart.messages(path, columns, required):
            if kind == "row":
                number, values, problems = said
                yield Row(number, values, [Problem(*one) for one in problems])
            elif kind == "progress":
                progress(*said)
            else:
                raise FormatError(*(Problem(*one) for one in said[0]))
    except apart.Ended as error:
        says = f"needs more than {apart.MEMORY:,} bytes of memory to read, or is damaged; write it with shorter values"
        raise _error(path, "parquet_too_large", says) from error


def parquet_rows(path: Path, columns: Collection[str], required: Collection[str], progress: Progress) -> Iterator[Row]:
    """The rows of a parquet file, in this process: for the one that `apart` starts."""
    with _opened(path) as file:
        found = list(file.schema_arrow.names)
        if missing := sorted(set(required) - set(found)):
            raise _error(path, "column_missing", f"has no column {', '.join(missing)}; it has {listing(found)}")
        _check_parts(path, file.metadata)
        total, number = file.metadata.num_rows, 0
        chosen = [name for name in columns if name in found]
        for batch in file.iter_batches(batch_size=ROWS_AT_ONCE, columns=chosen, use_threads=False):
            for place in range(batch.num_rows):
                number += 1
                yield _row_of(batch, place, number)
            progress(min(number, total), total)


def _check_parts(path: Path, metadata: Any) -> None:
    for group in range(metadata.num_row_groups):
        part = metadata.row_group(group)
        for column in range(part.num_columns):
            if part.column(column).total_uncompressed_size > LARGEST_PART:
                says = f"a column of row group {group + 1} unpacks to more than {LARGEST_PART:,} bytes"
                raise _error(path, "parquet_too_large", says)


def _row_of(batch: Any, place: int, number: int) -> Row:
    row = Row(number)
    for name in batch.schema.names:
        try:
            value = batch.column(name)[place].as_py()
        except (UnicodeDecodeError, ValueError, OverflowError) as error:
            row.refuse("value_unreadable", f"{name} cannot be read: {printable(str(error), 100)}")
            continue
        if isinstance(value, (str, bytes)) and len(value) > LONGEST_ROW:
            row.refuse("value_too_long", f"{name} has more than {LONGEST_ROW:,} characters")
            continue
        if _has_too_many(value):
            row.refuse("value_too_long", f"{name} has more than {MOST_ITEMS:,} items")
            continue
        row.values[name] = value
    return row


def _has_too_many(value: Any) -> bool:
    """Whether lists and objects, in one another, have more than `MOST_ITEMS` items; a null takes no room in a file."""
    waiting, count = [value], 0
    while waiting and count <= MOST_ITEMS:
        one = waiting.pop()
        inner = one.values() if isinstance(one, dict) else one if isinstance(one, list) else ()
        count += len(inner)
        if count <= MOST_ITEMS:
            waiting += [each for each in inner if isinstance(each, (list, dict))]
    return count > MOST_ITEMS


# --- JSON Lines -------------------------------------------------------------------------------------------------------


@contextmanager
def _lines(path: Path) -> Iterator[tuple[BinaryIO, BinaryIO]]:
    """The unpacked stream, and the file below it, whose place tells how far it is."""
    with path.open("rb") as file:
        packed = file.read(2) == GZIP
        file.seek(0)
        if not packed:
            yield file, file
            return
        with gzip.GzipFile(fileobj=file) as unpacked:
            yield cast(BinaryIO, unpacked), file


def _json_lines(path: Path, columns: Collection[str], required: Collection[str], progress: Progress) -> Iterator[Row]:
    size, number, empty = path.stat().st_size, 0, 0
    with _lines(path) as (stream, file):
        while line := _line(path, stream, number + 1):
            if not line.strip():
                empty += 1
                if empty > MOST_ROWS:
                    raise _error(path, "too_many_rows", f"has more than {MOST_ROWS:,} empty lines")
                continue
            number += 1
            yield _object(line, number, columns, required)
            progress(min(file.tell(), size), size)


def _line(path: Path, stream: BinaryIO, number: int) -> bytes:
    try:
        line = stream.readline(LONGEST_ROW + 1)
    except READING_FAILURES as error:
        reason = printable(" ".join(str(error).split()), 200)
        raise _error(path, "rows_damaged", f"cannot be read beyond row {number - 1:,}: {reason}") from error
    if len(line) > LONGEST_ROW:
        raise _error(path, "row_too_long", f"row {number:,} has more than {LONGEST_ROW:,} bytes; is it JSON Lines?")
    return line


def _object(line: bytes, number: int, columns: Collection[str], required: Collection[str]) -> Row:
    row = Row(number)
    try:
        document = parse_json(line, f"row {number}")
    except FormatError as error:
        row.problems += error.problems
        return row
    if not isinstance(document, dict):
        row.refuse("wrong_type", f"must be an object, not {kind_of(document)}")
        return row
    row.values = {name: document[name] for name in columns if name in document}
    if missing := sorted(set(required) - row.values.keys()):
        row.refuse("column_missing", f"has no {', '.join(missing)}")
    return row
