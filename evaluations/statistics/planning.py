"""How many labels a question needs, and of which trajectories. Plans assume rates, which labels may contradict."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from math import ceil, erf, floor, lgamma, sqrt
from statistics import NormalDist

import numpy as np

from evaluations.statistics.stratified import Estimand, rates_with_ends, weighted_rate
from evaluations.statistics.tally import Floats

FEWEST = 2  # labels of a stratum, or all of it
ANNOTATORS = 3  # reviews of a trajectory
DOUBT = 0.2  # how far expected rates are moved to one half, so that no stratum gets next to no labels


@dataclass(frozen=True, slots=True)
class StratumPlan:
    """``labels`` of the ``total`` trajectories of a stratum, whose success rate is expected to be ``expected_rate``."""

    name: str
    total: int
    labels: int
    expected_rate: float


@dataclass(frozen=True, slots=True)
class LabelPlan:
    """Labels of each stratum, half the expected width of the interval, and what people alone need for that width.

    ``if_judge_is_worse``: half the expected width with these labels if the rates of the strata are halfway from
    the expected ones to 0.5, and ``if_judge_is_useless``, if all are 0.5: the widest intervals.
    """

    labels: int
    strata: tuple[StratumPlan, ...]
    expected_half_width: float
    people_alone_labels: int
    if_judge_is_worse: float
    if_judge_is_useless: float

    @property
    def saved(self) -> int:
        """Return how many trajectories need no label."""
        return sum(stratum.total for stratum in self.strata) - self.labels


def rates_of_judge(judged: Mapping[bool, int], sensitivity: float, specificity: float) -> dict[bool, float]:
    """Return the success rates among the trajectories that a judge calls a success (True) or not (False).

    ``judged`` counts both. With the judge's share of successes q the rate is p = (q + specificity - 1) / (sensitivity +
    specificity - 1), within 0 to 1, and the two are p sensitivity / q and p (1 - sensitivity) / (1 - q), at most 1.
    ValueError without trajectories, and for a judge that is no better than chance. Source: Rogan and Gladen (1978),
    American Journal of Epidemiology 107, 71-76.
    """
    total, better = sum(judged.values()), sensitivity + specificity - 1
    if not total or better <= 0:
        raise ValueError("There are trajectories, and sensitivity and specificity have a sum above 1.")
    share = judged.get(True, 0) / total
    rate = min(max((share + specificity - 1) / better, 0.0), 1.0)
    return {
        True: min(rate * sensitivity / share, 1.0) if share else rate,
        False: min(rate * (1 - sensitivity) / (1 - share), 1.0) if share < 1 else rate,
    }


def rates_of_unbiased_judge(judged: Mapping[bool, int], sensitivity: float, specificity: float) -> dict[bool, float]:
    """Return `rates_of_judge` if the judge's share of successes q is the true rate: q + (1 - q) J and q (1 - J).

    J = sensitivity + specificity - 1. For a judge whose quality is only assumed, because a small error in it moves the
    rate p of `rates_of_judge` far. ValueError as there.
    """
    total, better = sum(judged.values()), sensitivity + specificity - 1
    if not total or better <= 0:
        raise ValueError("There are trajectories, and sensitivity and specificity have a sum above 1.")
    share = judged.get(True, 0) / total
    return {True: share + (1 - share) * better, False: share * (1 - better)}


def plan_half_width(
    strata: Mapping[str, int],
    expected_rates: Mapping[str, float],
    half_width: float,
    estimand: Estimand = Estimand.RUNS,
) -> LabelPlan:
    """Return the fewest labels whose interval is expected to be at most 2 ``half_width`` wide.

    ``strata`` has the trajectories of each, ``expected_rates`` their success rates. The width is that of
    `stratified_rate` with the expected successes. ValueError for a half width that all labels do not reach.
    """
    _require_plannable(strata, expected_rates)
    if not 0 < half_width < 0.5:
        raise ValueError(f"{half_width} is no half width. Enter more than 0 and less than 0.5.")

    def is_enough(labels: int) -> bool:
        return _half_width(strata, expected_rates, allocate(strata, expected_rates, labels), estimand) <= half_width

    total = sum(strata.values())
    if not is_enough(total):
        widest = _half_width(strata, expected_rates, dict(strata), estimand)
        raise ValueError(f"All {total} labels give a half width of {widest:.3f}. Enter a larger one.")
    return plan_labels(strata, expected_rates, _fewest(is_enough, fewest_labels(strata), total), estimand)


def plan_budget(
    strata: Mapping[str, int],
    expected_rates: Mapping[str, float],
    reviews: int,
    estimand: Estimand = Estimand.RUNS,
    per_label: int = ANNOTATORS,
) -> LabelPlan:
    """Return the plan for a number of reviews, ``per_label`` of which make one label.

    ValueError if they are too few."""
    _require_plannable(strata, expected_rates)
    least, labels = fewest_labels(strata), min(reviews // per_label, sum(strata.values()))
    if labels < least:
        raise ValueError(f"{reviews} reviews are {labels} labels, but these strata need {least}. Plan more reviews.")
    return plan_labels(strata, expected_rates, labels, estimand)


def plan_labels(
    strata: Mapping[str, int], expected_rates: Mapping[str, float], labels: int, estimand: Estimand
) -> LabelPlan:
    """Return the plan with this number of labels."""
    total, given = sum(strata.values()), allocate(strata, expected_rates, labels)
    overall = sum(strata[name] * expected_rates[name] for name in strata) / total
    worse = {name: (0.5 + expected_rates[name]) / 2 for name in strata}
    expected = _half_width(strata, expected_rates, given, estimand)
    return LabelPlan(
        sum(given.values()),
        tuple(StratumPlan(name, strata[name], given[name], expected_rates[name]) for name in strata),
        expected,
        _fewest(lambda n: people_half_width(total, overall, n, estimand) <= expected, 1, total),
        _half_width(strata, worse, given, estimand),
        _half_width(strata, dict.fromkeys(strata, 0.5), given, estimand),
    )


def allocate(strata: Mapping[str, int], expected_rates: Mapping[str, float], labels: int) -> dict[str, int]:
    """Return Neyman's allocation: labels in proportion to N_h sqrt(r_h (1 - r_h)), at least 2 or all of a stratum.

    r_h is the expected rate, moved by a fifth to one half: a stratum in which the judge is expected to be always right
    would otherwise get two labels, which cannot show that it is not. Source: Neyman (1934), Journal of the Royal
    Statistical Society 97, 558-625.
    """
    doubted = {name: (1 - DOUBT) * expected_rates[name] + DOUBT / 2 for name in strata}
    spread = {name: total * sqrt(doubted[name] * (1 - doubted[name])) for name, total in strata.items()}
    most = max(total / spread[name] for name, total in strata.items() if total)
    weights = {name: each * most for name, each in spread.items()}
    low, high, given = 0.0, 1.0, {name: min(total, FEWEST) for name, total in strata.items()}
    labels = min(labels, sum(strata.values()))
    for _ in range(60):  # bisection for the factor of the weights with which the labels are spent
        factor = (low + high) / 2
        tried = {name: min(total, max(FEWEST, floor(factor * weights[name]))) for name, total in strata.items()}
        fits = sum(tried.values()) <= labels
        low, high, given = (factor, high, tried) if fits else (low, factor, given)
    for _ in range(labels - sum(given.values())):
        open_strata = [name for name in strata if given[name] < strata[name]]
        given[max(open_strata, key=lambda name: (weights[name] / (given[name] + 1), name))] += 1
    return given


def fewest_labels(strata: Mapping[str, int]) -> int:
    return sum(min(total, FEWEST) for total in strata.values())


def people_half_width(total: int, rate: float, labels: int, estimand: Estimand) -> float:
    """Return half the width of `weighted_rate` of a simple random draw with the expected successes."""
    found = weighted_rate(np.full(labels, rate), np.full(labels, total / labels), estimand)
    return 0.0 if found.low is None or found.high is None else (found.high - found.low) / 2


def _half_width(
    strata: Mapping[str, int], rates: Mapping[str, float], labels: Mapping[str, int], estimand: Estimand
) -> float:
    drawn = np.array([labels[name] for name in strata if strata[name]], float)
    left = np.array([strata[name] - labels[name] for name in strata if strata[name]], float)
    hits = drawn * [rates[name] for name in strata if strata[name]]
    _, low, high = rates_with_ends(left[np.newaxis], hits[np.newaxis], drawn[np.newaxis], estimand)
    return float(high[0] - low[0]) / 2


def _fewest(is_enough: Callable[[int], bool], low: int, high: int) -> int:
    """Return the fewest labels from ``low`` to ``high`` that are enough; ``high`` are."""
    while low < high:
        middle = (low + high) // 2
        low, high = (low, middle) if is_enough(middle) else (middle + 1, high)
    return low


def _require_plannable(strata: Mapping[str, int], rates: Mapping[str, float]) -> None:
    if missing := set(strata) ^ set(rates):
        raise ValueError(f"Every stratum has an expected rate, and every rate a stratum: see {sorted(missing)}.")
    if not sum(strata.values()) or min(strata.values()) < 0:
        raise ValueError("A plan needs trajectories. Enter how many each stratum has.")
    if wrong := [name for name, rate in rates.items() if not 0 <= rate <= 1]:
        raise ValueError(f"The expected rates of {wrong} are not from 0 to 1.")


# --- tests of hypotheses, and checks ----------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class PowerPlan:
    """``labels`` of each agent, on the same tasks, and the ``power`` to find the difference; if all of the tasks are
    too few: no labels, and the power that all of them give."""

    labels: int | None
    power: float


def plan_power(
    tasks: int, first: float, second: float, differing: float, *, power: float = 0.8, unexplained: float = 1.0
) -> PowerPlan:
    """Plan to tell two agents with the success rates ``first`` and ``second`` apart, labelled on the same tasks.

    With n tasks, ``differing`` the share d of tasks on which only one succeeds, and D = first - second, the power of a
    two-sided paired test at 5% is Phi((|D| sqrt(n) - z sqrt(v d)) / sqrt(v (d - D^2))). v, ``unexplained``, is
    the share of the variance that a judge's verdicts leave: about (width / width of people alone)^2. ValueError for
    equal rates, and if d is not from |D| to 1. Source: Connor (1987), Biometrics 43, 207-211.
    """
    gap = abs(first - second)
    if not gap:
        raise ValueError("Equal rates cannot be told apart. Enter two rates.")
    if not gap <= differing <= 1 or not 0 < unexplained <= 1 or not 0 < power < 1:
        raise ValueError(f"Enter a differing share from {gap:.3f} to 1, an unexplained one and a power from 0 to 1.")

    def reached(labels: int) -> float:
        spread = sqrt(unexplained * max(differing - gap**2, 1e-12))
        critical = NormalDist().inv_cdf(0.975) * sqrt(unexplained * differing)
        return (1 + erf((gap * sqrt(labels) - critical) / spread / sqrt(2))) / 2

    if reached(tasks) < power:
        return PowerPlan(None, reached(tasks))
    labels = _fewest(lambda n: reached(n) >= power, 1, tasks)
    return PowerPlan(labels, reached(labels))


@dataclass(frozen=True, slots=True)
class AcceptancePlan:
    """Label this many, and accept with ``accept_from`` successes or more. ``error``: the probability to accept the
    unacceptable rate, ``power``: to accept the good one."""

    labels: int
    accept_from: int
    error: float
    power: float


def plan_acceptance(
    total: int, unacceptable: float, good: float, *, error: float = 0.05, power: float = 0.9
) -> AcceptancePlan:
    """Return the fewest labels that accept N = ``total`` trajectories with a rate of ``good`` with at least ``power``,
    and those with a rate of ``unacceptable`` or less with at most ``error``.

    The successes among n labels are hypergeometric, with floor(unacceptable N) or ceil(good N) successes in N.
    ValueError if the rates do not differ by a trajectory. Source: Schilling and Neubauer (2017), Acceptance Sampling in
    Quality Control, 3rd edition.
    """
    worst, best = floor(unacceptable * total + 1e-9), ceil(good * total - 1e-9)
    if not 0 <= worst < best <= total:
        raise ValueError("The good rate is above the unacceptable one by a trajectory at least.")
    for labels in range(1, total + 1):
        wrongly = tails(total, worst, labels)
        accept_from = int(np.argmax(wrongly <= error))
        rightly = float(tails(total, best, labels)[accept_from])
        if wrongly[accept_from] <= error and rightly >= power:
            return AcceptancePlan(labels, accept_from, float(wrongly[accept_from]), rightly)
    raise AssertionError("all labels tell different rates apart")  # pragma: no cover


def tails(total: int, successes: int, labels: int) -> Floats:
    """Return (labels + 2,): the probabilities of 0, 1, ... or more successes among ``labels`` of ``total``; the last
    is 0."""
    number = np.arange(labels + 1)
    possible = (number <= successes) & (labels - number <= total - successes)
    chances = np.zeros(labels + 2)
    here = number[possible]
    logarithms = _choose(successes, here) + _choose(total - successes, labels - here)
    chances[:-1][possible] = np.exp(logarithms - float(_choose(total, np.array([labels]))[0]))
    result: Floats = np.cumsum(chances[::-1])[::-1]
    return np.minimum(result, 1.0)


def _choose(of: int, number: np.ndarray) -> Floats:
    return np.array([lgamma(of + 1) - lgamma(k + 1) - lgamma(of - k + 1) for k in number.tolist()])


def plan_checks(total: int, error_rate: float, *, probability: float = 0.95) -> int:
    """Return how many of ``total`` cases to check, so that at least one error is found with ``probability`` if
    more than the share ``error_rate`` of them is wrong.

    The least n with C(N - E, n) / C(N, n) <= 1 - probability, E = floor(error_rate N) + 1. See `hits_left` for what the
    checks say afterwards. ValueError for a share or a probability outside of 0 to 1, or without cases.
    """
    errors = floor(error_rate * total + 1e-9) + 1
    if total < 1 or not 0 <= error_rate < 1 or not 0 < probability < 1:
        raise ValueError("Enter cases, an error rate from 0 to less than 1, and a probability between 0 and 1.")
    missed = 1.0
    for checked in range(1, total + 1):
        missed *= max(total - errors - checked + 1, 0) / (total - checked + 1)
        if missed <= (1 - probability) * (1 + 1e-12):
            return checked
    return total
