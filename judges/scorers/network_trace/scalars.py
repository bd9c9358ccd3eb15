"""Parsers of numbers, amounts of money and dates as people and pages write them; they do not guess."""

from __future__ import annotations

import re
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass
from datetime import date, datetime
from decimal import Decimal

LONGEST = 60  # characters of a number or a date


class NotParsable(ValueError):
    """A value is not of the required type; the message says which."""


class Ambiguous(ValueError):
    """A value can be read in two ways; the message says which, and how to decide."""


@dataclass(frozen=True, slots=True)
class Money:
    """``currency`` is an ISO code, ``$``, ``¥`` or ``Rs`` of an unknown country, or "" if none was written."""

    amount: Decimal
    currency: str = ""

    def equals(self, other: Money) -> bool:
        """Return whether the amounts are equal and the currencies can be the same; "" can be any currency."""
        mine, its = self.currency, other.currency
        alike = not mine or not its or mine == its or its in SEVERAL.get(mine, ()) or mine in SEVERAL.get(its, ())
        return self.amount == other.amount and alike


PLAIN = re.compile(r"[+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d{1,2})?")
GROUPS = {mark: re.compile(rf"[1-9]\d{{0,2}}(?:{re.escape(mark)}\d{{3}})+") for mark in ",.' "}
LAKHS = re.compile(r"[1-9]\d?(?:,\d{2})+,\d{3}")  # 1,00,000
QUOTES = str.maketrans("\u2019\u02bc", "''")
DIGITS = re.compile(r"\d+")
SPACES = re.compile(r"[\s\u00a0\u2009\u202f]+")
MARKS = {
    "US$": "USD", "CA$": "CAD", "C$": "CAD", "AU$": "AUD", "A$": "AUD", "NZ$": "NZD", "HK$": "HKD", "R$": "BRL",
    "$": "$", "€": "EUR", "£": "GBP", "¥": "¥", "₹": "INR", "₽": "RUB", "₩": "KRW", "₺": "TRY", "zł": "PLN",
    "Rs": "Rs", "Kč": "CZK", "₫": "VND", "₪": "ILS", "฿": "THB", "₴": "UAH",
}  # fmt: skip
DOLLARS = frozenset(re.findall(r"\w+", "USD CAD AUD NZD HKD SGD TWD MXN ARS CLP COP"))
YEN = frozenset({"JPY", "CNY"})
OTHERS = (
    "BRL EUR GBP INR RUB KRW TRY PLN CZK VND ILS THB UAH CHF SEK NOK DKK HUF RON BGN ZAR AED SAR EGP NGN KES IDR MYR "
    "PHP PKR"
)
CODES = DOLLARS | YEN | frozenset(re.findall(r"\w+", OTHERS))
RUPEES = frozenset({"INR", "PKR"})
SEVERAL = {"$": DOLLARS, "¥": YEN, "Rs": RUPEES}
MONEY = re.compile(
    r"(?P<sign>[+-]?)\s*(?P<before>[A-Za-z]{1,4}\.|[^\d\s.,+-]{0,4})\s*(?P<inner>[+-]?)\s*"
    r"(?P<number>\d[\d., ']*?)\s*(?P<after>[A-Za-z]{1,4}\.|[^\d\s.,'+-]{0,4})"
)
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


def parse_number(value: object) -> Decimal:
    """Return a number as an exact decimal.

    ``1299``, ``1,299.00``, ``1.299,00``, ``1 299``, ``1'299``: if a comma and a point occur, the last one is the
    decimal mark. A single comma before exactly three digits groups them (1,299 is 1299, 0,299 is less than one); a
    single point never does (1.299 is less than two). Raises NotParsable.
    """
    if isinstance(value, bool) or not isinstance(value, int | float | str | Decimal):
        raise NotParsable("is not a number")
    if not isinstance(value, str):
        return Decimal(str(value))
    text = value.strip().replace("\u2212", "-").translate(QUOTES)
    if len(text) > LONGEST:
        raise NotParsable("is not a number")
    if PLAIN.fullmatch(text):
        return Decimal(text)
    sign, digits = (text[0], text[1:].strip()) if text[:1] in {"+", "-"} else ("", text)
    return Decimal(sign + _normalise_digits(SPACES.sub(" ", digits)))


def parse_whole_number(value: object) -> Decimal:
    found = parse_number(value)
    if found != found.to_integral_value():
        raise NotParsable("is not a whole number")
    return found


def parse_money(value: object) -> Money:
    """Return an amount with its currency: ``$1,299``, ``1299 USD``, ``1.299,00 €``, ``-5 EUR``, or a bare number.

    Raises NotParsable, and Ambiguous for a single point before exactly three digits (1.299 €), which may group them,
    and for an unknown currency.
    """
    if not isinstance(value, str):
        return Money(parse_number(value))
    text = SPACES.sub(" ", value).strip().replace("\u2212", "-").translate(QUOTES)
    found = MONEY.fullmatch(text) if len(text) <= LONGEST else None
    if not found or (found["before"] and found["after"]) or (found["sign"] and found["inner"]):
        raise NotParsable("is not an amount of money")
    currency = _parse_currency(found["before"] or found["after"])
    digits = found["number"].strip()
    if re.fullmatch(r"\d{1,3}\.\d{3}", digits) and not digits.startswith("0."):
        raise Ambiguous(f"can be {digits.replace('.', '')} or {digits.rstrip('0')}; write it with two decimals")
    sign = found["sign"] or found["inner"]
    return Money(parse_number(sign + digits), currency)


def _normalise_digits(text: str) -> str:
    """Return digits with grouping and decimal marks as digits with a point; NotParsable for a misplaced mark."""
    comma, point = text.rfind(","), text.rfind(".")
    decimal_mark = ""
    if comma >= 0 and point >= 0:
        decimal_mark = "," if comma > point else "."
    elif text.count(".") == 1:
        decimal_mark = "."
    elif text.count(",") == 1 and not GROUPS[","].fullmatch(text):
        decimal_mark = ","
    whole, _, fraction = text.rpartition(decimal_mark) if decimal_mark else (text, "", "")
    if decimal_mark and not (DIGITS.fullmatch(fraction) or not fraction):
        raise NotParsable("is not a number")
    return f"{_remove_grouping(whole)}.{fraction or 0}"


def _remove_grouping(text: str) -> str:
    if DIGITS.fullmatch(text):
        return text
    if LAKHS.fullmatch(text):
        return text.replace(",", "")
    for mark, pattern in GROUPS.items():
        if pattern.fullmatch(text):
            return text.replace(mark, "")
    raise NotParsable("is not a number")


def _parse_currency(mark: str) -> str:
    mark = mark.strip().rstrip(".")
    if mark.upper() in CODES:
        return mark.upper()
    if mark and mark not in MARKS:
        raise Ambiguous(f"is in a currency that is not known ({mark})")
    return MARKS.get(mark, "")


def check_date_format(text: str) -> re.Pattern[str]:
    """Return a pattern for a format such as ``DD/MM/YYYY``; raise ValueError unless it has year, month and day once.

    YYYY, YY (20..), MMMM and MMM (names), MM, M, DD, D; everything else is literal.
    """
    tokens = TOKEN.findall(text)
    if len(text) > LONGEST or sorted(token[0] for token in tokens) != ["D", "M", "Y"]:
        raise ValueError("it needs a year (YYYY or YY), a month (MMMM, MMM, MM or M) and a day (DD or D), each once")
    pattern = "".join(TOKENS.get(part, re.escape(part.lower())) for part in re.split(f"({TOKEN.pattern})", text))
    return re.compile(pattern)


def parse_day(value: object, formats: Iterable[re.Pattern[str]] = ()) -> date:
    """Return the day that a text names.

    Declared ``formats`` come first, then ISO 8601 (a time after it is ignored), month names, and numbers such as
    25/12/2024 if only one day is possible. Raises Ambiguous for 03/04/2024 without a format, and NotParsable.
    """
    if not isinstance(value, str) or len(value) > LONGEST:
        raise NotParsable("is not a date")
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
    raise NotParsable("is not a date")


def parse_moment(value: object) -> datetime:
    """Return a date with its time, ISO 8601; raise NotParsable for anything else, and for a date without a time."""
    if not isinstance(value, str) or len(value) > LONGEST or not re.search(r"\d[Tt ]\d", value):
        raise NotParsable("is not a date with a time (ISO 8601)")
    try:
        return datetime.fromisoformat(value.strip())
    except ValueError:
        raise NotParsable("is not a date with a time (ISO 8601)") from None


def is_same_moment(one: datetime, other: datetime) -> bool:
    """Return whether two moments are the same; raise Ambiguous if only one of them states its time zone."""
    if (one.tzinfo is None) != (other.tzinfo is None):
        raise Ambiguous("only one of the two states its time zone")
    return one == other


def parse_month(value: object) -> int:
    """Return the number of a month, from its name, an abbreviation of its name, or its number."""
    text = str(value).strip().lower().rstrip(".")
    if text in MONTHS:
        return MONTHS[text]
    if text.isascii() and text.isdecimal() and len(text) < 3 and 1 <= int(text) <= 12:
        return int(text)
    raise NotParsable("is not a month")


def _parse_declared(found: dict[str, str | None]) -> date:
    name = found.get("name")
    if name and name not in MONTHS:
        raise NotParsable("is not a date")
    year = found.get("year") or f"20{found['short']}"
    return _make_date(year, MONTHS[name] if name else found["month"] or 0, found["day"] or 0)


def _read_numbers(first: str, second: str, year: str) -> date:
    days = set()
    for month_number, day_number in ((first, second), (second, first)):
        with suppress(NotParsable):
            days.add(_make_date(year, month_number, day_number))
    if len(days) > 1:
        raise Ambiguous("is ambiguous; state the order in the schema, such as date_format: DD/MM/YYYY")
    if not days:
        raise NotParsable("is not a date")
    return days.pop()


def _make_date(year: str | int, month_number: str | int, day_number: str | int) -> date:
    try:
        return date(int(year), int(month_number), int(day_number))
    except ValueError:
        raise NotParsable("is not a date that exists") from None
