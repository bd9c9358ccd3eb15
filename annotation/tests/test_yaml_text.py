"""YAML that people write."""

from __future__ import annotations

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from annotation.formats.documents import FormatError
from annotation.formats.yaml_text import parse_yaml, written

TEXTS = st.text(st.characters(exclude_categories=["Cs", "Cc"], exclude_characters="\ufeff\ufffe\uffff"), max_size=20)
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-(10**15), 10**15) | TEXTS,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(TEXTS, inner, max_size=4),
    max_leaves=20,
)


def test_values_are_those_of_json_and_each_has_its_line():
    document = parse_yaml("a:\n  - no\n  - 2024-01-05\n  - '7'\n  - 7\n  - 1.5\nb: true\nc:\n", "checks")
    assert document.value == {"a": ["no", "2024-01-05", "7", 7, 1.5], "b": True, "c": None}
    assert document.line(("a", 1)) == 3
    assert document.line(("b",)) == 7
    assert document.line(("a", 0, "there is no such place")) == 2


@given(VALUES)
def test_what_json_writes_is_read_as_it_was(value):
    # Characters as they are: YAML reads the two escapes of a surrogate pair as two halves.
    assert parse_yaml(json.dumps(value, ensure_ascii=False), "a text").value == value


@pytest.mark.parametrize(
    ("text", "code", "line"),
    [
        ("a: &x [1]\nb: *x", "yaml_reference", 1),
        ("a: 1\nb: !!python/object/apply:os.system [ls]", "yaml_tag", 2),
        ("a: 1\na: 2", "duplicate_key", 2),
        ("a: [1, 2", "yaml_invalid", 1),
        ("a: 1\n---\nb: 2", "yaml_invalid", 2),
        ("? [1]\n: 2", "yaml_key", 1),
        ("[" * 60 + "]" * 60, "yaml_too_large", 1),
        ("- 1\n" * 20_001, "yaml_too_large", 20_000),
        ("a: 1e999", "number_not_finite", 1),
        ("a: 1\nb: \x00", "text_unstorable", 2),
        ('a: "\\ud83d\\ude00"', "text_unstorable", 1),
        ("x" * 400_001, "yaml_too_long", 1),
    ],
)
def test_a_mistake_is_named_with_its_line(text, code, line):
    with pytest.raises(FormatError) as refused:
        parse_yaml(text, "checks")
    assert refused.value.problems[0].code == code
    assert refused.value.problems[0].where == f"line {line}"


@settings(deadline=None)
@given(
    st.recursive(
        st.none()
        | st.booleans()
        | st.integers(-(10**15), 10**15)
        | st.text(
            st.characters(exclude_categories=["Cs", "Cc"], exclude_characters="\ufeff\ufffe\uffff\u2028\u2029\x85"),
            max_size=8,
        ),
        lambda one: (
            st.lists(one, max_size=3)
            | st.dictionaries(
                st.text(st.characters(codec="ascii", exclude_categories=["Cc"]), max_size=5), one, max_size=3
            )
        ),
    )
)
def test_what_is_written_as_yaml_is_read_as_it_was(value):
    assert parse_yaml(written(value), "x").value == value
