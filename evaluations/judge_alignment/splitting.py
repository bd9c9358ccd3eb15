"""Draw the split of a benchmark once, by task, and read it.

All runs of a task, by whatever agent and in whatever version, are in the same part: a judge that has learned from one
run of a task would be tested on what it knows with another. A task that was added or first decided after the draw
belongs to the training tasks, so that development and test stay what they were.
"""

from __future__ import annotations

import secrets
from collections.abc import Iterable, Mapping
from random import Random
from typing import Any

from django.db import IntegrityError, transaction

from annotation.models import Benchmark, Submission
from annotation.models.events import digest
from annotation.records import Verdict
from annotation.workflow import Conflict
from evaluations import cases
from evaluations.cases import Case
from judges.models import AlignmentSplit, AlignmentTask, Part

LEAST_TASKS = 10
SHARE = 0.3  # of the tasks in development, and in the test split
DRAWS = 200  # until every part has both verdicts
MOST_SEED = 2**32 - 1
DECIDED = (Verdict.SUCCESS, Verdict.FAILURE)


def find_split(benchmark: Benchmark) -> AlignmentSplit | None:
    return AlignmentSplit.objects.filter(benchmark=benchmark).first()


def load_decided(benchmark: Benchmark, submissions: Iterable[Submission]) -> list[Case]:
    """Return the reviewed cases with the final verdict success or failure; imported labels and label 2 do not count."""
    found = cases.of_benchmark(benchmark, submissions, imported=False)
    return [case for case in found if case.final in DECIDED]


def lock(person: Any, benchmark: Benchmark, seed: int | None = None) -> AlignmentSplit:
    """Return the split of the benchmark; draw it if there is none. It never changes.

    All frozen submissions of the benchmark count. Without ``seed`` seeds are drawn until every part has both verdicts.
    Raises Conflict if there are too few tasks, or a part lacks one of the verdicts.
    """
    if (found := find_split(benchmark)) is not None:
        return found
    decided = load_decided(benchmark, cases.reported_submissions(benchmark))
    seed, parts = _draw(decided, seed)
    try:
        with transaction.atomic():
            made = AlignmentSplit.objects.create(
                benchmark=benchmark, seed=seed, digest=_compute_digest(parts), created_by=person
            )
            AlignmentTask.objects.bulk_create(
                AlignmentTask(split=made, external_id=task, part=part) for task, part in parts.items()
            )
            return made
    except IntegrityError:  # drawn by another person at the same time: that one counts
        return AlignmentSplit.objects.get(benchmark=benchmark)


def _draw(decided: list[Case], seed: int | None) -> tuple[int, dict[str, Part]]:
    tasks = sorted({case.task_id for case in decided})
    if len(tasks) < LEAST_TASKS:
        raise Conflict(
            f"An alignment needs at least {LEAST_TASKS} tasks with a final verdict success or failure in frozen "
            f"submissions; this benchmark has {len(tasks)}. Freeze further submissions."
        )
    for drawn in [seed] if seed is not None else (secrets.randbits(32) for _ in range(DRAWS)):
        parts = assign(tasks, drawn)
        if _has_both_verdicts(decided, parts):
            return drawn, parts
    raise Conflict(
        "A part of the split would have only successes or only failures. "
        + ("Choose another seed." if seed is not None else "Freeze submissions with more of the rarer verdict.")
    )


def assign(tasks: list[str], seed: int) -> dict[str, Part]:
    """Return the part of each task, in the order given: 30% test, 30% development (rounded), the rest training."""
    shuffled = list(tasks)
    Random(seed).shuffle(shuffled)  # noqa: S311 - to be repeatable
    size = round(SHARE * len(tasks))
    part = dict.fromkeys(tasks, Part.TRAIN)
    part |= dict.fromkeys(shuffled[:size], Part.TEST) | dict.fromkeys(shuffled[size : 2 * size], Part.DEVELOPMENT)
    return part


def _has_both_verdicts(decided: list[Case], parts: Mapping[str, Part]) -> bool:
    found = {(parts[case.task_id], case.final) for case in decided}
    return len(found) == len(Part) * len(DECIDED)


def _compute_digest(parts: Mapping[str, Part]) -> str:
    return digest({task: str(part) for task, part in sorted(parts.items())})


def load_parts(split: AlignmentSplit) -> dict[str, Part]:
    """Return the part of every task of the draw; raise Conflict if rows are not those of the draw."""
    parts = {task: Part(part) for task, part in split.tasks.values_list("external_id", "part")}
    if _compute_digest(parts) != split.digest:
        raise Conflict("The split was changed in the database after it was drawn. Restore it from a backup.")
    return parts


def select_part(split: AlignmentSplit, found: Iterable[Case], *wanted: Part) -> list[Case]:
    """Return the cases of these parts; tasks without a part are training tasks."""
    parts = load_parts(split)
    return [case for case in found if parts.get(case.task_id, Part.TRAIN) in wanted]


def count_parts(split: AlignmentSplit) -> dict[str, int]:
    found = list(load_parts(split).values())
    return {part.label: found.count(part) for part in Part}
