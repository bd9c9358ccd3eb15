"""Whether a bootstrap interval can be right, without the generator of random numbers that it was drawn with.

An interval in a report is the 2.5 and the 97.5 percentile of R resampled values; it depends on NumPy's generator, which
the standard library does not have. So resamples of our own are drawn, R' of them, and the question is which percentiles
of other draws from the same distribution could be far from ours by chance.

The 2.5 percentile of R values lies between their j-th and (j + 1)-th smallest, j about R / 40. Both samples come from
one distribution, so all orders of the R + R' values are equally likely, whatever that distribution is, and K, the
number of ours below their j-th smallest, is negative hypergeometric:
P(K = k) = C(k + j - 1, k) C(R' - k + R - j, R' - k) / C(R + R', R'). Its outermost values, of a probability of `RARE`,
are left out; those that stay bound, by their places in our sample, where an honest end can be. Ties, which figures of
few cases have, only make honest ends likelier, since the bounds themselves are allowed. With R = R' = 2,000 an end may
lie between about our 0.5 and 6 percentile: where values are normal that is 0.6 of their standard deviation too far
out, or 0.4 too far in.

There is no interval where more than 1 % of the R values are undefined. How many of ours then are is bounded by the same
K, as if an undefined value were smaller than all others. Only figures that are just there undefined by chance are ever
near that bound, so it may be wrong less rarely.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from math import ceil, exp, floor, inf, isclose, lgamma
from random import Random

RARE = 1e-8  # of one bound of an honest interval; a bundle has some hundred bounds
TAIL = 0.025
MOST_UNDEFINED = 0.01
RARE_MISSING = 1e-5
MOST_OWN, FEWEST_OWN = 2000, 300  # resamples of our own
MOST_DRAWN = 10_000_000  # cases drawn for one set of resamples: about a second
NO_WIDTH = 1e-12

Statistic = Callable[[Sequence[int]], "float | None"]
Bounds = tuple[float, float]


@dataclass(frozen=True)
class Ends:
    """Where the ends of an interval can be. ``needed``: there must be one; ``allowed``: there may be one."""

    low: Bounds = (inf, -inf)
    high: Bounds = (inf, -inf)
    needed: bool = False
    allowed: bool = False


NOWHERE = Ends()


def is_within(number: float, bounds: Bounds) -> bool:
    return bounds[0] <= number <= bounds[1] or any(isclose(number, end, rel_tol=1e-9, abs_tol=1e-9) for end in bounds)


class Resamples:
    """Draws with replacement from cases of p kinds, ``times`` (p,) of each; all figures of the cases share them."""

    def __init__(self, times: Sequence[int], seed: int = 0) -> None:
        self.times = list(times)
        self.seed = seed

    def ends(self, statistic: Statistic, theirs: int) -> Ends:
        """Where the interval of ``statistic`` can be that was made of ``theirs`` resamples.

        ``statistic`` makes a number, or None, of how often each kind was drawn (p,).
        """
        if not sum(self.times):
            return NOWHERE
        own = [statistic(times) for times in self._draws]
        return possible_ends([value for value in own if value is not None], len(own), theirs)

    @cached_property
    def _draws(self) -> list[list[int]]:
        random = Random(self.seed)  # noqa: S311 - a sample, not a secret
        cases = [kind for kind, times in enumerate(self.times) for _ in range(times)]
        number = max(FEWEST_OWN, min(MOST_OWN, MOST_DRAWN // len(cases)))
        counts = (Counter(random.choices(cases, k=len(cases))) for _ in range(number))
        return [[each[kind] for kind in range(len(self.times))] for each in counts]


def possible_ends(values: list[float], own: int, theirs: int) -> Ends:
    """From the defined ones of ``own`` values where the ends of an interval from ``theirs`` can be."""
    undefined = floor(MOST_UNDEFINED * theirs + 1e-9) + 1  # so many of theirs, or more, and there is no interval
    fewest, most = ranks(own, theirs, undefined, RARE_MISSING)
    size, missing = len(values), own - len(values)
    if not values or missing > most or max(values) - min(values) < NO_WIDTH:
        return NOWHERE
    # The fewest and the most of our values that can lie beyond the end of an honest interval.
    first = floor(TAIL * (ceil((1 - MOST_UNDEFINED) * theirs) - 1)) + 1  # with as many undefined as there can be
    last = floor(TAIL * (theirs - 1)) + 2
    least, greatest = ranks(size, theirs, first)[0], ranks(size, theirs, last)[1]
    ordered = [-inf, *sorted(values), inf]
    low, high = (ordered[least], ordered[greatest + 1]), (ordered[size - greatest], ordered[size + 1 - least])
    return Ends(low, high, needed=missing < fewest, allowed=True)


@lru_cache(maxsize=1000)
def ranks(own: int, theirs: int, place: int, rare: float = RARE) -> tuple[int, int]:
    """The least and the greatest K, but for a probability of ``rare`` on either side: how many of ``own`` values are
    below the ``place``-th smallest (from 1) of ``theirs``."""
    probability = exp(
        lgamma(own + theirs - place + 1) - lgamma(theirs - place + 1) - lgamma(own + theirs + 1) + lgamma(theirs + 1)
    )
    below, least = 0.0, 0
    for number in range(own):
        if below + probability <= rare:
            least = number + 1
        below += probability
        if below >= 1 - rare:
            return least, number
        probability *= (number + place) * (own - number) / ((number + 1) * (own - number + theirs - place))
    return least, own
