"""The benchmark of evidence bundles, at its smallest: every row is there, and a peak that grows is an exit code."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest
from django.conf import settings

from bench.evidence import SHARE, WORKS, Case, Cost, grown

FLAT = [Cost(100, 1.0) for _ in WORKS]
ADDED = 300  # MB


@pytest.mark.long
def test_it_measures_every_work_of_a_case_and_ends_well_where_no_peak_grows() -> None:
    """One test of one case, which takes seconds; a peak that grows is another test, since no small case has one."""
    command = [sys.executable, "-m", "bench.evidence", "--trajectories", "1", "--screenshots", "3"]
    environment = {"PATH": os.environ["PATH"]}
    done = subprocess.run(
        command, cwd=settings.BASE_DIR, env=environment, capture_output=True, text=True, timeout=300, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    _title, head, *cases = done.stdout.splitlines()[: -len(WORKS)]
    assert head.split() == ["screenshots", "zip", "MB", *WORKS]
    rows = [[float(cell) for cell in case.split()] for case in cases]
    assert [row[0] for row in rows] == [3]
    assert {len(row) for row in rows} == {2 + 2 * len(WORKS)}
    assert all(peak > 10 for row in rows for peak in row[2::2])
    ends = [
        line.partition(": the peak grows by 0 MB while the bundle grows by 0 MB, ")
        for line in done.stdout.splitlines()[-len(WORKS) :]
    ]
    assert [name for name, *_ in ends] == list(WORKS)
    assert [says for *_, says in ends] == ["flat"] * len(WORKS)


@pytest.mark.parametrize("work", range(len(WORKS)))
def test_one_peak_that_grows_is_marked_and_is_the_exit_code(work: int, capsys: pytest.CaptureFixture[str]) -> None:
    first = Case(40, FLAT)
    assert grown(first, Case(40 + ADDED, FLAT)) == 0
    assert "OVER" not in capsys.readouterr().out
    too_much = Cost(100 + SHARE * ADDED + 1, 1.0)
    last = [too_much if number == work else cost for number, cost in enumerate(FLAT)]
    assert grown(first, Case(40 + ADDED, last)) == 1
    marked = [line for line in capsys.readouterr().out.splitlines() if line.endswith("OVER THE BUDGET")]
    assert marked == [f"{WORKS[work]}: the peak grows by 16 MB while the bundle grows by 300 MB, OVER THE BUDGET"]
