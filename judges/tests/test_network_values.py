"""Values are compared by what they mean; what can be read in two ways is never guessed."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import date
from decimal import Decimal

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from judges.scorers.network_trace import scalars
from judges.scorers.network_trace.scalars import Ambiguous, Money, NotParsable
from judges.scorers.network_trace.values import DEFAULT, Schema, compare, format_text, normalise_text

ARRAY = Schema("array")
TEXTS = st.text(max_size=12)


def equal(expected, actual, kind="", **more):
    return compare(expected, actual, Schema(kind, **more)).equal


@pytest.mark.parametrize(
    ("written", "means"),
    [
        ("1299", "1299"),
        ("1,299", "1299"),
        ("1,299.00", "1299"),
        ("1.299,00", "1299"),
        ("1 299", "1299"),
        ("1'299.50", "1299.5"),
        ("1,299,000", "1299000"),
        ("1.299.000", "1299000"),
        ("1299,5", "1299.5"),
        ("1.299", "1.299"),
        ("0,125", "0.125"),
        ("-7", "-7"),
        ("\u22127", "-7"),
        ("+7.0", "7"),
        (".5", "0.5"),
        ("1e3", "1000"),
        (7, "7"),
        (0.1, "0.1"),
    ],
)
def test_numbers_are_read_as_people_write_them(written, means):
    assert scalars.parse_number(written) == Decimal(means)


@pytest.mark.parametrize(
    "value",
    ["", "two", "1,29,9", "12,34,5678", "01,00,000", "1.2.3", "1,2.3,4", "--7", "7 apples", True, None, "9" * 61],
)
def test_what_is_no_number_is_said_to_be_none(value):
    with pytest.raises(NotParsable):
        scalars.parse_number(value)


@pytest.mark.parametrize(
    ("written", "means"),
    [
        ("$1,299", Money(Decimal(1299), "$")),
        ("1299 USD", Money(Decimal(1299), "USD")),
        ("US$ 5", Money(Decimal(5), "USD")),
        ("1.299,00 €", Money(Decimal(1299), "EUR")),
        ("EUR 7", Money(Decimal(7), "EUR")),
        ("-5 eur", Money(Decimal(-5), "EUR")),
        ("$-5", Money(Decimal(-5), "$")),
        ("1299", Money(Decimal(1299))),
        (19.99, Money(Decimal("19.99"))),
        ("0.125 €", Money(Decimal("0.125"), "EUR")),
        ("₹1,00,000", Money(Decimal(100_000), "INR")),
        ("CHF 1\u2019299.00", Money(Decimal(1299), "CHF")),
        ("Rs. 500", Money(Decimal(500), "Rs")),
        ("500 Rs", Money(Decimal(500), "Rs")),
    ],
)
def test_amounts_have_a_currency_where_one_is_written(written, means):
    assert scalars.parse_money(written) == means


def test_an_amount_is_equal_in_a_currency_that_may_be_the_same():
    assert equal("1299 USD", "$1,299.00", "currency")
    assert equal("1299", "1.299,00 €", "currency")
    assert equal("1299 EUR", "$1,299", "currency") is False
    assert equal("1299 USD", "CA$1,299", "currency") is False
    assert equal("10 USD", "$10.01", "currency") is False


def test_rupees_are_those_of_any_country():
    assert equal("500 INR", "Rs. 500", "currency")
    assert equal("500 EUR", "Rs. 500", "currency") is False


def test_a_currency_that_is_not_known_is_not_guessed():
    with pytest.raises(Ambiguous, match="not known"):
        scalars.parse_money("XYZ 5")
    compared = compare("5", "XYZ 5", Schema("currency"))
    assert (compared.equal, "not known (XYZ)" in compared.note) == (None, True)


def test_words_for_nothing_are_texts_and_only_a_written_null_is_met_by_nothing():
    for word in ("none", "null", "None"):
        assert compare(word, None).equal is False
        assert compare(None, word).equal is False
        assert compare(word, word.upper()).equal
    assert compare(None, None).equal
    assert compare(None, "").equal
    assert compare("", None).equal


def test_a_point_before_three_digits_of_an_amount_is_not_guessed():
    with pytest.raises(Ambiguous, match=r"1299 or 1\.299"):
        scalars.parse_money("1.299 €")
    compared = compare("1299 €", "1.299 €", Schema("currency"))
    assert (compared.equal, "two decimals" in compared.note) == (None, True)


@pytest.mark.parametrize("value", ["$", "5 apples", "$5 USD", "", "1,2,3 €", None, "€" * 70])
def test_what_is_no_amount_is_said_to_be_none(value):
    with pytest.raises(NotParsable):
        scalars.parse_money(value)


@pytest.mark.parametrize(
    "written",
    [
        "2024-01-25",
        "20240125",
        "2024/1/25",
        "2024.01.25",
        "2024-01-25T10:00:00Z",
        "25 January 2024",
        "25th of January, 2024",
        "Jan 25, 2024",
        "January 25th 2024",
        "25-Jan-2024",
        "Thu, 25 Jan 2024",
        "25/01/2024",
        "01/25/2024",
        "25.1.2024",
    ],
)
def test_dates_that_can_be_read_in_one_way_are_read(written):
    assert scalars.parse_day(written) == date(2024, 1, 25)


def test_a_date_that_can_be_read_in_two_ways_is_not_guessed():
    with pytest.raises(Ambiguous, match="date_format"):
        scalars.parse_day("03/04/2024")
    assert scalars.parse_day("04/04/2024") == date(2024, 4, 4)
    assert scalars.parse_day("03/04/2024", [scalars.check_date_format("DD/MM/YYYY")]) == date(2024, 4, 3)
    assert scalars.parse_day("03/04/24", [scalars.check_date_format("MM/DD/YY")]) == date(2024, 3, 4)
    assert equal("2024-04-03", "03/04/2024", "date") is None
    assert equal("2024-04-03", "03/04/2024", "date", formats=("D/M/YYYY",)) is True


@pytest.mark.parametrize(
    "value", ["", "tomorrow", "2024-02-30", "31/31/2024", "25 Foo 2024", "03/04/24", 20240125, None, "2" * 61]
)
def test_what_is_no_date_is_said_to_be_none(value):
    with pytest.raises(NotParsable):
        scalars.parse_day(value)


@pytest.mark.parametrize("text_", ["", "YYYY", "DD/MM", "DD/DD/YYYY", "YYYY-MM-DD D", "Y" * 70])
def test_a_date_format_names_year_month_and_day_once(text_):
    with pytest.raises(ValueError, match="year"):
        scalars.check_date_format(text_)


@settings(deadline=None)
@given(st.dates(min_value=date(1000, 1, 1)), st.sampled_from(["%d %B %Y", "%B %d, %Y", "%Y-%m-%d", "%d-%b-%Y"]))
def test_every_date_reads_the_same_however_it_is_written(day, form):
    assert scalars.parse_day(day.strftime(form)) == day


def test_moments_are_equal_across_time_zones_and_need_one():
    assert equal("2024-01-05T10:00:00Z", "2024-01-05T11:00:00+01:00", "date-time")
    assert equal("2024-01-05T10:00:00Z", "2024-01-05T10:00:00", "date-time") is None
    assert equal("2024-01-05T10:00:00Z", "2024-01-05", "date-time") is False


@pytest.mark.parametrize(
    ("expected", "actual", "kind", "outcome"),
    [
        (" Red  Lamp", "red lamp", "", True),
        ("ﬁne", "FINE", "", True),
        ("a\u200bb", "ab", "", True),
        ("lamp", "lamps", "", False),
        (True, "on", "", True),
        (True, "0", "", False),
        (True, "maybe", "", False),
        (20, "20.0", "", True),
        ("20", "20.0", "", False),
        ("20", "20.0", "number", True),
        ("20", "20.5", "integer", False),
        ("true", "yes", "boolean", True),
        (None, "", "", True),
        (None, None, "", True),
        (None, "x", "", False),
        ("", None, "", True),
        ("x", None, "", False),
        ("b, a", "A,B", "string_list", True),
        ("May", "5", "month", True),
        ("http://A.example/x?b=1&a=2", "http://a.example/X/?a=2&b=1", "url", True),
        ("http://a.example/x", "http://b.example/x", "url", False),
        ('{"a": 1}', {"a": 1}, "json", False),
        ('{"a": 1}', '{ "a":1 }', "json", True),
        ("^Red .*$", "a red lamp", "", False),
        ("^.*RED.*$", "a  red lamp", "", True),
        (["a", "b"], "B", "", True),
        (["a", "b"], "c", "", False),
        (["a", "b"], ["b", "a"], "", True),
        (["a", "b"], ["b"], "", False),
        (["a", "b"], '["B", "a"]', "array", True),
        (["a"], "a", "array", True),
        ({"a": 1}, {"a": "1", "b": 2}, "", True),
        ({"a": 1}, {"b": 2}, "", False),
        ({"a": {"b": [1, 2]}}, '{"a": {"b": [2, 1]}}', "", True),
        ({"a": 1}, "text", "", False),
        ("5min", "300 s", "duration", None),
        ("x", "[redacted]", "", None),
        (["a", "b"], ["[redacted]", "a"], "", None),
        (["a", "b"], ["[redacted]", "[redacted]"], "", None),
        (["a", "b"], ["[redacted]", "c"], "", False),
    ],
)
def test_a_value_is_what_is_expected_another_one_or_not_to_be_told(expected, actual, kind, outcome):
    assert equal(expected, actual, kind) is outcome


def test_a_list_is_matched_so_that_as_much_as_possible_fits():
    assert equal(["^a.*$", "ab"], ["ab", "ac"], "array") is True  # the pattern must not take what only `ab` can have
    assert equal(["a", "a"], ["a", "b"], "array") is False
    assert compare(["a", "b"], ["b", "a"], ARRAY, replace(DEFAULT, ordered=True)).equal is False
    assert equal(["a"] * 201, ["a"] * 201, "array") is None


@settings(deadline=None)
@given(TEXTS)
def test_a_text_is_equal_to_itself_and_normalising_twice_changes_nothing(one):
    assert normalise_text(normalise_text(one)) == normalise_text(one)
    if not (one.startswith("^") and one.endswith("$")):
        assert equal(one, one)


@settings(deadline=None)
@given(st.lists(st.integers(0, 5).map(str), max_size=6), st.randoms())
def test_the_order_of_a_list_does_not_matter(values, random):
    shuffled = random.sample(values, len(values))
    assert equal(values, shuffled, "array")


@settings(deadline=None)
@given(st.decimals(allow_nan=False, allow_infinity=False, min_value=-(10**9), max_value=10**9, places=2))
def test_a_number_is_itself_with_and_without_groups(value):
    assert scalars.parse_number(f"{value:,}") == value
    assert scalars.parse_number(f"{value:,}".replace(",", " ").replace(".", ",")) == value


@pytest.mark.slow
@settings(deadline=None)
@given(
    st.recursive(
        st.none() | st.booleans() | st.integers() | TEXTS, lambda one: st.lists(one) | st.dictionaries(TEXTS, one)
    )
)
def test_any_value_can_be_compared_with_any_other(value):
    for kind in ("", "number", "date", "currency", "json", "array", "url", "month"):
        compare("1.5", value, Schema(kind))
    assert compare(value, value).equal is True
    written = format_text(value)
    assert written == (value or "") if isinstance(value, str | None) else json.loads(written) == value
