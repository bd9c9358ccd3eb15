"""Read CSV files with a header row, and collect their problems by line."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator, Sequence

from annotation.formats.documents import FormatError
from annotation.formats.printable import listing, printable
from annotation.formats.yaml_text import did_you_mean
from annotation.records import Problem

MOST_PROBLEMS = 200


def csv_rows(text: str, name: str, delimiter: str = ",") -> Iterator[tuple[int, list[str]]]:
    """Yield the rows that are not blank, each with the number of its first line."""
    reader = csv.reader(io.StringIO(text, newline=""), strict=True, delimiter=delimiter)
    line = 1
    try:
        for cells in reader:
            if any(cell.strip() for cell in cells):
                yield line, cells
            line = reader.line_num + 1
    except csv.Error as error:
        message = f"{name}: line {line} is not valid CSV: {error}."
        raise FormatError(Problem("csv_invalid", message, f"{name}: line {line}")) from error


class CsvReader:
    """The problems of a file, and the checks of its header and of the length of its rows."""

    def __init__(self, name: str, required: Sequence[str], optional: Sequence[str]) -> None:
        self.name, self.required, self.optional = name, required, optional
        self.warnings: list[tuple[str, Problem]] = []
        self._problems: list[tuple[int, Problem]] = []

    @property
    def problems(self) -> list[Problem]:
        """Return the problems in the order of their lines, at most MOST_PROBLEMS and one that counts the others."""
        found = [problem for _, problem in sorted(self._problems, key=lambda each: each[0])]
        dropped = len(found) - MOST_PROBLEMS
        if dropped > 0:
            message = f"{self.name}: and {dropped:,} more rows with problems."
            found[MOST_PROBLEMS:] = [Problem("more_problems", message, self.name)]
        return found

    def check_header(self, header: list[str]) -> None:
        columns = (*self.required, *self.optional)
        missing = [column for column in self.required if column not in header]
        absent = {*columns} - {*header}
        unknown = [f"{c}{did_you_mean(c, absent)}" for c in header if c and c not in columns]
        separator = next((mark for mark in (";", "\t") if len(header) == 1 and mark in header[0]), None)
        if separator is not None:
            kind = "semicolons" if separator == ";" else "tabs"
            says = f"is separated by {kind}; commas are needed. Without them these columns are missing"
            self.refuse("csv_separator", 1, f"{says}: {', '.join(missing)}")
        elif missing:
            says = f"these columns are missing: {', '.join(missing)}"
            self.refuse("column_missing", 1, f"{says}; unknown: {listing(unknown)}" if unknown else says)
        for column in sorted({column for column in header if header.count(column) > 1 and column}):
            self.refuse("column_twice", 1, f"the column {printable(column)} occurs twice")
        if unknown and not self._problems:
            self.warn("", "column_ignored", 1, f"these columns are ignored: {listing(unknown)}")

    def has_length(self, number: int, header: list[str], cells: list[str]) -> bool:
        """Return whether a row has as many fields as the header, else add a problem."""
        if len(cells) != len(header):
            self.refuse("row_length", number, f"has {len(cells)} fields, the header has {len(header)}")
        return len(cells) == len(header)

    def refuse(self, code: str, number: int, says: str) -> None:
        where = f"{self.name}: line {number}"
        self._problems.append((number, Problem(code, f"{where}: {says}.", where)))

    def warn(self, task_id: str, code: str, number: int, says: str) -> None:
        where = f"{self.name}: line {number}"
        self.warnings.append((task_id, Problem(code, f"{where}: {says}.", where)))
