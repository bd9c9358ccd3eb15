"""Draw the split of a benchmark once, by task, and read it.

All runs of a task, by whatever agent and in whatever version, are in the same part: a judge that has learned from one
run of a task would be tested on what it knows with another. A task that was added or first decided after the draw
belongs to the training tasks, so that development and test stay what they were. Equal texts are the same task.
"""

from __future__ import annotations

import hashlib
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from random import Random
from types import MappingProxyType
from typing import Any

from django.db import IntegrityError, transaction

from annotation.models import Benchmark, Event, Submission, Trajectory
from annotation.models.events import digest
from annotation.records import Verdict
from annotation.workflow import Conflict
from evaluations import cases
from evaluations.cases import Case
from judges.models import AlignmentSplit, AlignmentTask, Part

LEAST_TASKS = 19  # 6 for development: an exact test of fewer never reaches the level 0.05
SHARE = 0.3  # of the tasks in development, and in the test split
DRAWS = 200  # until every part has both verdicts
DECIDED = (Verdict.SUCCESS, Verdict.FAILURE)


def find_split(benchmark: Benchmark) -> AlignmentSplit | None:
    return AlignmentSplit.objects.filter(benchmark=benchmark).first()


def load_decided(benchmark: Benchmark, submissions: Iterable[Submission]) -> list[Case]:
    """Return the reviewed cases with the final verdict success or failure; imported labels and label 2 do not count."""
    found = cases.of_benchmark(benchmark, submissions, imported=False)
    return [case for case in found if case.final in DECIDED]


def lock(person: Any, benchmark: Benchmark) -> AlignmentSplit:
    """Return the split of the benchmark; draw it if there is none. It never changes.

    All frozen submissions of the benchmark count. The seed cannot be chosen: see `derive_seeds`.
    Raises Conflict if there are too few tasks, or a part lacks one of the verdicts.
    """
    if (found := find_split(benchmark)) is not None:
        return found
    submissions = list(cases.reported_submissions(benchmark).defer("import_report").order_by("pk"))
    decided = load_decided(benchmark, submissions)
    return draw(person, benchmark, decided, derive_seeds(benchmark, submissions, decided))


def derive_seeds(benchmark: Benchmark, submissions: Iterable[Submission], decided: Iterable[Case]) -> Iterator[int]:
    """Yield the seeds of the draws: 52 bits of the SHA-256 of slug, task ids, submissions and number of the draw.

    Of each submission, the digest of its files and the head of its chain of events count.
    """
    heads = [[each.digest, _find_head(each)] for each in submissions]
    tasks = sorted({case.task_id for case in decided})
    for number in range(DRAWS):
        yield int(digest({"benchmark": benchmark.slug, "tasks": tasks, "heads": heads, "draw": number})[:13], 16)


def _find_head(submission: Submission) -> str:
    return Event.objects.filter(submission=submission).order_by("sequence").values_list("hash", flat=True).last() or ""


def draw(person: Any, benchmark: Benchmark, decided: Sequence[Case], seeds: Iterable[int]) -> AlignmentSplit:
    """Store the split of the first seed with which every part has both verdicts."""
    tasks = sorted({case.task_id for case in decided})
    if len(tasks) < LEAST_TASKS:
        raise Conflict(
            f"An alignment needs at least {LEAST_TASKS} tasks with a final verdict success or failure in frozen "
            f"submissions; this benchmark has {len(tasks)}. Freeze further submissions."
        )
    texts, known = _collect_texts(decided), _load_known()
    for seed in seeds:
        parts = assign(tasks, seed, texts, known)
        if _has_both_verdicts(decided, parts):
            return _store(person, benchmark, seed, parts, texts)
    raise Conflict(
        "A part of the split would have only successes or only failures. Freeze submissions with more of the rarer "
        "verdict."
    )


def _store(
    person: Any, benchmark: Benchmark, seed: int, parts: Mapping[str, Part], texts: Mapping[str, set[str]]
) -> AlignmentSplit:
    rows = [AlignmentTask(external_id=task, part=part, texts=sorted(texts[task])) for task, part in parts.items()]
    try:
        with transaction.atomic():
            made = AlignmentSplit.objects.create(
                benchmark=benchmark, seed=seed, digest=_compute_digest(rows), created_by=person
            )
            for row in rows:
                row.split = made
            AlignmentTask.objects.bulk_create(rows)
            return made
    except IntegrityError:  # drawn by another person at the same time: that one counts
        return AlignmentSplit.objects.get(benchmark=benchmark)


def assign(
    tasks: Sequence[str],
    seed: int,
    texts: Mapping[str, Collection[str]] = MappingProxyType({}),
    known: Mapping[str, Collection[Part]] = MappingProxyType({}),
) -> dict[str, Part]:
    """Return the part of each task: 30% test, 30% development (rounded), the rest training.

    Tasks with an equal text are in one part. A text that has a part already, in the split of another benchmark, keeps
    it: training, if its group has several.
    """
    shuffled = list(tasks)
    Random(seed).shuffle(shuffled)  # noqa: S311 - to be repeatable
    size, found = round(SHARE * len(tasks)), dict.fromkeys(tasks, Part.TRAIN)
    groups = [(_find_known(group, texts, known), group) for group in _group(shuffled, texts)]
    count = dict.fromkeys(Part, 0)
    for kept, group in sorted(groups, key=lambda each: each[0] is None):
        part = kept or next((each for each in (Part.TEST, Part.DEVELOPMENT) if count[each] < size), Part.TRAIN)
        count[part] += len(group)
        found |= dict.fromkeys(group, part)
    return found


def _group(tasks: Iterable[str], texts: Mapping[str, Collection[str]]) -> list[list[str]]:
    """Return the tasks in groups that share texts, directly or by other tasks."""
    made: list[list[str]] = []
    having: dict[str, list[str]] = {}
    for task in tasks:
        joined = {id(having[text]): having[text] for text in sorted(texts.get(task, ())) if text in having}
        group = [each for one in joined.values() for each in one] + [task]
        if joined:
            made = [one for one in made if id(one) not in joined]
        made.append(group)
        having |= {text: group for each in group for text in texts.get(each, ())}
    return made


def _find_known(
    group: Iterable[str], texts: Mapping[str, Collection[str]], known: Mapping[str, Collection[Part]]
) -> Part | None:
    found = {part for task in group for text in texts.get(task, ()) for part in known.get(text, ())}
    return next((part for part in Part if part in found), None)


def _has_both_verdicts(decided: Iterable[Case], parts: Mapping[str, Part]) -> bool:
    found = {(parts[case.task_id], case.final) for case in decided}
    return len(found) == len(Part) * len(DECIDED)


# --- texts -----------------------------------------------------------------------------------------------------------


def digest_text(text: str) -> str:
    """Return the SHA-256 of a text without regard to case and whitespace."""
    return hashlib.sha256(" ".join(text.casefold().split()).encode()).hexdigest()


def _load_texts(found: Iterable[Case]) -> dict[int, set[str]]:
    """Return the digests of the texts of each trajectory's task: in the agent's files, and in the catalogue."""
    rows = Trajectory.objects.filter(submission__in={case.submission for case in found if case.submission})
    texts = rows.values_list("pk", "task_text", "task__text").iterator(chunk_size=cases.AT_ONCE)
    return {pk: {digest_text(text) for text in both if text.strip()} for pk, *both in texts}


def _collect_texts(decided: Collection[Case]) -> dict[str, set[str]]:
    loaded, found = _load_texts(decided), defaultdict[str, set[str]](set)
    for case in decided:
        found[case.task_id] |= loaded.get(case.trajectory or 0, set())
    return found


def _load_known() -> dict[str, set[Part]]:
    """Return the parts of each text in the splits of all benchmarks."""
    found = defaultdict[str, set[Part]](set)
    for part, texts in AlignmentTask.objects.values_list("part", "texts"):
        for text in texts:
            found[text].add(Part(part))
    return found


# --- read ------------------------------------------------------------------------------------------------------------


def _compute_digest(rows: Iterable[AlignmentTask]) -> str:
    return digest({row.external_id: [str(row.part), row.texts] for row in rows})


def load_parts(split: AlignmentSplit) -> dict[str, Part]:
    """Return the part of every task of the draw; raise Conflict if rows are not those of the draw."""
    rows = list(split.tasks.all())
    if _compute_digest(rows) != split.digest:
        raise Conflict("The split was changed in the database after it was drawn. Restore it from a backup.")
    return {row.external_id: Part(row.part) for row in rows}


def select_part(split: AlignmentSplit, found: Collection[Case], *wanted: Part) -> list[Case]:
    """Return the cases of these parts; tasks without a part are training tasks.

    A case is in no part if a text of its task has another part in the split of this or of another benchmark: a test
    task that was imported again under another id, or for another benchmark, never becomes a training task.
    """
    return [case for case, part in zip(found, _find_parts(split, found), strict=True) if part in wanted]


def _find_parts(split: AlignmentSplit, found: Collection[Case]) -> list[Part | None]:
    parts, known, texts = load_parts(split), _load_known(), _load_texts(found)

    def find_part(case: Case) -> Part | None:
        part = parts.get(case.task_id, Part.TRAIN)
        others = {each for text in texts.get(case.trajectory or 0, ()) for each in known.get(text, ())}
        return part if others <= {part} else None

    return [find_part(case) for case in found]


def count_parts(split: AlignmentSplit) -> dict[str, int]:
    found = list(load_parts(split).values())
    return {part.label: found.count(part) for part in Part}


def count_cases(split: AlignmentSplit, submissions: Iterable[Submission]) -> dict[str, int]:
    """Return the number of decided trajectories of each part in these submissions."""
    found = _find_parts(split, load_decided(split.benchmark, submissions))
    return {part.label: found.count(part) for part in Part}
