"""The measures by name. Tables, files, the API, the printed report and docs/reference/statistics.md follow them.

To add a measure, write its formula in `statistics` and add it here. The verifier computes it again by its own formula;
with ``verified=False`` it stays out of bundles.
"""

from __future__ import annotations

import inspect
from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any

from evaluations.cases import Rules
from evaluations.statistics.classification import Confusion
from evaluations.statistics.coefficients import (
    Coefficient,
    fleiss_kappa,
    gwet_ac1,
    krippendorff_alpha,
    raw_agreement,
)
from evaluations.tables import Column


@dataclass(frozen=True, slots=True)
class Definition:
    """``name`` is the key in JSON. ``column`` has the heading (also that in CSV), the rounding and the help text.

    ``formula`` computes it. Its docstring, also printed in documents, has the formula, undefined cases and source.
    """

    name: str
    column: Column
    formula: Any  # a `Coefficient`, or the property of `Confusion` with this name
    rounded_twice: bool = False  # published accuracies are ``round(round(x, 4) * 100, 1)``: 170/189 is 89.9
    headline: bool = False  # at the top of a judge's page
    printed: bool = False  # in the printed report
    verified: bool = True  # the verifier computes it again; evidence bundles leave out others

    @property
    def is_coefficient(self) -> bool:
        """Return whether published tables give four digits; any other measure is a rate, or a difference of two."""
        return self.column.kind == "coefficient"

    @property
    def explanation(self) -> str:
        return " ".join(inspect.getdoc(self.formula).split())  # type: ignore[union-attr]

    def round_as_published(self, value: float) -> float:
        """Round a rate so that its percentage has one digit (half to even), and a coefficient to four digits."""
        if self.is_coefficient:
            return round(value, 4)
        return round(100 * (round(value, 4) if self.rounded_twice else value), 1) / 100

    def percent(self, value: float) -> float:
        """Return a value that `round_as_published` has rounded as published tables print it."""
        return value if self.is_coefficient else round(value * 100, 1)


def under_rules(columns: Iterable[Column], rules: Rules) -> list[Column]:
    """Return the columns; published tables give coefficients with four digits."""
    fine = rules is Rules.PUBLISHED
    return [replace(each, kind="coefficient4") if fine and each.kind == "coefficient" else each for each in columns]


def _by_name(*definitions: Definition) -> dict[str, Definition]:
    return {each.name: each for each in definitions}


def _coefficient(name: str, heading: str, formula: Coefficient, explanation: str) -> Definition:
    return Definition(name, Column(heading, "coefficient", explanation), formula)


def _of_judge(name: str, heading: str, explanation: str, kind: str = "rate", **flags: bool) -> Definition:
    return Definition(name, Column(heading, kind, explanation), getattr(Confusion, name), **flags)


# Agreement of people. Raw agreement is not corrected for chance, so it is the only measure of some groups.
RAW_AGREEMENT = Definition(
    "raw_agreement",
    Column(
        "Raw agreement",
        "rate",
        (
            "How often two labels of a trajectory agree. It does not correct for chance: if nearly all "
            "trajectories get the same verdict, it is high even for guesses."
        ),
    ),
    raw_agreement,
)
COEFFICIENTS = _by_name(
    _coefficient(
        "alpha",
        "Krippendorff alpha",
        krippendorff_alpha,
        (
            "One minus observed divided by expected disagreement, for unordered verdicts; labels may be "
            "missing. 1 is perfect, 0 is chance, below 0 is worse than chance. Krippendorff relies on .800 "
            "and more and draws tentative conclusions from .667: his convention, not a law."
        ),
    ),
    _coefficient(
        "ac1",
        "Gwet AC1",
        gwet_ac1,
        (
            "Corrects for chance and depends little on one dominating verdict. A value far above alpha means "
            "that the verdicts are uneven, not that people agree better. Chance has three verdicts to choose "
            "from (k = 3), even if imported labels have only two."
        ),
    ),
    _coefficient(
        "fleiss_kappa",
        "Fleiss kappa",
        fleiss_kappa,
        (
            "An older coefficient of the same kind, for comparison with older work. With many trajectories "
            "it is close to alpha; read it in the same way."
        ),
    ),
)

# A judge, or an annotator, against the final verdicts, in the order of the columns.
JUDGE_MEASURES = _by_name(
    _of_judge(
        "agreement",
        "Agreement",
        "Accuracy: how often the judge agrees with people's decision.",
        rounded_twice=True,
        headline=True,
        printed=True,
    ),
    _of_judge(
        "success_rate_gap",
        "Gap",
        "Success rate by the judge minus by people: above 0 the judge is too lenient.",
        "points",
        headline=True,
        printed=True,
    ),
    _of_judge("precision", "Precision", "Share of the judge's successes that are successes by people.", printed=True),
    _of_judge(
        "recall", "Recall", "Share of people's successes that are successes by the judge (sensitivity).", printed=True
    ),
    _of_judge("f1", "F1", "Harmonic mean of precision and recall. It is the specific agreement on success."),
    _of_judge(
        "positive_agreement",
        "Positive agreement",
        "Specific agreement: if one of judge and people says success, how often the other does too. Equal to F1.",
        verified=False,
    ),
    _of_judge(
        "negative_agreement",
        "Negative agreement",
        "Specific agreement: if one of judge and people says no success, how often the other does too.",
        verified=False,
    ),
    _of_judge(
        "false_positive_rate", "FPR", "Share of non-successes by people that the judge calls a success.", printed=True
    ),
    _of_judge(
        "specificity", "Specificity", "Share of non-successes by people that are non-successes by the judge (TNR)."
    ),
    _of_judge("npv", "NPV", "Share of non-successes by the judge that are non-successes by people."),
    _of_judge(
        "kappa",
        "Kappa",
        "Cohen's kappa of judge and people: agreement beyond chance.",
        "coefficient",
        headline=True,
        printed=True,
    ),
    _of_judge("success_rate_human", "Success, people", "Success rate by people on the compared cases."),
    _of_judge("success_rate_judge", "Success, judge", "Success rate by the judge on the same cases."),
)
