"""Permission-checked lookups of judgments, with the independence rules of `annotation.access`.

An annotator sees judgments only after their own label is locked, and only those that the second stage shows
(`find_second_stage_judgments`). An adjudicator sees those of a trajectory that they have decided. A maintainer sees
all judgments.
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
    """Return a filter for judgments that may quote a task's expectations: those of scorers not known as harmless."""
    found = ~Q(judge__scorer__in=_harmless_scorers())
    for kind in REGISTRY.values():
        for name, value in kind.disclosing:
            found |= Q(**{"judge__scorer": kind.name, f"judge__parameters__{name}": value})
    return found


def _discloses(judge: Judge) -> bool:
    if judge.scorer not in _harmless_scorers():
        return True
    kind = REGISTRY.get(judge.scorer)
    return kind is not None and any(judge.parameters.get(name) == value for name, value in kind.disclosing)


def find_judges(person: Any) -> QuerySet[Judge]:
    """Return every judge of this instance; raise PermissionDenied if the person maintains nothing."""
    access.require_maintainer(person)
    return Judge.own.all()


def find_judge(person: Any, pk: int) -> Judge:
    found = find_judges(person).filter(pk=pk).first()
    if found is None:
        raise Http404("No such judge.")
    return found


def may_define_judges(person: Any) -> bool:
    """Return True for maintainers of the instance: they define judges, load prompts and edit model terms."""
    return access.may_create_submissions(person)


def find_runs(person: Any, submission: Submission) -> QuerySet[JudgeRun]:
    """Return the runs over a submission to its maintainers; return none to other people."""
    if access.role_in(person, submission) is not Role.MAINTAINER:
        return JudgeRun.objects.none()
    return JudgeRun.objects.filter(submission=submission).select_related("judge")


def find_prediction_judges(person: Any, submission: Submission) -> QuerySet[Judge]:
    """Return the judges of actions with a run over the submission, newest run first; only to its maintainers."""
    names = [kind.name for kind in REGISTRY.values() if kind.predicts_actions]
    runs = find_runs(person, submission).filter(test=False, judge__scorer__in=names)
    return Judge.own.filter(pk__in=runs.values("judge")).annotate(last=Max("runs")).order_by("-last")


def find_run(person: Any, pk: int) -> JudgeRun:
    """Return a run; raise Http404 unless the person maintains its submission: others may not learn that it exists."""
    runs = JudgeRun.objects.select_related("judge", "submission__agent", "submission__benchmark")
    found = runs.defer("submission__import_report").filter(pk=pk).first()
    if found is None or access.role_in(person, found.submission) is not Role.MAINTAINER or _shows_failures(found):
        raise Http404("No such run.")
    return found


def _shows_failures(run: JudgeRun) -> bool:
    """Return whether the run shows which trajectories are failures while the submission is open again."""
    return run.robustness is not None and run.submission.frozen_at is None


def find_trajectory_judgments(person: Any, trajectory: Trajectory) -> QuerySet[Judgment]:
    """Return the judgments of a trajectory that the person may see, without those of test runs."""
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

    Then the person must not see the checks or the rubric of the task yet, even after a decision here.
    """
    same = {"submission__benchmark": trajectory.submission.benchmark_id, "submission__frozen_at": None}
    beside = Membership.objects.filter(person=person, role__in=roles, **same).exclude(
        submission=trajectory.submission_id
    )
    tasks = Trajectory.objects.filter(submission__in=beside.values("submission"))
    return tasks.filter(task__external_id=trajectory.task.external_id).exists()


def _hide_disclosing(person: Any, benchmark: Benchmark, made: QuerySet[Judgment]) -> QuerySet[Judgment]:
    """Exclude judgments that disclose checks or rubrics if the person decides blind in the same benchmark."""
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
    return _discloses(judge) and _is_deciding_in(person, submission.benchmark)


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
        .defer("trajectory__submission__import_report")
        .filter(pk=pk, trajectory__isnull=False)
        .first()
    )
    if found is None or found.trajectory is None:
        raise Http404("No such judgment.")
    seen = find_trajectory_judgments(person, found.trajectory).filter(pk=pk).exists()
    test = found.item is not None and found.item.run.test and not _shows_failures(found.item.run)
    own = access.role_in(person, found.trajectory.submission) is Role.MAINTAINER
    if not seen and not (test and own and not must_hide(person, found.judge, found.trajectory.submission)):
        raise Http404("No such judgment.")
    return found


def find_second_stage_judgments(person: Any, trajectory: Trajectory) -> QuerySet[Judgment]:
    """Return the judgments that an annotator was shown after their own label; none before they opened them."""
    if access.role_in(person, trajectory.submission) is not Role.ANNOTATOR:
        return Judgment.objects.none()
    looked = InformedRevision.objects.filter(
        label__assignment__trajectory=trajectory, label__assignment__annotator=person
    ).first()
    shown = [one["judgment"] for one in looked.judgments] if looked is not None else []
    return Judgment.objects.filter(pk__in=shown, trajectory=trajectory).select_related("judge", "item__run")


def find_benchmark(person: Any, slug: str) -> Benchmark:
    """Return a benchmark if the person maintains its catalogue and so may see and add imported judgments.

    Raise PermissionDenied while they review a submission of it: the problems of a file disclose judgments.
    """
    found = access.benchmark_for(person, slug)
    if access.annotates(person, found):
        raise PermissionDenied("You annotate a submission of this benchmark, so you cannot see its judgments yet.")
    if access.reviews(person, found, Role.ADJUDICATOR):
        raise PermissionDenied("You adjudicate a submission of this benchmark, so you cannot see its judgments yet.")
    return found


def find_task(person: Any, pk: int) -> Task:
    """Return a task if the person may see and write its checks and rubric; see `find_benchmark`."""
    found = access.task_for(person, pk)
    find_benchmark(person, found.benchmark.slug)
    return found


def find_task_trajectories(person: Any, task: Task) -> QuerySet[Trajectory]:
    """Return the trajectories of any version of a task that the person maintains, to test checks on them."""
    own = access.submissions_maintained_by(person).filter(benchmark=task.benchmark)
    found = Trajectory.objects.filter(submission__in=own.values("pk"), task__external_id=task.external_id)
    found = found.select_related("submission__agent", "submission__benchmark", "task")
    return found.defer("submission__import_report").order_by("submission__practice", "-submission_id")


def find_evidence_trajectory(person: Any, pk: int) -> Trajectory:
    """Return a trajectory to an adjudicator who may view its network evidence; raise Http404 if they may not.

    They may when they may see its labels: for a dispute after they opened it, otherwise after the decision. They may
    not while they label the same task in another submission.
    """
    found = access.trajectory_for(person, pk, Role.ADJUDICATOR)
    if not access.may_see_labels(person, found) or is_blind_elsewhere(person, found, Role.ANNOTATOR):
        raise Http404("You cannot see the network evidence of this trajectory yet.")
    return found
