"""Folders of Stagehand's verifier: what the harness saw after each turn, and what the agent was given."""

from __future__ import annotations

import base64
import hashlib
from pathlib import Path
from typing import Any

import pytest

from annotation.tests import testing
from annotation.tests.log_cases import (
    OTHER_FORMATS,
    counts_of,
    dumped,
    format_of,
    import_files,
    inspect_files,
    outcome_of,
    steps_of,
)

HOME = "default/lamps/2026-01-02"
PICTURES = {n: testing.png(n) for n in range(5)}
PROBES = "screenshots that the agent was given, beside those of the harness"
NO_RATIO = "points, because the log has no device pixel ratio; state it in tasks.csv, column device_pixel_ratio"
OTHERS, SCORES = "other files beside the log", "files of scores, which annotators must not see"
HIDDEN = "judgements by the agent itself, which annotators must not see"
NO_ANSWER, NO_TASK, NO_PICTURE = (
    "logs without an answer", "logs without the text of the task", "steps without a screenshot",
)  # fmt: skip


def step(name: Any, probe: int | None = None, agent: list[Any] | None = None, **fields: Any) -> dict[str, Any]:
    found: dict[str, Any] = {"actionName": name, "actionArgs": {}, "reasoning": "", "toolOutput": {"ok": True}}
    if probe is not None:
        shot = f"screenshots/probe/{probe}.png"
        found["probeEvidence"] = {"url": f"https://lamps.example/{probe}", "screenshotPath": shot, "ariaTree": "x"}
    return found | {"agentEvidence": {"modalities": agent or []}} | fields


def seen(number: int) -> dict[str, Any]:
    return {"type": "image", "mediaType": "image/png", "imagePath": f"screenshots/agent/{number}.png"}


TASK = {"id": "lamps", "instruction": "Find the price", "initUrl": "https://lamps.example", "expectedAnswer": "SECRET"}
STEPS = [
    step("click", 1, [seen(0)], actionArgs={"x": 100, "y": 50, "pageUrl": "https://lamps.example/0"}),
    step("extract", 3, [seen(0)], reasoning="I read.", toolOutput={"ok": True, "result": {"price": "24.50"}}),
    step("act", 3, actionArgs={"action": "open"}, toolOutput={"ok": False, "result": None, "error": "Timeout"}),
    step("done", 4, actionArgs={"taskComplete": True, "reasoning": "x"}, toolOutput={"ok": True, "result": "y" * 501}),
]


def document(*steps: Any, **fields: Any) -> dict[str, Any]:
    found = {"task": TASK, "steps": list(steps), "finalAnswer": "24.50", "status": "complete", "usage": {"a": 1}}
    return found | fields


def folder(content: Any) -> dict[str, bytes]:
    found = {f"{HOME}/screenshots/probe/{n}.png": PICTURES[n] for n in (1, 3, 4)}
    return found | {
        f"{HOME}/screenshots/agent/0.png": PICTURES[0],
        f"{HOME}/trajectory.json": content if isinstance(content, bytes) else dumped(content),
        f"{HOME}/task_data.json": b"{}",
        f"{HOME}/scores/result.json": b'{"outcomeSuccess": true}',
    }


@pytest.mark.django_db
def test_a_folder_becomes_a_trajectory_with_the_pages_before_the_actions(tmp_path: Path) -> None:
    report, (submission,) = import_files(tmp_path, folder(document(*STEPS)))
    trajectory, steps = submission.trajectories.get(), steps_of(submission)
    assert (trajectory.task.external_id, trajectory.task_text) == ("lamps", "Find the price")
    assert trajectory.final_answer == "24.50"
    assert [row.action for row in steps] == [
        'click(x=100, y=50, pageUrl="https://lamps.example/0") | SUCCESS',
        'extract() -> {"price": "24.50"} | SUCCESS',
        'act(action="open"): Timeout | FAILED',
        'done(reasoning="x") | SUCCESS',
        "",
    ]
    # The second and the third action are one turn, with one probe after it.
    shown = [hashlib.sha256(PICTURES[n]).hexdigest() for n in (0, 1, 1, 3, 4)]
    assert [row.screenshot.sha256 for row in steps] == shown
    assert [row.url.rpartition("/")[2] for row in steps] == ["0", "1", "1", "3", "4"]
    assert "SECRET" not in str(report.with_conversion())
    assert report.conversion.format == "stagehand"
    assert counts_of(report, "derived") == {}
    assert counts_of(report, "carried") == {
        "steps": 4, "screenshots": 5, "thoughts": 1, "URLs": 5, "outcomes of actions": 4, "answers": 1, "task texts": 1,
    }  # fmt: skip
    assert counts_of(report, "lost") == {
        "page structures (ariaTree)": 4,
        PROBES: 1,
        "results of tools that are longer than 500 characters": 1,
        HIDDEN: 1,
        "expected answers, which annotators must not see": 1,
        "states in which a run ended": 1,
        "counts of tokens": 1,
        SCORES: 1,
        OTHERS: 1,
        NO_RATIO: 1,
    }


@pytest.mark.django_db
def test_the_ratio_gives_the_point_and_older_files_have_their_pictures_inside(tmp_path: Path) -> None:
    inside = {"type": "image", "mediaType": "image/png", "bytesBase64": base64.b64encode(PICTURES[2]).decode()}
    files = folder(document(step("click", 1, [inside], actionArgs={"x": 100, "y": 50})))
    files["tasks.csv"] = b"log,task_id,device_pixel_ratio\n2026-01-02,lamps,2\n"
    _, (submission,) = import_files(tmp_path, files)
    first, last = steps_of(submission)
    assert first.action == "coords(200, 100) -> CLICK -> click(x=100, y=50) | SUCCESS"
    assert first.screenshot.sha256 == hashlib.sha256(PICTURES[2]).hexdigest()
    assert last.screenshot.sha256 == hashlib.sha256(PICTURES[1]).hexdigest()


def test_a_picture_that_an_earlier_step_had_is_not_the_page_before_a_later_one(tmp_path: Path) -> None:
    report = inspect_files(tmp_path, folder(document(step("click", None, [seen(0)]), step("act", None, [seen(0)]))))
    assert report.conversion is not None
    lost = {each["what"]: each["count"] for each in report.conversion.as_json()["lost"]}
    assert lost["screenshots that the agent was given before an earlier step"] == 1
    assert lost["steps without a screenshot"] == 1


def test_a_picture_that_a_tool_returned_is_not_taken_for_the_page_before(tmp_path: Path) -> None:
    inline = {"ok": True, "result": {"screenshotBase64": "[redacted inline image payload]"}}
    report = inspect_files(tmp_path, folder(document(step("screenshot", 1, [seen(0)], toolOutput=inline))))
    assert counts_of(report, "lost")[PROBES] == 1
    assert counts_of(report, "lost")[NO_PICTURE] == 1


def test_a_result_of_an_agent_alone_is_refused_with_the_reason(tmp_path: Path) -> None:
    content = {"success": True, "message": "24.50", "actions": [{"type": "act"}], "completed": True}
    report = inspect_files(tmp_path, {"result-of-agent.json": dumped(content)})
    (problem,) = report.rejected["result-of-agent.json"]
    assert problem.code == "no_screenshots"
    assert problem.message.endswith("is an AgentResult, which has no screenshots. Upload the folder of the verifier.")


REST = {
    "expected answers, which annotators must not see": 1, "states in which a run ended": 1, "counts of tokens": 1,
    SCORES: 1,
}  # fmt: skip
PLAIN = REST | {OTHERS: 5, NO_PICTURE: 1}
OLD = step("act")
CASES: dict[str, tuple[Any, dict[str, Any]]] = {
    "steps are null": (document() | {"steps": None}, {"wrong_type": 1}),
    "no steps and no answer": (document(finalAnswer=None), {"no_steps": 1}),
    "no steps": (document(), REST | {OTHERS: 5}),
    "steps of other types": (document(7, None, "x", []), REST | {OTHERS: 5, NO_PICTURE: 4}),
    "name is a list": (document(step(["act"])), PLAIN),
    "arguments are a list": (document(step("click", actionArgs=[1, 2])), PLAIN),
    "point is text": (document(step("click", actionArgs={"x": "1", "y": "2"})), PLAIN),
    "point is huge": (document(step("click", actionArgs={"x": 10**400, "y": -1})), PLAIN | {NO_RATIO: 1}),
    "output is text": (document(step("act", toolOutput="x")), PLAIN),
    "outcome is text": (document(step("act", toolOutput={"ok": "yes"})), PLAIN),
    "result is a number": (document(step("act", toolOutput={"result": 7})), PLAIN),
    "evidence is text": (document(step("act", agentEvidence="x", probeEvidence="y")), PLAIN),
    "modalities are null": (document(step("act", agentEvidence={"modalities": None})), PLAIN),
    "modality is text": (document(step("act", agent=["x"])), PLAIN),
    "picture is no base64": (document(step("act", agent=[{"type": "image", "bytesBase64": "%"}])), PLAIN),
    "picture is text": (
        document(step("act", agent=[{"type": "image", "bytesBase64": "bm8="}])),
        PLAIN | {"pictures that cannot be read": 1},
    ),
    "picture is a URL": (
        document(step("act", agent=[{"type": "image", "imagePath": "https://x.example/0.png"}])), PLAIN,
    ),
    "picture is a path outside": (document(step("act", agent=[{"type": "image", "imagePath": "../../../x"}])), PLAIN),
    "picture is on Windows": (
        document(step("act", agent=[{"type": "image", "imagePath": "C:\\run\\screenshots\\agent\\0.png"}])),
        REST | {OTHERS: 4},
    ),
    "final observation is a list": (document(OLD, finalObservation=[1]), PLAIN),
    "answer is an object": (document(OLD, finalAnswer={}), PLAIN | {NO_ANSWER: 1}),
    "id is a number": (document(OLD, task=TASK | {"id": 7}), PLAIN),
    "instruction is null": (document(OLD, task=TASK | {"instruction": None}), PLAIN | {NO_TASK: 1}),
    "NaN": (dumped(document(OLD)).replace(b'"24.50"', b"NaN"), {"number_not_finite": 1}),
    "duplicate key": (dumped(document(OLD))[:-1] + b', "status": 1}', {"duplicate_key": 1}),
    "truncated": (dumped(document(OLD))[:-9], {"json_invalid": 1}),
    "deeply nested": (dumped(document(OLD))[:-1] + b', "x": ' + b"[" * 100_000, {"json_invalid": 1}),
    "not UTF-8": (dumped(document(OLD)).replace(b"24.50", b"\xff"), {"not_utf8": 1}),
    "lone surrogate": (dumped(document(OLD)).replace(b"24.50", b"\\ud800"), {"text_unstorable": 1}),
    "too many steps": (document(*[OLD] * 20_001), {"too_many_steps": 1}),
}  # fmt: skip


@pytest.mark.parametrize("case", CASES)
def test_a_hostile_folder_is_refused_or_its_losses_are_counted(tmp_path: Path, case: str) -> None:
    content, expected = CASES[case]
    report = inspect_files(tmp_path, folder(content))
    found = outcome_of(report)
    assert ({code: 1 for codes in found.values() for code in codes} if report.rejected else found) == expected


@pytest.mark.parametrize("name", OTHER_FORMATS)
def test_no_other_format_is_taken_for_it(tmp_path: Path, name: str) -> None:
    assert (format_of(tmp_path, OTHER_FORMATS[name]) == "stagehand") == (name == "stagehand")
