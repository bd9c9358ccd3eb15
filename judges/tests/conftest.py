"""The fake endpoint, and a submission with its cast, for every test of judges."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from annotation.models import Person, Submission, Task
from annotation.tests import testing
from annotation.tests.shared_rows import shared_rows
from judges.tests.builders import Fake, fake_endpoint


@pytest.fixture(scope="session")
def fake_process() -> Iterator[Fake]:
    with fake_endpoint() as fake:
        yield fake


@pytest.fixture
def fake(fake_process: Fake) -> Fake:
    """A fake endpoint without rules and counts."""
    fake_process.reset()
    return fake_process


@pytest.fixture(autouse=True)
def own_images(tmp_path: Path, settings: Any) -> None:
    settings.MEDIA_ROOT = tmp_path / "images"


@shared_rows
def submission(folder: Path) -> Submission:
    """Two trajectories of three steps each."""
    return testing.submission(folder, trajectories=2)


@shared_rows
def people(submission: Submission) -> dict[str, Person]:
    return testing.cast(submission)


@pytest.fixture
def task(submission: Submission) -> Task:
    """That of the first trajectory."""
    return submission.trajectories.earliest("position").task
