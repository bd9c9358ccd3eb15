"""What tasks are held against: written in versions, checked before they are kept, and kept from who reviews."""

from __future__ import annotations

import io
import json
import threading
import zipfile
from pathlib import Path
from typing import Any

import pytest
from django.core.exceptions import PermissionDenied
from django.db import IntegrityError, connection, transaction
from django.http import Http404

from annotation import workflow
from annotation.models import Person, Submission, Task
from annotation.tests import testing
from annotation.workflow import Conflict, Incomplete
from judges import expectations
from judges.expectations import Kind
from judges.models import Expectation
from judges.working.subjects import load_subject

CHECKS = "checks:\n  - name: The search\n    url: http://shop.example/search\n"
OTHER = "checks:\n  - name: The cart\n    url: http://shop.example/cart\n"
RUBRIC = "nodes:\n  - claim: It is sorted.\n    about: screenshots\n"
WRONG = "checks:\n  - name: A\n    ulr: http://shop.example/\n    respons_status: 200\n"


@pytest.fixture
def submission(db: Any, tmp_path: Path, settings: Any) -> Submission:
    settings.MEDIA_ROOT = tmp_path / "images"
    return testing.submission(tmp_path / "package", trajectories=3)


# --- versions --------------------------------------------------------------------------------------------------------


def test_a_new_text_is_a_new_version_and_the_old_one_stays(task: Task, people: dict[str, Person]) -> None:
    expectations.write(people["mira"], task, Kind.NETWORK_CHECKS, CHECKS, "first")
    made = expectations.write(people["mira"], task, Kind.NETWORK_CHECKS, OTHER, "the cart matters")
    assert (made.version, made.written_by, made.why) == (2, people["mira"], "the cart matters")
    assert [row.text for row in expectations.select_history(task, Kind.NETWORK_CHECKS)] == [OTHER, CHECKS]
    assert expectations.find_current(task, Kind.NETWORK_CHECKS) == made
    assert expectations.find_current(task, Kind.RUBRIC) is None


def test_the_same_text_is_no_new_version_however_its_lines_end(task: Task) -> None:
    made = expectations.write(None, task, Kind.RUBRIC, RUBRIC)
    again = expectations.write(None, task, Kind.RUBRIC, RUBRIC.replace("\n", "\r\n") + "  \n\n")
    assert (again, Expectation.objects.count()) == (made, 1)


def test_every_problem_is_named_with_its_line_and_nothing_is_kept(task: Task) -> None:
    with pytest.raises(Incomplete) as refused:
        expectations.write(None, task, Kind.NETWORK_CHECKS, WRONG)
    assert [problem.where for problem in refused.value.problems] == sorted(p.where for p in refused.value.problems)
    assert {"line 3", "line 4"} <= {problem.where for problem in refused.value.problems}
    assert not Expectation.objects.exists()


def test_an_empty_text_withdraws_and_what_never_was_cannot_be_withdrawn(task: Task) -> None:
    with pytest.raises(Conflict):
        expectations.withdraw(None, task, Kind.RUBRIC)
    expectations.write(None, task, Kind.RUBRIC, RUBRIC)
    gone = expectations.write(None, task, Kind.RUBRIC, " \n ", "wrong task")
    assert (gone.version, gone.text) == (2, "")
    assert expectations.find_current(task, Kind.RUBRIC) is None
    assert expectations.withdraw(None, task, Kind.RUBRIC) == gone
    back = expectations.write(None, task, Kind.RUBRIC, RUBRIC)
    assert (back.version, expectations.find_current(task, Kind.RUBRIC)) == (3, back)


def test_scorers_are_given_the_newest_version_and_nothing_that_was_withdrawn(submission: Submission) -> None:
    trajectory = submission.trajectories.earliest("position")
    expectations.write(None, trajectory.task, Kind.NETWORK_CHECKS, CHECKS)
    made = expectations.write(None, trajectory.task, Kind.NETWORK_CHECKS, OTHER)
    expectations.write(None, trajectory.task, Kind.RUBRIC, RUBRIC)
    expectations.withdraw(None, trajectory.task, Kind.RUBRIC)
    given = load_subject(trajectory).expectations
    assert list(given) == ["network_checks"]
    assert (given["network_checks"].version, given["network_checks"].digest) == (2, made.digest)


def test_a_reason_that_cannot_be_stored_is_refused(task: Task) -> None:
    for why in ("x" * 501, "half \ud800"):
        with pytest.raises(Incomplete) as refused:
            expectations.write(None, task, Kind.RUBRIC, RUBRIC, why)
        assert [problem.where for problem in refused.value.problems] == ["why"]


# --- two people ------------------------------------------------------------------------------------------------------


def test_who_started_from_an_older_version_is_told(task: Task) -> None:
    expectations.write(None, task, Kind.NETWORK_CHECKS, CHECKS, after=0)
    with pytest.raises(Conflict):
        expectations.write(None, task, Kind.NETWORK_CHECKS, OTHER, after=0)
    with pytest.raises(Conflict):
        expectations.withdraw(None, task, Kind.NETWORK_CHECKS, after=0)
    assert expectations.write(None, task, Kind.NETWORK_CHECKS, OTHER, after=1).version == 2


def test_the_database_refuses_a_version_twice_and_any_change_of_one(task: Task) -> None:
    made = expectations.write(None, task, Kind.RUBRIC, RUBRIC)
    with pytest.raises(IntegrityError), transaction.atomic():
        Expectation.objects.create(task=task, kind=Kind.RUBRIC, version=1, text="other", digest="")
    with pytest.raises(Exception, match=r"append-only|never change"), transaction.atomic():
        Expectation.objects.filter(pk=made.pk).update(text="other")
    made.refresh_from_db()
    assert made.text == RUBRIC


@pytest.mark.django_db(transaction=True)
def test_of_two_who_write_at_once_one_is_kept_and_the_other_is_told(tmp_path: Path, settings: Any) -> None:
    settings.MEDIA_ROOT = tmp_path / "images"
    task = testing.benchmark(1).tasks.get()
    both, ends = threading.Barrier(2), []

    def one(text: str) -> None:
        try:
            both.wait(10)
            ends.append(expectations.write(None, task, Kind.NETWORK_CHECKS, text, after=0).text)
        except Conflict:
            ends.append("conflict")
        finally:
            connection.close()

    threads = [threading.Thread(target=one, args=(text,)) for text in (CHECKS, OTHER)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(ends) == 2
    assert ends.count("conflict") == 1
    assert Expectation.objects.get().text in (CHECKS, OTHER)


# --- whose they are --------------------------------------------------------------------------------------------------


def test_outsiders_do_not_find_the_benchmark_and_reviewers_are_refused(task: Task, people: dict[str, Person]) -> None:
    for name, refusal in (("dave", Http404), ("alice", Http404)):
        with pytest.raises(refusal):
            expectations.write(people[name], task, Kind.RUBRIC, RUBRIC)
    for name in ("alice", "carol"):
        Person.objects.filter(pk=people[name].pk).update(is_staff=True)
        reviewer = Person.objects.get(username=name)
        with pytest.raises(PermissionDenied):
            expectations.write(reviewer, task, Kind.RUBRIC, RUBRIC)
        with pytest.raises(PermissionDenied):
            expectations.import_file(reviewer, task.benchmark, Kind.RUBRIC, b"", "a.yaml")
    assert not Expectation.objects.exists()


# --- many at once ----------------------------------------------------------------------------------------------------


def packed(files: dict[str, str]) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        for name, text in files.items():
            archive.writestr(name, text)
    return buffer.getvalue()


def ids(submission: Submission) -> list[str]:
    return list(submission.trajectories.order_by("position").values_list("task__external_id", flat=True))


def load(submission: Submission, kind: str, data: bytes, name: str, **options: Any) -> dict[str, Any]:
    return expectations.import_file(None, submission.benchmark, kind, data, name, **options).as_json()


@pytest.mark.parametrize("shape", ["zip", "yaml", "jsonl", "json"])
def test_rubrics_are_loaded_from_each_shape_of_file(submission: Submission, shape: str) -> None:
    rubric = {"nodes": [{"claim": "It is 5: sorted, no?", "about": "answer", "note": "yes"}]}
    entries = [{"task_id": each, "rubric": rubric} for each in ids(submission)]
    data = {
        "zip": packed({f"rubrics/{each}.yaml": json.dumps(rubric) for each in ids(submission)}),
        "yaml": json.dumps(entries).encode(),
        "json": json.dumps(entries, indent=1).encode(),
        "jsonl": "\n\n".join(json.dumps(entry) for entry in entries).encode(),
    }[shape]
    report = load(submission, Kind.RUBRIC, data, f"rubrics.{shape}")
    assert (sorted(report["accepted"]), report["rejected"]) == (sorted(ids(submission)), [])
    for row in Expectation.objects.all():
        node = expectations.parse_text(Kind.RUBRIC, row.text).claims()[0]
        assert (node.text, node.about, node.note) == ("It is 5: sorted, no?", "answer", "yes")
        assert row.why == f"imported from rubrics.{shape}"


def test_a_rubric_that_stands_as_a_text_keeps_its_comments(submission: Submission) -> None:
    text = "# by hand\n" + RUBRIC
    data = json.dumps([{"task_id": ids(submission)[0], "rubric": text}]).encode()
    load(submission, Kind.RUBRIC, data, "rubrics.yaml")
    assert Expectation.objects.get().text == text


def test_checks_are_loaded_from_a_file_and_from_a_zip(submission: Submission) -> None:
    checks = [{"name": "A", "url": "http://shop.example/"}]
    data = json.dumps([{"task_id": ids(submission)[0], "checks": checks}]).encode()
    assert load(submission, Kind.NETWORK_CHECKS, data, "checks.json")["accepted"] == [ids(submission)[0]]
    report = load(submission, Kind.NETWORK_CHECKS, packed({f"{ids(submission)[1]}.yml": CHECKS}), "checks.ZIP")
    assert report["accepted"] == [ids(submission)[1]]
    assert Expectation.objects.filter(kind=Kind.NETWORK_CHECKS).count() == 2


def test_one_bad_task_keeps_the_whole_file_out_and_all_problems_are_named(submission: Submission) -> None:
    first, second, third = ids(submission)
    data = packed({f"{first}.yaml": CHECKS, f"{second}.yaml": WRONG, f"{third}.yaml": "  ", "nobody.yaml": CHECKS})
    report = load(submission, Kind.NETWORK_CHECKS, data, "checks.zip")
    codes = {row["task_id"]: {problem["code"] for problem in row["problems"]} for row in report["rejected"]}
    assert report["accepted"] == []
    assert set(codes) == {second, third, "nobody"}
    assert (codes[third], codes["nobody"]) == ({"expectation_empty"}, {"task_unknown"})
    assert any("line 3" in problem["where"] for row in report["rejected"] for problem in row["problems"])
    assert not Expectation.objects.exists()


def test_what_a_task_says_already_is_a_warning_and_no_new_version(submission: Submission) -> None:
    data = packed({f"{each}.yaml": CHECKS for each in ids(submission)})
    load(submission, Kind.NETWORK_CHECKS, data, "checks.zip")
    report = load(submission, Kind.NETWORK_CHECKS, data, "checks.zip")
    assert {warning["code"] for warning in report["warnings"]} == {"expectation_known"}
    assert len(report["accepted"]) == len(report["warnings"]) == Expectation.objects.count() == 3


def test_a_dry_run_reports_the_same_and_keeps_nothing(submission: Submission) -> None:
    data = packed({f"{each}.yaml": CHECKS for each in ids(submission)})
    report = load(submission, Kind.NETWORK_CHECKS, data, "checks.zip", dry_run=True)
    assert (len(report["accepted"]), Expectation.objects.count()) == (3, 0)


@pytest.mark.parametrize(
    ("data", "name", "code"),
    [
        (b"not a zip", "a.zip", "zip_unreadable"),
        (packed({"../../etc/passwd.yaml": RUBRIC}), "a.zip", "path_outside"),
        (packed({"readme.txt": "x"}), "a.zip", "file_empty"),
        (packed({"a/same.yaml": RUBRIC, "b/same.yaml": RUBRIC}), "a.zip", "task_twice"),
        (b"\xff\xfe\x00", "a.yaml", "not_utf8"),
        (b"a: [1", "a.yaml", "yaml_invalid"),
        (b"a: 1", "a.yaml", "not_a_list"),
        (b"- task_id: 7\n  rubric: x", "a.yaml", "entry_invalid"),
        (b"- task_id: a\n  rubrik: x", "a.yaml", "entry_invalid"),
        (b"- task_id: a\n  rubric: []", "a.yaml", "entry_invalid"),
        (b'{"task_id": "a", "rubric": "x"}\n{"task_id"', "a.jsonl", "json_invalid"),
        (b"[]", "a.json", "file_empty"),
    ],
)
def test_a_file_that_is_none_is_refused_with_its_reason(
    submission: Submission, data: bytes, name: str, code: str
) -> None:
    report = load(submission, Kind.RUBRIC, data, name)
    assert {problem["code"] for row in report["rejected"] for problem in row["problems"]} == {code}


@pytest.mark.parametrize(
    ("name", "data"),
    [("a.yaml", b"- {task_id: a, rubrik: x}"), ("a.jsonl", b'{"task_id": "a", "rubrik": "x"}')],
)
def test_a_misspelt_key_of_an_entry_is_told_with_the_nearest(submission: Submission, name: str, data: bytes) -> None:
    report = load(submission, Kind.RUBRIC, data, name)
    (problem,) = [problem for row in report["rejected"] for problem in row["problems"]]
    assert (problem["code"], problem["where"]) == ("entry_invalid", "line 1")
    assert "and no others; `rubrik` is not one of them (did you mean rubric?)." in problem["message"]


def test_a_file_is_taken_for_the_newest_version_of_a_task(submission: Submission) -> None:
    old = submission.trajectories.earliest("position").task
    new = Task.objects.create(benchmark=old.benchmark, external_id=old.external_id, version=2, text="Another text.")
    load(submission, Kind.NETWORK_CHECKS, packed({f"{old.external_id}.yaml": CHECKS}), "checks.zip")
    assert Expectation.objects.get().task == new


def test_a_first_rubric_is_made_of_the_accepted_key_points(task: Task) -> None:
    draft = expectations.start_from_key_points(task)
    claims = expectations.parse_text(Kind.RUBRIC, draft).claims()
    assert len(claims) == len(workflow.key_points_of(task.trajectories.get()))
