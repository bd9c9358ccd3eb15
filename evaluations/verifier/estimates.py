"""The check `estimate`: reports/estimate.json, computed again from the plan, the verdicts and the judge's verdicts.

In plain Python, independent of `evaluations.statistics`, whose results it checks. In a planned sample every trajectory
of a stratum has the same probability, and a task has one trajectory. So the methods are those for such samples.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from itertools import accumulate
from math import asin, ceil, cos, exp, floor, log, pi, sin, sqrt
from typing import Any

from evaluations.verifier.documents import Bundle, Document
from evaluations.verifier.figures import compare
from evaluations.verifier.findings import Finding
from evaluations.verifier.numbers import (
    NORMAL_97_5,
    TAIL,
    beta_binomial,
    coefficient_figure,
    confidence_sequence,
    sum_distribution,
    wilson_interval,
)
from evaluations.verifier.rules import ANYTIME, AUDIT, SUCCESS
from evaluations.verifier.sampling import read_labels

PEOPLE_ALONE, STRATIFIED = "people alone", "stratified"
ALL_LABELLED = "People labelled all trajectories."
NO_VERDICTS = "The judge has no verdict on any trajectory."
SAME_VERDICT = "The judge gave every trajectory the same verdict."
MAY_STOP = "If labelling may stop early, only people's labels count."
WIDER = "The judge's verdicts do not make the interval narrower."
PRIOR = 0.5
POINTS, REACH = 500, 9.0  # of the grid of `beta_quantile`, and standard deviations on each side
SAME = 1e-9  # differences of rounding
FEWER = 3
ROUNDING = 1e-12

Case = tuple[str, "int | None", "int | None"]  # stratum, judge's verdict and label; 1 success, 0 not, None for none
Cell = tuple[str, int]  # stratum, and 0 or 1 by the judge's verdict, 2 without one
Part = tuple[int, int, int]  # of a cell: cases, labelled cases, successes among these
Rate = tuple[float, float, float]  # value and the ends of its 95% interval


def estimate_findings(bundle: Bundle) -> list[Finding]:
    """Check reports/estimate.json; no finding without a plan."""
    if bundle.sample_plan is None:
        return []
    expected = recompute_planned(bundle, bundle.sample_plan)
    return [compare(bundle.estimate, expected, "the plan gives").conclude("estimate")]


def recompute_planned(bundle: Bundle, plan: Document) -> Document:
    cases, waiting = collect(bundle), explain_waiting(bundle)
    sequence = read_labels(bundle) if plan["rule"].get("rule") in (ANYTIME, AUDIT) else None
    return recompute_estimate(cases, str(plan["estimand"]), waiting, sequence)


def explain_waiting(bundle: Bundle) -> str:
    """Return why nothing is estimated while a drawn trajectory has no final verdict, or ""."""
    final = {row["task_id"] for row in bundle.final_verdicts if row["verdict"] is not None}
    drawn = [item["task_id"] for item in bundle.in_sample()]
    waiting = sum(task_id not in final for task_id in drawn)
    return f"{waiting:,} of the {len(drawn):,} drawn trajectories have no final verdict yet" if waiting else ""


def collect(bundle: Bundle) -> list[Case]:
    final = {row["task_id"]: row["verdict"] for row in bundle.final_verdicts if row["verdict"] is not None}
    return [
        (
            item["stratum"],
            None if item["judged"] is None else int(item["judged"] == SUCCESS),
            int(final[item["task_id"]] == SUCCESS) if item["task_id"] in final else None,
        )
        for item in bundle.sample_items or ()
    ]


def recompute_estimate(
    cases: Sequence[Case], estimand: str, missing: str = "", sequence: Sequence[int] | None = None
) -> Document:
    """Return reports/estimate.json; ``missing`` is why rates by people are undefined, if they are.

    ``sequence``: the labels in their order, if the plan may stop early.

    The combined estimate is the stratified one, by plan and judge's verdict. It is that of people alone where it is
    undefined or wider, or if people labelled everything.
    """
    labelled = sum(label is not None for _, _, label in cases)
    counts = {"estimand": estimand, "n_labelled": labelled, "n_total": len(cases), "judge_only": _judge_only(cases)}
    if why := missing or _why_undefined(cases):
        none = coefficient_figure(None, labelled, why)
        return {**counts, "people": none, "combined": none, "method": PEOPLE_ALONE, "reason": why}
    if sequence:
        people, reason = (sum(sequence) / len(sequence), *confidence_sequence(sequence, len(cases))[-1]), MAY_STOP
    else:
        people, reason = _people(cases, estimand), _why_alone(cases)
    combined = people
    if not reason:
        combined = stratified_rate(list(_cells(cases).values()), estimand)
        reason = WIDER if combined[2] - combined[1] > people[2] - people[1] + ROUNDING else ""
    method = PEOPLE_ALONE if reason else STRATIFIED
    figures = {"people": _figure(people, labelled), "combined": _figure(people if reason else combined, labelled)}
    return {**counts, **figures, "method": method, "reason": reason}


def _figure(rate: Rate, n: int) -> dict[str, Any]:
    value, low, high = rate
    return {"value": value, "low": low, "high": high, "n": n}


def _judge_only(cases: Sequence[Case]) -> dict[str, Any]:
    scored = [judged for _, judged, _ in cases if judged is not None]
    if not scored:
        return coefficient_figure(None, 0, "no verdicts of the judge")
    n, hits = len(scored), sum(scored)
    low, high = wilson_interval(hits, n)
    return {"value": hits / n, "low": low, "high": high, "n": n, "hits": hits}


def _why_undefined(cases: Sequence[Case]) -> str:
    if not cases:
        return "no trajectories"
    drawn = {stratum for stratum, _, label in cases if label is not None}
    return next((f'no label in stratum "{s}"' for s in sorted({case[0] for case in cases}) if s not in drawn), "")


def _why_alone(cases: Sequence[Case]) -> str:
    """Return why the judge's verdicts cannot be used, or ""."""
    verdicts = {judged for _, judged, _ in cases}
    if all(label is not None for _, _, label in cases):
        return ALL_LABELLED
    if verdicts == {None}:
        return NO_VERDICTS
    return SAME_VERDICT if len(verdicts) == 1 else ""


def _parts(cases: Sequence[Case], cell_of: Callable[[Case], Cell]) -> dict[Cell, Part]:
    sizes: Counter[Cell] = Counter()
    drawn: Counter[Cell] = Counter()
    hits: Counter[Cell] = Counter()
    for case in cases:
        cell, label = cell_of(case), case[2]
        sizes[cell] += 1
        drawn[cell] += label is not None
        hits[cell] += label or 0
    return {cell: (sizes[cell], drawn[cell], hits[cell]) for cell in sorted(sizes)}


def _cells(cases: Sequence[Case]) -> dict[Cell, Part]:
    """Return the parts by stratum and verdict; one without labels joins the largest of its stratum that has some."""
    parts = _parts(cases, lambda case: (case[0], 2 if case[1] is None else case[1]))
    labelled = {cell: part for cell, part in parts.items() if part[1]}
    found = dict(labelled)
    for cell, (size, drawn, _) in parts.items():
        if not drawn:
            others = [other for other in labelled if other[0] == cell[0]]
            home = max(others, key=lambda other: labelled[other][0])
            found[home] = (found[home][0] + size, *found[home][1:])
    return found


def _people(cases: Sequence[Case], estimand: str) -> Rate:
    """Return sum w y / N, w = N_h / n_h, with Wilson's interval and an effective sample size in place of n.

    It is N^2 / sum w^2 for the agent, N (N - 1) / sum w (w - 1) for these runs, of which whole numbers of successes
    count that the labels allow. If more than half of the runs are labelled, with equal weights, it is that of
    `stratified_rate`. Source: Kish (1965), Survey Sampling.
    """
    parts = list(_parts(cases, lambda case: (case[0], 0)).values())
    weights = [size / drawn for size, drawn, _ in parts]
    total, labelled, seen = (sum(part[place] for part in parts) for place in range(3))
    value = min(sum(w * part[2] for w, part in zip(weights, parts, strict=True)) / total, 1.0)
    if estimand != "runs":
        size = total**2 / sum(w * w * part[1] for w, part in zip(weights, parts, strict=True))
        low, high = wilson_ends(size * value, size)
        return value, max(low, 0.0), min(high, 1.0)
    if 2 * labelled > total and max(weights) - min(weights) < SAME:
        return stratified_rate([(total, labelled, seen)], estimand)
    spread = sum(w * (w - 1) * part[1] for w, part in zip(weights, parts, strict=True))
    size = total * (total - 1) / max(spread, SAME)
    low, high = wilson_ends(size * value, size)
    low = max(ceil(low * total - SAME), seen) / total
    high = min(floor(high * total + SAME), total - labelled + seen) / total
    return value, min(low, value), max(high, value)


def wilson_ends(hits: float, n: float) -> tuple[float, float]:
    """Return Wilson's 95% interval of hits / n, which may be broken numbers."""
    z = NORMAL_97_5
    middle, spread = hits + z * z / 2, z * sqrt(hits * (n - hits) / n + z * z / 4)
    low, high = (middle - spread) / (n + z * z), (middle + spread) / (n + z * z)
    return (low if hits else 0.0), (high if hits < n else 1.0)


def stratified_rate(parts: Sequence[Part], estimand: str) -> Rate:
    """Return sum N_h k_h / n_h / N with its interval, see `stratified_rate` of docs/statistics.md.

    The successes among the N_h - n_h others are beta-binomial with the mean m = (k_h + c) / (n_h + 2c) and the size
    n_h + 2c - 3 (1 - 2c), at least 1/2, where c = min(1/2, 1 / strata).
    """
    total = sum(size for size, _, _ in parts)
    value = min(sum(size * hits / drawn for size, drawn, hits in parts) / total, 1.0)
    low, high = (_ends_of_runs if estimand == "runs" else _ends_of_agent)(parts, total)
    low, high = min(low, value), max(high, value)
    return value, max(low, 0.0), min(high, 1.0)


def _posterior(part: Part, strata: int) -> tuple[float, float]:
    """Return the mean and the size of a stratum's beta distribution."""
    _, n, k = part
    prior = min(PRIOR, 1 / strata)
    return (k + prior) / (n + 2 * prior), max(n + 2 * prior - FEWER * (1 - 2 * prior), PRIOR)


def _ends_of_runs(parts: Sequence[Part], total: int) -> tuple[float, float]:
    """Return the lowest and highest T / N for which P(fewer) + P(T) / 2 is between 2.5% and 97.5%."""
    seen = sum(hits for _, _, hits in parts)
    shapes = [(part[0] - part[1], *_posterior(part, len(parts))) for part in parts]
    chances = sum_distribution([beta_binomial(left, m * size, (1 - m) * size) for left, m, size in shapes])
    below = [upto - each / 2 for upto, each in zip(accumulate(chances), chances, strict=True)]
    first = next((place for place, each in enumerate(below) if each > TAIL), 0)
    last = next((place for place in reversed(range(len(below))) if below[place] < 1 - TAIL), len(below) - 1)
    return (first + seen) / total, (last + seen) / total


def _ends_of_agent(parts: Sequence[Part], total: int) -> tuple[float, float]:
    """Return the quantiles of the beta distribution with the mean and variance of the agent's rate."""
    successes = variance = 0.0
    for part in parts:
        left, k = part[0] - part[1], part[2]
        rate, cases = _posterior(part, len(parts))
        successes += k + left * rate
        variance += left * rate * (1 - rate) * (cases + left) / (cases + 1)
    mean = (successes + 0.5) / (total + 1)
    given = ((successes + 0.5) * (total - successes + 0.5) - variance) / ((total + 1) ** 2 * (total + 2))
    weight = mean * (1 - mean) / (variance / (total + 1) ** 2 + given) - 1
    a, b = mean * weight, (1 - mean) * weight
    return beta_quantile(TAIL, a, b), beta_quantile(1 - TAIL, a, b)


def beta_quantile(chance: float, a: float, b: float) -> float:
    """Return the quantile of Beta(a, b), summed over phi with x = sin^2(phi) on a grid of `POINTS`."""
    centre, spread = asin(sqrt(a / (a + b))), 0.5 / sqrt(a + b)
    low, high = max(centre - REACH * spread, 0.0), min(centre + REACH * spread, pi / 2)
    step = (high - low) / POINTS
    angles = [low + (number + 0.5) * step for number in range(POINTS)]
    logarithms = [(2 * a - 1) * log(sin(angle)) + (2 * b - 1) * log(cos(angle)) for angle in angles]
    most = max(logarithms)
    below = list(accumulate(exp(each - most) for each in logarithms))
    wanted = chance * below[-1]
    at = next(number for number, each in enumerate(below) if each >= wanted)
    before = below[at - 1] if at else 0.0
    return sin(low + (at + (wanted - before) / (below[at] - before)) * step) ** 2
