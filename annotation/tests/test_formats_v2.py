"""Online-Mind2Web version 2: each rule of the format refuses what breaks it, and names the field."""

from __future__ import annotations

import pytest

from annotation.formats.trajectory_folder import Findings, TrajectoryFolder
from annotation.records import ActionStatus, AttachmentKind, AttachmentRecord, Click
from annotation.tests.formats_builders import V2_IMAGES, codes, read_one, said, write_folder
from annotation.tests.testing import result_v2


@pytest.fixture
def home(tmp_path):
    return tmp_path / "task_0001"


def with_step(index, **fields):
    """A valid result whose step ``index`` has other fields."""
    result = result_v2(1)
    result["action_history"][index] |= fields
    return result


def without(key, index=None):
    result = result_v2(1)
    del (result if index is None else result["action_history"][index])[key]
    return result


def refused(home, result, images=V2_IMAGES):
    """The problems of a trajectory that must not be taken."""
    _, _, problems, _ = read_one(write_folder(home, result, images).parent)
    assert problems
    return problems


def taken(home, result, images=V2_IMAGES):
    """The record of a trajectory without any finding."""
    _, record, problems, warnings = read_one(write_folder(home, result, images).parent)
    assert (problems, warnings) == ([], [])
    return record


def test_a_valid_trajectory_is_read_whole(home):
    record = taken(home, result_v2(1))

    assert (record.folder, record.task_id, record.source_format) == (
        "task_0001", "task_0001", "online-mind2web-v2",
    )  # fmt: skip
    assert (record.final_answer, record.reference_length) == ("Laptop added.", 4)
    assert [step.index for step in record.steps] == [0, 1, 2]
    first = record.steps[0]
    assert first.screenshot == "0000.png"
    assert first.thought == "I will do 0."
    assert first.url == "https://shop1.example/step/0"
    assert first.status is ActionStatus.SUCCESS
    assert first.click == Click(100, 50)


@pytest.mark.parametrize("fields", [{"thought": None}, {"url": None}, {"action_status": None}])
def test_null_is_allowed_where_the_format_allows_it(home, fields):
    taken(home, with_step(0, **fields))


def test_url_may_be_absent(home):
    taken(home, without("url", 0))


@pytest.mark.parametrize(
    "key", ["task", "task_id", "agent_final_answer", "reference_length", "action_history", "schema_version"]
)
def test_a_missing_key_is_named(home, key):
    problems = refused(home, without(key))

    assert len(problems) == 1
    assert key in said(problems)


@pytest.mark.parametrize("key", ["step", "screenshot", "action", "thought"])
def test_a_missing_key_of_a_step_is_named_with_its_place(home, key):
    problems = refused(home, without(key, 1))

    assert [problem.where for problem in problems] == [f"task_0001/result.json: action_history[1].{key}"]


def test_an_unknown_key_is_named_at_both_levels(home):
    result = with_step(1, bbox=[1, 2]) | {"result_status": "done"}

    problems = refused(home, result)

    assert [problem.where.partition(": ")[2] for problem in problems] == ["result_status", "action_history[1].bbox"]


@pytest.mark.parametrize("version", ["online-mind2web-v3", "", None, 2, ["online-mind2web-v2"]])
def test_an_unknown_version_is_refused(home, version):
    problems = refused(home, result_v2(1) | {"schema_version": version})

    assert codes(problems) == {"schema_version_unknown"}


@pytest.mark.parametrize("value", [5, None, "", "a b", "../x", "tasks/x", "x\n", "a" * 129, "ü", "a.b", ["x"], True])
def test_a_task_id_that_cannot_be_one_is_refused_and_the_folder_is_reported(home, value):
    task_id, record, problems, _ = read_one(write_folder(home, result_v2(1) | {"task_id": value}).parent)

    assert record is None
    assert task_id == "task_0001"
    assert [problem.code for problem in problems] == ["task_id_invalid"]
    assert "task_id" in problems[0].message


@pytest.mark.parametrize("value", [True, 1.0, 1.5, "4", None, -1, 2**31, 10**30, [4]])
def test_a_reference_length_is_a_whole_number_and_nothing_like_it(home, value):
    assert "reference_length" in said(refused(home, result_v2(1) | {"reference_length": value}))


@pytest.mark.parametrize("value", [True, 1.0, 1.5, "1", None, 2, -1, 10**30])
def test_a_step_number_is_its_position_and_nothing_like_it(home, value):
    problems = refused(home, with_step(1, step=value))

    assert [problem.where for problem in problems] == ["task_0001/result.json: action_history[1].step"]


@pytest.mark.parametrize("value", [1, None, ["a"], {}, True])
def test_an_action_is_text(home, value):
    assert "action_history[0].action" in said(refused(home, with_step(0, action=value)))


@pytest.mark.parametrize("key", ["thought", "url", "action_status", "screenshot"])
@pytest.mark.parametrize("value", [1, ["a"], {"a": 1}, False])
def test_a_text_field_of_a_step_is_text(home, key, value):
    assert f"action_history[0].{key}" in said(refused(home, with_step(0, **{key: value})))


@pytest.mark.parametrize("value", ["click", 5, None, {"0": {}}])
def test_an_action_history_is_a_list(home, value):
    assert "action_history" in said(refused(home, result_v2(1) | {"action_history": value}))


def test_an_action_history_without_steps_is_refused(home):
    assert codes(refused(home, result_v2(1) | {"action_history": []})) >= {"no_steps"}


def test_texts_as_steps_are_refused_one_by_one(home):
    problems = refused(home, result_v2(1) | {"action_history": ["click", "TASK_COMPLETE"]})

    assert [problem.where.partition(": ")[2] for problem in problems] == ["action_history[0]", "action_history[1]"]


@pytest.mark.parametrize(
    "name",
    ["../0001.png", "a/0001.png", "trajectory\\0001.png", "C:0001.png", "", "data:image/png;base64," + "A" * 999_000],
)
def test_a_screenshot_is_a_plain_file_name(home, name):
    problems = refused(home, with_step(1, screenshot=name))

    assert codes(problems) == {"screenshot_path"}
    assert "screenshot" in problems[0].message
    assert len(problems[0].message) < 300


@pytest.mark.parametrize("name", ["0001.gif", "0001.svg", "0001", "0001.png.html"])
def test_a_screenshot_has_an_image_extension(home, name):
    assert codes(refused(home, with_step(1, screenshot=name), [*V2_IMAGES, name])) == {"screenshot_type"}


def test_a_screenshot_that_is_not_there_is_named(home):
    problems = refused(home, result_v2(1), ["0000.png", "0002.png"])

    assert codes(problems) == {"screenshot_missing"}
    assert "0001.png" in problems[0].message


def test_extensions_of_all_kinds_and_cases_are_taken(home):
    result = result_v2(1, steps=4)
    names = ["0.PNG", "1.jpg", "2.Jpeg", "3.webp"]
    for step, name in zip(result["action_history"], names, strict=True):
        step["screenshot"] = name

    assert [step.screenshot for step in taken(home, result, names).steps] == names


def test_steps_may_share_a_screenshot(home):
    taken(home, with_step(1, screenshot="0000.png"), ["0000.png", "0002.png"])


def test_screenshots_sort_by_number_in_the_order_of_the_steps(home):
    result = result_v2(1, steps=3)
    for step, name in zip(result["action_history"], ["s2.png", "s10.png", "s11.png"], strict=True):
        step["screenshot"] = name
    taken(home, result, ["s2.png", "s10.png", "s11.png"])


def test_screenshots_out_of_order_are_refused(home):
    result = with_step(0, screenshot="0001.png")
    result["action_history"][1]["screenshot"] = "0000.png"

    problems = refused(home, result)

    assert [(problem.code, problem.where.partition(": ")[2]) for problem in problems] == [
        ("screenshot_order", "action_history[1].screenshot")
    ]


def test_a_screenshot_that_no_step_names_is_warned_of(home):
    _, record, problems, warnings = read_one(write_folder(home, result_v2(1), [*V2_IMAGES, "0009.png"]).parent)

    assert record is not None
    assert problems == []
    assert codes(warnings) == {"screenshot_unused"}
    assert "0009.png" in said(warnings)


def test_status_and_suffix_must_agree(home):
    problems = refused(home, with_step(0, action="page -> WAIT -> 1 s | SUCCESS", action_status="FAILED"))

    assert [(problem.code, problem.where.partition(": ")[2]) for problem in problems] == [
        ("action_status_differs", "action_history[0].action_status")
    ]


def test_a_status_without_suffix_and_a_suffix_without_status_are_taken(home):
    record = taken(home, with_step(0, action="page -> WAIT -> 1 s", action_status="FAILED"))

    assert [step.status for step in record.steps] == [ActionStatus.FAILED, ActionStatus.SUCCESS, None]


@pytest.mark.parametrize("status", ["success", "OK", ""])
def test_an_unknown_status_is_refused(home, status):
    assert codes(refused(home, with_step(0, action_status=status))) == {"action_status_unknown"}


@pytest.mark.parametrize("action", ["coords(1, 2) -> CLICK -> x", "task_complete", "say TASK_COMPLETE", ""])
def test_the_last_action_completes_the_task(home, action):
    problems = refused(home, with_step(2, action=action))

    assert codes(problems) == {"not_complete"}
    assert "TASK_COMPLETE" in problems[0].message


@pytest.mark.parametrize("answer", ["Laptop  added.\n", " Laptop added. "])
def test_the_final_answer_equals_that_of_the_last_action_up_to_white_space(home, answer):
    taken(home, result_v2(1) | {"agent_final_answer": answer})


def test_a_final_answer_without_an_answer_in_the_last_action_is_taken(home):
    taken(home, with_step(2, action="TASK_COMPLETE"))


def test_a_status_after_the_answer_is_no_part_of_it(home):
    taken(home, with_step(2, action="TASK_COMPLETE -> ANSWER: Laptop added. | SUCCESS"))


def test_another_final_answer_is_refused(home):
    assert codes(refused(home, result_v2(1) | {"agent_final_answer": "Phone added."})) == {"answer_differs"}


def test_two_grammars_in_one_trajectory_are_refused(home):
    problems = refused(home, with_step(0, action="click_at(x=1, y=2)"))

    assert codes(problems) == {"grammar_mixed"}


@pytest.mark.parametrize("action", ["fill('143', 'x')", "click('397')", "open the menu"])
def test_an_action_of_no_sure_grammar_mixes_with_all(home, action):
    taken(home, with_step(0, action=action))


def test_a_very_long_text_is_refused(home):
    assert codes(refused(home, with_step(0, thought="a" * 1_000_001))) == {"text_too_long"}


def test_thousands_of_steps_are_warned_of_with_their_number(home):
    result = result_v2(1, steps=1001)
    for step in result["action_history"]:
        step["screenshot"] = "0.png"

    _, record, _, warnings = read_one(write_folder(home, result, ["0.png"]).parent)

    assert len(record.steps) == 1001
    assert "1001 steps" in said(warnings)


def test_too_many_steps_are_refused(home):
    assert "20001 steps" in said(refused(home, result_v2(1) | {"action_history": [None] * 20_001}))


def test_all_violations_are_listed_not_just_the_first(home):
    result = with_step(0, step=True, action_status="OK", bbox=1) | {"reference_length": 1.5, "task": " "}

    assert len(refused(home, result)) == 5


def test_violations_without_number_are_cut_short_and_counted(home):
    problems = refused(home, result_v2(1) | {"action_history": [None] * 500})

    assert len(problems) == 101
    assert "400 more" in problems[-1].message


def test_known_files_beside_the_screenshots_are_attachments_and_others_are_named(home):
    write_folder(home, result_v2(1))
    for name in ("network.har", "agent_response.json", "notes.txt", "trajectory/log.txt"):
        (home / name).write_bytes(b"{}")

    _, record, _, warnings = read_one(home.parent)

    assert record.attachments == (
        AttachmentRecord(AttachmentKind.AGENT_RESPONSE, "agent_response.json"),
        AttachmentRecord(AttachmentKind.NETWORK_TRACE, "network.har"),
    )
    assert codes(warnings) == {"unknown_file"}
    assert "notes.txt" in said(warnings)
    assert "trajectory/log.txt" in said(warnings)


def test_a_hostile_key_is_shown_short_and_escaped(home):
    problems = refused(home, result_v2(1) | {"a\n\x1b" + "b" * 10_000: 1})

    assert said(problems).isprintable()
    assert len(said(problems)) < 1000


def test_a_place_is_written_with_folder_file_and_field():
    findings = Findings(TrajectoryFolder("wrap/t1", "t1", ("result.json",)))
    findings.problem("x", "action_history[3].step", "is odd")
    assert findings.finish()[0].where == "t1/result.json: action_history[3].step"
