"""Compare the width that plans promise with the width of simulated draws, in random scenarios."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from evaluations.statistics.planning import LabelPlan, plan_half_width
from evaluations.statistics.stratified import Estimand, rates_with_ends

DRAWS = 400


def planned_scenarios(number: int, seed: int = 0) -> Iterator[str]:
    """Yield a line for each estimand: the mean and the quantiles of drawn width / promised width."""
    random = np.random.default_rng(seed)
    for estimand in Estimand:
        found = np.array([width_over_promise(random, estimand) for _ in range(number)])
        if number:
            low, high = np.quantile(found, (0.05, 0.95))
            yield f"planner, {estimand}: drawn / promised width {found.mean():.3f}, 5% {low:.3f}, 95% {high:.3f}"


def width_over_promise(random: np.random.Generator, estimand: Estimand) -> float:
    """Return the mean width of draws over the promised one, in a random scenario."""
    while True:
        plan, rates = random_plan(random, estimand)
        if plan is not None:
            break
    sizes, drawn = (np.array([getattr(each, field) for each in plan.strata]) for field in ("total", "labels"))
    hits = random.binomial(drawn, rates, (DRAWS, len(rates)))
    outcomes, times = np.unique(hits, axis=0, return_counts=True)
    drawn = np.broadcast_to(drawn, outcomes.shape)
    _, low, high = rates_with_ends(sizes - drawn, outcomes, drawn, estimand)
    return float((high - low) @ times / times.sum() / 2 / plan.expected_half_width)


def random_plan(random: np.random.Generator, estimand: Estimand) -> tuple[LabelPlan | None, np.ndarray]:
    """Return a plan for a judge's two verdicts on one to three levels, or None if its half width is not reachable."""
    levels, total = int(random.integers(1, 4)), int(random.integers(100, 1500))
    rates = np.concatenate([random.uniform(0.5, 0.98, levels), random.uniform(0.02, 0.4, levels)])
    sizes = random.multinomial(total - 4 * len(rates), random.dirichlet(np.full(len(rates), 4.0))) + 4
    names = [str(at) for at in range(len(rates))]
    strata = dict(zip(names, sizes.tolist(), strict=True))
    try:
        plan = plan_half_width(
            strata, dict(zip(names, rates.tolist(), strict=True)), random.uniform(0.03, 0.12), estimand
        )
    except ValueError:
        return None, rates
    return plan, rates
