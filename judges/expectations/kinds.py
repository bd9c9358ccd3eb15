"""The kinds of expectation, each with the parser that says what is wrong with a text of it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from annotation.formats.documents import FormatError
from annotation.records import Problem
from judges.models import Expectation
from judges.scorers.network_trace import checks
from judges.scorers.rubric import written

Kind = Expectation.Kind


def parse_text(kind: str, text: str) -> Any:
    """`network_trace.checks.Checks` or `rubric.written.Rubric`; FormatError with every problem, ``where`` its line."""
    return _PARSERS[Kind(kind)](text)


def find_problems(kind: str, text: str) -> list[Problem]:
    try:
        parse_text(kind, text)
    except FormatError as refused:
        return sorted(refused.problems, key=find_line)
    return []


def find_line(problem: Problem) -> int:
    """The line that a problem names, from 1; 0 for what concerns the whole."""
    word, _, number = problem.where.partition(" ")
    return int(number) if word == "line" and number.isdecimal() and len(number) < 9 else 0


def strip_line(problem: Problem) -> str:
    """The message for a place that says the line already: without it, and without the name of the text."""
    name, found, says = problem.message.partition(f", line {find_line(problem):,}: ")
    return says if found and " " not in name else problem.message


_PARSERS: dict[Kind, Callable[[str], Any]] = {Kind.NETWORK_CHECKS: checks.parse, Kind.RUBRIC: written.parse}
