"""A submission with its cast, imported from a package on disk, for every test of this floor."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from django.db import connection

from annotation import testing
from annotation.models import Person, Submission, triggers


@pytest.fixture
def submission(db: Any, tmp_path: Path) -> Submission:
    """Two trajectories of three steps each."""
    return testing.submission(tmp_path / "package", trajectories=2)


@pytest.fixture
def people(submission: Submission) -> dict[str, Person]:
    return testing.cast(submission)


@pytest.fixture
def without_triggers(db: Any) -> Any:
    """A block in which the database protects nothing, as for somebody with the database's password."""

    @contextmanager
    def unprotected() -> Iterator[None]:
        editor = SimpleNamespace(connection=connection)
        triggers.remove(None, editor)
        yield
        triggers.install(None, editor)

    return unprotected
