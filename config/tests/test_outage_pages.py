"""Without a database, or with a full disk, the answer is a page or problem details with the time to try again."""

import ast

import pytest

from config.tests.test_settings import PRODUCTION, python

AWAY = """
import logging
import config.wsgi
from django.core.management import call_command
from django.db import connection
from django.test import Client
call_command("collectstatic", interactive=False, verbosity=0)
logging.disable(logging.CRITICAL)
attempts = []
connect = connection.get_new_connection
connection.get_new_connection = lambda parameters: attempts.append(1) or connect(parameters)

def ask(address, **headers):
    browser = Client(raise_request_exception=False)
    browser.cookies["sessionid"] = "somebody"
    attempts.clear()
    answer = browser.get(address, headers=headers)
    assert len(attempts) <= 1, f"{address} waits {len(attempts)} times for a database that does not answer"
    return answer.status_code, answer.get("Retry-After"), answer["Content-Type"].split(";")[0], answer.content.decode()

print({
    "page": ask("/"),
    "api": ask("/api/v1/submissions", authorization="Bearer wv_1"),
    "fetch": ask("/work", accept="application/json"),
    "htmx": ask("/", **{"hx-request": "true"}),
    "healthz": ask("/healthz"),
})
"""
FULL = """
import logging
import config.wsgi
from pathlib import Path
from django.core.management import call_command
from django.db import connection
from django.test import Client
from annotation import workflow
from annotation.tests import testing
from annotation.models import Draft

call_command("collectstatic", interactive=False, verbosity=0)
call_command("migrate", verbosity=0)
submission = testing.submission(Path("PACKAGE"), trajectories=1)
alice = testing.cast(submission)["alice"]
held = workflow.claim(alice, submission).trajectory
browser = Client(raise_request_exception=False, SERVER_NAME="localhost")
browser.force_login(alice)
logging.disable(logging.CRITICAL)

def save(words):
    answer = browser.post(f"/trajectories/{held.pk}/draft", {"reasoning": words, "version": Draft.objects.count()})
    return answer.status_code, answer.get("Retry-After"), answer.content.decode()

def limit(pages):
    with connection.cursor() as cursor:
        cursor.execute(f"PRAGMA max_page_count = {pages}")
        return cursor.fetchone()[0]

before = save("saved before")
limit(1)  # SQLite takes the present size where that is larger
full = save("x" * 500_000)
kept = Draft.objects.get().content["reasoning"]
limit(1_000_000)
print([before, full, kept, save("saved after")[0], Draft.objects.get().content["reasoning"]])
"""


def outcome(tmp_path, code, **environment):
    done = python(tmp_path, "-c", code, PYTHONPATH=".", DJANGO_SETTINGS_MODULE="config.settings", **environment)
    assert done.returncode == 0, done.stderr
    return ast.literal_eval(done.stdout.strip().splitlines()[-1])


@pytest.fixture(scope="module")
def away(tmp_path_factory):
    """Answers of a server whose PostgreSQL refuses connections; the session middleware is the first to notice."""
    production = {**PRODUCTION, "ALLOWED_HOSTS": "testserver", "INSECURE_HTTP": "1"}
    return outcome(tmp_path_factory.mktemp("away"), AWAY, **production)


@pytest.mark.parametrize("asked", ["page", "htmx"])
def test_page_reports_that_the_database_is_unavailable(away, asked):
    status, retry_after, kind, text = away[asked]
    assert (status, retry_after, kind) == (503, "5", "text/html")
    assert "The database is not available" in text
    assert "Nothing that was saved is lost." in text


@pytest.mark.parametrize("asked", ["api", "fetch"])
def test_a_program_gets_problem_details_when_the_database_is_away(away, asked):
    status, retry_after, kind, text = away[asked]
    assert (status, retry_after, kind) == (503, "5", "application/problem+json")
    assert ast.literal_eval(text)["title"] == "Service Unavailable"
    assert "127.0.0.1" not in text


def test_healthz_answers_without_a_database(away):
    assert away["healthz"][0] == 200


def test_a_full_disk_answers_507_and_keeps_what_was_saved(tmp_path):
    before, full, kept, status_after, after = outcome(
        tmp_path, FULL.replace("PACKAGE", str(tmp_path / "package")), ALLOWED_HOSTS="localhost"
    )
    assert before[0] == 302
    assert full[:2] == (507, "60")
    assert "The disk is full" in full[2]
    assert kept == "saved before"
    assert (status_after, after) == (302, "saved after")
