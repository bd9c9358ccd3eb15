"""Regular expressions of maintainers, matched in bounded time.

Python's own engine backtracks and may run for hours. This one follows all alternatives at once (Thompson's
construction, on the parse tree of Python's parser), so the time grows with the length of the text times the size of
the pattern. Steps are counted, and a match that takes too many raises `TooCostly`. The syntax is Python's, without
constructs that cannot be matched so: references to groups, look-behind, atomic groups, possessive repetition.
Python itself decides whether one character or one position matches: case and classes are those of `re`.
"""

from __future__ import annotations

import importlib
import re
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

LONGEST_PATTERN = 1_000  # characters
LONGEST_TEXT = 20_000
MOST_STATES = 5_000
MOST_PARTS = 50_000  # sequences that one pattern is built from, counted repetitions written out
MOST_STEPS = 1_000_000  # of one match. Each step tests at most one character, so a million take about a second.
MOST_TOGETHER = 5 * MOST_STEPS  # of all matches inside `shared_steps`: a few seconds at worst

_parser: Any = importlib.import_module("re._parser")
_compiler: Any = importlib.import_module("re._compiler")
KINDS_OF_TEXT = re.ASCII | re.LOCALE | re.UNICODE  # a group has one of them

TOO_LARGE = "it is too large: counted repetitions are written out"
REFUSED = {
    "GROUPREF": "a reference to a group",
    "GROUPREF_EXISTS": "a condition on a group",
    "ATOMIC_GROUP": "an atomic group",
    "POSSESSIVE_REPEAT": "a possessive repetition",
}


class PatternError(ValueError):
    """An invalid or unsupported pattern; the message says why."""


class TooCostly(Exception):
    """The match was stopped, because it would have taken too long."""


_left: ContextVar[list[int] | None] = ContextVar("_left", default=None)  # steps left for the matches that share them


@contextmanager
def shared_steps() -> Iterator[None]:
    """Limit all matches inside to `MOST_TOGETHER` steps in total; a match beyond that raises TooCostly."""
    before = _left.set([MOST_TOGETHER])
    try:
        yield
    finally:
        _left.reset(before)


def is_pattern(value: object) -> bool:
    return isinstance(value, str) and len(value) > 1 and value.startswith("^") and value.endswith("$")


@dataclass(slots=True)
class _State:
    """One state: ``test`` is the number of the test that takes a character; without it, ``out`` needs no character.

    ``place`` is the name of a condition on the position, and ``at`` checks it; ``ahead`` is the start of the states
    that must (``wanted``), or must not, match from here.
    """

    out: list[int]
    test: int | None = None
    place: str = ""
    at: re.Pattern[str] | None = None
    ahead: int | None = None
    wanted: bool = True


class Pattern:
    """A compiled pattern; `fullmatch`, `match` and `search` return whether a text matches, with the meaning of `re`."""

    def __init__(self, text: str, *, ignore_case: bool = False) -> None:
        if len(text) > LONGEST_PATTERN:
            raise PatternError(f"a pattern may have at most {LONGEST_PATTERN:,} characters")
        self.text = text
        self.states: list[_State] = [_State([])]  # the first state is the end
        self.tests: list[re.Pattern[str]] = []
        self._known: dict[Any, int] = {}  # numbers of tests by content: copies share one test
        self._parts = 0
        try:
            tree = _parser.parse(text, re.IGNORECASE if ignore_case else 0)
            self.start = self._build_sequence(tree, 0, tree.state.flags)
        except (re.error, OverflowError) as error:
            raise PatternError(f"it is not a regular expression: {error}") from error
        except RecursionError as error:
            raise PatternError("its groups are nested too deeply") from error

    def fullmatch(self, text: str) -> bool:
        return _Match(self, text).follow(whole=True)

    def match(self, text: str) -> bool:
        return _Match(self, text).follow()

    def search(self, text: str) -> bool:
        return _Match(self, text).follow(anywhere=True)

    def may_begin_with(self, text: str) -> bool:
        """Return whether a text that begins with this one, and continues in any way, may match as a whole."""
        return _Match(self, text, open_ended=True).reaches()

    # Building, from the end to the start: the next state is known when a state is added.

    def _add(self, state: _State) -> int:
        if len(self.states) >= MOST_STATES:
            raise PatternError(TOO_LARGE)
        self.states.append(state)
        return len(self.states) - 1

    def _build_sequence(self, tree: Iterable[Any], then: int, flags: int) -> int:
        self._parts += 1
        if self._parts > MOST_PARTS:
            raise PatternError(TOO_LARGE)
        for operator, argument in reversed(list(tree)):
            then = self._build_one(operator, argument, then, flags)
        return then

    def _build_one(self, code: Any, argument: Any, then: int, flags: int) -> int:
        operator = str(code)
        if operator in REFUSED:
            raise PatternError(f"{REFUSED[operator]} is not supported")
        if operator == "BRANCH":
            ways = [self._build_sequence(way, then, flags) for way in argument[1]]
            return self._add(_State(list(dict.fromkeys(ways))))  # equal ways become one
        if operator == "SUBPATTERN":
            _, added, removed, inner = argument
            kept = flags & ~KINDS_OF_TEXT if added & KINDS_OF_TEXT else flags
            return self._build_sequence(inner, then, (kept | added) & ~removed)
        if operator in {"MAX_REPEAT", "MIN_REPEAT"}:
            least, most, inner = argument
            return self._build_repeat(least, most, inner, then, flags)
        if operator == "AT":
            return self._add(_State([then], place=str(argument), at=_compile_alone(code, argument, flags)))
        if operator in {"ASSERT", "ASSERT_NOT"}:
            direction, inner = argument
            if direction < 0:
                raise PatternError("look-behind is not supported")
            return self._add(_State([then], ahead=self._build_sequence(inner, 0, flags), wanted=operator == "ASSERT"))
        if operator == "FAILURE":
            return self._add(_State([]))
        return self._add(_State([then], test=self._add_test(code, argument, flags)))

    def _add_test(self, code: Any, argument: Any, flags: int) -> int:
        key = (str(code), argument if isinstance(argument, int) else id(argument), flags)  # the tree still exists
        if key not in self._known:
            self._known[key] = len(self.tests)
            self.tests.append(_compile_alone(code, argument, flags))
        return self._known[key]

    def _build_repeat(self, least: int, most: int, inner: Any, then: int, flags: int) -> int:
        if least > MOST_STATES or (most != _parser.MAXREPEAT and most > MOST_STATES):
            raise PatternError(TOO_LARGE)
        if most == _parser.MAXREPEAT:
            start = self._add(_State([then]))
            self.states[start].out.append(self._build_sequence(inner, start, flags))
        else:
            start = then
            for _ in range(most - least):
                start = self._add(_State([self._build_sequence(inner, start, flags), then]))
        for _ in range(least):
            start = self._build_sequence(inner, start, flags)
        return start


class _Match:
    def __init__(self, pattern: Pattern, text: str, *, open_ended: bool = False) -> None:
        if len(text) > LONGEST_TEXT:
            raise TooCostly(f"The text has more than {LONGEST_TEXT:,} characters.")
        self.pattern, self.states, self.tests, self.start = pattern.text, pattern.states, pattern.tests, pattern.start
        self.text, self.open_ended = text, open_ended
        self.left, self.together = MOST_STEPS, _left.get()
        self.tables: dict[int, list[bool]] = {}
        self.taking: dict[str, dict[int, bool]] = {}  # the result of each test for each character

    def follow(self, *, whole: bool = False, anywhere: bool = False) -> bool:
        waiting = [self.start]
        for position in range(len(self.text) + 1):
            reached = self._closure(waiting, position)
            if 0 in reached and (not whole or position == len(self.text)):
                return True
            waiting = [self.start] if anywhere else []
            if position < len(self.text):
                waiting += self._advance(reached, self.text[position])
            if not waiting:
                return False
        return False

    def reaches(self) -> bool:
        waiting = [self.start]
        for position, char in enumerate(self.text):
            waiting = self._advance(self._closure(waiting, position), char)
        return bool(waiting)

    def _advance(self, reached: Iterable[int], char: str) -> list[int]:
        return [self.states[number].out[0] for number in reached if self._takes(number, char)]

    def _closure(self, waiting: list[int], position: int) -> set[int]:
        reached: set[int] = set()
        while waiting:
            number = waiting.pop()
            if number in reached:
                continue
            self._count(1)
            reached.add(number)
            state = self.states[number]
            if state.test is None and self._holds_at(state, position):
                waiting.extend(state.out)
        return reached

    def _holds_at(self, state: _State, position: int) -> bool:
        if self.open_ended and (state.ahead is not None or not state.place.startswith("AT_BEGINNING")):
            return True  # the following text is not known
        if state.at is not None:
            return state.at.match(self.text, position) is not None
        return state.ahead is None or self._look_ahead(state.ahead)[position] == state.wanted

    def _look_ahead(self, start: int) -> list[bool]:
        """Return for each position whether a match from ``start`` follows there; one pass from the end of the text."""
        if start in self.tables:
            return self.tables[start]
        inside = self._find_inside(start)
        before: dict[int, list[int]] = {number: [] for number in inside}
        for number in inside:
            if self.states[number].test is None:
                for then in self.states[number].out:
                    before[then].append(number)
        takers = [number for number in inside if self.states[number].test is not None]
        table = [False] * (len(self.text) + 1)
        later: set[int] = set()
        for position in range(len(self.text), -1, -1):
            self._count(1 + len(takers))
            char = self.text[position : position + 1]
            waiting = [one for one in takers if self.states[one].out[0] in later and self._takes(one, char)]
            later = self._leading([0, *waiting], before, position)
            table[position] = start in later
        self.tables[start] = table
        return table

    def _takes(self, number: int, char: str) -> bool:
        test = self.states[number].test
        if test is None or not char:
            return False
        said = self.taking.setdefault(char, {})
        if test not in said:
            said[test] = self.tests[test].match(char) is not None
        return said[test]

    def _leading(self, waiting: list[int], before: dict[int, list[int]], position: int) -> set[int]:
        found: set[int] = set()
        while waiting:
            number = waiting.pop()
            if number in found:
                continue
            self._count(1)
            found.add(number)
            waiting += [one for one in before[number] if self._holds_at(self.states[one], position)]
        return found

    def _find_inside(self, start: int) -> set[int]:
        found: set[int] = {0}
        waiting = [start]
        while waiting:
            number = waiting.pop()
            if number not in found:
                found.add(number)
                waiting.extend(self.states[number].out)
        return found

    def _count(self, steps: int) -> None:
        self.left -= steps
        if self.left < 0:
            raise TooCostly(f"The pattern {self.pattern} takes too long on a text of {len(self.text):,} characters.")
        if self.together is not None:
            self.together[0] -= steps
            if self.together[0] < 0:
                raise TooCostly(f"The pattern {self.pattern} takes too long on so many texts.")


@lru_cache(maxsize=512)
def compile_pattern(text: str, ignore_case: bool = False) -> Pattern:
    return Pattern(text, ignore_case=ignore_case)


def _compile_alone(code: Any, argument: Any, flags: int) -> re.Pattern[str]:
    """Compile one element of a parsed pattern (a character, a set, a position) to a pattern of `re`."""
    try:
        found: re.Pattern[str] = _compiler.compile(_parser.SubPattern(_parser.State(), [(code, argument)]), flags)
    except (TypeError, ValueError, KeyError) as error:
        raise PatternError(f"{str(code).lower()} is not supported") from error
    return found
