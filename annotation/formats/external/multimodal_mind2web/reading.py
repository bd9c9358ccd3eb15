"""Read rows of a parquet file or of JSON Lines one by one. Memory contains a few rows, never a column."""

from __future__ import annotations

import gzip
import zlib
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO, cast

from annotation.formats.documents import FormatError, kind_of, parse_json
from annotation.formats.external.multimodal_mind2web.parquet import LONGEST_ROW, MIB, Row, read_parquet, refusal
from annotation.formats.printable import printable
from annotation.formats.registry import Progress

MOST_ROWS = 200_000  # the whole data set has 14,193
PARQUET, GZIP = b"PAR1", b"\x1f\x8b"
BEGINNING = MIB  # bytes that identify the kind of a file
READING_FAILURES = (OSError, EOFError, ValueError, zlib.error)


def is_rows(path: Path) -> bool:
    """Return whether the content of a file looks like rows of Multimodal-Mind2Web; names of uploads do not show it.

    No other format is a plain gzip file, so a damaged one counts too: reading it reports the damage.
    """
    begin = b""
    try:
        with path.open("rb") as stream:
            begin = stream.read(BEGINNING)
        if begin.startswith(GZIP):
            with gzip.open(path, "rb") as packed:
                begin = packed.read(BEGINNING)
    except READING_FAILURES:
        return begin.startswith(GZIP)
    if begin.startswith(PARQUET):
        return True
    # A page may come before the id in the first line.
    return begin.lstrip(b"\xef\xbb\xbf \r\n\t").startswith(b"{") and (
        b'"annotation_id"' in begin or b'"cleaned_html"' in begin
    )


def read_rows(
    path: Path, columns: Collection[str], required: Collection[str], progress: Progress = lambda done, total: None
) -> Iterator[Row]:
    """Yield every row with the ``columns`` that the file has, in order; a row with problems may have no values.

    Raises FormatError if the file is damaged, has no rows or too many, or lacks a required column (in JSON Lines this
    is a problem of each row).
    """
    with path.open("rb") as stream:
        begin = stream.read(4)
    reader = read_parquet if begin == PARQUET else _read_json_lines
    number = 0
    for number, row in enumerate(reader(path, columns, required, progress), 1):
        if number > MOST_ROWS:
            raise refusal(path, "too_many_rows", f"has more than {MOST_ROWS:,} rows; split it by tasks")
        yield row
    if not number:
        raise refusal(path, "no_rows", "has no rows")


# --- JSON Lines -------------------------------------------------------------------------------------------------------


@contextmanager
def _open_lines(path: Path) -> Iterator[tuple[BinaryIO, BinaryIO]]:
    """Yield the unpacked stream, and the underlying file, whose position is the progress."""
    with path.open("rb") as file:
        packed = file.read(2) == GZIP
        file.seek(0)
        if not packed:
            yield file, file
            return
        with gzip.GzipFile(fileobj=file) as unpacked:
            yield cast(BinaryIO, unpacked), file


def _read_json_lines(
    path: Path, columns: Collection[str], required: Collection[str], progress: Progress
) -> Iterator[Row]:
    size, number, empty = path.stat().st_size, 0, 0
    with _open_lines(path) as (stream, file):
        while line := _read_line(path, stream, number + 1):
            if not line.strip():
                empty += 1
                if empty > MOST_ROWS:
                    raise refusal(path, "too_many_rows", f"has more than {MOST_ROWS:,} empty lines")
                continue
            number += 1
            yield _parse_row(line, number, columns, required)
            progress(min(file.tell(), size), size)


def _read_line(path: Path, stream: BinaryIO, number: int) -> bytes:
    try:
        line = stream.readline(LONGEST_ROW + 1)
    except READING_FAILURES as error:
        reason = printable(" ".join(str(error).split()), 200)
        raise refusal(path, "rows_damaged", f"cannot be read beyond row {number - 1:,}: {reason}") from error
    if len(line) > LONGEST_ROW:
        raise refusal(path, "row_too_long", f"row {number:,} has more than {LONGEST_ROW:,} bytes; is it JSON Lines?")
    return line


def _parse_row(line: bytes, number: int, columns: Collection[str], required: Collection[str]) -> Row:
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
