"""A bundle is computed the same by every Python: nothing rests on the characters that this one happens to know."""

from __future__ import annotations

import ast
import hashlib
import re
import unicodedata
from collections.abc import Iterator
from pathlib import Path

import pytest

from annotation import protocol
from evaluations import verifier
from evaluations.verifier.findings import plural
from evaluations.verifier.values import UNSHOWABLE, is_blank, show

EVERY = [chr(code) for code in range(0x110000)]
# What differs from one Python to another, and is asked of text.
OF_THIS_PYTHON = {
    *("isprintable", "isidentifier", "isalpha", "isalnum", "isdigit", "isnumeric", "isdecimal", "isspace", "istitle"),
    *("casefold", "swapcase", "title", "category", "normalize", "combining", "name", "lookup", "repr"),
}
OF_UNICODE = re.compile(r"\\[dwsbDWSB]")
# Where it makes no difference: names of judges are slugs, levels are compared by one Python and with nothing stated,
# figures that differ are told and never stated, and the bytes of a name are no text.
HARMLESS = {
    *(("numbers", "casefold"), ("numbers", r"(\d+)"), ("figures", "isdecimal"), ("coverage", "casefold")),
    *(("figures", "repr"), ("package", "repr"), ("values", "category")),
}


@pytest.mark.parametrize(
    "text",
    ["oops \U0001fae8", "\u0378 \U0003fffd", "\ue000", "a\u00a0b\u3000c", "Caf\u00e9 \u8aac"],
    ids=ascii,
)
def test_a_reason_is_quoted_with_characters_that_only_a_newer_python_knows(text: str) -> None:
    assert show(text) == text


@pytest.mark.parametrize(
    "hidden",
    ["\n", "\x1b", "\x85", "\u061c", "\u200d", "\u2028", "\u202e", "\u2066", "\ud800", "\ufeff", "\U000e0041"],
    ids=ascii,
)
def test_what_could_hide_or_move_text_is_not_quoted(hidden: str) -> None:
    assert show(f"a{hidden}b") == "a?b"
    assert UNSHOWABLE.search(hidden)


def test_other_values_than_text_are_quoted_in_ascii() -> None:
    said = show(["\U0001fae8", "\u00e9", None, 0.1])
    assert said == r"['\U0001fae8', '\xe9', None, 0.1]"


def test_what_shows_nothing_is_the_same_in_every_python() -> None:
    """The hash was the same with Python 3.10, 3.11, 3.12 and 3.13, which know Unicode 13 to 15.1."""
    blank = hashlib.sha256(bytes(map(is_blank, EVERY))).hexdigest()
    assert blank == "99ebb45e12cc4a682599654e4c2f47d1f28f40e2dba53c33fe6f8cbfaaa94639"


def test_what_the_form_takes_for_a_reason_the_verifier_takes_too() -> None:
    assert [each for each in EVERY if not protocol.is_blank(each) and is_blank(each)] == []


def test_what_unicode_had_already_the_form_and_the_verifier_see_alike() -> None:
    """But for two Mongolian letters that became marks; what has come since is the form's to refuse."""
    known = [each for each in EVERY if unicodedata.ucd_3_2_0.category(each) != "Cn"]
    assert [each for each in known if protocol.is_blank(each) != is_blank(each)] == ["\u1885", "\u1886"]


def test_the_verifier_asks_nothing_that_another_python_would_answer_otherwise() -> None:
    folder = Path(verifier.__file__).parent
    asked = {(path.stem, what) for path in folder.glob("*.py") for what in asked_in(ast.parse(path.read_text()))}
    assert asked == HARMLESS


def asked_in(tree: ast.Module) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Call):
            called = node.func
            what = called.attr if isinstance(called, ast.Attribute) else getattr(called, "id", "")
            yield from {what} & OF_THIS_PYTHON
        elif isinstance(node, ast.Constant) and isinstance(node.value, str) and OF_UNICODE.search(node.value):
            yield node.value
        elif isinstance(node, ast.FormattedValue) and node.conversion == ord("r"):
            yield "repr"


def test_a_large_number_is_told_in_thousands() -> None:
    assert plural(1_234_567, "figure differs", "figures differ") == "1,234,567 figures differ"
