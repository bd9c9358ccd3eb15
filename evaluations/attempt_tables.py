"""Tables of the attempts of agents, for pages, CSV and terminals."""

from __future__ import annotations

from collections.abc import Sequence

from evaluations.comparison import Attempts
from evaluations.tables import NOTHING, Column, Table, Value

ATTEMPT_COLUMNS = (
    Column("Agent"),
    Column("Judged", explanation="By a judge; its figures are not those of people."),
    Column("By", explanation="The source of the verdicts."),
    Column("Attempt", explanation="The number of the submission, or all attempts together."),
    Column("k", "count", "Attempts with a verdict."),
    Column("Tasks", "count", "Tasks with a verdict in every attempt: all figures are about these."),
    Column("Success", "rate", "Share of the tasks; for all attempts the mean. Label 2 counts as no success."),
    Column("Deviation of success", "size", "Population standard deviation over attempts, percentage points."),
    Column("Mean score", "number", "Tasks with a score in every attempt; for all attempts the mean."),
    Column("Deviation of the score", "number", "Population standard deviation over attempts."),
    Column("pass@k", "rate", "Share of the tasks in which any of the k attempts succeeded."),
    Column("All k (pass^k)", "rate", "Share of the tasks in which all of the k attempts succeeded."),
    Column("Not in every attempt", "count", "Tasks that are missing from some attempt: left out."),
    Column("Without a verdict", "count", "Tasks undecided, unscored or not judged in some attempt: left out."),
)


def over_attempts(found: Sequence[Attempts]) -> Table:
    """Return, for each agent, by people and by each judge, one row for every attempt and one for all of them."""
    note = (
        "Attempts are compared on the tasks that have a verdict in all of them. Every attempt has a row, "
        "and all attempts together have one with the mean over attempts, its deviation, pass@k and pass^k. "
        "Missing verdicts never count as failures. Submissions with identical content count once."
    )
    rows = [row for each in found for row in _attempt_rows(each)]
    return Table("over-attempts", "Over attempts", ATTEMPT_COLUMNS, rows, note)


def over_k(found: Sequence[Attempts]) -> Table:
    """Return a row for each agent, by people and by each judge, and each k."""
    columns = [
        *ATTEMPT_COLUMNS[:3],
        Column("Attempts", "count"),
        Column("Tasks", "count", "Tasks with a verdict in every attempt."),
        Column("k", "count"),
        Column("pass@k", "rate", "Any of k attempts, drawn at random, succeeds."),
        Column("All k (pass^k)", "rate", "All of k attempts, drawn at random, succeed."),
    ]
    rows: list[list[Value]] = [
        [*_who(each), len(each.numbers), each.tasks, of.k, of.pass_at_k, of.pass_hat_k]
        for each in found
        for of in each.by_k
    ]
    note = "Unbiased estimates from all attempts, averaged over tasks; intervals draw tasks."
    return Table("pass-by-k", "Any of k, and all of k attempts", columns, rows, note)


def _who(each: Attempts) -> list[Value]:
    return [each.agent, "judged" if each.judged else NOTHING, each.by]


def _attempt_rows(each: Attempts) -> list[list[Value]]:
    who = _who(each)
    counted: list[Value] = [len(each.numbers), each.tasks]
    left: list[Value] = [each.not_in_all, each.without_verdict]
    single: list[list[Value]] = [
        [*who, str(number), *counted, success, NOTHING, score, NOTHING, NOTHING, NOTHING, *left]
        for number, success, score in zip(each.numbers, each.success.each, each.mean_score.each, strict=True)
    ]
    success, score = each.success, each.mean_score
    figures: list[Value] = [
        success.mean,
        success.deviation,
        score.mean,
        score.deviation,
        each.pass_at_k,
        each.pass_hat_k,
    ]
    return [*single, [*who, "all", *counted, *figures, *left]]
