"""WebArena and VisualWebArena: rendered pages, what annotators must not see in them, and hostile pages."""

from __future__ import annotations

import base64
from pathlib import Path
from typing import Any

import pytest

from annotation.formats.archive import open_package
from annotation.formats.packages import read_trajectories
from annotation.formats.registry import open_packages, recognise
from annotation.records import ImportReport
from annotation.tests.test_agent_logs import PICTURE, codes_of, counts_of, look, run, zipped

SETTINGS = {
    "sites": ["shopping"], "task_id": 21, "require_login": True, "storage_state": "./.auth/shopping_state.json",
    "start_url": "https://shop.example", "geolocation": None, "intent_template": "Find {{what}}",
    "intent": "Find the price\nof the lamp: <b>now</b>", "require_reset": False,
    "eval": {"eval_types": ["string_match"], "reference_answers": {"exact_match": "SECRET"}, "reference_url": "SECRET"},
}  # fmt: skip
EARLY = "stop [Early stop: Reach max steps 30]"


def settings(**changes: Any) -> str:
    return "".join(f"{key}: {value}\n" for key, value in (SETTINGS | changes).items())


def turn(action: str, thought: str = "", before: str = "None", picture: bytes | None = PICTURE[0]) -> str:
    """Return a step as the writer renders it: texts of pages and models are not escaped, and a div stays open."""
    image = f"<img src='data:image/png;base64,{base64.b64encode(picture or b'').decode()}' style='width:50vw;'/>\n"
    return (
        "<h2>New Page</h2>\n"
        "<h3 class='url'><a href=https://shop.example/?a=1&copy=2>URL: https://shop.example/?a=1&copy=2</a></h3>\n"
        "<div class='state_obv'><pre>[8] link 'Lamps' <div class='parsed_action'><pre>stop [FAKE]</pre></div></pre>"
        f"<div>\n{image if picture else ''}"
        f"<div class='prev_action' style='background-color:pink'>{before}</div>\n"
        f"<div class='predict_action'><div class='raw_parsed_prediction' style='background-color:grey'><pre>{thought}"
        "</pre></div><div class='action_object' style='background-color:grey'><pre>{'coords': array([0., 0.])}</pre>"
        f"</div><div class='parsed_action' style='background-color:yellow'><pre>{action}</pre></div></div>\n"
    )


def page(*turns: str, head: str | None = None) -> bytes:
    body = f"<pre>{settings() if head is None else head}</pre>\n{''.join(turns)}"
    style = "<style>\n pre {\n white-space: pre-wrap;\n }\n</style>"
    return (
        f"\n<!DOCTYPE html>\n<head>\n{style}\n</head>\n<html>\n    <body>\n     {body}\n    </body>\n</html>\n".encode()
    )


CLICK = turn("click [8] where [8] is [8] link 'Lamps'", "If a < b, click. ```click [8]```")
NAMES = ("render_21.html", "config.json", "error.txt", "merged_log.txt", "traces/21.zip")


def files(*turns: str, **changes: Any) -> dict[str, bytes]:
    return {"run/render_21.html": page(*turns, head=settings(**changes) if changes else None)}


@pytest.mark.django_db
def test_a_page_becomes_a_trajectory_without_what_annotators_must_not_see(tmp_path: Path) -> None:
    found = files(
        CLICK,
        turn("none", "Hm.", picture=PICTURE[1]),
        turn("type [9] [lamp] where [9] is x", "Type.", "The previous prediction", None),
        turn("stop [24.50]", "Done.", 'Attempt to perfom "type" on element "[9]" but no matching element found.'),
        image="https://shop.example/lamp.png",
    ) | {f"run/{name}": b"PASS" for name in NAMES[1:]}
    report, (submission,) = run(zipped(tmp_path / "logs.zip", found))
    trajectory = submission.trajectories.get()
    assert (trajectory.task.external_id, trajectory.final_answer) == ("21", "24.50")
    assert trajectory.task.text == "Find the price\nof the lamp: <b>now</b>"
    steps = list(trajectory.steps.order_by("index"))
    assert [(each.action, each.thought, bool(each.screenshot)) for each in steps] == [
        ("click [8] where [8] is [8] link 'Lamps'", "If a < b, click. ```click [8]```", True),
        ("type [9] [lamp] where [9] is x | FAILED", "Type.", False),
        ("stop [24.50]", "Done.", True),
    ]
    assert {each.url for each in steps} == {"https://shop.example/?a=1&copy=2"}
    assert counts_of(report, "carried") == {
        "steps": 3, "screenshots": 2, "thoughts": 3, "URLs": 3, "outcomes of actions": 1, "answers": 1, "task texts": 1,
    }  # fmt: skip
    assert counts_of(report, "derived") == {}
    assert counts_of(report, "lost") == {
        "replies that are no action": 1,
        "thoughts of turns without an action": 1,
        "screenshots of turns without an action": 1,
        "expected answers, which annotators must not see": 1,
        "files with cookies, which annotators must not see": 1,
        "images of the task": 1,
        "other settings of the task": 5,
        "page structures": 4,
        "network traces": 1,
        "other files of the run": 3,
        "steps without a screenshot": 1,
    }


def test_no_file_of_the_conversion_has_expected_answers_or_cookies(tmp_path: Path) -> None:
    path, report = zipped(tmp_path / "logs.zip", files(CLICK, turn("stop [x]"))), ImportReport()
    with open_packages(path, report, lambda done, total: None) as (package,):
        texts = [package.read(name, 2**20) for name in package.names() if name.endswith(".json")]
        assert len(list(read_trajectories(package))) == 1
    assert texts
    assert not any(secret in text for text in texts for secret in (b"SECRET", b"reference_answers", b".auth", b"FAKE"))


def test_a_stop_of_the_runner_is_the_end_and_no_answer(tmp_path: Path) -> None:
    report, (record,) = look(zipped(tmp_path / "logs.zip", files(CLICK, turn(EARLY, picture=PICTURE[2]))))
    assert (record.final_answer, [bool(step.action) for step in record.steps]) == (None, [True, False])
    assert record.steps[1].screenshot
    assert counts_of(report, "lost")["stops by the runner"] == 1


def test_code_of_playwright_is_an_action(tmp_path: Path) -> None:
    code = "<div class='prev_action'>None</div>\n<div class='predict_action'>page.get_by_text('x').click()</div>\n"
    _, (record,) = look(zipped(tmp_path / "logs.zip", files(f"<h2>New Page</h2>\n{code}")))
    assert [step.action for step in record.steps] == ["page.get_by_text('x').click()"]


OTHERS: dict[str, bytes] = {
    "render_1.html": b"<html><body><pre>task_id: 1\n</pre></body></html>",
    "index.html": b"<html><body><p>intent: x</p><pre>task_id: 1\n</pre></body></html>",
    "interact_messages.json": b'[{"role": "system", "content": "x"}]',
    "history.json": b'{"history": []}',
    "cleaned/b/a/r/t.json": b'{"benchmark": "b", "agent": "a", "goal": "g", "steps": []}',
}


@pytest.mark.parametrize("name", OTHERS)
def test_other_formats_are_not_recognised(tmp_path: Path, name: str) -> None:
    with open_package(zipped(tmp_path / "logs.zip", {name: OTHERS[name]})) as package:
        found = recognise(package)
    assert found is None or found.name != "webarena-result"


def cut(text: str, end: str) -> str:
    return text[: text.index(end)]


HOSTILE: dict[str, tuple[dict[str, bytes], Any]] = {
    "no steps": (files(), ["no_steps"]),
    "only unreadable replies": (files(turn("none"), turn("")), ["no_steps"]),
    "only a stop of the runner": (files(turn("stop [ERROR: x]")), ["no_steps"]),
    "empty step": (files("<h2>New Page</h2>"), ["no_steps"]),
    "empty answer": (files(turn("stop []")), 1),
    "not UTF-8": ({"render_1.html": page(CLICK).replace(b"Lamps", b"\xff")}, ["not_utf8"]),
    "NUL": (files(CLICK.replace("Lamps", "\x00")), ["nul_character"]),
    "truncated in the action": (files(cut(CLICK, "</pre></div></div>")), 1),
    "truncated in the picture": (files(cut(CLICK, "' style='width")), ["no_steps"]),
    "picture that is text": (files(CLICK.replace("base64,", "base64,###")), 1),
    "remote picture": (
        files(turn("go_back", picture=None).replace("<div>\n", "<img src='https://x.example/1.png'>")),
        1,
    ),
    "picture that is a path": (files(turn("go_back", picture=None).replace("<div>\n", "<img src='/etc/passwd'>")), 1),
    "picture without quotes": (files(turn("go_back", picture=None).replace("<div>\n", "<img src=x>")), 1),
    "script": (files(turn("click [8] <script>alert(1)</script>")), 1),
    "one line for everything": (files(turn("click [8]\n\n\r\u2028x")), 1),
    "long action": (files(turn("type [8] [" + "x" * 100_000 + "]")), 1),
    "long intent": (files(CLICK, intent="x" * 10_000), 1),
    "intent of several settings": (files(CLICK, intent="x\neval: y\nintent: z"), 1),
    "task id with a path": (files(CLICK, task_id="../../etc"), 1),
    "unfinished tags": (files("<h2>New Page</h2><div class='predict_action'" * 500), ["no_steps"]),
    "many open tags": (files(CLICK + "<div>" * 50_000), 1),
    "two thousand steps": (files(turn("go_back", picture=None) * 2_000), 2_000),
    "too many steps": (files(turn("go_back", picture=None) * 20_001), ["too_many_steps"]),
    "long answer": (files(turn("stop [" + "x" * 1_000_001 + "]")), ["text_too_long"]),
    "encrypted or broken zip elsewhere": (files(CLICK) | {"run/other.zip": b"PK"}, ["nested_archive"]),
}


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_pages_give_problems(tmp_path: Path, name: str) -> None:
    hostile, expected = HOSTILE[name]
    report, records = look(zipped(tmp_path / "logs.zip", hostile))
    if isinstance(expected, list):
        assert codes_of(report) == expected
        return
    carried = counts_of(report, "carried")
    assert (codes_of(report), carried["steps"], carried.get("points", 0)) == ([], expected, 0)
    assert all("\n" not in step.action for step in records[0].steps)
