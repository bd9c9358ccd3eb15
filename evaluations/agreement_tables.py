"""The agreement of people as tables: for pages, CSV and terminals, all from one `Agreement`."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from itertools import permutations
from math import ceil, floor

from annotation.forms import VERDICT_NAMES
from evaluations import measures
from evaluations.agreement import (
    CHOSEN_BY_LABELS,
    GROUPS,
    Adjudications,
    Agreement,
    Annotator,
    Group,
    Informed,
    groups,
    people,
)
from evaluations.agreement.results import Opinion
from evaluations.cases import Rules
from evaluations.measures import RAW_AGREEMENT, under_rules
from evaluations.naming import failure_type_name
from evaluations.tables import Column, Table, Value, tabulate

TINY = 1e-9  # no number of trajectories

COUNTS = (
    Column("Labelled", "count", "Trajectories with a blind label.", "n_items"),
    Column("Complete", "count", "Those with every label that is asked for.", "n_complete"),
    Column("Pairable", "count", "Those with two labels or more: the coefficients rest on them.", "n_pairable"),
)
RAW = replace(RAW_AGREEMENT.column, of="raw_agreement")
COEFFICIENTS = (
    RAW,
    *(replace(each.column, of=f"coefficients.{name}") for name, each in measures.COEFFICIENTS.items()),
)
LABEL_ALPHAS = tuple(
    Column(
        f"Alpha of {name.lower()}",
        "coefficient",
        f"Alpha of {name.lower()} against the other two verdicts: whether people draw this line at the same place.",
        ("per_label", verdict),
    )
    for verdict, name in VERDICT_NAMES.items()
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


# --- how much people agree -------------------------------------------------------------------------------------------


def overall(agreement: Agreement) -> Table:
    undecided = Column("Undecided", "count", "With labels and without a final verdict.", lambda _: agreement.undecided)
    columns = under_rules((*GROUP_COLUMNS, undecided), agreement.rules)
    note = PUBLISHED if agreement.rules is Rules.PUBLISHED else INTERVALS
    return tabulate("overall", "Agreement on blind labels, before QA", columns, [agreement.overall], note)


def outcomes(agreement: Agreement) -> Table:
    """How the labels of complete cases fell, over all and in every level and agent."""
    columns = (
        Column("Of", of="name"),
        Column("Complete", "count", "Trajectories with every label that is asked for.", "n_complete"),
        Column("Unanimous", "rate", "All labels are the same verdict.", "outcomes.unanimous"),
        Column(
            "A majority", "rate", "More than half of the labels are the same verdict, not all.", "outcomes.majority"
        ),
        Column("No majority", "rate", "No verdict has more than half of the labels.", "outcomes.split"),
    )
    return tabulate("outcomes", "How the labels of a trajectory fall", columns, outcome_rows(agreement))


def outcome_rows(agreement: Agreement) -> list[Group]:
    """All cases together, then each level and each agent where there are several."""
    kinds = [agreement.groups.get(kind, []) for kind in ("level", "agent")]
    return [agreement.overall, *(group for found in kinds if len(found) > 1 for group in found)]


def by_group(kind: str, found: Sequence[Group], rules: Rules = Rules.DEFAULT) -> Table:
    chosen = kind in CHOSEN_BY_LABELS
    first = Column(kind.capitalize(), of=lambda group: group_name(kind, group.name))
    columns = (first, *COUNTS, RAW) if chosen else (first, *GROUP_COLUMNS)
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
    name = f"by-{kind.replace(' ', '-')}"
    return tabulate(name, f"Agreement by {kind}", under_rules(columns, rules), found, " ".join(notes))


def group_name(kind: str, name: str) -> str:
    """A group as people read it: failure types by their names of the protocol."""
    return failure_type_name(name) if kind == "failure type" else name


# --- who says it -----------------------------------------------------------------------------------------------------

OF_TWO = (
    Column("Raw agreement", "rate", "How often the two say the same.", "raw_agreement"),
    Column("Cohen kappa", "coefficient", "Agreement beyond chance, with each one's own share of verdicts.", "kappa"),
    Column("Alpha", "coefficient", "Krippendorff's alpha of the two alone.", "alpha"),
)


def first_against_second(agreement: Agreement) -> Table:
    """One row; none where no labels were made elsewhere, or no case has two of them."""
    columns = (Column("Trajectories", "count", "With two imported labels or more.", "n"), *OF_TWO)
    pairs = [] if agreement.first_against_second is None else [agreement.first_against_second]
    note = (
        "Of imported labels, the first that the file lists for a trajectory against the second, whoever gave "
        "them, as published tables have it. Kappa depends on the order of the file, alpha does not."
    )
    title = "First against second listed"
    return tabulate("first-against-second", title, under_rules(columns, agreement.rules), pairs, note)


def pairs(agreement: Agreement) -> Table:
    """One row for every two annotators who labelled the same trajectories, those who share most first."""
    columns = (
        Column("First", of="first"),
        Column("Second", of="second"),
        Column("Both labelled", "count", "Trajectories that both have labelled.", "n"),
        *OF_TWO,
    )
    note = "Two people who share few trajectories can agree or differ by luck: look at the interval first."
    if len(agreement.pairs) > people.MOST_INTERVALS and agreement.rules is Rules.DEFAULT:
        note += f" The {people.MOST_INTERVALS} who share most have intervals."
    if agreement.pairs_left_out:
        note += f" {agreement.pairs_left_out} pairs that share less are left out."
    return tabulate("pairs", "Two annotators at a time", under_rules(columns, agreement.rules), agreement.pairs, note)


def annotators(annotators: Iterable[Annotator], *, reviewed: bool = True) -> Table:
    """One row each; where nothing was ``reviewed`` there is nothing to compare them with, and no time."""
    final = "Label and final verdict are the same, of the labels whose case is decided."
    overturned = "An adjudicator decided otherwise, of the labels whose case was adjudicated."
    of_reviews = (
        Column("Same as final", "rate", final, "agreement"),
        Column("Overturned", "rate", overturned, "overturned"),
        Column("Median time", "seconds", "Of activity for a label, where it was measured.", "seconds"),
    )
    hint = "from the labels alone. A hint for QA, never a label."
    right = f"Dawid and Skene's estimate of how often the person is right, {hint}"
    no_guess = f"MACE's estimate of how often the person did not guess, {hint}"
    columns = (
        Column("Annotator", of="name"),
        Column("Labels", "count", of="labels"),
        *(of_reviews if reviewed else ()),
        Column("Competence (hint)", "number", right, "competence"),
        Column("Trust (hint)", "number", no_guess, "trust"),
    )
    flatters = "The final verdict depends partly on the label itself, so “same as final” is too high for everybody. "
    note = (
        "Competence and trust take the majority's habits for the truth: somebody who alone applies the protocol looks "
        "bad. They are estimated among people whom shared trajectories join, three at least."
    )
    return tabulate("annotators", "Each annotator", columns, annotators, flatters + note if reviewed else note)


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

QA_COLUMNS = (
    Column("Adjudicated", "count", "Trajectories that an adjudicator decided, for whatever reason.", "adjudicated"),
    Column("Disputes", "count", "Trajectories with every label, and not all the same.", "disputes"),
    Column("Changed", "rate", "Decided otherwise than most labels said, of those with such a majority.", "changed"),
    Column("Changed: disputes", "rate", "The same of those whose labels differ.", "changed_of.disputes"),
    Column("Changed: drawn", "rate", "The same rate for drawn unanimous trajectories.", "changed_of.drawn"),
    Column("Changed: flagged", "rate", "The same rate for flagged ones that were not drawn.", "changed_of.flagged"),
    Column("Drawn", "count", "Unanimous trajectories that the seeded draw took for a spot check.", "drawn"),
    Column(
        "Missed",
        "rate",
        "Of the drawn ones that were judged blind, those where the adjudicator contradicted the labels.",
        "missed",
    ),
    Column("Unchecked", "count", "Unanimous trajectories that became final without a check.", "unchecked"),
    Column("Not extrapolated", "count", "Of the unchecked, those of draws in which none was judged blind.", "unknown"),
    Column(
        "Expected missed",
        "number",
        "Expected number of the other unchecked ones that an adjudicator would decide differently: the sum, over  "
        "draws, of the rate of missed ones times the unchecked.",
        "expected_missed",
    ),
)


def adjudications(found: Adjudications | None) -> Table:
    return tabulate("adjudications", "What QA changed", QA_COLUMNS, [] if found is None else [found])


def extrapolation(found: Adjudications) -> str:
    """Extrapolate the spot checks to the unanimous trajectories without a check, in a sentence or two."""
    if not found.unanimous:
        return "No trajectory is unanimous, so there is nothing to extrapolate."
    if not found.unchecked:
        return "No unanimous trajectory became final without a check, so there is nothing to extrapolate."
    expected = found.expected_missed
    if expected.value is None:
        of = f"Of {found.unchecked} unanimous {_plural(found.unchecked)} that nobody checked"
        return f"{of}, it cannot be said how many would have been decided otherwise: {expected.undefined}."
    known = found.unchecked - found.unknown
    between = ""
    if expected.low is not None and expected.high is not None:
        between = f" ({floor(expected.low + TINY)} to {ceil(expected.high - TINY)})"
    says = (
        f"Had an adjudicator checked the {known} unanimous {_plural(known)} that nobody checked, the expected number "
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
    columns = (
        Column("Judges", of=lambda group: JUDGES[group.judges]),
        Column("Shown", "count", "Labels whose annotator was shown judgments after submitting the label.", "shown"),
        Column("Kept", "count", "The annotator kept the verdict of the label.", "kept"),
        Column("Changed", "rate", "Share of deciding annotators who gave another verdict.", "changed"),
        *(
            Column(f"{VERDICT_NAMES[a]} to {VERDICT_NAMES[b].lower()}", "count", of=("table", a, b))
            for a, b in permutations(VERDICT_NAMES, 2)
        ),
    )
    note = (
        "Annotators see judgments only after their blind label is locked. Their opinions change no label, no final "
        "verdict and no other figure. Intervals keep the opinions on one task together."
    )
    return tabulate("informed", "Opinions after seeing judgments", columns, found.groups if found else [], note)


def informed_reasons(found: Informed | None) -> Table:
    columns = (
        Column("Task", of="task_id"),
        Column("Agent", of="agent"),
        Column("Annotator", of="annotator"),
        Column("Blind label", of=lambda each: VERDICT_NAMES[each.blind].lower()),
        Column("Judges", of=_name_verdicts),
        Column("Opinion", of=lambda e: "kept" if e.informed is e.blind else VERDICT_NAMES[e.informed].lower()),
        Column("Reason", of="reason"),
        Column("Task version", of="task_version"),
    )
    told = [each for each in (found.opinions if found else []) if each.reason or each.informed is not each.blind]
    return tabulate("informed-reasons", "Reasons for keeping or changing a verdict", columns, told)


def _name_verdicts(opinion: Opinion) -> str:
    return ", ".join(VERDICT_NAMES[verdict].lower() for verdict in opinion.judges) or "no verdict"
