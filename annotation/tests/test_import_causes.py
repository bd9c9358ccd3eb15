"""The report of an import by causes: the largest first, each folder once, all places in pages and as CSV."""

from __future__ import annotations

import csv
import io
import json
import re
from pathlib import Path
from typing import Any

import pytest
from django.conf import settings as project
from django.core.files.base import ContentFile
from django.core.files.storage import default_storage
from django.core.management import call_command
from django.core.management.base import BaseCommand, CommandError
from django.test import Client
from django.urls import reverse
from django.utils import timezone

from annotation import import_causes, ingest, screenshots
from annotation.management.reports import MOST_REPORT_LINES, finish
from annotation.models import Benchmark, Person, Upload
from annotation.records import ImportReport, Problem
from annotation.tests import testing

FOLDERS = 120
POINTER = screenshots.LFS_POINTER + b".example/spec/v1\n"


@pytest.fixture
def mira(client: Client, db: Any) -> Client:
    client.force_login(testing.person("mira", is_staff=True))
    return client


def checked(report: ImportReport, **fields: Any) -> Upload:
    """An upload of mira that a worker has finished with this report."""
    benchmark, _ = Benchmark.objects.get_or_create(slug="shops", name="Shops")
    return Upload.objects.create(
        uploaded_by=Person.objects.get(username="mira"),
        benchmark=benchmark,
        agent_name="Agent",
        file_name="run.zip",
        report=report.as_json(),
        finished_at=timezone.now(),
        **fields,
    )


def broken_package(folder: Path) -> Path:
    """120 folders: all have two pointers instead of images, 30 an unknown key, 1 is not JSON at all."""
    testing.write_submission(folder, FOLDERS)
    for number, home in enumerate(sorted(folder.iterdir())):
        for name in ("0000.png", "0001.png"):
            (home / "trajectory" / name).write_bytes(POINTER)
        if number < 30:
            result = json.loads((home / "result.json").read_text())
            result["<b>thougths</b>"] = "=1+1"
            (home / "result.json").write_text(json.dumps(result))
    (home / "result.json").write_text("{")
    return folder


@pytest.fixture
def broken(mira: Client, tmp_path: Path) -> Upload:
    report, made = ingest.import_submission(
        broken_package(tmp_path / "run"), benchmark=testing.benchmark(FOLDERS), agent_name="Agent", dry_run=True
    )
    assert made is None
    return checked(report, dry_run=True)


def show(client: Client, upload: Upload, **query: Any) -> str:
    return str(client.get(reverse("upload-status", args=[upload.pk]), query).content.decode())


def listed_folders(page: str) -> list[str]:
    return re.findall(r'<td class="mono agent">(task_\d+)</td>', page)


def test_largest_cause_comes_first_and_counts_each_folder_once(broken: Upload) -> None:
    assert broken.report is not None
    causes = import_causes.group_by_cause(broken.report, "rejected")
    found = [(each.code, each.count, each.folders) for each in causes]
    assert found[:2] == [("screenshot_lfs_pointer", 2 * (FOLDERS - 1), FOLDERS - 1), ("unknown_property", 30, 30)]
    assert ("json_invalid", 1, 1) in found
    assert import_causes.count_folders(broken.report) == {"all": FOLDERS, "good": 0, "wrong": FOLDERS, "warned": 0}


def test_page_says_what_to_fix_first_and_how_once_for_all_folders(mira: Client, broken: Upload) -> None:
    page = show(mira, broken)
    assert page.count("fix first") == 1
    assert page.index("A file is a Git LFS pointer") < page.index("fix first") < page.index("A key is not part of")
    assert page.count("git lfs pull” in the repository") == 1
    assert "If you fix the first cause, 238 of" in page
    assert "<b>thougths</b>" not in page


def test_places_of_a_cause_are_in_pages_of_fifty(mira: Client, broken: Upload) -> None:
    chosen = {"show": "rejected", "code": "screenshot_lfs_pointer"}
    pages = [listed_folders(show(mira, broken, **chosen, page=number)) for number in (1, 2, 3)]
    folders = [set(page) for page in pages]
    of_others = set(listed_folders(show(mira, broken, show="rejected", code="json_invalid")))
    assert "task_0060" in folders[1]
    assert "task_0060" not in folders[0] | folders[2]
    assert len(folders[0] | folders[1] | folders[2]) == FOLDERS
    assert [len(page) for page in pages][:2] == [50 + 5 + 1, 50 + 5 + 1]  # five of the second cause, one of the third
    assert "task_0060" not in of_others


def test_csv_has_every_place_of_a_cause_and_no_formula(mira: Client, broken: Upload) -> None:
    report = ImportReport()
    report.reject("task_1", Problem("odd", "=cmd()", "-1"), Problem("other", "Not this.", ""))
    report.warn("task_1", Problem("odd", "This is a warning.", ""))
    address = reverse("upload-places", args=[checked(report).pk])
    rows = list(csv.reader(io.StringIO(mira.get(address, {"show": "rejected", "code": "odd"}).content.decode())))
    assert rows == [["kind", "code", "task_id", "where", "message"], ["problem", "odd", "task_1", "'-1", "'=cmd()"]]
    assert len(list(csv.reader(io.StringIO(mira.get(address).content.decode())))) == 4

    lfs = {"show": "rejected", "code": "screenshot_lfs_pointer"}
    whole = mira.get(reverse("upload-places", args=[broken.pk]), lfs).content.decode()
    assert len(whole.splitlines()) == 1 + 2 * (FOLDERS - 1)


def test_report_without_problems_has_no_problem_section(mira: Client, tmp_path: Path, settings: Any) -> None:
    settings.MEDIA_ROOT = tmp_path
    default_storage.save("uploads/x", ContentFile(b"a package"))
    page = show(mira, checked(ImportReport(accepted=["task_1", "task_2"]), dry_run=True, stored_as="uploads/x"))
    assert "All 2 trajectories can be imported" in page
    assert "Import now" in page
    assert "<h2>Problems</h2>" not in page
    assert "<h2>Warnings</h2>" not in page


def test_warnings_stand_apart_and_are_never_to_be_fixed_first(mira: Client) -> None:
    report = ImportReport(accepted=["task_1"])
    report.warn("task_1", *[Problem("screenshot_missing", "No image.", f"step {n}") for n in range(7)])
    page = show(mira, checked(report))
    assert "<h2>Warnings</h2>" in page
    assert "<h2>Problems</h2>" not in page
    assert "fix first" not in page
    assert "1 <small>7 warnings</small>" in page


def test_problem_of_the_package_is_shown_without_a_folder(mira: Client) -> None:
    report = ImportReport()
    report.reject("", Problem("zip_unreadable", "run.zip: is not a readable zip file."))
    page = show(mira, checked(report))
    assert "in the package" in page
    assert "Create the zip again" in page


def test_count_of_left_out_problems_is_never_to_be_fixed_first() -> None:
    report = ImportReport()
    report.reject("a", *[Problem("more_problems", "and 3 more")] * 3, Problem("odd", "It is odd."))
    assert [each.code for each in import_causes.group_by_cause(report.as_json(), "rejected")] == [
        "odd",
        "more_problems",
    ]


def test_every_recipe_is_for_a_code_that_exists() -> None:
    known = (project.BASE_DIR / "docs" / "reference" / "problems.md").read_text(encoding="utf-8")
    assert [code for code in import_causes.RECIPES if f"| `{code}` |" not in known] == []


def test_command_prints_the_causes_of_many_problems_on_one_screen(tmp_path: Path, db: Any) -> None:
    package, report = broken_package(tmp_path / "run"), tmp_path / "report.json"
    testing.benchmark(FOLDERS)
    out = io.StringIO()
    given = ["import_submission", str(package), "--benchmark", "shops", "--agent", "A"]
    with pytest.raises(CommandError, match=r"120 rejected; nothing was imported"):
        call_command(*given, stdout=out, stderr=out)
    lines = out.getvalue().splitlines()
    assert lines[:3] == [
        "problem: screenshot_lfs_pointer: A file is a Git LFS pointer, not an image (238 places in 119 folders)",
        f"    {import_causes.RECIPES['screenshot_lfs_pointer'][1]}",
        "    First: task_0000/trajectory/0000.png",
    ]
    assert len(lines) == 3 * 3 + 1
    assert lines[-1] == "The option --report FILE.json lists every place."

    with pytest.raises(CommandError):
        call_command(*given, "--report", str(report), stdout=out, stderr=out)
    written = json.loads(report.read_text())
    assert [(cause["code"], cause["count"], cause["folders"]) for cause in written["causes"]] == [
        ("screenshot_lfs_pointer", 238, 119),
        ("unknown_property", 30, 30),
        ("json_invalid", 1, 1),
    ]
    assert sum(len(part["problems"]) for part in written["rejected"]) == 238 + 30 + 1


def test_report_of_more_causes_than_fit_says_how_many_are_left_out(tmp_path: Path) -> None:
    report, out = ImportReport(), io.StringIO()
    for number in range(40):
        report.reject(f"task_{number}", Problem(f"odd_{number:02}", f"It is odd in way {number}.", "here"))
    with pytest.raises(CommandError):
        finish(BaseCommand(stderr=out), report, None, "0 trajectories")
    lines = out.getvalue().splitlines()
    assert len(lines) == 11 * 3 + 2 <= MOST_REPORT_LINES
    assert lines[1] == "    It is odd in way 0."
    assert lines[-2] == "and 29 other causes"


def test_report_of_another_person_is_not_found(broken: Upload) -> None:
    other = Client()
    other.force_login(testing.person("max", is_staff=True))
    for name in ("upload-status", "upload-places", "upload-report"):
        assert other.get(reverse(name, args=[broken.pk])).status_code == 404
    assert other.post(reverse("import-checked", args=[broken.pk])).status_code == 404
