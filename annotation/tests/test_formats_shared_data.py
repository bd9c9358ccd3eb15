"""The shared packs of hostile inputs and real trajectories, where they are: read as they are expected to be."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from django.conf import settings

from annotation.formats.archive import PackageError, open_package
from annotation.formats.labels_csv import read_labels
from annotation.formats.packages import read_trajectories
from annotation.formats.tasks import read_tasks
from annotation.tests.formats_builders import read_all, said

DATA = Path(settings.BASE_DIR).parent / "shared" / "data"
BAD = DATA / "bad_submissions"
REAL = DATA / "real_trajectories"
# What is wrong with these is inside an image, which is opened by the import only.
IMAGE_CONTENT = {"lfs_pointer_png", "html_as_png", "svg_script_as_png", "png_bomb_50000x50000", "zip_bad_crc"}


def cases():
    path = BAD / "expectations.json"
    return json.loads(path.read_text()) if path.exists() else []


@pytest.fixture(autouse=True)
def shared_data():
    for folder in (BAD, REAL):
        if not folder.is_dir():
            pytest.skip(f"the folder shared/data/{folder.name} is not beside the checkout")


def outcome(case):
    path = BAD / case["path"]
    if case["format"] == "labels":
        _, problems, warnings = read_labels(path.read_bytes(), path.name)
        return problems, [warning for _, warning in warnings]
    readings = read_all(path)
    return [p for _, _, found, _ in readings for p in found], [w for _, _, _, found in readings for w in found]


@pytest.mark.parametrize("case", [c for c in cases() if c["name"] not in IMAGE_CONTENT], ids=lambda case: case["name"])
def test_a_hostile_input_has_the_expected_outcome(case):
    problems, warnings = outcome(case)

    found = "rejected" if problems else "accepted_with_warning" if warnings else "accepted"
    assert found == case["expected"], said([*problems, *warnings])
    for words in case["must_mention"]:
        assert words.lower() in said([*problems, *warnings]).lower()


def test_screenshots_of_ten_and_more_are_in_the_order_of_their_numbers():
    case = next(c for c in cases() if "expected_order" in c)
    (reading,) = read_all(BAD / case["path"])

    assert [int(step.screenshot.partition("_")[0]) for step in reading[1].steps] == case["expected_order"]


def test_a_damaged_image_in_a_zip_is_named_on_reading():
    with open_package(BAD / "zip_bad_crc.zip") as package, pytest.raises(PackageError, match=r"0001\.png"):
        package.read("webarena_629/trajectory/0001.png", 10**7)


def test_every_real_trajectory_is_read_whole_without_a_problem():
    count, warned = 0, []
    for agent in sorted((REAL / "submissions").iterdir()):
        with open_package(agent) as package:
            assert package.problems == []
            for task_id, record, problems, warnings in read_trajectories(package):
                assert problems == [], task_id
                warned += [(task_id, warning.code) for warning in warnings]
                assert all(step.screenshot for step in record.steps)
                count += 1
    assert count == 25
    assert {code for _, code in warned} == {"answer_missing"}  # the others' agents always gave an answer


def test_the_real_task_list_and_labels_are_read_whole():
    problems = []
    with (REAL / "tasks.json").open("rb") as source:
        tasks = list(read_tasks(source, "tasks.json", problems))
    labels, label_problems, _ = read_labels((REAL / "human_labels.csv").read_bytes(), "human_labels.csv")

    assert (problems, label_problems) == ([], [])
    assert tasks
    assert len(labels) == 31
