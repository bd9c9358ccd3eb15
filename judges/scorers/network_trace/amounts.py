"""Numbers and amounts of money, as people and pages write them."""

from __future__ import annotations

import re
from dataclasses import dataclass
from decimal import Decimal

LONGEST = 60  # characters of a number


class NotParsable(ValueError):
    """A value is not of the type that is asked for; the message says which."""


class Ambiguous(ValueError):
    """A value can be read in two ways; the message says which, and how to decide."""


@dataclass(frozen=True, slots=True)
class Money:
    """``currency`` is an ISO code, ``$`` for a dollar of no known country, or "" where none was written."""

    amount: Decimal
    currency: str = ""

    def equals(self, other: Money) -> bool:
        """Equal amounts in currencies that can be the same one: what is not written contradicts nothing."""
        return self.amount == other.amount and _may_be_same(self.currency, other.currency)


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


def parse_number(value: object) -> Decimal:
    """A number as an exact decimal.

    ``1299``, ``1,299.00``, ``1.299,00``, ``1 299``, ``1'299``: where a comma and a point occur, the last one is the
    decimal mark. A single comma before exactly three digits groups them (1,299 is 1299, 0,299 is less than one); a
    single point never does (1.299 is less than two). Raises NotParsable.
    """
    if isinstance(value, bool) or not isinstance(value, int | float | str | Decimal):
        raise NotParsable("is no number")
    if not isinstance(value, str):
        return Decimal(str(value))
    text = value.strip().replace("\u2212", "-").translate(QUOTES)
    if len(text) > LONGEST:
        raise NotParsable("is no number")
    if PLAIN.fullmatch(text):
        return Decimal(text)
    sign, digits = (text[0], text[1:].strip()) if text[:1] in {"+", "-"} else ("", text)
    return Decimal(sign + _normalise_digits(SPACES.sub(" ", digits)))


def parse_whole_number(value: object) -> Decimal:
    found = parse_number(value)
    if found != found.to_integral_value():
        raise NotParsable("is no whole number")
    return found


def parse_money(value: object) -> Money:
    """An amount with its currency: ``$1,299``, ``1299 USD``, ``1.299,00 €``, ``-5 EUR``, or a bare number.

    Raises NotParsable, and Ambiguous for a single point before exactly three digits (1.299 €), which may group them,
    and for a currency that is not known.
    """
    if not isinstance(value, str):
        return Money(parse_number(value))
    text = SPACES.sub(" ", value).strip().replace("\u2212", "-").translate(QUOTES)
    found = MONEY.fullmatch(text) if len(text) <= LONGEST else None
    if not found or (found["before"] and found["after"]) or (found["sign"] and found["inner"]):
        raise NotParsable("is no amount of money")
    currency = _parse_currency(found["before"] or found["after"])
    digits = found["number"].strip()
    if re.fullmatch(r"\d{1,3}\.\d{3}", digits) and not digits.startswith("0."):
        raise Ambiguous(f"can be {digits.replace('.', '')} or {digits.rstrip('0')}; write it with two decimals")
    sign = found["sign"] or found["inner"]
    return Money(parse_number(sign + digits), currency)


def _normalise_digits(text: str) -> str:
    """Digits with marks as digits with a point; NotParsable where the marks stand as in no number."""
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
        raise NotParsable("is no number")
    return f"{_remove_grouping(whole)}.{fraction or 0}"


def _remove_grouping(text: str) -> str:
    if DIGITS.fullmatch(text):
        return text
    if LAKHS.fullmatch(text):
        return text.replace(",", "")
    for mark, pattern in GROUPS.items():
        if pattern.fullmatch(text):
            return text.replace(mark, "")
    raise NotParsable("is no number")


def _parse_currency(mark: str) -> str:
    mark = mark.strip().rstrip(".")
    if mark.upper() in CODES:
        return mark.upper()
    if mark and mark not in MARKS:
        raise Ambiguous(f"is in a currency that is not known ({mark})")
    return MARKS.get(mark, "")


def _may_be_same(one: str, other: str) -> bool:
    return not one or not other or one == other or other in SEVERAL.get(one, ()) or one in SEVERAL.get(other, ())
