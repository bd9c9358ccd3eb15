"""Start, resume and cancel an alignment, and find those that a person may open."""

from __future__ import annotations

from collections.abc import Callable
from decimal import Decimal
from functools import partial
from typing import Any

from django.core.exceptions import PermissionDenied
from django.db import transaction
from django.db.models import QuerySet
from django.http import Http404

from annotation import access as people_access
from annotation import clock
from annotation.models import Benchmark, Submission
from annotation.workflow import Conflict
from evaluations.cases import reported_submissions
from evaluations.judge_alignment import splitting, steps
from evaluations.judge_alignment.optimisers import OPTIMISERS, PLAIN
from judges import access, runs
from judges.models import Alignment, AlignmentVersion, Judge, Part
from judges.planning import parse_number
from judges.ready_judges import RunRefused, find_endpoint, prepare

MOST_ROUNDS = 20
Queue = Callable[[int], Any]


def find_benchmark(person: Any, slug: str) -> Benchmark:
    """Return a benchmark if the person may align judges with its verdicts.

    Maintainers of the instance may, if they maintain a frozen submission of it and decide none of it blind.
    """
    found = access.find_benchmark(person, slug)
    if not access.may_define_judges(person):
        raise PermissionDenied("Only maintainers of the instance may align judges.")
    return found


def find_submissions(person: Any, benchmark: Benchmark) -> list[Submission]:
    """Return the frozen submissions of a benchmark that the person maintains; their verdicts are used."""
    own = list(people_access.submissions_maintained_by(person).values_list("pk", flat=True))
    found = reported_submissions(benchmark).filter(pk__in=own, archived_at=None)
    return list(found.defer("import_report").order_by("pk"))


def find_alignments(person: Any, benchmark: Benchmark) -> QuerySet[Alignment]:
    """Return the alignments of a benchmark whose submissions the person all maintains."""
    # A list: in one query, the rule about audit samples would be too deep for the parser of SQLite.
    own = list(people_access.submissions_maintained_by(person).filter(benchmark=benchmark).values_list("pk", flat=True))
    others = Submission.objects.filter(alignments__isnull=False).exclude(pk__in=own)
    found = Alignment.objects.filter(split__benchmark=benchmark).exclude(pk__in=others.values("alignments"))
    return found.select_related("judge", "split__benchmark", "created_by")


def find_alignment(person: Any, pk: int) -> Alignment:
    """Return an alignment; raise Http404 unless the person may align judges of its benchmark and maintains it all."""
    slug = Alignment.objects.filter(pk=pk).values_list("split__benchmark__slug", flat=True).first()
    if slug is None:
        raise Http404("No such alignment.")
    try:
        found = find_alignments(person, find_benchmark(person, slug)).filter(pk=pk).first()
    except PermissionDenied:
        found = None
    if found is None:
        raise Http404("No such alignment.")
    return found


def start(
    person: Any,
    judge: Judge,
    benchmark: Benchmark,
    queue: Queue,
    *,
    rounds: int = 5,
    max_cost: Decimal | None = None,
    max_calls: int | None = None,
    optimiser: str = PLAIN,
) -> Alignment:
    """Lock the split of the benchmark if it has none, and start an alignment.

    ``queue`` is called with its primary key after the commit. Raises Conflict (or RunRefused) with what to change.
    """
    submissions = find_submissions(person, benchmark)
    _check(judge, optimiser, submissions)
    parse_number({"rounds": rounds}, "rounds", most=MOST_ROUNDS)
    parse_number({"calls": max_calls}, "calls")
    budget = runs.parse_budget(judge, prepare(judge).terms, max_cost)
    split = splitting.lock(person, benchmark)
    with transaction.atomic():
        made = Alignment.objects.create(
            split=split,
            judge=judge,
            optimiser=optimiser,
            rounds=rounds,
            max_cost=budget,
            max_calls=max_calls,
            created_by=person,
        )
        made.submissions.set(submissions)
        AlignmentVersion.objects.create(alignment=made, number=0, judge=judge)
        transaction.on_commit(partial(queue, made.pk), robust=True)  # without a broker, the scheduler queues it again
    return made


def find_unfinished(person: Any, judge: Judge, benchmark: Benchmark, rounds: int, optimiser: str) -> Alignment | None:
    """Return the newest alignment with these terms that has not ended, so that a repeated command continues it."""
    same = find_alignments(person, benchmark).filter(judge=judge, rounds=rounds, optimiser=optimiser)
    return same.filter(finished_at=None, cancelled_at=None).order_by("pk").last()


def _check(judge: Judge, optimiser: str, submissions: list[Submission]) -> None:
    if not submissions:
        raise Conflict("You maintain no frozen submission of this benchmark. Freeze one first.")
    if optimiser not in OPTIMISERS:
        raise RunRefused(f"The optimiser {optimiser!r} does not exist. Known: {', '.join(OPTIMISERS)}.")
    prepare(judge)
    find_endpoint(judge)
    if not has_criteria(judge):
        raise RunRefused(
            f"{judge} has no criteria of its own. Define a judge of the scorer single-call, or write its rubrics."
        )


def find_judges() -> QuerySet[Judge]:
    """Return the judges whose criteria can be rewritten."""
    return Judge.own.filter(scorer="single-call").order_by("name", "-version")


def has_criteria(judge: Judge) -> bool:
    """Return whether the judge has a text that an optimiser can rewrite."""
    return isinstance(judge.parameters.get("criteria"), str) and judge.scorer == "single-call"


def resume(
    person: Any, alignment: Alignment, queue: Queue, max_cost: Decimal | None = None, max_calls: int | None = None
) -> None:
    """Continue a stopped alignment, with a new budget if given; runs that have stopped get what is left of it."""
    parse_number({"calls": max_calls}, "calls")
    with transaction.atomic():
        row = _lock(alignment, "stopped", because="Only a stopped alignment can be resumed")
        if max_cost is not None:
            row.max_cost = runs.parse_budget(row.judge, prepare(row.judge).terms, max_cost)
        row.max_calls = max_calls or row.max_calls
        row.stopped = ""
        row.save(update_fields=["max_cost", "max_calls", "stopped"])
        try:
            _resume_runs(person, row)
        except steps.Stopped as reason:
            raise Conflict(str(reason)) from reason
        transaction.on_commit(partial(queue, row.pk), robust=True)
    alignment.refresh_from_db()


def _resume_runs(person: Any, alignment: Alignment) -> None:
    for version in alignment.versions.all():
        for row in version.runs.exclude(part=Part.TEST).select_related("run"):
            if row.run.state == "cancelled":
                row.delete()  # the version is judged by another run; its replies are in the cache
            elif row.run.state == "stopped":
                rest = steps.compute_rest(alignment)
                own = None if rest is None else rest + steps.sum_run_cost(row.run)
                runs.resume(person, row.run, own)


def cancel(alignment: Alignment) -> None:
    """End an alignment; its versions and judgments stay, and runs in progress end by themselves."""
    with transaction.atomic():
        row = _lock(alignment, "running", "stopped", because="Only an alignment that has not ended can be cancelled")
        row.cancelled_at = clock.now()
        row.save(update_fields=["cancelled_at"])
    alignment.refresh_from_db()


def _lock(alignment: Alignment, *states: str, because: str) -> Alignment:
    row = Alignment.objects.select_for_update(of=("self",)).select_related("judge", "split").get(pk=alignment.pk)
    if row.state not in states:
        raise Conflict(f"{because}; this one is {row.state}.")
    return row
