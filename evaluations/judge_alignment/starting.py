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
from evaluations.judge_alignment import figures, looks, splitting, steps
from evaluations.judge_alignment.optimisers import OPTIMISERS, PLAIN
from judges import access, runs
from judges.models import Alignment, AlignmentSplit, AlignmentVersion, Judge, JudgeRun, Part
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
    check(judge, submissions, optimiser)
    parse_number({"rounds": rounds}, "rounds", most=MOST_ROUNDS)
    parse_number({"calls": max_calls}, "calls")
    budget = runs.parse_budget(judge, prepare(judge).terms, max_cost)
    with transaction.atomic():
        split = splitting.lock(person, benchmark)
        _check_parts(split, submissions, rounds)
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


def _check_parts(split: AlignmentSplit, submissions: list[Submission], rounds: int) -> None:
    """Raise Conflict if these submissions leave a part without both verdicts, or too few development tasks."""
    decided = splitting.load_decided(split.benchmark, submissions)
    for part in Part:
        cases = splitting.select_part(split, decided, part)
        if len({case.final for case in cases}) < len(splitting.DECIDED):
            raise Conflict(
                f"In your submissions the {part.label} tasks do not have both verdicts, success and failure. Freeze "
                "further submissions."
            )
        least, found = figures.count_least_tasks(rounds), len({case.task_id for case in cases})
        if part is Part.DEVELOPMENT and found < least:
            raise Conflict(
                f"Your submissions have {found} development tasks. With {rounds} rounds each version is tested at "
                f"the level {figures.compute_level(rounds):.2g}, and no result on fewer than {least} tasks reaches it. "
                "Choose fewer rounds, or freeze further submissions."
            )


def find_unfinished(
    person: Any, judge: Judge, benchmark: Benchmark, rounds: int, optimiser: str, *, look: bool = False
) -> Alignment | None:
    """Return the newest alignment with these terms that has not ended, so that a repeated command continues it.

    With ``look`` also the newest one if it has finished with a better version, and has an open look or none.
    """
    same = find_alignments(person, benchmark).filter(judge=judge, rounds=rounds, optimiser=optimiser)
    unfinished = same.filter(finished_at=None, cancelled_at=None).order_by("pk").last()
    newest = same.order_by("pk").last()
    if unfinished is not None or not look or newest is None or newest.state != "finished":
        return unfinished
    better = newest.versions.filter(accepted=True, number__gt=0).exists()
    waits = looks.find_open(newest) is not None or not looks.list_looks(newest).exists()
    return newest if better and waits else None


def check(judge: Judge, submissions: list[Submission], optimiser: str = PLAIN) -> None:
    """Raise Conflict (or RunRefused) if these cannot be aligned."""
    if not submissions:
        raise Conflict("You maintain no frozen submission of this benchmark. Freeze one first.")
    if optimiser not in OPTIMISERS:
        raise RunRefused(f"The optimiser {optimiser!r} does not exist. Known: {', '.join(OPTIMISERS)}.")
    prepare(judge)
    find_endpoint(judge)
    if not has_criteria(judge):
        raise RunRefused(
            f"{judge} has no criteria of its own. Define a judge of the scorer single-call that has criteria."
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
        open_look = looks.find_open(alignment)
        look = open_look is not None and bool(looks.find_reason(open_look))
        states = ("stopped", "finished", "cancelled") if look else ("stopped",)
        row = _lock(alignment, *states, because="Only a stopped alignment or look can be resumed")
        if max_cost is not None:
            row.max_cost = runs.parse_budget(row.judge, prepare(row.judge).terms, max_cost)
        row.max_calls = max_calls or row.max_calls
        row.stopped = ""
        row.save(update_fields=["max_cost", "max_calls", "stopped"])
        try:
            _resume_runs(person, row, [Part.TEST] if look else [Part.TRAIN, Part.DEVELOPMENT])
        except steps.Stopped as reason:
            raise Conflict(str(reason)) from reason
        if not look:  # the scheduler, and the end of a run, queue looks
            transaction.on_commit(partial(queue, row.pk), robust=True)
    alignment.refresh_from_db()


def raise_budget(alignment: Alignment, max_cost: Decimal) -> None:
    """Give a finished alignment another budget, which its looks use."""
    budget = runs.parse_budget(alignment.judge, prepare(alignment.judge).terms, max_cost)
    Alignment.objects.filter(pk=alignment.pk).update(max_cost=budget)


def _resume_runs(person: Any, alignment: Alignment, parts: list[Part]) -> None:
    for version in alignment.versions.all():
        for row in version.runs.filter(part__in=parts, replaced=False).select_related("run"):
            if row.run.state == "cancelled":
                row.replaced = True  # another run judges the version; its replies are in the cache
                row.save(update_fields=["replaced"])
            elif row.run.state == "stopped":
                rest = steps.compute_rest(alignment)
                own = None if rest is None else rest + steps.sum_run_cost(row.run)
                runs.resume(person, row.run, own)


def cancel(person: Any, alignment: Alignment) -> None:
    """End an alignment and its open runs; its versions and judgments stay."""
    with transaction.atomic():
        row = _lock(alignment, "running", "stopped", because="Only an alignment that has not ended can be cancelled")
        row.cancelled_at = clock.now()
        row.save(update_fields=["cancelled_at"])
        for run in JudgeRun.objects.filter(alignment_run__version__alignment=row, finished_at=None, cancelled_at=None):
            runs.cancel(person, run)
    alignment.refresh_from_db()


def _lock(alignment: Alignment, *states: str, because: str) -> Alignment:
    row = Alignment.objects.select_for_update(of=("self",)).select_related("judge", "split").get(pk=alignment.pk)
    if row.state not in states:
        raise Conflict(f"{because}; this one is {row.state}.")
    return row
