"""Populations of trajectories of which a random draw is labelled, for tests of estimates."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from evaluations.statistics.estimates import Case


@dataclass(frozen=True, slots=True)
class Population:
    """``total`` trajectories with this rate; ``sensitivity`` None is a population without a judge."""

    total: int
    rate: float
    sensitivity: float | None = 0.68
    specificity: float = 0.99
    attempts: int = 1

    def draw(self, labels: int, seed: int) -> tuple[list[Case], float]:
        """Return the cases, ``labels`` of which a simple random draw labelled, and their true rate."""
        random = np.random.default_rng(seed)
        truth = (random.random(self.total) < self.rate).astype(int)
        success = np.where(truth == 1, self.sensitivity or 0, 1 - self.specificity)
        verdicts = (random.random(self.total) < success).astype(float)
        drawn = set(random.permutation(self.total)[:labels].tolist())
        cases = [
            Case(
                "",
                None if self.sensitivity is None else verdict,
                label if place in drawn else None,
                labels / self.total,
                str(place // self.attempts),
            )
            for place, (verdict, label) in enumerate(zip(verdicts.tolist(), truth.tolist(), strict=True))
        ]
        return cases, float(truth.mean())


def cells(*counts: tuple[str, float | None, int, int, int], probability: float | None = None) -> list[Case]:
    """Return cases from (stratum, judge, successes, failures, unlabelled); the draw is of as many as are labelled."""
    sizes: dict[str, list[int]] = {}
    for stratum, _, hits, misses, rest in counts:
        size = sizes.setdefault(stratum, [0, 0])
        size[0], size[1] = size[0] + hits + misses, size[1] + hits + misses + rest
    found = []
    for stratum, judge, hits, misses, rest in counts:
        chance = probability or sizes[stratum][0] / sizes[stratum][1]
        for label, times in ((1, hits), (0, misses), (None, rest)):
            found += [Case(stratum, judge, label, chance, f"{stratum} {judge} {label} {at}") for at in range(times)]
    return found
