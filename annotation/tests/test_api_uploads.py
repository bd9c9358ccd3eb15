"""Task files and packages through the API."""

from __future__ import annotations

import io
import json
import zipfile
from pathlib import Path
from typing import Any

import pytest
from django.core.files.storage import default_storage
from django.core.files.uploadedfile import SimpleUploadedFile

from annotation import jobs
from annotation.models import Benchmark, Person, Submission, Upload
from annotation.tests import testing
from annotation.tests.shared_rows import shared_rows
from annotation.tests.test_api_submissions import client, get, problem, results

People = dict[str, Person]


def zip_of(folder: Path) -> SimpleUploadedFile:
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w") as package:
        for path in sorted(p for p in folder.rglob("*") if p.is_file()):
            package.write(path, path.relative_to(folder))
    return SimpleUploadedFile("package.zip", stream.getvalue())


def task_file(*tasks: dict[str, Any]) -> SimpleUploadedFile:
    return SimpleUploadedFile("tasks.json", json.dumps(tasks).encode())


@shared_rows
def mira() -> Person:
    return testing.person("mira", is_staff=True)


def send(person: Person, **fields: Any) -> Any:
    return client(person).post("/api/v1/uploads", fields, format="multipart")


def test_an_upload_is_taken_started_and_followed_to_its_report(
    mira: Person, tmp_path: Path, django_capture_on_commit_callbacks: Any
) -> None:
    testing.benchmark(2)
    package = zip_of(testing.write_submission(tmp_path / "package"))
    with django_capture_on_commit_callbacks(execute=True) as sent:  # one message, to the broker of the tests
        response = send(mira, benchmark="shops", agent="Fast Agent", file=package)
    assert (response.status_code, len(sent)) == (202, 1)
    taken = response.json()
    assert response["Location"] == f"http://testserver/api/v1/uploads/{taken['id']}"
    assert (taken["stage"], taken["report"], taken["submission"]) == ("waiting", None, None)
    jobs.import_upload(taken["id"])  # what the worker does with the message
    status = client(mira).get(response["Location"]).json()
    assert (status["stage"], status["done"], status["total"]) == ("finished", 2, 2)
    assert status["report"]["accepted"] == ["task_0000", "task_0001"]
    made = Submission.objects.get(pk=status["submission"])
    assert made.agent.name == "Fast Agent"
    assert [row["id"] for row in results(mira, "/submissions")] == [made.pk]


def test_a_refused_package_has_its_problems_in_the_report(mira: Person, tmp_path: Path) -> None:
    testing.benchmark(1)
    package = zip_of(testing.write_submission(tmp_path / "package", trajectories=2))
    taken = send(mira, benchmark="shops", agent="A", file=package, keep_valid=False).json()
    jobs.import_upload(taken["id"])
    status = get(mira, f"/uploads/{taken['id']}").json()
    assert status["submission"] is None
    assert [(r["task_id"], r["problems"][0]["code"]) for r in status["report"]["rejected"]] == [
        ("task_0001", "task_unknown")
    ]
    (cause,) = status["causes"]
    assert (cause["kind"], cause["code"], cause["count"], cause["folders"]) == ("problem", "task_unknown", 1, 1)
    assert cause["cure"].startswith("Choose the benchmark of this run")


def test_the_options_of_an_upload_reach_its_row(mira: Person) -> None:
    testing.benchmark(1)
    file = SimpleUploadedFile("p.zip", b"PK")
    send(mira, benchmark="shops", agent="A", file=file, keep_valid="true", dry_run="true")
    upload = Upload.objects.get()
    assert (upload.keep_valid, upload.dry_run, upload.file_name, upload.uploaded_by) == (True, True, "p.zip", mira)
    assert upload.protocol_version == 1
    with default_storage.open(upload.stored_as) as stored:
        assert stored.read() == b"PK"


@pytest.mark.parametrize(("given", "version"), [({}, 1), ({"protocol_version": "2"}, 2)])
def test_an_upload_chooses_the_version_of_the_protocol(
    mira: Person, tmp_path: Path, given: dict[str, str], version: int
) -> None:
    testing.benchmark(1)
    package = zip_of(testing.write_submission(tmp_path / "package", trajectories=1))
    taken = send(mira, benchmark="shops", agent="A", file=package, **given).json()
    assert taken["protocol_version"] == version
    jobs.import_upload(taken["id"])
    assert Submission.objects.get().protocol_version == version


@pytest.mark.parametrize("name", ["../../etc/passwd", "a\\b.zip", "ü.zip"])
def test_the_name_of_an_upload_decides_no_path(mira: Person, name: str) -> None:
    testing.benchmark(1)
    send(mira, benchmark="shops", agent="A", file=SimpleUploadedFile(name, b"PK"))
    upload = Upload.objects.get()
    assert upload.stored_as == f"uploads/{upload.pk}"


@pytest.mark.parametrize(
    ("fields", "where"),
    [
        ({"agent": "A"}, {"benchmark", "file"}),
        ({"agent": " ", "benchmark": "shops"}, {"agent", "file"}),
        ({"agent": "A", "benchmark": "no"}, {"benchmark", "file"}),
        ({"agent": "x" * 201, "benchmark": "shops"}, {"agent", "file"}),
    ],
)
def test_a_wrong_upload_is_refused_field_by_field(mira: Person, fields: dict[str, str], where: set[str]) -> None:
    testing.benchmark(1)
    body = problem(send(mira, **fields), 400)
    assert {error["where"] for error in body["errors"]} == where
    assert not Upload.objects.exists()


def test_a_package_over_the_limit_is_refused(mira: Person, settings: Any) -> None:
    settings.WEBVERDICT_MAX_UPLOAD_BYTES = 3
    testing.benchmark(1)
    body = problem(send(mira, benchmark="shops", agent="A", file=SimpleUploadedFile("p.zip", b"PK__")), 400)
    assert "at most 3 are accepted" in body["detail"]


def test_only_maintainers_of_the_instance_upload(submission: Submission, people: People) -> None:
    for name in ("alice", "carol", "dave"):
        file = SimpleUploadedFile("p.zip", b"PK")
        problem(send(people[name], benchmark="shops", agent="A", file=file), 403)
    assert not Upload.objects.exists()


def test_an_upload_is_seen_by_who_sent_it_only(mira: Person) -> None:
    testing.benchmark(1)
    taken = send(mira, benchmark="shops", agent="A", file=SimpleUploadedFile("p.zip", b"PK")).json()
    other = testing.person("otto", is_staff=True)
    problem(get(other, f"/uploads/{taken['id']}"), 404)
    assert get(mira, f"/uploads/{taken['id']}").status_code == 200


def test_a_task_file_makes_a_benchmark_and_its_tasks_are_listed(mira: Person) -> None:
    file = task_file(testing.task(0), testing.task(1, level="hard"))
    response = client(mira).post("/api/v1/benchmarks/shops/tasks", {"file": file, "name": "Shops"}, format="multipart")
    assert response.status_code == 200
    assert response.json()["accepted"] == ["task_0000", "task_0001"]
    assert results(mira, "/benchmarks") == [{"slug": "shops", "name": "Shops", "tasks": 2}]
    assert results(mira, "/benchmarks/shops/tasks")[0] == {
        "task_id": "task_0000",
        "version": 1,
        "text": testing.task(0)["confirmed_task"],
        "website": "https://shop0.example/",
        "reference_length": 4,
        "level": "easy",
        "key_points": ["at least 16 GB", "cheapest by sorting"],
    }


@pytest.mark.parametrize(
    ("query", "found"),
    [
        ({"level": "hard"}, ["task_0001"]),
        ({"level": "HARD"}, []),
        ({"website": "SHOP0"}, ["task_0000"]),
        ({"website": "shop", "level": "easy"}, ["task_0000"]),
    ],
)
def test_tasks_are_filtered(mira: Person, query: dict[str, str], found: list[str]) -> None:
    file = task_file(testing.task(0), testing.task(1, level="hard"))
    client(mira).post("/api/v1/benchmarks/shops/tasks", {"file": file}, format="multipart")
    assert [row["task_id"] for row in results(mira, "/benchmarks/shops/tasks", **query)] == found


def test_a_changed_task_is_listed_in_its_latest_version(mira: Person) -> None:
    testing.benchmark(2)
    file = task_file(testing.task(0, confirmed_task="Find another laptop."))
    report = client(mira).post("/api/v1/benchmarks/shops/tasks", {"file": file}, format="multipart").json()
    assert [warning["code"] for warning in report["warnings"]] == ["task_changed"]
    listed = results(mira, "/benchmarks/shops/tasks")
    assert sorted((row["task_id"], row["version"]) for row in listed) == [("task_0000", 2), ("task_0001", 1)]
    assert results(mira, "/benchmarks")[0]["tasks"] == 2


def test_a_refused_task_file_names_every_problem(mira: Person) -> None:
    file = task_file({"task_id": "a b", "confirmed_task": "x"}, {"task_id": "c"})
    response = client(mira).post("/api/v1/benchmarks/shops/tasks", {"file": file}, format="multipart")
    assert len(problem(response, 400)["errors"]) == 2
    assert not Benchmark.objects.exists()


def test_an_annotator_loads_no_tasks(submission: Submission, people: People) -> None:
    file = task_file(testing.task(7))
    for name, slug in (("alice", "shops"), ("dave", "new")):
        response = client(people[name]).post(f"/api/v1/benchmarks/{slug}/tasks", {"file": file}, format="multipart")
        problem(response, 403)
    assert not Benchmark.objects.filter(slug="new").exists()


def test_a_maintainer_without_the_instance_s_rights_reads_only_their_benchmarks(
    submission: Submission, people: People
) -> None:
    Person.objects.filter(username="mira").update(is_staff=False)
    testing.benchmark(1, slug="other")
    mira = Person.objects.get(username="mira")
    assert [row["slug"] for row in results(mira, "/benchmarks")] == ["shops"]
    problem(get(mira, "/benchmarks/other/tasks"), 404)
    file = task_file(testing.task(0))
    problem(client(mira).post("/api/v1/benchmarks/new/tasks", {"file": file}, format="multipart"), 403)


def test_a_slug_that_no_column_holds_is_refused(mira: Person) -> None:
    answer = client(mira).post(f"/api/v1/benchmarks/{'x' * 65}/tasks", {"file": task_file(testing.task(0))})
    assert problem(answer, 400)["errors"][0]["where"] == "slug"
    assert not Benchmark.objects.exists()
