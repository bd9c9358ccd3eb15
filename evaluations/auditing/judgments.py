"""Import judges as stated, their runs and judgments from a bundle.

A judge that came in a bundle belongs to the imported submission. It is never a judge of this instance, even with the
same name, and cannot be run. Its runs are over, whatever their state when the bundle was created.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import datetime
from itertools import islice
from typing import Any

from django.core.validators import slug_re

from annotation import clock
from evaluations.auditing.import_context import BATCH, LARGEST, ImportContext, parse_time
from evaluations.verifier.documents import Document
from evaluations.verifier.judgments import judgment_problem
from evaluations.verifier.rules import is_imported_run
from judges.models import Judge, JudgeRun, Judgment, RunItem

TEXTS = ("name", "scorer", "model", "prompts", "prompts_digest", "stated")
NOT_OVER = "It had not ended when the evidence bundle was created."
NOT_TOLD = "An evidence bundle does not contain the cause of a failure."

JudgeName = tuple[str, int]  # and version
Placed = tuple["_Run", Document]


@dataclass(frozen=True, slots=True)
class _Run:
    """The run of judgments; ``row`` is None if they were imported. ``at`` is the run's latest known time."""

    line: Document
    judge: Judge
    row: JudgeRun | None
    at: datetime

    def key(self, line: Document) -> tuple[int, bool, str, int]:
        owner = self.judge.pk if self.row is None else self.row.pk
        return owner, self.row is None, line["task_id"], line["repetition"]


def write_judgments(context: ImportContext, runs: Iterable[Document], judgments: Iterable[Document]) -> None:
    placed = _select_judgments(context, _write_runs(context, runs), judgments)
    while batch := list(islice(placed, BATCH)):
        _create_judgments(context, batch)


# --- judges and runs -------------------------------------------------------------------------------------------------


def _write_runs(context: ImportContext, lines: Iterable[Document]) -> dict[int, _Run]:
    """Return the runs by number. Their primary keys have the same order, because the latest of two runs counts."""
    kept: dict[int, Document] = {}
    judges: dict[JudgeName, Judge] = {}
    for line in sorted(lines, key=lambda line: line["run"]):
        number, name, judge = line["run"], _name(line), _judge(context, line)
        problem = "its number occurs twice" if number in kept else _find_problem_of_run(line, judge, judges.get(name))
        if context.rejections.accept(f"judge run {number}", problem):
            kept[number] = line
            judges.setdefault(name, judge)
    Judge.objects.bulk_create(judges.values(), batch_size=BATCH)
    found = {number: _run(context, line, judges[_name(line)]) for number, line in kept.items()}
    JudgeRun.objects.bulk_create((run.row for run in found.values() if run.row is not None), batch_size=BATCH)
    return found


def _name(line: Document) -> JudgeName:
    return line["judge"], line["version"]


def _judge(context: ImportContext, line: Document) -> Judge:
    names = ("version", "scorer", "scorer_version", "model", "prompts", "prompts_digest", "parameters", "generation")
    return Judge(
        name=line["judge"],
        endpoint="",
        frozen_at=clock.now(),  # bundles have no time, and only a frozen judge cannot be changed
        came_with=context.submission,
        stated=line["fingerprint"],
        **{name: line[name] for name in names},
    )


def _find_problem_of_run(line: Document, judge: Judge, known: Judge | None) -> str | None:
    """Return why a line cannot be a run, or None; ``known`` is the earlier judge of that name and version."""
    if not slug_re.match(judge.name):
        return "its judge has no valid name"
    if not judge.stated:
        return "its judge has no fingerprint"
    if long := [name for name in TEXTS if len(getattr(judge, name)) > _longest(Judge, name)]:
        return f"the {'fingerprint' if long[0] == 'stated' else long[0]} of its judge is too long"
    if max(judge.version, judge.scorer_version) > LARGEST:
        return "the version of its judge is too large"
    if known is not None and _describe(known) != _describe(judge):
        return "another run describes the same judge differently"
    if is_imported_run(line):
        return None
    return None if 1 <= (line["repeat"] or 0) <= LARGEST else "it has no number of repetitions"


def _longest(model: Any, name: str) -> int:
    longest: int = model._meta.get_field(name).max_length
    return longest


def _describe(judge: Judge) -> tuple[Any, ...]:
    return *(getattr(judge, name) for name in TEXTS), judge.scorer_version, judge.parameters, judge.generation


def _run(context: ImportContext, line: Document, judge: Judge) -> _Run:
    at = parse_time(line["finished_at"] or line["started_at"]) or context.submission.created_at
    return _Run(line, judge, None if is_imported_run(line) else _row(context, line, judge, at), at)


def _row(context: ImportContext, line: Document, judge: Judge, at: datetime) -> JudgeRun:
    """Build a run that never runs here: if it was neither finished nor cancelled, it is stopped for good."""
    finished = parse_time(line["finished_at"])
    ended = {
        "finished": {"finished_at": at},
        "cancelled": {"finished_at": finished, "cancelled_at": at},
        "paused": {"finished_at": finished, "paused_at": at},
    }
    return JudgeRun(
        judge=judge,
        submission=context.submission,
        repetitions=line["repeat"],
        started_at=parse_time(line["started_at"]),
        **ended.get(line["state"], {"stopped": NOT_OVER}),
    )


# --- judgments -------------------------------------------------------------------------------------------------------


def _select_judgments(context: ImportContext, runs: dict[int, _Run], lines: Iterable[Document]) -> Iterator[Placed]:
    seen: set[tuple[int, bool, str, int]] = set()
    for line in lines:
        run = runs.get(line["run"])
        problem = "its run is not among the runs" if run is None else _problem(context, run, line)
        if run is not None and problem is None and run.key(line) in seen:
            problem = "it occurs twice"
        place = f"judgment of {line['task_id']} in run {line['run']}, repetition {line['repetition']}"
        if context.rejections.accept(place, problem) and run is not None:
            seen.add(run.key(line))
            yield run, line


def _problem(context: ImportContext, run: _Run, line: Document) -> str | None:
    if (line["judge"], line["fingerprint"]) != (f"{run.judge.name}@{run.judge.version}", run.judge.stated):
        return "its run belongs to another judge"
    if problem := context.unknown(line["task_id"]):
        return problem
    if line["repetition"] > LARGEST:
        return "this repetition does not exist"
    if problem := judgment_problem(line, run.line):
        return problem
    too_long = len(line["reason"] or "") > _longest(Judgment, "unscored")
    return "its reason is too long" if too_long else None


def _create_judgments(context: ImportContext, placed: list[Placed]) -> None:
    """Create the judgments; those of runs also get a finished item. A failure is only an item."""
    items = [None if run.row is None else _item(context, run, line) for run, line in placed]
    RunItem.objects.bulk_create(item for item in items if item is not None)
    Judgment.objects.bulk_create(
        _judgment(context, run, line, item)
        for (run, line), item in zip(placed, items, strict=True)
        if not line["error"]
    )


def _item(context: ImportContext, run: _Run, line: Document) -> RunItem:
    at = parse_time(line["judged_at"]) or run.at
    ended = {"failed_at": at, "error": NOT_TOLD} if line["error"] else {"done_at": at}
    return RunItem(
        run=run.row,
        trajectory=context.trajectories[line["task_id"]],
        repetition=line["repetition"],
        attempt=1,
        taken_at=at,
        **ended,
    )


def _judgment(context: ImportContext, run: _Run, line: Document, item: RunItem | None) -> Judgment:
    trajectory = context.trajectories[line["task_id"]]
    return Judgment(
        judge=run.judge,
        fingerprint=run.judge.stated,
        item=item,
        task_id=trajectory.task_id,
        agent_id=context.submission.agent_id,
        trajectory=trajectory,
        repetition=line["repetition"],
        verdict=line["verdict"],
        unscored=line["reason"] or "",
        score=line["score"],
        model=run.judge.model,
        imported={} if item is None else None,
        status_not_stated=line.get("status_not_stated", False),
        made_at=parse_time(line["judged_at"]),
    )
