"""Take the steps of an alignment one by one; the rows say which one is next, so that any worker can go on.

One round: the newest version judges development. If it wins, it judges the training tasks, otherwise the best one so
far has. The optimiser gets disagreements of the best version on training tasks, and its text is the next version.

Judging is the work of runs, and the optimiser's calls are recorded with an item of the training run: nothing that was
paid for is asked again after a crash.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from decimal import Decimal
from enum import Enum
from functools import partial
from typing import Any

from django.conf import settings
from django.core.exceptions import PermissionDenied
from django.db import IntegrityError, transaction
from django.db.models import Q, QuerySet, Sum

from annotation import clock
from annotation.workflow import Conflict, Incomplete
from evaluations.judge_alignment import figures, material
from evaluations.judge_alignment.optimisers import OPTIMISERS, Material, NoText
from judges import defining, planning, runs
from judges.llm import Asker, BudgetSpent, CallFailed, Prompt, Reply
from judges.models import Alignment, AlignmentRun, AlignmentVersion, Judge, JudgeRun, ModelCall, Part, RunItem
from judges.working import call_log
from judges.working.asking import ask

OPEN = Q(finished_at__isnull=True, cancelled_at__isnull=True, stopped="")
STAGE = "rewrite"
LONGEST_REASON = 500  # characters, as in the columns
LONGEST_NAME = 64


class Step(Enum):
    MORE = "more"
    WAITING = "waiting"  # for runs, or for another worker
    ENDED = "ended"


class Stopped(Exception):
    """The alignment cannot go on; the message says why and what to do."""


# --- one worker at a time --------------------------------------------------------------------------------------------


def take_step(pk: int, worker: str) -> Step:
    """Take the next step of an alignment, unless another worker has it."""
    if not _match_free().filter(pk=pk).update(worker=worker, heartbeat_at=clock.now()):
        return Step.WAITING if Alignment.objects.filter(OPEN, pk=pk).exists() else Step.ENDED
    alignment = Alignment.objects.select_related("split__benchmark", "judge", "created_by").get(pk=pk)
    try:
        return _take_step(alignment, worker)
    except (Stopped, Conflict, Incomplete, PermissionDenied, BudgetSpent, CallFailed) as error:
        _select_own(pk, worker).update(stopped=str(error)[:LONGEST_REASON] or type(error).__name__)
        return Step.ENDED
    finally:
        Alignment.objects.filter(pk=pk, worker=worker).update(worker="", heartbeat_at=None)


def _match_free() -> QuerySet[Alignment]:
    silent = clock.now() - timedelta(seconds=settings.JUDGE_SILENCE_SECONDS)
    return Alignment.objects.filter(OPEN).filter(Q(heartbeat_at=None) | Q(heartbeat_at__lt=silent))


def _select_own(pk: int, worker: str) -> QuerySet[Alignment]:
    return Alignment.objects.filter(OPEN, pk=pk, worker=worker)


def find_idle() -> list[int]:
    """Return the alignments that no worker has, and that do not wait for a run: their message may be lost."""
    busy = Q(finished_at=None, cancelled_at=None, stopped="")
    waiting = JudgeRun.objects.filter(busy, alignment_run__isnull=False).exclude(alignment_run__part=Part.TEST)
    free = _match_free().exclude(versions__runs__run__in=waiting)
    return list(free.order_by("pk").values_list("pk", flat=True))


def find_alignment(run: JudgeRun) -> int | None:
    """Return the alignment that a run belongs to, if it is not one over the test split."""
    found = AlignmentRun.objects.filter(run=run).exclude(part=Part.TEST)
    return found.values_list("version__alignment", flat=True).first()


# --- the steps -------------------------------------------------------------------------------------------------------


def _take_step(alignment: Alignment, worker: str) -> Step:
    versions = list(alignment.versions.select_related("judge", "parent").order_by("number"))
    newest = versions[-1]
    if newest.accepted is None:
        if not judge_part(newest, Part.DEVELOPMENT):
            return Step.WAITING
        _decide(newest)
        return Step.MORE
    if len(versions) > alignment.rounds:
        return _finish(alignment, worker, f"All {alignment.rounds} rounds are done.")
    best = [version for version in versions if version.accepted][-1]
    if not judge_part(best, Part.TRAIN):
        return Step.WAITING
    given = material.build_material(best)
    if not given.disagreements:
        return _finish(alignment, worker, "The best version has no disagreement on training tasks.")
    _propose(alignment, best, given, len(versions), worker)
    return Step.MORE


def find_best(alignment: Alignment) -> AlignmentVersion | None:
    return alignment.versions.filter(accepted=True).select_related("judge").order_by("number").last()


def _finish(alignment: Alignment, worker: str, why: str) -> Step:
    _select_own(alignment.pk, worker).update(finished_at=clock.now(), finished=why)
    return Step.ENDED


def _decide(version: AlignmentVersion) -> None:
    """Store the figures on the development split, and whether the version replaces its parent."""
    cases = material.load_cases(version.alignment, Part.DEVELOPMENT)
    own = figures.load_verdicts(version, Part.DEVELOPMENT)
    before = own if version.parent is None else figures.load_verdicts(version.parent, Part.DEVELOPMENT)
    change = figures.compare(cases, before, own)
    level = figures.compute_level(version.alignment.rounds)
    won, why = (True, "The base.") if version.parent is None else figures.decide(change, level)
    AlignmentVersion.objects.filter(pk=version.pk, accepted=None).update(
        accepted=won, reason=why[:LONGEST_REASON], figures=change.as_json()
    )


def judge_part(version: AlignmentVersion, part: Part, person: Any = None) -> bool:
    """Start the runs of a version over a part, one after another; return True when all of them are finished.

    ``person`` starts them, by default whoever started the alignment. Raises Stopped if a run cannot finish.
    """
    alignment = version.alignment
    tasks: dict[int, list[str]] = {}
    for case in material.load_cases(alignment, part):
        tasks.setdefault(case.submission or 0, []).append(case.task_id)
    started = {
        row.submission_id: row.run for row in version.runs.filter(part=part, replaced=False).select_related("run")
    }
    for submission in alignment.submissions.defer("import_report").order_by("pk"):
        if submission.pk not in tasks:
            continue
        if (run := started.get(submission.pk)) is None:
            _start_run(version, part, submission, tasks[submission.pk], person or alignment.created_by)
            return False
        if run.state in ("stopped", "cancelled"):
            raise Stopped(f"Run {run.pk} is {run.state}. {run.stopped}".strip())
        if run.state != "finished":
            return False
    return True


def _start_run(version: AlignmentVersion, part: Part, submission: Any, tasks: list[str], person: Any) -> None:
    alignment, judge, selection = version.alignment, version.judge, {"task_ids": sorted(set(tasks))}
    if judge is None:
        raise Stopped("This version has no text.")
    if part is not Part.TEST:  # the calls of a look are not those of the optimisation
        _require_calls(alignment, planning.plan(judge, submission, selection).calls)
    budget = compute_rest(alignment)
    try:
        with transaction.atomic():
            row = Alignment.objects.select_for_update().get(pk=alignment.pk)
            if part is not Part.TEST and row.state != "running":
                raise Stopped(f"The alignment is {row.state}.")
            run = runs.start(person, judge, submission, selection, max_cost=budget, test=True)
            AlignmentRun.objects.create(version=version, part=part, submission=submission, run=run)
    except IntegrityError:  # another worker has started it: its run is waited for
        if not version.runs.filter(part=part, submission=submission, replaced=False).exists():
            raise


# --- money and calls -------------------------------------------------------------------------------------------------


def _select_paid(alignment: Alignment) -> QuerySet[ModelCall]:
    """Return the paid calls of an alignment, without those of looks at the test split."""
    paid = ModelCall.objects.filter(item__run__alignment_run__version__alignment=alignment, hit=False)
    return paid.exclude(item__run__alignment_run__part=Part.TEST)


def sum_cost(alignment: Alignment) -> Decimal:
    """Return the cost of all calls of an alignment in US dollars; calls without a price count 0."""
    return Decimal(_select_paid(alignment).aggregate(cost=Sum("cost"))["cost"] or 0)


def find_cost(alignment: Alignment) -> Decimal | None:
    """Return the cost of all calls in US dollars, None if the price of one is unknown."""
    return None if _select_paid(alignment).filter(cost=None, error="").exists() else sum_cost(alignment)


def sum_run_cost(run: JudgeRun) -> Decimal:
    return call_log.sum_cost(run.pk)


def count_calls(alignment: Alignment) -> int:
    return _select_paid(alignment).filter(error="").count()


def compute_rest(alignment: Alignment) -> Decimal | None:
    """Return what is left of the budget, also after looks, None without one; raise Stopped if nothing is."""
    if alignment.max_cost is None:
        return None
    paid = ModelCall.objects.filter(item__run__alignment_run__version__alignment=alignment, hit=False)
    spent = Decimal(paid.aggregate(cost=Sum("cost"))["cost"] or 0)
    if (rest := alignment.max_cost - spent) < runs.A_CENT_OF_A_CENT:
        raise Stopped(
            f"The budget of {alignment.max_cost.normalize():f} US dollars is spent. Resume with a higher one."
        )
    return rest


def _require_calls(alignment: Alignment, planned: int) -> None:
    if alignment.max_calls is not None and (used := count_calls(alignment)) + planned > alignment.max_calls:
        raise Stopped(
            f"{used} of {alignment.max_calls} calls are used, and the next step needs {planned}. "
            "Resume with a higher limit."
        )


# --- the next version ------------------------------------------------------------------------------------------------


def _propose(alignment: Alignment, best: AlignmentVersion, given: Material, number: int, worker: str) -> None:
    """Ask the optimiser, and store its text as the next version, a judge of its own."""
    _require_calls(alignment, 1)
    compute_rest(alignment)
    optimiser = OPTIMISERS[alignment.optimiser]

    async def question(asker: Asker) -> str:
        async def say(prompt: Prompt, schema: Any) -> Reply:
            return await asker.ask(prompt, stage=STAGE, schema=schema)

        return await optimiser.propose(given, say)

    try:
        text = ask(
            _find_item(best),
            question,
            sample=f"{STAGE}/{alignment.pk}/{number}",
            limit=alignment.max_cost,
            spent=partial(sum_cost, alignment),
            beat=_build_beat(alignment, worker),
        )
        if text == given.criteria:
            raise NoText("The optimiser proposed the same text.")
        with transaction.atomic():
            judge = define_version(alignment.created_by, alignment, best, number, text)
            AlignmentVersion.objects.create(alignment=alignment, number=number, judge=judge, parent=best)
    except (NoText, Incomplete) as none:
        reason = f"No usable text: {none}"[:LONGEST_REASON]
        AlignmentVersion.objects.create(alignment=alignment, number=number, parent=best, accepted=False, reason=reason)


def _find_item(version: AlignmentVersion) -> RunItem:
    """Return the item with which the optimiser's calls are recorded: the first judged one of the training run."""
    done = RunItem.objects.filter(run__alignment_run__version=version, run__alignment_run__part=Part.TRAIN)
    found = done.filter(done_at__isnull=False).select_related("run__judge", "run__submission").order_by("pk").first()
    if found is None:
        raise Stopped("No training task was judged.")
    return found


def _build_beat(alignment: Alignment, worker: str) -> Callable[[], None]:
    def beat() -> None:
        _select_own(alignment.pk, worker).update(heartbeat_at=clock.now())

    return beat


def define_version(person: Any, alignment: Alignment, parent: AlignmentVersion, number: int, criteria: str) -> Judge:
    """Define a judge as its parent with other criteria; its description names the parent."""
    base = parent.judge or alignment.judge
    suffix = f"-aligned-{alignment.pk}"
    return defining.define(
        person,
        **defining.read_definition(base)
        | {
            "name": f"{alignment.judge.name[: LONGEST_NAME - len(suffix)]}{suffix}",
            "description": f"Version {number} of alignment {alignment.pk}, rewritten from {base.name}@{base.version}.",
            "parameters": {**base.parameters, "criteria": criteria},
        },
    )
