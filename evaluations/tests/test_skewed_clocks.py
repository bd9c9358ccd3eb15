"""A review whose requests are served by machines with wrong clocks is one whose evidence an auditor accepts."""

from datetime import timedelta
from itertools import cycle
from pathlib import Path
from typing import Any

import pytest
from django.utils import timezone

from evaluations.evidence.documents import documents
from evaluations.tests.busy_review import busy_review
from evaluations.tests.tampered import Tampered


@pytest.mark.postgresql  # SQLite has the clock of the one machine that it is on
@pytest.mark.django_db
def test_evidence_of_machines_with_wrong_clocks_is_accepted(
    tmp_path: Path, settings: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings.MEDIA_ROOT = tmp_path / "images"
    real, skews = timezone.now, cycle([timedelta(hours=2), timedelta(), timedelta(hours=-2)])
    monkeypatch.setattr(timezone, "now", lambda: real() + next(skews))
    submission = busy_review(tmp_path)
    monkeypatch.undo()

    assert Tampered(documents(submission)).failed() == {}
