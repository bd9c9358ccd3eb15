"""Find the words, numbers and names of a task again in the texts of its trajectory. No Django.

A hint for the reader, no rule: a term that is not marked may still be there in other words, or in the screenshot.
Numbers match with and without thousands separators and currency, dates in the notations that name one day only, and
words in singular and plural; other inflection is not matched, because it would match other words, too.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import lru_cache

from annotation.protocol import CRITERIA

MOST_TERMS = 60
LONGEST_WORD = 60
LONGEST_TEXT = 20_000  # characters of a text that are searched

_MONTHS = (
    "january february march april may june july august september october november december".split()  # noqa: SIM905
)
_COUNTS = "zero one two three four five six seven eight nine ten eleven twelve".split()  # noqa: SIM905
# Words that say nothing about what the task wants: marking them would mark every line.
_COMMON = frozenset(
    """about above add after all allow allowed also among and answer any are available back been before below between
    book both browse but button buy can check choose click compare cost costs could did display does each either enter
    every exactly filter find first for from get give given going had has have having her here him his home how include
    included including information into item items its just know least less let like list locate look make many may
    more most much must name near need new not now number off old once one only open option options other our out over
    page pages please possible product products provide put recent result results retrieve return same save say search
    see select set she shop should show site some sort sorted submit such take tell than that the their them then there
    these they this those too try two type under until use using view visit want was way website week well were what
    when where which while who whose why will with within without would yes yet you your""".split()  # noqa: SIM905
)
_LEFT, _RIGHT = r"(?<![^\W_])", r"(?![^\W_])"
_GAP = r"(?:[\s_/+-]|%20){1,3}"  # between the words of a phrase, in text and in addresses
_CURRENCY = r"(?:[$€£¥]|(?:usd|eur|gbp)\b)"
_AMOUNT = r"(?:usd|eur|gbp|dollars?|euros?|pounds?)"
_NUMBER = r"\d{1,15}(?:,\d{3}){0,4}(?:\.\d{1,9})?"
_MONTH = "|".join(sorted((name for month in _MONTHS for name in (month, month[:3])), key=len, reverse=True)) + "|sept"
_SEPARATOR = r"[, \u00a0\u202f'\u2019]?"  # between thousands
_ORDINAL = "(?:st|nd|rd|th)?"


@dataclass(frozen=True, slots=True)
class Span:
    """Characters ``start`` to ``end`` (exclusive) of a text that are term number ``term`` of the task."""

    start: int
    end: int
    term: int


@dataclass(frozen=True, slots=True)
class TaskTerms:
    """Terms of a task: their ``spans`` in its text, and a ``pattern`` with a group ``t0``, ``t1``, ... for each."""

    spans: tuple[Span, ...] = ()
    pattern: re.Pattern[str] | None = None

    def occurrences(self, text: str) -> Iterator[Span]:
        """Yield the terms in another text, from left to right and without overlap."""
        if self.pattern is None:
            return
        for match in self.pattern.finditer(text, 0, LONGEST_TEXT):
            if match.lastgroup and match.end() > match.start():
                yield Span(*match.span(), int(match.lastgroup[1:]))


@lru_cache(maxsize=256)  # every step of a trajectory asks for the terms of the same task
def find_task_terms(task: str) -> TaskTerms:
    """Return quoted words, numbers, dates, times, names, superlatives and nouns of a task, at most `MOST_TERMS`."""
    taken: list[tuple[int, int, str]] = []
    used = bytearray(len(task))
    for expression, translate in _KINDS:
        for match in expression.finditer(task, 0, LONGEST_TEXT):
            start, end = match.span()
            if any(used[start:end]):
                continue
            pattern = translate(match)
            if pattern:
                taken.append((start, end, pattern))
                used[start:end] = b"\1" * (end - start)
    numbers: dict[str, int] = {}
    spans = []
    for start, end, pattern in sorted(taken):
        if pattern in numbers or len(numbers) < MOST_TERMS:
            spans.append(Span(start, end, numbers.setdefault(pattern, len(numbers))))
    groups = [f"(?P<t{number}>{pattern})" for pattern, number in _from_longest(numbers)]
    return TaskTerms(tuple(spans), re.compile("|".join(groups), re.IGNORECASE) if groups else None)


def _from_longest(numbers: dict[str, int]) -> list[tuple[str, int]]:
    """Order the patterns so that "32 GB" is tried before "GB"."""
    return sorted(numbers.items(), key=lambda item: -len(item[0]))


# --- kinds of terms: each translates a match in the task to a pattern for other texts; "" for none --------------------


def _quoted(match: re.Match[str]) -> str:
    return _of_words(match["term"] or match["single"])


def _phrase(match: re.Match[str]) -> str:
    return _of_words(match["term"])


def _of_words(text: str) -> str:
    return _whole(_GAP.join(map(re.escape, re.split(r"[\s_-]+", text.strip()))))


def _whole(pattern: str) -> str:
    return f"{_LEFT}{pattern}{_RIGHT}"


def _word(match: re.Match[str]) -> str:
    word = match["term"]
    if word.lower() in _COMMON or (len(word) < 3 and not word.isupper()) or len(word) > LONGEST_WORD:
        return ""
    return _whole(_either_number(word))


def _either_number(word: str) -> str:
    """Return a pattern for a word in singular and plural, by the rules that have no exception for nouns in -s."""
    low = word.lower()
    if low.endswith("ies") and len(low) > 4:
        base = low[:-3] + "y"
    elif low.endswith(("sses", "xes", "ches", "shes")):
        base = low[:-2]
    elif low.endswith("s") and not low.endswith(("ss", "us", "is")) and len(low) > 3:
        base = low[:-1]
    else:
        base = low
    if re.search(r"[^aeiou]y\Z", base):
        return f"{re.escape(base[:-1])}(?:y|ies)"
    if base.endswith(("s", "x", "ch", "sh")):
        return f"{re.escape(base)}(?:es)?"
    return f"{re.escape(base)}s?"


def _value(written: str) -> str:
    """Return a pattern for a number: "1,800" is also 1800 and 1800.00, "4.50" also 4.5."""
    whole, _, part = written.replace(",", "").partition(".")
    groups = _SEPARATOR.join(re.findall(r"\d{1,3}(?=(?:\d{3})*\Z)", whole))
    part = part.rstrip("0")
    decimals = rf"[.,]{part}0{{0,2}}" if part else r"(?:[.,]0{1,2})?"
    return rf"(?<![\d.,])0{{0,2}}{groups}{decimals}(?![\d]|[.,]\d)"


def _money(match: re.Match[str]) -> str:
    value = _value(match["value"])
    named = rf"{_CURRENCY}\s?{value}|{value}\s?{_AMOUNT}\b"
    return f"(?:{named}|{value})" if len(match["value"]) > 1 else f"(?:{named}|(?<==){value})"


def _measured(match: re.Match[str]) -> str:
    """Return a pattern for a number with its unit; a number of one digit is no hint without its unit."""
    written, unit = match["value"].lower(), match["unit"]
    if unit.lower() in _COMMON | set(_MONTHS):
        return _value(written) if written[0].isdigit() and len(written) > 1 else ""
    count = _COUNTS.index(written) if written in _COUNTS else None
    value = _value(str(count)) if count is not None else _value(written)
    if written.isdigit() and len(written) < 3 and int(written) < len(_COUNTS):
        count = int(written)
    either = f"(?:{value}|{_LEFT}{_COUNTS[count]}{_RIGHT})" if count is not None else value
    word = _either_number(unit)
    together = rf"{either}(?:{_GAP})?{word}{_RIGHT}|{_LEFT}{word}(?:[\s:=_-]){{1,2}}{value}"
    return f"(?:{together}|{value})" if written[0].isdigit() and len(written) > 1 else f"(?:{together})"


def _number(match: re.Match[str]) -> str:
    return _value(match["term"]) if len(match["term"]) > 1 else ""


def _date(match: re.Match[str]) -> str:
    found = {name: text for name, text in match.groupdict().items() if text}
    year = found.get("year", "")
    if "number" in found:
        month = int(found["number"])
    else:
        month = next(n for n, name in enumerate(_MONTHS, start=1) if name.startswith(found["month"].lower()[:3]))
    day = int(found["day"])
    if not (1 <= month <= 12 and 1 <= day <= 31):
        return ""
    days = (int(found["first"]), day) if "first" in found else (day,)
    return "(?:" + "|".join(_day(one, month, year) for one in dict.fromkeys(days)) + ")"


def _day(day: int, month: int, year: str) -> str:
    """Return a pattern for the notations of a day. "03/04" is two days, so day and month as numbers need a day > 12."""
    any_year, name = year or r"\d{4}", _MONTHS[month - 1]
    named = rf"(?:{name}|{name[:3]}|sept)" if month == 9 else rf"(?:{name}|{name[:3]})"
    after = rf"(?:,?[\s-]{any_year}(?!\d)|(?!,?[\s-]\d{{4}}|\d))"  # its own year or none
    ways = [
        rf"(?<!\d){any_year}[-/.]?{month:02}[-/.]?{day:02}(?!\d)",
        rf"(?<!\d)0?{day}{_ORDINAL}[\s.-]{{1,2}}(?:of\s)?{named}\b\.?{after}",
        rf"{_LEFT}{named}\.?[\s-]0?{day}{_ORDINAL}{after}",
    ]
    if day > 12:
        year_of_two = rf"(?:{any_year}|{year[2:]})" if year else r"\d{2,4}"
        ways += [
            rf"(?<![\d/.-])0?{month}[/.-]{day}(?:[/.-]{year_of_two})?(?![\d/])",
            rf"(?<![\d/.-]){day}[/.-]0?{month}(?:[/.-]{year_of_two})?(?![\d/])",
        ]
    return "|".join(ways)


def _time(match: re.Match[str]) -> str:
    hour, minute, half = int(match["hour"]), match["minute"] or "00", (match["half"] or "").lower()[:1]
    if hour > 23 or int(minute) > 59 or (half and not 1 <= hour <= 12):
        return ""
    if half:
        hour = hour % 12 + (12 if half == "p" else 0)
    minutes = "(?::00)?" if minute == "00" else f":{minute}"
    short = rf"(?<![\d:])0?{hour % 12 or 12}{minutes}\s?{'p' if hour >= 12 else 'a'}\.?m\b\.?"
    return rf"(?:{short}|(?<![\d:])0?{hour}(?::|%3A){minute}(?!\d|\s?[ap]\.?m\b))"


_SUPERLATIVE = next(term.wording for term in CRITERIA if term.code == "superlative")
_KINDS: tuple[tuple[re.Pattern[str], Callable[[re.Match[str]], str]], ...] = (
    (re.compile(r"[\"“](?P<term>[^\"“”]{2,200})[\"”]|(?<![^\W_])'(?P<single>[^']{2,200})'(?![^\W_])"), _quoted),
    (re.compile(r"(?<![\w.+-])(?P<term>[\w.+-]{1,64}@[\w-]{1,64}(?:\.[\w-]{1,64}){1,8})"), _phrase),
    (
        re.compile(
            rf"(?<!\d)(?:(?P<first>\d{{1,2}}){_ORDINAL}\s*(?:to|and|until|through|[-–])\s*)?"
            rf"(?P<day>\d{{1,2}}){_ORDINAL}\s(?:of\s)?(?P<month>{_MONTH})\b\.?(?:,?\s(?P<year>\d{{4}}))?(?!\d)",
            re.IGNORECASE,
        ),
        _date,
    ),
    (
        re.compile(
            rf"\b(?P<month>{_MONTH})\b\.?\s(?:(?P<first>\d{{1,2}}){_ORDINAL}\s*(?:to|and|until|through|[-–])\s*)?"
            rf"(?P<day>\d{{1,2}}){_ORDINAL}(?:,?\s(?P<year>\d{{4}}))?(?!\d)",
            re.IGNORECASE,
        ),
        _date,
    ),
    (re.compile(r"(?<!\d)(?P<year>\d{4})-(?P<number>\d{2})-(?P<day>\d{2})(?!\d)"), _date),
    (re.compile(r"(?<![\d/])(?P<number>\d{1,2})/(?P<day>\d{1,2})/(?P<year>\d{4})(?!\d)"), _date),
    (
        re.compile(
            r"(?<![\d:])(?P<hour>\d{1,2}):(?P<minute>\d{2})(?:\s?(?P<half>[ap])\.?m\b\.?)?(?!\d)", re.IGNORECASE
        ),
        _time,
    ),
    (re.compile(r"(?<![\d:.])(?P<hour>\d{1,2})(?P<minute>(?!))?\s?(?P<half>[ap])\.?m\b\.?", re.IGNORECASE), _time),
    (re.compile(rf"{_CURRENCY}\s?(?P<value>{_NUMBER})(?!\d)", re.IGNORECASE), _money),
    (re.compile(rf"(?<![\d.])(?P<value>{_NUMBER})\s?{_AMOUNT}\b", re.IGNORECASE), _money),
    (re.compile(r"(?<!\w)(?P<term>[A-Z]\w+(?:[\s-][A-Z]\w+)+)"), _phrase),
    (re.compile(rf"(?P<term>{_SUPERLATIVE.pattern if _SUPERLATIVE else '(?!)'})", re.IGNORECASE), _phrase),
    (
        re.compile(
            rf"(?<![\w.])(?P<value>{_NUMBER}|{'|'.join(_COUNTS[1:])})[\s-]?(?P<unit>[^\W\d_]+)(?!\w)", re.IGNORECASE
        ),
        _measured,
    ),
    (re.compile(rf"(?<![\w.])(?P<term>{_NUMBER})(?![\w])"), _number),
    (re.compile(r"(?<![\w'’])(?P<term>[^\W\d_]\w*(?:'\w+)?)"), _word),
)
