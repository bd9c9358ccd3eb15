"""Permission-checked lookups of figures and audits. The independence rule of `annotation.access` applies here too.

Maintainers and auditors of a submission may see its figures after the freeze. Figures of a benchmark are for people who
may see its imported judgments, and count only the submissions that they maintain themselves. Auditors may see an audit
unless they label a sample of the same review again.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from django.core.exceptions import PermissionDenied
from django.db.models import Prefetch, Q, QuerySet
from django.http import Http404

from annotation import access
from annotation.models import Benchmark, Submission, Trajectory
from evaluations import cases
from evaluations.cases import Case, Rules
from evaluations.comparison import link_trajectories
from evaluations.models import Audit, AuditCheck, BundleUpload
from evaluations.naming import natural
from judges.access import find_benchmark
from judges.models import Judge, Judgment


def reported_for(person: Any, pk: int) -> Submission:
    """Return a submission for its readers, frozen or not. The page of an unfrozen submission computes no figures."""
    return access.submission_for(person, pk, *access.READERS)


def submission_cases(submission: Submission) -> list[Case]:
    """Return the cases of a submission from `reported_for`; PermissionDenied before the freeze for everybody."""
    if submission.frozen_at is None:
        raise PermissionDenied("The submission is not frozen: figures of its labels cannot be shown yet.")
    return cases.of_submission(submission)


def submission_population(submission: Submission) -> list[Case]:
    """Return `submission_cases`, and those that the sample plan did not draw."""
    if submission.frozen_at is None:
        raise PermissionDenied("The submission is not frozen: figures of its labels cannot be shown yet.")
    return cases.of_population(submission)


def benchmark_cases(person: Any, slug: str, rules: Rules = Rules.DEFAULT) -> tuple[Benchmark, list[Case]]:
    """Return a benchmark, and its cases whose figures the person may see.

    These are the frozen submissions that the person maintains, without practice, and the imported labels. Imported
    labels are linked to their trajectory if the person maintains it. Http404 for people who do not manage the
    benchmark's catalogue, PermissionDenied (403) for those who review an open submission of it.
    """
    benchmark = find_benchmark(person, slug)
    maintained = list(access.submissions_maintained_by(person).filter(benchmark=benchmark))
    reported = cases.reported_submissions(benchmark).filter(pk__in=[each.pk for each in maintained])
    found = cases.of_benchmark(benchmark, reported.order_by("pk"), rules=rules)
    return benchmark, link_trajectories(found, maintained)


PLANNED = "Labelled as a planned sample: its plain rate is biased, so only its estimate is given."


def find_left_out(person: Any, benchmark: Benchmark) -> list[Submission]:
    """Return the frozen submissions that the person maintains and `benchmark_cases` leaves out: planned samples."""
    frozen = access.submissions_maintained_by(person).filter(benchmark=benchmark, frozen_at__isnull=False)
    found = frozen.filter(practice=False, sample_plan__isnull=False).defer("import_report")
    return sorted(found, key=lambda each: natural(str(each)))


def imported_cases(person: Any, slug: str, rules: Rules = Rules.DEFAULT) -> tuple[Benchmark, list[Case]]:
    """Return only the imported labels, whatever was reviewed here, with the permissions of `benchmark_cases`."""
    benchmark = find_benchmark(person, slug)
    maintained = access.submissions_maintained_by(person).filter(benchmark=benchmark)
    return benchmark, link_trajectories(cases.of_imported(benchmark, rules), maintained)


def earlier_submissions(person: Any, submission: Submission) -> list[Submission]:
    """Return the submissions on which a planner may measure a judge: other frozen ones that the person maintains.

    None for people who review an open submission of the benchmark, as for `benchmark_cases`.
    """
    benchmark = submission.benchmark
    if access.annotates(person, benchmark) or access.reviews(person, benchmark, access.Role.ADJUDICATOR):
        return []
    maintained = access.submissions_maintained_by(person).order_by().values("pk")
    return list(cases.earlier_submissions(submission).filter(pk__in=maintained))


def ranked_cases(person: Any, slug: str, rules: Rules = Rules.DEFAULT) -> tuple[Benchmark, list[Case]]:
    """Return `benchmark_cases`, then the cases of agents that have only judgments, for the leaderboard of agents.

    These are judged trajectories of the person's own open submissions, and imported judgments without a trajectory.
    They come without labels, even if people have labelled them: a maintainer may see judgments at any time.
    """
    benchmark, found = benchmark_cases(person, slug, rules)
    maintained = access.submissions_maintained_by(person).filter(benchmark=benchmark, practice=False)
    counted = Judgment.objects.exclude(item__run__test=True).filter(task__benchmark=benchmark)
    here = Q(trajectory__submission__in=maintained.order_by().values("pk"), trajectory__submission__frozen_at=None)
    rows = counted.filter(here | Q(trajectory=None)).order_by("agent__name", "task__external_id", "trajectory_id")
    here_of = ("trajectory", "trajectory__submission", "trajectory__submission__attempt")
    columns = (*here_of, "agent__name", "task__external_id", "task__level", "task__website")
    judged = [
        Case(agent, task, level, website, (), None, 0, trajectory, submission, attempt=attempt or 1)
        for trajectory, submission, attempt, agent, task, level, website in rows.values_list(*columns).distinct()
    ]
    # A judgment without a trajectory counts for the only trajectory of its task and agent, which is already a case.
    placed = {(case.task_id, case.agent) for case in judged if case.trajectory is not None}
    names, agents = {case.agent_name for case in found}, {case.agent for case in found}
    return benchmark, found + [
        case
        for case in judged
        if (
            case.agent_name not in names
            if case.trajectory is not None
            else case.agent not in agents and (case.task_id, case.agent) not in placed
        )
    ]


def compared_submissions(person: Any, slug: str) -> tuple[Benchmark, list[Submission]]:
    """Return a benchmark, and its submissions whose agents the person may compare, in natural order.

    These are the submissions that they maintain, and those that they reviewed and whose results are open to their
    members, without planned samples (biased).
    Http404 for people who have none and do not manage the benchmark's catalogue.
    """
    found = _find_compared(person, benchmark__slug=slug)
    benchmark = found[0].benchmark if found else access.benchmark_for(person, slug)
    return benchmark, sorted(found, key=lambda each: natural(str(each)))


def _find_compared(person: Any, **which: Any) -> list[Submission]:
    # Two queries: in one, the rule about audit samples, which both contain, is too deep for the parser of SQLite.
    own = access.submissions_maintained_by(person).filter(practice=False, sample_plan=None, **which)
    opened = access.opened_memberships_of(person).filter(**{f"submission__{name}": of for name, of in which.items()})
    opened = (
        opened.filter(submission__sample_plan=None)
        .select_related("submission__agent", "submission__benchmark")
        .defer("submission__import_report")
    )
    return [*own, *(each.submission for each in opened)]


def pair_for(person: Any, first: Submission, second: Submission) -> bool:
    """Return whether the person may see the verdicts of two submissions of `compared_submissions` side by side.

    Until both are frozen, only people who maintain both may see them side by side (Http404), and nobody a verdict.
    People who review a submission of the benchmark that is not frozen see no verdict either: they may still have to
    judge the same tasks.
    """
    benchmark = first.benchmark
    if first.frozen_at is None or second.frozen_at is None:
        own = access.submissions_maintained_by(person).filter(pk__in=[first.pk, second.pk])
        if own.count() < 2:
            raise Http404("No such pair of submissions.")
        return False
    return not (access.annotates(person, benchmark) or access.reviews(person, benchmark, access.Role.ADJUDICATOR))


def trajectory_pair_for(person: Any, pk: int, other: int) -> tuple[Trajectory, Trajectory, bool]:
    """Return two trajectories of one task version in two submissions, and the answer of `pair_for`; else Http404."""
    rows = Trajectory.objects.select_related("submission__agent", "submission__benchmark", "task")
    rows = rows.defer("submission__import_report")
    # Not pk__in, because a number too large for the column must give 404 and not an error (500).
    found = {row.pk: row for row in rows.filter(Q(pk=pk) | Q(pk=other))}
    shown = {each.pk for each in _find_compared(person, pk__in=[row.submission_id for row in found.values()])}
    if len(shown) < 2 or len({row.task_id for row in found.values()}) > 1:
        raise Http404("No such pair of trajectories.")
    return found[pk], found[other], pair_for(person, found[pk].submission, found[other].submission)


def cases_of_pair(
    first: Submission, second: Submission, *, verdicts: bool, beside: Sequence[Submission] = ()
) -> tuple[list[Case], list[Case], list[Case]]:
    """Return the cases of two submissions, and all that were loaded; without ``verdicts`` only tasks, and no label.

    With verdicts, the cases of the submissions ``beside`` them are loaded too: those of `compared_submissions` that are
    frozen, for which `pair_for` has the same answer.
    """
    if verdicts:
        found = cases.of_benchmark(
            first.benchmark, {each.pk: each for each in (first, second, *beside)}.values(), imported=False
        )
    else:
        columns = ("task__external_id", "task__level", "task__website", "pk", "submission", "task__version")
        rows = Trajectory.objects.filter(submission__in=[first, second]).order_by("position").values_list(*columns)
        found = [
            Case("", task, level, website, (), None, 0, pk, submission, task_version=version)
            for task, level, website, pk, submission, version in rows
        ]
    own = [case for case in found if case.submission == first.pk]
    return own, [case for case in found if case.submission == second.pk], found


def audits_for(person: Any) -> QuerySet[Audit]:
    """Return the person's audits, newest first, with samples, decisions and checks, in three queries.

    Audits of a review are left out if the person labels a sample of it again.
    """
    read = access.submissions_audited_by(person).order_by().values("pk")
    found = Audit.objects.filter(submission__in=read).select_related(
        "submission__agent",
        "submission__benchmark",
        "submission__sample__agent",
        "submission__sample__benchmark",
    )
    found = found.defer("submission__import_report", "submission__sample__import_report")
    return found.prefetch_related("decisions", Prefetch("checks", AuditCheck.objects.defer("findings")))


def audit_for(person: Any, pk: int) -> Audit:
    """Return an audit for its auditors; Http404 for everybody else."""
    found = audits_for(person).filter(pk=pk).first()
    if found is None:
        raise Http404("No such audit.")
    return found


def bundle_uploads_for(person: Any) -> QuerySet[BundleUpload]:
    return (
        BundleUpload.objects.filter(uploaded_by=person)
        .defer("given", "audit__submission__import_report")
        .select_related("audit__submission__agent")
    )


def bundle_upload_for(person: Any, pk: Any) -> BundleUpload:
    """Return an upload for its uploader, while they may still upload; Http404 for everybody else."""
    access.require_creator(person)
    found = bundle_uploads_for(person).filter(pk=pk).first()
    if found is None:
        raise Http404("No such upload.")
    return found


def claims_may_be_shown(submission: Submission) -> bool:
    """Return whether maintainers may see the claims and findings of the bundle, which reveal labels.

    Before the freeze somebody may still label. A practice submission never takes labels.
    """
    return submission.frozen_at is not None and not submission.practice


def judge_named(text: str, allowed: Iterable[Judge]) -> Judge:
    """Return the judge with the name "name@2", or the newest version for "name", among ``allowed``; else Http404."""
    judges = list(allowed)
    named = [judge for judge in judges if text == f"{judge.name}@{judge.version}"]
    newest = sorted((judge for judge in judges if judge.name == text), key=lambda judge: -judge.version)
    for judge in named or newest:
        return judge
    raise Http404("This judge has no judgments of these cases.")


def name_of(judge: Judge) -> str:
    """Return the name with the version. Unlike ``str(judge)`` it includes the number of the first version too."""
    return f"{judge.name}@{judge.version}"
