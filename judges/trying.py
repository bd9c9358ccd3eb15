"""Checks and rubrics that are tried while they are written, outside of a run: nothing asks a model, nothing is kept."""

from __future__ import annotations

import hashlib
from dataclasses import replace
from typing import cast

from asgiref.sync import async_to_sync

from annotation.models import Task, Trajectory
from annotation.records import SourceFormat, TrajectoryRecord
from judges.llm import Asker, CallFailed
from judges.models import Expectation
from judges.scorer import REGISTRY, Expected, Prompts, Score, Subject
from judges.scorers.network_trace.judge import NAME as NETWORK
from judges.working.subjects import subject_of

CHECKS = Expectation.Kind.NETWORK_CHECKS.value


def checked(subject: Subject) -> Score:
    """What the checks of the subject say of its trace; the score is unscored where they cannot be held against it."""
    kind = REGISTRY[NETWORK]
    scorer = kind.build(kind.parameters(), Prompts("", "", {}))
    nobody = cast(Asker, None)  # a judge of this kind asks no model
    try:
        return async_to_sync(scorer.score)(subject, nobody)
    except CallFailed as error:  # the store has lost the file
        return Score(None, unscored=str(error))


def tried(trajectory: Trajectory, text: str) -> Score:
    """`checked` with checks that are not kept yet."""
    return checked(_with(subject_of(trajectory), CHECKS, text))


def foreseen(scorer: str, expected: str, task: Task, text: str, trajectory: Trajectory | None) -> list[tuple[str, int]]:
    """The calls that judging a trajectory by ``text``, an expectation of the kind ``expected``, would take.

    They are what the scorer of this name foresees with its usual parameters; without a trajectory, for one without
    steps.
    """
    kind = REGISTRY[scorer]
    subject = Subject(_bare(task)) if trajectory is None else subject_of(trajectory)
    return kind.calls(kind.parameters(), _with(subject, expected, text))


def _bare(task: Task) -> TrajectoryRecord:
    return TrajectoryRecord("", task.external_id, task.text, None, SourceFormat.ONLINE_MIND2WEB_V2, ())


def _with(subject: Subject, kind: str, text: str) -> Subject:
    digest = hashlib.sha256(text.encode()).hexdigest()
    return replace(subject, expectations={**subject.expectations, kind: Expected(kind, 0, digest, text)})
