"""What a killed process has left half written is given back, and never ends the daily work."""

from __future__ import annotations

import os
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from django.core.files.base import ContentFile
from django.core.files.storage import default_storage

from annotation import jobs, screenshots

pytestmark = pytest.mark.django_db
DAY = timedelta(days=1)


@pytest.fixture(autouse=True)
def store(tmp_path: Path, settings: Any) -> None:
    settings.MEDIA_ROOT = tmp_path / "images"


def kept(name: str, age: int = 0) -> Path:
    path = Path(default_storage.path(default_storage.save(name, ContentFile(b"half"))))
    if age:
        os.utime(path, (age, age))
    return path


def test_what_a_killed_process_has_not_written_to_its_end_goes_after_a_day() -> None:
    old = [kept(name, 1) for name in ("originals/ab/.writing-x", "renditions/display/ab/.writing-y")]
    fresh = kept("originals/ab/.writing-z")

    screenshots.prune(DAY)

    assert [path.exists() for path in (*old, fresh)] == [False, False, True]


def test_a_file_of_another_name_in_a_folder_of_originals_is_no_trouble() -> None:
    """Its folder is not the one that its name would have."""
    stray = kept("originals/ab/notes.txt", 1)

    assert screenshots.prune(DAY) == 1
    assert not stray.exists()


def test_a_clean_up_that_fails_does_not_keep_up_the_next_one(monkeypatch: pytest.MonkeyPatch) -> None:
    left = kept("uploads/left", 1)

    def gone(folder: str) -> Any:
        raise PermissionError(folder)

    monkeypatch.setattr(screenshots, "_list_folder", gone)
    with pytest.raises(PermissionError):
        jobs.prune_images()

    assert not left.exists()
