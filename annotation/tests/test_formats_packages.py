"""Packages of trajectories: every folder is found, every problem is given to its trajectory, nothing is lost."""

from __future__ import annotations

import io
import json
import random
import zipfile
from contextlib import suppress

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from annotation.formats.archive import PackageError, open_package
from annotation.formats.packages import PACKAGE, read_trajectories
from annotation.tests.formats_builders import V2_IMAGES, codes, link, read_all, read_one, said, write_folder, write_zip
from annotation.tests.testing import result_v1, result_v2


def by_task(readings):
    return {task_id: (record, problems, warnings) for task_id, record, problems, warnings in readings}


def members(folder, result):
    """The members of a zip with one trajectory in ``folder``."""
    images = [(f"{folder}/trajectory/{name}", b"image") for name in V2_IMAGES]
    return [(f"{folder}/result.json", json.dumps(result).encode()), *images]


@pytest.mark.parametrize("depth", ["", "wrapper", "a/b/c"])
def test_trajectories_are_found_at_any_depth(tmp_path, depth):
    for number in (1, 2):
        write_folder(tmp_path / depth / f"task_000{number}", result_v2(number))

    readings = read_all(tmp_path)

    assert [reading[0] for reading in readings] == ["task_0001", "task_0002"]
    assert [reading[1].folder for reading in readings] == [
        f"{depth}/task_0001".lstrip("/"),
        f"{depth}/task_0002".lstrip("/"),
    ]
    assert all(problems == [] and warnings == [] for _, _, problems, warnings in readings)


def test_a_package_may_be_one_trajectory_itself(tmp_path):
    task_id, record, problems, warnings = read_one(write_folder(tmp_path / "anything", result_v2(1)))

    assert (task_id, record.folder, problems, warnings) == ("task_0001", "", [], [])


def test_a_zip_reads_as_the_folder_does(tmp_path):
    write_folder(tmp_path / "p" / "task_0001", result_v2(1))
    write_zip(tmp_path / "p.zip", members("task_0001", result_v2(1)))

    assert read_all(tmp_path / "p.zip") == read_all(tmp_path / "p")


def test_both_versions_may_lie_side_by_side(tmp_path):
    write_folder(tmp_path / "a", result_v1(1), ["0.png", "1.png"])
    write_folder(tmp_path / "b", result_v2(2))

    assert [len(record.steps) for _, record, _, _ in read_all(tmp_path)] == [2, 3]


def test_screenshots_without_a_result_are_reported_as_such(tmp_path):
    (tmp_path / "t1" / "trajectory").mkdir(parents=True)
    (tmp_path / "t1" / "trajectory" / "0.png").write_bytes(b"image")

    task_id, record, problems, _ = read_one(tmp_path)

    assert (task_id, record, codes(problems)) == ("t1", None, {"result_missing"})
    assert "result.json" in problems[0].message


def test_files_that_belong_to_no_trajectory_are_warned_of(tmp_path):
    write_folder(tmp_path / "t1", result_v2(1))
    (tmp_path / "README.md").write_text("hello")

    found = by_task(read_all(tmp_path))

    assert codes(found[PACKAGE][2]) == {"leftover_file"}
    assert "README.md" in said(found[PACKAGE][2])
    assert found["task_0001"][1] == []


def test_an_empty_package_is_one_problem(tmp_path):
    (tmp_path / "p").mkdir()
    for path in (
        tmp_path / "p",
        write_zip(tmp_path / "p.zip", []),
        write_zip(tmp_path / "n.zip", [(".DS_Store", b"")]),
    ):
        task_id, record, problems, warnings = read_one(path)
        assert (task_id, record, codes(problems), warnings) == (PACKAGE, None, {"package_empty"}, [])


def test_something_that_is_no_package_is_one_problem(tmp_path):
    (tmp_path / "p.zip").write_bytes(b"hello")

    _, _, problems, _ = read_one(tmp_path / "p.zip")

    assert codes(problems) == {"zip_unreadable"}


def test_one_task_id_in_two_folders_is_refused_in_both(tmp_path):
    for folder in ("a", "b"):
        write_folder(tmp_path / folder, result_v2(1))
    write_folder(tmp_path / "c", result_v2(2))

    readings = read_all(tmp_path)

    assert [(task_id, codes(problems)) for task_id, _, problems, _ in readings] == [
        ("task_0001", set()),
        ("task_0001", set()),
        ("task_0002", set()),
        ("task_0001", {"duplicate_task_id"}),
    ]
    assert [problem.where for problem in readings[3].problems] == ["a/result.json: task_id", "b/result.json: task_id"]
    assert "several folders hold the result of task task_0001: a, b." in said(readings[3].problems)


def test_a_problem_of_an_entry_comes_with_the_trajectory_it_lies_in(tmp_path):
    path = write_zip(
        tmp_path / "p.zip",
        [*members("t1", result_v2(1)), *members("t2", result_v2(2)), (link("t1/x"), b"/etc"), (link("y"), b"/etc")],
    )

    found = by_task(read_all(path))

    assert codes(found["task_0001"][1]) == {"symlink"}
    assert found["task_0001"][0] is None
    assert found["task_0002"][1] == []
    assert [problem.where for problem in found[PACKAGE][1]] == ["y"]


def test_a_path_that_climbs_out_is_a_problem_of_the_whole_package(tmp_path):
    path = write_zip(tmp_path / "p.zip", [*members("t1", result_v2(1)), ("t1/trajectory/../../../evil.png", b"x")])

    assert codes(by_task(read_all(path))[PACKAGE][1]) == {"path_outside"}


def test_all_problems_of_a_package_are_in_what_is_read_from_it(tmp_path):
    path = write_zip(
        tmp_path / "p.zip",
        [
            *members("t1", result_v2(1)),
            *members("T1", result_v2(2)),
            ("../e", b""),
            (link("t1/l"), b""),
            ("i.zip", b""),
        ],
    )
    with open_package(path) as package:
        reported = [problem for _, _, problems, _ in read_trajectories(package) for problem in problems]
        assert len(package.problems) == 5
        assert set(package.problems) <= set(reported)


def test_a_trajectory_with_problems_still_names_its_images_to_be_looked_at(tmp_path):
    _, record, problems, _ = read_one(write_folder(tmp_path / "t1", result_v2(1, reference_length="four")).parent)

    assert problems
    assert [step.screenshot for step in record.steps] == list(V2_IMAGES)


def test_a_damaged_result_is_reported_with_its_file(tmp_path):
    with zipfile.ZipFile(tmp_path / "p.zip", "w") as archive:
        for name, data in members("t1", result_v2(1)):
            archive.writestr(name, data)
    (tmp_path / "p.zip").write_bytes((tmp_path / "p.zip").read_bytes().replace(b"Laptop", b"Laptod"))

    _, record, problems, _ = read_one(tmp_path / "p.zip")

    assert record is None
    assert "t1/result.json cannot be read" in said(problems)


def test_a_result_of_many_megabytes_is_refused_unread(tmp_path):
    _, record, problems, _ = read_one(write_folder(tmp_path / "t1", b" " * (16 * 2**20 + 1)).parent)

    assert (record, codes(problems)) == (None, {"file_too_large"})


@pytest.mark.parametrize("document", [b"[]", b"null", b'"x"', b"1", b"true"])
def test_a_result_that_is_no_object_is_refused(tmp_path, document):
    _, record, problems, _ = read_one(write_folder(tmp_path / "t1", document).parent)

    assert (record, codes(problems)) == (None, {"wrong_type"})


def test_the_folder_in_a_report_is_short_and_printable(tmp_path):
    task_id, _, _, _ = read_one(write_folder(tmp_path / ("x" * 200), b"{}").parent)

    assert len(task_id) == 80


def check(readings):
    """What holds for every reading: a record or problems, and only findings that can be shown and stored."""
    for task_id, record, problems, warnings in readings:
        assert record is not None or problems or task_id == PACKAGE
        for finding in [*problems, *warnings]:
            assert finding.message.isprintable()
            assert finding.where.isprintable()
            finding.message.encode()


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(st.characters(), max_size=20),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=8), inner, max_size=4),
    max_leaves=10,
)
KEYS = [*result_v2(1), *result_v1(1), "input_image_paths", "odd\n"]
STEP_KEYS = [*result_v2(1)["action_history"][0], "action_status", "odd\n"]
steps = st.dictionaries(st.sampled_from(STEP_KEYS), json_values, max_size=4)
changes = st.dictionaries(st.sampled_from(KEYS), json_values | st.lists(steps, max_size=3), max_size=3)
SLOW_DISK = settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])


@given(st.binary(max_size=300))
@SLOW_DISK
def test_any_bytes_as_a_result_give_problems_and_no_exception(tmp_path, data):
    readings = read_all(write_folder(tmp_path / "t1", data).parent)

    assert readings[0][2]
    check(readings)


@given(st.sampled_from([result_v1(1), result_v2(1)]), changes, st.lists(st.sampled_from(KEYS), max_size=2))
@SLOW_DISK
def test_any_change_of_a_result_gives_a_record_or_problems_and_no_exception(tmp_path, result, change, removed):
    document = {key: value for key, value in (result | change).items() if key not in removed}

    check(read_all(write_folder(tmp_path / "t1", document).parent))


@given(steps, st.integers(0, 2))
@SLOW_DISK
def test_any_change_of_a_step_gives_a_record_or_problems_and_no_exception(tmp_path, change, index):
    result = result_v2(1)
    result["action_history"][index] |= change

    check(read_all(write_folder(tmp_path / "t1", result).parent))


def valid_zip():
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w", compression=zipfile.ZIP_DEFLATED) as archive:
        for name, data in members("task_0001", result_v2(1)):
            archive.writestr(name, data)
    return stream.getvalue()


VALID_ZIP = valid_zip()


@given(st.integers(0, 2**32), st.integers(1, 20), st.booleans())
@settings(max_examples=300, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_any_mutation_of_a_zip_raises_nothing_but_package_errors(tmp_path, seed, flips, cut):
    chance = random.Random(seed)
    data = bytearray(VALID_ZIP)
    # Half of the flips hit the directory: that is where a zip lies about itself.
    directory = data.index(b"PK\x01\x02")
    for _ in range(flips):
        data[chance.randrange(chance.choice((0, directory)), len(data))] = chance.randrange(256)
    if cut:
        del data[chance.randrange(len(data)) :]
    path = tmp_path / "p.zip"
    path.write_bytes(data)

    check(read_all(path))
    with open_package(path) as package:
        for name in package.names():
            with suppress(PackageError):
                package.read(name, 10_000)
