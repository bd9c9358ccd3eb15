"""What a printed report of a submission has beside agreement and comparison, as tables."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from statistics import median, quantiles

from django.db.models import Count, Max, Min

from annotation import progress
from annotation.forms import VERDICT_NAMES
from annotation.models import Adjudication, Event, Label, Submission
from annotation.models.trajectories import seed_hash
from annotation.records import Problem, Verdict
from evaluations.cases import Case
from evaluations.comparison import Label2, Row, Standing
from evaluations.comparison.judges import Judges
from evaluations.comparison.results import Rates
from evaluations.comparison.rows import PEOPLE
from evaluations.comparison_tables import COSTS, FLIPS, LABEL_2, RULE, costs
from evaluations.exports import missing_for_export
from evaluations.measures import JUDGE_MEASURES
from evaluations.naming import FAILURE_TYPE_NAMES
from evaluations.statistics import wilson
from evaluations.tables import Column, Table, Value

# --- what came out ---------------------------------------------------------------------------------------------------


def success(standings: Iterable[Standing]) -> Table:
    columns = (
        Column("Of"),
        Column("Trajectories", "count", "With a final verdict."),
        Column("Success rate over all", "rate", "Not executable counts as not a success."),
        Column("Executable", "count", "Without those that are not executable."),
        Column("Success rate without label 2", "rate", "Trajectories that are not executable are left out."),
    )
    rows: list[list[Value]] = []
    for standing in standings:
        rows.append(_rates("all", standing))
        rows += [_rates(level, rates) for level, rates in standing.levels.items()]
    note = "Intervals are 95 %, by Wilson's formula."
    return Table("success", "Success rate", columns, rows, note=note)


def _rates(name: str, rates: Rates) -> list[Value]:
    return [name, rates.over_all.n, rates.over_all, rates.without_2.n, rates.without_2]


def verdicts(cases: Sequence[Case]) -> Table:
    finals = [case.final for case in cases]
    decided = [final for final in finals if final is not None]
    columns = (Column("Final verdict"), Column("Trajectories", "count"), Column("Share", "rate"))
    rows: list[list[Value]] = [
        [name.lower(), decided.count(verdict), wilson(decided.count(verdict), len(decided))]
        for verdict, name in VERDICT_NAMES.items()
    ]
    if len(decided) < len(finals):
        rows.append(["none yet", len(finals) - len(decided), None])
    return Table("verdicts", "Final verdicts", columns, rows)


def failure_types(cases: Sequence[Case]) -> Table:
    named = [case.failure_type for case in cases if case.final is Verdict.FAILURE]
    counted = {code: named.count(code) for code in set(named)}
    columns = (Column("Main failure type"), Column("Failures", "count"), Column("Share of failures", "rate"))
    rows: list[list[Value]] = [
        [FAILURE_TYPE_NAMES.get(code, code) or "none stated", counted[code], wilson(counted[code], len(named))]
        for code in sorted(counted, key=lambda code: (-counted[code], code))
    ]
    note = "Of an adjudicated failure, the adjudicator's main type; of any other, the one that most labels name."
    return Table("failure-types", "Failure types", columns, rows, note=note)


# --- how far people agree --------------------------------------------------------------------------------------------


def largest(groups: Table, most: int) -> Table:
    """The groups with the most cases, in their order: the second column is the number of cases."""
    sizes = sorted((row[1] for row in groups.rows if isinstance(row[1], int)), reverse=True)
    if len(sizes) <= most:
        return groups
    kept = [row for row in groups.rows if isinstance(row[1], int) and row[1] >= sizes[most - 1]][:most]
    note = f"The {most} with the most cases; {len(sizes) - most:,} more are in the CSV file. {groups.note}"
    return replace(groups, rows=kept, note=note.strip())


# --- how it was made -------------------------------------------------------------------------------------------------


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
    return Table("people", "People, by pseudonym", columns, rows, note="One person has one role in a submission.")


def times(cases: Iterable[Case]) -> Table:
    """Activity for a label, by what the label says; no rows where no time was measured."""
    labels = [label for case in cases for label in case.labels]
    columns = (
        Column("Label"),
        Column("Labels", "count"),
        Column("Measured", "count", "Labels whose time was measured."),
        Column("First quartile", "seconds"),
        Column("Median", "seconds"),
        Column("Third quartile", "seconds"),
        Column("Hours in all", "number"),
    )
    chosen = {"all": labels} | {
        name.lower(): [label for label in labels if label.verdict is verdict] for verdict, name in VERDICT_NAMES.items()
    }
    measured = any(label.seconds is not None for label in labels)
    rows = [_times(name, [label.seconds for label in some]) for name, some in chosen.items()] if measured else []
    note = "A second counts while the page is in view and was used in the last 60 seconds."
    return Table("times", "Time for a label", columns, rows, note=note)


def _times(name: str, given: Sequence[int | None]) -> list[Value]:
    measured = [seconds for seconds in given if seconds is not None]
    if not measured:
        return [name, len(given), 0, None, None, None, None]
    low, high = measured[0], measured[0]
    if len(measured) > 1:
        low, _, high = quantiles(measured, n=4, method="inclusive")  # type: ignore[assignment]
    return [name, len(given), len(measured), low, median(measured), high, sum(measured) / 3600]


def draws(submission: Submission) -> Table:
    columns = (
        Column("Draw", "count"),
        Column("When (UTC)"),
        Column("Rate", "rate"),
        Column("Unanimous", "count", "The trajectories that were drawn from."),
        Column("Drawn", "count"),
        Column("Seed"),
        Column("SHA-256 of the seed", explanation="Recorded in the chain of events before the draw."),
    )
    rows: list[list[Value]] = [
        [
            draw.number,
            f"{draw.drawn_at:%Y-%m-%d %H:%M}",
            draw.rate,
            draw.population_count,
            draw.drawn_count,
            draw.seed,
            seed_hash(draw.seed),
        ]
        for draw in progress.load_draws(submission)
    ]
    return Table("draws", "Draws of spot checks", columns, rows)


# --- judges ----------------------------------------------------------------------------------------------------------


PRINTED = {each.name: each.column for each in JUDGE_MEASURES.values() if each.printed}


def judges(found: Judges) -> Table:
    columns = (
        Column("Judge"),
        RULE,
        Column("Compared", "count", "Trajectories (of people: labels)."),
        Column("Not scored", "count", "No usable verdict, an error, or never asked: never counted as failure."),
        *PRINTED.values(),
    )
    rows = [_judge("people (ceiling)", row) for row in found.people if row.name == PEOPLE]
    rows += [_judge(each.name, row) for each in found.judges for row in each.comparison.overall]
    note = (
        "People are the blind labels against the final verdicts. A label is part of what its verdict was made of, "
        "which flatters people; a judge can lie above them all the same, where adjudicators overturned what the "
        "labels agreed on."
    )
    return Table("judges", "Judges against people", columns, rows, note=note)


def _judge(name: str, row: Row) -> list[Value]:
    measures = [row.measures[name] for name in PRINTED]
    return [name, LABEL_2[row.human_label_2], row.n, row.unscored + row.errors + row.unjudged, *measures]


def judging(found: Judges) -> Table:
    columns = (
        Column("Judge"),
        Column("Coverage", "rate", "Trajectories with a final verdict that it has scored; label 2 counts."),
        FLIPS,
        *COSTS,
    )
    rows: list[list[Value]] = [
        [each.name, each.covered(Label2.NOT_SUCCESS), each.comparison.flips.rate, *costs(each.comparison).rows[0][1:]]
        for each in found.judges
    ]
    return Table("judging", "Coverage, steadiness and cost of judges", columns, rows)


# --- where it comes from ---------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Provenance:
    """When a submission was worked on, and the last event of its chain, which seals all before it."""

    first_label: datetime | None
    last_label: datetime | None
    last_decision: datetime | None
    head: Event | None
    missing: list[Problem]  # what the protocol still asks for before a complete export

    @classmethod
    def of(cls, submission: Submission) -> Provenance:
        labels = Label.objects.filter(assignment__trajectory__submission=submission)
        labelled = labels.aggregate(first=Min("created_at"), last=Max("created_at"))
        decided = Adjudication.objects.filter(trajectory__submission=submission).aggregate(last=Max("decided_at"))
        head = submission.events.order_by("-sequence").first()
        return cls(labelled["first"], labelled["last"], decided["last"], head, missing_for_export(submission))
