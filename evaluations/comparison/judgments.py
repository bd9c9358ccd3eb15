"""Load the judgments of each case.

The newest run with a judgment for a trajectory counts for the judge, with its lowest finished repetition; the other
repetitions only show its consistency. Test runs never count. Every query here loads flat rows, and the number of
queries does not depend on the number of cases.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection, Iterable
from dataclasses import dataclass, field, replace
from typing import Any

from django.db.models import Exists, OuterRef, Q, QuerySet

from annotation.models import Submission, Trajectory
from annotation.records import Verdict
from evaluations.cases import Case
from evaluations.comparison.results import Judged, Key
from evaluations.naming import natural
from judges.models import Judge, JudgeRun, Judgment, RunItem

ERROR = Judged(None, None, error=True)


def find_judgments(judge: Judge, cases: Iterable[Case], *, benchmark: str = "") -> dict[Key, Judged]:
    """Return the judgments of these cases by `Case.key`; cases that the judge was never asked about are missing.

    ``step`` is left out: see `evidence.cited_steps`. An imported judgment counts for the trajectory that it is linked
    to, and for imported labels of the same task and agent. One without a link also counts for the trajectory of that
    task and agent, if there is only one. ``benchmark`` (a slug) separates benchmarks that share task ids; trajectories
    in ``cases`` have a benchmark already.
    """
    asked = _Asked.of(cases, benchmark)
    if not asked.cases:
        return {}
    here = _load_judgments_of_runs(judge, asked.submissions)
    linked, named = _load_imported(judge, asked)
    failed = _find_failed(judge, asked.submissions)
    alone = asked.alone() if named and asked.submissions else frozenset()
    found: dict[Key, Judged] = {}
    for case in asked.cases:
        name = (case.task_id, case.agent)
        told = here.get(case.trajectory) or linked.get(case.trajectory)
        elsewhere = case.trajectory is None or (case.state is None and case.labels)
        if told is None and (elsewhere or name in alone):
            told = named.get(name)
        if told is not None:
            found[case.key] = told.judged()
        elif case.trajectory in failed:
            found[case.key] = ERROR
    return found


def list_judges(cases: Iterable[Case], *, benchmark: str = "") -> list[Judge]:
    """Return the judges that ran on the submissions of these cases, or have imported judgments of their agents; by name
    and newest version first. Judges from an evidence bundle are returned only for the submission that came in it."""
    asked = _Asked.of(cases, benchmark)
    agents = {case.agent for case in asked.cases}
    own = Q(came_with__isnull=True) | Q(came_with__in=asked.submissions)
    runs = JudgeRun.objects.filter(judge=OuterRef("pk"), test=False, submission__in=asked.submissions)
    imported = _find_imported(asked).filter(judge=OuterRef("pk"), agent__name__in=agents)
    found = Judge.objects.filter(own, Exists(runs) | Exists(imported)).order_by()
    return sorted(found, key=lambda judge: (natural(judge.name), -judge.version))  # databases sort differently


def link_trajectories(cases: Iterable[Case], submissions: Iterable[Submission]) -> list[Case]:
    """Return the cases; imported labels get the trajectory that they are about, if these submissions have it.

    That is the trajectory of the task in the agent's newest attempt, as for imported judgments. So judges that ran here
    can be compared with imported labels, without any review. ``state`` stays None.
    """
    found = list(cases)
    if all(case.trajectory is not None for case in found):
        return found
    rows = Trajectory.objects.filter(submission__in=[each.pk for each in submissions], submission__practice=False)
    columns = ("task__external_id", "submission__agent__name", "pk", "submission")
    places: dict[tuple[str, str], list[tuple[int, int]]] = defaultdict(list)
    for task, agent, pk, submission in rows.order_by("submission__attempt").values_list(*columns):
        places[task, agent].append((pk, submission))
    return [_place_case(case, places.get((case.task_id, case.agent), [])) for case in found]


def _place_case(case: Case, places: list[tuple[int, int]]) -> Case:
    if case.trajectory is not None or not places:
        return case
    trajectory, submission = places[-1]
    if sum(other == submission for _, other in places) > 1:  # two task versions: unclear which one
        return case
    return replace(case, trajectory=trajectory, submission=submission)


# --- rows ------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Asked:
    """The cases, with the primary keys of their submissions, and the slug of their benchmark if known."""

    cases: list[Case]
    submissions: set[int]
    benchmark: str

    @classmethod
    def of(cls, cases: Iterable[Case], benchmark: str) -> _Asked:
        found = list(cases)
        return cls(found, {case.submission for case in found if case.submission is not None}, benchmark)

    def where(self, prefix: str) -> Q:
        """Return a filter for rows of the benchmark of these cases; any benchmark if it is unknown."""
        if self.benchmark:
            return Q(**{f"{prefix}__slug": self.benchmark})
        if self.submissions:
            own = Submission.objects.filter(pk__in=self.submissions).order_by()
            return Q(**{f"{prefix}__in": own.values("benchmark")})
        return Q()

    def alone(self) -> frozenset[tuple[str, str]]:
        """Return tasks and agents with a single trajectory in the benchmark, without practice."""
        rows = Trajectory.objects.filter(self.where("submission__benchmark"), submission__practice=False).order_by()
        names = Counter(rows.values_list("task__external_id", "submission__agent__name"))
        return frozenset(name for name, number in names.items() if number == 1)


@dataclass(slots=True)
class _Told:
    run: int | None = None
    rows: list[tuple[Any, ...]] = field(default_factory=list)

    def judged(self) -> Judged:
        *_, not_stated, pk, verdict, score, _, _ = self.rows[0]
        return Judged(
            judgment=pk,
            verdict=_verdict(verdict),
            score=score,
            repeated=tuple([_verdict(row[VERDICT]) for row in self.rows]),
            spent=tuple([(row[-2], None if row[-1] is None else float(row[-1])) for row in self.rows]),
            status_not_stated=not_stated,
        )


_VERDICTS = {int(verdict): verdict for verdict in Verdict}


def _verdict(number: int | None) -> Verdict | None:
    return None if number is None else _VERDICTS[number]


_SAID = ("status_not_stated", "pk", "verdict", "score", "tokens", "cost")  # the last columns of every row
VERDICT = _SAID.index("verdict") - len(_SAID)


def _load_judgments_of_runs(judge: Judge, submissions: Collection[int]) -> dict[int | None, _Told]:
    """Return, by trajectory, the judgments of the newest run that has one for it."""
    rows = Judgment.objects.filter(judge=judge, item__run__submission__in=submissions, item__run__test=False)
    told: dict[int | None, _Told] = {}
    for row in rows.order_by("-item__run_id", "repetition").values_list("trajectory", "item__run", *_SAID):
        newest = told.setdefault(row[0], _Told(row[1]))
        if newest.run == row[1]:
            newest.rows.append(row)
    return told


def _find_imported(asked: _Asked) -> QuerySet[Judgment]:
    return Judgment.objects.filter(asked.where("task__benchmark"), item__isnull=True)


def _load_imported(judge: Judge, asked: _Asked) -> tuple[dict[int | None, _Told], dict[tuple[str, str], _Told]]:
    """Return the linked judgments by trajectory, and all of them by task and agent."""
    linked: dict[int | None, _Told] = defaultdict(_Told)
    named: dict[tuple[str, str], _Told] = defaultdict(_Told)
    ordered = _find_imported(asked).filter(judge=judge).order_by("repetition", "-pk")
    for row in ordered.values_list("trajectory", "task__external_id", "agent__name", *_SAID):
        named[row[1], row[2]].rows.append(row)
        if row[0] is not None:
            linked[row[0]].rows.append(row)
    return linked, named


def _find_failed(judge: Judge, submissions: Collection[int]) -> set[int]:
    """Return trajectories with a failed item in any run; they count as errors if they have no judgment."""
    items = RunItem.objects.filter(
        run__judge=judge, run__test=False, run__submission__in=submissions, failed_at__isnull=False
    )
    return set(items.order_by().values_list("trajectory", flat=True))
