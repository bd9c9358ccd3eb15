"""Task lists of the shape that Odysseys has: their tasks, their weighted requirements as rubrics, and the scores."""

from __future__ import annotations

import io
import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from django.core.management import call_command
from django.test import Client
from django.urls import reverse

from annotation.formats.tasks import read_tasks
from annotation.models import Benchmark, Trajectory
from annotation.records import Problem, Verdict
from annotation.tests import testing
from judges import expectations, run_table
from judges.expectations import Kind
from judges.models import Expectation, JudgeRun, RunItem
from judges.scorers.rubric import written
from judges.tests import rows
from judges.tests.builders import Fake
from judges.tests.pages import read_page
from judges.tests.rubric_subjects import about, says
from judges.tests.webjudging import judge, judged

REQUIREMENTS = {
    "R1": {"requirement": "The list is sorted by price.", "verification": "The menu says so.", "weight": 2},
    "R2": {"requirement": "A lamp was opened.", "verification": "", "weight": 1.5},
    "R3": {"requirement": "The lamp is in the cart.", "verification": "The cart shows it.", "weight": 0.5},
}


def entry(task_id: str, rubrics: Any = REQUIREMENTS, **more: Any) -> dict[str, Any]:
    """An entry with the keys of the published list; its values are our own."""
    return {
        "task_id": task_id,
        "confirmed_task": f"Do {task_id}.",
        "website": "https://shop.example/",
        "level": "hard",
        "reference_length": 12,
        "rubrics": rubrics,
        "categories": ["shopping"],
    } | more


def load(benchmark: Benchmark, *entries: Any, name: str = "tasks.json") -> dict[str, Any]:
    data = json.dumps(list(entries)).encode()
    return expectations.import_file(None, benchmark, Kind.RUBRIC, data, name).as_json()


@pytest.fixture
def benchmark() -> Benchmark:
    return testing.benchmark(2)


def ids(benchmark: Benchmark) -> list[str]:
    return list(benchmark.tasks.order_by("pk").values_list("external_id", flat=True))


# --- the list ---------------------------------------------------------------------------------------------------------


def test_tasks_of_the_list_are_read_without_a_problem_or_a_warning():
    problems: list[Problem] = []
    warnings: list[tuple[str, Problem]] = []
    source = io.BytesIO(json.dumps([entry("a"), entry("b", reference_length=None)]).encode())

    first, second = read_tasks(source, "odysseys.json", problems, warnings)

    assert (problems, warnings) == ([], [])
    assert (first.text, first.website, first.level, first.reference_length) == (
        "Do a.", "https://shop.example/", "hard", 12,
    )  # fmt: skip
    assert second.reference_length is None


@pytest.mark.django_db
def test_requirements_become_weighted_claims_of_a_written_rubric(benchmark: Benchmark, tmp_path: Path):
    file = tmp_path / "odysseys.json"
    file.write_text(json.dumps([entry(one) for one in ids(benchmark)]))

    call_command("import_rubrics", file, benchmark=benchmark.slug, stdout=io.StringIO())

    assert Expectation.objects.count() == 2
    rubric = written.parse(Expectation.objects.latest("pk").text)
    assert rubric.pass_score == 1.0
    assert [(one.id, one.weight, one.about, str(one.steps), one.critical) for one in rubric.claims()] == [
        ("R1", 2, "screenshots", "all", False),
        ("R2", 1.5, "screenshots", "all", False),
        ("R3", 0.5, "screenshots", "all", False),
    ]
    assert (
        rubric.claims()[0].text == "At one or more of the steps, this requirement is met: The list is sorted by price."
    )
    assert [one.note for one in rubric.claims()] == ["The menu says so.", "", "The cart shows it."]


@pytest.mark.django_db
def test_list_longer_than_a_yaml_file_may_be_is_imported(benchmark: Benchmark):
    long = {f"R{n}": {"requirement": f"{n}: {'x' * 1_900}", "weight": 1} for n in range(1, 120)}
    first, second = (entry(one, long) for one in ids(benchmark))
    assert len(json.dumps([first, second])) > 400_000

    assert load(benchmark, first, second)["rejected"] == []
    assert Expectation.objects.count() == 2
    assert "tasks.json: [2]: an entry must be an object" in json.dumps(load(benchmark, first, second, 5)["rejected"])


@pytest.mark.django_db
@pytest.mark.parametrize(
    ("requirement", "says"),
    [
        ({"requirement": "A.", "weight": 0}, "R9: weight must be a number above 0 and at most 1,000."),
        ({"requirement": "A."}, "R9: weight must be a number above 0 and at most 1,000."),
        ({"requirement": "A.", "weight": "2"}, "R9: weight must be a number above 0 and at most 1,000."),
        ({"requirement": " ", "weight": 1}, "R9: requirement is empty; it must be a text."),
        ({"weight": 1}, "R9: requirement must be a text, not null."),
        ({"requirement": "A.", "verification": 5, "weight": 1}, "R9: verification must be a text, not a whole number."),
        # 2,000 characters of a claim without the 54 before the requirement.
        ({"requirement": "A" * 2_000, "weight": 1}, "R9: requirement has 2,000 characters; the limit is 1,946."),
        ("A.", "R9: must be an object with requirement, verification and weight, not text."),
    ],
)
def test_requirement_that_cannot_be_used_is_refused_with_task_name_and_cure(benchmark: Benchmark, requirement, says):
    first, second = ids(benchmark)

    report = load(benchmark, entry(first), entry(second, {"R9": requirement}))

    ((problem,),) = [one["problems"] for one in report["rejected"]]
    assert problem["code"] == "entry_invalid"
    assert problem["message"].startswith("line 1: ")
    assert problem["message"].endswith(f"{second}, {says}")
    assert not Expectation.objects.exists()


@pytest.mark.django_db
@pytest.mark.parametrize("rubrics", [{}, [], None, "R1"])
def test_task_without_requirements_is_refused(benchmark: Benchmark, rubrics):
    report = load(benchmark, entry(ids(benchmark)[0], rubrics))

    ((problem,),) = [one["problems"] for one in report["rejected"]]
    assert "rubrics must be an object that maps names such as R1 to requirements" in problem["message"]


# --- scores -----------------------------------------------------------------------------------------------------------


def test_scorer_rubric_gives_the_weighted_share_and_success_only_for_all_of_it(fake: Fake):
    text = written.write_from_requirements(REQUIREMENTS)
    first, second, third = (f"{written.MET_ONCE}{one['requirement']}" for one in REQUIREMENTS.values())
    fake.says(says(first, True), says(second, False), says(third, True))

    score = judged(fake, judge("rubric", votes="1"), about(text))

    assert (score.score, score.verdict) == (0.625, Verdict.FAILURE)  # (2 + 0.5) / (2 + 1.5 + 0.5)
    fake.says(says(first, True), says(second, True), says(third, True))
    assert judged(fake, judge("rubric", votes="1"), about(text)).verdict is Verdict.SUCCESS


def scored(tmp_path: Path, *scores: float | None) -> tuple[Client, JudgeRun]:
    """A run with a judgment for each of ``scores``; the first trajectory has two steps, the others have four."""
    submission = testing.submission(tmp_path, trajectories=len(scores), steps=4)
    run = rows.run_row(submission, rows.judge_row("by-rubric", scorer="rubric"))
    items = RunItem.objects.filter(run=run).order_by("trajectory__position")
    for item, score in zip(items, scores, strict=True):
        fields = {"verdict": None, "unscored": "No reply."} if score is None else {"verdict": 0}
        rows.judgment_row(item, score=score, **fields)
    submission.trajectories.earliest("position").steps.filter(index__gte=2).delete()
    client = Client()
    client.force_login(testing.cast(submission)["mira"])
    return client, run


def shown(client: Client, run: JudgeRun) -> tuple[str, Any]:
    """The page of the run, and its scores in the API."""
    page = read_page(client.get(reverse("judge-run", args=[run.pk])))
    return page, client.get(f"/api/v1/judge-runs/{run.pk}").json()["scores"]


@pytest.mark.django_db
def test_run_has_average_perfect_rate_and_efficiency(tmp_path: Path):
    client, run = scored(tmp_path, 0.3, 1.0, 0.0, None)

    found = run_table.load_scores(run)

    assert found is not None
    assert found.judgments == 3
    assert found.average == pytest.approx(130 / 3)  # (30 + 100 + 0) / 3
    assert found.perfect == pytest.approx(100 / 3)  # one of three
    assert found.efficiency == pytest.approx(40 / 3)  # (30 / 2 + 100 / 4 + 0 / 4) / 3 = (15 + 25 + 0) / 3
    page, api = shown(client, run)
    assert "Scores of 3 judgments" in page
    for text in ("average <b>43.3</b>", "perfect <b>33.3%</b>", "efficiency <b>13.33</b>"):
        assert text in " ".join(page.replace("<b>", " <b>").split())
    assert api == {name: getattr(found, name) for name in ("judgments", "average", "perfect", "efficiency")}


@pytest.mark.django_db
def test_sum_of_tenths_is_perfect_and_a_trajectory_without_steps_has_no_efficiency(tmp_path: Path):
    _, run = scored(tmp_path, 1 - 1e-12, 1.0)
    Trajectory.objects.earliest("position").steps.all().delete()

    found = run_table.load_scores(run)

    assert found is not None
    assert found.perfect == 100
    assert found.efficiency == pytest.approx(25)  # 100 / 4
    Trajectory.objects.latest("position").steps.all().delete()
    assert run_table.load_scores(run) == replace(found, efficiency=None)


@pytest.mark.django_db
@pytest.mark.parametrize("scores", [(None, None), (0.5, 55.0)])
def test_run_without_scores_or_with_one_of_another_range_has_no_figures(tmp_path: Path, scores):
    client, run = scored(tmp_path, *scores)

    assert run_table.load_scores(run) is None
    page, api = shown(client, run)
    assert api is None
    assert "Scores of" not in page


@pytest.mark.django_db
def test_run_that_attacks_a_judge_has_no_figures(tmp_path: Path):
    _, run = scored(tmp_path, 0.5, 1.0)
    run.robustness = {"operators": []}

    assert run_table.load_scores(run) is None
