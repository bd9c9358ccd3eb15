"""The file of tasks that the package ships is imported as it is: all of its tasks, and the checks of each."""

from __future__ import annotations

import json

import pytest

from annotation.catalogue import import_tasks
from annotation.models import Benchmark
from judges import expectations
from judges.expectations import Kind
from judges.models import Expectation
from judges.tests.parity.test_parity_network import shipped_file


@pytest.mark.django_db
def test_the_shipped_file_becomes_812_tasks_with_their_checks() -> None:
    data, name = shipped_file().read_bytes(), shipped_file().name
    tasks = import_tasks(data, name, benchmark_slug="webarena-verified")
    benchmark = Benchmark.objects.get(slug="webarena-verified")
    checks = expectations.import_file(None, benchmark, Kind.NETWORK_CHECKS, data, name)

    assert (tasks.rejected, tasks.warnings, checks.rejected, checks.warnings) == ({}, [], {}, [])
    numbers = [str(one["task_id"]) for one in json.loads(data)]
    assert len(numbers) == 812
    assert tasks.accepted == checks.accepted == numbers
    assert set(benchmark.tasks.values_list("external_id", flat=True)) == set(numbers)
    assert Expectation.objects.filter(kind=Kind.NETWORK_CHECKS, version=1).count() == 812
    assert not benchmark.tasks.filter(website="").exists()
