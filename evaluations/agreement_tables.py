"""The agreement of people as tables: for pages, CSV and terminals, all from one `Agreement`."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import permutations
from math import ceil, floor

from annotation.forms import VERDICT_NAMES
from evaluations import measures
from evaluations.agreement import (
    CHOSEN_BY_LABELS,
    GROUPS,
    REASONS,
    Adjudications,
    Agreement,
    Annotator,
    Group,
    Informed,
    Pair,
    groups,
    people,
)
from evaluations.cases import Rules
from evaluations.measures import RAW_AGREEMENT, under_rules
from evaluations.naming import failure_type_name
from evaluations.tables import Cell, Column, Table, Value

TINY = 1e-9  # no number of trajectories

COUNTS = (
    Column("Labelled", "count", "Trajectories with a blind label."),
    Column("Complete", "count", "Those with every label that is asked for."),
    Column("Pairable", "count", "Those with two labels or more: the coefficients rest on them."),
)
COEFFICIENTS = tuple(each.column for each in (RAW_AGREEMENT, *measures.COEFFICIENTS.values()))
LABEL_ALPHAS = tuple(
    Column(
        f"Alpha of {name.lower()}",
        "coefficient",
        f"Alpha of {name.lower()} against the other two verdicts: whether people draw this line at the same place.",
    )
    for name in VERDICT_NAMES.values()
)
GROUP_COLUMNS = (*COUNTS, *COEFFICIENTS, *LABEL_ALPHAS)
INTERVALS = (
    "Intervals are 95 %: of raw agreement and the coefficients by resampling trajectories (bootstrap), of shares by "
    "Wilson's formula. Where several agents did the same tasks, whole tasks are resampled, because trajectories of one "
    "task are alike. There is none where too few trajectories carry the figure, or where resampling never changes it."
)
PUBLISHED = "As in published tables: figures rounded to four digits, without intervals."


def tables(agreement: Agreement) -> list[Table]:
    found = [overall(agreement), first_against_second(agreement), outcomes(agreement)]
    found += [by_group(kind, agreement.groups.get(kind, []), agreement.rules) for kind in GROUPS]
    found += [pairs(agreement), annotators(agreement.annotators, reviewed=agreement.adjudications is not None)]
    found += [confusion(agreement.annotators), adjudications(agreement.adjudications)]
    return [*found, informed(agreement.informed), informed_reasons(agreement.informed)]


def figures(table: Table) -> list[tuple[Column, Cell]]:
    """The columns of a table of one row with their values, to be shown below each other; empty without a row."""
    return list(zip(table.columns, table.body[0], strict=True)) if table.rows else []


# --- how much people agree -------------------------------------------------------------------------------------------


def overall(agreement: Agreement) -> Table:
    columns = (*GROUP_COLUMNS, Column("Undecided", "count", "With labels and without a final verdict."))
    rows = [[*_of_group(agreement.overall), agreement.undecided]]
    note = PUBLISHED if agreement.rules is Rules.PUBLISHED else INTERVALS
    return Table(
        "overall", "Agreement on blind labels, before QA", under_rules(columns, agreement.rules), rows, note=note
    )


def outcomes(agreement: Agreement) -> Table:
    """How the labels of complete cases fell, over all and in every level and agent."""
    columns = (
        Column("Of"),
        Column("Complete", "count", "Trajectories with every label that is asked for."),
        Column("Unanimous", "rate", "All labels are the same verdict."),
        Column("A majority", "rate", "More than half of the labels are the same verdict, not all."),
        Column("No majority", "rate", "No verdict has more than half of the labels."),
    )
    rows: list[list[Value]] = [
        [name, group.n_complete, group.outcomes.unanimous, group.outcomes.majority, group.outcomes.split]
        for name, group in outcome_rows(agreement)
    ]
    return Table("outcomes", "How the labels of a trajectory fall", columns, rows)


def outcome_rows(agreement: Agreement) -> Iterator[tuple[str, Group]]:
    yield "all", agreement.overall
    for kind in ("level", "agent"):
        found = agreement.groups.get(kind, [])
        if len(found) > 1:
            yield from ((group_name(kind, group.name), group) for group in found)


def by_group(kind: str, found: Sequence[Group], rules: Rules = Rules.DEFAULT) -> Table:
    chosen = kind in CHOSEN_BY_LABELS
    columns = (Column(kind.capitalize()), *COUNTS, *(COEFFICIENTS[:1] if chosen else (*COEFFICIENTS, *LABEL_ALPHAS)))
    rows: list[list[Value]] = [[group_name(kind, group.name), *_of_group(group)[: len(columns) - 1]] for group in found]
    notes = []
    if chosen:
        notes.append(
            "Trajectories for which a blind label names the type; one can be in several rows. Somebody saw a failure "
            "in each: compare the types with each other, not with the rest. It is the agreement on verdicts, not on "
            "the type. There is no coefficient, because the rows are chosen by what was said, and a correction for "
            "chance would mislead."
        )
    if len(found) > groups.MOST_INTERVALS and rules is Rules.DEFAULT:
        notes.append(f"The {groups.MOST_INTERVALS} with the most trajectories have intervals.")
    title = f"Agreement by {kind}"
    return Table(f"by-{kind.replace(' ', '-')}", title, under_rules(columns, rules), rows, note=" ".join(notes))


def group_name(kind: str, name: str) -> str:
    """A group as people read it: failure types by their names of the protocol."""
    return failure_type_name(name) if kind == "failure type" else name


def _of_group(group: Group) -> list[Value]:
    return [
        group.n_items,
        group.n_complete,
        group.n_pairable,
        group.raw_agreement,
        *(group.coefficients[name] for name in measures.COEFFICIENTS),
        *(group.per_label[verdict] for verdict in VERDICT_NAMES),
    ]


# --- who says it -----------------------------------------------------------------------------------------------------


OF_TWO = (
    Column("Raw agreement", "rate", "How often the two say the same."),
    Column("Cohen kappa", "coefficient", "Agreement beyond chance, with each one's own share of verdicts."),
    Column("Alpha", "coefficient", "Krippendorff's alpha of the two alone."),
)


def first_against_second(agreement: Agreement) -> Table:
    """One row; none where no labels were made elsewhere, or no case has two of them."""
    columns = (Column("Trajectories", "count", "With two labels or more that were made elsewhere."), *OF_TWO)
    rows = [] if agreement.first_against_second is None else [_of_two(agreement.first_against_second)]
    note = (
        "Of labels made elsewhere, the first that the file lists for a trajectory against the second, whoever gave "
        "them, as published tables have it. Kappa depends on the order of the file, alpha does not."
    )
    title = "First against second listed"
    return Table("first-against-second", title, under_rules(columns, agreement.rules), rows, note=note)


def pairs(agreement: Agreement) -> Table:
    """One row for every two annotators who labelled the same trajectories, those who share most first."""
    columns = (
        Column("First"),
        Column("Second"),
        Column("Both labelled", "count", "Trajectories that both have labelled."),
        *OF_TWO,
    )
    rows: list[list[Value]] = [[pair.first, pair.second, *_of_two(pair)] for pair in agreement.pairs]
    note = "Two people who share few trajectories can agree or differ by luck: look at the interval first."
    if len(rows) > people.MOST_INTERVALS and agreement.rules is Rules.DEFAULT:
        note += f" The {people.MOST_INTERVALS} who share most have intervals."
    if agreement.pairs_left_out:
        note += f" {agreement.pairs_left_out} pairs that share less are left out."
    return Table("pairs", "Two annotators at a time", under_rules(columns, agreement.rules), rows, note=note)


def _of_two(pair: Pair) -> list[Value]:
    return [pair.n, pair.raw_agreement, pair.kappa, pair.alpha]


def annotators(annotators: Iterable[Annotator], *, reviewed: bool = True) -> Table:
    """One row each; where nothing was ``reviewed`` there is nothing to compare them with, and no time."""
    of_reviews = (
        Column("Same as final", "rate", "Label and final verdict are the same, of the labels whose case is decided."),
        Column("Overturned", "rate", "An adjudicator decided otherwise, of the labels whose case was adjudicated."),
        Column("Median time", "seconds", "Of activity for a label, where it was measured."),
    )
    hints = (
        Column(
            "Competence (hint)",
            "number",
            "Dawid and Skene's estimate of how often the person is right, from the labels alone. A hint for QA, never "
            "a label.",
        ),
        Column(
            "Trust (hint)",
            "number",
            "MACE's estimate of how often the person did not guess, from the labels alone. A hint for QA, never a "
            "label.",
        ),
    )
    columns = (Column("Annotator"), Column("Labels", "count"), *(of_reviews if reviewed else ()), *hints)
    rows: list[list[Value]] = [
        [a.name, a.labels, *((a.agreement, a.overturned, a.seconds) if reviewed else ()), a.competence, a.trust]
        for a in annotators
    ]
    flatters = "A label is part of what its final verdict was made of, so “same as final” flatters everybody. "
    note = (
        "Competence and trust take the majority's habits for the truth: somebody who alone applies the protocol looks "
        "bad. They are estimated among people whom shared trajectories join, three at least."
    )
    return Table("annotators", "Each annotator", columns, rows, note=flatters + note if reviewed else note)


def confusion(annotators: Iterable[Annotator]) -> Table:
    """One row for every annotator with a decided case and verdict that they could say, counting the final verdicts."""
    finals = [Column(f"Final {name.lower()}", "count") for name in VERDICT_NAMES.values()]
    columns = (Column("Annotator"), Column("Said"), *finals)
    rows: list[list[Value]] = [
        [a.name, VERDICT_NAMES[said].lower(), *a.confusion[said]]
        for a in annotators
        if any(map(sum, a.confusion))
        for said in VERDICT_NAMES
    ]
    return Table("confusion", "Confusion of verdicts", columns, rows)


# --- what QA made of it ----------------------------------------------------------------------------------------------


CHANGED = {
    "disputes": Column("Changed: disputes", "rate", "The same of those whose labels differ."),
    "drawn": Column("Changed: drawn", "rate", "The same of the unanimous that the draw took."),
    "flagged": Column("Changed: flagged", "rate", "The same of the unanimous that were flagged and not drawn."),
}


def adjudications(found: Adjudications | None) -> Table:
    columns = (
        Column("Adjudicated", "count", "Trajectories that an adjudicator decided, for whatever reason."),
        Column("Disputes", "count", "Trajectories with every label, and not all the same."),
        Column("Changed", "rate", "Decided otherwise than most labels said, of those with such a majority."),
        *(CHANGED[reason] for reason in REASONS),
        Column("Drawn", "count", "Unanimous trajectories that the seeded draw took for a spot check."),
        Column(
            "Missed",
            "rate",
            "Of the drawn ones that were judged blind, those where the adjudicator contradicted the labels.",
        ),
        Column("Unchecked", "count", "Unanimous trajectories that became final without a look."),
        Column("Not extrapolated", "count", "Of the unchecked, those of draws in which none was judged blind."),
        Column(
            "Expected missed",
            "number",
            "How many of the other unchecked an adjudicator would be expected to decide otherwise: of each draw its "
            "rate of missed ones times its unchecked.",
        ),
    )
    return Table("adjudications", "What QA changed", columns, [] if found is None else [_adjudicated(found)])


def _adjudicated(found: Adjudications) -> list[Value]:
    return [
        found.adjudicated,
        found.disputes,
        found.changed,
        *(getattr(found.changed_of, reason) for reason in REASONS),
        found.drawn,
        found.missed,
        found.unchecked,
        found.unknown,
        found.expected_missed,
    ]


def extrapolation(found: Adjudications) -> str:
    """What the spot checks say about the unanimous trajectories that nobody checked, in a sentence or two."""
    if not found.unanimous:
        return "No trajectory is unanimous, so there is nothing to extrapolate."
    if not found.unchecked:
        return "No unanimous trajectory became final without a look, so there is nothing to extrapolate."
    expected = found.expected_missed
    if expected.value is None:
        of = f"Of {found.unchecked} unanimous {_plural(found.unchecked)} that nobody checked"
        return f"{of}, it cannot be said how many would have been decided otherwise: {expected.undefined}."
    known = found.unchecked - found.unknown
    between = ""
    if expected.low is not None and expected.high is not None:
        between = f" ({floor(expected.low + TINY)} to {ceil(expected.high - TINY)})"
    says = (
        f"Had an adjudicator looked at the {known} unanimous {_plural(known)} that nobody checked, the expected number "
        f"of other decisions is {_about(expected.value)}{between}."
    )
    if found.unknown:
        says += f" {found.unknown} more are left out: no spot check of their draw was judged blind."
    return says


def _plural(count: int) -> str:
    return "trajectory" if count == 1 else "trajectories"


def _about(value: float) -> str:
    return "less than 1" if 0 < value < 0.5 else f"about {value:.0f}"


# --- opinions after seeing judgments ---------------------------------------------------------------------------------


JUDGES = {
    "all": "all",
    "agree": "agree with the label",
    "disagree": "disagree with the label",
    "divided": "disagree among themselves",
    "no verdict": "give no verdict",
}


def informed(found: Informed | None) -> Table:
    moves = list(permutations(VERDICT_NAMES, 2))
    columns = (
        Column("Judges"),
        Column("Shown", "count", "Labels whose annotator was shown judgments after submitting the label."),
        Column("Kept", "count", "The annotator kept the verdict of the label."),
        Column("Changed", "rate", "Share of deciding annotators who gave another verdict."),
        *(Column(f"{VERDICT_NAMES[a]} to {VERDICT_NAMES[b].lower()}", "count") for a, b in moves),
    )
    rows: list[list[Value]] = [
        [JUDGES[group.judges], group.shown, group.kept, group.changed, *(group.table[a][b] for a, b in moves)]
        for group in (found.groups if found else [])
    ]
    note = (
        "Annotators see judgments only after their blind label is locked. Their opinions change no label, no final "
        "verdict and no other figure. Intervals keep the opinions on one task together."
    )
    return Table("informed", "Opinions after seeing judgments", columns, rows, note=note)


def informed_reasons(found: Informed | None) -> Table:
    columns = tuple(
        map(Column, ("Task", "Agent", "Annotator", "Blind label", "Judges", "Opinion", "Reason", "Task version"))
    )
    rows: list[list[Value]] = [
        [
            each.task_id,
            each.agent,
            each.annotator,
            VERDICT_NAMES[each.blind].lower(),
            ", ".join(VERDICT_NAMES[verdict].lower() for verdict in each.judges) or "no verdict",
            "kept" if each.informed is each.blind else VERDICT_NAMES[each.informed].lower(),
            each.reason,
            each.task_version,
        ]
        for each in (found.opinions if found else [])
        if each.reason or each.informed is not each.blind
    ]
    return Table("informed-reasons", "Reasons for keeping or changing a verdict", columns, rows)
