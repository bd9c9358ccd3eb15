"""Import warnings: types in names, missing answers, early completions and ignored entries."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from annotation import ingest
from annotation.formats.archive import open_package
from annotation.models import Benchmark, Screenshot
from annotation.records import ImportReport
from annotation.tests import testing
from annotation.tests.formats_builders import read_all, write_folder, write_zip

pytestmark = pytest.mark.django_db


@pytest.fixture
def shops(settings: Any, tmp_path: Path) -> Benchmark:
    settings.MEDIA_ROOT = tmp_path / "images"
    return testing.benchmark(1)


def imported(result: dict[str, Any], folder: Path, shops: Benchmark, images: dict[str, bytes]) -> ImportReport:
    testing.write_trajectory(folder, result, images)
    report, made = ingest.import_submission(folder, benchmark=shops, agent_name="Agent")
    assert made is not None, report.as_json()
    assert made.trajectories.get().warnings == [warning.as_json() for _, warning in report.warnings]
    return report


def images(*content: bytes) -> dict[str, bytes]:
    return {f"{number:04d}.png": data for number, data in enumerate(content)}


def test_image_whose_name_states_another_type_is_accepted_with_a_warning(shops: Benchmark, tmp_path: Path) -> None:
    pictures = images(testing.png(0), testing.jpeg(1), testing.png(2))
    report = imported(testing.result_v2(0), tmp_path / "p", shops, pictures)

    ((task_id, warning),) = report.warnings
    assert (task_id, warning.code) == ("task_0000", "screenshot_type_differs")
    assert warning.message == "The suffix of the name does not match the content: 0001.png is image/jpeg."
    assert warning.where == "task_0000/trajectory/0001.png"
    assert sorted(Screenshot.objects.values_list("media_type", flat=True)) == ["image/jpeg", "image/png", "image/png"]


def test_image_is_named_in_full_by_the_warning_when_its_name_has_words(shops: Benchmark, tmp_path: Path) -> None:
    result = testing.result_v2(0)
    for number, step in enumerate(result["action_history"]):
        step["screenshot"] = f"this is {number}.png"
    pictures = {f"this is {number}.png": testing.jpeg(number) for number in range(3)}
    report = imported(result, tmp_path / "p", shops, pictures)

    ((_, warning),) = report.warnings
    assert warning.where == "task_0000/trajectory/this is 0.png"


@pytest.mark.parametrize("suffix", [".jpg", ".jpeg"])
def test_both_suffixes_of_jpeg_are_its_own(shops: Benchmark, tmp_path: Path, suffix: str) -> None:
    result = testing.result_v2(0)
    for number, step in enumerate(result["action_history"]):
        step["screenshot"] = f"{number:04d}{suffix}"
    report = imported(result, tmp_path / "p", shops, {f"{n:04d}{suffix}": testing.jpeg(n) for n in range(3)})

    assert report.warnings == []


def test_null_answer_of_version_2_is_a_warning(shops: Benchmark, tmp_path: Path) -> None:
    result = testing.result_v2(0, agent_final_answer=None)
    report = imported(result, tmp_path / "p", shops, images(*map(testing.png, range(3))))

    ((_, warning),) = report.warnings
    assert (warning.code, warning.where) == ("answer_missing", "task_0000/result.json: agent_final_answer")


def test_completion_before_the_last_step_is_a_warning(shops: Benchmark, tmp_path: Path) -> None:
    result = testing.result_v2(0)
    result["action_history"][1]["action"] = "TASK_COMPLETE -> ANSWER: not yet"
    report = imported(result, tmp_path / "p", shops, images(*map(testing.png, range(3))))

    ((_, warning),) = report.warnings
    assert warning.code == "completion_early"
    assert warning.message == "action_history[1].action: TASK_COMPLETE occurs before the last step: 1."


# --- entries that are ignored -----------------------------------------------------------------------------------------


def package_warnings(path: Path) -> list[str]:
    return [warning.code for task_id, _, _, warnings in read_all(path) if not task_id for warning in warnings]


def members(noise: list[str]) -> list[tuple[str, bytes]]:
    return [(name, b"") for name in noise]


@pytest.mark.parametrize("name", ["__MACOSX/junk/._{}", "junk/{}/"])
def test_thousands_of_ignored_entries_of_a_zip_are_a_warning(tmp_path: Path, name: str) -> None:
    """60,000 of them are as many as a package may have beside its own files, and were ignored without a word."""
    home = write_folder(tmp_path / "t1", testing.result_v2(1))
    own = [(f"t1/{file.relative_to(home)}", file.read_bytes()) for file in sorted(home.rglob("*")) if file.is_file()]

    many = write_zip(tmp_path / "many.zip", own + members([name.format(number) for number in range(2_000)]))
    some = write_zip(tmp_path / "some.zip", own + members([name.format(number) for number in range(900)]))
    assert package_warnings(many) == ["many_entries_ignored"]
    assert package_warnings(some) == []


def test_folders_with_files_are_not_counted_as_ignored(tmp_path: Path) -> None:
    own = [("a/", b""), ("a/b/", b""), ("a/b/c/", b""), ("a/b/c/file", b"x"), ("empty/", b""), (".DS_Store", b"")]
    with open_package(write_zip(tmp_path / "p.zip", own)) as package:
        assert package.ignored == 2


def test_empty_folders_and_noise_of_a_folder_are_counted(tmp_path: Path) -> None:
    (tmp_path / "p" / "a" / "b").mkdir(parents=True)
    (tmp_path / "p" / "c").mkdir()
    (tmp_path / "p" / "c" / "file").write_bytes(b"x")
    (tmp_path / "p" / "Thumbs.db").write_bytes(b"x")
    with open_package(tmp_path / "p") as package:
        assert package.ignored == 3  # a, a/b and Thumbs.db
