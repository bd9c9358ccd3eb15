"""Accept, query or reject a claimed success rate from labels of a sample, by a rule that applies after each label.

N runs have claims: S are a success, F are not. People who audit all runs would find that U of the claimed successes are
wrong, and that V of the others are successes. So the claimed rate is too high by (U - V) / N. In both strata, runs are
audited in a random order without replacement; which stratum comes next is fixed before.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from math import ceil, lgamma, log

import numpy as np

from evaluations.statistics.tally import Floats

ALPHA = 0.05
LIMIT = -log(ALPHA) - 1e-9  # of logarithms: a ratio of exactly 1 / alpha decides, however programs round
HONEST = (0.05, 0.15)  # shares of the runs on which honest people differ, half of them in each direction
TOO_HIGH = (0.07, 0.12, 0.2, 0.35)  # by how much a claimed rate is too high
USUAL = 0.08  # share of the runs that differ evenly, in addition to `TOO_HIGH`
ANYTHING = 0.05  # weight of all shares, equally likely, so that no label is impossible
LEAST_SHARE = 0.7  # of claimed successes among the drawn runs
PARTS = 1000  # values of the share V / F that `_log_honest` tries


class Decision(StrEnum):
    CONTINUE = "continue"
    ACCEPT = "accept"
    QUERY = "query"
    REJECT = "reject"


@dataclass(frozen=True, slots=True)
class Audited:
    """Audited runs: claimed successes and how many are wrong; other runs and how many are successes."""

    successes: int = 0
    refuted: int = 0
    others: int = 0
    missed: int = 0

    @property
    def runs(self) -> int:
        return self.successes + self.others

    def add(self, claimed: bool, found: bool) -> Audited:
        if claimed:
            return replace(self, successes=self.successes + 1, refuted=self.refuted + (not found))
        return replace(self, others=self.others + 1, missed=self.missed + found)


@dataclass(frozen=True, slots=True)
class Outcome:
    """What is known at the last look. ``after``: number of runs at the look that showed the decision; None before.

    ``difference`` is the claimed rate minus the audited one, None until both strata have a run; ``low`` and ``high``
    are the ends of its interval, each beyond the true difference at any look with a probability of at most 5%.
    """

    audited: Audited
    decision: Decision
    after: int | None
    difference: float | None
    low: float
    high: float


def share_out(successes: int, others: int, size: int) -> tuple[int, int]:
    """Return how many of ``size`` runs to draw from the claimed successes, and how many from the others.

    At least 70% are claimed successes: only wrong ones make a rate too high, and the others bound V.
    """
    wanted = round(size * max(LEAST_SHARE, successes / (successes + others)))
    drawn = min(max(wanted, size - others), successes, size)
    return drawn, size - drawn


class Acceptance:
    """The rule for S claimed ``successes`` and F ``others``; ``tolerance`` is a share of all N runs.

    L(U, V) is the probability of the labels, hypergeometric in each stratum. Q is their probability under a mixture of
    shares that is fixed here. Q / L of the true U and V is a martingale with mean 1, so by Ville's inequality it ever
    reaches 20 with a probability of at most 5%.

    - Accept if Q / L >= 20 for all U - V >= tolerance N. Q mixes honest differences. So a claimed rate that is
      too high by the tolerance or more is accepted in at most 5%.
    - Reject if Q / H >= 20. H is the largest probability of labels that differ independently, with a chance of u among
      claimed successes and v among others, S u <= F v. Q mixes rates that are too high. So people who differ as often
      in both directions, however often, are rejected in at most 5%.

    ValueError unless the claimed rate is at least the tolerance and below 1. Sources: Wasserman, Ramdas and
    Balakrishnan (2020), Universal inference, PNAS 117; Waudby-Smith and Ramdas (2020), Confidence sequences for
    sampling without replacement, NeurIPS 33.
    """

    def __init__(self, successes: int, others: int, tolerance: float) -> None:
        self.successes, self.others, self.total = successes, others, successes + others
        self.least = ceil(tolerance * self.total - 1e-9)  # U - V of a rate that must not be accepted
        if not (others and 0 < self.least <= successes):
            raise ValueError("The claimed rate must be at least the tolerance and below 100%.")
        self._logs = np.array([lgamma(n + 1) for n in range(self.total + 2)])
        self._honest = [self._rates(0, differing) for differing in HONEST]
        self._too_high = [self._rates(excess, USUAL) for excess in TOO_HIGH]

    def _rates(self, excess: float, differing: float) -> tuple[float, float]:
        """Return the shares U / S and V / F if ``differing`` of the runs differ evenly, with ``excess`` in addition."""
        u, v = (excess + differing / 2) / self.successes, differing / 2 / self.others
        return min(u * self.total, 0.9), min(v * self.total, 0.9)

    def decide(self, audited: Audited, last: bool = False) -> Decision:
        """Return the decision of one look. ``last``: no run is left to audit."""
        if self._log_ratio_above(audited, self.least) >= LIMIT:
            return Decision.ACCEPT
        if self._log_mixture(audited, self._too_high) - self._log_honest(audited) >= LIMIT:
            return Decision.REJECT
        return Decision.QUERY if last else Decision.CONTINUE

    def follow(self, labels: Sequence[tuple[bool, bool]], size: int, every: int = 1) -> Outcome:
        """Return what is shown after every ``every`` labels, and after the last of ``size``.

        ``labels`` (n,) are the claimed and the audited success of each run, in the order of the draw. The rule
        applies after each label, and its first decision stands, whatever follows.
        """
        shown = Outcome(Audited(), Decision.CONTINUE, None, None, -1.0, 1.0)
        audited, decision, low, high = shown.audited, shown.decision, shown.low, shown.high
        for number, label in enumerate(labels, start=1):
            audited, before, is_look = audited.add(*label), decision, number % every == 0 or number == size
            if decision is Decision.CONTINUE:
                decision = self.decide(audited, last=number == size)
            if is_look or decision is not before:
                lower, upper = self.find_interval(audited)
                low, high = max(low, lower), min(high, upper)
            if is_look:
                after = shown.after or (None if decision is Decision.CONTINUE else number)
                shown = Outcome(audited, decision, after, self.estimate(audited), low, high)
        return shown

    def estimate(self, audited: Audited) -> float | None:
        """Return the estimated difference of the rates, (S refuted / successes - F missed / others) / N."""
        if not (audited.successes and audited.others):
            return None
        refuted, missed = audited.refuted / audited.successes, audited.missed / audited.others
        return (self.successes * refuted - self.others * missed) / self.total

    def find_interval(self, audited: Audited) -> tuple[float, float]:
        """Return the least and the largest (U - V) / N that one look does not exclude."""
        every = range(-self.others, self.successes + 1)
        high = bisect_left(every, True, key=lambda least: self._log_ratio_above(audited, least) >= LIMIT) - 1
        low = bisect_left(every, True, key=lambda most: self._log_ratio_below(audited, most) < LIMIT)
        return every[min(low, len(every) - 1)] / self.total, every[max(high, 0)] / self.total

    def _log_ratio_above(self, audited: Audited, least: int) -> float:
        """Return the smallest log Q / L over U - V >= ``least``, with honest differences in Q."""
        refuted, missed = self._log_likelihoods(audited)
        largest = np.maximum.accumulate(refuted[::-1])[::-1]  # over all U from its index on
        starts = np.arange(self.others + 1) + least
        fits = starts <= self.successes
        best = (largest[np.maximum(starts[fits], 0)] + missed[fits]).max(initial=-np.inf)
        return float(self._log_mixture(audited, self._honest) - best)

    def _log_ratio_below(self, audited: Audited, most: int) -> float:
        """Return the smallest log Q / L over U - V <= ``most``, with rates that are too high in Q."""
        refuted, missed = self._log_likelihoods(audited)
        largest = np.maximum.accumulate(refuted)
        ends = np.arange(self.others + 1) + most
        fits = ends >= 0
        best = (largest[np.minimum(ends[fits], self.successes)] + missed[fits]).max(initial=-np.inf)
        return float(self._log_mixture(audited, self._too_high) - best)

    def _log_likelihoods(self, audited: Audited) -> tuple[Floats, Floats]:
        """Return log L by U (S + 1,) and by V (F + 1,)."""
        return (
            self._log_hypergeometric(self.successes, audited.successes, audited.refuted),
            self._log_hypergeometric(self.others, audited.others, audited.missed),
        )

    def _log_hypergeometric(self, total: int, drawn: int, hits: int) -> Floats:
        """Return by T = 0..total the log of C(total - drawn, T - hits) / C(total, T): labels in their order."""
        logs, every, left = self._logs, np.arange(total + 1), total - drawn
        more = every - hits
        fits, more = (more >= 0) & (more <= left), np.clip(more, 0, left)
        found = logs[left] - logs[more] - logs[left - more] - logs[total] + logs[every] + logs[total - every]
        return np.where(fits, found, -np.inf)

    def _log_mixture(self, audited: Audited, rates: Sequence[tuple[float, float]]) -> float:
        """Return log Q: each of the ``rates`` has the same weight, and all shares together have `ANYTHING`."""
        n, k, m, j = audited.successes, audited.refuted, audited.others, audited.missed
        weight, logs = log((1 - ANYTHING) / len(rates)), self._logs
        found = [weight + k * log(u) + (n - k) * log(1 - u) + j * log(v) + (m - j) * log(1 - v) for u, v in rates]
        of_all = logs[k] + logs[n - k] - logs[n + 1] + logs[j] + logs[m - j] - logs[m + 1]
        return float(np.logaddexp.reduce([*found, log(ANYTHING) + of_all]))

    def _log_honest(self, audited: Audited) -> float:
        """Return log H: for each v the best u is the observed share, at most F v / S."""
        v = np.linspace(0, 1, PARTS + 1)
        u = np.minimum(self.others * v / self.successes, audited.refuted / max(audited.successes, 1))
        right, kept = audited.successes - audited.refuted, audited.others - audited.missed
        powers = ((audited.refuted, u), (right, 1 - u), (audited.missed, v), (kept, 1 - v))
        with np.errstate(divide="ignore"):
            logs = [times * np.log(share) for times, share in powers if times]
        return float(np.max(sum(logs, np.zeros(PARTS + 1))))
