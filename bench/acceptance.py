"""Simulate audits that are decided by sample (`statistics.acceptance`): ``python -m bench.acceptance``.

Each scenario has N runs, a claimed rate, the share of runs on which honest people differ evenly in both directions,
and the excess of the claimed rate in addition. The differences of honest submissions are random; those of the
others add up to exactly the excess. Prints how often the rule accepts, queries and rejects, and how many runs
are audited: the median and what 90% need, and the median if only every tenth run shows a decision. An audited
run is one final verdict; a sample of WebVerdict takes three labels for it, and adjudications.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache

import numpy as np

from evaluations.statistics.acceptance import Acceptance, Audited, Decision, share_out

RUNS, RATES, DISAGREEMENTS, EXCESSES = (100, 300, 1000), (0.4, 0.6), (0.05, 0.1, 0.15), (0.05, 0.1, 0.15, 0.2)
TOLERANCE, MOST_RUNS, LABELS, LOOK_EVERY = 0.1, 150, 3, 10
FALSE_SHARE = 0.1  # disagreement in addition to an excess


@dataclass(frozen=True, slots=True)
class Scenario:
    runs: int
    rate: float
    disagreement: float
    excess: float = 0.0

    @property
    def sizes(self) -> tuple[int, int]:
        successes = round(self.runs * self.rate)
        return successes, self.runs - successes


@dataclass(frozen=True, slots=True)
class Simulated:
    """Decisions (draws,), audited runs until then (draws,), and those if only every tenth run shows the decision."""

    decisions: np.ndarray
    runs: np.ndarray
    runs_by_tens: np.ndarray

    def share(self, decision: Decision) -> float:
        return float((self.decisions == decision).mean())


def scenarios() -> Iterator[Scenario]:
    for runs in RUNS:
        for rate in RATES:
            yield from (Scenario(runs, rate, differing) for differing in DISAGREEMENTS)
            yield from (Scenario(runs, rate, FALSE_SHARE, excess) for excess in EXCESSES)


def simulate(scenario: Scenario, draws: int, seed: int, most: int = MOST_RUNS) -> Simulated:
    random, (successes, others) = np.random.default_rng(seed), scenario.sizes
    rule = Acceptance(successes, others, TOLERANCE)
    decide = cache(rule.decide)
    size = min(most, scenario.runs)
    claimed = np.repeat([True, False], share_out(successes, others, size))
    found = []
    for _ in range(draws):
        wrong = dict(zip((True, False), draw_differences(scenario, random), strict=True))
        found.append(_follow(decide, random.permutation(claimed).tolist(), wrong))
    decisions, runs = (np.array(each) for each in zip(*found, strict=True))
    return Simulated(decisions, runs, np.minimum(-(-runs // LOOK_EVERY) * LOOK_EVERY, size))


def draw_differences(scenario: Scenario, random: np.random.Generator) -> tuple[list[bool], list[bool]]:
    """Return, in random order, whether each claimed success is wrong, and whether each other run is a success."""
    successes, others = scenario.sizes
    even = scenario.disagreement / 2 * scenario.runs
    refuted = random.random(successes) < (even + scenario.excess * scenario.runs) / successes
    missed = random.random(others) < even / others
    if scenario.excess:  # exactly
        number = round(scenario.excess * scenario.runs) + int(missed.sum())
        refuted = random.permutation(successes) < number
    return refuted.tolist(), missed.tolist()


def _follow(decide, claims: list[bool], wrong: dict[bool, list[bool]]) -> tuple[Decision, int]:  # type: ignore[no-untyped-def]
    """Return the first decision, and after how many runs."""
    audited, left = Audited(), {claim: iter(each) for claim, each in wrong.items()}
    for number, claim in enumerate(claims, start=1):
        audited = audited.add(claim, next(left[claim]) != claim)
        if (found := decide(audited, number == len(claims))) is not Decision.CONTINUE:
            return found, number
    raise AssertionError("The last run decides.")


TITLES = ("N", "claimed", "differ", "too high", "accept", "query", "reject", "median", "90%", "labels", "by tens")


def describe(scenario: Scenario, found: Simulated) -> tuple[str, ...]:
    median = float(np.median(found.runs))
    return (
        f"{scenario.runs}",
        f"{scenario.rate:.0%}",
        f"{scenario.disagreement:.0%}",
        f"{100 * scenario.excess:g}",
        *(f"{found.share(each):.1%}" for each in (Decision.ACCEPT, Decision.QUERY, Decision.REJECT)),
        f"{median:g}",
        f"{np.quantile(found.runs, 0.9):.0f}",
        f"{LABELS * median:g}",
        f"{np.median(found.runs_by_tens):g}",
    )


def say(cells: tuple[str, ...]) -> None:
    print("".join(f"{cell:<10}" for cell in cells).rstrip(), flush=True)  # noqa: T201


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m bench.acceptance", description=__doc__)
    parser.add_argument("--draws", type=int, default=2000, help="draws of each scenario")
    parser.add_argument("--max-size", type=int, default=MOST_RUNS, help="the most runs that are audited")
    options = parser.parse_args(arguments)
    began = time.perf_counter()
    say(TITLES)
    for at, scenario in enumerate(scenarios()):
        say(describe(scenario, simulate(scenario, options.draws, at, options.max_size)))
    print(f"{options.draws} draws each, at most {options.max_size} runs, {time.perf_counter() - began:.0f} s")  # noqa: T201
    return 0


if __name__ == "__main__":
    sys.exit(main())
