"""Convert folders that the evaluations of Stagehand 3 write for its verifier: ``trajectory.json`` with screenshots.

Layout: ``<group>/<task id>/<run id>/`` with ``trajectory.json`` (``task``, ``steps``, ``finalAnswer``,
``finalObservation``, ``status``), ``screenshots/probe/<n>.png``, ``screenshots/agent/`` and ``scores/``.

There are two channels of evidence. ``probeEvidence`` is what the harness saw after the steps of a turn. It is shown:
the page before a step is the probe of the turn before. ``agentEvidence`` is what the agent was given. Its texts are
those of ``reasoning`` and ``toolOutput``, and short results of tools are shown with the action. Its picture comes first
if a computer-use client took it before the turn, so it shows the page before the steps that have no earlier probe.
All other pictures and texts of the agent are counted as lost. Coordinates of computer-use tools go to ``page.click``,
so they are CSS pixels of the viewport.

Source: browserbase/stagehand 016c74e ``packages/evals/framework/trajectoryRecorder.ts``, 009dcfc
``packages/core/lib/v3/handlers/v3CuaAgentHandler.ts``, and ``verifier/evidenceNormalization.ts``.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any

from annotation.formats.agent_logs import (
    Log,
    LoggedStep,
    LogProblem,
    as_list,
    as_object,
    as_text,
    decode_picture,
    find_picture,
    format_call,
    is_number,
    load,
    log_format,
    peek,
)
from annotation.formats.archive import Package
from annotation.formats.documents import FormatError, kind_of
from annotation.formats.log_parts import count_unused, group_files, hide_judgement
from annotation.formats.printable import printable
from annotation.records import Problem

NAME = "trajectory.json"
RUN = re.compile(r'\s*\{(?=.*"task"\s*:\s*\{)(?=.*"instruction"\s*:)', re.DOTALL)
RESULT = re.compile(r'\s*\{(?=.*"success"\s*:)(?=.*"actions"\s*:\s*\[)(?=.*"message"\s*:|.*"completed"\s*:)', re.DOTALL)
REPEATED = "screenshots that the agent was given before an earlier step"
INLINE = "[redacted inline image payload]"  # in results whose picture is in the evidence
SHORT = 500  # characters of a result that is shown with the action
VERBS = {
    "click": "CLICK", "double_click": "DOUBLE_CLICK", "doubleClick": "DOUBLE_CLICK", "triple_click": "CLICK",
    "tripleClick": "CLICK", "move": "HOVER",
}  # fmt: skip


def find_runs(package: Package) -> list[str]:
    """Return the trajectories; a file that was uploaded alone may have any name."""
    names = package.names()
    found = [name for name in names if len(names) == 1 or name.rpartition("/")[2] == NAME]
    return [name for name in found if RUN.match(peek(package, name))]


def find_results(package: Package) -> list[str]:
    """Return the files if each is an AgentResult."""
    names = package.names()
    return names if all(RESULT.match(peek(package, name)) for name in names) else []


def read(package: Package) -> Iterator[Log | LogProblem]:
    runs = find_runs(package)
    for name in [] if runs else find_results(package):
        says = f"{printable(name)} is an AgentResult, which has no screenshots. Upload the folder of the verifier."
        yield LogProblem(name, (Problem("no_screenshots", says, printable(name)),))
    files = group_files(package.names(), {name.rpartition("/")[0] for name in runs})
    for name in runs:
        try:
            yield _Run(package, name).read(files[name.rpartition("/")[0]])
        except FormatError as error:
            yield LogProblem(name, tuple(error.problems))


class _Run:
    def __init__(self, package: Package, name: str) -> None:
        document = load(package, name)
        if not isinstance(document, dict) or not isinstance(document.get("steps"), list):
            shown = printable(name)
            says = f"{shown}: must be an object with the list steps, not {kind_of(document)}."
            raise FormatError(Problem("wrong_type", says, f"{shown}: steps"))
        task = as_object(document.get("task"))
        self.package, self.name, self.document, self.task = package, name, document, task
        self.used: set[str] = {name}
        self.seen: set[str | bytes] = set()  # pictures that the agent was given
        self.log = Log(
            name=name.rpartition("/")[0] or name,
            task_id=as_text(task.get("id")),
            task=as_text(task.get("instruction")),
            answer=as_text(document.get("finalAnswer")),
        )

    def read(self, names: list[str]) -> Log:
        lost = self.log.lost
        before: str | bytes | None = None
        url = as_text(self.task.get("initUrl"))
        earlier = before, url
        steps = [as_object(step) for step in as_list(self.document["steps"])]
        for number, step in enumerate(steps):
            probe = as_object(step.get("probeEvidence"))
            same_turn = number > 0 and bool(probe) and probe == as_object(steps[number - 1].get("probeEvidence"))
            if number and not same_turn:
                before, url = earlier
            self._add(step, before, url)
            earlier = self._find(probe.get("screenshotPath")), as_text(probe.get("url"))
            lost["page structures (ariaTree)"] += bool(probe.get("ariaTree"))
        final = as_object(self.document.get("finalObservation"))
        self.log.last = self._find(final.get("screenshotPath")) or earlier[0]
        self.log.last_url = as_text(final.get("url")) or earlier[1]
        lost["page structures (ariaTree)"] += bool(final.get("ariaTree"))
        lost["expected answers, which annotators must not see"] += bool(self.task.get("expectedAnswer"))
        lost["rubrics, which annotators must not see"] += bool(self.task.get("precomputedRubric"))
        lost["states in which a run ended"] += bool(self.document.get("status"))
        lost["counts of tokens"] += bool(self.document.get("usage"))
        count_unused(names, self.used, lost)
        return self.log

    def _add(self, step: dict[str, Any], before: str | bytes | None, url: str | None) -> None:
        name, arguments = as_text(step.get("actionName")) or "unknown", as_object(step.get("actionArgs"))
        output, verb = as_object(step.get("toolOutput")), VERBS.get(name, "")
        own = self._read_evidence(step, before is None)
        x, y = arguments.get("x"), arguments.get("y")
        call = format_call(name, hide_judgement(name, arguments, self.log.lost))
        self.log.steps.append(
            LoggedStep(
                call=call + self._show_result(output),
                verb=verb,
                thought=as_text(step.get("reasoning")),
                url=as_text(arguments.get("pageUrl")) or url,
                failed=not output["ok"] if isinstance(output.get("ok"), bool) else None,
                point=(x, y) if verb and is_number(x) and is_number(y) else None,
                css_pixels=True,
                picture=before or own,
            )
        )
        self.log.lost["times of steps"] += bool(step.get("startedAt"))

    def _show_result(self, output: dict[str, Any]) -> str:
        error, result = as_text(output.get("error")), output.get("result")
        if error:
            return f": {error}"
        if result is None or result in ({"success": True}, {}):
            return ""
        shown = result if isinstance(result, str) else json.dumps(result, ensure_ascii=False)
        if len(shown) > SHORT:
            self.log.lost["results of tools that are longer than 500 characters"] += 1
            return ""
        return f" -> {shown}"

    def _read_evidence(self, step: dict[str, Any], is_needed: bool) -> str | bytes | None:
        """Return the picture that the agent had before the step if it ``is_needed``, and count all others as lost."""
        parts = [as_object(part) for part in as_list(as_object(step.get("agentEvidence")).get("modalities"))]
        redacted = INLINE in json.dumps(as_object(step.get("toolOutput")).get("result"))
        found: str | bytes | None = None
        for number, part in enumerate(parts):
            if part.get("type") != "image":
                continue  # the texts repeat the reasoning and the result
            picture = self._find(part.get("imagePath")) or decode_picture(part.get("bytesBase64"))
            if is_needed and number == 0 and not redacted:
                # The recorder repeats it until there is a newer one: then it does not show the page before this step.
                found = None if picture in self.seen else picture
                self.log.lost[REPEATED] += picture in self.seen
            else:
                self.log.lost["screenshots that the agent was given, beside those of the harness"] += 1
            self.seen |= {picture} if picture is not None else set()
        return found

    def _find(self, path: object) -> str | None:
        if not isinstance(path, str) or "://" in path:
            return None
        found = find_picture(self.package, path, self.name)
        self.used |= {found} if found else set()
        return found


FORMAT = log_format(
    "stagehand",
    title="Stagehand",
    files="a zip or folder with trajectory.json and screenshots/",
    recognise=lambda package: bool(find_runs(package) or find_results(package)),
    read=read,
)
