"""What a benchmark may store: no import exceeds it, not even two at once."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from django.urls import reverse

from annotation import ingest, quotas
from annotation.models import Attachment, Benchmark, Person, Screenshot, Submission
from annotation.records import AttachmentKind
from annotation.tests import testing
from annotation.tests.test_concurrency import at_once

pytestmark = pytest.mark.django_db


def limit(benchmark: Benchmark, size: int) -> Benchmark:
    Benchmark.objects.filter(pk=benchmark.pk).update(quota_bytes=size)
    return Benchmark.objects.get(pk=benchmark.pk)


def load(package: Path, benchmark: Benchmark, agent: str, **options: Any) -> tuple[list[str], Submission | None]:
    report, made = ingest.import_submission(package, benchmark=benchmark, agent_name=agent, **options)
    found = [problem for each in report.as_json()["rejected"] for problem in each["problems"]]
    assert all(problem["message"] for problem in found)
    return [problem["code"] for problem in found], made


def test_every_file_counts_once(submission: Submission) -> None:
    shots = sum(Screenshot.objects.filter(steps__trajectory__submission=submission).values_list("size", flat=True))
    assert quotas.count_bytes(submission.benchmark) == shots
    step = submission.trajectories.all()[0].steps.all()[0]
    assert step.screenshot is not None
    for name, sha256, size in (("a", "f" * 64, 10), ("b", "f" * 64, 10), ("c", step.screenshot.sha256, 99)):
        Attachment.objects.create(
            trajectory=step.trajectory, kind=AttachmentKind.CACHED_PAGE, name=name, sha256=sha256, size=size
        )
    assert quotas.count_bytes(submission.benchmark) == shots + 10
    assert quotas.count_bytes(testing.benchmark(1, slug="other")) == 0


def test_import_that_exceeds_the_quota_is_refused_and_names_it(submission: Submission, tmp_path: Path) -> None:
    used = quotas.count_bytes(submission.benchmark)
    shops = limit(submission.benchmark, used + 10)
    package = testing.write_submission(tmp_path / "new", 2, steps=5)
    report, made = ingest.import_submission(package, benchmark=shops, agent_name="Large Agent")
    assert made is None
    assert not Submission.objects.filter(agent__name="Large Agent").exists()
    (problem,) = report.as_json()["rejected"][0]["problems"]
    assert problem["code"] == "quota_bytes"
    for part in ("may store", "It stores", "this package adds", "Ask the operator"):
        assert part in problem["message"]
    assert load(package, shops, "Large Agent", dry_run=True)[0] == ["quota_bytes"]

    assert load(package, limit(shops, 10 * used), "Large Agent")[0] == []


def test_files_that_the_benchmark_stores_add_nothing(submission: Submission, tmp_path: Path) -> None:
    shops = limit(submission.benchmark, quotas.count_bytes(submission.benchmark))
    package = testing.write_submission(tmp_path / "new", 2)
    assert load(package, shops, "Same Files")[0] == []
    assert load(package, limit(shops, 0), "Same Files")[0] == []  # imported before


@pytest.mark.django_db(transaction=True)
def test_of_two_imports_that_fit_only_alone_one_is_refused(tmp_path: Path, settings: Any) -> None:
    settings.MEDIA_ROOT = tmp_path / "images"
    benchmark = testing.benchmark(8)
    packages = [testing.write_submission(tmp_path / str(number), 1, first=number * 4) for number in range(2)]
    sizes = [sum(file.stat().st_size for file in package.rglob("*.png")) for package in packages]
    benchmark = limit(benchmark, max(sizes) + min(sizes) // 2)

    outcomes = at_once(2, lambda number: load(packages[number], benchmark, f"Agent {number}")[0])

    assert sorted(outcomes) == [[], ["quota_bytes"]]
    assert quotas.count_bytes(benchmark) <= max(sizes)
    assert Submission.objects.count() == 1


def test_only_the_operator_sets_quotas(submission: Submission, people: dict[str, Person], client: Any) -> None:
    change = reverse("admin:annotation_benchmark_change", args=[submission.benchmark_id])
    client.force_login(people["mira"])
    assert client.get(change).status_code == 302
    client.force_login(Person.objects.create_superuser("root"))
    given = {"slug": "shops", "name": "Shops", "quota_bytes": "1000", "quota_calls": "", "quota_cost": "-1"}
    assert "greater than or equal to 0" in client.post(change, given).content.decode()
    client.post(change, given | {"quota_cost": "2.5", "archived_at_0": "2026-01-01", "archived_at_1": "00:00"})
    row = Benchmark.objects.get(pk=submission.benchmark_id)
    assert (row.quota_bytes, row.quota_calls, float(row.quota_cost or 0)) == (1000, None, 2.5)
    assert row.archived_at is None
