"""An evidence bundle from a bucket and back: its pictures are read there, and so is a bundle that is opened."""

from __future__ import annotations

import hashlib
import zipfile
from pathlib import Path
from typing import Any

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile
from django.core.management import CommandError, call_command
from django.urls import reverse

from annotation import redactions, screenshots, workflow
from annotation.models import Screenshot
from annotation.tests import testing
from evaluations.models import Audit
from evaluations.tests.audited import auditor, bundle, client_of, work
from evaluations.tests.finished import finish

pytestmark = pytest.mark.django_db


def test_a_bundle_is_made_of_pictures_in_a_bucket_and_opened_from_there(
    bucket: Any,
    tmp_path: Path,
) -> None:
    submission = testing.submission(tmp_path / "package", trajectories=2)
    people = testing.cast(submission)
    covered = submission.trajectories.get(position=0).steps.get(index=1)
    workflow.redact(people["mira"], submission, covered.screenshot, [(10, 20, 30, 40)], "A name.")
    finish(people, submission, {"task_0000": [1, 0, 2]})

    path = bundle(submission, tmp_path)

    with zipfile.ZipFile(path) as package:
        carried = {name: package.read(name) for name in package.namelist() if name.startswith("screenshots/")}
    originals = {Path(name).stem: data for name, data in carried.items() if ".redacted." not in name}
    assert all(hashlib.sha256(data).hexdigest() == sha256 for sha256, data in originals.items())
    hidden = covered.screenshot.sha256
    assert set(originals) == set(Screenshot.objects.values_list("sha256", flat=True)) - {hidden}
    assert carried[f"screenshots/{hidden}.redacted.png"] == screenshots.original(
        redactions.map_redacted(submission)[hidden]
    )

    client = client_of(auditor())
    client.post(reverse("open-audit"), {"bundle": SimpleUploadedFile("b.zip", path.read_bytes())})
    assert len(bucket.listdir("bundles")[1]) == 1
    work()

    audit = Audit.objects.get()
    assert [each["name"] for each in audit.findings if each["result"] == "fail"] == []
    assert bucket.listdir("bundles")[1] == []
    shown = client.get(reverse("picture", args=[audit.submission.trajectories.get(position=1).pk, 0, "display"]))
    assert (shown.status_code, shown["Content-Type"]) == (200, "image/webp")


def test_a_store_that_is_gone_stops_the_export_with_one_line_and_no_file(
    bucket: Any,
    server: Any,
    tmp_path: Path,
) -> None:
    submission = testing.submission(tmp_path / "package", trajectories=1)
    finish(testing.cast(submission), submission, {})
    server.stop()

    with pytest.raises(CommandError) as stopped:
        call_command("export_evidence", submission.pk, output=tmp_path / "bundle.zip")

    assert len(str(stopped.value).splitlines()) == 1
    assert "Could not connect" in str(stopped.value)
    assert not (tmp_path / "bundle.zip").exists()
