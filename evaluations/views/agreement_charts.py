"""The pictures of an agreement; the tables with the same numbers are in `agreement_tables`."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from annotation.forms import VERDICT_NAMES
from evaluations import charts
from evaluations.agreement import Agreement, Annotator, Group
from evaluations.agreement_tables import group_name
from evaluations.charts import Grid, Rates, Stacked

MOST_GROUPS = 20  # rows of a chart that can still be read; the table behind it has all
MOST_PEOPLE = 30


def outcomes(found: Agreement) -> Stacked:
    """Unanimous, two to one and three ways, over all, by level, and by agent where there are several."""
    rows = [("all", _outcome(found.overall))]
    for kind in ("level", "agent"):
        groups = found.groups.get(kind, [])
        rows += [(group_name(kind, group.name), _outcome(group)) for group in groups] if len(groups) > 1 else []
    parts = ("unanimous", "two the same", "three ways")
    return charts.stacked("outcomes", "How the labels of a trajectory fall", parts, rows[: MOST_GROUPS + 1])


def _outcome(group: Group) -> list[int]:
    return [part.hits or 0 for part in (group.unanimous, group.majority, group.split)]


def by_group(kind: str, groups: Sequence[Group]) -> Rates:
    """Alpha and AC1 of each group; of too many groups those with the most trajectories."""
    most = sorted(groups, key=lambda group: -group.pairable)[:MOST_GROUPS]
    shown = [group for group in groups if group in most]
    title = f"Agreement by {kind}"
    if len(groups) > MOST_GROUPS:
        title += f", the {MOST_GROUPS} with the most trajectories"
    rows = [(group_name(kind, group.name), group.alpha, group.ac1) for group in shown]
    series = ("Krippendorff alpha", "Gwet AC1")
    return charts.rates(f"by-{kind.replace(' ', '-')}", title, rows, series=series, kind="coefficient")


def pairs(found: Agreement) -> Grid | None:
    """Alpha of every two annotators; None where there is nobody to compare, or too many for a picture."""
    names = [annotator.name for annotator in found.annotators]
    if not found.pairs or len(names) > MOST_PEOPLE:
        return None
    known = {(pair.first, pair.second): pair.alpha for pair in found.pairs}
    return charts.heat_map("pairs", "Krippendorff alpha of every two annotators", names, known)


def confusions(annotators: Iterable[Annotator]) -> list[Grid]:
    """What each annotator said (rows) against what became final (columns)."""
    names = [name.lower() for name in VERDICT_NAMES.values()]
    return [
        charts.confusion(
            f"confusion-{number}", annotator.name, annotator.confusion, names, down="Said", across="Final verdict"
        )
        for number, annotator in enumerate(annotators, 1)
        if any(map(sum, annotator.confusion))
    ][:MOST_PEOPLE]


def same_as_final(annotators: Iterable[Annotator]) -> Rates | None:
    """How often each annotator said what became final, and how often an adjudicator overturned it."""
    rows = [(each.name, each.agreement, each.overturned) for each in annotators]
    if not rows or len(rows) > MOST_PEOPLE:
        return None
    return charts.rates("same-as-final", "Each annotator", rows, series=("same as final", "overturned"))
