"""Regular expressions are matched as Python does it, and in bounded time."""

from __future__ import annotations

import re
import time

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from judges.scorers.network_trace import patterns
from judges.scorers.network_trace.patterns import Pattern, PatternError, TooCostly, is_pattern, shared_steps

LETTERS = st.text("abAB1. \nsSſkK٣ıß", max_size=8)  # letters with several others in the other case, and a digit
ATOMS = st.sampled_from(
    ["a", "b", "A", ".", "[ab]", "[^a]", r"\d", r"\w", r"\.", "1", "[^a-b1]", "^", "$", r"\s", r"\S", "s", "K", "ſ",
     "[a-s]", "[^k]", "[^Sk]", r"[\d.]", r"\W", r"\b", r"\B", r"\A", r"\Z",
     "(?a:\\w)", "(?a:\\d|\\b)", "(?i:s)", "(?m:^)", "(?m:$)",
     "(?s:.)", "(?-i:a)", "(?ai:k)"]
)  # fmt: skip
PATTERNS = st.recursive(
    ATOMS,
    lambda inner: st.one_of(
        st.tuples(inner, inner).map("".join),
        st.tuples(inner, inner).map(lambda two: f"(?:{two[0]}|{two[1]})"),
        st.tuples(inner, st.sampled_from(["*", "?", "+", "{1,2}", "{2}", "*?"])).map(
            lambda two: f"(?:{two[0]}){two[1]}"
        ),
        inner.map(lambda one: f"(?={one})"),
        inner.map(lambda one: f"(?!{one})"),
        inner.map(lambda one: f"({one})"),
    ),
    max_leaves=6,
)


@settings(deadline=None)
@example(r"\b", "", False)
@example(r"\B", "", False)
@example("s", "ſ", True)
@example("[^k]", "\u212a", True)
@given(PATTERNS, LETTERS, st.booleans())
def test_matches_are_those_of_python(pattern, text, ignore_case):
    theirs, ours = re.compile(pattern, re.IGNORECASE if ignore_case else 0), Pattern(pattern, ignore_case=ignore_case)

    assert ours.fullmatch(text) == bool(theirs.fullmatch(text))
    assert ours.match(text) == bool(theirs.match(text))
    assert ours.search(text) == bool(theirs.search(text))


@pytest.mark.parametrize(
    ("pattern", "text"),
    [
        ("^(a+)+$", "a" * 5_000 + "b"),
        ("^(a|a)*$", "a" * 5_000 + "b"),
        ("^(a|aa)+$", "a" * 5_000 + "b"),
        ("^.*a.*a.*a.*a.*b$", "a" * 5_000),
        ("^(?:(?:" + "|" * 20 + "){2000}a)*$", "a" * 100 + "b"),
        (r"^(?=.*laundry)(?=.*detergent).*bought$", "laundry " * 1_000),
    ],
)
def test_patterns_that_take_python_for_ever_take_a_moment(pattern, text):
    started = time.process_time()

    assert not Pattern(pattern).fullmatch(text)
    assert time.process_time() - started < 10  # hundreds of years otherwise


def test_a_match_that_would_take_too_long_is_given_up():
    with pytest.raises(TooCostly, match="takes too long"):
        Pattern("^" + ".*" * 150 + "x$").fullmatch("abc" * 6_000)
    with pytest.raises(TooCostly, match="more than 20,000"):
        Pattern("^a$").fullmatch("a" * 20_001)


def test_a_step_costs_little_however_long_the_sets_of_a_pattern_are():
    letters = "".join(chr(0x4E00 + 2 * number) for number in range(900))
    started = time.process_time()
    with pytest.raises(TooCostly):
        Pattern(f"^(?:[{letters}a]?){{2000}}b$", ignore_case=True).fullmatch("a" * 2_000)
    assert time.process_time() - started < 10  # 81 s where each state asks each character of its set


def test_the_matches_of_a_check_have_their_steps_together(monkeypatch):
    monkeypatch.setattr(patterns, "MOST_TOGETHER", 100_000)
    pattern, texts = Pattern("^" + ".*" * 20 + "x$"), ["abc" * 300] * 10
    with shared_steps(), pytest.raises(TooCostly, match="on so many texts"):
        any(map(pattern.fullmatch, texts))
    assert not any(map(pattern.fullmatch, texts))  # elsewhere each has its own


@pytest.mark.parametrize(
    ("pattern", "says"),
    [
        (r"^(a)\1$", "reference to a group"),
        (r"^(?<=a)b$", "look-behind"),
        (r"^(?>a)b$", "atomic"),
        (r"^a*+b$", "possessive"),
        (r"^(a)?(?(1)b|c)$", "condition"),
        (r"(?L)^a$", "not a regular expression"),
        (r"^(a$", "not a regular expression"),
        (r"^(?:a{1000}){1000}$", "too large"),
        (r"^a{100000}$", "too large"),
        ("^(?:(?:(?:){5000}){5000}){5000}$", "too large"),
        ("^(?:" + "|" * 800 + "){2000}$", "too large"),
        ("^" + "(" * 300 + "a" + ")*" * 300 + "$", "too deep"),
        ("^" + "a" * 1_000 + "$", "at most 1,000"),
    ],
)
def test_what_cannot_be_matched_so_is_refused(pattern, says):
    with pytest.raises(PatternError, match=says):
        Pattern(pattern)


def test_a_pattern_is_written_with_its_ends():
    assert is_pattern("^a$")
    assert is_pattern("^$")
    assert not any(is_pattern(one) for one in ("^a", "a$", "^", 7, None))
