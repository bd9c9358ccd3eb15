"""What a check says of a hostile bundle is kept, whatever stands in the bundle: databases refuse some characters."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from evaluations import jobs
from evaluations.models import BundleUpload
from evaluations.tests.hand_made_bundle import HandMade
from evaluations.tests.test_audit_uploads import waiting_upload
from evaluations.verifier.canonical import canonical_json

pytestmark = pytest.mark.django_db
MANIFEST = "MANIFEST.json"


@pytest.fixture(autouse=True)
def store(tmp_path: Path, settings: Any) -> None:
    settings.MEDIA_ROOT = tmp_path / "images"


def opened(data: bytes) -> BundleUpload:
    upload = waiting_upload(data)
    jobs.open_bundle(str(upload.pk))
    upload.refresh_from_db()
    return upload


def test_findings_of_an_opened_bundle_are_kept_without_what_no_database_takes() -> None:
    made = HandMade()
    missing = [{"code": "x", "message": "y", "where": "a\x00b"}]
    made.documents["submission.json"].update(partial=True, missing=missing)
    labels = made.documents["human-label.json"]
    made.documents["human-label.json"] = {"partial": True, "missing": missing, "labels": labels}

    upload = opened(made.complete().zipped())

    assert upload.audit is not None, upload.refused
    assert "a\ufffdb" in [place for each in upload.audit.findings for place in each["places"]]


def test_findings_of_a_refused_bundle_are_kept_without_what_no_database_takes() -> None:
    def listed(entries: dict[str, bytes]) -> None:
        manifest = json.loads(entries[MANIFEST])
        manifest["files"].insert(0, {"path": "A\x00", "sha256": "0" * 64, "size": 0})
        entries[MANIFEST] = canonical_json(manifest).encode() + b"\n"

    upload = opened(HandMade().complete().zipped(listed))

    assert upload.audit is None
    assert upload.refused.startswith("It fails the check manifest")
    said = [upload.refused, *(text for each in upload.findings for text in (each["says"], *each["places"]))]
    assert any("A\ufffd" in text or "A?" in text for text in said)
    assert "\x00" not in "".join(said)
