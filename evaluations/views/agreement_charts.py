"""The pictures of an agreement; the tables with the same numbers are in `agreement_tables`."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from annotation.forms import VERDICT_NAMES
from evaluations import charts
from evaluations.agreement import CHOSEN_BY_LABELS, Agreement, Annotator, Group
from evaluations.agreement_tables import group_name, outcome_rows
from evaluations.charts import Grid, Rates, Stacked
from evaluations.measures import COEFFICIENTS

MOST_GROUPS = 20  # rows of a chart that can still be read; the table behind it has all
MOST_PEOPLE = 30
DRAWN = ("alpha", "ac1")  # of `COEFFICIENTS`


def outcomes(found: Agreement) -> Stacked:
    """Unanimous, a majority and no majority, over all, by level, and by agent where there are several."""
    rows = [(name, _outcome(group)) for name, group in outcome_rows(found)]
    parts = ("unanimous", "a majority", "no majority")
    return charts.stacked("outcomes", "How the labels of a trajectory fall", parts, rows[: MOST_GROUPS + 1])


def _outcome(group: Group) -> list[int]:
    return [part.hits or 0 for part in (group.outcomes.unanimous, group.outcomes.majority, group.outcomes.split)]


def by_group(kind: str, groups: Sequence[Group]) -> Rates:
    """Alpha and AC1 of each group, or raw agreement where nothing else is defined; of too many groups the largest."""
    most = sorted(groups, key=lambda group: -group.n_pairable)[:MOST_GROUPS]
    shown = [group for group in groups if group in most]
    title = f"Agreement by {kind}"
    if len(groups) > MOST_GROUPS:
        title += f", the {MOST_GROUPS} with the most trajectories"
    name = f"by-{kind.replace(' ', '-')}"
    if kind in CHOSEN_BY_LABELS:
        raw = [(group_name(kind, group.name), group.raw_agreement) for group in shown]
        return charts.rates(name, f"Raw {title[0].lower()}{title[1:]}", raw)
    one, other = DRAWN
    rows = [(group_name(kind, group.name), group.coefficients[one], group.coefficients[other]) for group in shown]
    series = [COEFFICIENTS[each].column.name for each in DRAWN]
    return charts.rates(name, title, rows, series=series, kind="coefficient")


def pairs(found: Agreement) -> Grid | None:
    """Alpha of every two annotators; None where there is nobody to compare, or too many for a picture."""
    names = [annotator.name for annotator in found.annotators]
    if not found.pairs or len(names) > MOST_PEOPLE:
        return None
    known = {(pair.first, pair.second): pair.alpha for pair in found.pairs}
    return charts.heat_map("pairs", "Krippendorff alpha of every two annotators", names, known)


def confusions(annotators: Iterable[Annotator]) -> list[Grid]:
    names = [name.lower() for name in VERDICT_NAMES.values()]
    return [
        charts.confusion(
            f"confusion-{number}", annotator.name, annotator.confusion, names, down="Said", across="Final verdict"
        )
        for number, annotator in enumerate(annotators, 1)
        if any(map(sum, annotator.confusion))
    ][:MOST_PEOPLE]


def same_as_final(annotators: Iterable[Annotator]) -> Rates | None:
    rows = [(each.name, each.agreement, each.overturned) for each in annotators if each.agreement.n]
    if not rows or len(rows) > MOST_PEOPLE:
        return None
    return charts.rates("same-as-final", "Each annotator", rows, series=("same as final", "overturned"))
