"""An upload while the broker is down: taken, answered at once, and queued again by the housekeeping."""

import ast

from config.tests.test_settings import python

SECONDS = 2.0  # an answer that a person takes for an answer
SENDING = """
import logging, time
import config.wsgi  # as a web process, which loads every page before its first request
logging.disable(logging.CRITICAL)  # the failed message is logged with its traceback
from django.core.files.uploadedfile import SimpleUploadedFile
from django.core.management import call_command
from django.test import Client
from annotation import testing
from annotation.models import ApiToken, Upload

call_command("migrate", verbosity=0)
mira, shops = testing.person("mira", is_staff=True), testing.benchmark(1)
token = {"Authorization": f"Bearer {ApiToken.issue(mira, 'test')[1]}"}
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
waiting = list(Upload.objects.filter(started_at=None, finished_at=None).values_list("file_name", flat=True))
print([sent, waiting])
"""


def test_an_upload_without_a_broker_is_taken_soon_and_waits(tmp_path):
    done = python(
        tmp_path,
        "-c",
        SENDING,
        DJANGO_SETTINGS_MODULE="config.settings",
        REDIS_URL="redis://127.0.0.1:1/0",
        PYTHONPATH=".",
        ALLOWED_HOSTS="testserver,localhost",
    )
    assert done.returncode == 0, done.stderr
    sent, waiting = ast.literal_eval(done.stdout.strip().splitlines()[-1])
    assert [status for status, _ in sent] == [302, 202]
    assert all(seconds < SECONDS for _, seconds in sent), sent
    assert waiting == ["p.zip", "p.zip"]
