"""Import of judgment files into database rows, all or nothing."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from django.core.validators import slug_re
from django.db import transaction
from django.utils.text import slugify

from annotation import clock, workflow
from annotation.formats.printable import listing, printable
from annotation.formats.tasks import nearest
from annotation.models import Agent, Benchmark, Step, Task, Trajectory
from annotation.models.events import digest
from annotation.records import ImportReport, Problem
from judges.judgment_files import read_content, read_judgments
from judges.judgment_rows import LONGEST, JudgmentRecord
from judges.models import Judge, Judgment
from judges.prompt_sets import is_storable
from judges.scorer import IMPORTED
from judges.working.leases import build_columns

LARGEST_FILE = 32 * 1024 * 1024  # bytes that a page or the API reads during a request
LONGEST_NAME = 64
MOST_MODELS = 50  # of one file; each becomes a permanent judge
MOST_HINTS = 100  # looking for the nearest task id takes some milliseconds


@dataclass(slots=True)
class ImportOutcome:
    """The outcome of a file. ``judges``: judgments by name of the judge; ``known``: imported before.

    ``linked`` counts new and known judgments that this import linked to a trajectory.
    """

    report: ImportReport = field(default_factory=ImportReport)
    judges: dict[str, int] = field(default_factory=dict)
    new: int = 0
    known: int = 0
    linked: int = 0


def import_judgments(
    data: bytes, name: str, *, benchmark: Benchmark, judge: str, agent: str = "", person: Any = None
) -> ImportOutcome:
    """Import judgments as those of the judge named ``judge``; several models in a file become one judge each.

    ``agent`` is the agent of rows that name none. Tasks must exist. New agents and judges are created, and a judge is
    frozen immediately. A judgment is linked to the trajectory of its agent and task if the newest attempt has exactly
    one. Existing judgments stay; if the file contradicts one of them, the whole file is rejected.
    """
    outcome = ImportOutcome()
    if problem := _check_name(judge) or _check_agents(agent):
        outcome.report.reject("", problem)
        return outcome
    found = read_judgments(data, name, agent)
    for task_id, warning in found.warnings:
        outcome.report.warn(task_id, warning)
    if not found.records and not found.problems:
        found.problems.append(Problem("file_empty", f"{printable(name)}: has no judgments.", printable(name)))
    if found.problems:
        outcome.report.reject("", *found.problems)
    _refuse_unknown_tasks(outcome.report, found.records, benchmark)
    if outcome.report.rejected:
        return outcome
    source = {"file": printable(name, 200), "sha256": hashlib.sha256(data).hexdigest()}
    with transaction.atomic():
        workflow.lock_benchmark(benchmark.pk)
        _Import(outcome, benchmark, found.records, source).write(judge, person)
        if outcome.report.rejected:
            transaction.set_rollback(True)
            outcome.report.accepted = []
    return outcome


def _check_name(judge: str) -> Problem | None:
    if slug_re.match(judge) and len(judge) <= LONGEST_NAME:
        return None
    says = f"The judge's name '{printable(judge, 80)}' may only have letters, digits, - and _, at most {LONGEST_NAME}."
    return Problem("judge_name_invalid", says, "judge")


def _check_agents(agent: str) -> Problem | None:
    if len(agent) <= LONGEST["agent"] and is_storable(agent):
        return None
    says = f"The agent's name '{printable(agent, 80)}' may only have valid characters, at most {LONGEST['agent']}."
    return Problem("agent_name_invalid", says, "agent")


def name_judges(judge: str, models: list[str]) -> dict[str, str]:
    """Return the judge's name for each model: ``judge`` itself for a single model, else ``<judge>-<model>``."""
    if len(models) < 2:
        return dict.fromkeys(models, judge)
    names = {model: f"{judge}-{slugify(model) or 'unknown'}" for model in models}
    for model, name in names.items():
        if len(name) > LONGEST_NAME or list(names.values()).count(name) > 1:
            mark = hashlib.sha256(model.encode()).hexdigest()[:8]
            names[model] = f"{name[: LONGEST_NAME - 9]}-{mark}"
    return names


@dataclass(frozen=True, slots=True)
class _Import:
    """Writer of the records of one file, in a transaction that has locked the benchmark."""

    outcome: ImportOutcome
    benchmark: Benchmark
    records: list[JudgmentRecord]
    source: Mapping[str, str]

    @property
    def report(self) -> ImportReport:
        return self.outcome.report

    def write(self, judge: str, person: Any) -> None:
        models = list(dict.fromkeys(record.model for record in self.records))
        if len(models) > MOST_MODELS:
            says = (
                f"The file has {len(models):,} models, which would become one judge each; the limit is {MOST_MODELS}."
            )
            self.report.reject("", Problem("too_many_models", says, "model"))
            return
        names = name_judges(judge, models)
        judges = {model: self._find_or_create_judge(name, model, person) for model, name in names.items()}
        if any(found is None for found in judges.values()):
            return
        if len(names) > 1:
            says = f"The file has several models, which became one judge each: {', '.join(names.values())}."
            self.report.warn("", Problem("judge_per_model", says))
        self._write({model: found for model, found in judges.items() if found is not None})

    def _find_or_create_judge(self, name: str, model: str, person: Any) -> Judge | None:
        now = clock.now()
        # The name is a parameter, so part of the fingerprint: nothing else is known about the judge.
        made = {
            "scorer": IMPORTED,
            "model": model,
            "parameters": {"name": name},
            "frozen_at": now,
            "created_by": person,
        }
        newest = Judge.own.filter(name=name).order_by("-version").first()
        found = newest or Judge.own.get_or_create(name=name, version=1, defaults=made)[0]
        if found.scorer != IMPORTED:
            says = f"{name} is a judge of this instance; choose another name for imported judgments."
            self.report.reject("", Problem("judge_runs_here", says, "judge"))
        elif found.model != model:
            own, given = _format_model(found.model), _format_model(model)
            says = f"{name} is for {own}, the file has {given}; choose another judge name."
            self.report.reject("", Problem("judge_model_differs", says, "judge"))
        return found if found.scorer == IMPORTED and found.model == model else None

    def _write(self, judges: dict[str, Judge]) -> None:
        tasks = {t.external_id: t for t in Task.objects.filter(benchmark=self.benchmark).order_by("version")}
        agents = self._map_agents()
        known = self._load_known(judges)
        places = _Places(self.benchmark, self.records)
        fresh: list[Judgment] = []
        late: list[tuple[int, Judgment]] = []  # imported before, and not linked yet
        for record in self.records:
            judge, task = judges[record.model], tasks[record.task_id]
            self.outcome.judges[judge.name] = self.outcome.judges.get(judge.name, 0) + 1
            content = digest(read_content(record))
            earlier = known.get((judge.pk, record.task_id, record.agent))
            if earlier is not None and earlier["digest"] != content:
                _refuse(self.report, record, "judgment_differs", _describe_difference(judge, record, earlier))
            else:
                self.report.accepted.append(record.task_id)
                self.outcome.known += earlier is not None
                row = self._build_row(record, judge, task, agents[record.agent], places, content)
                if earlier is None:
                    fresh.append(row)
                elif earlier["trajectory"] is None:
                    late.append((earlier["pk"], row))
        linked = sum(row.trajectory is not None for row in (*fresh, *(row for _, row in late)))
        self.outcome.new, self.outcome.linked = len(fresh), linked
        if not self.report.rejected:
            Judgment.objects.bulk_create(fresh, batch_size=100)
            for pk, row in late:
                _link_judgment(pk, row)
        self.report.accepted = list(dict.fromkeys(self.report.accepted))
        self._report_unlinked(len(fresh) + len(late) - linked)

    def _map_agents(self) -> dict[str, Agent]:
        names = list(dict.fromkeys(record.agent for record in self.records))
        agents = {agent.name: agent for agent in Agent.objects.filter(name__in=names)}
        if new := [name for name in names if name not in agents]:
            Agent.objects.bulk_create((Agent(name=name) for name in new), ignore_conflicts=True)
            agents |= {agent.name: agent for agent in Agent.objects.filter(name__in=new)}
            message = f"These agents are new: {listing(new)}. Check the names if they should be known."
            self.report.warn("", Problem("agent_new", message))
        return agents

    def _load_known(self, judges: dict[str, Judge]) -> dict[tuple[int, str, str], dict[str, Any]]:
        """Load the judgments of these judges in the benchmark, for all versions of its tasks."""
        rows = Judgment.objects.filter(
            judge__in=judges.values(), item__isnull=True, task__benchmark=self.benchmark
        ).values_list(
            "judge", "task__external_id", "agent__name",
            "pk", "trajectory", "verdict", "imported__digest", "imported__file",
        )  # fmt: skip
        names = ("pk", "trajectory", "verdict", "digest", "file")
        return {(judge, task, agent): dict(zip(names, rest, strict=True)) for judge, task, agent, *rest in rows}

    def _build_row(
        self, record: JudgmentRecord, judge: Judge, task: Task, agent: Agent, places: _Places, content: str
    ) -> Judgment:
        trajectory = places.find(record)
        steps, notes = places.steps(record, trajectory)
        score = replace(record.score, steps=steps, notes={**record.score.notes, **notes})
        return Judgment(
            judge=judge,
            fingerprint=judge.fingerprint,
            task=trajectory.task if trajectory is not None else task,
            agent=agent,
            trajectory=trajectory,
            model=record.model,
            tokens=record.tokens,
            **build_columns(score),
            imported={
                **self.source,
                "row": record.row,
                "shape": record.shape,
                "digest": content,
                "carried": record.carried,
            },
            made_at=clock.now(),
        )

    def _report_unlinked(self, number: int) -> None:
        if number:
            says = f"{number} of the judgments match no trajectory here, or several; they count in comparisons only. "
            says += "Import the file again when their trajectories have been imported."
            self.report.warn("", Problem("not_linked", says))


def _link_judgment(pk: int, row: Judgment) -> None:
    if row.trajectory is not None:
        found = Judgment.objects.filter(pk=pk, item=None, trajectory=None)
        found.update(trajectory=row.trajectory, task=row.task, evidence=row.evidence)


class _Places:
    """Lookup of the trajectories that judgments are about, and of their steps by screenshot name."""

    def __init__(self, benchmark: Benchmark, records: list[JudgmentRecord]) -> None:
        names = {record.agent for record in records}
        rows = Trajectory.objects.filter(
            submission__benchmark=benchmark, submission__practice=False, submission__agent__name__in=names
        )
        attempts: dict[tuple[str, str], dict[int, list[Trajectory]]] = {}
        for row in rows.select_related("task", "submission__agent").defer("submission__import_report"):
            key = (row.submission.agent.name, row.task.external_id)
            attempts.setdefault(key, {}).setdefault(row.submission.attempt, []).append(row)
        newest = {key: found[max(found)] for key, found in attempts.items()}
        self._found = {key: found[0] for key, found in newest.items() if len(found) == 1}
        self._steps: dict[int, dict[str, int]] = {}
        wanted = {t.pk for r in records if r.files and (t := self.find(r)) is not None}
        steps = Step.objects.filter(trajectory__in=wanted).exclude(file_name="")
        for trajectory, name, index in steps.values_list("trajectory", "file_name", "index"):
            self._steps.setdefault(trajectory, {})[name] = index

    def find(self, record: JudgmentRecord) -> Trajectory | None:
        return self._found.get((record.agent, record.task_id))

    def steps(self, record: JudgmentRecord, trajectory: Trajectory | None) -> tuple[tuple[Any, ...], dict[str, str]]:
        """Return the judged steps with the numbers of this trajectory, and notes on steps that it does not have.

        A file may number the steps of a longer run that contains the trajectory. This is known only if the file names
        the screenshots. Without these names, its numbers are used unchanged.
        """
        indexes = self._steps.get(trajectory.pk, {}) if trajectory is not None else {}
        here = {step: indexes[name] for step, name in record.files.items() if name in indexes}
        if not here:
            return record.score.steps, {}
        placed = [replace(one, step=here[one.step]) for one in record.score.steps if one.step in here]
        others = [f"{one.step}: {one.relevance}" for one in record.score.steps if one.step not in here]
        numbers = [f"{old} is step {new}" for old, new in here.items() if old != new]
        notes = {"screenshots_elsewhere": ", ".join(others), "numbered_in_the_file": ", ".join(numbers)}
        return tuple(placed), {name: text for name, text in notes.items() if text}


def _format_model(name: str) -> str:
    return f"the model {printable(name)}" if name else "no named model"


def _describe_difference(judge: Judge, record: JudgmentRecord, earlier: Mapping[str, Any]) -> str:
    now, before = _format_verdict(record.score.verdict), _format_verdict(earlier["verdict"])
    now = "the same verdict with other details" if now == before else f"verdict {now}"
    return (
        f"already has a judgment of {judge.name}, from {earlier['file']}, with verdict {before}; this "
        f"file has {now}. Judgments are never changed: import the file under another judge name"
    )


def _format_verdict(verdict: int | None) -> str:
    return "none" if verdict is None else str(int(verdict))


def _refuse(report: ImportReport, record: JudgmentRecord, code: str, says: str) -> None:
    where = f"line {record.row}"
    message = f"{where}: {printable(record.task_id)} of {printable(record.agent)} {says}."
    report.reject(record.task_id, Problem(code, message, where))


def _refuse_unknown_tasks(report: ImportReport, records: list[JudgmentRecord], benchmark: Benchmark) -> None:
    known = dict.fromkeys(Task.objects.filter(benchmark=benchmark).values_list("external_id", flat=True))
    unknown = dict.fromkeys(record.task_id for record in records if record.task_id not in known)
    hints = dict.fromkeys(unknown, "import the benchmark's tasks first")
    for task_id in list(unknown)[:MOST_HINTS]:
        if near := nearest(task_id, known):
            hints[task_id] = f"the nearest known id is {near}"
    for record in records:
        if record.task_id in hints:
            _refuse(report, record, "task_unknown", f"is not a task of the benchmark; {hints[record.task_id]}")
