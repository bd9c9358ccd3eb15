"""import_checks and import_rubrics: files and folders in, versions out, every reason on the way."""

from __future__ import annotations

import json
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
from django.core.management import CommandError, call_command

from annotation.models import Benchmark
from annotation.tests import testing
from annotation.tests.shared_rows import shared_rows
from judges.models import Expectation
from judges.tests.expecting import CHECKS, RUBRIC


@shared_rows
def benchmark() -> Benchmark:
    return testing.benchmark(2)


def ids(benchmark: Benchmark) -> list[str]:
    return list(benchmark.tasks.order_by("pk").values_list("external_id", flat=True))


def run(name: str, path: Path, **options: Any) -> tuple[str, str]:
    out, err = StringIO(), StringIO()
    try:
        call_command(name, path, benchmark=options.pop("benchmark", "shops"), stdout=out, stderr=err, **options)
    except CommandError as refused:
        refused.args = (*refused.args, err.getvalue())
        raise
    return out.getvalue(), err.getvalue()


def test_a_folder_of_rubrics_is_loaded_by_the_names_of_its_files(benchmark: Benchmark, tmp_path: Path) -> None:
    for each in ids(benchmark):
        (tmp_path / f"{each}.yaml").write_text(RUBRIC)
    (tmp_path / "notes.txt").write_text("left out")
    out, _ = run("import_rubrics", tmp_path)
    assert "2 tasks with a rubric accepted" in out
    assert set(Expectation.objects.values_list("kind", "version", "text")) == {("rubric", 1, RUBRIC)}
    out, err = run("import_rubrics", tmp_path)
    assert "expectation_known" in err
    assert Expectation.objects.count() == 2


def test_checks_are_loaded_from_one_file_and_from_a_folder(benchmark: Benchmark, tmp_path: Path) -> None:
    first, second = ids(benchmark)
    file = tmp_path / "checks.jsonl"
    lines = [{"task_id": each, "checks": [{"name": "A", "url": "http://a.example/"}]} for each in (first, second)]
    file.write_text("\n".join(map(json.dumps, lines)))
    run("import_checks", file)
    assert Expectation.objects.filter(kind="network_checks").count() == 2
    folder = tmp_path / "folder"
    folder.mkdir()
    (folder / f"{first}.yml").write_text(CHECKS)
    run("import_checks", folder)
    assert Expectation.objects.get(task__external_id=first, version=2).text == CHECKS


def test_one_problem_keeps_everything_out_and_the_report_has_all(benchmark: Benchmark, tmp_path: Path) -> None:
    first, second = ids(benchmark)
    folder = tmp_path / "folder"
    folder.mkdir()
    (folder / f"{first}.yaml").write_text(CHECKS)
    (folder / f"{second}.yaml").write_text(CHECKS.replace("url:", "ulr:"))
    report = tmp_path / "report.json"
    with pytest.raises(CommandError) as refused:
        run("import_checks", folder, report=report)
    assert refused.value.returncode == 1
    assert f"{second}.yaml: checks, line 4: `ulr` is not a key of a check" in refused.value.args[-1]
    told = json.loads(report.read_text())
    assert (told["accepted"], [row["task_id"] for row in told["rejected"]]) == ([], [second])
    assert not Expectation.objects.exists()


def test_the_file_of_webarena_verified_has_tasks_and_their_checks(db: Any, tmp_path: Path) -> None:
    answer = {"task_type": "retrieve", "status": "SUCCESS", "retrieved_data": ["4"]}
    network = {"evaluator": "NetworkEventEvaluator", "expected": {"url": "__SHOPPING__/lamps"}}
    tasks = [
        {
            "task_id": number,
            "intent": f"How many lamps are on page {number}?",
            "sites": ["shopping"],
            "start_urls": ["__SHOPPING__"],
            "eval": [{"evaluator": "AgentResponseEvaluator", "expected": answer}, network],
        }
        for number in (0, 1)
    ]
    file = tmp_path / "tasks.json"
    file.write_text(json.dumps(tasks))
    run("import_tasks", file, benchmark="lamps")
    out, _ = run("import_checks", file, benchmark="lamps")

    assert "2 tasks with network checks accepted" in out
    rows = Benchmark.objects.get(slug="lamps").tasks.order_by("external_id")
    assert [(task.external_id, task.text, task.website) for task in rows] == [
        ("0", "How many lamps are on page 0?", "__SHOPPING__"),
        ("1", "How many lamps are on page 1?", "__SHOPPING__"),
    ]
    assert {row.task.external_id: row.version for row in Expectation.objects.all()} == {"0": 1, "1": 1}


def test_a_dry_run_says_what_would_be_and_keeps_nothing(benchmark: Benchmark, tmp_path: Path) -> None:
    (tmp_path / f"{ids(benchmark)[0]}.yaml").write_text(RUBRIC)
    out, _ = run("import_rubrics", tmp_path, dry_run=True)
    assert "1 task with a rubric would be accepted (dry run, nothing was saved)" in out
    assert not Expectation.objects.exists()


@pytest.mark.parametrize("name", ["import_checks", "import_rubrics"])
def test_wrong_usage_is_exit_code_2(benchmark: Benchmark, tmp_path: Path, name: str) -> None:
    for path, slug in ((tmp_path / "nowhere.yaml", "shops"), (tmp_path, "nowhere")):
        with pytest.raises(CommandError) as refused:
            run(name, path, benchmark=slug)
        assert refused.value.returncode == 2
