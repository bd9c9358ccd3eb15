"""Read imported labels (CSV): annotator, task_id, agent, label, and optionally the reasons."""

from __future__ import annotations

from dataclasses import replace

from annotation.formats.csv_tables import CsvReader, csv_rows
from annotation.formats.documents import FormatError, decode_text
from annotation.formats.printable import printable
from annotation.records import ImportedLabelRecord, Problem, Verdict

REQUIRED = ("annotator", "task_id", "agent", "label")
OPTIONAL = ("reasoning", "failure_step", "failure_type")
LONGEST = {"annotator": 128, "task_id": 128, "agent": 200, "failure_type": 64}  # characters
LARGEST_STEP = 100_000
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
    return list(reader.labels.values()), reader.problems, reader.warnings


class _LabelReader(CsvReader):
    def __init__(self, name: str) -> None:
        super().__init__(name, REQUIRED, OPTIONAL)
        self.labels: dict[tuple[str, str, str], ImportedLabelRecord] = {}
        self._trimmed: set[tuple[str, str]] = set()

    def take(self, number: int, header: list[str], cells: list[str]) -> None:
        if not self.has_length(number, header, cells):
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
                self.warn(values["task_id"], "name_trimmed", number, says)
        if values["label"].lower() == "unsure":
            says = f'{printable(values["annotator"])} was "Unsure"; the row is ignored'
            self.warn(values["task_id"], "label_unsure", number, says)
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
        before = len(self._problems)
        for column in REQUIRED:
            if not values[column]:
                self.refuse("field_empty", number, f"{column} is empty")
        for column, limit in LONGEST.items():
            if len(values[column]) > limit:
                self.refuse("field_too_long", number, f"{column} is longer than {limit} characters")
        label, step = values["label"], values["failure_step"]
        if label and label not in VERDICTS and label.lower() != "unsure":
            says = f"label is '{printable(label, 40)}' and must be 0 (failure), 1 (success) or 2 (not executable)"
            self.refuse("label_unknown", number, says)
        if step and not (step.isascii() and step.isdigit() and len(step) < 10 and int(step) <= LARGEST_STEP):
            self.refuse("failure_step_invalid", number, f"failure_step is '{printable(step, 40)}', not a step number")
        return len(self._problems) > before

    def _add(self, label: ImportedLabelRecord) -> None:
        first = self.labels.setdefault((label.annotator, label.task_id, label.agent), label)
        if first is label:
            return
        who = f"{printable(label.annotator)} labelled {printable(label.task_id)} of {printable(label.agent)}"
        if replace(label, row=first.row) == first:
            self.warn(label.task_id, "label_repeated", label.row, f"{who} already in line {first.row}, identically")
        else:
            self.refuse("label_conflict", label.row, f"{who} differently in line {first.row}")
