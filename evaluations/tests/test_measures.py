"""Measures and results have one definition: bundles, JSON and the API's shapes follow it."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, replace
from typing import Annotated, Literal

import pytest

from annotation.records import Verdict
from evaluations.api.shapes import serializer_of
from evaluations.cases import Rules
from evaluations.comparison.results import Answer, Label2, Row
from evaluations.comparison.rows import build_rows
from evaluations.encoding import to_json
from evaluations.evidence import bundle as figures
from evaluations.measures import JUDGE_MEASURES
from evaluations.statistics import Measure
from evaluations.verifier.figures import figures_of_cells


def row() -> Row:
    said = {
        (Verdict.SUCCESS, Answer.SUCCESS): 3,
        (Verdict.FAILURE, Answer.SUCCESS): 1,
        (Verdict.FAILURE, Answer.NO_SUCCESS): 2,
    }
    return build_rows("X", Counter(said))[0]


def test_verified_measures_are_those_that_the_verifier_computes_again() -> None:
    assert {name for name, each in JUDGE_MEASURES.items() if each.verified} == set(figures_of_cells(1, 1, 1, 1))


def test_unverified_measure_is_in_results_and_not_in_bundles(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(JUDGE_MEASURES, "npv", replace(JUDGE_MEASURES["npv"], verified=False))
    assert row().as_json("agent", Rules.DEFAULT)["npv"] == 1
    stated = figures._verified(row()).as_json("agent", Rules.DEFAULT)
    assert "npv" not in {*stated, *stated["intervals"], *stated["undefined"]}
    assert stated["kappa"] is not None


# --- dataclasses as JSON ---------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Inner:
    """What is inside."""

    rule: Label2


@dataclass(frozen=True)
class Outer:
    """Texts of a class and of fields are those of the schema."""

    kind: Literal["one", "two"]
    count: Annotated[int, "How many."]
    row: int | None
    verdict: Verdict
    rate: Measure
    table: tuple[tuple[int, int], ...]
    inner: dict[str, list[Inner]]


def test_dataclass_is_encoded_by_its_fields() -> None:
    given = Outer("one", 2, None, Verdict.SUCCESS, Measure(0.5, 2, 1), ((1, 2),), {"a": [Inner(Label2.EXCLUDED)]})
    assert to_json(given) == {
        "kind": "one",
        "count": 2,
        "row": None,
        "verdict": 1,
        "rate": {"value": 0.5, "low": None, "high": None, "n": 2, "hits": 1},
        "table": [[1, 2]],
        "inner": {"a": [{"rule": "excluded"}]},
    }


def test_serializer_has_the_fields_of_the_dataclass() -> None:
    serializer = serializer_of(Outer, without={"kind"}, name="Other")
    assert (serializer.__name__, serializer.__doc__) == ("OtherSerializer", Outer.__doc__)
    fields = serializer().fields
    assert list(fields) == ["count", "row", "verdict", "rate", "table", "inner"]
    assert (fields["count"].help_text, fields["count"].min_value, fields["count"].allow_null) == ("How many.", 0, False)
    assert (fields["row"].min_value, fields["row"].allow_null) == (None, True)
    assert (fields["verdict"].min_value, fields["verdict"].max_value) == (0, 2)
    assert type(fields["rate"]).__name__ == "MeasureSerializer"
    assert list(fields["inner"].child.child.fields["rule"].choices) == ["excluded", "not_success"]
