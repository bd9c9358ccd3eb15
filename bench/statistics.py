"""Measure coefficients of a million labels: ``python -m bench.statistics``, a part of `make bench`.

Each case runs in a separate process, so that its peak memory is its own. Prints a table that states
which case is over its budget; this is not a failure, since times depend on the machine.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from bench.processes import read_memory, run_apart
from evaluations.statistics import (
    Tally,
    alpha_of_label,
    dawid_skene,
    fleiss_kappa,
    gwet_ac1,
    krippendorff_alpha,
    mace,
    raw_agreement,
    with_interval,
)

LABELS = 1_000_000
RESAMPLES = 2000
SECONDS, MEGABYTES = 20, 1000  # the budget of alpha with its interval, computed from labels
SKILLS = (0.6, 0.95)  # lowest and highest probability that an annotator knows the true label
MISSING = 0.03


@dataclass(frozen=True, slots=True)
class Cost:
    """Cost of one case: the numbers of labels and of patterns (or annotators), the seconds and the memory."""

    labels: int
    patterns: int
    seconds: float
    megabytes: float


def three_raters() -> list[list[int]]:
    """Return the labels of each item by three raters who miss some."""
    random = np.random.default_rng(1)
    table = guessed(random, round(LABELS / 3 / (1 - MISSING)) + 1000, np.linspace(*SKILLS, 3))
    table[random.random(table.shape) < MISSING] = -1
    return [[label for label in row if label >= 0] for row in table.tolist()]


def fifty_raters() -> list[list[int]]:
    """Return labels of 2 to 50 raters per item who agree on some items only, to get as many patterns as possible."""
    random = np.random.default_rng(2)
    items = LABELS // 26 + 1000
    likely = random.dirichlet((0.7, 0.7, 0.7), items)
    return [
        random.choice(3, number, p=p).tolist() for number, p in zip(random.integers(2, 51, items), likely, strict=True)
    ]


def triplets(annotators: int) -> list[tuple[int, int, int]]:
    """Return item, annotator and label, with three annotators per item."""
    random = np.random.default_rng(3)
    items = LABELS // 3 + 1
    skill = np.linspace(*SKILLS, annotators)
    who = random.random((items, annotators)).argsort(axis=1)[:, :3]
    labels = guessed(random, items, skill[who])
    where = np.repeat(np.arange(items), 3)
    return list(zip(where.tolist(), who.reshape(-1).tolist(), labels.reshape(-1).tolist(), strict=True))


def guessed(random: np.random.Generator, items: int, skill: np.ndarray) -> np.ndarray:
    """Return labels (items, raters) of raters who know the true one with probability ``skill``, or else guess."""
    truth = random.choice(3, (items, 1), p=(0.5, 0.4, 0.1))
    shape = (items, skill.shape[-1])
    return np.where(random.random(shape) < skill, truth, random.integers(0, 3, shape))


def alpha(made: Callable[[], list[list[int]]]) -> Cost:
    """Measure Krippendorff's alpha with its interval, from the labels of each item."""
    items = made()
    began = time.perf_counter()
    tally = Tally.of_labels(items)
    with_interval(tally, krippendorff_alpha, resamples=RESAMPLES)
    return cost(sum(tally.totals), len(tally.times), began)


def everything(made: Callable[[], list[list[int]]]) -> Cost:
    """Measure all coefficients, each with its interval, and alpha of each label."""
    items = made()
    began = time.perf_counter()
    tally = Tally.of_labels(items)
    for coefficient in (raw_agreement, krippendorff_alpha, fleiss_kappa, gwet_ac1):
        with_interval(tally, coefficient, resamples=RESAMPLES)
    for label in range(3):
        alpha_of_label(label)(tally)
    return cost(sum(tally.totals), len(tally.times), began)


def competence(model: Callable[[Iterable[tuple[int, int, int]]], object], annotators: int) -> Cost:
    """Measure ``model`` with this number of annotators, three per item."""
    given = triplets(annotators)
    began = time.perf_counter()
    model(given)
    return cost(len(given), annotators, began)


def cost(labels: int, patterns: int, began: float) -> Cost:
    return Cost(labels, patterns, time.perf_counter() - began, read_memory("VmHWM"))


@dataclass(frozen=True, slots=True)
class Case:
    """A measurement: ``measure(*arguments)`` runs in a separate process; ``of_what`` names its ``patterns``."""

    name: str
    measure: Callable[..., Cost]
    arguments: tuple[object, ...]
    of_what: str
    budget: bool = False


CASES = (
    Case(f"alpha, {RESAMPLES} resamples", alpha, (three_raters,), "patterns of 3 raters", budget=True),
    Case(f"alpha, {RESAMPLES} resamples", alpha, (fifty_raters,), "patterns of 2-50 raters", budget=True),
    Case("4 coefficients, so many each", everything, (three_raters,), "patterns of 3 raters"),
    Case("4 coefficients, so many each", everything, (fifty_raters,), "patterns of 2-50 raters"),
    Case("Dawid-Skene", competence, (dawid_skene, 3), "annotators"),
    Case("Dawid-Skene", competence, (dawid_skene, 50), "annotators"),
    Case("MACE", competence, (mace, 3), "annotators"),
    Case("MACE", competence, (mace, 50), "annotators"),
)


TITLES = ("statistics", "labels", "brought down to", "s", "peak MB", "")
WIDTHS = (30, 12, 32, 8, 9, 24)


def row(case: Case) -> tuple[str, ...]:
    """Format the result as a line of the table."""
    took = run_apart(case.measure, *case.arguments)
    over = took.seconds > SECONDS or took.megabytes > MEGABYTES
    return (
        case.name,
        f"{took.labels:,}",
        f"{took.patterns:,} {case.of_what}",
        f"{took.seconds:.2f}",
        f"{took.megabytes:.0f}",
        f"{'OVER' if over else 'within'} {SECONDS} s, {MEGABYTES} MB" if case.budget else "",
    )


def say(cells: Sequence[str]) -> None:
    line = "".join(f"{cell:<{width}}" for cell, width in zip(cells, WIDTHS, strict=False))
    print(line.rstrip(), flush=True)  # noqa: T201


def main(arguments: list[str] | None = None) -> int:
    argparse.ArgumentParser(prog="python -m bench.statistics", description=__doc__).parse_args(arguments)
    say(TITLES)
    for case in CASES:
        say(row(case))
    return 0


if __name__ == "__main__":
    sys.exit(main())
