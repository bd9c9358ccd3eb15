"""Parser of judgment files (JSON Lines or CSV) into records and problems. Does not use Django."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, field, replace
from functools import partial
from typing import Any

from annotation.formats.csv_tables import csv_rows
from annotation.formats.documents import FormatError, decode_text, kind_of, parse_json
from annotation.formats.printable import listing, printable
from annotation.records import Problem
from judges.judgment_rows import JudgmentRecord, RowRefused, read_row

REQUIRED = ("task_id", "verdict")  # columns of a CSV file; also agent, if none is given for the whole file
STRUCTURED = ("key_points", "image_scores", "usage")  # columns whose cells may be JSON
NONE = ("", "null", "none")
LONGEST_LINE = 8 * 1024 * 1024  # characters; the longest known line of a real file has 33,000
MOST_ROWS = 100_000
MOST_NESTED = 50
MOST_PROBLEMS = 200
Row = tuple[int, Callable[[], dict[str, Any]]]  # a line number, and the parser of the row; it may raise FormatError
MOST_WRONG = 5_000  # problems after which reading stops: building a message takes time, and every row may be wrong


@dataclass(slots=True)
class ParsedJudgments:
    """The records of a file, its problems, and warnings by task id."""

    records: list[JudgmentRecord] = field(default_factory=list)
    problems: list[Problem] = field(default_factory=list)
    warnings: list[tuple[str, Problem]] = field(default_factory=list)


def read_judgments(data: bytes, name: str, agent: str = "") -> ParsedJudgments:
    """Return the judgments in ``data``; ``agent`` is for rows that name none. Rows are line numbers."""
    reader = _JudgmentReader(printable(name), agent.strip())
    try:
        for number, parse in _list_rows(decode_text(data, reader.name), reader):
            reader.take(number, parse)
    except FormatError as error:
        reader.found.problems += error.problems
    return reader.finish()


def _list_rows(text: str, reader: _JudgmentReader) -> Iterator[Row]:
    name, start = reader.name, text.lstrip()[:1]
    if not start:
        raise FormatError(Problem("file_empty", f"{name}: is empty.", name))
    if start == "[":
        message = f"{name}: is one JSON list; write each of its objects on its own line (JSON Lines)."
        raise FormatError(Problem("json_list", message, name))
    as_json = start == "{" or name.lower().endswith((".jsonl", ".ndjson", ".json"))
    return _list_json_lines(text, name) if as_json else _list_csv_rows(text, reader)


# --- JSON Lines ------------------------------------------------------------------------------------------------------


def _list_json_lines(text: str, name: str) -> Iterator[Row]:
    if text.lstrip().split("\n", 1)[0].strip() == "{":
        message = f"{name}: is one JSON document over many lines; write each judgment on a single line (JSON Lines)."
        raise FormatError(Problem("not_json_lines", message, name))
    for number, line in enumerate(text.split("\n"), start=1):
        if line.strip():
            yield number, partial(_require_object, line, f"{name}: line {number}")


def _require_object(line: str, where: str) -> dict[str, Any]:
    if len(line) > LONGEST_LINE:
        says = f"{where}: has {len(line):,} characters; the limit is {LONGEST_LINE:,}."
        raise FormatError(Problem("line_too_long", says, where))
    row = _parse_json(line, where)
    if not isinstance(row, dict):
        raise FormatError(Problem("wrong_type", f"{where}: must be an object, not {kind_of(row)}.", where))
    return row


def _parse_json(text: str, where: str) -> Any:
    value = parse_json(text.encode(), where)
    level, depth = [value], 0
    while level and depth <= MOST_NESTED:
        depth += 1
        inside = (one.values() if isinstance(one, dict) else one for one in level if isinstance(one, dict | list))
        level = [inner for one in inside for inner in one]
    if level:
        raise FormatError(Problem("json_too_deep", f"{where}: is nested over {MOST_NESTED} levels deep.", where))
    return value


# --- CSV -------------------------------------------------------------------------------------------------------------


def _list_csv_rows(text: str, reader: _JudgmentReader) -> Iterator[Row]:
    rows = csv_rows(text, reader.name)
    header = [column.strip().lower() for column in next(rows, (1, [""]))[1]]
    _check_header(header, reader.name, needs_agent=not reader.agent)
    for number, cells in rows:
        yield number, partial(_parse_cells, header, cells, f"{reader.name}: line {number}")


def _parse_cells(header: list[str], cells: list[str], where: str) -> dict[str, Any]:
    if len(cells) != len(header):
        says = f"{where}: has {len(cells)} fields, the header has {len(header)}."
        raise FormatError(Problem("row_length", says, where))
    row = dict(zip(header, cells, strict=True))
    return {name: _parse_cell(name, cell, where) for name, cell in row.items() if cell or name == "verdict"}


def _check_header(header: list[str], name: str, *, needs_agent: bool) -> None:
    where = f"{name}: row 1"
    needed = [*(["agent"] if needs_agent else []), *REQUIRED]
    missing = [column for column in needed if column not in header]
    twice = sorted({column for column in header if column and header.count(column) > 1})
    separator = next((mark for mark in (";", "\t") if len(header) == 1 and mark in header[0]), None)
    problems = []
    if separator is not None:
        kind = "semicolons" if separator == ";" else "tabs"
        says = f"is separated by {kind}; commas are needed. Without them these columns are missing"
        problems = [Problem("csv_separator", f"{where}: {says}: {', '.join(missing)}.", where)]
    elif missing:
        says = f"these columns are missing: {', '.join(missing)}; there are {listing(header)}"
        problems = [Problem("column_missing", f"{where}: {says}.", where)]
    problems += [Problem("column_twice", f"{where}: the column {printable(c)} occurs twice.", where) for c in twice]
    if problems:
        raise FormatError(*problems)


def _parse_cell(column: str, cell: str, where: str) -> Any:
    """Return a cell as number, None, JSON or text. Later checks reject a text if a number is needed."""
    text = cell.strip()
    if column in ("verdict", "score") and text.lower() in NONE:
        return None
    if column == "verdict" or (column == "usage" and text.isascii() and text.isdigit()):
        return int(text) if text.isascii() and text.isdigit() and len(text) < 10 else text
    if column == "score":
        return _parse_number(text)
    if column in STRUCTURED and text[:1] in ("[", "{"):
        return _parse_json(text, f"{where}: {column}")
    return cell if column == "response" else text


def _parse_number(text: str) -> Any:
    try:
        return float(text)
    except ValueError:
        return text


# --- records ----------------------------------------------------------------------------------------------------------


class _JudgmentReader:
    """Collector of the judgments of one file, row by row; it takes identical judgments once."""

    def __init__(self, name: str, agent: str) -> None:
        self.name = name
        self.agent = agent
        self.found = ParsedJudgments()
        self._first: dict[tuple[str, str, str], JudgmentRecord] = {}
        self._taken = 0

    def take(self, number: int, parse: Callable[[], dict[str, Any]]) -> None:
        where = f"{self.name}: line {number}"
        self._taken += 1
        if self._taken > MOST_ROWS:
            message = f"{self.name}: has over {MOST_ROWS:,} judgments; split it."
            raise FormatError(Problem("too_many_rows", message, self.name))
        try:
            self._add(read_row(parse(), number, self.agent), where)
        except FormatError as error:
            self.found.problems += error.problems
        except RowRefused as refused:
            self.found.problems += [Problem(code, f"{where}: {says}.", where) for code, says in refused.problems]
        if len(self.found.problems) > MOST_WRONG:
            message = f"{self.name}: has over {MOST_WRONG:,} problems; reading stopped there."
            raise FormatError(Problem("not_read_on", message, self.name))

    def _add(self, record: JudgmentRecord, where: str) -> None:
        first = self._first.setdefault((record.agent, record.task_id, record.model), record)
        what = f"{printable(record.task_id)} of {printable(record.agent)} is already judged in line {first.row}"
        if first is record and record.doubt:
            self._warn(record, Problem("status_missing", f"{where}: {record.doubt}.", where))
        elif first is not record and read_content(record) == read_content(first):
            self._warn(record, Problem("judgment_repeated", f"{where}: {what}, identically.", where))
        elif first is not record:
            says = f"{where}: {what}, differently; remove one of them, or give them different models or judges."
            self.found.problems.append(Problem("judgment_conflict", says, where))

    def _warn(self, record: JudgmentRecord, problem: Problem) -> None:
        self.found.warnings.append((record.task_id, problem))

    def finish(self) -> ParsedJudgments:
        problems = self.found.problems
        if len(problems) > MOST_PROBLEMS:
            more = f"{self.name}: and {len(problems) - MOST_PROBLEMS:,} more problems."
            problems[MOST_PROBLEMS:] = [Problem("more_problems", more, self.name)]
        self.found.records = list(self._first.values())
        return self.found


def read_content(record: JudgmentRecord) -> dict[str, Any]:
    """Return the content of a record without its position in a file: equal for equal judgments."""
    fields = asdict(replace(record, row=0, score=replace(record.score, notes={})))
    del fields["score"]["details"], fields["score"]["status_not_stated"]  # files do not have them
    fields |= {"notes": dict(record.score.notes), "files": sorted(record.files.items())}
    return dict(json.loads(json.dumps(fields)))
