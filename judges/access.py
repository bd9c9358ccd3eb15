"""Permission-checked lookups of judgments. The rule of independence holds here as in `annotation.access`.

No annotator sees a judgment before their own label is locked, and then only the ones that the second stage shows them
(`find_second_stage_judgments`); an adjudicator sees those of a trajectory that they have decided; a maintainer sees
all.
"""

from __future__ import annotations

from typing import Any

from django.core.exceptions import PermissionDenied
from django.db.models import Max, Q, QuerySet
from django.http import Http404

from annotation import access
from annotation.access import Role
from annotation.models import Benchmark, InformedRevision, Membership, Submission, Task, Trajectory
from judges import scorers  # noqa: F401 - fills the registry
from judges.models import Judge, JudgeRun, Judgment
from judges.scorer import IMPORTED, REGISTRY


def _harmless_scorers() -> set[str]:
    return {IMPORTED, *(kind.name for kind in REGISTRY.values() if not kind.discloses_expectations)}


def match_disclosing() -> Q:
    """Match judgments that may quote what is expected of a task: those of every scorer not stated to be harmless."""
    return ~Q(judge__scorer__in=_harmless_scorers())


def find_judges(person: Any) -> QuerySet[Judge]:
    """Every judge of this instance, for those who maintain something; PermissionDenied for everybody else."""
    access.require_maintainer(person)
    return Judge.own.all()


def find_judge(person: Any, pk: int) -> Judge:
    found = find_judges(person).filter(pk=pk).first()
    if found is None:
        raise Http404("No such judge.")
    return found


def may_define_judges(person: Any) -> bool:
    """Maintainers of the instance define judges, load prompts and edit the terms of models."""
    return access.may_create_submissions(person)


def find_runs(person: Any, submission: Submission) -> QuerySet[JudgeRun]:
    """The runs over a submission, for its maintainers; nothing for anybody else."""
    if access.role_in(person, submission) is not Role.MAINTAINER:
        return JudgeRun.objects.none()
    return JudgeRun.objects.filter(submission=submission).select_related("judge")


def find_prediction_judges(person: Any, submission: Submission) -> QuerySet[Judge]:
    """The judges of actions that were run over a submission, the newest run first; for its maintainers."""
    names = [kind.name for kind in REGISTRY.values() if kind.predicts_actions]
    runs = find_runs(person, submission).filter(test=False, judge__scorer__in=names)
    return Judge.own.filter(pk__in=runs.values("judge")).annotate(last=Max("runs")).order_by("-last")


def find_run(person: Any, pk: int) -> JudgeRun:
    """Return a run; raise Http404 for others than maintainers of its submission, who may not learn that it exists."""
    found = JudgeRun.objects.select_related("judge", "submission__agent", "submission__benchmark").filter(pk=pk).first()
    if found is None or access.role_in(person, found.submission) is not Role.MAINTAINER:
        raise Http404("No such run.")
    return found


def find_trajectory_judgments(person: Any, trajectory: Trajectory) -> QuerySet[Judgment]:
    """The judgments of a trajectory that the person may see, tests left out."""
    made = Judgment.objects.filter(trajectory=trajectory).exclude(item__run__test=True).select_related("judge", "item")
    role = access.role_in(person, trajectory.submission)
    if role is Role.MAINTAINER:
        return _hide_disclosing(person, trajectory.submission.benchmark, made)
    decided = trajectory.adjudications.filter(adjudicator=person, decided_at__isnull=False)
    if role is Role.ADJUDICATOR and decided.exists() and not _is_reopened(trajectory):
        return made.exclude(match_disclosing()) if is_blind_elsewhere(person, trajectory, Role.ANNOTATOR) else made
    return made.none()


def is_blind_elsewhere(person: Any, trajectory: Trajectory, *roles: Role) -> bool:
    """Return True if the person has, or had, one of ``roles`` in another open submission with the same task.

    The person may then not know its checks or its rubric yet, even after a decision here.
    """
    same = {"submission__benchmark": trajectory.submission.benchmark_id, "submission__frozen_at": None}
    beside = Membership.objects.filter(person=person, role__in=roles, **same).exclude(
        submission=trajectory.submission_id
    )
    tasks = Trajectory.objects.filter(submission__in=beside.values("submission"))
    return tasks.filter(task__external_id=trajectory.task.external_id).exists()


def _hide_disclosing(person: Any, benchmark: Benchmark, made: QuerySet[Judgment]) -> QuerySet[Judgment]:
    """Leave out what tells checks or rubrics to a person who decides blind in the same benchmark."""
    return made.exclude(match_disclosing()) if _is_deciding_in(person, benchmark) else made


def _is_deciding_in(person: Any, benchmark: Benchmark) -> bool:
    return access.annotates(person, benchmark) or access.reviews(person, benchmark, Role.ADJUDICATOR)


def _is_reopened(trajectory: Trajectory) -> bool:
    decided = trajectory.adjudications.filter(decided_at__isnull=False).count()
    return trajectory.reopenings.filter(revision__gt=decided).exists()


def find_run_judgments(person: Any, run: JudgeRun) -> QuerySet[Judgment]:
    return _hide_disclosing(person, run.submission.benchmark, Judgment.objects.filter(item__run=run))


def must_hide(person: Any, judge: Judge, submission: Submission) -> bool:
    """Return True if the judge's judgments of the submission must be hidden from the person."""
    return judge.scorer not in _harmless_scorers() and _is_deciding_in(person, submission.benchmark)


def find_judgment(person: Any, pk: int) -> Judgment:
    """Return a judgment with its trajectory; raise Http404 if the person may not see it."""
    found = (
        Judgment.objects.select_related(
            "judge",
            "item__run",
            "trajectory__submission__agent",
            "trajectory__submission__benchmark",
            "trajectory__task",
        )
        .filter(pk=pk, trajectory__isnull=False)
        .first()
    )
    if found is None or found.trajectory is None:
        raise Http404("No such judgment.")
    seen = find_trajectory_judgments(person, found.trajectory).filter(pk=pk).exists()
    test = found.item is not None and found.item.run.test
    own = access.role_in(person, found.trajectory.submission) is Role.MAINTAINER
    if not seen and not (test and own and not must_hide(person, found.judge, found.trajectory.submission)):
        raise Http404("No such judgment.")
    return found


def find_second_stage_judgments(person: Any, trajectory: Trajectory) -> QuerySet[Judgment]:
    """The judgments that an annotator was shown after their own label; nothing before they have looked."""
    if access.role_in(person, trajectory.submission) is not Role.ANNOTATOR:
        return Judgment.objects.none()
    looked = InformedRevision.objects.filter(
        label__assignment__trajectory=trajectory, label__assignment__annotator=person
    ).first()
    shown = [one["judgment"] for one in looked.judgments] if looked is not None else []
    return Judgment.objects.filter(pk__in=shown, trajectory=trajectory).select_related("judge", "item__run")


def find_benchmark(person: Any, slug: str) -> Benchmark:
    """Return a benchmark whose imported judgments the person may see and add to: they maintain its catalogue.

    Raise PermissionDenied while they review a submission of it: the problems of a file disclose judgments.
    """
    found = access.benchmark_for(person, slug)
    if access.annotates(person, found):
        raise PermissionDenied("You annotate a submission of this benchmark: its judgments are not yours to see yet.")
    if access.reviews(person, found, Role.ADJUDICATOR):
        raise PermissionDenied("You decide in a submission of this benchmark: its judgments are not yours to see yet.")
    return found


def find_task(person: Any, pk: int) -> Task:
    """A task whose checks and rubric the person may see and write; see `find_benchmark`."""
    found = access.task_for(person, pk)
    find_benchmark(person, found.benchmark.slug)
    return found


def find_task_trajectories(person: Any, task: Task) -> QuerySet[Trajectory]:
    """The trajectories of a task, of any version of it, that the person maintains, to test checks on."""
    own = access.submissions_maintained_by(person).filter(benchmark=task.benchmark)
    found = Trajectory.objects.filter(submission__in=own.values("pk"), task__external_id=task.external_id)
    return found.select_related("submission__agent", "submission__benchmark", "task").order_by(
        "submission__practice", "-submission_id"
    )


def find_evidence_trajectory(person: Any, pk: int) -> Trajectory:
    """A trajectory whose network evidence the person may look at: an adjudicator who no longer judges it blind.

    That is when they may see its labels: a dispute once they have opened it, anything else once it was decided. Not
    while they label the same task in another submission.
    """
    found = access.trajectory_for(person, pk, Role.ADJUDICATOR)
    if not access.may_see_labels(person, found) or is_blind_elsewhere(person, found, Role.ANNOTATOR):
        raise Http404("There is no network evidence of this trajectory for you yet.")
    return found
