"""The figures of a report in plain Python, independent of `evaluations.statistics`, whose results they check.

docs/statistics.md has all formulas and when each is undefined (None here). Item u has m_u labels, n_uc of them of label
c of k. Items with the same labels are one pattern, the counts (n_u1, ..., n_uk), and `Patterns` has the number of items
of each pattern. An item is pairable if it has two labels or more.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from math import ceil, exp, floor, fsum, hypot, inf, isclose, lgamma, log, sqrt
from random import Random
from statistics import NormalDist
from typing import Any

from evaluations.verifier.canonical import MOST_DIGITS

RARE = 1e-8  # probability that one bound rejects an honest interval; a bundle has some hundred bounds
TAIL = 0.025
MOST_UNDEFINED = 0.01
RARE_MISSING = 1e-5
MOST_OWN, FEWEST_OWN = 2000, 300  # resamples of our own
MOST_DRAWN = 10_000_000  # cases drawn for one set of resamples: about a second
NO_WIDTH = 1e-12
SAME_RATIO = 1e-9  # of logarithms; a ratio of exactly 20 excludes

Statistic = Callable[[Sequence[int]], "float | None"]
Bounds = tuple[float, float]


@dataclass(frozen=True)
class Ends:
    """Bounds of both ends of an interval. ``needed``: the interval must exist; ``allowed``: it may exist."""

    low: Bounds = (inf, -inf)
    high: Bounds = (inf, -inf)
    needed: bool = False
    allowed: bool = False


NOWHERE = Ends()


def is_within(number: float, bounds: Bounds) -> bool:
    return bounds[0] <= number <= bounds[1] or any(isclose(number, end, rel_tol=1e-9, abs_tol=1e-9) for end in bounds)


class Resamples:
    """Draws with replacement from cases of p kinds, ``times`` (p,) per kind; all figures use the same draws."""

    def __init__(self, times: Sequence[int], seed: int = 0) -> None:
        self.times = list(times)
        self.seed = seed

    def ends(self, statistic: Statistic, theirs: int) -> Ends:
        """Return the bounds; ``statistic`` computes a number or None from how often each kind was drawn (p,)."""
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
    """Return bounds of the ends of a bootstrap interval of ``theirs`` values, from the defined ones of ``own`` values.

    An interval is the 2.5 and the 97.5 percentile of R values, resampled with NumPy's generator, which the standard
    library does not have. It is checked with R' resamples of our own. The 2.5 percentile lies between the j-th and
    (j + 1)-th smallest, j about R / 40. All orders of the R + R' values of one distribution are equally likely, so K,
    the number of ours below their j-th smallest, is negative hypergeometric:
    P(K = k) = C(k + j - 1, k) C(R' - k + R - j, R' - k) / C(R + R', R'). K without its outermost values, which have a
    probability of `RARE`, bounds an honest end. Ties only make honest ends likelier. With R = R' = 2,000 an end may
    lie between about our 0.5 and 6 percentile.

    There is no interval if more than 1% of the R values are undefined. The same K bounds the number of undefined
    values among ours, as if an undefined value were smaller than all others.
    """
    undefined = floor(MOST_UNDEFINED * theirs + 1e-9) + 1  # with this many of theirs, or more, there is no interval
    fewest, most = ranks(own, theirs, undefined, RARE_MISSING)
    size, missing = len(values), own - len(values)
    if not values or missing > most or max(values) - min(values) < NO_WIDTH:
        return NOWHERE
    # The fewest and the most of our values that can lie beyond the end of an honest interval.
    first = floor(TAIL * (ceil((1 - MOST_UNDEFINED) * theirs) - 1)) + 1  # with the most undefined values possible
    last = floor(TAIL * (theirs - 1)) + 2
    least, greatest = ranks(size, theirs, first)[0], ranks(size, theirs, last)[1]
    ordered = [-inf, *sorted(values), inf]
    low, high = (ordered[least], ordered[greatest + 1]), (ordered[size - greatest], ordered[size + 1 - least])
    return Ends(low, high, needed=missing < fewest, allowed=True)


@lru_cache(maxsize=1000)
def ranks(own: int, theirs: int, place: int, rare: float = RARE) -> tuple[int, int]:
    """Return the least and the greatest K, except for a probability of ``rare`` on either side: the number of ``own``
    values below the ``place``-th smallest (from 1) of ``theirs``."""
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


Patterns = Mapping[tuple[int, ...], int]

LABELS = 3  # failure, success, not executable
NORMAL_97_5 = NormalDist().inv_cdf(0.975)
EXCLUDED_TAIL = 0.025 * (1 - 1e-9)
FIXED_POINT, CELL = 1 << 64, 17  # bytes; sums of products of two probabilities are at most 2^128
OUTCOMES_OF_LABELS = ("unanimous", "majority", "split")


def patterns_of(items: Iterable[Sequence[int]], k: int = LABELS) -> dict[tuple[int, ...], int]:
    """Return the patterns of items from their labels (0 to k - 1); items without a label are left out."""
    found = Counter(tuple(sorted(labels)) for labels in items if labels)
    return {tuple(labels.count(label) for label in range(k)): times for labels, times in sorted(found.items())}


def pairable_items(patterns: Patterns) -> int:
    return sum(times for pattern, times in patterns.items() if sum(pattern) > 1)


def labels_compared(patterns: Patterns) -> list[int]:
    """Return the counts of each label on pairable items (k,), empty without a pattern."""
    paired = [(pattern, times) for pattern, times in patterns.items() if sum(pattern) > 1]
    return [sum(times * column[place] for column, times in paired) for place in range(_width(patterns))]


def raw_agreement(patterns: Patterns) -> float | None:
    """Compute P = mean over pairable u of sum_c n_uc (n_uc - 1) / (m_u (m_u - 1)): two labels of an item being equal.

    Source: Fleiss (1971), Psychological Bulletin 76, 378-382; for varying m_u Gwet (2014), Handbook of Inter-Rater
    Reliability, 4th edition.
    """
    if not (items := pairable_items(patterns)):
        return None
    equal = 0.0
    for pattern, times in patterns.items():
        if (raters := sum(pattern)) > 1:
            equal += times * sum(count * (count - 1) for count in pattern) / (raters * (raters - 1))
    return equal / items


def krippendorff_alpha(patterns: Patterns) -> float | None:
    """Compute 1 - (n - 1) (n - sum_c o_cc) / (n^2 - sum_c n_c^2), nominal labels, n = sum_c n_c of pairable items.

    Each pairable item adds n_uc (n_uc - 1) / (m_u - 1) to o_cc. Source: Krippendorff (2011), Computing Krippendorff's
    Alpha-Reliability.
    """
    given = labels_compared(patterns)
    labels = sum(given)
    expected = labels * labels - sum(count * count for count in given)
    if not expected:
        return None
    coinciding = 0.0
    for pattern, times in patterns.items():
        if (raters := sum(pattern)) > 1:
            coinciding += times * sum(count * (count - 1) for count in pattern) / (raters - 1)
    return 1 - (labels - 1) * (labels - coinciding) / expected


def alpha_of_one_label(patterns: Patterns, label: int) -> float | None:
    """Compute alpha of one label against all others. Source: Krippendorff (2004), Content Analysis, 11.5."""
    two: Counter[tuple[int, ...]] = Counter()
    for pattern, times in patterns.items():
        two[pattern[label], sum(pattern) - pattern[label]] += times
    return krippendorff_alpha(two)


def fleiss_kappa(patterns: Patterns) -> float | None:
    """Compute (P - P_e) / (1 - P_e), P of `raw_agreement`, P_e = sum_c p_c^2, p_c the mean n_uc / m_u of all items.

    Source: Fleiss (1971), Psychological Bulletin 76, 378-382; Gwet (2014), Handbook of Inter-Rater Reliability.
    """
    equal, shares = raw_agreement(patterns), _label_shares(patterns)
    if equal is None or sum(share > 0 for share in shares) < 2:
        return None
    by_chance = sum(share * share for share in shares)
    return (equal - by_chance) / (1 - by_chance)


def gwet_ac1(patterns: Patterns) -> float | None:
    """Compute (P - P_e) / (1 - P_e), P_e = sum_c p_c (1 - p_c) / (k - 1), P and p_c as in `fleiss_kappa`.

    Source: Gwet (2008), British Journal of Mathematical and Statistical Psychology 61, 29-48.
    """
    if (equal := raw_agreement(patterns)) is None:
        return None
    by_chance = sum(share * (1 - share) for share in _label_shares(patterns)) / (_width(patterns) - 1)
    return (equal - by_chance) / (1 - by_chance)


def cohen_kappa(table: Sequence[Sequence[int]]) -> float | None:
    """Compute (p_o - p_e) / (1 - p_e) with p_o, the share of the diagonal of a table (k, k).

    p_e = sum_c (row share) (column share). Source: Cohen (1960), Educational and Psychological Measurement 20, 37-46.
    """
    rows = [sum(row) for row in table]
    columns = [sum(column) for column in zip(*table, strict=True)]
    cases = sum(rows)
    by_chance = sum(row * column for row, column in zip(rows, columns, strict=True))
    if cases * cases == by_chance:  # also of no cases
        return None
    same = sum(table[place][place] for place in range(len(table)))
    return (cases * same - by_chance) / (cases * cases - by_chance)


def outcome_of_labels(labels: Sequence[int]) -> str:
    """Return whether all labels of an item are equal (unanimous), more than half (majority) or not (split)."""
    most = max(Counter(labels).values())
    if most == len(labels):
        return "unanimous"
    return "majority" if 2 * most > len(labels) else "split"


def majority_label(labels: Sequence[int]) -> int | None:
    return next((label for label, times in Counter(labels).items() if 2 * times > len(labels)), None)


def f1_score(tp: int, fp: int, tn: int, fn: int) -> float | None:
    return 2 * tp / (2 * tp + fp + fn) if tp or fp or fn else None


def kappa_of_cells(tp: int, fp: int, tn: int, fn: int) -> float | None:
    return cohen_kappa([[tp, fn], [fp, tn]])


def wilson_interval(hits: int, n: int) -> tuple[float, float]:
    """Return Wilson's 95% score interval of the rate hits / n, for n > 0, without continuity correction.

    Source: Wilson (1927), JASA 22, 209-212; method 3 of Newcombe (1998), Statistics in Medicine 17, 857-872.
    """
    rate, z = hits / n, NORMAL_97_5
    middle = rate + z * z / (2 * n)
    spread = z * sqrt(rate * (1 - rate) / n + z * z / (4 * n * n))
    low, high = (middle - spread) / (1 + z * z / n), (middle + spread) / (1 + z * z / n)
    return (low if hits else 0.0), (high if hits < n else 1.0)


def gap_figure(more: int, fewer: int, n: int) -> dict[str, Any]:
    """Return (more - fewer) / n of two rates on the same n cases, with Agresti and Min's 95% interval within -1 to 1.

    Half a case is added to each of the four cells. Source: Agresti and Min (2005), Statistics in Medicine 24, 729-740.
    """
    if not n:
        return coefficient_figure(None, 0, NO_CASES)
    cases = n + 2
    difference = (more - fewer) / cases
    spread = NORMAL_97_5 * sqrt((more + fewer + 1) / cases**2 - difference**2 / cases)
    low, high = max(-1.0, difference - spread), min(1.0, difference + spread)
    return {"value": (more - fewer) / n, "low": low, "high": high, "n": n}


def hits_left(parts: Sequence[tuple[int, int, int]]) -> tuple[float, float, float]:
    """Return the sum of left * hits / checked over ``parts`` (left, hits, checked > 0), with its 95% interval.

    With one part the interval has every number r of hits among the u left that a tail of 2.5% does not exclude:
    the hits in a draw of n out of n + u cases, k + r of them hits, are hypergeometric. The upper bound is then a
    quantile of the beta-binomial distribution of u trials with parameters k + 1 and n - k, the lower bound of the one
    with k and n - k + 1. With several parts these are convolved. It is widened to contain the value.
    Source: Buonaccorsi (1987), The American Statistician 41, 215-218; for several parts Fay, Proschan and Brittain
    (2015), Biometrics 71, 146-156.
    """
    value = float(sum(left * hits / checked for left, hits, checked in parts))
    lowest = sum_distribution([beta_binomial(left, hits, checked - hits + 1) for left, hits, checked in parts])
    highest = sum_distribution([beta_binomial(left, hits + 1, checked - hits) for left, hits, checked in parts])
    low = _first_beyond(lowest)
    high = len(highest) - 1 - _first_beyond(highest[::-1])
    return value, min(float(low), value), max(float(high), value)


def beta_binomial(trials: int, a: float, b: float) -> list[float]:
    """Return the probabilities of 0 to ``trials``; one of them is 1 if a or b is 0."""
    if not a or not b:
        return [float(number == (trials if a else 0)) for number in range(trials + 1)]
    logarithms = [0.0]
    for number in range(trials):
        odds = (a + number) * (trials - number) / ((number + 1) * (b + trials - number - 1))
        logarithms.append(logarithms[-1] + log(odds))
    most = max(logarithms)
    weights = [exp(each - most) for each in logarithms]
    total = fsum(weights)
    return [weight / total for weight in weights]


def confidence_sequence(labels: Sequence[int], total: int) -> list[tuple[float, float]]:
    """Return the ends of the interval after each of the labels (1 success) in random order, of ``total`` runs.

    An end moves inwards while its number of successes is excluded, unless none would be left. Those not excluded are
    consecutive, because their likelihood has one peak.
    """
    low, high, hits = 0, total, 0
    last, found = (low, high), []
    for seen, label in enumerate(labels, 1):
        hits += label
        value = hits / seen
        while low <= high and _is_excluded(low, hits, seen, total):
            low += 1
        while low <= high and _is_excluded(high, hits, seen, total):
            high -= 1
        last = (low, high) if low <= high else last
        found.append((min(last[0] / total, value), max(last[1] / total, value)))
    return found


def _is_excluded(successes: int, hits: int, seen: int, total: int) -> bool:
    """Return whether k! (n - k)! / (n + 1)! is 20 times C(N - n, T - k) / C(N, T) for T successes, or T impossible."""
    if not 0 <= successes - hits <= total - seen:
        return True
    predicted = lgamma(hits + 1) + lgamma(seen - hits + 1) - lgamma(seen + 2)
    expected = _log_ways(total - seen, successes - hits) - _log_ways(total, successes)
    return predicted - expected >= -log(2 * TAIL) - SAME_RATIO


def _log_ways(total: int, chosen: int) -> float:
    return lgamma(total + 1) - lgamma(chosen + 1) - lgamma(total - chosen + 1)


def sum_distribution(distributions: Sequence[list[float]]) -> list[float]:
    """Return the probabilities of a sum of independent counts. Each list is packed as fixed-point cells of one long
    integer: one product convolves them, in far less time than cell by cell."""
    if len(distributions) == 1:
        return distributions[0]
    half = len(distributions) // 2  # in halves: a hostile bundle may have a draw for each trajectory
    first, second = sum_distribution(distributions[:half]), sum_distribution(distributions[half:])
    cells = len(first) + len(second) - 1
    one, other = (
        b"".join(int(each * FIXED_POINT).to_bytes(CELL, "little") for each in part) for part in (first, second)
    )
    convolved = (int.from_bytes(one, "little") * int.from_bytes(other, "little")).to_bytes(cells * CELL, "little")
    return [int.from_bytes(convolved[at : at + CELL], "little") / FIXED_POINT**2 for at in range(0, cells * CELL, CELL)]


def _first_beyond(probabilities: Sequence[float]) -> int:
    """Return the place where the sum from the front first exceeds 2.5%; exactly 2.5% counts as exceeding."""
    below = 0.0
    for place, each in enumerate(probabilities):
        if (below := below + each) > EXCLUDED_TAIL:
            return place
    return len(probabilities) - 1


def sum_of_rates(parts: Sequence[tuple[int, int, int]]) -> tuple[float, float, float]:
    """Return the same as `hits_left`, but by the formula of reports without a version (infinite population).

    The distance of each bound is the root of the summed squares of those of the parts, each Wilson's times its cases.
    Bounds are within 0 and all cases. Source: Zou and Donner (2008), Statistics in Medicine 27, 1693-1702.
    """
    value, below, above = 0.0, [], []
    for cases, hits, checked in parts:
        rate, (low, high) = hits / checked, wilson_interval(hits, checked)
        value += cases * rate
        below.append(cases * (rate - low))
        above.append(cases * (high - rate))
    most = float(sum(cases for cases, _, _ in parts))
    return value, max(0.0, value - hypot(*below)), min(most, value + hypot(*above))


def _width(patterns: Patterns) -> int:
    return len(next(iter(patterns), ()))


def _label_shares(patterns: Patterns) -> list[float]:
    """Return the mean over labelled items of each label's share of an item's labels; empty without such items."""
    labelled = [(pattern, times) for pattern, times in patterns.items() if times and sum(pattern)]
    items = sum(times for _, times in labelled)
    return [
        sum(times * pattern[place] / sum(pattern) for pattern, times in labelled) / items
        for place in range(_width(patterns) if items else 0)
    ]


NO_CASES = "no cases"


def rate_figure(hits: int, n: int, why: str = NO_CASES, *, interval: bool = True) -> dict[str, Any]:
    if not n:
        return {"value": None, "low": None, "high": None, "n": 0, "hits": 0, "undefined": why}
    low, high = wilson_interval(hits, n) if interval else (None, None)
    return {"value": hits / n, "low": low, "high": high, "n": n, "hits": hits}


def coefficient_figure(value: float | None, n: int, why: str, ends: Ends = NOWHERE) -> dict[str, Any]:
    """Return a figure: ``why`` states the reason for a missing value, ``ends`` bound the interval."""
    if value is None:
        return {"value": None, "low": None, "high": None, "n": n, "undefined": why}
    return {"value": float(value), "low": ends, "high": ends, "n": n}


def natural_order(name: str) -> tuple[Any, ...]:
    """Return a sort key that puts A2 before A10 and differs for different names."""
    parts = re.split(r"(\d+)", name)
    return tuple(int(part[:MOST_DIGITS]) if odd % 2 else part.casefold() for odd, part in enumerate(parts)), name
