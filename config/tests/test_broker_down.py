"""Uploads and judge runs while the broker is gone or silent are stored, answered soon, and queued again later."""

import ast
import socket

import pytest

from config.tests.instance import Instance
from config.tests.test_settings import python

SECONDS = {"gone": 2.0, "silent": 4.0}  # until an answer; publishing may take two of them
SENDING = """
import logging, time
from pathlib import Path
import config.wsgi  # as a web process, which loads every page before its first request
logging.disable(logging.CRITICAL)  # the failed message is logged with its traceback
from django.core.files.uploadedfile import SimpleUploadedFile
from django.test import Client
from annotation.tests import testing
from annotation.models import ApiToken, Upload
from judges.tests import builders as judge_testing
from judges.models import RunItem

mira, shops = testing.person("mira", is_staff=True), testing.benchmark(1)
token = {"Authorization": f"Bearer {ApiToken.issue(mira, 'test', 'admin')[1]}"}
browser = Client(SERVER_NAME="localhost")
browser.force_login(mira)

def package():
    return SimpleUploadedFile("p.zip", b"PK")

def send(address, fields, **options):
    started = time.monotonic()
    answer = browser.post(address, fields | {"agent": "A", "agent_name": "A"}, **options)
    return answer.status_code, time.monotonic() - started

sent = [
    send("/submissions/upload/package", {"package": package(), "benchmark": shops.pk}),
    send("/api/v1/uploads", {"file": package(), "benchmark": "shops"}, headers=token),
]
submission = testing.submission(Path("PACKAGE"), trajectories=1)
testing.cast(submission)
judge_testing.defined_judge()
started = time.monotonic()
answer = browser.post(f"/api/v1/submissions/{submission.pk}/judge-runs", {"judge": "careful"}, headers=token)
sent.append((answer.status_code, time.monotonic() - started))
print([sent, Upload.objects.filter(started_at=None).count(), RunItem.objects.filter(taken_at=None).count()])
"""


@pytest.fixture
def silent_address():
    """Of a socket that accepts connections (the kernel does) and never answers."""
    with socket.create_server(("127.0.0.1", 0), backlog=64) as server:
        yield f"127.0.0.1:{server.getsockname()[1]}"


@pytest.mark.parametrize("broker", ["gone", "silent"])
def test_uploads_and_runs_are_stored_and_answered_soon_when_the_broker_is(broker, silent_address, tmp_path):
    address = silent_address if broker == "silent" else "127.0.0.1:1"
    Instance(tmp_path).migrate()
    done = python(
        tmp_path,
        "-c",
        SENDING.replace("PACKAGE", str(tmp_path / "package")),
        DJANGO_SETTINGS_MODULE="config.settings",
        REDIS_URL=f"redis://{address}/0",
        PYTHONPATH=".",
        ALLOWED_HOSTS="testserver,localhost",
        JUDGE_ENDPOINTS="http://127.0.0.1:1/v1",
        JUDGE_API_KEY_DEFAULT="none",
    )
    assert done.returncode == 0, done.stderr
    sent, uploads, items = ast.literal_eval(done.stdout.strip().splitlines()[-1])
    assert [status for status, _ in sent] == [302, 202, 201]
    assert all(seconds < SECONDS[broker] for _, seconds in sent), sent
    assert (uploads, items) == (2, 1)
