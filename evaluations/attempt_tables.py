"""The table over an agent's attempts: the same on its page, as CSV and on a terminal. Nothing is computed here."""

from __future__ import annotations

from collections.abc import Sequence

from evaluations.comparison import Attempts
from evaluations.tables import Column, Table, Value

NOTHING = ""  # a cell that does not apply
COLUMNS = [
    Column("Agent"),
    Column("Judged", explanation="By a judge; its figures are not those of people."),
    Column("By", explanation="Who gave the verdicts."),
    Column("Attempt", explanation="The number of the submission, or all attempts together."),
    Column("k", "count", "Attempts with a verdict."),
    Column("Tasks", "count", "With a verdict in every attempt: all figures are of these."),
    Column("Success", "rate", "Share of the tasks; of all attempts the mean. Label 2 counts as no success."),
    Column("Deviation of success", "size", "Population standard deviation over attempts, percentage points."),
    Column("Mean score", "number", "Of the tasks with a score in every attempt; of all attempts the mean."),
    Column("Deviation of the score", "number", "Population standard deviation over attempts."),
    Column("pass@k", "rate", "Share of the tasks in which any of the k attempts succeeded."),
    Column("Not in every attempt", "count", "Tasks that some attempt does not have: left out."),
    Column("Without a verdict", "count", "Tasks undecided, unscored or not judged in some attempt: left out."),
]
NOTE = (
    "Attempts are compared on the tasks that have a verdict in all of them. Every attempt has a row, and all attempts "
    "together have one with the mean over attempts, its deviation and pass@k. Nothing that is missing counts as a "
    "failure. Submissions of the same content are one, so attempts with identical answers count once."
)


def over_attempts(found: Sequence[Attempts]) -> Table:
    """For each agent, by people and by each judge, a row of every attempt and then one of all."""
    return Table("over-attempts", "Over attempts", COLUMNS, [row for each in found for row in _rows(each)], NOTE)


def _rows(each: Attempts) -> list[list[Value]]:
    who: list[Value] = [each.agent, "judged" if each.judged else NOTHING, each.by]
    counted: list[Value] = [len(each.numbers), each.tasks]
    left: list[Value] = [each.not_in_all, each.without_verdict]
    single: list[list[Value]] = [
        [*who, str(number), *counted, success, NOTHING, score, NOTHING, NOTHING, *left]
        for number, success, score in zip(each.numbers, each.success.each, each.mean_score.each, strict=True)
    ]
    success, score = each.success, each.mean_score
    figures: list[Value] = [success.mean, success.deviation, score.mean, score.deviation, each.pass_at_k]
    return [*single, [*who, "all", *counted, *figures, *left]]
