"""Read imported labels (CSV): annotator, task_id, agent, label, and optionally the reasons."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator
from dataclasses import replace

from annotation.formats.documents import FormatError, decode_text
from annotation.formats.printable import listing, printable
from annotation.formats.yaml_text import did_you_mean
from annotation.records import ImportedLabelRecord, Problem, Verdict

REQUIRED = ("annotator", "task_id", "agent", "label")
OPTIONAL = ("reasoning", "failure_step", "failure_type")
LONGEST = {"annotator": 128, "task_id": 128, "agent": 200, "failure_type": 64}  # characters
LARGEST_STEP = 100_000
MOST_PROBLEMS = 200
VERDICTS = {str(verdict.value): verdict for verdict in Verdict}


def read_labels(data: bytes, name: str) -> tuple[list[ImportedLabelRecord], list[Problem], list[tuple[str, Problem]]]:
    """Return the labels in ``data``, their problems, and warnings with a task id for changed or omitted rows.

    Rows are counted as lines, the header is line 1. Rows with the label "Unsure" are left out with a warning.
    """
    name = printable(name)
    try:
        rows = list(csv_rows(decode_text(data, name, "a CSV file"), name))
    except FormatError as error:
        return [], error.problems, []
    reader = _LabelReader(name)
    header = [column.strip().lower() for column in rows[0][1]] if rows else []
    reader.check_header(header)
    if not reader.problems:
        for number, cells in rows[1:]:
            reader.take(number, header, cells)
    dropped = len(reader.problems) - MOST_PROBLEMS
    if dropped > 0:
        more = Problem("more_problems", f"{name}: and {dropped:,} more rows with problems.", name)
        reader.problems[MOST_PROBLEMS:] = [more]
    return list(reader.labels.values()), reader.problems, reader.warnings


def csv_rows(text: str, name: str) -> Iterator[tuple[int, list[str]]]:
    """Yield the rows that are not blank, each with the number of its first line."""
    reader = csv.reader(io.StringIO(text, newline=""), strict=True)
    line = 1
    try:
        for cells in reader:
            if any(cell.strip() for cell in cells):
                yield line, cells
            line = reader.line_num + 1
    except csv.Error as error:
        message = f"{name}: line {line} is not valid CSV: {error}."
        raise FormatError(Problem("csv_invalid", message, f"{name}: line {line}")) from error


class _LabelReader:
    def __init__(self, name: str) -> None:
        self.name = name
        self.labels: dict[tuple[str, str, str], ImportedLabelRecord] = {}
        self.problems: list[Problem] = []
        self.warnings: list[tuple[str, Problem]] = []
        self._trimmed: set[tuple[str, str]] = set()

    def check_header(self, header: list[str]) -> None:
        missing = [column for column in REQUIRED if column not in header]
        absent = {*REQUIRED, *OPTIONAL} - {*header}
        unknown = [f"{c}{did_you_mean(c, absent)}" for c in header if c and c not in REQUIRED + OPTIONAL]
        separator = next((mark for mark in (";", "\t") if len(header) == 1 and mark in header[0]), None)
        if separator is not None:
            kind = "semicolons" if separator == ";" else "tabs"
            says = f"is separated by {kind}; commas are needed. Without them these columns are missing"
            self._refuse("csv_separator", 1, f"{says}: {', '.join(missing)}")
        elif missing:
            says = f"these columns are missing: {', '.join(missing)}"
            self._refuse("column_missing", 1, f"{says}; unknown: {listing(unknown)}" if unknown else says)
        for column in sorted({column for column in header if header.count(column) > 1 and column}):
            self._refuse("column_twice", 1, f"the column {printable(column)} occurs twice")
        if unknown and not self.problems:
            self._warn("", "column_ignored", 1, f"these columns are ignored: {listing(unknown)}")

    def take(self, number: int, header: list[str], cells: list[str]) -> None:
        if len(cells) != len(header):
            self._refuse("row_length", number, f"has {len(cells)} fields, the header has {len(header)}")
            return
        row = dict(zip(header, cells, strict=True))
        values = {column: row.get(column, "").strip() for column in REQUIRED + OPTIONAL}
        if self._has_problems(number, values):
            return
        for column in ("annotator", "task_id", "agent"):
            raw = row[column]
            if raw != values[column] and (column, raw) not in self._trimmed:
                self._trimmed.add((column, raw))
                says = f"{column} '{printable(raw)}' has spaces around it and is read as '{printable(values[column])}'"
                self._warn(values["task_id"], "name_trimmed", number, says)
        if values["label"].lower() == "unsure":
            says = f'{printable(values["annotator"])} was "Unsure"; the row is ignored'
            self._warn(values["task_id"], "label_unsure", number, says)
        else:
            self._add(
                ImportedLabelRecord(
                    row=number,
                    verdict=VERDICTS[values["label"]],
                    failure_step=int(values["failure_step"]) if values["failure_step"] else None,
                    **{name: values[name] for name in ("annotator", "task_id", "agent", "reasoning", "failure_type")},
                )
            )

    def _has_problems(self, number: int, values: dict[str, str]) -> bool:
        before = len(self.problems)
        for column in REQUIRED:
            if not values[column]:
                self._refuse("field_empty", number, f"{column} is empty")
        for column, limit in LONGEST.items():
            if len(values[column]) > limit:
                self._refuse("field_too_long", number, f"{column} is longer than {limit} characters")
        label, step = values["label"], values["failure_step"]
        if label and label not in VERDICTS and label.lower() != "unsure":
            says = f"label is '{printable(label, 40)}' and must be 0 (failure), 1 (success) or 2 (not executable)"
            self._refuse("label_unknown", number, says)
        if step and not (step.isascii() and step.isdigit() and len(step) < 10 and int(step) <= LARGEST_STEP):
            self._refuse("failure_step_invalid", number, f"failure_step is '{printable(step, 40)}', not a step number")
        return len(self.problems) > before

    def _add(self, label: ImportedLabelRecord) -> None:
        first = self.labels.setdefault((label.annotator, label.task_id, label.agent), label)
        if first is label:
            return
        who = f"{printable(label.annotator)} labelled {printable(label.task_id)} of {printable(label.agent)}"
        if replace(label, row=first.row) == first:
            self._warn(label.task_id, "label_repeated", label.row, f"{who} already in line {first.row}, identically")
        else:
            self._refuse("label_conflict", label.row, f"{who} differently in line {first.row}")

    def _refuse(self, code: str, number: int, says: str) -> None:
        where = f"{self.name}: line {number}"
        self.problems.append(Problem(code, f"{where}: {says}.", where))

    def _warn(self, task_id: str, code: str, number: int, says: str) -> None:
        where = f"{self.name}: line {number}"
        self.warnings.append((task_id, Problem(code, f"{where}: {says}.", where)))
