"""An alignment whose process is killed is continued by the same command, and pays for no answer twice."""

from __future__ import annotations

import subprocess
import sys
from datetime import timedelta
from typing import Any

import pytest
from django.db import connection
from django.utils import timezone

from config.tests.waiting import wait_until
from judges.models import Alignment, LookAtTest, RunItem
from judges.tests.aligned import CANARY, LEARNS, REWRITE, RULE, align, decided_submission, written_judge
from judges.tests.builders import Fake

pytestmark = pytest.mark.django_db(transaction=True)

CHILD = """
import sys
import django
from django.conf import settings
database, media, address, *words = sys.argv[1:]
settings.DATABASES["default"]["NAME"] = database
settings.MEDIA_ROOT, settings.JUDGE_ENDPOINTS = media, {"default": address}
django.setup()
from django.core.management import call_command
call_command("align_judge", *words)
"""
WORDS = ("careful", "--benchmark", "bare", "--rounds", "1", "--wait", "--look")
# What the endpoint holds when the process dies.
HELD = {
    "the optimiser": REWRITE,
    "a rewritten version on development": {"match": RULE, "name": "rewritten"},
    "the look at the test tasks": {"match": CANARY, "name": "test"},
}


@pytest.fixture
def endpoint(settings: Any, fake: Fake) -> Fake:
    settings.JUDGE_ENDPOINTS = {"default": fake.url}
    written_judge()
    decided_submission()
    return fake


def killed(endpoint: Fake, settings: Any) -> None:
    database = str(connection.settings_dict["NAME"])
    command = [sys.executable, "-c", CHILD, database, str(settings.MEDIA_ROOT), endpoint.url, *WORDS]
    with subprocess.Popen(command, cwd=settings.BASE_DIR, stderr=subprocess.DEVNULL) as process:
        try:
            wait_until(lambda: endpoint.counts()["held"] > 0, "the endpoint holds a call")
        finally:
            process.kill()


def pass_time() -> None:
    """As if the process had been silent for an hour."""
    long_ago = timezone.now() - timedelta(hours=1)
    Alignment.objects.filter(heartbeat_at__isnull=False).update(heartbeat_at=long_ago)
    RunItem.objects.filter(heartbeat_at__isnull=False).update(heartbeat_at=long_ago)


@pytest.mark.parametrize("held", HELD)
def test_killed_alignment_goes_on_where_it_was(held: str, endpoint: Fake, settings: Any) -> None:
    endpoint.says(HELD[held] | {"hold": True}, *LEARNS)
    killed(endpoint, settings)
    before = endpoint.counts()
    endpoint.says(*LEARNS)
    pass_time()
    found = align("--rounds", "1", "--look")

    assert (found["state"], [each["accepted"] for each in found["versions"]]) == ("finished", [True, True])
    assert [each["test"]["kappa"]["after"]["value"] for each in found["looks"]] == [1.0]
    assert (Alignment.objects.count(), LookAtTest.objects.count()) == (1, 1)
    # Two versions judge 60 tasks, or 18 of training, and the optimiser is asked once.
    whole = endpoint.counts()["calls"] - (before["calls"] - before["answered"])
    assert whole == found["calls"] + 2 * 18
