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
from judges.scorers.verifier.outcome import NAME as VERIFIER
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


def forecast_rubric(task: Task, text: str, trajectory: Trajectory | None) -> dict[str, list[tuple[str, int]]]:
    """Return the calls of a judgment by the rubric, by scorer, with default parameters.

    Without a trajectory, the calls are those for one without steps: none in a rubric verifier, which is left out.
    """
    bare = TrajectoryRecord("", task.external_id, task.text, None, V2.name, ())
    subject = Subject(bare) if trajectory is None else load_subject(trajectory)
    subject = _replace_expectation(subject, Expectation.Kind.RUBRIC.value, text)
    chosen = {RUBRIC: {}} if trajectory is None else {RUBRIC: {}, VERIFIER: {"criteria": "written"}}
    return {
        name: REGISTRY[name].calls(REGISTRY[name].parameters(**parameters), subject)
        for name, parameters in chosen.items()
    }


def _replace_expectation(subject: Subject, kind: str, text: str) -> Subject:
    digest = hashlib.sha256(text.encode()).hexdigest()
    return replace(subject, expectations={**subject.expectations, kind: Expected(kind, 0, digest, text)})
