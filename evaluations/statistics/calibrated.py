"""The success rate from a judge alone, corrected with its errors on another labelled set."""

from __future__ import annotations

from dataclasses import dataclass
from math import sqrt

from evaluations.statistics.intervals import Z
from evaluations.statistics.measure import Measure

NO_BETTER = "on the calibration set the judge is no better than chance: sensitivity + specificity is not above 1"


@dataclass(frozen=True, slots=True)
class Calibration:
    """A judge on another labelled set: how many of its ``successes`` and ``failures`` it called so."""

    successes: int
    found_successes: int
    failures: int
    found_failures: int

    def __post_init__(self) -> None:
        if not (0 <= self.found_successes <= self.successes and 0 <= self.found_failures <= self.failures):
            raise ValueError("A judge finds from 0 to all successes and failures of its calibration set.")


def calibrated_rate(judged_successes: int, judged: int, calibration: Calibration) -> Measure:
    """The success rate of an agent from a judge's verdicts and its errors on another labelled set; without new labels.

    With the share p of n verdicts that say success, sensitivity q1 of m1 labelled successes and specificity q0 of m0
    failures the rate is r = (p + q0 - 1) / (q0 + q1 - 1), within 0 to 1. The interval takes p' = (n p + z^2 / 2) /
    (n + z^2) of n' = n + z^2, and q' = (m q + 1) / (m + 2) of m' = m + 2, and the r' of these: r' + d -+ z
    sqrt(p' (1 - p') / n' + (1 - r')^2 v0 + r'^2 v1) / (q0' + q1' - 1), with v = q' (1 - q') / m' and
    d = 2 z^2 (r' v1 - (1 - r') v0), within 0 to 1, widened to hold the value.

    It holds only if the judge errs on these trajectories as often as on the calibration set. From labels of the same
    trajectories `stratified_rate` is narrower. Undefined without verdicts, without successes or failures in the
    calibration set, and if q0 + q1 or q0' + q1' is not above 1. Source: Rogan and Gladen (1978), American Journal of
    Epidemiology 107, 71-76; Lang and Reiczigel (2014), Preventive Veterinary Medicine 113, 13-22; for judges Lee et al.
    (2025), arXiv:2511.21140.
    """
    if not 0 <= judged_successes <= judged:
        raise ValueError(f"{judged_successes} of {judged} is no rate.")
    m1, m0 = calibration.successes, calibration.failures
    if not judged or not m1 or not m0:
        return Measure.missing("no verdicts, or no successes or failures in the calibration set", judged)
    sensitivity, specificity = calibration.found_successes / m1, calibration.found_failures / m0
    q1, q0 = (calibration.found_successes + 1) / (m1 + 2), (calibration.found_failures + 1) / (m0 + 2)
    if min(sensitivity + specificity, q0 + q1) <= 1:
        return Measure.missing(NO_BETTER, judged)
    value = _corrected(judged_successes / judged, sensitivity, specificity)
    p, n = (judged_successes + Z * Z / 2) / (judged + Z * Z), judged + Z * Z
    rate = _corrected(p, q1, q0)
    v0, v1 = q0 * (1 - q0) / (m0 + 2), q1 * (1 - q1) / (m1 + 2)
    middle = rate + 2 * Z * Z * (rate * v1 - (1 - rate) * v0)
    spread = Z * sqrt(p * (1 - p) / n + (1 - rate) ** 2 * v0 + rate**2 * v1) / (q0 + q1 - 1)
    low, high = (min(max(end, 0.0), 1.0) for end in (middle - spread, middle + spread))
    return Measure(value, judged, low=min(low, value), high=max(high, value))


def _corrected(share: float, sensitivity: float, specificity: float) -> float:
    return min(max((share + specificity - 1) / (sensitivity + specificity - 1), 0.0), 1.0)
