"""Texts of test tasks stay out of what is learned; what people said stays out of judgments and judges."""

from __future__ import annotations

from typing import Any

import pytest

from annotation.models import Benchmark, Task, Trajectory
from evaluations.judge_alignment import disagreements, material, notices, reporting, splitting
from judges.models import (
    Alignment,
    AlignmentRun,
    AlignmentSplit,
    AlignmentTask,
    AlignmentVersion,
    JudgeRun,
    Judgment,
    ModelCall,
    Part,
    RunItem,
)
from judges.tests.aligned import decided_submission, find_part, written_judge
from judges.trace import build_trace

pytestmark = pytest.mark.django_db


def made() -> Alignment:
    """An alignment, as rows."""
    submission, people = decided_submission()
    judge = written_judge()
    split = AlignmentSplit.objects.get()
    found = Alignment.objects.create(split=split, judge=judge, optimiser="plain", rounds=1, created_by=people["mira"])
    found.submissions.add(submission)
    AlignmentVersion.objects.create(alignment=found, number=0, judge=judge, accepted=True, reason="Kappa changes by 1.")
    return found


def find_row(alignment: Alignment, part: Part) -> Trajectory:
    return next(row for row in Trajectory.objects.order_by("pk") if find_part(row.task.external_id) is part)


def import_again(alignment: Alignment, part: Part) -> Trajectory:
    """Give the task of a training trajectory another id, and the text of a task of ``part`` in other letters."""
    row, other = find_row(alignment, Part.TRAIN), find_row(alignment, part)
    task = Task.objects.create(benchmark=alignment.split.benchmark, external_id="again", text="Something else")
    text = f"  {other.task_text.upper()}\n".replace(" ", "  ")
    Trajectory.objects.filter(pk=row.pk).update(task=task, task_text=text)
    return row


@pytest.mark.parametrize("part", [Part.TEST, Part.DEVELOPMENT])
def test_held_out_task_that_is_imported_again_is_in_no_part(part: Part) -> None:
    alignment = made()
    row = import_again(alignment, part)
    assert row.pk not in {case.trajectory for case in material.load_cases(alignment, *Part)}


def test_training_task_that_is_imported_again_is_for_training() -> None:
    alignment = made()
    row = import_again(alignment, Part.TRAIN)
    assert row.pk in {case.trajectory for case in material.load_cases(alignment, Part.TRAIN)}


def test_text_in_the_test_part_of_another_benchmark_is_withheld() -> None:
    alignment = made()
    row = find_row(alignment, Part.TRAIN)
    assert row.pk in {case.trajectory for case in material.load_cases(alignment, Part.TRAIN)}
    elsewhere = AlignmentSplit.objects.create(benchmark=Benchmark.objects.create(slug="b", name="B"), seed=1, digest="")
    text = splitting.digest_text(row.task_text)
    AlignmentTask.objects.create(split=elsewhere, external_id="x", part=Part.TEST, texts=[text])
    assert row.pk not in {case.trajectory for case in material.load_cases(alignment, *Part)}


def test_equal_texts_are_drawn_together_and_known_texts_keep_their_part() -> None:
    tasks = [f"t{number:02d}" for number in range(40)]
    texts = {task: {f"text {number // 2}"} for number, task in enumerate(tasks)}  # pairs
    for seed in range(20):
        parts = splitting.assign(tasks, seed, texts, {"text 0": {Part.TEST}, "text 1": {Part.TRAIN}})
        assert all(parts[first] is parts[second] for first, second in zip(tasks[::2], tasks[1::2], strict=True))
        assert (parts["t00"], parts["t02"]) == (Part.TEST, Part.TRAIN)
        assert sum(part is Part.TEST for part in parts.values()) == 12


def test_seed_follows_from_what_was_committed() -> None:
    submission, people = decided_submission(split=False)
    decided = splitting.load_decided(submission.benchmark, [submission])
    first = next(splitting.derive_seeds(submission.benchmark, [submission], decided))
    assert splitting.lock(people["mira"], submission.benchmark).seed == first
    submission.digest = "other files"
    assert next(splitting.derive_seeds(submission.benchmark, [submission], decided)) != first


def test_prompt_of_the_optimiser_is_in_no_trace_of_a_judgment() -> None:
    alignment = made()
    row = find_row(alignment, Part.TRAIN)
    version, submission = alignment.versions.get(), row.submission
    run = JudgeRun.objects.create(
        judge=alignment.judge, submission=submission, test=True, created_by=alignment.created_by
    )
    AlignmentRun.objects.create(version=version, part=Part.TRAIN, submission=submission, run=run)
    item = RunItem.objects.create(run=run, trajectory=row, repetition=1)
    own: dict[str, Any] = {"item": item, "attempt": 1, "key": "0" * 64, "model": "m", "stage": "verdict"}
    own["made_at"] = alignment.created_at
    kept = ModelCall.objects.create(**own, number=1, request={"text": "own"})
    ModelCall.objects.create(
        **own | {"key": "1" * 64}, number=2, sample=f"rewrite/{alignment.pk}/1", request={"text": "reason"}
    )
    judgment = Judgment(item=item, judge=alignment.judge, trajectory=row, task=row.task, agent=submission.agent)
    judgment.made_at = alignment.created_at
    assert [call["id"] for call in build_trace(judgment)["calls"]] == [kept.pk]


def test_figures_are_hidden_while_a_submission_is_open() -> None:
    alignment = made()
    alignment.versions.update(figures={"n": 1})
    assert reporting.describe(alignment)["versions"][0]["development"] == {"n": 1}
    alignment.submissions.update(frozen_at=None)
    shown = reporting.describe(alignment)
    assert (shown["reopened"], shown["versions"][0]["development"], shown["versions"][0]["reason"]) == (True, None, "")
    with pytest.raises(Exception, match="was reopened"):
        disagreements.list_rows(alignment.versions.get())


def test_aligned_judges_and_their_later_versions_are_marked() -> None:
    alignment = made()
    base = alignment.judge
    assert notices.describe(base, "bare") == {"aligned": None}
    written = written_judge()
    written.version, written.pk = 9, None
    alignment.written.add(base)  # as `add_criterion` does
    assert notices.describe(base, "bare") == {"aligned": notices.SENTENCE}
    assert notices.describe(base, "shops") == {"aligned": None}
    assert notices.find_alignments([written], "bare") == {None: alignment.pk}
    assert notices.load_notices(alignment.created_by, [base], "bare") == {base.pk: alignment}
