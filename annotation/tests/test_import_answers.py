"""Importing answers: one submission for each of a task's answers, from command, page, API and job, all or none."""

from __future__ import annotations

import io
import json
import zipfile
from pathlib import Path
from typing import Any

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile
from django.core.management import CommandError, call_command

from annotation import ingest, jobs
from annotation.formats import cached_pages
from annotation.models import Attachment, Benchmark, Event, Screenshot, Submission, Trajectory
from annotation.models.events import digest
from annotation.tests import testing
from annotation.tests.shared_rows import shared_rows

pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def images_in_a_folder_of_their_own(tmp_path: Path, settings: Any) -> None:
    settings.MEDIA_ROOT = tmp_path / "images"


@shared_rows
def shops() -> Benchmark:
    return testing.benchmark(2)


def read(path: Path, shops: Benchmark, **options: Any) -> Any:
    return ingest.import_all(path, benchmark=shops, agent_name="Agent", **options)


def zipped(folder: Path) -> bytes:
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w") as package:
        for file in sorted(folder.rglob("*")):
            package.write(file, file.relative_to(folder))
    return stream.getvalue()


def codes(report: Any) -> dict[str, list[str]]:
    return {task_id: [problem.code for problem in found] for task_id, found in report.rejected.items()}


def test_each_answer_of_a_task_becomes_an_attempt(shops, tmp_path):
    report, made = read(testing.write_answers(tmp_path / "answers", 2, answers=3), shops)

    assert [submission.attempt for submission in made] == [1, 2, 3]
    for number, submission in enumerate(made, start=1):
        said = submission.trajectories.values_list("final_answer", flat=True)
        assert len(said) == 2
        assert all(f"This is answer {number}." in text for text in said)
    warned = [(task_id, warning.code) for task_id, warning in report.warnings]
    assert warned == [("", "several_submissions")]  # that there are several attempts is what it says
    assert ", ".join(f"{one.pk} (attempt {one.attempt})" for one in made) in report.warnings[-1][1].message
    assert [event.payload["attempt"] for event in Event.objects.filter(kind="imported")] == [1, 2, 3]
    assert {event.payload["report"] for event in Event.objects.all()} == {digest(report.as_json())}


def test_the_same_answers_again_change_nothing(shops, tmp_path):
    folder = testing.write_answers(tmp_path / "answers", 2, answers=2)
    _, first = read(folder, shops)
    report, again = read(folder, shops)

    assert again == first
    assert Submission.objects.count() == 2
    assert "already_imported" in {warning.code for _, warning in report.warnings}


def test_answers_that_say_the_same_are_one_submission(shops, tmp_path):
    folder = testing.write_answers(tmp_path / "answers", 1, answers=2)
    (folder / "task_0000" / "answer_2.md").write_bytes((folder / "task_0000" / "answer_1.md").read_bytes())
    _, made = read(folder, shops)

    assert len(made) == 1


def test_one_bad_answer_refuses_all_attempts_unless_the_valid_ones_are_kept(shops, tmp_path):
    folder = testing.write_answers(tmp_path / "answers", 2, answers=2)
    (folder / "task_0001" / "answer_2.md").write_text(" ")
    report, made = read(folder, shops)
    assert (made, report.accepted, codes(report)) == ([], [], {"task_0001": ["answer_empty"]})
    assert not Submission.objects.exists()

    report, made = read(folder, shops, keep_valid=True)
    assert [submission.trajectories.count() for submission in made] == [1, 1]


def test_answers_to_a_task_that_is_unknown_are_refused(shops, tmp_path):
    folder = testing.write_answers(tmp_path / "answers", 1)
    (folder / "task_0000").rename(folder / "no_such_task")
    report, made = read(folder, shops)

    assert (made, codes(report)) == ([], {"no_such_task": ["task_unknown"]})


def test_a_picture_of_a_page_that_is_none_is_refused(shops, tmp_path):
    folder = testing.write_answers(tmp_path / "answers", 2)
    name = cached_pages.files_of("https://shop1.example/laptops", "web")[1]
    (folder / "cache" / "task_0001" / name).write_bytes(b"<svg onload=alert(1)>")
    report, made = read(folder, shops)

    assert (made, codes(report)) == ([], {"task_0001": ["screenshot_not_an_image"]})
    assert not Screenshot.objects.exists()
    assert not (tmp_path / "images").exists()


def test_a_dry_run_checks_all_answers_and_keeps_none(shops, tmp_path):
    report, made = read(testing.write_answers(tmp_path / "answers", 2, answers=2), shops, dry_run=True)

    assert made == []
    assert sorted(report.accepted) == ["task_0000", "task_0000", "task_0001", "task_0001"]
    assert not Submission.objects.exists()


def test_files_that_attempts_share_are_stored_once(shops, tmp_path):
    read(testing.write_answers(tmp_path / "answers", 1, answers=2), shops)

    assert Attachment.objects.count() == 8
    assert Attachment.objects.values("sha256").distinct().count() == 4
    assert Screenshot.objects.count() == 1


def test_nothing_is_kept_when_the_second_attempt_cannot_be_written(shops, tmp_path, monkeypatch):
    write = ingest._write_trajectories

    def fails_later(submission: Submission, checked: Any) -> None:
        if submission.attempt == 2:
            raise OSError(28, "No space left on device")
        write(submission, checked)

    monkeypatch.setattr(ingest, "_write_trajectories", fails_later)
    with pytest.raises(ingest.ImportStopped):
        read(testing.write_answers(tmp_path / "answers", 1, answers=2), shops)
    assert not Submission.objects.exists()


def test_one_package_is_imported_as_ever(shops, tmp_path):
    report, made = read(testing.write_submission(tmp_path / "package", 2), shops)

    assert len(made) == 1
    assert report.warnings == []
    assert Trajectory.objects.first().steps.count() == 3


def test_the_command_names_every_submission(shops, tmp_path, capsys):
    folder = testing.write_answers(tmp_path / "answers", 2, answers=2)
    call_command("import_submission", str(folder), "--benchmark", "shops", "--agent", "Agent")

    out = capsys.readouterr().out
    assert [f"submission {pk}: " in out for pk in Submission.objects.values_list("pk", flat=True)] == [True, True]


def test_the_command_refuses_answers_of_several_agents_and_takes_the_one_that_is_named(shops, tmp_path, capsys):
    for name in ("alpha", "beta"):
        testing.write_answers(tmp_path / "answers" / name, 1)
    arguments = ["import_submission", str(tmp_path / "answers"), "--benchmark", "shops", "--agent"]
    with pytest.raises(CommandError):
        call_command(*arguments, "Gamma")
    assert "several_agents" in capsys.readouterr().err

    call_command(*arguments, "beta")
    assert Submission.objects.get().agent.name == "beta"


def test_an_upload_becomes_all_attempts_and_leads_to_the_first(shops, tmp_path):
    data = zipped(testing.write_answers(tmp_path / "answers", 2, answers=2))
    people = {"mira": testing.person("mira", is_staff=True)}
    upload = testing.receive_upload(
        people["mira"], benchmark=shops, agent="Agent", file=SimpleUploadedFile("answers.zip", data)
    )
    jobs.import_upload(str(upload.pk))

    upload.refresh_from_db()
    first, second = Submission.objects.order_by("attempt")
    assert upload.submission == first
    assert f"{second.pk} (attempt 2)" in json.dumps(upload.report)
    assert second.memberships.get().person == people["mira"]
