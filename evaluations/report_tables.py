"""Tables of printed reports and of audits. Agreement and comparison have their own modules."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from statistics import median, quantiles

from django.db.models import Count, Max, Min

from annotation import progress
from annotation.form_fields import VERDICT_NAMES
from annotation.models import Adjudication, Event, Label, Submission
from annotation.models.trajectories import seed_hash
from annotation.records import Problem, Verdict
from evaluations.auditing.results import Result
from evaluations.cases import Case
from evaluations.comparison import Label2, Standing
from evaluations.comparison.judges import Judges
from evaluations.comparison.rows import PEOPLE
from evaluations.comparison_tables import CEILING, COSTS, FLIPS, LABEL_2, RULE
from evaluations.exports import missing_for_export
from evaluations.measures import JUDGE_MEASURES
from evaluations.naming import FAILURE_TYPE_NAMES
from evaluations.statistics import wilson
from evaluations.tables import Column, Table, Value, tabulate

# --- outcome ---------------------------------------------------------------------------------------------------------


def success(standings: Iterable[Standing]) -> Table:
    columns = (
        Column("Of", of="0"),
        Column("Trajectories", "count", "With a final verdict.", "1.over_all.n"),
        Column("Success rate over all", "rate", "Not executable counts as not a success.", "1.over_all"),
        Column("Executable", "count", "Without those that are not executable.", "1.without_2.n"),
        Column(
            "Success rate without label 2", "rate", "Trajectories that are not executable are left out.", "1.without_2"
        ),
    )
    rates = [rate for each in standings for rate in (("all", each), *each.levels.items())]
    return tabulate("success", "Success rate", columns, rates, "Intervals are 95%, by Wilson's formula.")


def verdicts(cases: Sequence[Case], *, shares: bool = True) -> Table:
    """Return the counts of final verdicts; ``shares`` is false for a planned sample, whose plain rates are biased."""
    finals = [case.final for case in cases]
    decided = [final for final in finals if final is not None]
    columns = (Column("Final verdict"), Column("Trajectories", "count"), Column("Share", "rate"))
    rows: list[list[Value]] = [
        [name.lower(), decided.count(verdict), wilson(decided.count(verdict), len(decided))]
        for verdict, name in VERDICT_NAMES.items()
    ]
    if len(decided) < len(finals):
        rows.append(["none yet", len(finals) - len(decided), None])
    kept = len(columns) if shares else 2
    return Table("verdicts", "Final verdicts", columns[:kept], [row[:kept] for row in rows])


def failure_types(cases: Sequence[Case]) -> Table:
    named = [case.failure_type for case in cases if case.final is Verdict.FAILURE]
    counted = {code: named.count(code) for code in set(named)}
    columns = (Column("Main failure type"), Column("Failures", "count"), Column("Share of failures", "rate"))
    rows: list[list[Value]] = [
        [FAILURE_TYPE_NAMES.get(code, code) or "none stated", counted[code], wilson(counted[code], len(named))]
        for code in sorted(counted, key=lambda code: (-counted[code], code))
    ]
    note = "For an adjudicated failure, the adjudicator's main type; for any other, the type that most labels name."
    return Table("failure-types", "Failure types", columns, rows, note=note)


# --- agreement -------------------------------------------------------------------------------------------------------


def largest(groups: Table, most: int) -> Table:
    """Return the groups with the most cases, in their order; the second column is the number of cases."""
    sizes = sorted((row[1] for row in groups.rows if isinstance(row[1], int)), reverse=True)
    if len(sizes) <= most:
        return groups
    kept = [row for row in groups.rows if isinstance(row[1], int) and row[1] >= sizes[most - 1]][:most]
    note = f"The {most} with the most cases; {len(sizes) - most:,} more are in the CSV file. {groups.note}"
    return replace(groups, rows=kept, note=note.strip())


# --- work ------------------------------------------------------------------------------------------------------------


def people(submission: Submission) -> Table:
    labels = Label.objects.filter(assignment__trajectory__submission=submission, revision=1)
    labelled = dict(labels.order_by().values_list("assignment__annotator").annotate(n=Count("pk")))
    decided = Adjudication.objects.filter(trajectory__submission=submission, decided_at__isnull=False)
    adjudicated = dict(decided.order_by().values_list("adjudicator").annotate(n=Count("pk")))
    members = submission.memberships.values_list("person", "pseudonym", "role")
    rows: list[list[Value]] = [
        [pseudonym, role, labelled.get(person, 0), adjudicated.get(person, 0)]
        for person, pseudonym, role in sorted(members, key=lambda row: (row[2], len(row[1]), row[1]))
    ]
    columns = (Column("Person"), Column("Role"), Column("Labels", "count"), Column("Adjudications", "count"))
    return Table("people", "People, by pseudonym", columns, rows, note="A person has one role per submission.")


def times(cases: Iterable[Case]) -> Table:
    """Return active times of labels, by verdict; no rows if no time was measured."""
    labels = [label for case in cases for label in case.labels]
    columns = (
        Column("Label"),
        Column("Labels", "count"),
        Column("Measured", "count", "Labels with a measured time."),
        Column("First quartile", "seconds"),
        Column("Median", "seconds"),
        Column("Third quartile", "seconds"),
        Column("Total hours", "number"),
    )
    chosen = {"all": labels} | {
        name.lower(): [label for label in labels if label.verdict is verdict] for verdict, name in VERDICT_NAMES.items()
    }
    measured = any(label.seconds is not None for label in labels)
    rows = [_times(name, [label.seconds for label in some]) for name, some in chosen.items()] if measured else []
    note = "A second counts if the page is visible and was used in the last 60 seconds."
    return Table("times", "Time per label", columns, rows, note=note)


def _times(name: str, given: Sequence[int | None]) -> list[Value]:
    measured = [seconds for seconds in given if seconds is not None]
    if not measured:
        return [name, len(given), 0, None, None, None, None]
    low, high = measured[0], measured[0]
    if len(measured) > 1:
        low, _, high = quantiles(measured, n=4, method="inclusive")  # type: ignore[assignment]
    return [name, len(given), len(measured), low, median(measured), high, sum(measured) / 3600]


def draws(submission: Submission) -> Table:
    recorded = "Recorded in the chain of events before the draw."
    columns = (
        Column("Draw", "count", of="number"),
        Column("When (UTC)", of=lambda draw: f"{draw.drawn_at:%Y-%m-%d %H:%M}"),
        Column("Rate", "rate", of="rate"),
        Column("Unanimous", "count", "The trajectories that the draw chose from.", "population_count"),
        Column("Drawn", "count", of="drawn_count"),
        Column("Seed", of="seed"),
        Column("SHA-256 of the seed", explanation=recorded, of=lambda draw: seed_hash(draw.seed)),
    )
    return tabulate("draws", "Draws of spot checks", columns, progress.load_draws(submission))


# --- judges ----------------------------------------------------------------------------------------------------------

PRINTED = [replace(each.column, of=f"1.measures.{name}") for name, each in JUDGE_MEASURES.items() if each.printed]


def judges(found: Judges) -> Table:
    not_scored = "No usable verdict, an error, or never called: never counted as a failure."
    columns = (
        Column("Judge", of="0"),
        replace(RULE, of=lambda line: LABEL_2[line[1].human_label_2]),
        Column("Compared", "count", "Trajectories (of people: labels).", "1.n"),
        Column("Not scored", "count", not_scored, lambda line: line[1].unscored + line[1].errors + line[1].unjudged),
        *PRINTED,
    )
    lines = [(CEILING, row) for row in found.people if row.name == PEOPLE]
    lines += [(each.name, row) for each in found.judges for row in each.comparison.overall]
    note = (
        "People: blind labels compared with final verdicts. Each label contributes to its final verdict, so these "
        "figures are too high. A judge can still score higher if adjudicators overturned unanimous labels."
    )
    return tabulate("judges", "Judges against people", columns, lines, note)


def judging(found: Judges) -> Table:
    scored = "Trajectories with a final verdict that it has scored; label 2 counts."
    columns = (
        Column("Judge", of="name"),
        Column("Coverage", "rate", scored, lambda each: each.covered(Label2.NOT_SUCCESS)),
        *(replace(each, of=f"comparison.{each.of}") for each in (FLIPS, *COSTS)),
    )
    return tabulate("judging", "Coverage, consistency and cost of judges", columns, found.judges)


# --- provenance ------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Provenance:
    """Working period of a submission, and the last event of its chain, whose hash covers all earlier events."""

    first_label: datetime | None
    last_label: datetime | None
    last_decision: datetime | None
    head: Event | None
    missing: list[Problem]  # what the protocol still requires before a complete export

    @classmethod
    def of(cls, submission: Submission) -> Provenance:
        labels = Label.objects.filter(assignment__trajectory__submission=submission)
        labelled = labels.aggregate(first=Min("created_at"), last=Max("created_at"))
        decided = Adjudication.objects.filter(trajectory__submission=submission).aggregate(last=Max("decided_at"))
        head = submission.events.order_by("-sequence").first()
        return cls(labelled["first"], labelled["last"], decided["last"], head, missing_for_export(submission))


# --- audits -----------------------------------------------------------------------------------------------------------

AUDIT_FIGURES = (
    Column(
        "Agreement",
        "rate",
        "Share of the sample where the auditor's final verdict equals the submitted one.",
        "agreement",
    ),
    Column("Cohen's kappa", "coefficient", "The same, corrected for chance; 0 is chance, 1 is perfect.", "kappa"),
    Column("Success rate as submitted", "rate", "Of the sample; label 2 is no success.", "submitted_rate"),
    Column("Success rate by the audit", "rate", "Of the same trajectories.", "audit_rate"),
    Column("Success rate of all, as submitted", "rate", "Of every submitted final verdict.", "all_submitted_rate"),
    Column("Wrong verdicts among all", "number", "The share that differs, times all submitted verdicts.", "wrong"),
)


def audit_figures(found: Result) -> Table:
    return tabulate("figures", "The sample", AUDIT_FIGURES, [found])


def compare_verdicts(found: Result) -> Table:
    names = [VERDICT_NAMES[verdict].lower() for verdict in Verdict]
    columns = [Column("Submitted"), *(Column(f"Audit: {name}", "count") for name in names)]
    rows: list[list[Value]] = [[name, *counts] for name, counts in zip(names, found.table, strict=True)]
    return Table("compare_verdicts", "Submitted and audited compare_verdicts", columns, rows)


def differing(found: Result, links: Mapping[int, str]) -> Table:
    columns = [
        Column("Task", of="task_id"),
        Column("Submitted", of=lambda each: VERDICT_NAMES[each.submitted].lower()),
        Column("Audit", of=lambda each: VERDICT_NAMES[each.audit].lower()),
    ]
    here = {number: links[each.audited] for number, each in enumerate(found.differing) if each.audited in links}
    return tabulate("differing", "Judged otherwise", columns, found.differing, links=here)
