"""Dates as pages write them, read only where there is one way to read them."""

from __future__ import annotations

import re
from collections.abc import Iterable
from datetime import date, datetime

from judges.scorers.network_trace.amounts import Ambiguous, NotParsable

LONGEST = 60  # characters of a date
MONTHS = {
    name: number
    for number, names in enumerate(
        (
            "january jan", "february feb", "march mar", "april apr", "may", "june jun", "july jul", "august aug",
            "september sep sept", "october oct", "november nov", "december dec",
        ),
        1,
    )
    for name in names.split()
}  # fmt: skip
ISO = re.compile(r"(\d{4})[-/.](\d{1,2})[-/.](\d{1,2})(?:[t ].{1,30})?")
COMPACT = re.compile(r"(\d{4})(\d{2})(\d{2})")
DAY_FIRST = re.compile(r"(?:[a-z]{3,9},? )?(\d{1,2})(?:st|nd|rd|th)?[ .-]*(?:of )?([a-z]{3,9})[ .,-]*(\d{4})")
MONTH_FIRST = re.compile(r"(?:[a-z]{3,9},? )?([a-z]{3,9})[ .-]*(\d{1,2})(?:st|nd|rd|th)?[ .,-]+(\d{4})")
NUMBERS = re.compile(r"(\d{1,2})[-/.](\d{1,2})[-/.](\d{4})")
TOKENS = {
    "YYYY": r"(?P<year>\d{4})", "YY": r"(?P<short>\d{2})", "MMMM": r"(?P<name>[a-z]{3,9})",
    "MMM": r"(?P<name>[a-z]{3,9})",
    "MM": r"(?P<month>\d{1,2})", "M": r"(?P<month>\d{1,2})", "DD": r"(?P<day>\d{1,2})", "D": r"(?P<day>\d{1,2})",
}  # fmt: skip
TOKEN = re.compile("YYYY|YY|MMMM|MMM|MM|M|DD|D")


def check_date_format(text: str) -> re.Pattern[str]:
    """A declared format such as ``DD/MM/YYYY`` as a pattern; ValueError when it does not give year, month and day once.

    YYYY, YY (20..), MMMM and MMM (names), MM, M, DD, D; everything else stands for itself.
    """
    tokens = TOKEN.findall(text)
    if len(text) > LONGEST or sorted(token[0] for token in tokens) != ["D", "M", "Y"]:
        raise ValueError("it needs a year (YYYY or YY), a month (MMMM, MMM, MM or M) and a day (DD or D), each once")
    pattern = "".join(TOKENS.get(part, re.escape(part.lower())) for part in re.split(f"({TOKEN.pattern})", text))
    return re.compile(pattern)


def parse_day(value: object, formats: Iterable[re.Pattern[str]] = ()) -> date:
    """The day that a text names.

    Declared ``formats`` come first, then ISO 8601 (a time after it is left out), month names, and numbers such as
    25/12/2024 where one of them is more than 12. Raises Ambiguous for 03/04/2024 without a format, and NotParsable.
    """
    if not isinstance(value, str) or len(value) > LONGEST:
        raise NotParsable("is no date")
    text = " ".join(value.lower().split())
    for declared in formats:
        if found := declared.fullmatch(text):
            return _parse_declared(found.groupdict())
    if found := ISO.fullmatch(text) or COMPACT.fullmatch(text):
        return _make_date(*found.groups())
    if (found := DAY_FIRST.fullmatch(text)) and found[2] in MONTHS:
        return _make_date(found[3], MONTHS[found[2]], found[1])
    if (found := MONTH_FIRST.fullmatch(text)) and found[1] in MONTHS:
        return _make_date(found[3], MONTHS[found[1]], found[2])
    if found := NUMBERS.fullmatch(text):
        return _read_numbers(*found.groups())
    raise NotParsable("is no date")


def parse_moment(value: object) -> datetime:
    """A date with its time, ISO 8601; NotParsable for anything else, and for one without a time."""
    if not isinstance(value, str) or len(value) > LONGEST or not re.search(r"\d[Tt ]\d", value):
        raise NotParsable("is no date with a time (ISO 8601)")
    try:
        return datetime.fromisoformat(value.strip())
    except ValueError:
        raise NotParsable("is no date with a time (ISO 8601)") from None


def is_same_moment(one: datetime, other: datetime) -> bool:
    """Whether two moments are the same; Ambiguous where only one of them says in which time zone it is."""
    if (one.tzinfo is None) != (other.tzinfo is None):
        raise Ambiguous("only one of the two says in which time zone it is")
    return one == other


def parse_month(value: object) -> int:
    """The number of a month, from its name, an abbreviation of three letters, or its number."""
    text = str(value).strip().lower().rstrip(".")
    if text in MONTHS:
        return MONTHS[text]
    if text.isascii() and text.isdecimal() and len(text) < 3 and 1 <= int(text) <= 12:
        return int(text)
    raise NotParsable("is no month")


def _parse_declared(found: dict[str, str | None]) -> date:
    name = found.get("name")
    if name and name not in MONTHS:
        raise NotParsable("is no date")
    year = found.get("year") or f"20{found['short']}"
    return _make_date(year, MONTHS[name] if name else found["month"] or 0, found["day"] or 0)


def _read_numbers(first: str, second: str, year: str) -> date:
    days = {_make_date_or_none(year, first, second), _make_date_or_none(year, second, first)} - {None}
    if len(days) > 1:
        raise Ambiguous("can be read in two ways; say which in the schema, as date_format: DD/MM/YYYY")
    for one in days:
        if one is not None:
            return one
    raise NotParsable("is no date")


def _make_date_or_none(year: str, month_number: str, day_number: str) -> date | None:
    try:
        return _make_date(year, month_number, day_number)
    except NotParsable:
        return None


def _make_date(year: str | int, month_number: str | int, day_number: str | int) -> date:
    try:
        return date(int(year), int(month_number), int(day_number))
    except ValueError:
        raise NotParsable("is no date that there is") from None
