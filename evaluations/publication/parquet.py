"""Write tables as Parquet. pyarrow is imported only here: it is an extra."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from annotation.extras import explain_missing
from annotation.records import Problem
from evaluations.publication.tables import BOOLEAN, IMAGE, INTEGER, NUMBER, TEXT, TIME, Row, Table, Type

MOST_ROWS = 100  # of a group with images, as Hugging Face advises for random access
MOST_BYTES = 32_000_000  # of the images of a group, which are in memory together


def find_missing() -> list[Problem]:
    """Return a problem if pyarrow is not installed."""
    says = explain_missing("pyarrow", "Writing a dataset")
    return [Problem("package_missing", says)] if says else []


def write(table: Table, rows: Iterable[Row], path: Path) -> int:
    """Write the rows and return their number; no file is left without rows. Keys that are no column are ignored."""
    from pyarrow import Table as Group  # noqa: PLC0415
    from pyarrow.parquet import ParquetWriter  # noqa: PLC0415

    schema, count = _build_schema(table), 0
    with ParquetWriter(path, schema, write_page_index=True) as writer:
        for group in _groups(rows):
            writer.write_table(Group.from_pylist(group, schema=schema))
            count += len(group)
    if not count:
        path.unlink()
    return count


def _groups(rows: Iterable[Row]) -> Iterator[list[Row]]:
    group: list[Row] = []
    size = 0
    for row in rows:
        group.append(row)
        size += len((row.get("screenshot") or {}).get("bytes", b""))
        if len(group) == MOST_ROWS or size >= MOST_BYTES:
            yield group
            group, size = [], 0
    if group:
        yield group


def _build_schema(table: Table) -> Any:
    from pyarrow import field, schema  # noqa: PLC0415

    columns = [field(name, _convert(kind)) for name, (kind, _) in table.columns.items()]
    images = {name: {"_type": "Image"} for name, (kind, _) in table.columns.items() if kind == IMAGE}
    about = {"huggingface": json.dumps({"info": {"features": images}})} if images else None
    return schema(columns, metadata=about)


def _convert(kind: Type) -> Any:
    import pyarrow as pa  # noqa: PLC0415

    if isinstance(kind, list):
        return pa.list_(_convert(kind[0]))
    if isinstance(kind, dict):
        return pa.struct([pa.field(name, _convert(each)) for name, each in kind.items()])
    image = pa.struct([pa.field("bytes", pa.binary()), pa.field("path", pa.string())])
    scalars = {TEXT: pa.string(), TIME: pa.string(), INTEGER: pa.int64(), NUMBER: pa.float64(), BOOLEAN: pa.bool_()}
    return image if kind == IMAGE else scalars[kind]
