"""Test checks and forecast rubrics while they are written: no model is asked, nothing is stored."""

from __future__ import annotations

import hashlib
from dataclasses import replace
from typing import cast

from asgiref.sync import async_to_sync

from annotation.formats.external.online_mind2web_v2 import FORMAT as V2
from annotation.models import Task, Trajectory
from annotation.records import TrajectoryRecord
from judges.llm import Asker, CallFailed
from judges.models import Expectation
from judges.scorer import NO_PROMPTS, REGISTRY, Expected, Score, Subject
from judges.scorers.network_trace.judge import NAME as NETWORK
from judges.scorers.rubric.judge import NAME as RUBRIC
from judges.working.subjects import load_subject

CHECKS = Expectation.Kind.NETWORK_CHECKS.value


def run_checks(subject: Subject) -> Score:
    """Score the trace of the subject by its checks; unscored if they do not apply."""
    kind = REGISTRY[NETWORK]
    scorer = kind.build(kind.parameters(), NO_PROMPTS)
    nobody = cast(Asker, None)  # a judge of this kind asks no model
    try:
        return async_to_sync(scorer.score)(subject, nobody)
    except CallFailed as error:  # the store has lost the file
        return Score(None, unscored=str(error))


def try_checks(trajectory: Trajectory, text: str) -> Score:
    return run_checks(_replace_expectation(load_subject(trajectory), CHECKS, text))


def forecast_rubric(task: Task, text: str, trajectory: Trajectory | None) -> list[tuple[str, int]]:
    """Return the calls of a rubric judgment with default parameters; without a trajectory, for one without steps."""
    kind = REGISTRY[RUBRIC]
    bare = TrajectoryRecord("", task.external_id, task.text, None, V2.name, ())
    subject = Subject(bare) if trajectory is None else load_subject(trajectory)
    return kind.calls(kind.parameters(), _replace_expectation(subject, Expectation.Kind.RUBRIC.value, text))


def _replace_expectation(subject: Subject, kind: str, text: str) -> Subject:
    digest = hashlib.sha256(text.encode()).hexdigest()
    return replace(subject, expectations={**subject.expectations, kind: Expected(kind, 0, digest, text)})
