"""The simulation of coverage, with few draws."""

from __future__ import annotations

import pytest

from bench.coverage import Cell, cells, main, measure, measure_levels, measure_slow


@pytest.mark.slow
@pytest.mark.once
def test_every_fast_estimator_covers_a_cell_and_saves_labels() -> None:
    found = [*measure(Cell(60, 300, 0.71, 0.5), 1500, 1), *measure_levels(Cell(60, 300, 0.71, 0.5), 500, 1)]
    assert len(found) == 7
    assert all(0.925 <= each.coverage <= 0.98 for each in found)
    saved = {each.estimator: 1 - (each.width / each.people) ** 2 for each in found}
    assert saved["combined, runs, random draw"] >= 0.35
    assert saved["combined, runs, planned draw"] >= 0.35


@pytest.mark.slow
@pytest.mark.once
def test_slow_estimators_are_measured_too() -> None:
    found = list(measure_slow(Cell(30, 100, 0.55, 0.5), 40, 1))
    assert len(found) == 8
    assert all(each.coverage > 0.8 for each in found)


@pytest.mark.once
def test_cells_label_at_most_half_of_the_trajectories() -> None:
    assert {(cell.labels, cell.trajectories) for cell in cells((30, 60), (100, 300), (0.5,))} == {
        (30, 100), (30, 300), (60, 300)
    }  # fmt: skip


@pytest.mark.slow
@pytest.mark.once
def test_the_command_prints_its_tables(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--small", "--draws", "40", "--plans", "1"]) == 0
    printed = capsys.readouterr().out
    assert "combined, runs, random draw" in printed
    assert "labels saved" in printed
    assert "planner, agent: drawn / promised width" in printed
