"""Strict JSON: every document is either usable and storable, or refused with the place and the reason."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from annotation.formats.documents import FormatError, parse_json
from annotation.tests.formats_builders import codes, said


def refusal(data: bytes) -> FormatError:
    with pytest.raises(FormatError) as caught:
        parse_json(data, "t/result.json")
    return caught.value


def test_a_document_is_read_with_and_without_a_byte_order_mark():
    assert parse_json('{"a": ["ü", 1, 1.5, null, true]}'.encode(), "x") == {"a": ["ü", 1, 1.5, None, True]}
    assert parse_json(b'\xef\xbb\xbf{"a": 1}', "x") == {"a": 1}


@pytest.mark.parametrize("encoding", ["utf-16", "utf-16-le", "utf-16-be", "utf-32", "latin-1"])
def test_another_encoding_than_utf8_is_refused_by_name(encoding):
    error = refusal('{"a": "café au lait"}'.encode(encoding))

    assert codes(error.problems) == {"not_utf8"}
    assert "UTF-8" in said(error.problems)


def test_a_syntax_error_says_line_and_column():
    assert "line 2 column 6" in said(refusal(b'{\n"a": nothing}').problems)


def test_an_empty_file_is_refused():
    assert codes(refusal(b"").problems) == {"json_invalid"}


def test_an_integer_of_thousands_of_digits_is_refused():
    assert "digits" in said(refusal(b'{"a": ' + b"9" * 5000 + b"}").problems)


@pytest.mark.parametrize("data", [b"[" * 100_000, b'{"a":' * 100_000, b"[" * 5000 + b"]" * 5000])
def test_deep_nesting_is_refused(data):
    assert codes(refusal(data).problems) == {"json_invalid"}


def test_a_key_that_is_there_twice_is_named():
    error = refusal(b'{"steps": [{"action": 1, "action": 2}]}')

    assert codes(error.problems) == {"duplicate_key"}
    assert "action" in said(error.problems)


@pytest.mark.parametrize("number", [b"NaN", b"Infinity", b"-Infinity", b"1e999"])
def test_a_number_that_is_none_is_refused_with_its_path(number):
    error = refusal(b'{"steps": [0, {"reference_length": ' + number + b"}]}")

    assert error.problems[0].where == "t/result.json: steps[1].reference_length"
    assert "reference_length" in error.problems[0].message


@pytest.mark.parametrize("text", [b"\\u0000", b"\\ud800", b"\\udc00x"])
def test_text_that_no_database_stores_is_refused_with_its_path(text):
    error = refusal(b'{"steps": [{"thought": "a' + text + b'"}]}')

    assert error.problems[0].where == "t/result.json: steps[0].thought"
    assert codes(error.problems) == {"text_unstorable"}


def test_a_key_that_no_database_stores_is_refused_and_shown_escaped():
    error = refusal(b'{"a\\u0000b": 1}')

    assert codes(error.problems) == {"text_unstorable"}
    assert said(error.problems).isprintable()


def test_a_raw_nul_character_is_refused_with_its_line():
    assert "line 2" in said(refusal(b'{"a":\n"x\x00"}').problems)


def test_a_whole_surrogate_pair_is_an_ordinary_character():
    assert parse_json(b'"\\ud83d\\ude00"', "x") == "😀"


def test_everything_that_is_wrong_is_said_at_once():
    error = refusal(b'{"a": NaN, "b": "\\u0000", "c": 1, "c": 2}')

    assert codes(error.problems) == {"number_not_finite", "text_unstorable", "duplicate_key"}


def test_problems_without_number_are_cut_short():
    assert len(refusal(b"[" + b"NaN," * 10_000 + b"1]").problems) == 50


def test_a_document_of_millions_of_values_is_refused_before_it_is_parsed():
    assert codes(refusal(b"[" + b"[]," * 2_000_000 + b"1]").problems) == {"json_too_large"}


def test_texts_may_hold_millions_of_commas():
    assert parse_json(b'{"body": "' + b'[,\\"{' * 600_000 + b'"}', "x") == {"body": '[,"{' * 600_000}


@given(st.binary(max_size=200) | st.text(max_size=100).map(str.encode))
def test_any_bytes_are_a_document_or_a_format_error(data):
    try:
        parse_json(data, "x")
    except FormatError as caught:
        error = caught
    else:
        return
    assert error.problems
    assert said(error.problems).isprintable()
