"""Convert the results of WebArena and VisualWebArena: a page ``render_<task_id>.html`` for each task.

The page begins with the task's settings in ``<pre>``, a line ``key: value`` for each. Each step begins with
``<h2>New Page</h2>`` and has the address, the text of the page, a screenshot as a data URI (if it was enabled), the
action before, and the action: ``raw_parsed_prediction`` (what the model wrote) and ``parsed_action``, such as
``click [8] where [8] is ...``, ``type [8] [text]``, ``stop [answer]``, or ``none`` for a reply that could not be read.
Screenshots are of the page before the action. There are no coordinates.

The writer puts texts of pages and models into the HTML without escapes, so a parser of HTML would lose what looks like
a tag. The parts are found by the literal text that the writer puts around them. Nothing is rendered. ``eval`` and
``storage_state`` of the settings, ``merged_log.txt`` and ``traces/`` are not read.
Source: web-arena-x/webarena f62e0b9 and visualwebarena 54139d9, ``run.py``, ``browser_env/helper_functions.py``.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace
from itertools import zip_longest
from pathlib import Path

from annotation.formats.agent_logs import (
    LARGEST_LOG,
    Log,
    LoggedStep,
    LogProblem,
    as_files,
    as_text,
    convert_logs,
    decode_picture,
    log_format,
    one_line,
    peek,
)
from annotation.formats.archive import LONGEST_WHERE, Package
from annotation.formats.documents import FormatError, decode_text
from annotation.formats.printable import printable
from annotation.formats.registry import Progress
from annotation.records import ImportReport

NAME = "webarena-result"
SETTINGS = re.compile(r"<body>\s*<pre>(.*?)</pre>", re.DOTALL)
SETTING = re.compile(r"^([a-z_]+): ?", re.MULTILINE)
STEP = "<h2>New Page</h2>"
TRACE = re.compile(r"(?:^|/)traces/[^/]+\.zip$")
NONE = ("", "None", "null", "[]")
EARLY = ("Early stop: ", "ERROR: ")  # the runner stops the agent with these
NO_ELEMENT = 'Attempt to perfom "'  # sic


def find_pages(package: Package) -> list[str]:
    names = (name for name in package.names() if name.lower().endswith((".html", ".htm")))
    return [name for name in names if {"task_id", "intent"} <= _read_settings(peek(package, name)).keys()]


def _read_settings(text: str) -> dict[str, str]:
    """Return the settings. A value ends at the next line that begins like a setting, so that no value has another."""
    found = SETTINGS.search(text)
    parts = SETTING.split(found[1]) if found else [""]
    return {key: value.strip() for key, value in zip(parts[1::2], parts[2::2], strict=True)}


def convert(package: Package, folder: Path, report: ImportReport, progress: Progress, _agent: str) -> list[Path]:
    """Write a package for each attempt; see `Format`. Traces of Playwright, which are zips, are left out."""
    package.problems = [
        problem for problem in package.problems if problem.code != "nested_archive" or not TRACE.search(problem.where)
    ]
    return convert_logs(NAME, read, as_files(package), folder, report, progress)


def read(package: Package) -> Iterator[Log | LogProblem]:
    names = find_pages(package)
    rest = [name for name in package.names() if name not in set(names)]
    lost = {"network traces": sum(1 for name in rest if TRACE.search(name))}
    lost["other files of the run"] = len(rest) - lost["network traces"]
    for name in names:
        try:
            text = decode_text(package.read(name, LARGEST_LOG), printable(name, LONGEST_WHERE), "a page in HTML")
        except FormatError as error:
            yield LogProblem(name, tuple(error.problems))
            continue
        log = _read_page(name, text)
        log.lost.update(lost)
        lost = {}
        yield log


def _read_page(name: str, text: str) -> Log:
    head, *turns = text.split(STEP)
    settings = _read_settings(head)
    log = Log(name=name, task_id=as_text(settings.get("task_id")), task=as_text(settings.get("intent")))
    for turn, following in zip_longest(turns, turns[1:], fillvalue=""):
        _read_turn(log, turn, following)
    has = {key for key, value in settings.items() if value not in NONE}
    log.lost["expected answers, which annotators must not see"] += int("eval" in has)
    log.lost["files with cookies, which annotators must not see"] += int("storage_state" in has)
    log.lost["images of the task"] += int("image" in has)
    log.lost["other settings of the task"] += len(has - {"task_id", "intent", "eval", "storage_state", "image"})
    log.lost["page structures"] += sum(1 for turn in turns if _block(turn, "state_obv"))
    return log


def _read_turn(log: Log, turn: str, following: str) -> None:
    picture, url = _find_picture(log, turn), _between(turn, ">URL: ", "</a>")
    # The text of the page is above the action before: blocks in it are not of the agent.
    above = _opening(turn, "prev_action")
    reply = turn.rpartition(above)[2] if above else ""
    prediction, action = _block(reply, "raw_parsed_prediction"), _block(reply, "parsed_action")
    if action is None:  # of the action set "playwright"
        action = _between(reply, _opening(reply, "predict_action"), "</div>")
    action = (action or "").strip()
    answer = action[6:-1].strip() if action.startswith("stop [") and action.endswith("]") else None
    is_early = answer is not None and answer.startswith(EARLY)
    log.lost["screenshots of turns without an action"] += int(log.last is not None)
    log.last, log.last_url = None, None
    if is_early or action in ("", "none"):
        what = "stops by the runner" if is_early else "replies that are no action"
        log.lost[what] += 1
        log.lost["thoughts of turns without an action"] += int(bool((prediction or "").strip()))
        log.last, log.last_url = picture, url
        return
    if answer:
        log.answer = answer
    log.steps.append(
        LoggedStep(
            call=one_line(action),
            thought=as_text((prediction or "").strip()),
            url=url,
            failed=True if (_block(following, "prev_action") or "").lstrip().startswith(NO_ELEMENT) else None,
            picture=picture,
        )
    )


def _find_picture(log: Log, turn: str) -> bytes | None:
    start = turn.rfind("<img src=")
    if start < 0:
        return None
    quote = turn[start + 9 : start + 10]
    end = turn.find(quote, start + 10) if quote in ("'", '"') else -1
    picture = decode_picture(turn[start + 10 : end]) if end > 0 else None
    log.lost["pictures that cannot be read"] += int(picture is None)
    return picture


def _opening(text: str, name: str) -> str:
    """Return the last opening tag of the class ``name``; "" if there is none."""
    start = max(text.rfind(f"<div class={quote}{name}{quote}") for quote in ("'", '"'))
    end = text.find(">", start) if start >= 0 else -1
    return text[start : end + 1] if end > 0 else ""


def _block(text: str, name: str) -> str | None:
    """Return the text of the last block of the class ``name``, without its ``<pre>``; None if there is none."""
    tag = _opening(text, name)
    if not tag:
        return None
    inside = text[text.rfind(tag) + len(tag) :]
    if inside.startswith("<pre>"):
        return inside[5:].partition("</pre>")[0]
    return inside.partition("</div>")[0]


def _between(text: str, before: str, after: str) -> str | None:
    """Return the text after the first ``before``, up to ``after``; None without both."""
    _, found, rest = text.partition(before) if before else ("", "", "")
    inside, end, _ = rest.partition(after)
    return as_text(inside.strip()) if found and end else None


FORMAT = replace(
    log_format(
        NAME,
        title="WebArena, VisualWebArena",
        files="a folder of results with render_<task_id>.html",
        recognise=lambda package: bool(find_pages(package)),
        read=read,
    ),
    convert=convert,
)
