"""The fake endpoint, and a submission with its cast, for every test of judges."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from annotation import testing
from annotation.models import Person, Submission, Task
from judges.testing import Fake, fake_endpoint


@pytest.fixture(scope="session")
def fake_process() -> Iterator[Fake]:
    with fake_endpoint() as fake:
        yield fake


@pytest.fixture
def fake(fake_process: Fake) -> Fake:
    """A fake endpoint without rules and counts."""
    fake_process.reset()
    return fake_process


@pytest.fixture
def submission(db: Any, tmp_path: Path, settings: Any) -> Submission:
    """Two trajectories of three steps each."""
    settings.MEDIA_ROOT = tmp_path / "images"
    return testing.submission(tmp_path / "package", trajectories=2)


@pytest.fixture
def people(submission: Submission) -> dict[str, Person]:
    return testing.cast(submission)


@pytest.fixture
def task(submission: Submission) -> Task:
    """That of the first trajectory."""
    return submission.trajectories.earliest("position").task
