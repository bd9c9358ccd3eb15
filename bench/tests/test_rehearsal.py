"""The rehearsal in short, and its limits; the whole of it takes an hour and a quiet machine."""

import json
import os
import subprocess
import sys

import pytest
from django.conf import settings

from bench.desk import percentile
from bench.rehearsal import find_exceeded, table


@pytest.mark.slow
def test_nothing_is_lost_when_a_web_server_is_killed_and_redis_is_away(tmp_path):
    """Times are not asserted, since they depend on the machine."""
    options = ["--people", "3", "--think", "1.5", "--ramp", "1", "--seconds", "3", "--labels", "50", "--folder"]
    command = [sys.executable, "-m", "bench.rehearsal", *options, str(tmp_path / "rehearsal"), "kill web-1", "no redis"]
    done = subprocess.run(
        command,
        cwd=settings.BASE_DIR,
        env={name: os.environ[name] for name in ("PATH", "HOME") if name in os.environ},
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )
    rows = [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]
    assert [row["fault"] for row in rows] == ["kill web-1", "no redis"], done.stderr
    for row in rows:
        assert row["labels_acknowledged"] > 0
        assert row["acknowledged_and_not_stored"] == 0
        assert row["seconds_until_people_work"] is not None
        assert row["seconds_until_uploads_are_finished"] is not None
    assert len(done.stdout.splitlines()) == 2 + 3  # a line for each fault, and the table


def test_the_rehearsal_passes_what_is_at_its_limits():
    assert (
        find_exceeded("kill web-1", {"desk": 10.0, "healthz": 1.0}, {"desk": 2.0}, {"desk 502": 3}, 0, 30.0, 60.0) == []
    )
    assert find_exceeded("none", {"desk": 10.0}, {"desk": 0.5, "submit": 0.5}, {}, 0, 1.0, 1.0) == []


def test_the_rehearsal_names_everything_that_exceeds_a_limit():
    assert find_exceeded("kill web-1", {"upload": 10.01, "page": 2.0, "healthz": 1.5}, {}, {}, 2, None, None) == [
        "healthz took 1.50 s, at most 1 s are allowed",
        "upload took 10.01 s, at most 10 s are allowed",
        "2 acknowledged labels are not stored",
        "people could not work again within 60 s",
        "uploads were not finished within 60 s",
    ]


@pytest.mark.parametrize("fault", ["none", "new key", "upgrade"])
def test_nobody_may_notice_an_upgrade(fault):
    assert find_exceeded(fault, {}, {"desk": 0.4}, {"submit 502": 1}, 0, 1.0, 1.0) == [
        "failed requests: 1 times submit 502"
    ]


def test_without_a_fault_95_percent_of_the_requests_take_at_most_half_a_second():
    assert find_exceeded("none", {}, {"desk": 0.51}, {}, 0, 1.0, 1.0) == [
        "95% of desk took up to 0.51 s, at most 0.5 s"
    ]
    assert percentile([float(number) for number in range(100)], 0.95) == 95.0


def test_the_table_has_a_line_for_each_fault():
    row = {
        "fault": "kill beat",
        "requests": 12,
        "failed": {"desk 502": 2, "submit no answer": 1},
        "p95_s": {"desk": 0.25, "submit": 0.1},
        "acknowledged_and_not_stored": 0,
        "seconds_until_people_work": 1.5,
        "result": "pass",
    }
    lines = table([row, row | {"seconds_until_people_work": None}])
    assert lines[1].split("  ")[0] == "kill beat"
    assert lines[1].split()[2:] == ["12", "3", "250", "ms", "100", "ms", "0", "1.5", "s", "pass"]
    assert lines[2].split()[-2:] == ["never", "pass"]
