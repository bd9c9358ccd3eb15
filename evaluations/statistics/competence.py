"""Estimates of each annotator's reliability from the labels alone: hints for QA, never a label.

Both models are fitted by expectation maximisation over the distinct patterns of (annotator, label) on an item. Both
start from the votes and not at random, so that the same labels always give the same result, whatever the names and the
order of annotators and items.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Hashable, Iterable, Mapping
from dataclasses import dataclass
from itertools import chain
from typing import Generic, TypeVar

import numpy as np

from evaluations.statistics.coefficients import ALL_SAME, NO_PAIRS
from evaluations.statistics.measure import Measure
from evaluations.statistics.tally import VERDICTS, Floats, Integers

Name = TypeVar("Name", bound=Hashable)

STEPS = 5000
SETTLED = 1e-7  # change of any probability of a true label in a step
SETTLED_GROWTH = (
    1e-5  # relative growth of any of them: near a saddle point a tiny probability grows slowly for many steps
)
STRAIGHT, SMALL = 0.9999, 1e-3  # cosine between two steps, and their size, from which they count as collinear
NOT_SETTLED = f"the estimate did not settle in {STEPS:,} steps"
TINY = 1e-300  # treated as 0
IMPOSSIBLE = -10_000.0  # instead of the logarithm of 0: its exponential is 0, and sums of it can be compared
TRUST_PRIOR, STRATEGY_PRIOR = 0.5, 10.0  # of MACE, as in its paper


@dataclass(frozen=True, slots=True)
class Competence(Generic[Name]):
    """Competence ``of`` each annotator, from 0 to 1, n being their number of labels; ``shares`` of the true labels.

    Undefined for everybody with fewer than three annotators (any two can explain a difference equally well), if all
    labels are the same, and if the estimation did not converge (``converged`` is False). Undefined for annotators who
    share no item with anybody.
    """

    of: Mapping[Name, Measure]
    shares: tuple[float, ...] = ()
    converged: bool = True


@dataclass(frozen=True, slots=True, eq=False)
class Votes(Generic[Name]):
    """Labels of items with labels of two or more annotators; equal items are stored once.

    ``code`` (l,) is annotator * k + label, ``starts`` (p,) the start of each pattern in it, ``pattern`` (l,) the
    pattern of each code, ``weight`` (p,) the number of items with the pattern.
    """

    annotators: list[Name]
    k: int
    code: Integers
    starts: Integers
    pattern: Integers
    weight: Floats

    @classmethod
    def of(cls, triplets: Iterable[tuple[Hashable, Name, int]], k: int) -> Votes[Name]:
        annotators: dict[Name, int] = {}
        items: defaultdict[Hashable, list[int]] = defaultdict(list)
        for item, annotator, label in triplets:
            if not 0 <= label < k:
                raise ValueError(f"{label} is none of the labels 0 to {k - 1}.")
            items[item].append(annotators.setdefault(annotator, len(annotators)) * k + int(label))
        found = Counter(tuple(sorted(codes)) for codes in items.values())
        del items
        kept = {codes: times for codes, times in found.items() if codes[0] // k != codes[-1] // k}
        lengths = np.fromiter(map(len, kept), np.int64, len(kept))
        code = np.fromiter(chain.from_iterable(kept), np.int64, int(lengths.sum()))
        weight = np.fromiter(kept.values(), float, len(kept))
        pattern = np.repeat(np.arange(len(kept)), lengths)
        return cls(list(annotators), k, code, np.cumsum(lengths) - lengths, pattern, weight)

    def summed(self, per_code: Floats) -> Floats:
        """Sum (annotators * k,) values of a code over each pattern: (p,)."""
        return np.add.reduceat(per_code[self.code], self.starts)

    def counted(self, per_vote: Floats) -> Floats:
        """Sum (l,) values of a vote, times the items with its pattern, by (annotators, k)."""
        weights = per_vote * self.weight[self.pattern]
        counts = np.bincount(self.code, weights, len(self.annotators) * self.k)
        return counts.reshape(-1, self.k).astype(float, copy=False)

    def support(self, posterior: Floats) -> Floats:
        """Return (l,): the probability that the label of each vote is the true one, given (p, k)."""
        return posterior[self.pattern, self.code % self.k]

    def shares(self) -> Floats:
        """Return (p, k): the distribution of the votes on each pattern."""
        votes = np.bincount(self.pattern * self.k + self.code % self.k, minlength=len(self.weight) * self.k)
        votes = votes.reshape(-1, self.k)
        result: Floats = votes / votes.sum(axis=1, keepdims=True)
        return result

    def why_not(self) -> str:
        """Return why nothing can be estimated, or ""."""
        if not len(self.code):
            return NO_PAIRS
        if len(np.unique(self.code // self.k)) < 3:
            return "fewer than three annotators"
        return ALL_SAME if len(np.unique(self.code % self.k)) == 1 else ""

    def measures(self, competence: Floats) -> dict[Name, Measure]:
        labels = self.counted(np.ones(len(self.code))).sum(axis=1)
        return {
            name: Measure(float(min(value, 1.0)), int(n)) if n else Measure.missing("shares no item with anybody")
            for name, value, n in zip(self.annotators, competence, labels, strict=True)
        }

    def none(self, why: str) -> Competence[Name]:
        return Competence({name: Measure.missing(why) for name in self.annotators}, converged=why != NOT_SETTLED)


def dawid_skene(triplets: Iterable[tuple[Hashable, Name, int]], k: int = VERDICTS) -> Competence[Name]:
    """Each annotator's expected share of right labels, after Dawid and Skene.

    ``triplets``: item, annotator and label in 0 to k - 1; ValueError for another label. Annotator j calls a true c
    an l with probability pi_j[c, l], independently of others. E: P(T_i = c) is in proportion to
    share_c prod_j pi_j[c, a_ij]; M: pi and the shares are the frequencies that this expects. The competence of j is
    the mean of P(T_i = a_ij) over the labels of j. Source: Dawid and Skene (1979), Applied Statistics 28, 20-28.
    """
    votes = Votes.of(triplets, k)
    if why := votes.why_not():
        return votes.none(why)
    posterior, converged = _fitted(votes, votes.shares(), _dawid_skene_step)
    if not converged:
        return votes.none(NOT_SETTLED)
    support = votes.counted(votes.support(posterior)).sum(axis=1)
    labels = votes.counted(np.ones(len(votes.code))).sum(axis=1)
    shares = votes.weight @ posterior / votes.weight.sum()
    return Competence(votes.measures(support / np.maximum(labels, 1)), tuple(shares.tolist()))


def _dawid_skene_step(votes: Votes[Name], posterior: Floats) -> Floats:
    """Do one M and one E step: (p, k)."""
    shares = votes.weight @ posterior / votes.weight.sum()
    scores = np.tile(_logarithm(shares), (len(posterior), 1))
    for true in range(votes.k):
        counts = votes.counted(posterior[votes.pattern, true])
        rates = counts / np.maximum(counts.sum(axis=1, keepdims=True), TINY)
        scores[:, true] += votes.summed(_logarithm(rates).reshape(-1))
    return _normalised(scores)


def _logarithm(values: Floats) -> Floats:
    result: Floats = np.where(values > TINY, np.log(np.maximum(values, TINY)), IMPOSSIBLE)
    return result


def mace(triplets: Iterable[tuple[Hashable, Name, int]], k: int = VERDICTS) -> Competence[Name]:
    """Each annotator's probability of not guessing, after MACE (multi-annotator competence estimation).

    ``triplets`` as in `dawid_skene`. True labels are equally likely. Annotator j knows the true label with probability
    theta_j and gives it, or else guesses l with probability xi_j[l]. Variational Bayes with the priors of the paper,
    Beta(0.5, 0.5) for theta and Dirichlet(10) for xi; the competence is the mean of the posterior of theta. The
    paper takes the best of random starts, here there is one, from the votes. Where true labels are far from equally
    likely the model takes part of knowing for guessing, so compare annotators, do not read it as an accuracy.
    Source: Hovy, Berg-Kirkpatrick, Vaswani and Hovy (2013), Learning Whom to Trust with MACE, NAACL-HLT, 1120-1130.
    """
    votes = Votes.of(triplets, k)
    if why := votes.why_not():
        return votes.none(why)
    fit = _Mace(votes)
    posterior, converged = _fitted(votes, _normalised(votes.shares()), fit.step)
    if not converged:
        return votes.none(NOT_SETTLED)
    shares = votes.weight @ posterior / votes.weight.sum()
    return Competence(votes.measures(fit.competence()), tuple(shares.tolist()))


class _Mace(Generic[Name]):
    """``knew`` and ``guessed`` (annotators, k): expected numbers of labels that were known or guessed."""

    def __init__(self, votes: Votes[Name]) -> None:
        self.labels = votes.counted(np.ones(len(votes.code)))
        self.odds = np.full(self.labels.shape, float(votes.k))  # odds that a right label was known
        self.knew = self.labels / 2

    def step(self, votes: Votes[Name], posterior: Floats) -> Floats:
        """Estimate which labels were known, fit theta and xi, and estimate the true labels again: (p, k)."""
        self.knew = votes.counted(votes.support(posterior)) * self.odds / (1 + self.odds)
        guessed = self.labels - self.knew
        strategy = _digamma(guessed + STRATEGY_PRIOR) - _digamma((guessed + STRATEGY_PRIOR).sum(axis=1, keepdims=True))
        trust = _digamma(self.knew.sum(axis=1, keepdims=True) + TRUST_PRIOR)
        spam = _digamma(guessed.sum(axis=1, keepdims=True) + TRUST_PRIOR)
        self.odds = np.exp(trust - spam - strategy)
        scores = np.zeros_like(posterior)
        for label in range(votes.k):
            only = np.zeros_like(self.odds)
            only[:, label] = np.log1p(self.odds[:, label])
            scores[:, label] = votes.summed(only.reshape(-1))
        return _normalised(scores)

    def competence(self) -> Floats:
        result: Floats = (self.knew.sum(axis=1) + TRUST_PRIOR) / (self.labels.sum(axis=1) + 2 * TRUST_PRIOR)
        return result


def _fitted(
    votes: Votes[Name], posterior: Floats, step: Callable[[Votes[Name], Floats], Floats]
) -> tuple[Floats, bool]:
    """Return the posterior (p, k) of the true labels after convergence, and whether it has converged.

    If two steps are small and collinear, expectation maximisation converges slowly. Then the posterior is extrapolated
    along them, unless the step after that is larger than the last one. Source: scheme S3 of Varadhan and Roland (2008),
    Scandinavian Journal of Statistics 35, 335-353.
    """
    steps = 0
    while steps < STEPS:
        one = step(votes, posterior)
        two = step(votes, one)
        steps += 2
        first, second = one - posterior, two - one
        moved = np.abs(second).max()
        if moved < SETTLED and (second / np.maximum(one, TINY)).max() < SETTLED_GROWTH:
            return two, True
        posterior = two
        if moved < SMALL and float((first * second).sum()) > STRAIGHT * _length(first) * _length(second):
            ahead = _ahead(two, first, second)
            after = step(votes, ahead)
            steps += 1
            if np.abs(after - ahead).max() < moved:
                posterior = after
    return posterior, False


def _ahead(reached: Floats, first: Floats, second: Floats) -> Floats:
    """Extrapolate two steps (p, k) to ``reached``, as if all further steps shrank by the same factor."""
    bend = second - first
    times = max(1.0, _length(first) / max(_length(bend), TINY))
    start = reached - first - second
    ahead = np.maximum(start + 2 * times * first + times**2 * bend, reached / 1000)  # stays above 0
    result: Floats = ahead / ahead.sum(axis=1, keepdims=True)
    return result


def _length(values: Floats) -> float:
    return float(np.sqrt((values * values).sum()))


def _normalised(scores: Floats) -> Floats:
    """Convert logarithms (p, k) to probabilities, by row."""
    odds = np.exp(scores - scores.max(axis=1, keepdims=True))
    result: Floats = odds / odds.sum(axis=1, keepdims=True)
    return result


def _digamma(x: Floats) -> Floats:
    """For x > 0, to about 1e-12: psi(x) = psi(x + 1) - 1/x up to 6, then its asymptotic series (DLMF 5.5.2, 5.11.2)."""
    x = x.copy()
    result = np.zeros_like(x)
    while (small := x < 6).any():
        result[small] -= 1 / x[small]
        x[small] += 1
    square = 1 / (x * x)
    series = square * (1 / 12 - square * (1 / 120 - square * (1 / 252 - square * (1 / 240 - square / 132))))
    final: Floats = result + np.log(x) - 0.5 / x - series
    return final
