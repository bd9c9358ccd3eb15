"""Online-Mind2Web version 1: three lists that are aligned where that is certain, and marked where it is not."""

from __future__ import annotations

import pytest

from annotation.formats.printable import counted
from annotation.records import ActionStatus, AttachmentKind, AttachmentRecord, Click
from annotation.tests.formats_builders import codes, read_one, said, write_folder
from annotation.tests.testing import result_v1


@pytest.fixture
def home(tmp_path):
    return tmp_path / "task_0001"


def images(*numbers):
    return [f"{number}_full_screenshot.png" for number in numbers]


def read(home, result, names=None):
    """Record, problems and warnings of a trajectory; two screenshots fit the builder's two actions."""
    _, *rest = read_one(write_folder(home, result, images(0, 1) if names is None else names).parent)
    return rest


def shown(record):
    """The numbers of the screenshots, step by step."""
    return [step.screenshot and int(step.screenshot.partition("_")[0]) for step in record.steps]


def marked(record, code):
    return [step.index for step in record.steps if code in codes(step.warnings)]


def test_a_valid_trajectory_is_read_whole(home):
    record, problems, warnings = read(home, result_v1(1))

    assert (problems, warnings) == ([], [])
    assert record.source_format == "online-mind2web-v1"
    assert (record.task_id, record.final_answer, record.reference_length) == ("task_0001", "Laptop added.", None)
    assert [step.action for step in record.steps] == ["Click at (100, 50)", "Click at (101, 51)"]
    assert [step.thought for step in record.steps] == ["I will do 0.", "I will do 1."]
    assert [step.click for step in record.steps] == [Click(100, 50), Click(101, 51)]
    assert all(step.warnings == () for step in record.steps)


def test_the_address_of_a_navigation_moves_to_url_and_the_suffix_to_status(home):
    actions = ["page -> NAVIGATE -> https://a.example/ | SUCCESS", "click('3') | FAILED"]

    record, _, _ = read(home, result_v1(1) | {"action_history": actions})

    assert [step.url for step in record.steps] == ["https://a.example/", None]
    assert [step.status for step in record.steps] == [ActionStatus.SUCCESS, ActionStatus.FAILED]


def test_screenshots_are_ordered_by_number_not_by_text(home):
    record, problems, warnings = read(home, result_v1(1, actions=12), images(*range(12)))

    assert (problems, warnings) == ([], [])
    assert shown(record) == list(range(12))


@pytest.mark.parametrize("numbers", [(0, 1, 2), (1, 2, 3)])
def test_screenshots_without_a_hole_from_0_or_1_fit_the_actions(home, numbers):
    record, problems, warnings = read(home, result_v1(1, actions=3), images(*numbers))

    assert (problems, warnings) == ([], [])
    assert shown(record) == list(numbers)


@pytest.mark.parametrize("numbers", [(0, 1, 2, 3), (1, 2, 3, 4)])
def test_one_screenshot_more_is_a_last_observation(home, numbers):
    record, problems, warnings = read(home, result_v1(1, actions=3), images(*numbers))

    assert (problems, warnings) == ([], [])
    assert shown(record) == list(numbers)
    assert (record.steps[3].action, record.steps[3].thought) == ("", None)


@pytest.mark.parametrize(
    ("actions", "numbers", "placed", "missing", "doubtful"),
    [
        (3, (0, 2), [0, None, 2], [1], [1, 2]),
        (3, (0, 1, 3), [0, 1, None, 3], [2], [2, 3]),
        (4, (0, 1), [0, 1, None, None], [2, 3], [2, 3]),
        (3, (1, 3), [1, None, 3], [1], [1, 2]),
        (3, (2,), [None, None, 2], [0, 1], [0, 1, 2]),
        (3, (2, 3), [None, None, 2, 3], [0, 1], [0, 1, 2, 3]),
        (3, (1, 2, 4), [1, 2, None, 4], [2], [2, 3]),
        (3, (0, 2, 7), [0, 2, 7], [], [1, 2]),
        (3, (0, 9), [0, 9, None], [2], [1, 2]),
        (1, (0, 1, 2, 3), [0, 1, 2, 3], [], [0, 1, 2, 3]),
        (0, (0, 1), [0, 1], [], [0, 1]),
        (2, (5, 6), [5, 6], [], [0, 1]),
    ],
)
def test_screenshots_with_holes_keep_their_place_and_are_marked(home, actions, numbers, placed, missing, doubtful):
    record, problems, warnings = read(home, result_v1(1, actions=actions), images(*numbers))

    assert problems == []
    assert [warning.code for warning in warnings] == ["alignment_doubtful"]
    assert f"{counted(len(numbers), 'screenshot')} for {counted(actions, 'action')}" in said(warnings)
    assert shown(record) == placed
    assert marked(record, "screenshot_missing") == missing
    assert marked(record, "alignment_doubtful") == doubtful


def test_the_missing_numbers_are_named(home):
    _, _, warnings = read(home, result_v1(1, actions=5), images(0, 3, 4))

    assert "missing numbers: 1, 2;" in said(warnings)


def test_an_astronomic_number_in_a_name_is_no_step_number(home):
    name = "9" * 200 + ".png"

    record, _, warnings = read(home, result_v1(1), ["0.png", name])

    assert [step.screenshot for step in record.steps] == ["0.png", name]
    assert len(said(warnings)) < 500


def test_two_screenshots_of_one_number_are_kept_in_order_of_their_names_and_warned_of(home):
    record, _, warnings = read(home, result_v1(1, actions=3), ["0.png", "1_10.png", "1_9.png"])

    assert [step.screenshot for step in record.steps] == ["0.png", "1_9.png", "1_10.png"]
    assert codes(warnings) == {"screenshot_number_twice", "alignment_doubtful"}
    assert marked(record, "alignment_doubtful") == [2]


def test_a_screenshot_without_a_number_is_refused_by_name(home):
    _, problems, _ = read(home, result_v1(1), ["0.png", "last.png"])

    assert codes(problems) == {"screenshot_number"}
    assert "last.png" in problems[0].message


def test_an_upper_case_extension_is_warned_of(home):
    record, problems, warnings = read(home, result_v1(1), ["0.PNG", "1.png"])

    assert problems == []
    assert len(record.steps) == 2
    assert [(warning.code, "0.PNG" in warning.message) for warning in warnings] == [("extension_case", True)]


def test_a_trajectory_without_its_screenshot_folder_is_refused(home):
    _, problems, _ = read(home, result_v1(1), [])

    assert codes(problems) == {"trajectory_missing"}
    assert "trajectory" in problems[0].message


def test_a_screenshot_folder_without_images_is_refused(home):
    _, problems, _ = read(home, result_v1(1), ["0.txt"])

    assert codes(problems) == {"no_screenshots"}


@pytest.mark.parametrize("drop", [True, False])
def test_a_missing_answer_is_warned_of(home, drop):
    result = result_v1(1, final_result_response=None)
    if drop:
        del result["final_result_response"]

    record, problems, warnings = read(home, result)

    assert problems == []
    assert record.final_answer is None
    assert codes(warnings) == {"answer_missing"}
    assert "final_result_response" in said(warnings)


def test_an_empty_answer_is_an_answer(home):
    record, problems, warnings = read(home, result_v1(1, final_result_response=""))

    assert (record.final_answer, problems, warnings) == ("", [], [])


@pytest.mark.parametrize(
    ("thoughts", "kept"), [([], [None, None]), (["a"], ["a", None]), (["a", "b", "c"], ["a", "b"])]
)
def test_thoughts_that_do_not_fit_are_filled_with_null_and_warned_of(home, thoughts, kept):
    record, problems, warnings = read(home, result_v1(1, thoughts=thoughts))

    assert problems == []
    assert [step.thought for step in record.steps] == kept
    assert [warning.code for warning in warnings] == ["thoughts_count"]
    assert f"{counted(len(thoughts), 'thought')} for 2 actions" in said(warnings)


def test_missing_thoughts_are_warned_of(home):
    result = result_v1(1)
    del result["thoughts"]

    record, _, warnings = read(home, result)

    assert codes(warnings) == {"thoughts_missing"}
    assert [step.thought for step in record.steps] == [None, None]


def test_unknown_keys_are_warned_of_by_name(home):
    record, _, warnings = read(home, result_v1(1, result_status="done", model="x"))

    assert record is not None
    assert [warning.code for warning in warnings] == ["unknown_property"]
    assert "model, result_status" in said(warnings)


@pytest.mark.parametrize("key", ["task", "task_id", "action_history"])
def test_a_missing_key_is_refused_by_name(home, key):
    result = result_v1(1)
    del result[key]

    _, problems, _ = read(home, result)

    assert key in said(problems)


@pytest.mark.parametrize("fields", [
    {"task": 5}, {"task": ""}, {"action_history": "click"}, {"action_history": [{"action": "click"}, "b"]},
    {"action_history": [1, 2]}, {"thoughts": "a"}, {"thoughts": [1, 2]}, {"final_result_response": ["a"]},
    {"input_image_paths": "a.png"}, {"action_history": ["a" * 1_000_001, "b"]},
])  # fmt: skip
def test_a_wrong_type_is_refused_and_named(home, fields):
    _, problems, _ = read(home, result_v1(1, **fields))

    assert next(iter(fields)) in said(problems)


def test_input_images_of_the_folder_are_attached_and_other_paths_warned_of(home):
    paths = ["input.png", "images/second.JPG", "../outside.png", "/etc/passwd", "gone.png", "result.json", 5]
    (home / "images").mkdir(parents=True)
    for name in ("input.png", "images/second.JPG"):
        (home / name).write_bytes(b"image")

    record, problems, warnings = read(home, result_v1(1, input_image_paths=paths))

    assert problems == []
    assert record.attachments == (
        AttachmentRecord(AttachmentKind.INPUT_IMAGE, "images/second.JPG"),
        AttachmentRecord(AttachmentKind.INPUT_IMAGE, "input.png"),
    )
    assert [warning.code for warning in warnings] == ["input_image_missing"]
    assert "../outside.png" in said(warnings)
    assert "result.json" in said(warnings)


def test_too_many_screenshots_are_refused(home, monkeypatch):
    monkeypatch.setattr("annotation.formats.trajectory_folder.MOST_STEPS", 5)

    _, problems, _ = read(home, result_v1(1), images(*range(6)))

    assert codes(problems) == {"too_many_steps"}
