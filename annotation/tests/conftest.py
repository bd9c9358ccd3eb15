"""A submission with its cast, imported from a package on disk, for every test of this floor."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from django.db import connection
from playwright.sync_api import Page

from annotation import workflow
from annotation.models import Person, Submission, Trajectory, triggers
from annotation.tests import testing
from annotation.tests.in_browser import EXPECTED, complaints_of, open_desk, sign_in
from annotation.tests.shared_rows import shared_rows


@shared_rows
def submission(folder: Path) -> Submission:
    """Two trajectories of three steps each."""
    return testing.submission(folder, trajectories=2)


@shared_rows
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


@pytest.fixture
def held(transactional_db: Any, tmp_path: Path) -> Trajectory:
    """The first of three trajectories, which alice is working on."""
    submission = testing.submission(tmp_path / "package", trajectories=3, steps=4)
    return workflow.claim(testing.cast(submission)["alice"], submission).trajectory


@pytest.fixture
def desk(page: Page, live_server: Any, held: Trajectory) -> Iterator[Page]:
    """Alice's desk, open; any complaint of the browser that the page should have prevented fails the test."""
    complaints = complaints_of(page)
    sign_in(page, live_server.url, "alice")
    open_desk(page, live_server.url, held)
    yield page
    page.context.set_offline(False)
    if not page.is_closed():
        page.goto("about:blank")
    assert [text for text in complaints if not EXPECTED.search(text)] == []
