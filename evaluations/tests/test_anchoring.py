"""Heads of chains are published outside: each once, signed, and again when it failed."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from datetime import timedelta
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
from django.conf import settings as configured
from django.core.management import CommandError, call_command
from django.db import connection
from django.test import Client
from django.urls import reverse
from django.utils import timezone

from annotation.models import Event, Person, Submission
from annotation.models.events import append
from annotation.tests import testing
from annotation.tests.test_concurrency import at_once
from evaluations import anchoring, jobs, signing
from evaluations.anchoring import publishing, transports
from evaluations.evidence.documents import documents
from evaluations.models import Anchor
from evaluations.tests.outside import Outside, outside
from evaluations.verifier.canonical import canonical_json
from evaluations.verifier.signature import verify

pytestmark = pytest.mark.django_db
People = dict[str, Person]


@pytest.fixture
def file(tmp_path: Path, settings: Any) -> Path:
    settings.ANCHOR_FILE = str(tmp_path / "published" / "anchors.jsonl")
    (tmp_path / "published").mkdir()
    return Path(settings.ANCHOR_FILE)


@pytest.fixture
def hook(settings: Any, monkeypatch: pytest.MonkeyPatch) -> Iterator[Outside]:
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    with outside() as site:
        secret = site.address.replace("http://", "http://us%20er:sesame@")
        settings.ANCHOR_WEBHOOK = f"{secret}/hooks/sesame?token=sesame"
        yield site


def lines(file: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in file.read_text().splitlines()]


def last(submission: Submission) -> Event:
    return submission.events.latest("sequence")


def several(count: int) -> None:
    """So many submissions with a chain."""
    for number in range(count):
        append(testing.bare_submission(1, agent=f"Agent {number}"), "imported")


def something_happens(submission: Submission, people: People) -> None:
    testing.label(people["alice"], submission.trajectories.first())


def test_a_line_of_the_file_is_the_signed_head_and_nothing_more(file: Path, submission: Submission) -> None:
    (anchor,) = anchoring.publish()
    (line,) = lines(file)
    assert file.read_text() == canonical_json(line) + "\n"
    assert (line["sequence"], line["head"]) == (last(submission).sequence, last(submission).hash)
    assert line["chain"] == submission.events.get(sequence=0).hash
    assert set(line) == {"chain", "sequence", "head", "at", "key_id", "signature"}
    key = signing.active_key()
    said = canonical_json({name: value for name, value in line.items() if name != "signature"}).encode()
    assert line["key_id"] == key.key_id
    assert verify(bytes.fromhex(key.public), said, bytes.fromhex(line["signature"]))
    assert (anchor.method, anchor.target, anchor.error, anchor.token) == ("file", "anchors.jsonl", "", "")
    assert (anchor.sequence, anchor.head) == (line["sequence"], line["head"])


def test_a_head_is_published_again_only_when_the_chain_has_grown(
    file: Path, submission: Submission, people: People
) -> None:
    assert len(anchoring.publish()) == 1
    assert anchoring.publish() == []
    something_happens(submission, people)
    jobs.publish_anchors()
    first, second = lines(file)
    assert second["chain"] == first["chain"]
    assert (second["sequence"], second["head"]) == (last(submission).sequence, last(submission).hash)
    assert Anchor.objects.filter(error="").count() == 2


def test_practice_and_bundles_of_others_are_not_published(file: Path, submission: Submission, people: People) -> None:
    Submission.objects.filter(pk=submission.pk).update(audited=True)
    assert anchoring.publish() == []
    Submission.objects.filter(pk=submission.pk).update(audited=False, practice=True)
    assert anchoring.publish() == []
    assert not file.exists()


@pytest.mark.django_db(transaction=True)
def test_workers_at_once_publish_a_head_once(file: Path) -> None:
    several(1)
    signing.active_key()
    outcomes = at_once(6, lambda number: len(anchoring.publish()))
    assert sorted(outcomes) == [0, 0, 0, 0, 0, 1]
    assert len(lines(file)) == 1
    assert Anchor.objects.get().error == ""


def test_a_torn_line_is_ended_and_nothing_is_lost(file: Path, submission: Submission, people: People) -> None:
    anchoring.publish()
    whole = file.read_bytes()
    file.write_bytes(whole + whole[:40])
    something_happens(submission, people)
    anchoring.publish()
    first, torn, second = file.read_text().splitlines()
    assert (first + "\n").encode() == whole
    assert torn == first[:40]
    assert json.loads(second)["sequence"] == last(submission).sequence


def test_a_full_disk_loses_no_head(
    file: Path, submission: Submission, monkeypatch: pytest.MonkeyPatch, people: People
) -> None:
    real = os.write
    monkeypatch.setattr(transports.os, "write", lambda descriptor, data: real(descriptor, data[:30]))
    (anchor,) = anchoring.publish()
    assert "Only 30 of" in anchor.error
    monkeypatch.setattr(transports.os, "write", real)
    (again,) = anchoring.publish()
    assert (again.pk, again.error) == (anchor.pk, "")
    assert json.loads(file.read_text().splitlines()[1])["head"] == last(submission).hash


def test_a_missing_folder_is_told_without_naming_it(submission: Submission, settings: Any, tmp_path: Path) -> None:
    settings.ANCHOR_FILE = str(tmp_path / "nowhere" / "anchors.jsonl")
    (anchor,) = anchoring.publish()
    assert anchor.error.startswith("anchors.jsonl could not be written: the folder in ANCHOR_FILE does not exist")
    assert "nowhere" not in anchor.error


# --- a webhook -------------------------------------------------------------------------------------------------------


def test_a_webhook_is_sent_the_signed_head_and_its_secrets_are_kept_nowhere(
    hook: Outside, submission: Submission
) -> None:
    (anchor,) = anchoring.publish()
    ((path, headers, body),) = hook.asked
    assert path == "/hooks/sesame?token=sesame"
    assert headers["Content-Type"] == "application/json"
    assert headers["Authorization"] == "Basic dXMgZXI6c2VzYW1l"  # printf 'us er:sesame' | base64
    assert json.loads(body)["head"] == last(submission).hash
    assert (anchor.method, anchor.target, anchor.error) == ("webhook", hook.address, "")


def faults(site: Outside) -> dict[str, Any]:
    return {
        "answered 500": lambda body: (500, b"sesame"),
        "answered 302": lambda body: (302, b""),
        "no answer within 0.3 seconds": site.hang,
        "answered more than": lambda body: (200, b"x" * 300_000),
    }


@pytest.mark.parametrize("said", ["answered 500", "answered 302", "no answer within 0.3 seconds", "answered more than"])
def test_a_failure_is_kept_without_secrets_and_the_newest_head_goes_out_the_next_time(
    hook: Outside, submission: Submission, people: People, monkeypatch: pytest.MonkeyPatch, said: str
) -> None:
    if said.startswith("no answer"):
        monkeypatch.setattr("evaluations.anchoring.transports.SECONDS", 0.3)
    hook.answer = faults(hook)[said]
    hook.location = f"{hook.address}/elsewhere"
    (anchor,) = anchoring.publish()
    assert said in anchor.error
    assert "sesame" not in anchor.error + anchor.target
    assert len(hook.asked) == 1  # no redirect was followed
    monkeypatch.undo()
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    something_happens(submission, people)
    hook.answer = lambda body: (204, b"")
    (again,) = anchoring.publish()
    assert (again.pk, again.error, again.head) == (anchor.pk, "", last(submission).hash)
    assert Anchor.objects.get().error == ""


def test_a_webhook_that_is_not_there_is_given_up_after_three_and_nothing_is_lost(settings: Any, db: Any) -> None:
    several(5)
    with outside() as gone:
        settings.ANCHOR_WEBHOOK = f"{gone.address}/sesame"
    assert [anchor.error for anchor in anchoring.publish()] == [
        f"{gone.address} could not be reached: Connection refused."
    ] * 3
    with outside() as back:
        settings.ANCHOR_WEBHOOK = back.address
        assert len(anchoring.publish()) == 5
        assert len({json.loads(body)["chain"] for _, _, body in back.asked}) == 5
    assert not Anchor.objects.exclude(error="").exists()


def test_a_dead_worker_is_followed_by_another_after_a_while_and_not_before(file: Path, submission: Submission) -> None:
    head = last(submission)
    row = {"submission": submission, "method": "file", "sequence": head.sequence, "head": head.hash, "target": "x"}
    begun = Anchor.objects.create(**row, error=publishing.BEGUN, published_at=timezone.now())
    assert anchoring.publish() == []
    Anchor.objects.filter(pk=begun.pk).update(published_at=timezone.now() - publishing.LONGEST - timedelta(seconds=1))
    (anchor,) = anchoring.publish()
    assert (anchor.pk, anchor.error, anchor.target) == (begun.pk, "", "anchors.jsonl")
    assert len(lines(file)) == 1


def test_a_closed_signing_key_is_told_and_nothing_unsigned_goes_out(
    file: Path, submission: Submission, settings: Any
) -> None:
    signing.active_key()
    settings.SECRET_KEY = "another secret key"
    (anchor,) = anchoring.publish()
    assert "rotate_signing_key" in anchor.error
    assert not file.exists()


def test_one_place_that_fails_keeps_no_other_from_being_told(file: Path, hook: Outside, submission: Submission) -> None:
    hook.answer = lambda body: (503, b"")
    assert [(anchor.method, bool(anchor.error)) for anchor in anchoring.publish()] == [
        ("file", False),
        ("webhook", True),
    ]


def test_looking_for_news_costs_one_query_for_each_place(db: Any, django_assert_num_queries: Any) -> None:
    several(4)
    with django_assert_num_queries(1, connection=connection):
        assert len(publishing.changed(Anchor.Method.FILE)) == 4


# --- command, job, pages ---------------------------------------------------------------------------------------------


def test_the_command_says_what_it_did_and_what_failed(file: Path, hook: Outside, submission: Submission) -> None:
    hook.answer = lambda body: (500, b"")
    out, err = StringIO(), StringIO()
    with pytest.raises(CommandError, match="1 of 2 could not be published") as caught:
        call_command("publish_anchors", stdout=out, stderr=err)
    assert caught.value.returncode == 1
    event = f"submission {submission.pk}, event {last(submission).sequence}"
    assert out.getvalue() == f"published: {event}, File, anchors.jsonl\n"
    assert err.getvalue() == f"not published: {event}, Webhook: {hook.address} answered 500.\n"


def test_the_command_says_how_many_chains_wait(settings: Any, tmp_path: Path, db: Any) -> None:
    several(publishing.GIVE_UP + 2)
    settings.ANCHOR_FILE = str(tmp_path / "nowhere" / "anchors.jsonl")
    err = StringIO()
    with pytest.raises(CommandError, match=r"3 of 3 could not be published\. 5 chains wait for the next time"):
        call_command("publish_anchors", stderr=err)
    assert "the folder in ANCHOR_FILE does not exist. Create it first" in err.getvalue()


def test_the_command_is_wrong_usage_where_there_is_nowhere_to_publish(db: Any) -> None:
    with pytest.raises(CommandError, match="ANCHOR_FILE") as caught:
        call_command("publish_anchors")
    assert caught.value.returncode == 2


def test_the_job_runs_at_intervals_in_the_worker_that_has_a_way_outside() -> None:
    entry = configured.CELERY_BEAT_SCHEDULE["publish-anchors"]
    assert (entry["task"], entry["schedule"]) == (jobs.publish_anchors.name, configured.ANCHOR_MINUTES * 60)
    assert configured.CELERY_TASK_ROUTES[entry["task"]] == {"queue": "webverdict-judges"}


def panel(person: Person, submission: Submission, **headers: str) -> Any:
    client = Client(headers=headers)
    client.force_login(person)
    return client.get(reverse("anchors", args=[submission.pk]))


def test_the_page_shows_the_head_and_where_it_was_published(
    file: Path, hook: Outside, submission: Submission, people: People
) -> None:
    hook.answer = lambda body: (500, b"")
    anchoring.publish()
    client = Client()
    client.force_login(people["mira"])
    page = client.get(reverse("submission", args=[submission.pk])).content.decode()
    assert last(submission).hash in page
    assert f"{last(submission).sequence + 1} events" in page
    assert reverse("anchors", args=[submission.pk]) in page
    said = panel(people["mira"], submission, **{"HX-Request": "true"}).content.decode()
    assert last(submission).hash[:12] in said
    assert "anchors.jsonl" in said
    assert f"{hook.address} answered 500." in said
    assert panel(people["mira"], submission).headers["Location"] == reverse("submission", args=[submission.pk])


@pytest.mark.parametrize(("who", "code"), [("alice", 403), ("carol", 403), ("dave", 404)])
def test_only_who_sees_the_page_sees_the_panel(submission: Submission, people: People, who: str, code: int) -> None:
    assert panel(people[who], submission, **{"HX-Request": "true"}).status_code == code


def test_a_bundle_calls_the_places_what_the_operator_does(
    file: Path, hook: Outside, submission: Submission, settings: Any
) -> None:
    settings.ANCHOR_WEBHOOK_NAME = "log of the leaderboard"
    anchoring.publish()
    assert {row.target for row in Anchor.objects.all()} == {"anchors.jsonl", hook.address}
    assert [row["target"] for row in documents(submission).anchors] == ["file", "log of the leaderboard"]
    submission.audited = True  # somebody else's bundle, opened here, says what it said
    assert [row["target"] for row in documents(submission).anchors] == ["anchors.jsonl", hook.address]
