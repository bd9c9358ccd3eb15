"""Measure the coverage of interval estimates by simulation: ``python -m bench.coverage``.

Each cell of the grid has a number of labels n, of trajectories N, a judge, a true rate and a draw: simple random, or
planned by the judge's verdicts. Prints for every estimator the coverage of its nominal 95% intervals, and for combined
ones the width and the labels saved against people alone. ``--small`` takes a minute, the complete grid some minutes.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import inf, sqrt

import numpy as np

from bench.planning import planned_scenarios
from evaluations.statistics.estimates import Case, estimate
from evaluations.statistics.measure import Measure
from evaluations.statistics.planning import allocate
from evaluations.statistics.prediction import ScoredSample, predicted_rate
from evaluations.statistics.sequential import confidence_sequence
from evaluations.statistics.stratified import Estimand, rates_with_ends, weighted_rate

JUDGES = {0.71: (0.68, 0.99), 0.55: (0.75, 0.80), 0.29: (0.76, 0.55), 0.87: (0.92, 0.95)}  # kappa at a rate of .4
RATES = (0.1, 0.3, 0.5, 0.7, 0.9)
LABELS, TRAJECTORIES = (30, 60, 100, 300), (100, 300, 1000, 3000)
RANDOM, PLANNED = "random", "planned"
TARGET = (0.94, 0.96)
SLOW = 20  # estimators that are not vectorised get so many times fewer draws
ATTEMPTS = 3  # trajectories of a task in clustered cells
LEVELS_APART = 0.15  # rates of neighbouring levels
TASKS_ALIKE = 2.0  # a + b of the beta distribution of the tasks' own rates

Floats = np.ndarray


@dataclass(frozen=True, slots=True)
class Cell:
    labels: int
    trajectories: int
    kappa: float
    rate: float

    @property
    def verdicts(self) -> tuple[float, float, float]:
        """Return the judge's share of successes, and the true rates if it says success and if not."""
        sensitivity, specificity = JUDGES[self.kappa]
        share = self.rate * sensitivity + (1 - self.rate) * (1 - specificity)
        return share, self.rate * sensitivity / share, self.rate * (1 - sensitivity) / (1 - share)


@dataclass(frozen=True, slots=True)
class Result:
    """One estimator in one cell: share of ``draws`` whose interval holds the truth, and mean widths."""

    estimator: str
    cell: Cell
    coverage: float
    width: float
    people: float
    draws: int


def cells(labels: Sequence[int], trajectories: Sequence[int], rates: Sequence[float]) -> list[Cell]:
    pairs = [(n, total) for n in labels for total in trajectories if 2 * n <= total]
    return [Cell(n, total, kappa, rate) for n, total in pairs for kappa in JUDGES for rate in rates]


def measure(cell: Cell, draws: int, seed: int) -> Iterator[Result]:
    """Yield the results of the vectorised estimators: people alone and combined with a binary judge."""
    for estimand in Estimand:
        for draw in (RANDOM, PLANNED):
            random = np.random.default_rng(seed)
            sizes, drawn = draw_strata(cell, estimand, draw, draws, random)
            rates = np.array(cell.verdicts[1:])
            hits, unseen = random.binomial(drawn, rates), random.binomial(sizes - drawn, rates)
            truth = np.full(draws, cell.rate)
            if estimand is Estimand.RUNS:
                truth = (hits + unseen).sum(axis=1) / cell.trajectories
            combined = combined_ends(sizes, drawn, hits, estimand)
            if draw == PLANNED:  # compared with a simple random draw of as many labels
                alone = people_ends(cell, random.binomial(cell.labels, cell.rate, draws), estimand)
                yield result(f"combined, {estimand}, planned draw", cell, combined, alone, truth)
                continue
            alone = people_ends(cell, hits.sum(axis=1), estimand)
            yield result(f"people alone, {estimand}", cell, alone, alone, truth)
            narrower = (combined[1] - combined[0]) <= (alone[1] - alone[0])
            chosen = tuple(np.where(narrower, ours, theirs) for ours, theirs in zip(combined, alone, strict=True))
            yield result(f"combined, {estimand}, random draw", cell, chosen, alone, truth)


def draw_strata(
    cell: Cell, estimand: Estimand, draw: str, draws: int, random: np.random.Generator
) -> tuple[Floats, Floats]:
    """Return the sizes (draws, 2) of the judge's successes and failures, and how many of them are labelled.

    The judge's verdicts on the trajectories are fixed for `Estimand.RUNS`, and random for the agent."""
    total, share = cell.trajectories, cell.verdicts[0]
    successes = np.full(draws, round(total * share))
    if estimand is Estimand.AGENT:
        successes = random.binomial(total, share, draws)
    successes = np.clip(successes, 2, total - 2)
    if draw is RANDOM:
        labelled = random.hypergeometric(successes, total - successes, cell.labels)
    else:
        names = dict(zip(("success", "failure"), cell.verdicts[1:], strict=True))
        each = {
            int(size): allocate({"success": int(size), "failure": int(total - size)}, names, cell.labels)["success"]
            for size in np.unique(successes)
        }
        labelled = np.array([each[size] for size in successes.tolist()])
    return np.stack([successes, total - successes], 1), np.stack([labelled, cell.labels - labelled], 1)


def combined_ends(sizes: Floats, drawn: Floats, hits: Floats, estimand: Estimand) -> tuple[Floats, Floats]:
    """Return the ends (draws,); a verdict without labels is merged with the other one."""
    empty = (drawn == 0).any(axis=1)
    low, high = np.empty(len(sizes)), np.empty(len(sizes))
    for rows, merge in ((~empty, False), (empty, True)):
        table = np.stack([sizes - drawn, hits, drawn], 2)[rows]
        table = table.sum(axis=1, keepdims=True) if merge else table
        outcomes, which = np.unique(table.reshape(len(table), 3 * table.shape[1]), axis=0, return_inverse=True)
        if len(outcomes):
            parts = outcomes.reshape(len(outcomes), table.shape[1], 3)
            _, lows, highs = rates_with_ends(parts[:, :, 0], parts[:, :, 1], parts[:, :, 2], estimand)
            low[rows], high[rows] = lows[which.ravel()], highs[which.ravel()]
    return low, high


def people_ends(cell: Cell, hits: Floats, estimand: Estimand) -> tuple[Floats, Floats]:
    weights = np.full(cell.labels, cell.trajectories / cell.labels)
    low, high = np.zeros(cell.labels + 1), np.zeros(cell.labels + 1)
    for number in np.unique(hits):
        found = weighted_rate(np.arange(cell.labels) < number, weights, estimand)
        low[number], high[number] = found.low, found.high
    return low[hits], high[hits]


def measure_levels(cell: Cell, draws: int, seed: int) -> Iterator[Result]:
    """Yield the result of a planned draw from six strata: the verdicts on three levels, whose rates differ."""
    random, (sensitivity, specificity) = np.random.default_rng(seed), JUDGES[cell.kappa]
    sizes, rates = np.empty(6, int), np.empty(6)
    for level, rate in enumerate(np.clip(cell.rate + np.array([-LEVELS_APART, 0, LEVELS_APART]), 0.03, 0.97)):
        share = rate * sensitivity + (1 - rate) * (1 - specificity)
        successes = min(max(round(cell.trajectories / 3 * share), 2), cell.trajectories // 3 - 2)
        sizes[2 * level : 2 * level + 2] = successes, cell.trajectories // 3 - successes
        rates[2 * level : 2 * level + 2] = rate * sensitivity / share, rate * (1 - sensitivity) / (1 - share)
    names = [str(at) for at in range(6)]
    strata, expected = (dict(zip(names, each.tolist(), strict=True)) for each in (sizes, rates))
    plan = allocate(strata, expected, cell.labels)
    drawn = np.array([plan[name] for name in names])
    hits, unseen = random.binomial(drawn, rates, (draws, 6)), random.binomial(sizes - drawn, rates, (draws, 6))
    tiled = np.broadcast_to(sizes, hits.shape), np.broadcast_to(drawn, hits.shape)
    ends = combined_ends(*tiled, hits, Estimand.RUNS)
    alone = people_ends(cell, random.binomial(cell.labels, cell.rate, draws), Estimand.RUNS)
    truth = (hits + unseen).sum(axis=1) / sizes.sum()
    yield result("combined, runs, planned draw from 6 strata", cell, ends, alone, truth)


def result(name: str, cell: Cell, ends: tuple[Floats, ...], people: tuple[Floats, ...], truth: Floats) -> Result:
    held = (ends[0] <= truth + 1e-9) & (truth <= ends[1] + 1e-9)
    width, alone = (float((high - low).mean()) for low, high in (ends, people))
    return Result(name, cell, float(held.mean()), width, alone, len(truth))


# --- estimators that are computed draw by draw ------------------------------------------------------------------------


def measure_slow(cell: Cell, draws: int, seed: int) -> Iterator[Result]:
    """Yield the results of PPI++ with scores, of active sampling, and of a draw of trajectories of the same tasks."""
    for estimand in Estimand:
        for name, simulate in (("PPI++", scored_draw), ("active sampling", active_draw), ("tasks", clustered_draw)):
            random, found = np.random.default_rng(seed), defaultdict(list)
            for _ in range(draws):
                truth, combined, people = simulate(cell, estimand, random)
                found["truth"].append(truth)
                for key, measured in (("combined", combined), ("people", people)):
                    found[f"{key} low"].append(measured.low)
                    found[f"{key} high"].append(measured.high)
            arrays = {key: np.array(values, float) for key, values in found.items()}
            ends, people = ((arrays[f"{key} low"], arrays[f"{key} high"]) for key in ("combined", "people"))
            label = "combined, 3 runs a task" if name == "tasks" else name
            yield result(f"{label}, {estimand}", cell, ends, people, arrays["truth"])
            if name == "tasks":
                yield result(f"people alone, 3 runs a task, {estimand}", cell, people, people, arrays["truth"])


def measure_sequence(cell: Cell, draws: int, seed: int) -> Iterator[Result]:
    """Yield how often the truth is in all intervals of a confidence sequence, by their intersection."""
    random, found = np.random.default_rng(seed), []
    for _ in range(draws):
        labels = random.permutation(np.arange(cell.trajectories) < round(cell.rate * cell.trajectories)).astype(int)
        looks = confidence_sequence(labels[: cell.labels].tolist(), cell.trajectories)
        hits = int(labels[: cell.labels].sum())
        found.append(
            (labels.mean(), max(each.low or 0.0 for each in looks), min(each.high or 0.0 for each in looks), hits)
        )
    truth, low, high, hits = np.array(found).T
    yield result(
        "people alone, all looks, runs", cell, (low, high), people_ends(cell, hits.astype(int), Estimand.RUNS), truth
    )


def judge_of(cell: Cell, labels: Floats, random: np.random.Generator) -> Floats:
    sensitivity, specificity = JUDGES[cell.kappa]
    return (random.random(len(labels)) < np.where(labels == 1, sensitivity, 1 - specificity)).astype(float)


def scored_draw(cell: Cell, estimand: Estimand, random: np.random.Generator):  # type: ignore[no-untyped-def]
    """Return truth and estimates with scores that are the verdict with noise, of a simple random draw."""
    labels = (random.random(cell.trajectories) < cell.rate).astype(float)
    scores = 0.6 * judge_of(cell, labels, random) + 0.4 * random.random(len(labels))
    drawn = random.permutation(len(labels))[: cell.labels]
    weights = np.full(cell.labels, len(labels) / cell.labels)
    combined = predicted_rate([ScoredSample(scores, labels[drawn], scores[drawn], weights)], estimand)
    people = weighted_rate(labels[drawn], weights, estimand)
    return truth_of(cell, labels, estimand), min(combined, people, key=width), people


def active_draw(cell: Cell, estimand: Estimand, random: np.random.Generator):  # type: ignore[no-untyped-def]
    """Return truth and estimates where trajectories with a score near one half are three times as likely drawn."""
    labels = (random.random(cell.trajectories) < cell.rate).astype(float)
    scores = 0.6 * judge_of(cell, labels, random) + 0.4 * random.random(len(labels))
    wanted = 1 + 2 * (1 - np.abs(2 * scores - 1))
    chances = np.minimum(cell.labels * wanted / wanted.sum(), 1)
    drawn = random.random(len(labels)) < chances
    sample = ScoredSample(scores, labels[drawn], scores[drawn], 1 / chances[drawn])
    plain = random.permutation(len(labels))[: cell.labels]
    people = weighted_rate(labels[plain], np.full(cell.labels, len(labels) / cell.labels), estimand)
    return truth_of(cell, labels, estimand), predicted_rate([sample], estimand), people


def clustered_draw(cell: Cell, estimand: Estimand, random: np.random.Generator):  # type: ignore[no-untyped-def]
    """Return truth and estimates of `ATTEMPTS` trajectories of each task, whose rates differ from task to task."""
    tasks = cell.trajectories // ATTEMPTS + 1
    own = random.beta(TASKS_ALIKE * cell.rate, TASKS_ALIKE * (1 - cell.rate), tasks)
    task = np.arange(cell.trajectories) // ATTEMPTS
    labels = (random.random(cell.trajectories) < own[task]).astype(float)
    verdicts, drawn = judge_of(cell, labels, random), random.permutation(cell.trajectories)[: cell.labels]
    shown = np.full(cell.trajectories, -1)
    shown[drawn] = labels[drawn]
    chance = cell.labels / cell.trajectories
    rows = zip(verdicts.tolist(), shown.tolist(), task.tolist(), strict=True)
    cases = [Case("", f, None if y < 0 else y, chance, str(t)) for f, y, t in rows]
    found = estimate(cases, estimand)
    return truth_of(cell, labels, estimand), found.combined, found.people


def width(measure: Measure) -> float:
    """Return the width of an interval, infinite for a rate without one."""
    return inf if measure.low is None or measure.high is None else measure.high - measure.low


def truth_of(cell: Cell, labels: Floats, estimand: Estimand) -> float:
    return float(labels.mean()) if estimand is Estimand.RUNS else cell.rate


# --- report -----------------------------------------------------------------------------------------------------------

TITLES = ("estimator", "cells", "least", "5%", "mean", "95%", "most", "in 94-96%", "width", "widest")
WIDTHS = (42, 7, 8, 8, 8, 8, 8, 11, 8, 8)


def summarise(results: Sequence[Result]) -> Iterator[tuple[str, ...]]:
    """Yield a row for each estimator; a cell is in the target if its simulation error allows it."""
    by_name: dict[str, list[Result]] = defaultdict(list)
    for each in results:
        by_name[each.estimator].append(each)
    for name, group in sorted(by_name.items()):
        held = np.array([each.coverage for each in group])
        error = 2 * sqrt(0.95 * 0.05 / group[0].draws)
        inside = np.mean((held >= TARGET[0] - error) & (held <= TARGET[1] + error))
        relative = np.array([each.width / each.people for each in group])
        figures = (held.min(), np.quantile(held, 0.05), held.mean(), np.quantile(held, 0.95), held.max())
        cells = (
            *(f"{each:.3f}" for each in figures),
            f"{inside:.0%}",
            f"{relative.mean():.3f}",
            f"{relative.max():.3f}",
        )
        yield (name, f"{len(group)}", *cells)


def savings(results: Sequence[Result]) -> Iterator[tuple[str, ...]]:
    """Yield the labels saved for the same width, 1 - (width / width of people alone)^2, by judge."""
    groups: dict[tuple[str, float], list[float]] = defaultdict(list)
    for each in results:
        if not each.estimator.startswith("people"):
            groups[each.estimator, each.cell.kappa].append(1 - (each.width / each.people) ** 2)
    for (name, kappa), saved in sorted(groups.items()):
        yield name, f"{kappa:.2f}", f"{np.mean(saved):.0%}", f"{min(saved):.0%}", f"{max(saved):.0%}"


def say(cells: Sequence[str], widths: Sequence[int]) -> None:
    print("".join(f"{cell:<{width}}" for cell, width in zip(cells, widths, strict=True)).rstrip(), flush=True)  # noqa: T201


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m bench.coverage", description=__doc__)
    parser.add_argument("--draws", type=int, default=10_000, help="draws of each cell")
    parser.add_argument("--small", action="store_true", help="n of 30 and 60, N of 300, rates of .1, .5 and .9")
    parser.add_argument("--every", action="store_true", help="also print every cell outside of the target")
    parser.add_argument("--plans", type=int, default=200, help="random scenarios of the planner")
    options = parser.parse_args(arguments)
    began = time.perf_counter()
    grid = cells((30, 60), (300,), (0.1, 0.5, 0.9)) if options.small else cells(LABELS, TRAJECTORIES, RATES)
    slow = [cell for cell in grid if cell.trajectories <= 300]
    results = [each for at, cell in enumerate(grid) for each in measure(cell, options.draws, at)]
    few = max(options.draws // SLOW, 1)
    results += [each for at, cell in enumerate(slow) for each in measure_levels(cell, few, at)]
    results += [each for at, cell in enumerate(slow) for each in measure_slow(cell, few, at)]
    results += [each for at, cell in enumerate(slow) for each in measure_sequence(cell, few, at)]
    say(TITLES, WIDTHS)
    for row in summarise(results):
        say(row, WIDTHS)
    say(("labels saved", "kappa", "mean", "least", "most"), (42, 8, 8, 8, 8))
    for row in savings(results):
        say(row, (42, 8, 8, 8, 8))
    if options.every:
        for each in sorted(results, key=lambda each: each.coverage):
            if not TARGET[0] <= each.coverage <= TARGET[1]:
                print(f"{each.coverage:.3f} {each.estimator}: {each.cell}")  # noqa: T201
    for line in planned_scenarios(options.plans):
        print(line)  # noqa: T201
    print(f"{time.perf_counter() - began:.0f} s")  # noqa: T201
    return 0


if __name__ == "__main__":
    sys.exit(main())
