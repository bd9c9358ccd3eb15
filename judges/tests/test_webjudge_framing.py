"""The record that a model is shown: quoted, cut to a length, and closed against what stands in it."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from annotation.formats.archive import open_package
from annotation.formats.packages import read_trajectories
from judges.scorers import framing
from judges.tests.test_recorded_webjudge import REAL
from judges.tests.webjudging import trajectory


def test_a_long_text_keeps_its_beginning_and_its_end_and_says_how_much_is_left_out():
    text = "a" * 600 + "z" * 601

    assert framing.cut(text, 1201) == text
    assert framing.cut(text, 1000) == "a" * 500 + " [... 201 characters left out ...] " + "z" * 500
    assert framing.cut(text, 1) == "a [... 1,200 characters left out ...] "


@given(st.text(), st.integers(min_value=1, max_value=60))
def test_a_quoted_text_is_one_line_of_json_and_reads_back(text, limit):
    quoted = framing.quote(text, limit)

    assert json.loads(quoted) == framing.cut(text, limit)
    assert len(quoted.splitlines()) == 1
    assert quoted.encode("utf-8")


@given(st.lists(st.text(alphabet=st.sampled_from('<>/ recordRECORD\n\t"\\\u2028'))))
def test_no_text_can_open_or_close_the_record(texts):
    block = framing.format_record(framing.format_field("thought", text, 100) for text in texts)

    assert block.count("<record>") == block.count("</record>") == 1
    assert block.lower().replace(" ", "").count("</record") == 1
    assert len(block.splitlines()) == len(texts) + 2


@pytest.mark.parametrize("char", ["\u202e", "\u200b", "\x00", "\x1b", "\u2028", "\ud800", "\U000e0041", "\x85"])
def test_what_nobody_sees_is_written_out(char):
    assert char not in framing.quote(f"a{char}b", 10)
    assert json.loads(framing.quote(f"a{char}b", 10)) == f"a{char}b"


def test_letters_of_all_scripts_stay_readable():
    assert framing.quote("Größe 大きさ é €", 100) == '"Größe 大きさ é €"'


def test_a_record_that_is_too_long_loses_lines_in_its_middle():
    lines = [f"{number:03}" for number in range(100)]

    block = framing.format_record(lines, 150).splitlines()

    (said,) = [line for line in block if "left out" in line]
    kept = [line for line in block[1:-1] if line != said]
    assert said == "[... 50 lines left out ...]"
    assert kept == [*lines[:25], *lines[75:]]
    assert block.index(said) == 26


def test_a_record_at_its_limits_ends_in_a_moment():
    lines = ["x" * 1000] * 20_000

    block = framing.format_record(lines)

    assert len(block) < framing.RECORD + 2_000
    assert "lines left out" in block


@pytest.mark.parametrize(
    "action",
    [
        "TASK_COMPLETE",
        "TASK_COMPLETE -> ANSWER: x",
        "send_msg_to_user('x')",
        "finish[x]",
        "stop [x]",
        "Answer: x",
        "done()",
    ],
)
def test_an_action_that_hands_over_the_answer_is_known(action):
    assert framing.gives_answer(action)


@pytest.mark.parametrize(
    "action",
    ["click finish", "finished reading", "answer the question", "stop_video()", "TASK_COMPLETED", "noop()", ""],
)
def test_other_actions_are_none(action):
    assert not framing.gives_answer(action)


def test_the_history_counts_steps_from_zero_and_leaves_out_missing_thoughts():
    record = trajectory(["a", "", "b"], thoughts=["first", "second", None])

    assert framing.format_history(framing.select_acting(record, "auto"), thoughts=True) == [
        'step 0 thought: "first"',
        'step 0 action: "a"',
        'step 2 action: "b"',
    ]


def test_no_real_trajectory_shows_its_final_answer_and_all_else_is_shown():
    """Some of version 2 send their answer as a message in the step before the one that completes."""
    if not REAL.is_dir():
        pytest.skip(f"the folder shared/data/{REAL.name} is not beside the checkout")
    answered = 0
    for agent in sorted((REAL / "submissions").iterdir()):
        with open_package(agent) as package:
            for task_id, record, _, _ in read_trajectories(package):
                shown = framing.select_acting(record, "auto")
                left_out = [step.action for step in record.steps if step.action and step not in shown]
                assert all(framing.gives_answer(action) for action in left_out), task_id
                answer = (record.final_answer or "").strip()
                answered += bool(answer)
                lines = "\n".join(framing.format_history(shown, thoughts=True))
                assert not answer or framing.quote(answer, 10_000)[1:-1] not in lines, task_id
    assert answered >= 10
