"""Import reports: folders with the name of another task, dry runs, progress and wording."""

from __future__ import annotations

import io
import json
import zipfile
from pathlib import Path
from typing import Any

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile
from django.core.management import CommandError, call_command
from django.test import Client
from django.urls import reverse

from annotation import ingest, jobs
from annotation.models import Benchmark, Submission, Upload
from annotation.tests import testing
from annotation.tests.formats_builders import codes

pytestmark = pytest.mark.django_db


@pytest.fixture
def shops(settings: Any, tmp_path: Path) -> Benchmark:
    settings.MEDIA_ROOT = tmp_path / "images"
    return testing.benchmark(9)


@pytest.fixture
def mira(client: Client) -> Client:
    client.force_login(testing.person("mira", is_staff=True))
    return client


def two_of_nine_are_good(folder: Path) -> Path:
    testing.write_submission(folder, 9)
    for number in range(7):
        (folder / f"task_{number:04d}" / "trajectory" / "0001.png").unlink()
    return folder


def zipped(folder: Path, name: str = "mine.zip") -> SimpleUploadedFile:
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w") as archive:
        for file in sorted(folder.rglob("*")):
            archive.write(file, file.relative_to(folder))
    return SimpleUploadedFile(name, stream.getvalue(), "application/zip")


# --- a folder under the name of another task --------------------------------------------------------------------------


def renamed(folder: Path, name: str) -> Path:
    testing.write_submission(folder, 1)
    (folder / "task_0000").rename(folder / name)
    return folder


def test_folder_named_after_another_task_is_rejected_with_both_ids(shops: Benchmark, tmp_path: Path) -> None:
    folder = renamed(tmp_path / "package", "task_0004")
    report, made = ingest.import_submission(folder, benchmark=shops, agent_name="Agent")

    assert made is None
    (problem,) = report.rejected["task_0000"]
    assert problem.code == "folder_of_other_task"
    assert problem.message.startswith("The folder task_0004 holds the result of task task_0000.")
    assert problem.where == "task_0004/result.json: task_id"


def test_folder_with_a_name_of_its_own_is_accepted_with_a_warning(shops: Benchmark, tmp_path: Path) -> None:
    folder = renamed(tmp_path / "package", "first try")
    report, made = ingest.import_submission(folder, benchmark=shops, agent_name="Agent")

    assert made is not None
    ((task_id, warning),) = report.warnings
    assert (task_id, warning.code) == ("task_0000", "folder_name_differs")
    assert "first try" in warning.message


def test_trajectory_at_the_top_of_its_package_needs_no_folder_name(shops: Benchmark, tmp_path: Path) -> None:
    folder = testing.write_submission(tmp_path / "task_0004", 1) / "task_0000"
    report, made = ingest.import_submission(folder.rename(tmp_path / "task_0005"), benchmark=shops, agent_name="Agent")

    assert made is not None
    assert report.warnings == []


# --- what is said of a check ------------------------------------------------------------------------------------------


@pytest.fixture
def upload(mira: Client, shops: Benchmark, django_capture_on_commit_callbacks: Any) -> Any:
    """Uploads a package, lets the worker run, and returns the page of the outcome."""

    def send(package: SimpleUploadedFile, **options: str) -> str:
        form = {"package": package, "agent_name": "Agent", "benchmark": shops.pk} | options
        with django_capture_on_commit_callbacks(execute=True):
            address = mira.post(reverse("upload-package"), form)["Location"]
        return mira.get(address).content.decode()

    conf = jobs.import_upload.app.conf
    eager, conf.task_always_eager = conf.task_always_eager, True
    yield send
    conf.task_always_eager = eager


def test_dry_run_page_counts_what_would_be_imported_and_what_would_not(upload: Any, tmp_path: Path) -> None:
    page = upload(zipped(two_of_nine_are_good(tmp_path / "p")), dry_run="on", keep_valid="on")

    assert "2 of 9 trajectories can be imported" in page
    assert "The 7 with problems would be left out." in page
    assert "Import failed" not in page


def test_refused_package_page_says_how_many_are_valid(upload: Any, tmp_path: Path) -> None:
    page = upload(zipped(two_of_nine_are_good(tmp_path / "p")))

    assert "2 trajectories are valid" in page
    assert "<dt>Valid</dt><dd>2</dd>" in page
    assert Upload.objects.get().report["valid"] == ["task_0007", "task_0008"]


def test_imported_package_report_lists_nothing_as_left_out(upload: Any, tmp_path: Path) -> None:
    upload(zipped(two_of_nine_are_good(tmp_path / "p")), keep_valid="on")

    assert Submission.objects.get().import_report.keys() == {"accepted", "rejected", "warnings"}


def test_list_of_uploads_tells_good_and_refused_checks_apart(mira: Client, upload: Any, tmp_path: Path) -> None:
    upload(zipped(testing.write_submission(tmp_path / "good", 1), "good.zip"), dry_run="on")
    upload(zipped(two_of_nine_are_good(tmp_path / "bad"), "bad.zip"), dry_run="on")

    page = mira.get(reverse("upload")).content.decode()
    assert page.index("bad.zip") < page.index("checked: problems found") < page.index("good.zip")
    assert "checked: no problems" in page


def test_message_about_a_damaged_zip_names_the_file_that_was_sent(upload: Any) -> None:
    page = upload(SimpleUploadedFile("my <run> 3.zip", b"no zip", "application/zip"))

    assert "my &lt;run&gt; 3.zip: is not a readable zip file" in page
    assert "package.zip" not in page


# --- the command ------------------------------------------------------------------------------------------------------


def run(folder: Path, **options: Any) -> str:
    out = io.StringIO()
    call_command("import_submission", str(folder), benchmark="shops", agent="A", stdout=out, stderr=out, **options)
    return out.getvalue().splitlines()[-1]


def test_command_says_that_a_dry_run_saved_nothing(shops: Benchmark, tmp_path: Path) -> None:
    folder = two_of_nine_are_good(tmp_path / "package")

    says = run(folder, dry_run=True, keep_valid=True)
    assert says == "2 trajectories would be accepted (dry run, nothing was saved), 7 rejected, 0 warnings."


def test_command_says_how_many_are_valid_when_it_refuses(shops: Benchmark, tmp_path: Path) -> None:
    with pytest.raises(CommandError, match=r"2 valid, 7 rejected; nothing was imported\. .*--keep-valid"):
        run(two_of_nine_are_good(tmp_path / "package"))


def test_command_puts_one_in_the_singular(shops: Benchmark, tmp_path: Path) -> None:
    says = run(renamed(tmp_path / "package", "first try"), dry_run=True)

    assert says == "1 trajectory would be accepted (dry run, nothing was saved), 1 warning."


@pytest.mark.parametrize(("options", "version"), [({}, 1), ({"protocol_version": 2}, 2)])
def test_command_chooses_the_version_of_the_protocol(
    shops: Benchmark, tmp_path: Path, options: dict[str, int], version: int
) -> None:
    run(testing.write_submission(tmp_path / "package", 1), **options)

    assert Submission.objects.get().protocol_version == version


def test_label_command_counts_labels_and_tasks(shops: Benchmark, tmp_path: Path) -> None:
    rows = [f"{who},task_{number:04d},Agent,1" for who in ("a", "b", "c") for number in range(2)]
    file = tmp_path / "labels.csv"
    file.write_text("\n".join(["annotator,task_id,agent,label", *rows]))
    out = io.StringIO()

    call_command("import_labels", str(file), benchmark="shops", stdout=out)
    assert out.getvalue() == "6 labels of 2 tasks accepted, 0 warnings.\n"


# --- progress ---------------------------------------------------------------------------------------------------------


def test_progress_counts_trajectories_whatever_else_lies_in_the_package(shops: Benchmark, tmp_path: Path) -> None:
    folder = testing.write_submission(tmp_path / "package", 3)
    (folder / "task_0001" / "old-result.json").write_text("{}")
    (folder / "readme.txt").write_text("belongs to no trajectory")
    seen: list[tuple[int, int]] = []

    ingest.import_submission(
        folder, benchmark=shops, agent_name="Agent", dry_run=True, progress=lambda *pair: seen.append(pair)
    )
    assert set(seen) == {(1, 3), (2, 3), (3, 3)}


# --- misspelt names ---------------------------------------------------------------------------------------------------


def checked(folder: Path, result: dict[str, Any], shops: Benchmark) -> Any:
    testing.write_trajectory(folder, result, {f"{number:04d}.png": testing.png(number) for number in range(3)})
    return ingest.import_submission(folder, benchmark=shops, agent_name="Agent", dry_run=True)[0]


def test_misspelt_key_gets_a_suggestion(shops: Benchmark, tmp_path: Path) -> None:
    result = json.loads(json.dumps(testing.result_v2(0)).replace('"agent_final_answer"', '"agent_final_anwser"'))
    result["action_history"][1]["thougt"] = result["action_history"][1].pop("thought")
    report = checked(tmp_path / "p", result, shops)

    said = " ".join(problem.message for problem in report.rejected["task_0000"])
    assert codes(report.rejected["task_0000"]) == {"unknown_property", "field_missing"}
    assert "agent_final_anwser is not part of this format (did you mean agent_final_answer?)" in said
    assert "thougt is not part of this format (did you mean thought?)" in said


def test_misspelt_key_of_version_1_gets_a_suggestion(shops: Benchmark, tmp_path: Path) -> None:
    result = testing.result_v1(0)
    result["thougths"] = result.pop("thoughts")
    images = {f"{number}.png": testing.png(number) for number in range(2)}
    testing.write_trajectory(tmp_path / "p", result, images)
    report, _ = ingest.import_submission(tmp_path / "p", benchmark=shops, agent_name="Agent", dry_run=True)

    assert "thougths (did you mean thoughts?)" in " ".join(warning.message for _, warning in report.warnings)


def test_misspelt_column_of_labels_gets_a_suggestion(shops: Benchmark, tmp_path: Path) -> None:
    file = tmp_path / "labels.csv"
    file.write_text("anotator,task_id,agent,label,reasonning\na,task_0000,Agent,1,\n")

    err = io.StringIO()
    with pytest.raises(CommandError):
        call_command("import_labels", str(file), benchmark="shops", stderr=err)
    assert "missing: annotator; unknown: anotator (did you mean annotator?), reasonning" in err.getvalue()
