"""Compare a judge with people: tables of steps, first failure, process scores."""

from __future__ import annotations

from evaluations.comparison import Comparison
from evaluations.comparison.results import ProcessComparison, ScoreAgreement
from evaluations.tables import Column, Table, tabulate


def tables(comparison: Comparison) -> list[Table]:
    """Return the tables; none without scores or labels of people."""
    found = comparison.process
    if found is None:
        return []
    return [*([_steps(found), _first_failures(found)] if found.trajectories else []), _scores(found)]


def _steps(found: ProcessComparison) -> Table:
    columns = [
        Column(
            "Trajectories", "count", "With process labels of people and a judgment that states faults.", "trajectories"
        ),
        Column("Steps", "count", "Steps with a final label.", "step_agreement.n"),
        Column("Agreement", "rate", "How often both say the same of a step: fault or no fault.", "step_agreement"),
        Column("Kappa", "coefficient", of="step_kappa"),
        Column("Both fault", "count", of=lambda each: each.step_table[1][1]),
        Column("Fault by judge only", "count", of=lambda each: each.step_table[0][1]),
        Column("Fault by people only", "count", of=lambda each: each.step_table[1][0]),
        Column("Both no fault", "count", of=lambda each: each.step_table[0][0]),
    ]
    note = (
        "People: the final label is wrong or side effect; unnecessary steps are no fault. Judge: the first failure, a "
        "violated critical point, or a penalty. Intervals are drawn by task."
    )
    return tabulate("faulty-steps", "Faulty steps", columns, [found], note)


def _first_failures(found: ProcessComparison) -> Table:
    columns = [
        Column(
            "Trajectories", "count", "Final labels decide whether and where the first fault is.", "failure_agreement.n"
        ),
        Column("Agreement", "rate", "How often both say the same: a failure or none.", "failure_agreement"),
        Column("Kappa", "coefficient", of="failure_kappa"),
        Column("Both name a step", "count", of="same_first.n"),
        Column("Same step", "rate", of="same_first"),
        Column("At most one step away", "rate", of="near_first"),
    ]
    return tabulate("first-failures", "First failure", columns, [found])


def _scores(found: ProcessComparison) -> Table:
    rows: list[tuple[str, ScoreAgreement]] = [
        ("key points met", found.by_key_points),
        ("steps without fault", found.by_steps),
    ]
    columns = [
        Column("People's score", of=lambda each: each[0]),
        Column("Trajectories", "count", of=lambda each: each[1].n),
        Column("Pearson", "coefficient", of=lambda each: each[1].pearson),
        Column("Spearman", "coefficient", of=lambda each: each[1].spearman),
        Column("Mean absolute difference", "number", of=lambda each: each[1].difference),
    ]
    rows = [row for row in rows if row[1].n]
    return tabulate("process-scores", "Process scores", columns, rows, "Intervals are drawn by task.")
