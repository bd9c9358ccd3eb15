"""Tables of the agreement of people for pages, CSV and terminals, all from one `Agreement`."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from itertools import permutations
from math import ceil, floor

from annotation.form_fields import VERDICT_NAMES
from annotation.process_labels import CATEGORIES, label_steps
from evaluations import measures, people_tables
from evaluations.agreement import (
    CHOSEN_BY_LABELS,
    GROUPS,
    Adjudications,
    Agreement,
    Annotator,
    Group,
    Informed,
    ProcessAgreement,
    groups,
    people,
)
from evaluations.agreement.results import Opinion
from evaluations.cases import Case, Rules
from evaluations.measures import RAW_AGREEMENT, under_rules
from evaluations.naming import failure_type_name
from evaluations.tables import NOTHING, Column, Table, Value, tabulate

TINY = 1e-9  # tolerance for rounding errors in a number of trajectories

COUNTS = (
    Column("Labelled", "count", "Trajectories with a blind label.", "n_items"),
    Column("Complete", "count", "Trajectories with every required label.", "n_complete"),
    Column(
        "Pairable", "count", "Trajectories with two labels or more: coefficients are computed from them.", "n_pairable"
    ),
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
        f"Alpha of {name.lower()} against the other two verdicts: agreement on this distinction.",
        ("per_label", verdict),
    )
    for verdict, name in VERDICT_NAMES.items()
)
SPECIFIC = (
    Column(
        "Positive agreement",
        "rate",
        "Specific agreement: if one label of a trajectory is success, how often another one is.",
        "specific_agreement.positive",
    ),
    Column(
        "Negative agreement",
        "rate",
        "Specific agreement: if one label is not success, how often another one is not.",
        "specific_agreement.negative",
    ),
)
GROUP_COLUMNS = (*COUNTS, *COEFFICIENTS, *SPECIFIC, *LABEL_ALPHAS)
INTERVALS = (
    "Intervals are 95%: of raw agreement and the coefficients by resampling trajectories (bootstrap), of "
    "shares by Wilson's formula. If several agents did the same tasks, whole tasks are resampled, "
    "because trajectories of one task are alike. A figure has no interval if too few trajectories "
    "contribute to it, or if resampling never changes it."
)
PUBLISHED = "As in published tables: figures rounded to four digits, without intervals."


def tables(agreement: Agreement) -> list[Table]:
    found = [overall(agreement), first_against_second(agreement), outcomes(agreement)]
    found += [by_group(kind, agreement.groups.get(kind, []), agreement.rules) for kind in GROUPS]
    found += [pairs(agreement), annotators(agreement.annotators, reviewed=agreement.adjudications is not None)]
    found += [people_tables.human_error(agreement.human_error)] if agreement.human_error else []
    found += [confusion(agreement.annotators), adjudications(agreement.adjudications)]
    if agreement.process is not None:
        found += [process(agreement.process), process_pairs(agreement.process)]
    return [*found, informed(agreement.informed), informed_reasons(agreement.informed)]


# --- agreement -------------------------------------------------------------------------------------------------------


def overall(agreement: Agreement) -> Table:
    undecided = Column("Undecided", "count", "With labels and without a final verdict.", lambda _: agreement.undecided)
    columns = under_rules((*GROUP_COLUMNS, undecided), agreement.rules)
    note = PUBLISHED if agreement.rules is Rules.PUBLISHED else INTERVALS
    return tabulate("overall", "Agreement on blind labels, before QA", columns, [agreement.overall], note)


def outcomes(agreement: Agreement) -> Table:
    """Return the outcomes of complete cases, over all and by level and agent."""
    columns = (
        Column("Of", of="name"),
        Column("Complete", "count", "Trajectories with every required label.", "n_complete"),
        Column("Unanimous", "rate", "All labels are the same verdict.", "outcomes.unanimous"),
        Column(
            "A majority", "rate", "More than half of the labels are the same verdict, not all.", "outcomes.majority"
        ),
        Column("No majority", "rate", "No verdict has more than half of the labels.", "outcomes.split"),
    )
    return tabulate("outcomes", "Distribution of labels per trajectory", columns, outcome_rows(agreement))


def outcome_rows(agreement: Agreement) -> list[Group]:
    """Return all cases together, then each level, and each agent if there are several."""
    kinds = [agreement.groups.get(kind, []) for kind in ("level", "agent")]
    return [agreement.overall, *(group for found in kinds if len(found) > 1 for group in found)]


def by_group(kind: str, found: Sequence[Group], rules: Rules = Rules.DEFAULT) -> Table:
    chosen = kind in CHOSEN_BY_LABELS
    first = Column(kind.capitalize(), of=lambda group: group_name(kind, group.name))
    columns = (first, *COUNTS, RAW) if chosen else (first, *GROUP_COLUMNS)
    notes = []
    if chosen:
        notes.append(
            "Trajectories for which a blind label names the type; one can be in several rows. At least "
            "one label of each is failure: compare the types with each other, not with the rest. The "
            "figures are agreement on verdicts, not on the type. There is no coefficient, because the "
            "rows are chosen by their labels, and a correction for chance would mislead."
        )
    if len(found) > groups.MOST_INTERVALS and rules is Rules.DEFAULT:
        notes.append(f"The {groups.MOST_INTERVALS} with the most trajectories have intervals.")
    name = f"by-{kind.replace(' ', '-')}"
    return tabulate(name, f"Agreement by {kind}", under_rules(columns, rules), found, " ".join(notes))


def group_name(kind: str, name: str) -> str:
    """Return the displayed name of a group; failure types have the names of the protocol."""
    return failure_type_name(name) if kind == "failure type" else name


# --- annotators ------------------------------------------------------------------------------------------------------

OF_TWO = (
    Column("Raw agreement", "rate", "How often the two agree.", "raw_agreement"),
    Column(
        "Cohen kappa", "coefficient", "Agreement beyond chance, with each annotator's own share of verdicts.", "kappa"
    ),
    Column("Alpha", "coefficient", "Krippendorff's alpha of these two annotators.", "alpha"),
)


def first_against_second(agreement: Agreement) -> Table:
    """Return one row; no row without imported labels, or if no case has two of them."""
    columns = (Column("Trajectories", "count", "Trajectories with two imported labels or more.", "n"), *OF_TWO)
    pairs = [] if agreement.first_against_second is None else [agreement.first_against_second]
    note = (
        "Of imported labels, the first that the file lists for a trajectory against the second, whoever "
        "gave them, as in published tables. Kappa depends on the order of the file, alpha does not."
    )
    title = "First against second listed label"
    return tabulate("first-against-second", title, under_rules(columns, agreement.rules), pairs, note)


def pairs(agreement: Agreement) -> Table:
    """Return one row for every two annotators who labelled the same trajectories, most shared trajectories first."""
    columns = (
        Column("First", of="first"),
        Column("Second", of="second"),
        Column("Both labelled", "count", "Trajectories that both labelled.", "n"),
        *OF_TWO,
    )
    note = "Two people who share few trajectories can agree or differ by chance: look at the interval first."
    if len(agreement.pairs) > people.MOST_INTERVALS and agreement.rules is Rules.DEFAULT:
        note += f" The {people.MOST_INTERVALS} pairs who share most have intervals."
    if agreement.pairs_left_out:
        note += f" {agreement.pairs_left_out} pairs that share less are left out."
    return tabulate("pairs", "Pairs of annotators", under_rules(columns, agreement.rules), agreement.pairs, note)


OF_STEPS = (
    Column("Raw agreement", "rate", "How often two labels of a step agree.", "raw_agreement"),
    Column(
        "Krippendorff alpha",
        "coefficient",
        "Agreement beyond chance on right, wrong, unnecessary and side effect. If nearly all steps are right, a few "
        "differences make it small.",
        "alpha",
    ),
)


def process(found: ProcessAgreement) -> Table:
    """Return one row: the agreement on process labels."""
    counts = (
        Column("Trajectories", "count", "Trajectories with a label.", "trajectories"),
        Column("Steps", "count", "Steps with labels of two annotators or more.", "steps"),
        Column("Marked", "count", "Of these, steps that at least one annotator marked.", "marked"),
    )
    kinds = tuple(Column(f"Labelled {label.replace('_', ' ')}", "count", of=("labels", label)) for label in CATEGORIES)
    same = Column("Unanimous", "rate", "All annotators give the step the same label.", "unanimous")
    note = (
        "Each step of a trajectory is an item; unmarked steps are right. Intervals are 95%, by resampling whole tasks, "
        "because steps of one task are alike."
    )
    return tabulate("process", "Agreement on process labels", (*counts, *kinds, same, *OF_STEPS), [found], note)


def process_pairs(found: ProcessAgreement) -> Table:
    columns = (
        Column("First", of="first"),
        Column("Second", of="second"),
        Column("Steps", "count", "Steps of the trajectories that both labelled.", "steps"),
        *OF_STEPS,
        Column("Cohen kappa", "coefficient", "Agreement beyond chance of these two annotators.", "kappa"),
    )
    return tabulate("process-pairs", "Process labels by pairs of annotators", columns, found.pairs)


STEPS = "process-steps"


def process_steps(cases: Iterable[Case]) -> Table:
    """Return a row for each step and person, then one for the final label, empty where no majority gives one."""
    columns = (Column("Task"), Column("Agent"), Column("Step", "count"), Column("By"), Column("Label"))
    rows: list[list[Value]] = []
    for case in cases:
        if (process := case.process) is None:
            continue
        given = [(name, label_steps(marks, process.steps)) for name, marks in process.said]
        by: list[tuple[str, Sequence[str | None]]] = [*given, ("final", process.final())]
        rows += [[case.task_id, case.agent_name, n, who, said[n]] for n in range(process.steps) for who, said in by]
    return Table(
        STEPS, "Process labels of every step", columns, [[NOTHING if v is None else v for v in r] for r in rows]
    )


def annotators(annotators: Iterable[Annotator], *, reviewed: bool = True) -> Table:
    """Return one row for each annotator. If nothing was ``reviewed``, there are no final verdicts and no times."""
    final = "The label equals the final verdict, of the labels whose case is decided."
    overturned = "An adjudicator decided differently, of the labels whose case was adjudicated."
    of_reviews = (
        Column("Same as final", "rate", final, "agreement"),
        Column("Overturned", "rate", overturned, "overturned"),
        Column("Median time", "seconds", "Active time per label, where it was measured.", "seconds"),
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
    flatters = "The final verdict depends partly on the label itself, so “same as final” is too high for everyone. "
    note = (
        "Competence and trust treat the majority as the truth: a person who alone applies the protocol correctly looks "
        "bad. They are estimated for groups of at least three people who share trajectories."
    )
    return tabulate("annotators", "Each annotator", columns, annotators, flatters + note if reviewed else note)


def confusion(annotators: Iterable[Annotator]) -> Table:
    """Return one row for each annotator with a decided case and possible verdict, with counts of final verdicts."""
    finals = [Column(f"Final {name.lower()}", "count") for name in VERDICT_NAMES.values()]
    columns = (Column("Annotator"), Column("Said"), *finals)
    rows: list[list[Value]] = [
        [a.name, VERDICT_NAMES[said].lower(), *a.confusion[said]]
        for a in annotators
        if any(map(sum, a.confusion))
        for said in VERDICT_NAMES
    ]
    return Table("confusion", "Confusion of verdicts", columns, rows)


# --- QA outcomes -----------------------------------------------------------------------------------------------------

QA_COLUMNS = (
    Column("Adjudicated", "count", "Trajectories that an adjudicator decided, for any reason.", "adjudicated"),
    Column("Disputes", "count", "Trajectories with every label, and different verdicts.", "disputes"),
    Column("Changed", "rate", "Decided differently from the majority of labels, of those with a majority.", "changed"),
    Column("Changed: disputes", "rate", "The same, for trajectories whose labels differ.", "changed_of.disputes"),
    Column("Changed: drawn", "rate", "The same rate for drawn unanimous trajectories.", "changed_of.drawn"),
    Column(
        "Changed: flagged", "rate", "The same rate for flagged trajectories that were not drawn.", "changed_of.flagged"
    ),
    Column("Drawn", "count", "Unanimous trajectories chosen by the seeded draw for a spot check.", "drawn"),
    Column(
        "Missed",
        "rate",
        "Of the drawn trajectories that were judged blind, those where the adjudicator contradicted the labels.",
        "missed",
    ),
    Column("Unchecked", "count", "Unanimous trajectories that became final without a check.", "unchecked"),
    Column("Not extrapolated", "count", "Of the unchecked, those from draws without a blind check.", "unknown"),
    Column(
        "Expected missed",
        "number",
        (
            "Expected number of the other unchecked trajectories that an adjudicator would decide differently: the "
            "sum, over draws, of the error rate of the draw times its unchecked trajectories."
        ),
        "expected_missed",
    ),
)


def adjudications(found: Adjudications | None) -> Table:
    return tabulate("adjudications", "Changes by QA", QA_COLUMNS, [] if found is None else [found])


def extrapolation(found: Adjudications) -> str:
    """Extrapolate the spot checks to the unanimous trajectories without a check, in one or two sentences."""
    if not found.unanimous:
        return "No trajectory is unanimous, so there is nothing to extrapolate."
    if not found.unchecked:
        return "No unanimous trajectory became final without a check, so there is nothing to extrapolate."
    expected = found.expected_missed
    if expected.value is None:
        of = f"Of {found.unchecked} unanimous {_plural(found.unchecked)} that nobody checked"
        return f"{of}, the number of wrong ones cannot be estimated: {expected.undefined}."
    known = found.unchecked - found.unknown
    between = ""
    if expected.low is not None and expected.high is not None:
        between = f" ({floor(expected.low + TINY)} to {ceil(expected.high - TINY)})"
    says = (
        f"If an adjudicator had checked the {known} unchecked unanimous {_plural(known)}, the expected "
        f"number of different decisions is {_about(expected.value)}{between}."
    )
    if found.unknown:
        says += f" {found.unknown} more are left out: their draw had no blind spot check."
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
        Column("Changed", "rate", "Share of deciding annotators who changed their verdict.", "changed"),
        *(
            Column(f"{VERDICT_NAMES[a]} to {VERDICT_NAMES[b].lower()}", "count", of=("table", a, b))
            for a, b in permutations(VERDICT_NAMES, 2)
        ),
    )
    note = (
        "Annotators see judgments only after their blind label is locked. Their opinions change no "
        "label, no final verdict and no other figure. Resampling keeps the opinions on one task together."
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
