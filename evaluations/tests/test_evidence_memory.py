"""A bundle is written, and read again, in memory that does not grow with the files in it."""

from __future__ import annotations

import hashlib
from pathlib import Path

import pytest

from annotation import screenshots
from annotation.models import Attachment, Submission
from annotation.tests.memory import peak
from evaluations.evidence.writing import prepare, write
from evaluations.verifier.contents import compute_digests
from evaluations.verifier.package import open_package

FILES = 40  # of a megabyte each
MEGABYTE = 1_000_000
MOST = 6 * MEGABYTE  # of Python's objects: a piece is held two or three times on its way, and never forty pieces


@pytest.fixture
def heavy(store: None, frozen: Submission) -> Submission:
    """With 40 MB of attachments, no two of them alike."""
    first = frozen.trajectories.order_by("position")[0]
    for number in range(FILES):
        data = bytes([number]) * MEGABYTE
        sha256 = hashlib.sha256(data).hexdigest()
        screenshots.keep_bytes(sha256, data)
        Attachment.objects.create(
            trajectory=first, kind="network_trace", name=f"{number}.har", sha256=sha256, size=MEGABYTE
        )
    return frozen


def test_a_bundle_is_sent_written_and_read_in_flat_memory(heavy: Submission, tmp_path: Path) -> None:
    """A download sends the chunks, the command writes them to a file, every check reads each file for its digest."""
    evidence, path = prepare(heavy), tmp_path / "bundle.zip"

    def sent() -> None:
        assert sum(map(len, evidence.chunks())) == evidence.size > FILES * MEGABYTE

    def read() -> None:
        with open_package(str(path)) as package:
            assert len(compute_digests(package, lambda done, total: None)) > FILES

    peaks = {
        "sent": peak(sent),
        "written": peak(lambda: write(evidence, path)),
        "read": peak(read),
    }
    assert {name: most for name, most in peaks.items() if most > MOST} == {}
