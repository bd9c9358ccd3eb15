"""A row as its file has it, and what is said of one that cannot be read."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from annotation.formats.documents import FormatError
from annotation.formats.printable import printable
from annotation.records import Problem

MIB = 2**20
LONGEST_ROW = 64 * MIB  # bytes of a line of JSON, of a value in a parquet file


@dataclass(slots=True)
class Row:
    """``number`` from 1, ``values`` by column. ``problems``: it cannot be read whole."""

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
