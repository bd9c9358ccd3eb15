"""Submissions at several places of the protocol, for every test of this floor."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from annotation import ingest, testing, workflow
from annotation.models import Person, Submission
from annotation.models.states import State, with_state


@pytest.fixture
def submission(db: Any, tmp_path: Path) -> Submission:
    """Two trajectories of three steps each, version 2."""
    return testing.submission(tmp_path / "package", trajectories=2)


@pytest.fixture
def people(submission: Submission) -> dict[str, Person]:
    return testing.cast(submission)


@pytest.fixture
def frozen(submission: Submission, people: dict[str, Person]) -> Submission:
    """Task 0 is disputed and adjudicated as a success, task 1 is a unanimous success and spot-checked."""
    return finish(people, submission, {"task_0000": [1, 0, 2]})


def finish(people: dict[str, Person], submission: Submission, verdicts: dict[str, list[int]]) -> Submission:
    """Walk the rest of the protocol, to the freeze."""
    testing.label_all(people, submission, verdicts)
    if with_state(submission.trajectories.all()).filter(state=State.AGREED.value).exists():
        workflow.draw_spot_checks(people["mira"], submission)
    testing.adjudicate_all(people["carol"], submission)
    return workflow.freeze(people["mira"], submission)


@pytest.fixture
def imported_v1(db: Any, tmp_path: Path) -> Callable[..., Submission]:
    """A function that imports one version 1 trajectory: the fields of its result.json, and its images."""

    def make(images: dict[str, bytes] | None = None, reference_length: int | None = 4, **fields: Any) -> Submission:
        pictures = {f"{n}_full.png": testing.png(n) for n in range(3)} if images is None else images
        package = tmp_path / "package"
        testing.write_trajectory(package, testing.result_v1(0, **fields), pictures)
        benchmark = testing.benchmark(1, reference_length=reference_length)
        report, made = ingest.import_submission(package, benchmark=benchmark, agent_name="Old Agent")
        assert made is not None, report.as_json()
        return made

    return make
