"""An evidence bundle of a restored instance is the one that was exported before, byte for byte, and verifies."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from annotation.tests import testing
from annotation.tests.backup_commands import run
from annotation.tests.other_instance import other_instance
from evaluations import sending
from evaluations.evidence import writing
from evaluations.models import Delivery
from evaluations.signing import published
from evaluations.tests.finished import finish


@pytest.mark.django_db(transaction=True)
def test_bundle_of_a_restored_instance_is_the_same_and_verifies(tmp_path: Path, settings: Any) -> None:
    settings.MEDIA_ROOT = tmp_path / "images"
    submission = testing.submission(tmp_path / "package", trajectories=2)
    finish(testing.cast(submission), submission, {"task_0000": [1, 0, 2]})
    writing.write(writing.prepare(submission), tmp_path / "before.zip")
    keys = published()
    run("backup", tmp_path / "backups")

    with other_instance(settings, tmp_path / "other"):
        run("restore", tmp_path / "backups")
        writing.write(writing.prepare(submission), tmp_path / "after.zip")
        assert published() == keys
        assert " FAIL" not in run("verify_evidence", tmp_path / "after.zip")

    assert (tmp_path / "after.zip").read_bytes() == (tmp_path / "before.zip").read_bytes()


@pytest.mark.django_db(transaction=True)
def test_files_for_sending_are_in_a_backup(tmp_path: Path, settings: Any) -> None:
    settings.MEDIA_ROOT = tmp_path / "images"
    submission = testing.submission(tmp_path / "package", trajectories=2)
    people = testing.cast(submission)
    finish(people, submission, {})
    delivery = sending.request(people["mira"], submission, lambda pk: None, with_screenshots=False, accept_names=False)
    claimed = sending.arrivals.claim(Delivery, str(delivery.pk))
    assert claimed is not None
    sending.process(claimed)
    assert len(list(Delivery.stored_names())) == 3

    run("backup", tmp_path / "backups")

    with other_instance(settings, tmp_path / "other"):
        run("restore", tmp_path / "backups")
        for each in Delivery.objects.get().files:
            with sending.default_storage.open(each["stored_as"]) as stream:
                assert len(stream.read()) == each["size"]
