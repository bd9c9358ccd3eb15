"""Screenshots and attachments: who gets them, and that a browser treats them as inert files."""

from __future__ import annotations

import hashlib
import io

import pytest
from django.core.files.storage import default_storage
from django.test import Client
from django.urls import reverse
from PIL import Image

from annotation import screenshots, workflow
from annotation.models import Attachment, Person, Submission, Trajectory
from annotation.tests.shared_rows import shared_rows
from annotation.views.pictures import INERT


@shared_rows
def held(people: dict[str, Person], submission: Submission) -> Trajectory:
    return workflow.claim(people["alice"], submission).trajectory


@pytest.fixture
def alice(client: Client, people: dict[str, Person]) -> Client:
    client.force_login(people["alice"])
    return client


@pytest.mark.parametrize(
    ("kind", "media_type", "width"),
    [("thumbnail", "image/webp", 240), ("display", "image/webp", 320), ("full", "image/png", 320)],
)
def test_a_screenshot_is_served_re_encoded_and_inert(
    alice: Client, held: Trajectory, kind: str, media_type: str, width: int
) -> None:
    response = alice.get(reverse("picture", args=[held.pk, 0, kind]))

    assert response["Content-Type"] == media_type
    assert Image.open(io.BytesIO(response.content)).width == width
    assert response["X-Content-Type-Options"] == "nosniff"
    assert response["Content-Security-Policy"] == INERT
    for word in ("private", "immutable", "max-age=31536000"):
        assert word in response["Cache-Control"]


def test_a_browser_that_has_it_is_told_so(alice: Client, held: Trajectory) -> None:
    address = reverse("picture", args=[held.pk, 0, "display"])
    tag = alice.get(address)["ETag"]

    again = alice.get(address, HTTP_IF_NONE_MATCH=tag)
    assert again.status_code == 304
    assert again.content == b""
    assert held.steps.first().screenshot.sha256 in tag


@pytest.mark.parametrize(
    ("name", "status"), [("alice", 200), ("bob", 404), ("carol", 200), ("mira", 200), ("dave", 404)]
)
def test_a_screenshot_is_for_who_may_see_its_trajectory(
    client: Client, people: dict[str, Person], held: Trajectory, name: str, status: int
) -> None:
    client.force_login(people[name])

    assert client.get(reverse("picture", args=[held.pk, 0, "thumbnail"])).status_code == status


def test_there_are_no_other_renditions_and_no_other_steps(alice: Client, held: Trajectory) -> None:
    assert alice.get(f"/trajectories/{held.pk}/steps/0/original").status_code == 404
    assert alice.get(reverse("picture", args=[held.pk, 99, "full"])).status_code == 404


def test_an_attachment_is_saved_and_never_shown(alice: Client, held: Trajectory) -> None:
    data = b"<script>alert(1)</script>"
    facts = hashlib.sha256(data).hexdigest()
    screenshots.keep_bytes(facts, data)
    file = Attachment.objects.create(
        trajectory=held, kind="agent_response", name='extra/"evil".html', sha256=facts, size=len(data)
    )

    response = alice.get(reverse("attachment", args=[held.pk, file.pk]))
    assert b"".join(response.streaming_content) == data
    assert response["Content-Type"] == "application/octet-stream"
    assert response["Content-Disposition"].startswith("attachment")
    assert "extra" not in response["Content-Disposition"]
    assert response["Content-Security-Policy"] == INERT


def test_an_attachment_of_another_trajectory_is_not_found(
    alice: Client, held: Trajectory, submission: Submission
) -> None:
    other = submission.trajectories.exclude(pk=held.pk).first()
    file = Attachment.objects.create(trajectory=other, kind="network_trace", name="a.har", sha256="cd" * 32, size=1)

    assert alice.get(reverse("attachment", args=[held.pk, file.pk])).status_code == 404
    assert alice.get(reverse("attachment", args=[other.pk, file.pk])).status_code == 404


def test_attachment_download_never_reads_the_whole_file(
    alice: Client, held: Trajectory, monkeypatch: pytest.MonkeyPatch
) -> None:
    data = bytes(5 * screenshots.CHUNK)
    sha256 = hashlib.sha256(data).hexdigest()
    screenshots.keep_bytes(sha256, data)
    file = Attachment.objects.create(trajectory=held, kind="network_trace", name="a.har", sha256=sha256, size=len(data))
    largest = 0

    class Counting(io.BytesIO):
        def read(self, size: int | None = -1) -> bytes:
            nonlocal largest
            read = super().read(size)
            largest = max(largest, len(read))
            return read

    monkeypatch.setattr(default_storage, "open", lambda *_: Counting(data))
    response = alice.get(reverse("attachment", args=[held.pk, file.pk]))
    assert response["Content-Length"] == str(len(data))
    assert sum(map(len, response.streaming_content)) == len(data)
    assert largest == screenshots.CHUNK
