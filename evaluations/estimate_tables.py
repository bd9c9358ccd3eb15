"""Tables and the chart of an estimated success rate and of a planned sample, from computed figures."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Any

from annotation.formats.printable import counted
from annotation.models import SamplePlan
from annotation.workflow import AUDIT, may_stop
from evaluations import charts
from evaluations.charts import Rates
from evaluations.estimating import Estimate
from evaluations.sample_planning import POWER, SamplePlanning
from evaluations.statistics import Measure
from evaluations.statistics.estimates import ALL_LABELLED
from evaluations.tables import Column, Table, tabulate, written

PEOPLE, COMBINED, JUDGE_ONLY = "People alone", "People and judge", "Judge only"
KINDS = (
    Column(PEOPLE, "rate", "From the labelled trajectories alone.", "people"),
    Column(
        COMBINED,
        "rate",
        "From the labels, and the judge's verdicts on all trajectories. Report this one if the plan has a judge.",
        "combined",
    ),
    Column(
        JUDGE_ONLY,
        "rate",
        "From the judge's verdicts alone. Its interval ignores that the judge can be wrong: do not report it.",
        "judge_only",
    ),
)
LABELLED = Column("Labelled", "count", "Trajectories with a final verdict of people.", "n_labelled")
TOTAL = Column("Trajectories", "count", of="n_total")


def tables(found: Estimate) -> list[Table]:
    return [overall(found), levels(found), strata(found)]


def overall(found: Estimate) -> Table:
    return tabulate("success-rate", "Success rate", [*KINDS, LABELLED, TOTAL], [found], basis(found))


def levels(found: Estimate) -> Table:
    columns = [Column("Level", of="level"), *KINDS, LABELLED, TOTAL]
    return tabulate("rate-by-level", "By level", columns, found.levels)


def strata(found: Estimate) -> Table:
    columns = [
        Column("Stratum", of="stratum"),
        Column("Trajectories", "count", of="total"),
        Column("To label", "count", "Trajectories that are labelled.", "drawn"),
        Column("Labelled", "count", of="labelled"),
        Column("Successes", "count", "Labelled trajectories that are a success.", "successes"),
    ]
    return tabulate("labels-by-stratum", "Labels by stratum", columns, found.strata)


def basis(found: Estimate) -> str:
    """Return in words what is estimated, and from how many labels."""
    total = counted(found.n_total, "trajectory", "trajectories")
    if found.people.value is None:
        known = f"{found.n_labelled:,} of {total} labelled."
    elif found.n_labelled == found.n_total:
        known = f"All {total} labelled." if found.n_total > 1 else f"{total} labelled."
    else:
        known = f"Estimated from the labels of {found.n_labelled:,} of {found.n_total:,} trajectories."
    reason = "" if found.reason == ALL_LABELLED else found.reason  # said already
    told = (f"Estimand: {found.meaning}.", known, _judged(found), reason, _reached(found), _bounds(found))
    return " ".join(filter(None, (*told, found.decision)))


def _judged(found: Estimate) -> str:
    """Return how many trajectories the judge has a verdict on, if it is not all."""
    number = found.judge_only.n
    if not found.judge or not number or number == found.n_total:
        return ""
    return f"The judge has a verdict on {number:,} of {found.n_total:,}."


def _reached(found: Estimate) -> str:
    low, high = found.combined.low, found.combined.high
    if found.planned_half_width is None or low is None or high is None:
        return ""
    reached, wanted = written((high - low) / 2, "size"), written(found.planned_half_width, "size")
    return f"Half width of the interval: {reached} points. The plan aimed at {wanted}."


def _bounds(found: Estimate) -> str:
    if found.bounds is None:
        return ""
    low, high = (written(end, "rate") for end in found.bounds)
    return f"Whatever the verdicts on the others are, the rate is between {low} and {high}."


def chart(found: Estimate) -> Rates:
    """Draw the three estimates below each other."""
    rows: list[tuple[str, Measure]] = [
        (PEOPLE, found.people),
        (COMBINED, found.combined),
        (JUDGE_ONLY, found.judge_only),
    ]
    return charts.rates("success-rate", "Estimates", rows)


# --- a plan ----------------------------------------------------------------------------------------------------------


def planned_strata(planned: SamplePlanning) -> Table:
    columns = [
        Column("Stratum", of="name"),
        Column("Trajectories", "count", of="total"),
        Column("To label", "count", of="labels"),
        Column("Expected rate", "rate", "Expected success rate by people.", "expected_rate"),
    ]
    return tabulate("planned-strata", "Labels by stratum", columns, planned.strata)


def summary(planned: SamplePlanning) -> list[str]:
    """Return the plan in sentences."""
    widths = (planned.expected_half_width, planned.half_width_if_judge_is_worse, planned.half_width_if_judge_is_useless)
    half, worse, useless = (written(each, "size") for each in widths)
    effort, accepted = planned.reviews, planned.acceptance
    total = counted(planned.n_total, "trajectory", "trajectories")
    told = [_list_goal(planned.goal), f"Judge: {planned.judge}." if planned.judge else ""]
    if (stopping := planned.stopping) is not None:
        told += [
            f"Label at most {stopping.at_most:,} of {total}.",
            f"Estimand: {planned.meaning}, from people's labels alone.",
            f"Labelling may stop as soon as the half width of the 95% interval is {half} points.",
            f"At the expected success rate, this takes {stopping.expected:,} labelled trajectories on average.",
            f"A sample of fixed size with this expected half width needs {stopping.fixed:,}.",
        ]
    else:
        told += [
            f"Label {planned.labels:,} of {total}.",
            f"Estimand: {planned.meaning}.",
            f"Expected half width of the 95% interval: {half} points.",
        ]
    told.append(f"Expected success rate: {written(planned.expected_rate, 'rate')}, {_explain_rate(planned)}.")
    if accepted is not None:
        told.append(
            f"Accept with {counted(accepted.accept_from, 'success', 'successes')} or more. The probability of that is "
            f"{written(accepted.power, 'rate')} at the expected rate, and at most {written(accepted.error, 'rate')} at "
            f"a rate of {written(planned.goal['accept'], 'rate')} or less."
        )
    if planned.judge and stopping is None:
        told += [
            _compare_with_people(planned),
            f"Half width if the verdicts are much less informative: {worse} points; if they are useless: {useless}.",
            quality(planned),
        ]
    told.append(
        f"This takes {counted(effort.planned, 'review')} instead of {effort.everything:,}. "
        f"That saves {effort.saved:,}, not counting adjudication."
    )
    if effort.saved_usd is not None:
        spent = "" if effort.judge_usd is None else f"; the judge has cost {written(effort.judge_usd, 'dollars')}"
        told.append(f"Saved: {written(effort.saved_usd, 'dollars')} for reviews{spent}.")
    return [sentence for sentence in told if sentence]


def _explain_rate(planned: SamplePlanning) -> str:
    if planned.quality is not None and planned.quality.informative:
        return "from the judge's verdicts"
    return "as stated" if "expected_rate" in planned.goal else "which needs the most labels"


def _compare_with_people(planned: SamplePlanning) -> str:
    alone = planned.people_alone_labels
    if alone <= planned.labels:
        return f"The judge saves no labels here: at the same expected rate people alone need {alone:,}."
    return f"At the same expected rate, people alone would need {alone:,} labelled trajectories."


def quality(planned: SamplePlanning) -> str:
    """Return the expected quality of the judge in words, and where it comes from."""
    expected = planned.quality
    if expected is None:
        return ""
    source = {
        "stated": "as stated",
        "measured": f"measured on {counted(expected.cases, 'earlier trajectory', 'earlier trajectories')}",
        "assumed": "assumed, because earlier submissions do not show it",
    }[expected.source]
    rates = f"{written(expected.sensitivity, 'rate')} and specificity {written(expected.specificity, 'rate')}"
    chance = "" if expected.informative else " This is no better than chance, so the verdicts save no labels."
    return f"Expected of the judge: sensitivity {rates}, {source}.{chance}"


GOALS: dict[str, tuple[str, str]] = {
    "half_width": ("a 95% interval of ±{} points", "size"),
    "budget": ("{} reviews", "count"),
    "power": (f"a difference of {{}} points from another agent, shown with a probability of {POWER:.0%}", "size"),
    "accept": ("a success rate above {}", "rate"),
    "error": ("accepted wrongly with a probability of at most {}", "rate"),
    "accept_from": ("at least {} successes", "count"),
    "labels": ("in {} labels", "count"),
    "expected_rate": ("at an expected success rate of {}", "rate"),
}


def describe_terms(plan: SamplePlan) -> list[str]:
    """Return the terms of a plan that was drawn, in sentences."""
    estimand = "the agent" if plan.estimand == SamplePlan.Estimand.AGENT else "these trajectories"
    judge = f"Judge: {plan.judge.get('name')}." if plan.judge else "No judge: people alone."
    rate = f"Estimand: the success rate of {estimand}."
    return [each for each in (_list_goal(plan.goal), judge, rate, f"Seed of the draw: {plan.seed}.") if each]


def _list_goal(asked: Mapping[str, Any]) -> str:
    """Return what the planner was asked, and the rule that accepts; "" for a goal that is not known here."""
    stated = [name for name in GOALS if type(asked.get(name)) in (int, float)]
    told = [GOALS[name][0].format(written(asked[name], GOALS[name][1])) for name in stated]
    return f"Goal: {', '.join(told)}." if told else ""


def rule(plan: SamplePlan) -> str:
    """Return when labelling may stop early; "" if it may not."""
    if not may_stop(plan):
        return ""
    if plan.rule["rule"] == AUDIT:
        return (
            "Labelling may stop as soon as the rule of the audit has decided. The page of the audit explains the rule."
        )
    width = written(plan.rule.get("half_width"), "size")
    return f"Labelling may stop as soon as the half width of the 95% interval is {width} points."


def drawn(plan: SamplePlan) -> Table:
    """Return the strata of a plan that was drawn."""
    sizes = Counter(plan.items.values_list("stratum", flat=True))
    columns = [Column("Stratum"), Column("Trajectories", "count"), Column("To label", "count")]
    rows = [[name, sizes[name], labels] for name, labels in sorted(plan.labels.items())]
    return Table("planned-strata", "Labels by stratum", columns, rows)
