"""Tables of what people do in place of a judge, and a judge in place of a person."""

from __future__ import annotations

from collections.abc import Sequence

from evaluations.comparison import Comparison
from evaluations.human_error import HumanError
from evaluations.statistics import AlternativeTest
from evaluations.tables import Column, Table, tabulate


def human_error(found: Sequence[HumanError]) -> Table:
    columns = [
        Column("Against", explanation="Known verdict.", of="source"),
        Column("Annotator", of="annotator"),
        Column("Labels", "count", "Blind labels with such a known verdict.", "n"),
        Column("Leniency", "rate", "Share of known non-successes that they called a success.", "leniency"),
        Column("Severity", "rate", "Share of known successes that they did not call a success.", "severity"),
        Column("Bias", "points", "Share of successes in their labels minus that in the known verdicts.", "bias"),
    ]
    note = (
        "Known verdicts are the annotator's own opinion after seeing judgments, and known answers of gold items. Shown "
        "judgments can mislead people, so the first is an estimate. Not executable counts as no success."
    )
    return tabulate("human-error", "Errors of people", columns, found, note)


def alternative_test(comparison: Comparison) -> list[Table]:
    """Return the result of the alternative annotator test, and a row for each annotator; nothing without labels."""
    found = comparison.alternative_test
    if found is None:
        return []
    columns = [
        Column("Judge", of=lambda _: comparison.judge),
        Column("May replace an annotator", explanation="The winning rate is 0.5 or more.", of=_answer),
        Column("Winning rate", "number", "Share of the tested annotators against whom the judge wins.", "winning_rate"),
        Column(
            "Advantage probability",
            "rate",
            "How often the judge agrees with the others at least as well as the annotator: mean over annotators.",
            "advantage",
        ),
        Column(
            "Epsilon",
            "number",
            "How much less often than the annotator the judge may agree with the others.",
            "epsilon",
        ),
        Column("Level", "number", "Of the tests, after the correction.", "level"),
        Column("Missing", of="missing"),
    ]
    note = (
        "Alternative annotator test (Calderon et al. 2025) on blind labels, success or not: each annotator in turn is "
        "compared with the judge by agreement with the other annotators. It says whether the judge could have been one "
        "of these people, not that verdicts are right; labels by three people are still required."
    )
    whole = tabulate("alternative-test", "May this judge replace an annotator?", columns, [found], note)
    each = (
        Column("Annotator", of="annotator"),
        Column("Judge as close", "rate", "Judge agrees with the others at least as well as the annotator.", "judge"),
        Column("Person as close", "rate", "Annotator agrees with the others at least as well as the judge.", "person"),
        Column("p", "number", "One-sided t test that the judge is worse by epsilon or more.", "p"),
        Column("Corrected p", "number", "Benjamini and Yekutieli, over the tested annotators.", "p_corrected"),
        Column("Judge wins", of=lambda one: "" if one.wins is None else "yes" if one.wins else "no"),
    )
    title = "The judge against each annotator"
    return [whole, tabulate("alternative-annotators", title, each, found.annotators)]


def _answer(found: AlternativeTest) -> str:
    if found.passed is None:
        return "cannot be said"
    return "yes" if found.passed else "not shown"
