"""Rows of a parquet file, for the process of `parquet_process`: in memory are a few rows, never a column."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from annotation.formats.external.multimodal_mind2web.rows import LONGEST_ROW, MIB, Row, refusal
from annotation.formats.printable import listing, printable
from annotation.formats.registry import Progress

ROWS_AT_ONCE = 4  # of a page of 300 kB, its candidates and a picture: some MB
BUFFER = MIB  # bytes of a column that are read from the disk at once
MOST_ITEMS = 1_000_000  # of a value; pages have some thousand candidates
LARGEST_PART = 1024 * MIB  # unpacked bytes of one column in one row group


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
        raise refusal(path, "parquet_damaged", f"cannot be read as a parquet file: {reason}") from error


def parquet_rows(path: Path, columns: Collection[str], required: Collection[str], progress: Progress) -> Iterator[Row]:
    """Yield the rows in order. Raises FormatError for problems of the file."""
    with _opened(path) as file:
        found = list(file.schema_arrow.names)
        if missing := sorted(set(required) - set(found)):
            raise refusal(path, "column_missing", f"has no column {', '.join(missing)}; it has {listing(found)}")
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
                raise refusal(path, "parquet_too_large", says)


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
    """Whether nested lists and objects have more than `MOST_ITEMS` items; nulls need no bytes in the file."""
    waiting, count = [value], 0
    while waiting and count <= MOST_ITEMS:
        one = waiting.pop()
        inner = one.values() if isinstance(one, dict) else one if isinstance(one, list) else ()
        count += len(inner)
        if count <= MOST_ITEMS:
            waiting += [each for each in inner if isinstance(each, (list, dict))]
    return count > MOST_ITEMS
