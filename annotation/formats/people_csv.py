"""Read a list of people to invite (CSV): name, e-mail, role, submission, and optionally language."""

from __future__ import annotations

import unicodedata
from dataclasses import dataclass

from annotation.formats.csv_tables import CsvReader, csv_rows
from annotation.formats.documents import FormatError, decode_text
from annotation.formats.printable import printable
from annotation.records import Problem

REQUIRED = ("name", "e-mail", "role", "submission")
OPTIONAL = ("language",)
SPELLINGS = {"email": "e-mail", "e_mail": "e-mail", "mail": "e-mail"}
LONGEST = {"name": 150, "e-mail": 254, "role": 40, "submission": 18, "language": 40}  # characters
LARGEST_FILE = 256 * 1024  # bytes
MOST_ROWS = 200  # in one transaction, 16 ms each: other changes of these submissions wait for its end


@dataclass(frozen=True, slots=True)
class PersonLine:
    """``username`` is the name with hyphens for blanks; ``line`` is the first line of the row, the header is line 1."""

    line: int
    username: str
    email: str
    role: str
    submission: int


class PeopleReader(CsvReader):
    """The rows of a file that have no problem, and the problems of the others. Raises no errors."""

    def __init__(self, data: bytes, name: str) -> None:
        super().__init__(printable(name), REQUIRED, OPTIONAL)
        self.lines: list[PersonLine] = []
        self._by_address: dict[str, PersonLine] = {}
        self._by_name: dict[str, PersonLine] = {}
        self._parts: dict[tuple[str, int], int] = {}
        try:
            self._read(data)
        except FormatError as error:
            self._problems += [(1, problem) for problem in error.problems]

    def _read(self, data: bytes) -> None:
        if len(data) > LARGEST_FILE:
            message = f"{self.name}: is larger than {LARGEST_FILE:,} bytes. Split it."
            raise FormatError(Problem("file_too_large", message, self.name))
        text = decode_text(data, self.name, "a CSV file")
        first = next((line for line in text.splitlines() if line.strip()), "")
        rows = list(csv_rows(text, self.name, ";" if first.count(";") > first.count(",") else ","))
        cells = [cell.strip().lower() for cell in rows[0][1]] if rows else []
        header = [SPELLINGS.get(cell, cell) for cell in cells]
        self.check_header(header)
        if self._problems:
            return
        if len(rows) == 1:
            self.refuse("rows_missing", 1, "there are no people below the header")
        if len(rows) > MOST_ROWS + 1:
            over = rows[MOST_ROWS + 1][0]
            self.refuse("too_many_rows", over, f"a file has at most {MOST_ROWS} rows; move the rest to another file")
            return
        for number, row in rows[1:]:
            if self.has_length(number, header, row):
                self._take(number, {name: " ".join(cell.split()) for name, cell in zip(header, row, strict=True)})

    def _take(self, number: int, values: dict[str, str]) -> None:
        before = len(self._problems)
        # As accounts store it: otherwise a name could become longer, or that of another account.
        values["name"] = " ".join(unicodedata.normalize("NFKC", values["name"]).split())
        for column in REQUIRED:
            if not values[column]:
                self.refuse("field_empty", number, f"{column} is empty")
        for column, limit in LONGEST.items():
            value = values.get(column, "")
            if len(value) > limit:
                self.refuse("field_too_long", number, f"{column} is longer than {limit} characters")
            elif not value.isprintable():
                says = f"{column} '{printable(value)}' has an invisible character; type it again"
                self.refuse("field_unprintable", number, says)
        digits = values["submission"]
        if digits and not (digits.isascii() and digits.isdigit()):
            says = f"submission is '{printable(digits, 40)}'; enter the number of a submission"
            self.refuse("submission_invalid", number, says)
        if len(self._problems) == before:
            username = values["name"].replace(" ", "-")
            self._add(PersonLine(number, username, values["e-mail"], values["role"].lower(), int(digits)))
            if values.get("language"):
                self.warn("", "language_ignored", number, "the column language is ignored: WebVerdict has only English")

    def _add(self, line: PersonLine) -> None:
        """Add a line, unless it contradicts or repeats an earlier one."""
        address, name = line.email.lower(), line.username.lower()
        same_address = self._by_address.setdefault(address, line)
        same_name = self._by_name.setdefault(name, line)
        if same_address.username.lower() != name:
            says = f"{line.email} has another name in line {same_address.line}; use one name for one address"
            self.refuse("person_conflict", line.line, says)
        elif same_name.email.lower() != address:
            says = f"{line.username} has another address in line {same_name.line}; use different names"
            self.refuse("person_conflict", line.line, says)
        elif (earlier := self._parts.setdefault((address, line.submission), line.line)) != line.line:
            says = f"{line.email} is in line {earlier} for submission {line.submission} too; remove one of the lines"
            self.refuse("person_repeated", line.line, says)
        else:
            self.lines.append(line)
