"""The agreement of people as tables and sentences: every figure in its place, and what is undefined in words."""

from __future__ import annotations

import re
from typing import Any

import pytest

from annotation.models.states import State
from annotation.records import Verdict
from evaluations import agreement_tables
from evaluations.agreement import Adjudications, agreement
from evaluations.cases import Case, Said
from evaluations.statistics import Measure
from evaluations.tables import Table

NAMES = [
    "overall",
    "outcomes",
    "by-agent",
    "by-level",
    "by-website",
    "by-failure-type",
    "pairs",
    "annotators",
    "confusion",
    "adjudications",
]


def case(number: int, verdicts: tuple[int, ...], final: int | None, **fields: Any) -> Case:
    labels = tuple(Said(f"A{slot}", Verdict(verdict)) for slot, verdict in enumerate(verdicts, 1))
    base: dict[str, Any] = {"agent": "One", "level": "easy", "website": "shop", "state": State.ADJUDICATED} | fields
    return Case(
        task_id=f"t{number}", labels=labels, final=None if final is None else Verdict(final), expected=3, **base
    )


CASES = [
    case(0, (1, 1, 1), 1),
    case(1, (1, 1, 0), 1, level="hard"),
    case(2, (0, 1, 2), 0, level="hard", failure_type="wrong_item"),
    case(3, (0, 0, 0), 0, failure_type="made elsewhere"),
]


def table(name: str, cases: list[Case] = CASES) -> Table:
    return next(t for t in agreement_tables.tables(agreement(cases, "four cases")) if t.name == name)


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
    assert "none stated" in {one[0] for one in found.rows}


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
    assert agreement_tables.figures(agreement_tables.adjudications(None)) == []


# --- what the spot checks say about the rest -------------------------------------------------------------------------


def said(unchecked: int, expected: Measure) -> str:
    rate = Measure(0.5, 2, hits=1)
    return agreement_tables.extrapolation(Adjudications(2, 1, rate, 2, rate, unchecked, expected))


def test_the_extrapolation_widens_its_interval_to_whole_trajectories() -> None:
    says = said(180, Measure(4.2, 20, low=1.3, high=8.1))
    assert says == (
        "Of 180 unanimous trajectories that nobody checked, about 4 (1 to 9) would have been decided otherwise."
    )


def test_an_extrapolation_below_one_is_not_called_zero() -> None:
    assert "less than 1 (0 to 2)" in said(5, Measure(0.3, 20, low=0.01, high=1.2))


def test_no_miss_at_all_is_zero_with_its_interval() -> None:
    assert "about 0 (0 to 50)" in said(180, Measure(0.0, 10, low=0.0, high=49.9))


def test_without_a_spot_check_nothing_is_extrapolated() -> None:
    says = said(180, Measure.missing("no spot check was drawn"))
    assert "it cannot be said" in says
    assert "no spot check was drawn" in says


def test_with_everything_checked_there_is_nothing_to_extrapolate() -> None:
    assert "nothing to extrapolate" in said(0, Measure.missing("no unchecked cases"))
