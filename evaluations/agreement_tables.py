"""The agreement of people as tables: for pages, CSV and terminals, all from one `Agreement`."""

from __future__ import annotations

from collections.abc import Iterable
from math import ceil, floor

from annotation.forms import VERDICT_NAMES
from annotation.protocol import FAILURE_TYPES
from evaluations.agreement import Adjudications, Agreement, Annotator, Group, Pair
from evaluations.tables import Cell, Column, Table, Value

FAILURE_TYPE_NAMES = {term.code: term.name for term in FAILURE_TYPES}

COUNTS = (
    Column("Labelled", "count", "Trajectories with a blind label."),
    Column("Complete", "count", "Those with every label that is asked for."),
    Column("Pairable", "count", "Those with two labels or more: the coefficients rest on them."),
)
COEFFICIENTS = (
    Column(
        "Raw agreement",
        "rate",
        "How often two labels of one trajectory say the same. It does not correct for chance: where nearly all "
        "trajectories get one verdict, it is high even for guesses.",
    ),
    Column(
        "Krippendorff alpha",
        "coefficient",
        "One minus observed by expected disagreement, for verdicts without order; labels may be missing. 1 is perfect, "
        "0 is what chance gives, below 0 is worse. Krippendorff relies on .800 and more and draws tentative "
        "conclusions from .667 on: his convention, not a law.",
    ),
    Column(
        "Gwet AC1",
        "coefficient",
        "Corrects for chance in a way that one dominating verdict moves little. Far above alpha it means that the "
        "verdicts are uneven, not that people agree better.",
    ),
    Column(
        "Fleiss kappa",
        "coefficient",
        "The older coefficient of the same kind, to compare with older work. With many trajectories it is close to "
        "alpha and read like it.",
    ),
)
LABEL_ALPHAS = tuple(
    Column(
        f"Alpha of {name.lower()}",
        "coefficient",
        f"Alpha of {name.lower()} against the other two verdicts: whether people draw this line at the same place.",
    )
    for name in VERDICT_NAMES.values()
)
GROUP_COLUMNS = (*COUNTS, *COEFFICIENTS, *LABEL_ALPHAS)
GROUP_TITLES = {
    "agent": "Agreement by agent",
    "level": "Agreement by level",
    "website": "Agreement by website",
    "failure type": "Agreement by failure type",
}
INTERVALS = "Intervals are 95 %: of coefficients by resampling trajectories (bootstrap), of rates by Wilson's formula."


def tables(agreement: Agreement) -> list[Table]:
    """Every table of an agreement, by its stable name and in the order of the page; empty ones too."""
    found = [overall(agreement), outcomes(agreement)]
    found += [by_group(kind, agreement.groups.get(kind, [])) for kind in GROUP_TITLES]
    found += [pairs(agreement), annotators(agreement.annotators), confusion(agreement.annotators)]
    return [*found, adjudications(agreement.adjudications)]


def figures(table: Table) -> list[tuple[Column, Cell]]:
    """The columns of a table of one row with their values, to be shown below each other; empty without a row."""
    return list(zip(table.columns, table.body[0], strict=True)) if table.rows else []


# --- how much people agree -------------------------------------------------------------------------------------------


def overall(agreement: Agreement) -> Table:
    """One row: the counts and coefficients of all cases."""
    columns = (*GROUP_COLUMNS, Column("Undecided", "count", "With labels and without a final verdict."))
    rows = [[*_of_group(agreement.overall), agreement.undecided]]
    return Table("overall", "Agreement on blind labels, before QA", columns, rows, note=INTERVALS)


def outcomes(agreement: Agreement) -> Table:
    """How the labels of complete cases fell, over all and in every level and agent."""
    columns = (
        Column("Of"),
        Column("Complete", "count", "Trajectories with every label that is asked for."),
        Column("Unanimous", "rate", "All labels are the same verdict."),
        Column("Two the same", "rate", "Two labels are the same, another is not: 2:1."),
        Column("Three ways", "rate", "No two labels are the same."),
    )
    rows = [_outcome("all", agreement.overall)]
    for kind in ("level", "agent"):
        groups = agreement.groups.get(kind, [])
        rows += [_outcome(group_name(kind, group.name), group) for group in groups] if len(groups) > 1 else []
    return Table("outcomes", "How the labels of a trajectory fall", columns, rows)


def _outcome(name: str, group: Group) -> list[Value]:
    return [name, group.complete, group.unanimous, group.majority, group.split]


def by_group(kind: str, groups: Iterable[Group]) -> Table:
    """One row a group; ``kind`` is one of `agreement.GROUPS`."""
    columns = (Column(kind.capitalize()), *GROUP_COLUMNS)
    rows = [[group_name(kind, group.name), *_of_group(group)] for group in groups]
    note = ""
    if kind == "failure type":
        note = (
            "Trajectories for which a label or the decision names the type; one can be in several rows. Somebody saw "
            "a failure in each: compare the types with each other, not with the rest. It is the agreement on verdicts, "
            "not on the type."
        )
    return Table(f"by-{kind.replace(' ', '-')}", GROUP_TITLES[kind], columns, rows, note=note)


def group_name(kind: str, name: str) -> str:
    """A group as people read it: failure types by their names of the protocol."""
    return (FAILURE_TYPE_NAMES.get(name, name) if kind == "failure type" else name) or "none stated"


def _of_group(group: Group) -> list[Value]:
    return [
        group.items,
        group.complete,
        group.pairable,
        group.raw_agreement,
        group.alpha,
        group.ac1,
        group.fleiss_kappa,
        *(group.label_alpha[verdict] for verdict in VERDICT_NAMES),
    ]


# --- who says it -----------------------------------------------------------------------------------------------------


def pairs(agreement: Agreement) -> Table:
    """One row for every two annotators who labelled the same trajectories, those who share most first."""
    columns = (
        Column("First"),
        Column("Second"),
        Column("Both labelled", "count", "Trajectories that both have labelled."),
        Column("Raw agreement", "rate", "How often the two say the same."),
        Column("Cohen kappa", "coefficient", "Agreement beyond chance, with each one's own share of verdicts."),
        Column("Alpha", "coefficient", "Krippendorff's alpha of the two alone."),
    )
    listed = [] if agreement.listed_pair is None else [agreement.listed_pair]
    rows = [_pair(pair) for pair in (*listed, *agreement.pairs)]
    note = "Two people who share few trajectories can agree or differ by luck: look at the interval first."
    if listed:
        note += " First and second listed: of labels made elsewhere, whoever gave them, as published tables have it."
    if agreement.pairs_left_out:
        note += f" {agreement.pairs_left_out} pairs that share less are left out."
    return Table("pairs", "Two annotators at a time", columns, rows, note=note)


def _pair(pair: Pair) -> list[Value]:
    return [pair.first, pair.second, pair.raw_agreement.n, pair.raw_agreement, pair.kappa, pair.alpha]


def annotators(annotators: Iterable[Annotator]) -> Table:
    columns = (
        Column("Annotator"),
        Column("Labels", "count"),
        Column("Same as final", "rate", "Label and final verdict are the same, of the labels whose case is decided."),
        Column("Overturned", "rate", "An adjudicator decided otherwise, of the labels whose case was adjudicated."),
        Column("Median time", "seconds", "Of activity for a label, where it was measured."),
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
    rows: list[list[Value]] = [
        [a.name, a.labels, a.agreement, a.overturned, a.seconds, a.competence, a.trust] for a in annotators
    ]
    note = (
        "A label is part of what its final verdict was made of, so “same as final” flatters everybody. Competence and "
        "trust take the majority's habits for the truth: somebody who alone applies the protocol looks bad."
    )
    return Table("annotators", "Each annotator", columns, rows, note=note)


def confusion(annotators: Iterable[Annotator]) -> Table:
    """One row for every annotator and verdict that they could say, counting the final verdicts."""
    finals = [Column(f"Final {name.lower()}", "count") for name in VERDICT_NAMES.values()]
    columns = (Column("Annotator"), Column("Said"), *finals)
    rows: list[list[Value]] = [
        [a.name, VERDICT_NAMES[said].lower(), *a.confusion[said]] for a in annotators for said in VERDICT_NAMES
    ]
    return Table("confusion", "Which verdict they take for which", columns, rows)


# --- what QA made of it ----------------------------------------------------------------------------------------------


def adjudications(found: Adjudications | None) -> Table:
    """One row; none for labels that were made elsewhere."""
    columns = (
        Column("Adjudicated", "count", "Trajectories that an adjudicator decided, for whatever reason."),
        Column("Disputes", "count", "Trajectories with every label, and not all the same."),
        Column("Changed", "rate", "Decided otherwise than most labels said, of those with such a majority."),
        Column("Drawn", "count", "Unanimous trajectories that the seeded draw took for a spot check."),
        Column(
            "Missed",
            "rate",
            "Of the drawn ones that were judged blind, those where the adjudicator contradicted the labels.",
        ),
        Column("Unchecked", "count", "Unanimous trajectories that became final without a look."),
        Column("Expected missed", "number", "The rate of missed ones, carried over to the unchecked."),
    )
    return Table("adjudications", "What QA changed", columns, [] if found is None else [_adjudicated(found)])


def _adjudicated(found: Adjudications) -> list[Value]:
    return [
        found.adjudicated,
        found.disputes,
        found.changed,
        found.drawn,
        found.missed,
        found.unchecked,
        found.expected_missed,
    ]


def extrapolation(found: Adjudications) -> str:
    """What the spot checks say about the unanimous trajectories that nobody checked, in a sentence."""
    if not found.unchecked:
        return "An adjudicator has looked at every unanimous trajectory, so there is nothing to extrapolate."
    of = f"Of {found.unchecked} unanimous {_plural(found.unchecked)} that nobody checked"
    expected = found.expected_missed
    if expected.value is None:
        return f"{of}, it cannot be said how many would have been decided otherwise: {expected.undefined}."
    between = ""
    if expected.low is not None and expected.high is not None:
        between = f" ({floor(expected.low)} to {ceil(expected.high)})"
    return f"{of}, {_about(expected.value)}{between} would have been decided otherwise."


def _plural(count: int) -> str:
    return "trajectory" if count == 1 else "trajectories"


def _about(value: float) -> str:
    return "less than 1" if 0 < value < 0.5 else f"about {value:.0f}"
