"""Packages into submissions: what is refused, what is said, and that nothing is ever half imported."""

import errno
import io
import json
import shutil
import zipfile
from pathlib import Path

import pytest
from django.conf import settings
from django.core.files.storage import default_storage
from django.core.management import CommandError, call_command
from PIL import Image

from annotation import ingest, screenshots
from annotation.formats import archive, packages
from annotation.formats.archive import ZipPackage
from annotation.formats.documents import parse_json
from annotation.models import Attachment, Benchmark, Event, Screenshot, Step, Submission, Task, Trajectory
from annotation.tests import testing

pytestmark = pytest.mark.django_db
SHARED = settings.BASE_DIR.parent / "shared" / "data"


@pytest.fixture(autouse=True)
def images_in_a_folder_of_their_own(tmp_path, settings):
    settings.MEDIA_ROOT = tmp_path / "images"


@pytest.fixture
def shops(db):
    return testing.benchmark(3)


def read(path, shops, **options):
    return ingest.import_submission(path, benchmark=shops, agent_name="Agent", **options)


def stored_files():
    root = Path(settings.MEDIA_ROOT)
    return sorted(p for p in root.rglob("*") if p.is_file()) if root.exists() else []


def codes(report):
    return {task_id: [problem.code for problem in problems] for task_id, problems in report.rejected.items()}


def zipped(folder):
    target = folder.parent / f"{folder.name}.zip"
    with zipfile.ZipFile(target, "w") as package:
        for file in sorted(folder.rglob("*")):
            package.write(file, file.relative_to(folder))
    return target


def test_a_package_becomes_a_submission_with_its_steps_and_screenshots(shops, tmp_path):
    report, submission = read(testing.write_submission(tmp_path / "package", 2), shops)
    assert report.accepted == ["task_0000", "task_0001"]
    assert (report.rejected, report.warnings) == ({}, [])
    step = Step.objects.get(trajectory__submission=submission, trajectory__position=1, index=1)
    assert (step.click_x, step.click_y, step.status) == (101, 51, "SUCCESS")
    assert screenshots.original(step.screenshot.sha256) == testing.png(101)
    assert Event.objects.get(submission=submission, kind="imported").payload["trajectories"].keys() == {
        "task_0000",
        "task_0001",
    }


def test_a_zip_and_its_folder_are_the_same_submission(shops, tmp_path):
    folder = testing.write_submission(tmp_path / "package", 2)
    _, first = read(folder, shops)
    report, again = read(zipped(folder), shops)
    assert again == first
    assert [(task_id, warning.code) for task_id, warning in report.warnings] == [("", "already_imported")]
    assert Submission.objects.count() == 1
    assert Trajectory.objects.count() == 2


def test_other_bytes_of_the_same_agent_are_the_next_attempt(shops, tmp_path):
    read(testing.write_submission(tmp_path / "one", 1), shops)
    report, second = read(testing.write_submission(tmp_path / "two", 2), shops)
    assert second.attempt == 2
    assert [warning.code for _, warning in report.warnings] == ["new_attempt"]
    assert Submission.objects.count() == 2


def test_one_bad_trajectory_refuses_the_package_and_nothing_is_kept(shops, tmp_path):
    folder = testing.write_submission(tmp_path / "package", 2)
    (folder / "task_0001" / "trajectory" / "0001.png").write_bytes(b"<html>not found</html>")
    report, submission = read(folder, shops)
    assert submission is None
    assert codes(report) == {"task_0001": ["screenshot_not_an_image"]}
    assert (Submission.objects.count(), Screenshot.objects.count(), stored_files()) == (0, 0, [])


def test_the_good_trajectories_are_kept_when_asked(shops, tmp_path):
    folder = testing.write_submission(tmp_path / "package", 2)
    (folder / "task_0001" / "trajectory" / "0001.png").unlink()
    report, submission = read(folder, shops, keep_valid=True)
    assert report.accepted == ["task_0000"]
    assert list(report.rejected) == ["task_0001"]
    assert submission.trajectories.count() == 1


def test_a_dry_run_reports_and_keeps_nothing(shops, tmp_path):
    report, submission = read(testing.write_submission(tmp_path / "package", 2), shops, dry_run=True)
    assert submission is None
    assert len(report.accepted) == 2
    assert (Submission.objects.count(), stored_files()) == (0, [])


def test_every_violation_is_reported_at_once(shops, tmp_path):
    broken = testing.result_v2(0, reference_length="four", surprise=1)
    broken["action_history"][1].pop("thought")
    testing.write_trajectory(tmp_path / "package", broken, {"0000.png": testing.png(), "0002.png": b"GIF89a"})
    report, _ = read(tmp_path / "package", shops)
    said = " ".join(problem.message + problem.where for problem in report.rejected["task_0000"])
    for part in ("reference_length", "surprise", "thought", "0001.png", "0002.png"):
        assert part in said


def test_an_unknown_task_names_the_nearest_known_one(shops, tmp_path):
    result = testing.result_v2(0, task_id="task_0000_110325")
    testing.write_trajectory(tmp_path / "package", result, {f"{n:04d}.png": testing.png(n) for n in range(3)})
    report, _ = read(tmp_path / "package", shops)
    (problem,) = report.rejected["task_0000_110325"]
    assert (problem.code, "nearest known id is task_0000" in problem.message) == ("task_unknown", True)


def test_a_differing_task_text_is_a_warning_that_shows_both(shops, tmp_path):
    result = testing.result_v2(0, task="Find any laptop.")
    testing.write_trajectory(tmp_path / "package", result, {f"{n:04d}.png": testing.png(n) for n in range(3)})
    report, submission = read(tmp_path / "package", shops)
    ((_, warning),) = report.warnings
    assert "Find any laptop." in warning.message
    assert "Find the cheapest laptop" in warning.message
    assert submission is not None


def test_a_trajectory_is_matched_to_the_task_version_whose_text_it_has(shops, tmp_path):
    testing.benchmark(1, confirmed_task="Find any laptop.")
    result = testing.result_v2(0)
    testing.write_trajectory(tmp_path / "package", result, {f"{n:04d}.png": testing.png(n) for n in range(3)})
    report, submission = read(tmp_path / "package", shops)
    ((_, warning),) = report.warnings
    assert warning.code == "task_outdated"
    assert "judged by version 1, and the latest is version 2" in warning.message
    assert submission.trajectories.get().task.version == 1
    assert Task.objects.filter(external_id="task_0000").count() == 2


def test_task_version_that_differs_in_more_than_its_text_is_not_outdated(shops, tmp_path):
    testing.benchmark(1, website="https://other.example.org")
    report, _ = read(testing.write_submission(tmp_path / "package", 1), shops)
    assert Task.objects.filter(external_id="task_0000").count() == 2
    assert report.warnings == []


def test_replaced_task_id_is_imported_with_a_warning(shops, tmp_path):
    testing.benchmark(1, task_id="task_0000_120125")  # month, day, year: later than the next one
    testing.benchmark(1, task_id="task_0000_010225")
    report, submission = read(testing.write_submission(tmp_path / "package", 2), shops)
    assert [(task_id, warning.code) for task_id, warning in report.warnings] == [("task_0000", "task_replaced")]
    assert "has replaced this task by task_0000_120125" in report.warnings[0][1].message
    assert submission.trajectories.get(task__external_id="task_0000").warnings[0]["code"] == "task_replaced"


@pytest.mark.parametrize("keep_valid", [False, True])
def test_two_versions_of_one_task_are_refused(shops, tmp_path, keep_valid):
    testing.benchmark(1, task_id="task_0000_120125")
    folder = testing.write_submission(tmp_path / "package", 2)
    result = testing.result_v2(0, task_id="task_0000_120125")
    testing.write_trajectory(folder, result, {f"{n:04d}.png": testing.png(n) for n in range(3)})
    report, submission = read(folder, shops, keep_valid=keep_valid)
    assert codes(report) == {"task_0000": ["task_versions_mixed"], "task_0000_120125": ["task_versions_mixed"]}
    (problem,) = report.rejected["task_0000"]
    assert "also has task_0000_120125, another version of task task_0000." in problem.message
    assert problem.where == "task_0000/result.json: task_id"
    kept = submission and [row.task.external_id for row in submission.trajectories.all()]
    assert kept == (["task_0001"] if keep_valid else None)


def test_version_of_a_task_is_imported_when_the_other_one_is_refused(shops, tmp_path):
    testing.benchmark(1, task_id="task_0000_120125")
    folder = testing.write_submission(tmp_path / "package", 1)
    testing.write_trajectory(folder, testing.result_v2(0, task_id="task_0000_120125"), {})  # no screenshots
    report, submission = read(folder, shops, keep_valid=True)
    assert list(report.rejected) == ["task_0000_120125"]
    assert [row.task.external_id for row in submission.trajectories.all()] == ["task_0000"]


def test_steps_of_a_desynchronised_v1_are_marked(shops, tmp_path):
    images = {f"{n}_full_screenshot.png": testing.png(n) for n in (0, 2, 3)}
    testing.write_trajectory(tmp_path / "package", testing.result_v1(0, actions=4), images)
    report, submission = read(tmp_path / "package", shops)
    assert any("screenshot" in warning.message for _, warning in report.warnings)
    steps = {s.index: s for s in Step.objects.filter(trajectory__submission=submission)}
    assert steps[0].warnings == []
    assert "screenshot_missing" in [w["code"] for w in steps[1].warnings]
    assert steps[2].screenshot.sha256 == screenshots.inspect(testing.png(2)).sha256
    assert "alignment_doubtful" in [w["code"] for w in steps[2].warnings]


def test_network_traces_lose_their_secrets(shops, tmp_path):
    home = testing.write_submission(tmp_path / "package", 1) / "task_0000"
    headers = [{"name": "Cookie", "value": "sid=1"}, {"name": "Accept", "value": "text/html"}]
    trace = {"log": {"entries": [{"request": {"headers": headers, "cookies": [{"name": "sid", "value": "1"}]}}]}}
    (home / "network.har").write_text(json.dumps(trace))
    read(tmp_path / "package", shops)
    kept = json.loads(screenshots.original(Attachment.objects.get(kind="network_trace").sha256))
    request = kept["log"]["entries"][0]["request"]
    assert [header["value"] for header in request["headers"]] == ["[redacted]", "text/html"]
    assert request["cookies"] == [{"name": "sid", "value": "[redacted]"}]


@pytest.mark.parametrize("failing", [errno.ENOSPC, errno.EIO])
def test_a_full_disk_stops_the_import_with_one_line_and_keeps_no_row(shops, tmp_path, monkeypatch, failing):
    written = []

    def fail_on_the_third(name, content, max_length=None):
        if len(written) == 2:
            raise OSError(failing, "No space left on device")
        written.append(name)
        return name

    monkeypatch.setattr(default_storage, "save", fail_on_the_third)
    with pytest.raises(ingest.ImportStopped, match=r"The import stopped: No space left.* Nothing was saved"):
        read(testing.write_submission(tmp_path / "package", 2), shops)
    assert Submission.objects.count() == 0
    monkeypatch.undo()
    assert read(tmp_path / "package", shops)[1] is not None


def test_a_killed_write_leaves_no_half_file(tmp_path, settings):
    storage = screenshots.AtomicFileSystemStorage(location=tmp_path / "store")

    class Dies(io.BytesIO):
        def chunks(self):
            yield b"half"
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        storage._save("originals/ab", Dies())
    assert [p for p in (tmp_path / "store").rglob("*") if p.is_file()] == []


def test_pictures_are_re_encoded_before_anybody_sees_them(shops, tmp_path):
    polyglot = testing.png(7) + b"<script>alert(1)</script>"
    images = {f"{n:04d}.png": polyglot for n in range(3)}
    testing.write_trajectory(tmp_path / "package", testing.result_v2(0), images)
    read(tmp_path / "package", shops)
    screenshot = Screenshot.objects.get()
    assert screenshots.original(screenshot.sha256) == polyglot
    for kind in screenshots.Rendition:
        data, media_type = screenshots.rendition(screenshot, kind)
        assert b"script" not in data
        assert Image.open(io.BytesIO(data)).get_format_mimetype() == media_type


@pytest.mark.parametrize("mode", ["1", "L", "LA", "P", "RGBA", "I;16"])
def test_every_mode_of_an_image_becomes_a_picture(mode, tmp_path, settings, db):
    stream = io.BytesIO()
    Image.new(mode, (40, 30)).save(stream, "PNG")
    data = stream.getvalue()
    screenshot = screenshots.store(data, screenshots.inspect(data))
    picture = Image.open(io.BytesIO(screenshots.rendition(screenshot, screenshots.Rendition.FULL)[0]))
    assert (picture.mode, picture.size) == ("RGB", (40, 30))


def test_sixteen_bits_keep_their_brightness(tmp_path, db):
    stream = io.BytesIO()
    Image.new("I;16", (4, 4), 0x8000).save(stream, "PNG")
    screenshot = screenshots.store(stream.getvalue(), screenshots.inspect(stream.getvalue()))
    data, _ = screenshots.rendition(screenshot, screenshots.Rendition.FULL)
    assert Image.open(io.BytesIO(data)).getpixel((0, 0)) == (128, 128, 128)


# --- hostile and real packages, where they are at hand ---------------------------------------------------------------


def expectations():
    file = SHARED / "bad_submissions" / "expectations.json"
    return json.loads(file.read_text()) if file.exists() else []


@pytest.mark.skipif(not expectations(), reason="no ../shared/data/bad_submissions beside this checkout")
@pytest.mark.parametrize("case", expectations(), ids=lambda case: case["name"])
def test_a_hostile_input_comes_out_as_expected(case, tmp_path, capsys):
    home = SHARED / "bad_submissions"
    call_command("import_tasks", str(home / "tasks.json"), benchmark="bad", verbosity=0)
    report_file = tmp_path / "report.json"
    command = "import_labels" if case["format"] == "labels" else "import_submission"
    options = {} if case["format"] == "labels" else {"agent": "X"}
    refused = False
    try:
        call_command(command, str(home / case["path"]), benchmark="bad", report=report_file, **options)
    except CommandError as error:
        refused = error.returncode == 1
    report = json.loads(report_file.read_text())
    outcome = "rejected" if refused else "accepted_with_warning" if report["warnings"] else "accepted"
    said = json.dumps(report, ensure_ascii=False).lower()
    assert outcome == case["expected"], said
    for part in case["must_mention"]:
        assert part.lower() in said
    if refused:
        assert (Submission.objects.count(), stored_files()) == (0, [])
    if "expected_order" in case:
        names = Step.objects.order_by("index").values_list("file_name", flat=True)
        assert [int(name.split("_")[0]) for name in names] == case["expected_order"]


REAL = SHARED / "real_trajectories"


@pytest.mark.skipif(not REAL.exists(), reason="no ../shared/data/real_trajectories beside this checkout")
def test_real_trajectories_import_whole_and_show_their_screenshots(tmp_path):
    call_command("import_tasks", str(REAL / "tasks.json"), benchmark="real", verbosity=0)
    shops = Benchmark.objects.get(slug="real")
    for folder in sorted((REAL / "submissions").iterdir()):
        report, submission = ingest.import_submission(folder, benchmark=shops, agent_name=folder.name)
        assert submission is not None, report.as_json()
        assert submission.trajectories.count() == len(list(folder.iterdir()))
    files = {screenshots.inspect(f.read_bytes()).sha256 for f in REAL.rglob("trajectory/*")}
    assert set(Screenshot.objects.values_list("sha256", flat=True)) == files
    data, media_type = screenshots.rendition(Screenshot.objects.first(), screenshots.Rendition.DISPLAY)
    assert media_type == "image/webp"
    assert Image.open(io.BytesIO(data)).width == 1280
    call_command("import_labels", str(REAL / "human_labels.csv"), benchmark="real", verbosity=0)
    assert shops.imported_labels.count() == 31


def test_none_of_two_results_of_a_task_is_imported_even_if_valid_ones_are_kept(shops, tmp_path):
    folder = testing.write_submission(tmp_path / "package", 2)
    shutil.copytree(folder / "task_0000", folder / "zweiter")
    report, submission = read(folder, shops, keep_valid=True)
    assert codes(report) == {"task_0000": ["duplicate_task_id", "duplicate_task_id"]}
    assert report.accepted == ["task_0001"]
    assert [row.task.external_id for row in submission.trajectories.all()] == ["task_0001"]


@pytest.mark.parametrize("write", [testing.write_submission, testing.write_answers])
def test_an_import_opens_a_zip_once_and_parses_every_result_once(shops, tmp_path, monkeypatch, write):
    package = zipped(write(tmp_path / "package", 2))
    opened, parsed = [], []
    monkeypatch.setattr(archive, "ZipPackage", lambda *given: opened.append(given) or ZipPackage(*given))
    monkeypatch.setattr(packages, "parse_json", lambda data, name: parsed.append(name) or parse_json(data, name))
    _, (submission, *_) = ingest.import_all(package, benchmark=shops, agent_name="Agent")
    assert submission.trajectories.count() == 2
    assert len(opened) == 1
    assert len(parsed) == Trajectory.objects.count()
