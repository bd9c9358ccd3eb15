"""The comparison of the desk with and without its help, for two faults of the challenge."""

import os
import re
import subprocess
import sys

import pytest
from django.conf import settings

ROW = re.compile(r"^  ([A-Z][\w -]*?) +(\d+) +(\d+) +(\d+) +(\d+) +(\d+) +(\d+)$", re.MULTILINE)


def run(home, *options):
    environment = {name: os.environ[name] for name in ("PATH", "CHROMIUM") if name in os.environ}
    environment["HOME"] = str(home)
    command = [sys.executable, "-m", "bench.challenge", *options]
    return subprocess.run(
        command, cwd=settings.BASE_DIR, env=environment, capture_output=True, text=True, timeout=600, check=False
    )


@pytest.mark.long
@pytest.mark.browser
def test_the_help_brings_the_answer_into_view_and_marks_the_click(tmp_path):
    done = run(tmp_path, "--fault", "wrong_address", "--fault", "wrong_filter_value")
    assert done.returncode == 0, done.stderr
    rows = {name: [int(number) for number in numbers] for name, *numbers in ROW.findall(done.stdout)}
    # Step; in view with the help, without it, of; marked with the help, without it.
    assert rows == {
        "Wrong filter value": [1, 2, 2, 2, 1, 0],  # the ring of the click is on the filter
        "Wrong address": [9, 2, 1, 2, 1, 0],  # the answer is beside the page, with the address of the task marked
    }
    assert "faults with all evidence in view: 2 of 2 with the help, 1 without" in done.stdout
    assert "faults with a mark on evidence: 2 of 2 with the help, 0 without" in done.stdout


def test_an_unknown_fault_is_refused_with_the_known_ones(tmp_path):
    done = run(tmp_path, "--fault", "no_such_fault")
    assert done.returncode == 2
    assert "wrong_filter_value" in done.stderr
