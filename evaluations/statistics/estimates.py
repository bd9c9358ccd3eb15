"""The success rate from few labels: people alone, combined with a judge's verdicts on all, and the judge only."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass, replace
from math import sqrt

import numpy as np

from evaluations.statistics.intervals import ROUNDING, Sample, Z, wilson_ends
from evaluations.statistics.measure import Measure
from evaluations.statistics.prediction import ScoredSample, predicted_rate, slope
from evaluations.statistics.quantiles import t_quantile
from evaluations.statistics.sequential import confidence_sequence
from evaluations.statistics.stratified import Estimand, stratified_rate, weighted_rate
from evaluations.statistics.tally import Floats, Integers

PEOPLE_ALONE, STRATIFIED, PREDICTED, ACTIVE = "people alone", "stratified", "PPI++", "active sampling"
NO_CASES, NO_VERDICTS = "no trajectories", "The judge has no verdict on any trajectory."
ALL_LABELLED = "People labelled all trajectories."
SAME_VERDICT = "The judge gave every trajectory the same verdict."
WIDER = "The judge's verdicts do not make the interval narrower."
MAY_STOP = "If labelling may stop early, only people's labels count."


@dataclass(frozen=True, slots=True)
class Case:
    """One trajectory of the population.

    ``stratum`` of the plan; ``judge``: its verdict 0 or 1 or a score from 0 to 1, None if unscored; ``label``: 1
    success, 0 not, None if not labelled; ``probability``: inclusion probability of the draw, in (0, 1]; ``task``:
    trajectories of one task depend on each other. ValueError for another value.
    """

    stratum: str
    judge: float | None
    label: int | None
    probability: float
    task: str

    def __post_init__(self) -> None:
        if self.label not in (None, 0, 1):
            raise ValueError(f"{self.label} is no label: enter 1 for success, 0 for any other, None for no label.")
        if self.judge is not None and not 0 <= self.judge <= 1:
            raise ValueError(f"{self.judge} is no verdict or score of a judge: enter 0 to 1, None for unscored.")
        if not 0 < self.probability <= 1:
            raise ValueError(f"{self.probability} is no inclusion probability: enter more than 0, at most 1.")


@dataclass(frozen=True, slots=True)
class Estimates:
    """Three estimates of one rate. ``method`` of the combined one; ``reason`` why it is that of people alone, or "".

    The interval of ``judge_only`` is what leaderboards publish. It has the judge's chance errors in it, not its bias,
    so it covers the true rate only if the judge's errors cancel.
    """

    estimand: Estimand
    n_labelled: int
    n_total: int
    people: Measure
    combined: Measure
    judge_only: Measure
    method: str
    reason: str


def estimate(cases: Sequence[Case], estimand: Estimand = Estimand.RUNS) -> Estimates:
    """Estimate the success rate of the population ``cases`` from those of a random draw that are labelled.

    ``people``: `weighted_rate`, without strata and without the judge. ``combined``: `stratified_rate` with the plan's
    strata and a binary judge's verdicts, or `predicted_rate` (PPI++) if the judge gives scores or if probabilities
    differ inside a stratum (active sampling). It is that of people alone, with a reason, where it is undefined or
    wider. ``judge_only``: the mean verdict with Wilson's interval.

    Inside a stratum with equal probabilities every labelled case counts for N_h / n_h. That is biased while drawn cases
    have no label, because those that people decide first are the easy ones: callers publish nothing before.

    If tasks have several cases, intervals for `Estimand.AGENT` have a design effect: the variance of sums by task over
    that of single cases, at least 1. Undefined without cases, and if a stratum has no label. ValueError if a stratum
    has more labels than its draw: they are from outside of it.
    """
    _require_labels_of_the_draw(cases)
    return _estimate(_Population.of(cases), estimand)[0]


def estimate_sequence(cases: Sequence[Case], found: Estimates) -> Estimates:
    """Return ``found`` with the rate of these runs by `confidence_sequence`, in the random order of the draw.

    ``cases`` are those of ``found``, in that order; those that were not drawn may be left out.
    """
    labels = [case.label for case in cases if case.label is not None]
    if not labels:
        return found
    people = confidence_sequence(labels, found.n_total)[-1]
    return replace(found, people=people, combined=people, method=PEOPLE_ALONE, reason=MAY_STOP)


def estimate_groups(
    cases: Sequence[Case], groups: Sequence[Hashable], estimand: Estimand = Estimand.RUNS
) -> dict[Hashable, Estimates]:
    """Return `estimate` of each group, such as a level; ``groups`` names the group of every case."""
    _require_labels_of_the_draw(cases)
    members: dict[Hashable, list[Case]] = {}
    for case, group in zip(cases, groups, strict=True):
        members.setdefault(group, []).append(case)
    return {group: _estimate(_Population.of(each), estimand)[0] for group, each in members.items()}


def difference(first: Sequence[Case], second: Sequence[Case], estimand: Estimand = Estimand.RUNS) -> Measure:
    """How much more often the first agent succeeds than the second, from combined estimates of the same tasks.

    d = p1 - p2, from sqrt((p1 - l1)^2 + (u2 - p2)^2 - 2 r (p1 - l1)(u2 - p2)) below to the same with (u1 - p1) and
    (p2 - l2) above. r is the correlation of the two estimates, from what each task contributes to both. For
    `Estimand.RUNS` it is 0 if different tasks were drawn, because the draws are then independent. Undefined if one of
    the rates is. Source: method 10 of Newcombe (1998), Statistics in Medicine 17, 873-890; Zou and Donner (2008),
    Statistics in Medicine 27, 1693-1702.
    """
    for cases in (first, second):
        _require_labels_of_the_draw(cases)
    (one, here), (other, there) = (_estimate(_Population.of(cases), estimand) for cases in (first, second))
    a, b = one.combined, other.combined
    if a.value is None or b.value is None:
        return Measure.missing(a.undefined or b.undefined, a.n + b.n)
    same_draw = _drawn(first) == _drawn(second)
    r = _correlation(here, there) if estimand is Estimand.AGENT or same_draw else 0.0
    low, high = (a.value - _end(a.low), _end(b.high) - b.value), (_end(a.high) - a.value, b.value - _end(b.low))
    below, above = (sqrt(max(x * x + y * y - 2 * r * x * y, 0.0)) for x, y in (low, high))
    d = a.value - b.value
    return Measure(d, a.n + b.n, low=max(d - below, -1.0), high=min(d + above, 1.0))


def _end(end: float | None) -> float:
    if end is None:
        raise ValueError("A rate without an interval has no difference.")
    return end


def _drawn(cases: Iterable[Case]) -> Counter[str]:
    return Counter(case.task for case in cases if case.label is not None)


def _correlation(first: dict[str, float], second: dict[str, float]) -> float:
    size = sqrt(sum(x * x for x in first.values()) * sum(x * x for x in second.values()))
    both = sum(share * second[task] for task, share in first.items() if task in second)
    return min(max(both / size, -1.0), 1.0) if size else 0.0


def _require_labels_of_the_draw(cases: Iterable[Case]) -> None:
    labels: Counter[tuple[str, float]] = Counter()
    expected: dict[tuple[str, float], float] = defaultdict(float)
    strata: dict[str, set[float]] = {}
    for case in cases:
        strata.setdefault(case.stratum, set()).add(case.probability)
        labels[case.stratum, case.probability] += case.label is not None
        expected[case.stratum, case.probability] += case.probability
    for (stratum, probability), number in labels.items():
        if len(strata[stratum]) == 1 and number > expected[stratum, probability] + 0.5:
            raise ValueError(
                f"Stratum {stratum!r} has {number} labels, but its draw has {round(expected[stratum, probability])}. "
                "Leave out labels of trajectories that were not drawn."
            )


@dataclass(frozen=True, slots=True, eq=False)
class _Population:
    """Arrays (N,): labels and judge with NaN where there is none, numbers of strata and tasks, and probabilities."""

    labels: Floats
    judge: Floats
    strata: Integers
    probabilities: Floats
    tasks: Integers
    names: tuple[str, ...]
    task_names: tuple[str, ...]

    @classmethod
    def of(cls, cases: Sequence[Case]) -> _Population:
        ordered = sorted(cases, key=lambda case: (case.stratum, case.task))
        strata, tasks = (sorted({getattr(case, field) for case in cases}) for field in ("stratum", "task"))
        places = [{name: at for at, name in enumerate(names)} for names in (strata, tasks)]
        return cls(
            np.array([np.nan if case.label is None else case.label for case in ordered], float),
            np.array([np.nan if case.judge is None else case.judge for case in ordered], float),
            np.array([places[0][case.stratum] for case in ordered], np.int64),
            np.array([case.probability for case in ordered], float),
            np.array([places[1][case.task] for case in ordered], np.int64),
            tuple(strata),
            tuple(tasks),
        )

    @property
    def labelled(self) -> Floats:
        return ~np.isnan(self.labels)

    @property
    def unequal(self) -> bool:
        """True if probabilities differ inside a stratum."""
        return any(len(set(self.probabilities[self.strata == h])) > 1 for h in range(len(self.names)))

    def weights(self, cells: Integers) -> Floats:
        """Return (N,): for how many cases a labelled one counts; the cells have equal probabilities, or are strata."""
        if self.unequal:
            return 1 / self.probabilities
        sizes, drawn = np.bincount(cells), np.bincount(cells, self.labelled)
        return (sizes / np.maximum(drawn, 1))[cells]


def _estimate(population: _Population, estimand: Estimand) -> tuple[Estimates, dict[str, float]]:
    """Return the estimates, and what each task contributes to the error of the combined one."""
    total, labelled = len(population.labels), int(population.labelled.sum())
    judge_only = _judge_only(population.judge)
    if why := _why_undefined(population):
        none = Measure.missing(why, labelled)
        return Estimates(estimand, labelled, total, none, none, judge_only, PEOPLE_ALONE, why), {}
    people, alone = _people(population, estimand)
    method, reason = _choose_method(population)
    combined, contributions = people, alone
    if not reason:
        combined, contributions = (_stratified if method == STRATIFIED else _predicted)(population, estimand)
        if combined.value is None:
            reason = f"Undefined: {combined.undefined}."
        elif _width(combined) > _width(people) + ROUNDING:
            reason = WIDER
    if reason:
        method, combined, contributions = PEOPLE_ALONE, people, alone
    by_task = np.bincount(population.tasks, contributions)
    found = Estimates(estimand, labelled, total, people, combined, judge_only, method, reason)
    return found, dict(zip(population.task_names, by_task.tolist(), strict=True))


def _why_undefined(population: _Population) -> str:
    if not len(population.labels):
        return NO_CASES
    drawn = np.bincount(population.strata, population.labelled)
    return next((f'no label in stratum "{population.names[h]}"' for h in np.flatnonzero(drawn == 0)), "")


def _choose_method(population: _Population) -> tuple[str, str]:
    """Return the method of the combined estimate, and why it cannot be used, or ""."""
    verdicts = np.unique(population.judge[~np.isnan(population.judge)])
    method = STRATIFIED if np.isin(verdicts, (0, 1)).all() else PREDICTED
    if population.unequal:
        method = ACTIVE
    if population.labelled.all():
        return method, ALL_LABELLED
    if not len(verdicts):
        return method, NO_VERDICTS
    return method, SAME_VERDICT if len(verdicts) == 1 and not np.isnan(population.judge).any() else ""


def _judge_only(judge: Floats) -> Measure:
    scores = judge[~np.isnan(judge)]
    if not len(scores):
        return Measure.missing("no verdicts of the judge")
    n, hits = len(scores), float(scores.sum())
    low, high = wilson_ends(hits, n)
    return Measure(hits / n, n, int(hits) if np.isin(scores, (0, 1)).all() else None, low, high)


def _people(population: _Population, estimand: Estimand) -> tuple[Measure, Floats]:
    labelled, weights = population.labelled, population.weights(population.strata)
    found = weighted_rate(population.labels[labelled], weights[labelled], estimand)
    contributions = _contributions(population, np.full(len(weights), found.value), weights, estimand)
    if (effect := _design_effect(population, contributions, estimand)) > 1:
        found = weighted_rate(population.labels[labelled], weights[labelled], estimand, effect)
    return found, contributions


def _stratified(population: _Population, estimand: Estimand) -> tuple[Measure, Floats]:
    cells = _cells(population)
    sizes, drawn = np.bincount(cells), np.bincount(cells, population.labelled)
    hits = np.bincount(cells, np.nan_to_num(population.labels))
    samples = [Sample(int(size - n), int(k), int(n)) for size, n, k in zip(sizes, drawn, hits, strict=True)]
    contributions = _contributions(population, (hits / drawn)[cells], population.weights(cells), estimand)
    return stratified_rate(samples, estimand, _design_effect(population, contributions, estimand)), contributions


def _cells(population: _Population) -> Integers:
    """Return the number (N,) of each case's stratum and verdict; one without labels joins the largest of its stratum.

    The labels themselves play no part in it, so the sample of each is still random.
    """
    verdicts = np.where(np.isnan(population.judge), 2, population.judge).astype(np.int64)
    cells = population.strata * 3 + verdicts
    drawn, sizes = np.bincount(cells, population.labelled), np.bincount(cells)
    for cell in np.unique(cells[drawn[cells] == 0]):
        first = cell // 3 * 3
        choices = [each for each in range(first, min(first + 3, len(drawn))) if drawn[each]]
        cells[cells == cell] = max(choices, key=lambda each: sizes[each])
    return np.unique(cells, return_inverse=True)[1]


def _predicted(population: _Population, estimand: Estimand) -> tuple[Measure, Floats]:
    """Unscored cases get the mean score of their stratum, which no label has a part in."""
    weights, predictions = population.weights(population.strata), np.zeros(len(population.labels))
    samples = []
    for stratum in range(len(population.names)):
        here = population.strata == stratum
        scores = population.judge[here]
        known = scores[~np.isnan(scores)]
        scores = np.where(np.isnan(scores), known.mean() if len(known) else 0.0, scores)
        drawn, labels = population.labelled[here].astype(bool), population.labels[here]
        sample = ScoredSample(scores, labels[drawn], scores[drawn], weights[here][drawn])
        share = sample.weights / sample.weights.sum()
        predictions[here] = share @ sample.labels + slope(sample) * (scores - share @ sample.predicted)
        samples.append(sample)
    contributions = _contributions(population, predictions, weights, estimand)
    return predicted_rate(samples, estimand, _design_effect(population, contributions, estimand)), contributions


def _contributions(population: _Population, predictions: Floats, weights: Floats, estimand: Estimand) -> Floats:
    """Return (N,), what each case adds to the error of an estimate, from the prediction of its label.

    ((prediction - mean) + w (label - prediction)) / N; for a finite population, in which only the draw is random,
    sqrt(w (w - 1)) (label - prediction) / N.
    """
    errors = np.nan_to_num(population.labels - predictions) / len(predictions)
    if estimand is Estimand.RUNS:
        return np.sqrt(weights * np.maximum(weights - 1, 0)) * errors
    return (predictions - predictions.mean()) / len(predictions) + weights * errors


def _design_effect(population: _Population, contributions: Floats, estimand: Estimand) -> float:
    """Return the variance of sums by task over that of single cases, 1 or more; 1 if only the draw is random."""
    labelled = population.tasks[population.labelled.astype(bool)]
    tasks = len(np.unique(labelled))
    if estimand is Estimand.RUNS or len(population.task_names) == len(population.tasks) or tasks < 2:
        return 1.0
    single = float(contributions @ contributions)
    if not single:
        return len(labelled) / tasks
    sums = np.bincount(population.tasks, contributions)
    few = tasks / (tasks - 1) * (t_quantile(tasks - 1) / Z) ** 2
    return max(1.0, float(sums @ sums) / single * few)


def _width(measure: Measure) -> float:
    return _end(measure.high) - _end(measure.low)
