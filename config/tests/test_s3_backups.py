"""A backup of files in a bucket, restored into another bucket; and a store that is gone."""

from __future__ import annotations

import uuid
from pathlib import Path
from typing import Any

import pytest
from django.core.files.storage import default_storage

from annotation import screenshots
from annotation.backups import last_backup, snapshots
from annotation.models import Screenshot
from annotation.tests import testing
from annotation.tests.backup_commands import objects_of, refuse, run, tables
from annotation.tests.other_instance import other_instance
from config.bucket import make_bucket

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def folder(bucket: Any, tmp_path: Path) -> Path:
    """Backups of a submission with six screenshots in the bucket."""
    testing.submission(tmp_path / "package", trajectories=2)
    return tmp_path / "backups"


def use_another_bucket(settings: Any) -> None:
    default = settings.STORAGES["default"]
    options = default["OPTIONS"] | {"bucket_name": f"images-{uuid.uuid4().hex}"}
    settings.STORAGES = settings.STORAGES | {"default": default | {"OPTIONS": options}}
    make_bucket(default_storage)


def test_files_of_a_bucket_are_restored_into_another_one(folder: Path, tmp_path: Path, settings: Any) -> None:
    originals = {name: screenshots.original(name) for name in Screenshot.objects.values_list("sha256", flat=True)}
    run("backup", folder)
    assert set(objects_of(folder)) == set(originals)

    with other_instance(settings, tmp_path / "other"):
        assert "The store is not empty" not in run("restore", folder)  # the same files are accepted
    use_another_bucket(settings)
    with other_instance(settings, tmp_path / "third"):
        assert "Copied: 6 files." in run("restore", folder)
        assert {name: screenshots.original(name) for name in originals} == originals


def test_store_that_is_gone_ends_a_backup_in_one_line(folder: Path, server: Any) -> None:
    run("backup", folder)
    screenshots.store(testing.png(9), screenshots.inspect(testing.png(9)))
    before = last_backup()
    server.stop()

    assert "No backup was created" in refuse("backup", folder)

    assert len(list((folder / "snapshots").iterdir())) == 1
    assert last_backup() == before
    assert "no problems" in run("backup", folder, "--check")


def test_store_that_is_gone_ends_a_restore_before_the_database(
    folder: Path, server: Any, tmp_path: Path, settings: Any
) -> None:
    run("backup", folder)
    server.stop()
    with other_instance(settings, tmp_path / "other"):
        assert "was not restored" in refuse("restore", folder)
        assert tables() == []


def test_file_missing_in_a_bucket_is_named(folder: Path, bucket: Any) -> None:
    sha256 = Screenshot.objects.earliest("pk").sha256
    bucket.delete(f"originals/{sha256[:2]}/{sha256}")
    assert "lacks 1 stored file" in refuse("backup", folder)
    assert snapshots.list_snapshots(folder)
