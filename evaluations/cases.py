"""Labels and decisions of each trajectory as plain values: the input of agreement and comparison.

A case is one trajectory of a reviewed submission, or a task and an agent with imported labels. The number of queries
does not depend on the number of cases, because a report loads all of them for every view.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum
from itertools import groupby
from operator import itemgetter
from typing import Any, NamedTuple

from django.db.models import Count, Max, QuerySet, TextField
from django.db.models.functions import Cast

from annotation.models import (
    Adjudication,
    Benchmark,
    Flag,
    ImportedLabel,
    InformedRevision,
    Membership,
    Reopening,
    SamplePlan,
    Step,
    Submission,
    Trajectory,
)
from annotation.models.plans import is_left_out
from annotation.models.states import State, current_labels, final_verdict
from annotation.process_labels import Marks, decide_steps, read_marks
from annotation.records import Verdict

ELSEWHERE = 2  # labels that make an imported case complete: with fewer there is no agreement to measure


class Rules(StrEnum):
    """Rules for differing imported labels and for rounding.

    ``default``: a case whose imported labels differ is undecided, left out and counted. ``published``: the first
    listed label counts, an undefined rate is 0, and rates are percentages with one digit, as in the tables of
    AgentRewardBench and Online-Mind2Web.
    """

    DEFAULT = "default"
    PUBLISHED = "published"


@dataclass(frozen=True, slots=True)
class InformedOpinion:
    """An annotator's opinion on their own label after seeing judgments. Figures of blind labels ignore it.

    ``judges`` are the shown verdicts, without unscored judgments. ``verdict`` is None until the annotator decides.
    """

    judges: tuple[Verdict, ...]
    verdict: Verdict | None
    reason: str = ""


@dataclass(frozen=True, slots=True)
class BlindLabel:
    """One annotator's blind label. ``annotator`` is a pseudonym, or the name in the file of an imported label.

    ``seconds`` of activity are None if not measured. ``failure_types`` are codes, the main one first.
    """

    annotator: str
    verdict: Verdict
    failure_types: tuple[str, ...] = ()
    seconds: int | None = None
    informed: InformedOpinion | None = None


@dataclass(frozen=True, slots=True)
class Process:
    """The marks on the ``steps`` of a trajectory whose submission asks for process labels.

    ``said`` are (annotator, marks), in the order of the case's labels; ``adjudicated`` are the marks of the last
    adjudication, None without one.
    """

    steps: int
    said: tuple[tuple[str, Marks], ...]
    adjudicated: Marks | None = None

    def final(self) -> list[str | None]:
        """Return the final label of each step; None where neither an adjudication nor a majority gives one."""
        return decide_steps([marks for _, marks in self.said], self.adjudicated, self.steps)


@dataclass(frozen=True, slots=True)
class Case:
    """A trajectory with its blind labels and their outcome.

    ``trajectory`` and ``submission`` are primary keys, None if only labels were imported; then ``state`` is None too.
    ``final`` is None while undecided. ``adjudicated`` is the verdict of the last adjudication, and
    ``adjudicated_blind`` that of the first one if it was decided without seeing a label. ``drawn``: a draw of spot
    checks selected it, None if it was in no draw; ``draw`` is the number of that draw in its submission: draws can
    differ in their rate. ``expected`` labels make it complete. ``attempt`` numbers the agent's submissions.
    """

    agent: str
    task_id: str
    level: str
    website: str
    labels: tuple[BlindLabel, ...]
    final: Verdict | None
    expected: int
    trajectory: int | None = None
    submission: int | None = None
    state: State | None = None
    adjudicated: Verdict | None = None
    adjudicated_blind: Verdict | None = None
    failure_type: str = ""  # of the last adjudication, else of the deciding labels
    flagged: bool = False
    drawn: bool | None = None
    draw: int | None = None
    attempt: int = 1
    task_version: int | None = None
    process: Process | None = None
    known: Verdict | None = None  # the known answer of a gold item

    @property
    def agent_name(self) -> str:
        """Return the agent's name in rows: a second submission is a separate set of trajectories."""
        return self.agent if self.attempt == 1 else f"{self.agent} (attempt {self.attempt})"

    @property
    def key(self) -> tuple[str, str] | int:
        """Return the key of its judgments: the trajectory's primary key, or task id and agent."""
        return (self.task_id, self.agent) if self.trajectory is None else self.trajectory

    @property
    def complete(self) -> bool:
        return len(self.labels) >= self.expected

    @property
    def unanimous(self) -> bool:
        return self.complete and len({label.verdict for label in self.labels}) == 1


def of_submission(submission: Submission) -> list[Case]:
    """Return the trajectories that are to be labelled: those that the sample plan drew, or all without a plan."""
    return [case for case in of_population(submission) if case.state is not State.NOT_DRAWN]


def of_population(submission: Submission) -> list[Case]:
    """Return all trajectories, also those that a sample plan did not draw."""
    return _load_reviewed([submission], name_submissions=False)


def of_benchmark(
    benchmark: Benchmark, submissions: Iterable[Submission], *, imported: bool = True, rules: Rules = Rules.DEFAULT
) -> list[Case]:
    """Return the trajectories of these submissions, then imported labels of tasks and agents that have none of these.

    Trajectories that a sample plan did not draw are left out, with any imported labels of them.

    Names of annotators include their submission, because A1 of one is not A1 of another.
    """
    submissions = list(submissions)
    cases = _load_reviewed(list(submissions), name_submissions=True)
    covered = {(case.task_id, case.agent) for case in cases}
    cases = [case for case in cases if case.state is not State.NOT_DRAWN]
    return cases + _imported(benchmark, covered, rules) if imported else cases


def of_imported(benchmark: Benchmark, rules: Rules = Rules.DEFAULT) -> list[Case]:
    return _imported(benchmark, set(), rules)


def reported_submissions(benchmark: Benchmark) -> QuerySet[Submission]:
    """Return the submissions of a benchmark that count in its figures: frozen, and not practice.

    Planned samples do not count: their cases have different probabilities, so a plain rate of them is biased.
    """
    frozen = Submission.objects.filter(benchmark=benchmark, frozen_at__isnull=False, practice=False)
    return frozen.filter(sample_plan__isnull=True)


UNWEIGHTED = "These figures describe the labelled trajectories of a planned sample. They are not weighted."


def describe_figures(submission: Submission) -> str:
    """Say that plain figures of a planned sample are not weighted; empty without a plan."""
    return UNWEIGHTED if SamplePlan.objects.filter(submission=submission).exists() else ""


def earlier_submissions(submission: Submission) -> QuerySet[Submission]:
    """Return the other reported submissions of the benchmark, on which the quality of a judge can be measured."""
    others = reported_submissions(submission.benchmark).exclude(pk=submission.pk)
    return others.select_related("benchmark").order_by("pk")


def lengths(cases: Iterable[Case]) -> dict[int, tuple[int, int]]:
    """Return the numbers of steps and different screenshots by trajectory's primary key; answers have no steps."""
    cases = [case for case in cases if case.trajectory is not None]
    submissions = {case.submission for case in cases if case.submission is not None}
    rows = Step.objects.filter(trajectory__submission__in=submissions).order_by().values_list("trajectory")
    return {case.trajectory: (0, 0) for case in cases if case.trajectory is not None} | {
        pk: (steps, shown)
        for pk, steps, shown in rows.annotate(steps=Count("pk"), shown=Count("screenshot", distinct=True))
    }


# --- reviewed cases --------------------------------------------------------------------------------------------------
# One query for each kind of row. `with_state` has ten subqueries for each trajectory, which is fast enough for a queue.
# For 10,000 trajectories it takes PostgreSQL a second, and a minute before the tables have statistics.

_VERDICTS = {verdict.value: verdict for verdict in Verdict}
AT_ONCE = 2000  # rows in memory in addition to the cases
_NOTHING = "[]"  # most lists of further failure types are empty and need no parsing


class _Standing(NamedTuple):
    """The attributes of a trajectory that `final_verdict` reads."""

    state: State
    decided: int | None
    lowest: int | None


class _Shared(dict[Any, Any]):
    """One shared object for equal values: most labels and names are equal, and there can be a million of them."""

    def __missing__(self, value: Any) -> Any:
        self[value] = value
        return value


@dataclass(slots=True)
class _Rows:
    labels: dict[int, tuple[BlindLabel, ...]]
    decisions: dict[int, list[Any]]  # ordered by revision
    reopened: dict[int, int]  # the revision of the decision that was last requested
    flagged: set[int]
    processes: dict[int, Process]


def _load_reviewed(submissions: list[Submission], name_submissions: bool) -> list[Case]:
    if not submissions:
        return []
    here = {"trajectory__submission__in": submissions}
    reopenings = Reopening.objects.filter(**here).values_list("trajectory").annotate(Max("revision"))
    rows = _Rows(
        labels=_labels_of(submissions, name_submissions),
        decisions=_decisions(Adjudication.objects.filter(**here)),
        reopened=dict(reopenings.order_by()),
        flagged=set(Flag.objects.filter(**here).values_list("trajectory", flat=True)),
        processes=_load_processes([each for each in submissions if each.process_labels], name_submissions),
    )
    columns = ("pk", "submission", "submission__required_labels", "submission__agent__name", "submission__attempt")
    of_task = ("task__external_id", "task__version", "task__level", "task__website")
    of_draw = ("spot_check__selected", "spot_check__draw__number", "known_answer__verdict")
    trajectories = Trajectory.objects.filter(submission__in=submissions).order_by("submission_id", "position")
    found = trajectories.values_list(*columns, *of_task, *of_draw, is_left_out()).iterator(chunk_size=AT_ONCE)
    share = _Shared()
    return [_reviewed_case(rows, share, row) for row in found]


def _reviewed_case(rows: _Rows, share: _Shared, row: tuple[Any, ...]) -> Case:
    pk, submission, required, agent, attempt, task_id, task_version, level, website, drawn, draw, known, left_out = row
    labels, decisions = rows.labels.get(pk, ()), rows.decisions.get(pk, [])
    last = decisions[-1] if decisions else None
    standing = _standing(rows, pk, required, drawn)
    final = final_verdict(standing)
    return Case(
        agent=share[agent],
        task_id=task_id,
        level=share[level],
        website=share[website],
        labels=labels,
        final=final,
        expected=required,
        trajectory=pk,
        submission=submission,
        state=State.NOT_DRAWN if left_out else standing.state,
        adjudicated=None if last is None else _VERDICTS[last.verdict],
        adjudicated_blind=_VERDICTS[decisions[0].verdict] if decisions and decisions[0].blind else None,
        failure_type=_failure_type(final, labels) if last is None else share[last.failure_type],
        flagged=pk in rows.flagged,
        drawn=drawn,
        draw=draw,
        attempt=attempt,
        task_version=task_version,
        process=rows.processes.get(pk),
        known=None if known is None else _VERDICTS[known],
    )


def _standing(rows: _Rows, pk: int, required: int, drawn: bool | None) -> _Standing:
    """Apply the rule of `annotation.models.states` to plain rows; a test compares the two."""
    verdicts = [label.verdict for label in rows.labels.get(pk, ())]
    decisions = rows.decisions.get(pk, ())
    lowest = min(verdicts, default=None)
    decided, answered = (decisions[-1].verdict, decisions[-1].revision) if decisions else (None, 0)
    if len(verdicts) < required:
        state = State.IN_REVIEW
    elif rows.reopened.get(pk, 0) > answered:
        state = State.REOPENED
    elif decisions:
        state = State.ADJUDICATED
    elif lowest != max(verdicts):
        state = State.DISPUTE
    elif pk in rows.flagged:
        state = State.FLAGGED
    else:
        state = {True: State.SPOT_CHECK, False: State.UNANIMOUS, None: State.AGREED}[drawn]
    return _Standing(state, decided, lowest)


def _labels_of(submissions: list[Submission], name_submissions: bool) -> dict[int, tuple[BlindLabel, ...]]:
    """Return the latest revision of every label: a label cannot change after other labels became visible."""
    people = _name_people(submissions, name_submissions)
    of_slot = ("assignment__trajectory", "assignment__trajectory__submission", "assignment__annotator")
    rows = (
        current_labels()
        .filter(assignment__trajectory__submission__in=submissions)
        .annotate(further=Cast("further_failure_types", TextField()))
        .order_by("assignment__trajectory_id", "assignment__slot")
        .values_list(*of_slot, "verdict", "failure_type", "further", "active_seconds", "pk")
    )
    opinions, share = _load_opinions(submissions), _Shared()

    def said(
        submission: int, person: int, verdict: int, main: str, further: str, seconds: int | None, pk: int
    ) -> BlindLabel:
        types = (main, *(() if further == _NOTHING else json.loads(further))) if main else ()
        label = BlindLabel(people[submission, person], _VERDICTS[verdict], share[types], seconds, opinions.get(pk))
        return share[label]

    by_trajectory = groupby(rows.iterator(chunk_size=AT_ONCE), key=itemgetter(0))
    return {trajectory: tuple(said(*row[1:]) for row in group) for trajectory, group in by_trajectory}


def _name_people(submissions: list[Submission], name_submissions: bool) -> dict[tuple[int, int], str]:
    members = Membership.objects.filter(submission__in=submissions)
    return {
        (submission, person): f"{submission}: {pseudonym}" if name_submissions else pseudonym
        for submission, person, pseudonym in members.values_list("submission", "person", "pseudonym")
    }


def _load_processes(submissions: list[Submission], name_submissions: bool) -> dict[int, Process]:
    """Return the marks on steps by the trajectory's primary key; answers have no steps."""
    if not submissions:
        return {}
    people = _name_people(submissions, name_submissions)
    here = {"trajectory__submission__in": submissions}
    said: dict[int, list[tuple[str, Marks]]] = defaultdict(list)
    labels = current_labels().filter(assignment__trajectory__submission__in=submissions)
    of_slot = ("assignment__trajectory", "assignment__trajectory__submission", "assignment__annotator")
    in_order = labels.order_by("assignment__trajectory_id", "assignment__slot").values_list(*of_slot, "process")
    for trajectory, submission, person, stored in in_order.iterator(chunk_size=AT_ONCE):
        said[trajectory].append((people[submission, person], read_marks(stored)))
    decided = Adjudication.objects.filter(decided_at__isnull=False, **here).order_by("revision")
    adjudicated = {pk: read_marks(stored) for pk, stored in decided.values_list("trajectory", "process")}
    steps = Step.objects.filter(**here).order_by().values_list("trajectory").annotate(Count("pk"))
    return {pk: Process(count, tuple(said[pk]), adjudicated.get(pk)) for pk, count in steps}


def _load_opinions(submissions: list[Submission]) -> dict[int, InformedOpinion]:
    """Return the informed opinions by the label's primary key. A label cannot be revised after judgments were shown."""
    rows = InformedRevision.objects.filter(label__assignment__trajectory__submission__in=submissions)
    return {
        label: InformedOpinion(
            # An audited bundle can have any value here.
            tuple(Verdict(said) for each in judgments if (said := each.get("verdict")) in list(Verdict)),
            None if verdict is None else _VERDICTS[verdict],
            reason,
        )
        for label, judgments, verdict, reason in rows.values_list("label", "judgments", "verdict", "reason")
    }


def _decisions(adjudications: QuerySet[Adjudication]) -> dict[int, list[Any]]:
    rows = adjudications.filter(decided_at__isnull=False).order_by("trajectory_id", "revision")
    columns = ("trajectory", "revision", "verdict", "failure_type", "blind")
    found: dict[int, list[Any]] = defaultdict(list)
    for row in rows.values_list(*columns, named=True).iterator(chunk_size=AT_ONCE):
        found[row.trajectory].append(row)
    return found


def _failure_type(final: Verdict | None, labels: tuple[BlindLabel, ...]) -> str:
    """Return the main type in most labels of a final failure; if several are equally frequent, the first by name."""
    if final is not Verdict.FAILURE:
        return ""
    named = [label.failure_types[0] for label in labels if label.failure_types]
    return min(set(named), key=lambda code: (-named.count(code), code), default="")


# --- imported labels -------------------------------------------------------------------------------------------------


def _imported(benchmark: Benchmark, covered: set[tuple[str, str]], rules: Rules) -> list[Case]:
    rows = ImportedLabel.objects.filter(benchmark=benchmark).order_by("position")
    by_case: dict[tuple[str, str], list[Any]] = defaultdict(list)
    of_task = ("task__external_id", "agent__name", "task__level", "task__website")
    for row in rows.values_list(*of_task, "annotator", "verdict", "failure_type", named=True):
        by_case[row.task__external_id, row.agent__name].append(row)
    return [_imported_case(rows, rules) for key, rows in by_case.items() if key not in covered]


def _imported_case(rows: list[Any], rules: Rules) -> Case:
    labels = tuple(
        BlindLabel(row.annotator, Verdict(row.verdict), (row.failure_type,) if row.failure_type else ()) for row in rows
    )
    agreed = len({label.verdict for label in labels}) == 1
    final = labels[0].verdict if agreed or rules is Rules.PUBLISHED else None
    return Case(
        agent=rows[0].agent__name,
        task_id=rows[0].task__external_id,
        level=rows[0].task__level,
        website=rows[0].task__website,
        labels=labels,
        final=final,
        expected=ELSEWHERE,
        failure_type=_failure_type(final, labels),
    )
