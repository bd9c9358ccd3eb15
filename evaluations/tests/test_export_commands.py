"""check_submission, export_submission and list_submissions as a script sees them."""

from __future__ import annotations

import json
import os
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
from botocore.exceptions import EndpointConnectionError
from django.core.files.storage import default_storage
from django.core.management import CommandError, call_command

from annotation.models import Person, Screenshot, Submission
from annotation.screenshots import AtomicFileSystemStorage
from annotation.tests import testing
from evaluations.exports import ExportFormat, ExportStopped, OutputTaken, prepare, write

People = dict[str, Person]


def run(*words: Any) -> tuple[str, str, int]:
    """Standard output, standard error, and the exit code."""
    out, err = StringIO(), StringIO()
    try:
        call_command(*(str(word) for word in words), stdout=out, stderr=err)
    except CommandError as error:
        return out.getvalue(), f"{err.getvalue()}{error}", error.returncode
    return out.getvalue(), err.getvalue(), 0


def test_check_submission_names_everything_and_exits_1(submission: Submission) -> None:
    _, err, code = run("check_submission", submission.pk)
    assert code == 1
    assert err.count("labels_missing") == 2
    assert "not_frozen" in err
    assert err.endswith(": 3 things are missing for an export.")


def test_check_submission_counts_one_missing_thing_in_the_singular(frozen: Submission) -> None:
    Submission.objects.filter(pk=frozen.pk).update(frozen_at=None)
    _, err, _ = run("check_submission", frozen.pk)
    assert err.endswith(": 1 thing is missing for an export.")


def test_check_submission_exits_0_when_nothing_is_missing(frozen: Submission) -> None:
    out, err, code = run("check_submission", frozen.pk)
    assert (code, err) == (0, "")
    assert "nothing is missing" in out


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"confirmed_task": "Find any laptop."}, "task_outdated: task_0000: The task has changed: this"),
        ({"task_id": "task_0000_120125"}, "task_replaced: task_0000: The benchmark has replaced this task"),
    ],
)
def test_check_submission_reports_a_task_that_changed_after_the_import(
    frozen: Submission, change: dict[str, str], says: str
) -> None:
    testing.benchmark(1, **change)
    _, err, code = run("check_submission", frozen.pk)
    assert err.startswith(f"outdated (exports do not refuse these): {says}")
    assert len(err.splitlines()) == 1
    assert code == 0


@pytest.mark.parametrize("words", [("check_submission",), ("export_submission", "--format=labels", "--output=x")])
def test_an_unknown_submission_is_wrong_usage(db: Any, words: tuple[str, ...]) -> None:
    _, err, code = run(words[0], 10**9, *words[1:])
    assert code == 2
    assert "Submission 1000000000 does not exist" in err


@pytest.mark.parametrize("name", ["human-label", "labels", "trajectories-v2"])
def test_an_export_is_refused_with_every_reason_and_writes_nothing(
    submission: Submission, tmp_path: Path, name: str
) -> None:
    folder = tmp_path / "exports"
    folder.mkdir()
    _, err, code = run("export_submission", submission.pk, "--format", name, "--output", folder / "out")
    assert code == 1
    assert err.count("refused: labels_missing") == 2
    assert "refused: not_frozen" in err
    assert list(folder.iterdir()) == []


@pytest.mark.parametrize("name", ["human-label", "labels", "trajectories-v2"])
def test_two_exports_are_the_same_bytes(frozen: Submission, tmp_path: Path, name: str) -> None:
    for output in ("first.zip", "second.zip"):
        assert run("export_submission", frozen.pk, "--format", name, "--output", tmp_path / output)[2] == 0
    assert (tmp_path / "first.zip").read_bytes() == (tmp_path / "second.zip").read_bytes()


def test_a_partial_export_says_what_it_left_out(submission: Submission, people: People, tmp_path: Path) -> None:
    testing.label_all(people, submission, {"task_0000": [1, 0, 1]})
    output = tmp_path / "out.json"
    words = ("export_submission", submission.pk, "--format", "human-label", "--output", output, "--partial")
    out, err, code = run(*words)
    assert code == 0
    assert "partial human-label" in out
    assert "left out: dispute_open" in err
    assert json.loads(output.read_text())["partial"] is True


def test_an_earlier_file_is_kept_when_the_disk_is_full(
    frozen: Submission, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    output = tmp_path / "out.json"
    output.write_text("earlier")

    def full(_: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("os.fsync", full)
    words = ("export_submission", frozen.pk, "--format", "human-label", "--output", output)
    _, err, code = run(*words)
    assert code == 1
    assert err == f"{output} was not written: No space left on device."
    assert output.read_text() == "earlier"
    assert not list(tmp_path.glob(".export-*"))


@pytest.mark.parametrize("name", ["out.zip", "out"])
def test_an_image_that_the_store_has_lost_leaves_no_half_export(frozen: Submission, tmp_path: Path, name: str) -> None:
    lost = Screenshot.objects.order_by("-pk").first()
    task_id = lost.steps.get().trajectory.task.external_id
    assert isinstance(default_storage._wrapped, AtomicFileSystemStorage)
    default_storage.delete(f"originals/{lost.sha256[:2]}/{lost.sha256}")
    folder = tmp_path / "exports"
    folder.mkdir()
    words = ("export_submission", frozen.pk, "--format", "trajectories-v2", "--output", folder / name)
    _, err, code = run(*words)
    assert code == 1
    assert [line.split(":")[:3] for line in err.splitlines()[:-1]] == [["refused", " screenshot_lost", f" {task_id}"]]
    assert list(folder.iterdir()) == []


@pytest.mark.parametrize("name", ["out.zip", "out"])
def test_an_image_store_that_does_not_answer_is_one_line_and_no_half_export(
    frozen: Submission, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    def gone(*_: Any) -> None:
        raise EndpointConnectionError(endpoint_url="http://store:8333/images")

    folder = tmp_path / "exports"
    folder.mkdir()
    export = prepare(frozen, ExportFormat.TRAJECTORIES_V2)
    monkeypatch.setattr(default_storage, "open", gone)
    with pytest.raises(ExportStopped, match="was not written: the image store does not answer"):
        write(export, folder / name)
    _, err, code = run("export_submission", frozen.pk, "--format", "trajectories-v2", "--output", folder / name)
    assert code == 1
    assert len(err.splitlines()) == 1
    assert list(folder.iterdir()) == []


def test_a_folder_that_does_not_exist_is_one_line(frozen: Submission, tmp_path: Path) -> None:
    words = ("export_submission", frozen.pk, "--format", "labels", "--output", tmp_path / "no" / "out")
    _, err, code = run(*words)
    assert code == 1
    assert err.endswith(f"was not written: the folder {tmp_path / 'no'} does not exist.")


def test_a_folder_with_something_else_is_wrong_usage(frozen: Submission, tmp_path: Path) -> None:
    (tmp_path / "mine").write_text("mine")
    words = ("export_submission", frozen.pk, "--format", "trajectories-v2", "--output", tmp_path)
    assert run(*words)[2] == 2


def test_what_is_no_ordinary_file_is_never_replaced(frozen: Submission, tmp_path: Path) -> None:
    # A pipe of our own stands for /dev/stdout and the like, which a test must not aim at.
    output = tmp_path / "pipe"
    os.mkfifo(output)
    with pytest.raises(OutputTaken, match="not a regular file"):
        write(prepare(frozen, ExportFormat.LABELS), output)
    assert output.is_fifo()


def test_list_submissions_gives_one_object_a_submission(submission: Submission, people: People, tmp_path: Path) -> None:
    testing.label_all(people, submission, {"task_0000": [1, 0, 1], "task_0001": [0, 1, 1]})
    base = {"id": submission.pk, "benchmark": "shops", "agent": "Careful Agent", "attempt": 1}
    base |= {"trajectories": 2, "labels": 6}
    assert json.loads(run("list_submissions", "--json")[0]) == [base | {"complete": False, "frozen": False}]
    testing.adjudicate_all(people["carol"], submission)
    assert json.loads(run("list_submissions", "--json")[0]) == [base | {"complete": True, "frozen": False}]
    Submission.objects.update(frozen_at=submission.created_at)
    assert json.loads(run("list_submissions", "--json")[0]) == [base | {"complete": True, "frozen": True}]


def test_list_submissions_is_a_table_for_people(submission: Submission) -> None:
    lines = run("list_submissions")[0].splitlines()
    assert lines[0].split() == ["id", "benchmark", "agent", "attempt", "trajectories", "labels", "complete", "frozen"]
    assert lines[1].split()[1:] == ["shops", "Careful", "Agent", "1", "2", "0", "no", "no"]
