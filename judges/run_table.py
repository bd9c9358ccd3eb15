"""The trajectories of a run with the result of each repetition, and advice about errors."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from decimal import Decimal
from statistics import fmean
from typing import Any

from django.conf import settings
from django.db.models import Case, Count, F, Q, QuerySet, Sum, Value, When

from annotation import clock
from annotation.models import Step, Trajectory
from annotation.records import Verdict
from judges.models import JudgeRun, Judgment, ModelCall, RunItem

CLOSE = 1e-9  # tolerance of a perfect score: a sum of tenths is rarely exact
GRACE = timedelta(seconds=15)  # time that a worker may need to start after it was called

WAITING = Q(done_at__isnull=True, failed_at__isnull=True)
SHOWN = {
    "success": Q(judgment__verdict=Verdict.SUCCESS),
    "failure": Q(judgment__verdict=Verdict.FAILURE),
    "not executable": Q(judgment__verdict=Verdict.NOT_EXECUTABLE),
    "unscored": Q(judgment__isnull=False, judgment__verdict__isnull=True),
    "status not stated": Q(judgment__status_not_stated=True),
    "failed": Q(failed_at__isnull=False),
    "waiting": WAITING & Q(run__cancelled_at=None),
    "not judged": WAITING & Q(run__cancelled_at__isnull=False),
}


@dataclass(frozen=True, slots=True)
class RunCell:
    """The result of one repetition: ``judgment``, or ``state`` (waiting, at work, failed) with its ``error``.

    Open items of a cancelled run are "not judged".
    """

    state: str
    judgment: Judgment | None = None
    error: str = ""


@dataclass(frozen=True, slots=True)
class RunRow:
    """A trajectory with a cell for every repetition; ``flips`` is True if two of them have different verdicts."""

    trajectory: Trajectory
    cells: list[RunCell]
    flips: bool

    @property
    def first(self) -> RunCell:
        return self.cells[0]


@dataclass(frozen=True, slots=True)
class RunSums:
    """Progress of a run in a list; ``cost`` in US dollars, None if no price is known."""

    total: int
    done: int
    unscored: int
    failed: int
    cost: Decimal | None


@dataclass(frozen=True, slots=True)
class RunScores:
    """The scores of a run, as Odysseys reports them, over the ``judgments`` with a score of 0 to 1.

    Unscored judgments do not count.

    ``average`` is the mean score and ``perfect`` the share of judgments with the score 1, both 0 to 100. ``efficiency``
    is the mean of score (0 to 100) divided by steps, over judgments of trajectories with steps; None without any.
    """

    judgments: int
    average: float
    perfect: float
    efficiency: float | None


def load_scores(run: JudgeRun) -> RunScores | None:
    """Return the figures; None without a score, for scores outside 0 to 1, and for copies that attack a judge."""
    if run.robustness is not None:
        return None
    judged = Judgment.objects.filter(item__run=run, verdict__isnull=False).values_list("trajectory", "score")
    scored = [(trajectory, score) for trajectory, score in judged if score is not None]
    scores = [score for _, score in scored]
    if not scores or not all(0 <= score <= 1 for score in scores):
        return None
    of_run = Step.objects.filter(trajectory__in=RunItem.objects.filter(run=run).values("trajectory"))
    steps = dict(of_run.order_by().values_list("trajectory").annotate(Count("pk")))
    ratios = [100 * score / steps[trajectory] for trajectory, score in scored if steps.get(trajectory)]
    perfect = sum(score >= 1 - CLOSE for score in scores)
    return RunScores(
        judgments=len(scores),
        average=100 * fmean(scores),
        perfect=100 * perfect / len(scores),
        efficiency=fmean(ratios) if ratios else None,
    )


def filter_trajectories(run: JudgeRun, q: str = "", show: str = "") -> QuerySet[Any, Any]:
    """Return the trajectories of a run as ``{"trajectory": pk, ...}``, those with differing verdicts first."""
    items = RunItem.objects.filter(run=run)
    if q:
        items = items.filter(trajectory__task__external_id__icontains=q)
    if show in SHOWN:
        items = items.filter(trajectory__in=RunItem.objects.filter(SHOWN[show], run=run).values("trajectory"))
    groups = items.order_by().values("trajectory").annotate(verdicts=Count("judgment__verdict", distinct=True))
    if show == "flips":
        groups = groups.filter(verdicts__gt=1)
    last = Case(When(verdicts__gt=1, then=Value(0)), default=Value(1))
    return groups.order_by(last, F("trajectory__position"), "trajectory")


def count_flips(run: JudgeRun) -> int:
    return filter_trajectories(run, show="flips").count()


def build_rows(run: JudgeRun, trajectory_pks: Sequence[int]) -> list[RunRow]:
    trajectories = Trajectory.objects.select_related("task").in_bulk(trajectory_pks)
    cells: dict[int, dict[int, RunCell]] = {}
    items = RunItem.objects.filter(run=run, trajectory__in=trajectory_pks).select_related("judgment")
    for item in items:
        cells.setdefault(item.trajectory_id, {})[item.repetition] = _build_cell(run, item)
    return [_build_row(run, trajectories[pk], cells.get(pk, {})) for pk in trajectory_pks if pk in trajectories]


def _build_row(run: JudgeRun, trajectory: Trajectory, cells: dict[int, RunCell]) -> RunRow:
    listed = [cells.get(number, RunCell("none")) for number in range(1, run.repetitions + 1)]
    verdicts = {cell.judgment.verdict for cell in listed if cell.judgment and cell.judgment.verdict is not None}
    return RunRow(trajectory, listed, len(verdicts) > 1)


def _build_cell(run: JudgeRun, item: RunItem) -> RunCell:
    judgment = getattr(item, "judgment", None)
    if judgment is not None:
        return RunCell("done", judgment)
    if item.failed_at is not None:
        return RunCell("failed", error=item.error)
    if run.cancelled_at is not None:
        return RunCell("not judged")
    return RunCell("at work" if _has_living_worker(item) else "waiting")


def _has_living_worker(item: RunItem) -> bool:
    seen = item.heartbeat_at or item.taken_at
    return seen is not None and seen > clock.now() - timedelta(seconds=settings.JUDGE_SILENCE_SECONDS)


def is_abandoned(run: JudgeRun) -> bool:
    """Return True if items have waited for a while and no active worker works on the run."""
    now = clock.now()
    if (run.started_at or run.created_at) > now - GRACE:
        return False
    items = RunItem.objects.filter(run=run)
    lately = now - timedelta(seconds=settings.JUDGE_SILENCE_SECONDS)
    living = Q(heartbeat_at__gt=lately) | Q(taken_at__gt=lately) | Q(done_at__gt=now - GRACE)
    return items.filter(WAITING).exists() and not items.filter(living).exists()


def summarize(runs: Iterable[JudgeRun]) -> list[tuple[JudgeRun, RunSums]]:
    """Return each run with its sums; two queries for all of them."""
    listed = list(runs)
    items = RunItem.objects.filter(run__in=listed).order_by().values("run")
    counts = items.annotate(
        total=Count("pk"),
        done=Count("pk", filter=Q(done_at__isnull=False)),
        unscored=Count("pk", filter=SHOWN["unscored"]),
        failed=Count("pk", filter=SHOWN["failed"]),
    )
    calls = ModelCall.objects.filter(item__run__in=listed, hit=False).order_by().values("item__run")
    costs = {row["item__run"]: row["paid"] for row in calls.annotate(paid=Sum("cost"))}
    known = {row["run"]: row for row in counts}
    return [(run, _build_sums(known.get(run.pk, {}), costs.get(run.pk, Decimal(0)))) for run in listed]


def _build_sums(row: Mapping[str, Any], cost: Decimal | None) -> RunSums:
    total, done, unscored, failed = (row.get(name, 0) for name in ("total", "done", "unscored", "failed"))
    return RunSums(total, done, unscored, failed, cost)


# --- errors ----------------------------------------------------------------------------------------------------------

ADVICE = (
    (r"\b(401|403)\b|api key|not configured|JUDGE_", "Check the endpoint and its key in the settings, then retry."),
    (
        r"\b404\b|model.{0,20}not (exist|found)",
        "Check the model's name. To use another name, create a new version of the judge.",
    ),
    (r"\b429\b|rate limit|quota", "Lower the judge's concurrency or set limits in the terms of the model, then retry."),
    (r"time[d -]*out", "Give the judge a longer time-out, or retry when the endpoint is less busy."),
    (r"picture|screenshot|image", "The screenshot is missing from the image store: restore it, then retry."),
    (r"\b5\d\d\b|connection|unreachable|reach", "Retry when the endpoint answers again."),
)


def find_advice(error: str) -> str:
    return next((text for words, text in ADVICE if re.search(words, error, re.I)), "Retry when the cause is fixed.")
