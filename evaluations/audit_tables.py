"""The tables of an audit: the same on its page and in its printed report. Nothing is computed here."""

from __future__ import annotations

from collections.abc import Mapping

from annotation.forms import VERDICT_NAMES
from annotation.records import Verdict
from evaluations.auditing.result import Result
from evaluations.tables import Cell, Column, Table, Value, cell

FIGURES = {
    "agreement": Column("Agreement", "rate", "Of the sample, where the auditor's final verdict is the submitted one."),
    "kappa": Column("Cohen's kappa", "coefficient", "The same, corrected for chance; 0 is chance, 1 is always."),
    "submitted_rate": Column("Success rate as submitted", "rate", "Of the sample; label 2 is no success."),
    "audit_rate": Column("Success rate by the audit", "rate", "Of the same trajectories."),
    "all_submitted_rate": Column("Success rate of all, as submitted", "rate", "Of every submitted final verdict."),
    "wrong": Column("Wrong verdicts among all", "number", "The share that differs, times all submitted verdicts."),
}


def figures(found: Result) -> list[tuple[Column, Cell]]:
    return [(column, cell(getattr(found, name), column.kind)) for name, column in FIGURES.items()]


def as_row(found: Result) -> tuple[list[Column], list[list[Value]]]:
    return list(FIGURES.values()), [[getattr(found, name) for name in FIGURES]]


def verdicts(found: Result) -> Table:
    names = [VERDICT_NAMES[verdict].lower() for verdict in Verdict]
    columns = [Column("Submitted"), *(Column(f"Audit: {name}", "count") for name in names)]
    rows: list[list[Value]] = [[name, *counts] for name, counts in zip(names, found.table, strict=True)]
    return Table("verdicts", "Submitted and audited verdicts", columns, rows)


def differing(found: Result, links: Mapping[int, str]) -> Table:
    columns = [Column("Task"), Column("Submitted"), Column("Audit")]
    rows: list[list[Value]] = [
        [each.task_id, VERDICT_NAMES[each.submitted].lower(), VERDICT_NAMES[each.audit].lower()]
        for each in found.differing
    ]
    here = {number: links[each.audited] for number, each in enumerate(found.differing) if each.audited in links}
    return Table("differing", "Judged otherwise", columns, rows, links=here)
