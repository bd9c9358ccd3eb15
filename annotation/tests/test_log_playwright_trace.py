"""Traces of Playwright, in the shapes of their versions: zips, folders, and zips inside both."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from annotation.formats.archive import FolderPackage, Limits, open_package
from annotation.formats.external.playwright_trace import FORMAT, is_trace_zip
from annotation.formats.registry import open_packages
from annotation.formats.unpacked import unpack
from annotation.records import ImportReport, TrajectoryRecord
from annotation.tests import testing, traces
from annotation.tests.test_agent_logs import logged, run, zipped
from annotation.tests.test_log_browser_use import counts, inspect

PICTURES = {number: testing.jpeg(number, (800, 450)) for number in range(1, 6)}  # of a viewport of 1280 x 720
SITE = "https://lamps.example"
CHANGED = "points, because the page changed between the picture and the action"
OUTSIDE = "points outside of their picture"
NO_ACTION = "calls that are no actions on a page, such as waits, queries and scripts"
WALL = 1_800_000_000_000


def context(version: Any = 10, **changes: Any) -> dict[str, Any]:
    clock = {"wallTime": WALL, "monotonicTime": 1_000.0} if version not in (4, 5, 6, 7) else {"wallTime": WALL}
    options = {"viewport": {"width": 1280, "height": 720}, "deviceScaleFactor": 2}
    return (
        {"version": version, "type": "context-options", "browserName": "chromium", "options": options} | clock | changes
    )


def call(number: int, start: float, method: str, version: int = 10, kind: str = "Frame", **params: Any) -> Any:
    event = {"type": "before", "callId": f"call@{number}", "startTime": start, "class": kind, "method": method}
    old = {"pageId": "page@1", "beforeSnapshot": f"before@call@{number}"} if version < 9 else {}
    return event | {"params": params} | old


def after(number: int, end: float, **more: Any) -> dict[str, Any]:
    return {"type": "after", "callId": f"call@{number}", "endTime": end} | more


def at(number: int, **where: Any) -> dict[str, Any]:
    return {"type": "input", "callId": f"call@{number}"} | where


def said(number: int, time: float, message: str) -> dict[str, Any]:
    return {"type": "log", "callId": f"call@{number}", "time": time, "message": message}


def frame(number: int, drawn: float, version: int = 10, **changes: Any) -> dict[str, Any]:
    """A frame that was drawn at a time, and reported 20 ms later."""
    event = {"type": "screencast-frame", "pageId": "page@1", "width": 1280, "height": 720, "timestamp": drawn + 20}
    event |= {"frameSwapWallTime": WALL - 1_000 + drawn} if version > 7 else {}
    return event | ({"file": f"screencast/{number}.jpeg"} if version > 8 else {"sha1": f"{number}.jpeg"}) | changes


def snapshot(number: int, url: str, version: int = 10, phase: str = "before") -> dict[str, Any]:
    inner = {"callId": f"call@{number}", "pageId": "page@1", "frameUrl": url, "isMainFrame": True, "html": ["HTML"]}
    named = {"phase": phase} if version > 8 else {"snapshotName": f"{phase}@call@{number}"}
    return {"type": "frame-snapshot", "snapshot": inner | named}


def shopping(version: int = 10) -> list[dict[str, Any]]:
    """Open the shop, type, click after Playwright scrolled, and wait."""
    has_times = version > 5
    lines = [said(2, 2_100, "  done scrolling"), said(2, 2_150, "  click action done")]
    opened = {"type": "event", "time": 1_001.0, "class": "BrowserContext", "method": "page"}
    return [
        context(version),
        opened | {"params": {"pageId": "page@1"}},
        frame(1, 1_090, version),
        call(1, 1_200, "goto", version, url=SITE),
        snapshot(1, "about:blank", version),
        after(1, 1_300, result={"response": "<Response>"}),
        frame(2, 1_310, version),
        call(2, 2_000, "click", version, selector="#go"),
        snapshot(2, SITE, version),
        *(lines if has_times else ()),
        at(2, point={"x": 640, "y": 360}),
        frame(3, 2_115, version),
        after(2, 2_200, **({} if has_times else {"log": ["done scrolling", "click action done"]})),
        frame(4, 2_400, version),
        call(3, 3_000, "fill", version, selector="#q", value="lamp"),
        *([at(3, box={"x": 600, "y": 310, "width": 80, "height": 20})] if version > 9 else ()),
        after(3, 3_050, error={"message": "gone", "name": "Error"}),
        call(4, 3_100, "waitForTimeout", version),
        after(4, 3_200),
        frame(5, 3_500, version),
    ]


def members(events: list[Any], version: int = 10, name: str = "trace.trace") -> dict[str, bytes]:
    lines = [each if isinstance(each, bytes) else json.dumps(each).encode() for each in events]
    folder = "screencast" if version > 8 else "resources"
    shots = {f"{folder}/{number}.jpeg": data for number, data in PICTURES.items()}
    secrets = {"trace.network": b'{"cookie": "SECRET"}', "trace.stacks": b"{}", "resources/page.html": b"SECRET"}
    return {name: b"\n".join(lines) + b"\n"} | shots | secrets


def load(tmp_path: Path, events: list[Any], version: int = 10) -> tuple[Any, TrajectoryRecord]:
    report, (record,) = inspect(zipped(tmp_path / "lamp-1.zip", members(events, version)))
    assert not report.rejected
    return report, record


@pytest.mark.django_db
def test_a_trace_becomes_a_trajectory_and_the_report_names_every_loss(tmp_path: Path) -> None:
    files = members(shopping()) | {"tasks.csv": b"log,task_id\ntrace.trace,t1\n"}
    path = zipped(tmp_path / "lamp-1.zip", files)
    report, made = run(path, dry_run=True)
    assert [problem.code for problem in report.rejected["t1"]] == ["task_unknown"]  # a trace has no text for a task
    assert not made
    assert report.with_conversion()["conversion"] == {
        "format": "playwright-trace",
        "version": "10",
        "carried": [
            {"what": what, "count": count}
            for what, count in (
                ("steps", 3), ("screenshots", 4), ("points", 2), ("URLs", 2), ("outcomes of actions", 3),
            )
        ],
        "derived": [
            {"what": "points scaled from the viewport to the picture", "count": 2},
            {"what": "points from the boxes of elements", "count": 1},
        ],
        "lost": [
            {"what": what, "count": count}
            for what, count in (
                ("events of pages, such as dialogs and downloads", 1), ("page snapshots (DOM)", 2),
                ("log lines of calls", 2), ("results of calls", 1), (NO_ACTION, 1), ("pictures between the actions", 1),
                ("resources of pages", 1), ("network traces, which may have secrets", 1),
                ("positions in the source code of calls", 1), ("logs without an answer", 1),
                ("logs without the text of the task", 1),
            )
        ],
    }  # fmt: skip


SCALED = "coords(400, 225) -> CLICK -> "
CLICK = 'click(selector="#go") | SUCCESS'
FILL = 'fill(selector="#q", value="lamp"): gone | FAILED'


@pytest.mark.parametrize("version", range(4, 11))
def test_the_shapes_of_all_versions_are_read(tmp_path: Path, version: int) -> None:
    report, record = load(tmp_path, shopping(version), version)
    assert (record.task_id, report.conversion.versions) == ("lamp-1", {str(version)})
    assert [step.action for step in record.steps] == [
        f'goto(url="{SITE}") | SUCCESS',
        (SCALED if version > 5 else "") + CLICK,  # before, the log has no times
        ("coords(400, 200) -> TYPE -> " if version > 9 else "") + FILL,
        "",
    ]
    assert [step.url for step in record.steps] == ["about:blank", SITE, None, None]
    assert [step.screenshot for step in record.steps] == ["00000.jpg", "00001.jpg", "00002.jpg", "00003.jpg"]
    assert [step.status for step in record.steps] == ["SUCCESS", "SUCCESS", "FAILED", None]


def test_nothing_of_network_and_pages_is_written(tmp_path: Path) -> None:
    path = zipped(tmp_path / "lamp-1.zip", members(shopping()))
    with open_packages(path, ImportReport(), lambda done, total: None) as (package,):
        written = b"".join(package.read(name, 2**20) for name in package.names())
    assert b"lamp" in written
    assert b"SECRET" not in written


SCROLLED = [said(2, 2_100, "done scrolling"), said(2, 2_150, "click action done")]
POINT = at(2, point={"x": 640, "y": 360})


@pytest.mark.parametrize(
    ("events", "picture", "has_point"),
    [
        ([*SCROLLED, POINT], 1, True),
        ([frame(2, 2_120), *SCROLLED, POINT], 2, True),
        ([frame(2, 2_090), *SCROLLED, POINT], 2, True),
        ([frame(2, 2_190), *SCROLLED, POINT], 1, False),  # drawn 40 ms after the click: it may show the scrolling
        ([frame(2, 2_210), *SCROLLED, POINT], 1, True),
        ([frame(2, 2_120), frame(3, 2_140), *SCROLLED, POINT], 2, True),
        ([frame(2, 2_130, frameSwapWallTime=None), *SCROLLED, POINT], 2, True),
        (
            [frame(2, 2_400, frameSwapWallTime=None), *SCROLLED, POINT],
            1,
            False,
        ),  # reported at 2,420, when it was drawn is unknown
        ([frame(2, 2_490, frameSwapWallTime=None), *SCROLLED, POINT], 1, True),
        ([POINT], 1, True),
        ([frame(2, 2_120), POINT], 1, False),
        ([*SCROLLED, said(2, 2_160, "done scrolling"), frame(2, 2_120), frame(3, 2_230), POINT], 2, False),
    ],
)
def test_a_point_counts_if_the_page_did_not_change_before_the_action(
    tmp_path: Path, events: list[Any], picture: int, has_point: bool
) -> None:
    click = [call(2, 2_000, "click", selector="#go"), *events, after(2, 2_200)]
    report, record = load(tmp_path, [context(), frame(1, 1_090), *click])
    with open_packages(tmp_path / "lamp-1.zip", ImportReport(), lambda done, total: None) as (package,):
        assert package.read(f"lamp-1/trajectory/{record.steps[0].screenshot}", 2**20) == PICTURES[picture]
    assert (record.steps[0].click is not None) is has_point
    assert counts(report, "lost").get(CHANGED, 0) == int(not has_point)


@pytest.mark.parametrize(
    ("where", "changes", "lost"),
    [
        ({"x": 1281, "y": 5}, {}, {OUTSIDE: 1}),
        ({"x": -1, "y": 5}, {}, {OUTSIDE: 1}),
        ({"x": 5, "y": 5}, {"width": 0}, {OUTSIDE: 1}),
        ({"x": 5, "y": 5}, {"height": "720"}, {OUTSIDE: 1}),
        ({"x": 1e300, "y": 5}, {}, {}),
        ({"x": "5", "y": 5}, {}, {}),
        ({"x": True, "y": None}, {}, {}),
        ([5, 5], {}, {}),
    ],
)
def test_a_point_that_cannot_be_placed_is_not_used(
    tmp_path: Path, where: Any, changes: dict[str, Any], lost: dict[str, int]
) -> None:
    click = [call(2, 2_000, "click", selector="#go"), *SCROLLED, at(2, point=where), after(2, 2_200)]
    report, record = load(tmp_path, [context(), frame(1, 1_090, **changes), *click])
    assert record.steps[0].click is None
    assert {what: count for what, count in counts(report, "lost").items() if "points" in what} == lost


def test_mouse_actions_point_where_their_parameters_say(tmp_path: Path) -> None:
    moved = [call(1, 2_000, "mouseMove", kind="Page", x=64, y=32), after(1, 2_010)]
    right = [call(2, 3_000, "click", selector="#a", button="right"), at(2, point={"x": 64, "y": 32}), after(2, 3_010)]
    _, record = load(tmp_path, [context(), frame(1, 1_090), *moved, *right])
    assert [step.action.partition("->")[2].partition("->")[0] for step in record.steps] == [" HOVER ", " RIGHT_CLICK "]
    assert [step.click and (step.click.x, step.click.y) for step in record.steps] == [(40, 20), (40, 20)]


def test_screenshots_of_the_action_come_before_frames(tmp_path: Path) -> None:
    shot = {
        "type": "screenshot",
        "callId": "call@2",
        "phase": "action",
        "pageId": "page@1",
        "file": "screencast/5.jpeg",
    }
    click = [call(2, 2_000, "click", selector="#go"), shot, POINT, after(2, 2_200)]
    _, record = load(tmp_path, [context(9), frame(1, 1_090), *click])
    assert record.steps[0].action == f"coords(640, 360) -> CLICK -> {CLICK}"  # one pixel of it is one CSS pixel


def test_the_page_of_an_action_is_the_only_open_one(tmp_path: Path) -> None:
    def page(time: float, method: str) -> dict[str, Any]:
        return {"type": "event", "time": time, "method": method, "params": {"pageId": "page@2"}}

    acts = [call(n, 2_000 + 1_000 * n, "goBack", kind="Page") for n in range(3)]
    ends = [after(n, 2_010 + 1_000 * n) for n in range(3)]
    opened = [page(2_500, "page"), frame(2, 2_600, pageId="page@2"), page(3_500, "pageClosed")]
    report, record = load(tmp_path, [context(), frame(1, 1_090), *opened, *acts, *ends])
    assert [step.screenshot for step in record.steps] == ["00000.jpg", None, "00000.jpg"]
    assert counts(report, "lost")["screenshots of actions whose page is unknown"] == 1


def test_steps_of_the_test_runner_are_skipped(tmp_path: Path) -> None:
    runner = json.dumps({"type": "before", "callId": "test@1", "startTime": 1}).encode()
    newer = json.dumps(context(origin="testRunner")).encode()
    files = members(shopping(), name="0-trace.trace") | {"test.trace": runner, "1-trace.trace": newer}
    report, (record,) = inspect(zipped(tmp_path / "lamp-1.zip", files))
    assert len(record.steps) == 4
    assert counts(report, "lost")["files with steps of the test runner"] == 2
    report, records = inspect(zipped(tmp_path / "none.zip", {"trace.trace": newer}))
    assert not records
    assert [problem.code for problem in report.rejected["trace.trace"]] == ["trace_without_browser"]


@pytest.mark.parametrize("version", [3, 11, 0, True, "10", None, 10.5])
def test_other_versions_are_refused_by_name(tmp_path: Path, version: Any) -> None:
    report, records = inspect(zipped(tmp_path / "lamp-1.zip", members([context(version)])))
    assert not records
    (problem,) = report.rejected["trace.trace"]
    assert problem.code == "trace_version_unknown"
    assert f"is a trace of version {json.dumps(version)}; versions 4 to 10" in problem.message


def several() -> dict[str, bytes]:
    one = traces.zipped(members(shopping()))
    return {"runs/lamp-2.zip": one, "cart/trace.zip": one} | {f"lamp-3/{k}": v for k, v in members(shopping()).items()}


def as_folder(path: Path, files: dict[str, bytes]) -> Path:
    for name, data in files.items():
        (path / name).parent.mkdir(parents=True, exist_ok=True)
        (path / name).write_bytes(data)
    return path


@pytest.mark.parametrize("save", [zipped, as_folder])
def test_several_traces_are_named_after_their_zips_and_folders(tmp_path: Path, save: Any) -> None:
    files = several() | {"tasks.csv": b"log,task_id\nlamp-2,mapped\n"}
    report, records = inspect(save(tmp_path / "all", files))
    assert not report.rejected
    assert sorted(record.task_id for record in records) == ["cart", "lamp-3", "mapped"]
    assert {tuple(step.click is not None for step in record.steps) for record in records} == {
        (False, True, True, False)
    }


@pytest.mark.parametrize(
    ("inner", "codes"),
    [
        (b"no zip", ["zip_unreadable"]),
        (traces.zipped(members(shopping()))[:-100], ["zip_unreadable"]),
        (traces.zipped(members(shopping()) | {"../evil": b""}), ["path_outside"]),
        (traces.zipped(members(shopping()) | {"C:\\evil": b""}), ["path_outside"]),
        (traces.zipped(members(shopping()) | {"inner.zip": b"PK"}), ["nested_archive"]),
        (traces.zipped(members(shopping()) | {"a.trace": b"\n" * 20_000_000}), ["compression_ratio"]),
    ],
)
def test_zips_inside_are_checked_as_the_upload_is(tmp_path: Path, inner: bytes, codes: list[str]) -> None:
    report, records = inspect(zipped(tmp_path / "all.zip", several() | {"runs/bad.zip": inner}))
    assert not records
    assert [problem.code for problem in report.rejected[""]] == codes
    assert "runs/bad.zip" in report.rejected[""][0].message


def test_other_archives_inside_are_still_refused(tmp_path: Path) -> None:
    report, records = inspect(zipped(tmp_path / "all.zip", several() | {"more.tar.gz": b""}))
    assert not records
    assert [problem.code for problem in report.rejected[""]] == ["nested_archive"]
    downloaded = members(shopping()) | {"resources/a.zip": b"PK", "resources/b.gz": b""}
    report, records = inspect(zipped(tmp_path / "one.zip", downloaded))
    assert (len(records), report.rejected) == (1, {})


def test_zips_inside_share_the_limits_of_the_upload(tmp_path: Path) -> None:
    path = as_folder(tmp_path / "all", several())
    for limits, codes in (
        (Limits(total_bytes=100_000), ["package_too_large"]),
        (Limits(entries=20), ["too_many_entries"]),
    ):
        package = FolderPackage(path, limits)
        with unpack(package, is_trace_zip) as files:
            assert [problem.code for problem in package.problems if problem.code != "nested_archive"] == []
            assert [problem.code for problem in files.problems] == codes


def test_other_formats_are_not_recognised(tmp_path: Path) -> None:
    v2 = {"t/result.json": b"{}", "t/trajectory/0.png": b"", "t/network.zip": traces.zipped(members(shopping()))}
    others: list[dict[str, bytes]] = [
        logged(),
        v2,
        {"AgentHistory.json": b'{"history": [{"model_output": null}]}'},
        {"trajectory.json": b'{"schema_version": "ATIF-v1.7", "steps": []}'},
        {"traj.jsonl": b'{"type": "context-options", "version": 8}'},
        {"a.trace": b'{"type": "before", "callId": "test@1"}'},
        {"a.zip": traces.zipped({"network.har": b"{}"})},
    ]
    for number, other in enumerate([*others, members(shopping()), several()]):
        with open_package(zipped(tmp_path / f"{number}.zip", other)) as package:
            assert FORMAT.recognise is not None
            assert FORMAT.recognise(package) is (number >= len(others)), other.keys()


STEP = [call(1, 2_000, "click", selector="#go"), after(1, 2_010)]
BEGIN = [context(), frame(1, 1_090)]


@pytest.mark.parametrize(
    ("events", "code"),
    [
        ([*BEGIN, *STEP, b'{"type": "bef'], "json_invalid"),
        ([*BEGIN, *STEP, b"\xff\xfe"], "json_invalid"),
        ([*BEGIN, *STEP, b'{"type": "log", "time": NaN}'], "json_invalid"),
        ([*BEGIN, *STEP, b'{"a": ' + b"9" * 5_000 + b"}"], "json_invalid"),
        ([*BEGIN, *STEP, b"[" * 100_000], "json_invalid"),
        ([*BEGIN, *STEP, b"[" + b"1," * 1_000_001 + b"1]"], "json_too_large"),
        (BEGIN, "no_steps"),
        ([*BEGIN, STEP[0] | {"method": "evaluateExpression"}], "no_steps"),
        ([*BEGIN, *(call(n, n, "goBack", kind="Page") for n in range(20_001))], "too_many_steps"),
    ],
)
def test_a_trace_that_cannot_be_read_is_refused(tmp_path: Path, events: list[Any], code: str) -> None:
    report, records = inspect(zipped(tmp_path / "lamp-1.zip", members(events)))
    assert not records
    assert [problem.code for problems in report.rejected.values() for problem in problems] == [code]


AWAY, UNKNOWN, TIME = "pictures that are not in the upload", "events of unknown kinds", "pictures without a time"
UNTIMED = "actions without a time, or with the id of another"
LONE = json.dumps(snapshot(1, "https://lamps.example/\ud800")).encode()


@pytest.mark.parametrize(
    ("extra", "lost"),
    [
        ([None, 5, "x", [1]], {UNKNOWN: 4}),
        ([{"type": 5}, {"type": ["before"]}, {"type": "unheard"}, {}], {UNKNOWN: 4}),
        ([call(2, 1, "fetch"), call(3, 1, "click", kind="APIRequestContext"), {"type": "before"}], {NO_ACTION: 3}),
        ([call(1, 1, "click"), call(2, 1, "click") | {"startTime": "now"}], {UNTIMED: 2}),
        ([frame(1, 1_100, file="../../etc/passwd"), frame(1, 1_100, file="https://lamps.example/1.jpeg")], {AWAY: 2}),
        ([frame(1, 1_100, file="C:\\1.jpeg"), frame(1, 1_100, file=5), frame(1, 1_100, file=None)], {AWAY: 3}),
        ([frame(1, 1_100, timestamp=None), frame(1, 1_100, timestamp=10**400)], {TIME: 2}),
        ([frame(2, 1_100, pageId=[]), frame(2, 1_100, width=-5)], {}),
        ([after(9, 1), at(9), said(9, 1, "x"), after(1, 2_010, error=5)], {}),
        ([{"type": "input", "callId": []}, {"type": "after"}, {"type": "log", "callId": {}}], {}),
        ([{"type": "frame-snapshot", "snapshot": "x"}, {"type": "event", "params": 5}], {}),
        ([LONE], {"URLs with characters that cannot be stored": 1}),
        ([b'{"type": "log", "type": "unheard"}'], {UNKNOWN: 1}),
        ([b'{"a": "' + b"x" * 17_000_000 + b'"}'], {"events of more than 16,777,216 bytes": 1}),
        ([{"type": "screenshot", "callId": "call@1", "phase": [], "file": "gone.png"}], {AWAY: 1}),
    ],
)
def test_events_that_cannot_be_used_are_counted(tmp_path: Path, extra: list[Any], lost: dict[str, int]) -> None:
    report, record = load(tmp_path, [*BEGIN, *STEP, *extra])
    assert [step.action for step in record.steps if step.action] == [CLICK]
    watched = (AWAY, UNKNOWN, TIME, UNTIMED, NO_ACTION, "URLs with", "events of more")
    assert {what: count for what, count in counts(report, "lost").items() if what.startswith(watched)} == lost


def test_a_picture_that_is_a_text_is_counted(tmp_path: Path) -> None:
    files = members([*BEGIN, *STEP]) | {"screencast/1.jpeg": b"no picture"}
    report, (record,) = inspect(zipped(tmp_path / "lamp-1.zip", files))
    assert record.steps[0].screenshot is None
    assert counts(report, "lost")["pictures that cannot be read"] == 1


def test_ten_thousand_actions_are_read_in_order(tmp_path: Path) -> None:
    events = [each for n in range(10_000) for each in (call(n, 20_000 - n, "goBack", kind="Page"), after(n, 30_000))]
    events[0] |= {"params": {"timeout": 1}}
    _, record = load(tmp_path, [*BEGIN, *events])
    assert len(record.steps) == 10_000
    assert record.steps[-1].action == "goBack(timeout=1) | SUCCESS"
