"""The Python sender against a real server, over a connection that breaks."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import httpx2
import pytest
from webverdict_client import resumable

from annotation import arrivals
from annotation.models import ApiToken, ResumableUpload, Upload, UploadPart
from annotation.tests import testing

pytestmark = pytest.mark.django_db(transaction=True)
FIELDS = {"benchmark": "shops", "agent": "Fast Agent"}


class Breaking(httpx2.HTTPTransport):
    """Loses every third request, and the answer to every fifth."""

    requests = 0

    def handle_request(self, request: httpx2.Request) -> httpx2.Response:
        self.requests += 1
        if self.requests % 3 == 0:
            raise httpx2.ConnectError("lost")
        answer = super().handle_request(request)
        if self.requests % 5 == 0:
            raise httpx2.ReadError("lost")
        return answer


@pytest.fixture
def token(tmp_path: Path, settings: Any, monkeypatch: pytest.MonkeyPatch) -> str:
    settings.MEDIA_ROOT = tmp_path / "images"
    monkeypatch.setattr(resumable, "FIRST_PAUSE", 0.0)
    testing.benchmark(1)
    return ApiToken.issue(testing.person("mira", is_staff=True), "test", "write")[1]


def connect(live_server: Any, token: str, **options: Any) -> httpx2.Client:
    return httpx2.Client(base_url=live_server.url, headers={"Authorization": f"Bearer {token}"}, **options)


def test_package_arrives_complete_over_a_connection_that_breaks(
    live_server: Any, token: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(resumable, "SMALLEST", 50_000)
    monkeypatch.setattr(resumable, "LARGEST", 50_000)
    path = tmp_path / "package.zip"
    path.write_bytes(bytes(range(256)) * 2000)
    reached: list[int] = []
    with connect(live_server, token, transport=Breaking()) as client:
        started = resumable.start(client, path, FIELDS)
        resumable.send(client, started.address, path, progress=lambda done, total: reached.append(done))
        resumable.send(client, started.address, path)  # complete: nothing is sent
    assert reached == sorted(reached)
    assert UploadPart.objects.count() == 11
    with arrivals.open_as_file(Upload.objects.get(), ".zip") as joined:
        assert joined.read_bytes() == path.read_bytes()
        assert joined.name == "package.zip"


def test_mistake_and_end_of_patience_are_raised(live_server: Any, token: str, tmp_path: Path) -> None:
    (path := tmp_path / "package.zip").write_bytes(b"PK")
    with connect(live_server, token) as client:
        with pytest.raises(resumable.Refused, match="benchmark") as refused:
            resumable.start(client, path, {"agent": "x"})
        assert (refused.value.status, refused.value.problem["errors"][0]["where"]) == (400, "benchmark")
        started = resumable.start(client, path, FIELDS)
        resumable.cancel(client, started.address)
        with pytest.raises(resumable.Refused):
            resumable.send(client, started.address, path)
        assert not ResumableUpload.objects.exists()
    with httpx2.Client(base_url="http://127.0.0.1:1") as client, pytest.raises(httpx2.ConnectError):
        resumable.send(client, "/", path, patience=-1)
