"""The agreement of people as tables and sentences: every figure in its place, and what is undefined in words."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Any

import pytest

from annotation.models.states import State
from annotation.records import Verdict
from evaluations import agreement_tables
from evaluations.agreement import Adjudications, agreement
from evaluations.agreement.results import ChangedOf
from evaluations.cases import BlindLabel, Case, Rules
from evaluations.statistics import Measure
from evaluations.tables import Table

NAMES = [
    "overall",
    "first-against-second",
    "outcomes",
    "by-agent",
    "by-level",
    "by-website",
    "by-failure-type",
    "pairs",
    "annotators",
    "confusion",
    "adjudications",
    "informed",
    "informed-reasons",
]


def case(
    number: int, verdicts: tuple[int, ...], final: int | None, failure_types: tuple[str, ...] = (), **fields: Any
) -> Case:
    labels = tuple(BlindLabel(f"A{slot}", Verdict(verdict), failure_types) for slot, verdict in enumerate(verdicts, 1))
    base: dict[str, Any] = {"agent": "One", "level": "easy", "website": "shop", "state": State.ADJUDICATED} | fields
    return Case(
        task_id=f"t{number}", labels=labels, final=None if final is None else Verdict(final), expected=3, **base
    )


CASES = [
    case(0, (1, 1, 1), 1),
    case(1, (1, 1, 0), 1, level="hard"),
    case(2, (0, 1, 2), 0, level="hard", failure_types=("wrong_item",)),
    case(3, (0, 0, 0), 0, failure_types=("made elsewhere",)),
]
LISTED = [case(n, verdicts, None, state=None) for n, verdicts in enumerate([(0, 0), (1, 1), (0, 1), (1, 1)])]


def table(name: str, cases: list[Case] = CASES, rules: Rules = Rules.DEFAULT) -> Table:
    return next(t for t in agreement_tables.tables(agreement(cases, "four cases", rules)) if t.name == name)


def row(found: Table, number: int = 0) -> dict[str, Any]:
    return dict(zip([column.name for column in found.columns], found.rows[number], strict=True))


def test_every_table_has_its_stable_name() -> None:
    assert [t.name for t in agreement_tables.tables(agreement(CASES, ""))] == NAMES


def test_tables_of_nothing_are_there_and_say_so() -> None:
    tables = agreement_tables.tables(agreement([], "nothing"))
    assert [t.name for t in tables] == NAMES
    for found in tables:
        assert not re.search(r"\b(nan|none|inf)\b", found.as_csv(), re.IGNORECASE)
        assert found.as_text()


def test_every_row_fits_its_columns() -> None:
    for found in agreement_tables.tables(agreement(CASES, "")):
        assert all(len(one) == len(found.columns) for one in found.rows), found.name


def test_overall_has_the_hand_computed_coefficients() -> None:
    found = row(table("overall"))
    # Pairs that are equal: 3 of 3, 1 of 3, 0 of 3, 3 of 3; their mean is 7/12.
    assert found["Raw agreement"].value == pytest.approx(7 / 12)
    # Labels: 5 failures, 6 successes, 1 not executable. D_o = (0 + (9-5)/2 + (9-3)/2 + 0) / 12 = 5/12,
    # D_e = (144 - 25 - 36 - 1) / 132 = 82/132.
    assert found["Krippendorff alpha"].value == pytest.approx(1 - (5 / 12) / (82 / 132))
    assert (found["Labelled"], found["Complete"], found["Pairable"], found["Undecided"]) == (4, 4, 4, 0)


def test_outcomes_are_counted_over_all_and_in_every_level() -> None:
    found = table("outcomes")
    assert [one[0] for one in found.rows] == ["all", "easy", "hard"]
    hits = [[one[1], *(measure.hits for measure in one[2:])] for one in found.rows]  # type: ignore[union-attr]
    assert hits == [[4, 2, 1, 1], [2, 2, 0, 0], [2, 0, 1, 1]]


def test_a_failure_type_has_its_name_of_the_protocol_and_else_its_own() -> None:
    assert sorted(str(one[0]) for one in table("by-failure-type").rows) == ["Wrong item or page", "made elsewhere"]


def test_a_level_that_nobody_stated_has_a_name() -> None:
    found = table("by-level", [case(0, (1, 1, 1), 1, level=""), case(1, (1, 1, 1), 1)])
    assert [one[0] for one in found.rows] == ["easy", "not known"]


def test_outcomes_have_names_that_hold_for_any_number_of_labels() -> None:
    found = table("outcomes", [replace(LISTED[2], expected=2)])
    assert [column.name for column in found.columns[2:]] == ["Unanimous", "A majority", "No majority"]
    assert [measure.hits for measure in found.rows[0][2:]] == [0, 0, 1]  # type: ignore[union-attr]


def test_agreement_by_failure_type_has_no_coefficient_and_says_why() -> None:
    found = table("by-failure-type")
    assert [column.name for column in found.columns[4:]] == ["Raw agreement"]
    assert "chosen by their labels" in found.note
    assert "Krippendorff alpha" in [column.name for column in table("by-level").columns]


def test_the_first_listed_label_stands_against_the_second() -> None:
    # 3 of 4 are equal; p_e = (2 * 1 + 2 * 3) / 16. Labels: 3 and 5 of 8, D_o = 2 / 8, D_e = 2 * 3 * 5 / 56.
    found = row(table("first-against-second", LISTED))
    assert (found["Trajectories"], found["Raw agreement"].value) == (4, 0.75)
    assert found["Cohen kappa"].value == pytest.approx(0.5)
    assert found["Alpha"].value == pytest.approx(1 - (2 / 8) / (30 / 56))
    assert table("first-against-second").rows == []
    assert [one[:2] for one in table("pairs", LISTED).rows] == [["A1", "A2"]]


def test_published_coefficients_have_four_digits_and_no_interval() -> None:
    for name, column in (("overall", "Krippendorff alpha"), ("first-against-second", "Alpha"), ("pairs", "Alpha")):
        published = table(name, LISTED, Rules.PUBLISHED)
        cells = dict(zip([each.name for each in published.columns], published.body[0], strict=True))
        assert (cells[column].text, cells[column].interval) == ("0.5333", "")
    assert "without intervals" in table("overall", LISTED, Rules.PUBLISHED).note
    assert "0.53 " in table("overall", LISTED).as_text()
    assert "bootstrap" in table("overall", LISTED).note


def test_the_note_says_how_raw_agreement_gets_its_interval() -> None:
    assert "of raw agreement and the coefficients by resampling" in table("overall").note


def test_labels_made_elsewhere_have_nothing_to_be_compared_with() -> None:
    found = table("annotators", LISTED)
    names = [column.name for column in found.columns]
    assert names == ["Annotator", "Labels", "Competence (hint)", "Trust (hint)"]
    assert [one[:2] for one in found.rows] == [["A1", 4], ["A2", 4]]
    assert "same as final" not in found.note
    assert table("confusion", LISTED).rows == []


def test_a_table_of_many_groups_or_pairs_says_which_have_intervals() -> None:
    many = [case(n, (1, 1, 0), 1, website=f"w{n}") for n in range(51)]
    assert "The 50 with the most trajectories have intervals." in table("by-website", many).note
    assert "intervals" not in table("by-website", many[:50]).note
    assert "The 100 pairs who share most have intervals." in table("pairs", [case(0, (1,) * 15, 1)]).note
    assert "intervals" not in table("pairs", [case(0, (1,) * 14, 1)]).note


def test_changes_are_told_apart_by_what_led_to_them() -> None:
    found = row(table("adjudications", [case(0, (1, 1, 0), 0, adjudicated=Verdict.FAILURE), *CASES]))
    assert (found["Changed"].hits, found["Changed: disputes"].hits, found["Changed: disputes"].n) == (1, 1, 1)
    assert found["Changed: drawn"].undefined == "no such case was adjudicated"


def test_confusion_has_a_row_for_each_verdict_that_an_annotator_could_say() -> None:
    found = table("confusion")
    assert [one[0] for one in found.rows] == ["A1"] * 3 + ["A2"] * 3 + ["A3"] * 3
    # A3 said success once (final success), failure twice (final success, final failure), not executable once (failure).
    assert [list(one[1:]) for one in found.rows[6:]] == [
        ["failure", 1, 1, 0],
        ["success", 0, 1, 0],
        ["not executable", 1, 0, 0],
    ]


def test_labels_made_elsewhere_have_no_adjudications() -> None:
    assert agreement_tables.adjudications(None).rows == []
    assert agreement_tables.adjudications(None).figures == []


# --- what the spot checks say about the rest -------------------------------------------------------------------------


def said(unchecked: int, expected: Measure, unanimous: int = 500, unknown: int = 0) -> str:
    rate = Measure(0.5, 2, hits=1)
    return agreement_tables.extrapolation(
        Adjudications(
            adjudicated=2,
            disputes=1,
            unanimous=unanimous,
            drawn=2,
            unchecked=unchecked,
            unknown=unknown,
            changed=rate,
            changed_of=ChangedOf(rate, rate, rate),
            missed=rate,
            expected_missed=expected,
        )
    )


def test_the_extrapolation_widens_its_interval_to_whole_trajectories() -> None:
    says = said(180, Measure(4.2, 20, low=1.3, high=8.1))
    assert says == (
        "If an adjudicator had checked the 180 unchecked unanimous trajectories, the expected number of different "
        "decisions is about 4 (1 to 9)."
    )


def test_an_extrapolation_below_one_is_not_called_zero() -> None:
    assert "less than 1 (0 to 2)" in said(5, Measure(0.3, 20, low=0.01, high=1.2))


def test_no_miss_at_all_is_zero_with_its_interval() -> None:
    assert "about 0 (0 to 50)" in said(180, Measure(0.0, 10, low=0.0, high=49.9))


def test_without_a_spot_check_nothing_is_extrapolated() -> None:
    says = said(180, Measure.missing("no spot check was drawn"))
    assert "cannot be estimated" in says
    assert "no spot check was drawn" in says


def test_with_everything_checked_there_is_nothing_to_extrapolate() -> None:
    says = said(0, Measure.missing("no unchecked cases"))
    assert says == "No unanimous trajectory became final without a check, so there is nothing to extrapolate."


def test_where_nothing_is_unanimous_nobody_is_said_to_have_looked_at_it() -> None:
    says = said(0, Measure.missing("no unchecked cases"), unanimous=0)
    assert says == "No trajectory is unanimous, so there is nothing to extrapolate."


def test_what_is_left_out_of_the_extrapolation_is_said() -> None:
    says = said(11, Measure(4.0, 2, low=0.7, high=7.3), unknown=3)
    assert "checked the 8 unchecked unanimous trajectories" in says
    assert says.endswith("3 more are left out: their draw had no blind spot check.")


def test_bounds_that_are_whole_but_for_rounding_are_not_widened() -> None:
    assert "(3 to 7)" in said(11, Measure(5.0, 2, low=3 - 1e-12, high=7 + 1e-12))
