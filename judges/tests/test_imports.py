"""Judgments made elsewhere, into rows: by the command, the page and the API; all or nothing, and never changed."""

from __future__ import annotations

import json
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
from django.conf import settings
from django.core.files.uploadedfile import SimpleUploadedFile
from django.core.management import CommandError, call_command
from django.db import DatabaseError, transaction
from django.test import Client
from django.urls import reverse

from annotation import ingest, workflow
from annotation.catalogue import import_tasks
from annotation.models import Agent, Benchmark, Person, Submission, Task
from annotation.tests import testing
from annotation.tests.shared_rows import shared_rows
from annotation.tests.test_api_submissions import client as api
from judges import imports
from judges.models import Judge, Judgment
from judges.tests.pages import read_page
from judges.tests.test_imports_files import PLAIN, lines, upstream

REAL = Path(settings.BASE_DIR).parent / "shared" / "data" / "real_trajectories"
RECORDED = REAL / "recorded_webjudge.jsonl"
needs_real = pytest.mark.skipif(not RECORDED.exists(), reason=f"{RECORDED} is not beside the checkout")


@shared_rows
def shops() -> Benchmark:
    return testing.benchmark(2)


@shared_rows
def mira(shops: Benchmark) -> Person:
    return testing.person("mira", is_staff=True)


def load(shops: Benchmark, *rows: Any, judge: str = "elsewhere", agent: str = "") -> imports.ImportOutcome:
    return imports.import_judgments(lines(*rows), "judgments.jsonl", benchmark=shops, judge=judge, agent=agent)


def problems(outcome: imports.ImportOutcome) -> list[tuple[str, str]]:
    return [(p.code, p.message) for found in outcome.report.rejected.values() for p in found]


def warned(outcome: imports.ImportOutcome) -> dict[str, str]:
    return {problem.code: problem.message for _, problem in outcome.report.warnings}


# --- rows ------------------------------------------------------------------------------------------------------------


def test_a_judgment_needs_neither_a_trajectory_nor_a_known_agent(shops: Benchmark) -> None:
    outcome = load(shops, PLAIN | {"model": "o4-mini", "response": "Status: success", "usage": 7, "seed": 1})
    assert (outcome.new, outcome.linked, outcome.known) == (1, 0, 0)
    assert set(warned(outcome)) == {"agent_new", "not_linked"}
    row = Judgment.objects.get()
    assert (row.agent.name, row.task.external_id, row.trajectory, row.item) == ("Agent X", "task_0000", None, None)
    assert (row.verdict, row.unscored, row.model, row.tokens, row.cost) == (1, "", "o4-mini", 7, None)
    assert row.imported["carried"] == {"usage": 7, "seed": 1}
    assert (row.imported["file"], row.imported["row"]) == ("judgments.jsonl", 1)
    judge = row.judge
    assert (judge.name, judge.scorer, judge.model) == ("elsewhere", "imported", "o4-mini")
    assert judge.frozen_at is not None
    assert row.fingerprint == judge.fingerprint


def test_imported_judges_of_different_names_have_different_fingerprints(shops: Benchmark) -> None:
    load(shops, PLAIN)
    load(shops, PLAIN, judge="other")
    assert Judgment.objects.values("fingerprint").distinct().count() == 2


def test_no_verdict_is_unscored_and_never_a_failure(shops: Benchmark) -> None:
    load(shops, PLAIN | {"verdict": None, "reason": "r" * 2000}, PLAIN | {"verdict": None, "task_id": "task_0001"})
    first, second = Judgment.objects.order_by("task__external_id")
    assert (first.verdict, first.unscored) == (None, "r" * 500)
    assert (second.verdict, second.unscored) == (None, "not given")


def test_the_same_bytes_again_change_nothing(shops: Benchmark) -> None:
    load(shops, PLAIN, PLAIN | {"task_id": "task_0001", "verdict": 0})
    before = list(Judgment.objects.values())
    again = load(shops, PLAIN, PLAIN | {"task_id": "task_0001", "verdict": 0})
    assert (again.new, again.known, problems(again)) == (0, 2, [])
    assert list(Judgment.objects.values()) == before
    assert Judge.objects.count() == 1


def test_the_same_bytes_change_nothing_after_the_task_became_a_new_version(shops: Benchmark) -> None:
    load(shops, PLAIN)
    import_tasks(json.dumps([testing.task(0, level="hard")]).encode(), "t.json", benchmark_slug="shops")
    assert Task.objects.filter(external_id="task_0000").count() == 2
    assert load(shops, PLAIN).known == 1
    assert Judgment.objects.count() == 1


def test_a_file_that_goes_on_adds_what_is_new(shops: Benchmark) -> None:
    load(shops, PLAIN)
    outcome = load(shops, PLAIN, PLAIN | {"task_id": "task_0001"})
    assert (outcome.new, outcome.known) == (1, 1)


@pytest.mark.parametrize("change", [{"verdict": 0}, {"verdict": None}, {"response": "Other words."}, {"seed": 2}])
def test_another_file_that_says_something_else_is_refused_whole(shops: Benchmark, change: dict[str, Any]) -> None:
    load(shops, PLAIN)
    outcome = load(shops, PLAIN | {"task_id": "task_0001"}, PLAIN | change)
    assert [code for code, _ in problems(outcome)] == ["judgment_differs"]
    says = problems(outcome)[0][1]
    assert says.startswith("line 2: task_0000 of Agent X already has a judgment of elsewhere, from judgments.jsonl")
    assert "another judge name" in says
    assert outcome.report.accepted == []
    assert Judgment.objects.count() == 1


def test_a_judgment_is_never_changed_by_anything_else_either(shops: Benchmark) -> None:
    load(shops, PLAIN)
    for write in (lambda: Judgment.objects.update(verdict=0), lambda: Judge.objects.update(model="other")):
        with pytest.raises(DatabaseError, match="append-only"), transaction.atomic():
            write()


def test_an_unknown_task_is_refused_with_the_nearest_id_and_nothing_is_kept(shops: Benchmark) -> None:
    outcome = load(shops, PLAIN, PLAIN | {"task_id": "task_0000_110325"}, PLAIN | {"task_id": "elsewhere"})
    assert [code for code, _ in problems(outcome)] == ["task_unknown", "task_unknown"]
    assert "nearest known id is task_0000" in problems(outcome)[0][1]
    assert not Judgment.objects.exists()
    assert not Judge.objects.exists()
    assert not Agent.objects.filter(name="Agent X").exists()


def test_unknown_tasks_are_told_beside_what_is_wrong_with_other_rows(shops: Benchmark) -> None:
    outcome = load(shops, PLAIN | {"verdict": "maybe"}, PLAIN | {"task_id": "elsewhere"})
    assert [code for code, _ in problems(outcome)] == ["verdict_unknown", "task_unknown"]


# --- judges ----------------------------------------------------------------------------------------------------------


def test_a_file_with_several_models_makes_one_judge_for_each(shops: Benchmark) -> None:
    outcome = load(shops, PLAIN | {"model": "GPT-4o 2024"}, PLAIN | {"model": "o4-mini"}, PLAIN)
    assert outcome.judges == {"elsewhere-gpt-4o-2024": 1, "elsewhere-o4-mini": 1, "elsewhere-unknown": 1}
    assert "elsewhere-gpt-4o-2024, elsewhere-o4-mini, elsewhere-unknown" in warned(outcome)["judge_per_model"]
    assert dict(Judge.objects.values_list("name", "model"))["elsewhere-gpt-4o-2024"] == "GPT-4o 2024"


def test_models_that_would_have_one_name_get_two() -> None:
    names = imports.name_judges("j", ["GPT 4", "gpt-4", "m" * 200])
    assert len(set(names.values())) == 3
    assert all(len(name) <= 64 for name in names.values())


def test_a_judge_is_for_one_model(shops: Benchmark) -> None:
    load(shops, PLAIN | {"model": "o4-mini"})
    outcome = load(shops, PLAIN | {"model": "gpt-4o", "task_id": "task_0001"})
    assert problems(outcome) == [
        (
            "judge_model_differs",
            "elsewhere is for the model o4-mini, the file has the model gpt-4o; choose another judge name.",
        )
    ]


def test_a_judge_that_runs_here_takes_no_imported_judgments(shops: Benchmark) -> None:
    Judge.objects.create(name="webjudge", scorer="webjudge", model="o4-mini")
    assert [code for code, _ in problems(load(shops, PLAIN, judge="webjudge"))] == ["judge_runs_here"]
    assert not Judgment.objects.exists()


@pytest.mark.parametrize("name", ["", "a b", "a/b", "x" * 65, "Ü"])
def test_a_judge_s_name_is_a_slug(shops: Benchmark, name: str) -> None:
    assert [code for code, _ in problems(load(shops, PLAIN, judge=name))] == ["judge_name_invalid"]


# --- trajectories ----------------------------------------------------------------------------------------------------


def test_a_judgment_is_linked_to_the_trajectory_of_the_newest_attempt(tmp_path: Path, db: Any) -> None:
    first = testing.submission(tmp_path / "one", trajectories=2, steps=2, agent="Agent X")
    assert load(first.benchmark, PLAIN).linked == 1
    _, second = ingest.import_submission(
        testing.write_submission(tmp_path / "two", 1, 4), benchmark=first.benchmark, agent_name="Agent X"
    )
    assert second is not None
    assert second.attempt == 2
    load(first.benchmark, PLAIN, PLAIN | {"task_id": "task_0001"}, judge="later")
    linked = {(row.judge.name, row.task.external_id): row.trajectory for row in Judgment.objects.all()}
    assert linked["elsewhere", "task_0000"].submission == first
    assert linked["later", "task_0000"].submission == second
    assert linked["later", "task_0001"].submission == first


def test_a_file_that_is_imported_again_links_its_judgments_to_trajectories_that_came_since(
    tmp_path: Path, db: Any
) -> None:
    benchmark = testing.benchmark(3)
    images = [{"original_step": 4, "score": 5, "passed_threshold": True, "response": "", "file": "0001.png"}]
    rows = (PLAIN | {"image_scores": images}, PLAIN | {"task_id": "task_0001"}, PLAIN | {"task_id": "task_0002"})
    first = load(benchmark, *rows)
    assert (first.new, first.linked) == (3, 0)
    before = list(Judgment.objects.order_by("pk").values())

    _, submission = ingest.import_submission(
        testing.write_submission(tmp_path / "late", 2, 3), benchmark=benchmark, agent_name="Agent X"
    )
    assert submission is not None
    named = submission.trajectories.get(position=0)
    named.steps.filter(index=1).update(file_name="0001.png")
    again = load(benchmark, *rows)
    assert (again.new, again.known, again.linked) == (0, 3, 2)
    assert "1 of the judgments match no trajectory" in warned(again)["not_linked"]
    assert load(benchmark, *rows).linked == 0

    after = list(Judgment.objects.order_by("pk").values())
    assert [row["trajectory_id"] for row in after[:2]] == list(submission.trajectories.values_list("pk", flat=True))
    assert [step["step"] for step in after[0]["evidence"]["steps"]] == [1]  # step 4 of the file is step 1 here
    for old, new in zip(before, after, strict=True):
        assert {name for name in old if old[name] != new[name]} <= {"trajectory_id", "evidence"}
    assert named.judgments.get().pk == before[0]["id"]


def test_a_refused_file_does_not_warn_of_judgments_that_have_a_trajectory(tmp_path: Path, db: Any) -> None:
    benchmark = testing.submission(tmp_path / "one", trajectories=2, steps=2, agent="Agent X").benchmark
    load(benchmark, PLAIN)
    refused = load(benchmark, PLAIN | {"task_id": "task_0001"}, PLAIN | {"verdict": 0})
    assert [code for code, _ in problems(refused)] == ["judgment_differs"]
    assert "not_linked" not in warned(refused)


@pytest.mark.parametrize(
    "changes",
    [{"verdict": 1}, {"explanation": "Another."}, {"evidence": {}}, {"trajectory": None}, {"imported": {"a": 1}}],
)
def test_a_judgment_without_a_trajectory_is_never_changed_but_by_a_link(
    shops: Benchmark, changes: dict[str, Any]
) -> None:
    load(shops, PLAIN)
    with pytest.raises(DatabaseError, match="append-only"), transaction.atomic():
        Judgment.objects.update(**changes)


def test_a_link_is_made_once(tmp_path: Path, db: Any) -> None:
    submission = testing.submission(tmp_path / "one", trajectories=2, agent="Agent X")
    load(submission.benchmark, PLAIN)
    for trajectory in (submission.trajectories.get(position=1), None):
        with pytest.raises(DatabaseError, match="append-only"), transaction.atomic():
            Judgment.objects.update(trajectory=trajectory)


def test_screenshots_that_are_named_find_their_steps(tmp_path: Path, db: Any) -> None:
    submission = testing.submission(tmp_path / "one", trajectories=1, steps=3, agent="Agent X")
    images = [
        {"original_step": 4, "score": 1, "passed_threshold": False, "response": "", "file": None},
        {
            "original_step": 7,
            "score": 5,
            "passed_threshold": True,
            "response": "**Reasoning**: Yes.",
            "file": "0001.png",
        },
    ]
    load(submission.benchmark, PLAIN | {"image_scores": images})
    evidence = Judgment.objects.get().evidence
    assert [(step["step"], step["relevance"], step["kept"]) for step in evidence["steps"]] == [(1, 5, True)]
    assert evidence["steps"][0]["reason"] == "Yes."
    assert evidence["notes"]["screenshots_elsewhere"] == "4: 1"
    assert evidence["notes"]["numbered_in_the_file"] == "7 is step 1"


def test_practice_takes_no_link(tmp_path: Path, db: Any) -> None:
    submission = testing.submission(tmp_path / "one", trajectories=1, agent="Agent X")
    Submission.objects.filter(pk=submission.pk).update(practice=True)
    assert load(submission.benchmark, PLAIN).linked == 0


# --- the recorded and the official files -----------------------------------------------------------------------------


@pytest.fixture
def real(db: Any, tmp_path: Path) -> Benchmark:
    """The real trajectories of all agents, imported."""
    report = import_tasks((REAL / "tasks.json").read_bytes(), "tasks.json", benchmark_slug="real")
    assert not report.rejected
    benchmark = Benchmark.objects.get(slug="real")
    for folder in sorted((REAL / "submissions").iterdir()):
        ingest.import_submission(folder, benchmark=benchmark, agent_name=folder.name, keep_valid=True)
    return benchmark


@needs_real
def test_the_recorded_judgments_are_imported_with_their_verdicts_and_linked(real: Benchmark) -> None:
    rows = [json.loads(line) for line in RECORDED.read_text().splitlines()]
    outcome = imports.import_judgments(RECORDED.read_bytes(), RECORDED.name, benchmark=real, judge="webjudge")
    assert problems(outcome) == []
    assert outcome.judges == {"webjudge-webjudge-7b": 24, "webjudge-o4-mini": 15, "webjudge-gpt-4o-2024-11-20": 6}
    assert (outcome.new, outcome.linked) == (45, 45)
    made = {(j.agent.name, j.task.external_id, j.model): j for j in Judgment.objects.select_related("agent", "task")}
    assert {key: judgment.verdict for key, judgment in made.items()} == {
        (row["agent"], row["task_id"], row["model"]): row["predicted_label"] for row in rows
    }
    for row in rows:
        judgment = made[row["agent"], row["task_id"], row["model"]]
        shown = [image for image in row["images"] if image["passed_threshold"]]
        assert judgment.response == row["final_response"]
        assert judgment.tokens == row["usage"]["total_tokens"]
        assert judgment.imported["carried"]["completion_args"] == row["completion_args"]
        assert [s["relevance"] for s in judgment.evidence["steps"] if s["kept"]] == [i["score"] for i in shown]
        assert judgment.trajectory is not None
        assert judgment.trajectory.steps.count() > max(s["step"] for s in judgment.evidence["steps"])
    again = imports.import_judgments(RECORDED.read_bytes(), "again.jsonl", benchmark=real, judge="webjudge")
    assert (again.new, again.known) == (0, 45)


def test_an_official_result_file_is_imported_by_the_command(shops: Benchmark, tmp_path: Path) -> None:
    file = tmp_path / "WebJudge_Online_Mind2Web_eval_o4-mini_score_threshold_3_auto_eval_results.json"
    failed = {"response": "Thoughts: No.\nStatus: failure", "predicted_label": 0}
    second = upstream(task_id="task_0001", predicted_label=0, evaluation_details=failed)
    file.write_bytes(lines(upstream(), second))
    out = run(file, "--agent", "Agent X", "--report", str(tmp_path / "report.json"))
    assert "2 judgments of 2 tasks accepted" in out
    assert "elsewhere: 2 judgments." in out
    assert dict(Judgment.objects.values_list("task__external_id", "verdict")) == {"task_0000": 1, "task_0001": 0}
    assert Judgment.objects.filter(imported__carried__system_msg="You are ...").count() == 2
    assert json.loads((tmp_path / "report.json").read_text())["accepted"] == ["task_0000", "task_0001"]


# --- the command -----------------------------------------------------------------------------------------------------


def run(file: Path, *more: str, benchmark: str = "shops") -> str:
    out = StringIO()
    call_command(
        "import_judgments", str(file), "--benchmark", benchmark, "--judge", "elsewhere", *more, stdout=out, stderr=out
    )
    return out.getvalue()


def test_a_refused_file_exits_1_with_every_reason_and_a_report(shops: Benchmark, tmp_path: Path) -> None:
    file = tmp_path / "judgments.jsonl"
    file.write_bytes(lines(PLAIN | {"verdict": "maybe"}, PLAIN | {"task_id": "a b"}))
    with pytest.raises(CommandError, match="nothing was imported") as refused:
        run(file, "--report", str(tmp_path / "report.json"))
    assert refused.value.returncode == 1
    report = json.loads((tmp_path / "report.json").read_text())
    assert [problem["code"] for problem in report["rejected"][0]["problems"]] == ["verdict_unknown", "task_id_invalid"]
    assert not Judgment.objects.exists()


def test_an_unknown_benchmark_and_a_missing_file_are_wrong_usage(shops: Benchmark, tmp_path: Path) -> None:
    file = tmp_path / "judgments.jsonl"
    file.write_bytes(lines(PLAIN))
    for path, slug in ((file, "nowhere"), (tmp_path / "none.jsonl", "shops")):
        with pytest.raises(CommandError) as refused:
            run(path, benchmark=slug)
        assert refused.value.returncode == 2


# --- the page and the API --------------------------------------------------------------------------------------------


def upload(data: bytes, **fields: str) -> dict[str, Any]:
    return {"file": SimpleUploadedFile("judgments.jsonl", data), "judge": "elsewhere"} | fields


def post(window: Client, data: bytes, **fields: str) -> Any:
    return window.post(reverse("import-judgments", args=["shops"]), upload(data, **fields))


@pytest.fixture
def window(mira: Person, client: Client) -> Client:
    client.force_login(mira)
    return client


def test_the_page_imports_a_file_and_shows_the_report_and_the_judge(window: Client, mira: Person) -> None:
    answer = post(window, lines(PLAIN | {"model": "o4-mini"}))
    shown = read_page(answer)
    assert answer.status_code == 200
    assert "1 new judgment of 1 task" in shown
    assert "agent_new" in shown
    assert "o4-mini" in window.get(reverse("imported-judgments", args=["shops"])).content.decode()
    assert Judge.objects.get().created_by == mira


def test_the_page_lists_everything_that_is_wrong_as_text(window: Client) -> None:
    answer = post(window, lines(PLAIN | {"verdict": "<b>x</b>"}, PLAIN | {"verdict": 7}))
    shown = read_page(answer)
    assert answer.status_code == 400
    assert shown.count("<code>verdict_unknown</code>") == 2
    assert "&lt;b&gt;x&lt;/b&gt;" in shown
    assert "<b>x</b>" not in shown
    assert not Judgment.objects.exists()


def test_the_page_takes_the_agent_of_an_official_file(window: Client) -> None:
    assert post(window, lines(upstream())).status_code == 400
    assert post(window, lines(upstream()), agent="Agent X").status_code == 200


@pytest.mark.parametrize("fields", [{"judge": "a b"}, {"judge": ""}])
def test_the_form_asks_for_a_usable_name(window: Client, fields: dict[str, str]) -> None:
    assert post(window, lines(PLAIN), **fields).status_code == 400
    assert not Judgment.objects.exists()


def test_the_api_imports_and_refuses_like_the_page(mira: Person) -> None:
    address = "/api/v1/benchmarks/shops/judgments"
    answer = api(mira).post(address, upload(lines(PLAIN)), format="multipart")
    assert (answer.status_code, answer.json()["accepted"]) == (200, ["task_0000"])
    answer = api(mira).post(address, upload(lines(PLAIN | {"verdict": 0})), format="multipart")
    assert answer.status_code == 400
    assert [error["code"] for error in answer.json()["errors"]] == ["judgment_differs"]


@pytest.mark.parametrize("name", ["alice", "bob", "carol", "dave"])
def test_nobody_but_maintainers_reaches_it(tmp_path: Path, db: Any, client: Client, name: str) -> None:
    people = testing.cast(testing.submission(tmp_path / "package"))
    client.force_login(people[name])
    for address in (reverse("imported-judgments", args=["shops"]), reverse("import-judgments", args=["shops"])):
        assert client.post(address, upload(lines(PLAIN))).status_code in (404, 405)
    assert client.get(reverse("imported-judgments", args=["shops"])).status_code == 404
    answer = api(people[name]).post("/api/v1/benchmarks/shops/judgments", upload(lines(PLAIN)), format="multipart")
    assert answer.status_code in (403, 404)
    assert not Judgment.objects.exists()


def test_who_annotates_the_benchmark_cannot_ask_by_files_what_a_judge_has_said(
    tmp_path: Path, db: Any, client: Client
) -> None:
    submission = testing.submission(tmp_path / "package", agent="Agent X")
    people = testing.cast(submission)
    load(submission.benchmark, PLAIN)
    Person.objects.filter(username="alice").update(is_staff=True)
    client.force_login(Person.objects.get(username="alice"))
    answer = post(client, lines(PLAIN | {"verdict": 0}))
    assert answer.status_code == 403
    assert b"judgment_differs" not in answer.content
    assert client.get(reverse("imported-judgments", args=["shops"])).status_code == 403
    alice = Person.objects.get(username="alice")
    answer = api(alice).post("/api/v1/benchmarks/shops/judgments", upload(lines(PLAIN)), format="multipart")
    assert answer.status_code == 403
    workflow.deactivate_member(people["mira"], submission, alice)
    # They may be let in again, and must not have looked in the meantime.
    assert client.get(reverse("imported-judgments", args=["shops"])).status_code == 403


def test_who_decides_in_the_benchmark_cannot_ask_by_files_what_a_judge_has_said(
    tmp_path: Path, db: Any, client: Client
) -> None:
    submission = testing.submission(tmp_path / "package", agent="Agent X")
    people = testing.cast(submission)
    load(submission.benchmark, PLAIN)
    Person.objects.filter(username="carol").update(is_staff=True)
    carol = Person.objects.get(username="carol")
    client.force_login(carol)
    assert post(client, lines(PLAIN | {"verdict": 0})).status_code == 403
    answer = api(carol).post("/api/v1/benchmarks/shops/judgments", upload(lines(PLAIN)), format="multipart")
    assert answer.status_code == 403
    workflow.deactivate_member(people["mira"], submission, carol)
    # They may be let in again, and must not have looked in the meantime.
    assert client.get(reverse("imported-judgments", args=["shops"])).status_code == 403


@pytest.mark.parametrize("agent", ["a\x00b", "a\udcff", "a" * 201])
def test_an_agent_of_the_command_line_that_no_database_takes_is_refused(shops: Benchmark, agent: str) -> None:
    row = {name: value for name, value in PLAIN.items() if name != "agent"}
    assert [code for code, _ in problems(load(shops, row, agent=agent))] == ["agent_name_invalid"]
    assert not Agent.objects.filter(name__startswith="a").exists()


def test_a_file_of_many_models_makes_no_judge_of_each(shops: Benchmark) -> None:
    outcome = load(shops, *(PLAIN | {"model": f"m{number}"} for number in range(imports.MOST_MODELS + 1)))
    assert [code for code, _ in problems(outcome)] == ["too_many_models"]
    assert not Judge.objects.exists()
