"""The simulation of audits that are decided by sample, with few draws."""

from __future__ import annotations

import numpy as np
import pytest

from bench.acceptance import Scenario, draw_differences, main, simulate
from evaluations.statistics.acceptance import Decision

pytestmark = pytest.mark.once


def test_simulation_keeps_the_error_rates_with_a_median_of_60_runs() -> None:
    honest, too_high = simulate(Scenario(300, 0.4, 0.1), 150, 1), simulate(Scenario(300, 0.4, 0.1, 0.1), 60, 2)
    assert honest.share(Decision.REJECT) <= 0.05
    assert too_high.share(Decision.ACCEPT) <= 0.05
    assert np.median(honest.runs) <= np.median(honest.runs_by_tens) <= 60
    assert honest.share(Decision.ACCEPT) > 0.9


@pytest.mark.parametrize("excess", [0.0, 0.1])
def test_claimed_rate_is_too_high_by_exactly_the_excess(excess: float) -> None:
    scenario, random = Scenario(100, 0.6, 0.1, excess), np.random.default_rng(0)
    drawn = [draw_differences(scenario, random) for _ in range(3)]
    differences = [sum(refuted) - sum(missed) for refuted, missed in drawn]
    assert (set(differences) == {10}) == bool(excess)


@pytest.mark.slow
def test_command_prints_a_row_for_each_scenario(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--draws", "1", "--max-size", "20"]) == 0
    printed = capsys.readouterr().out.splitlines()
    assert len(printed) == 1 + 42 + 1
    assert printed[-1].startswith("1 draws each, at most 20 runs")
