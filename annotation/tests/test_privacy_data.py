"""What is kept of a person can be taken along: everything of theirs, and nothing of anybody else."""

from __future__ import annotations

import json
import stat

import pytest
from django.core.management import CommandError, call_command
from django.test import Client
from django.urls import reverse

from annotation import mail, privacy, workflow
from annotation.models import ApiToken, KeyPoint, MailGroup, MessageKind, Person, Phrase, Report, Upload
from annotation.records import AttemptContent
from annotation.tests import testing

pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def images_in_a_folder_of_their_own(tmp_path, settings):
    settings.MEDIA_ROOT = tmp_path / "images"


@pytest.fixture
def rows(submission):
    return list(submission.trajectories.order_by("position"))


def says(name, what):
    return f"SAID-{name}-{what}"


@pytest.fixture
def used(people, submission, rows, tmp_path):
    """Everybody has done everything that their role can do, each in words of their own."""
    type(submission).objects.filter(pk=submission.pk).update(protocol_version=2)
    submission.refresh_from_db()
    for row in rows:
        row.submission = submission
    alice, bob, chen, carol, mira = (people[name] for name in ("alice", "bob", "chen", "carol", "mira"))
    workflow.claim_this(alice, rows[1])
    workflow.release(alice, rows[1], says("alice", "release"))
    for person, verdict in ((bob, 0), (alice, 1), (chen, 1)):
        name = person.username
        workflow.claim_this(person, rows[0])
        workflow.save_draft(person, rows[0], {"reasoning": says(name, "draft")}, 0)
        workflow.record_activity(person, rows[0], 7.0, (0, 1))
        attempt = AttemptContent(3, says(name, "attempt"), "", "as_short")
        content = testing.content(rows[0], verdict, reasoning=says(name, "reasoning"), attempt=attempt)
        workflow.submit(person, rows[0], content)
        workflow.flag(person, rows[0], says(name, "flag"))
        workflow.report(person, rows[0], Report.Kind.TASK_OUTDATED, says(name, "report"))
        workflow.settle_report(mira, Report.objects.latest("pk"), says("mira", "answer"))
        KeyPoint.objects.create(task=rows[0].task, position=9, text=says(name, "proposal"), proposed_by=person)
    workflow.claim_this(bob, rows[1])
    workflow.save_draft(bob, rows[1], {"reasoning": says("bob", "draft")}, 0)
    workflow.open_adjudication(carol, rows[0])
    workflow.decide(carol, rows[0], testing.content(rows[0], 1, reasoning=says("carol", "reasoning")))
    workflow.reopen(mira, rows[0], says("mira", "reopening"))
    workflow.redact(mira, submission, rows[0].steps.get(index=0).screenshot, [[0, 0, 5, 5]], says("mira", "redaction"))
    for person in (alice, bob, carol, mira):
        Phrase.objects.create(person=person, text=says(person.username, "phrase"))
        ApiToken.issue(person, says(person.username, "token"), "admin")
        mail.write(person, MessageKind.RUN, "Judge run finished", says(person.username, "message"))
    Upload.objects.create(
        uploaded_by=mira,
        benchmark=submission.benchmark,
        agent_name="X",
        file_name=says("mira", "upload"),
        stored_as="x",
    )
    item = testing.practice_set(people, *_newcomers(people, tmp_path))
    return item.trajectories.earliest("position")


def _newcomers(people, tmp_path):
    """A second submission, which has a practice set."""
    other = testing.bare_submission(1)
    workflow.join_as_maintainer(other, people["mira"])
    workflow.add_member(people["mira"], other, people["dave"], "annotator")
    return other, tmp_path / "practice"


EXPECTED = {
    "alice": {"release", "reasoning", "attempt", "flag", "report", "proposal", "phrase", "token", "message"},
    "bob": {"reasoning", "attempt", "flag", "report", "proposal", "draft", "phrase", "token", "message"},
    "carol": {"reasoning", "phrase", "token", "message"},
    "mira": {"answer", "reopening", "redaction", "phrase", "token", "upload", "message"},
    "dave": set(),
}


@pytest.mark.parametrize("name", EXPECTED)
def test_everything_that_a_person_wrote_is_there_and_nothing_of_others(used, people, name):
    text = json.dumps(privacy.data_of(people[name]))
    for other, whats in EXPECTED.items():
        assert {what for what in whats if says(other, what) in text} == (whats if other == name else set())


def test_the_account_the_pseudonyms_and_the_times_are_there(used, people, submission):
    data = privacy.data_of(people["alice"])
    assert data["account"]["email"] == "alice@people.example"
    [membership] = data["memberships"]
    assert (membership["submission"], membership["role"], membership["pseudonym"]) == (
        submission.pk,
        "annotator",
        "A1",
    )
    [activity] = data["activity"]
    assert activity["steps"] == [0, 1]
    assert {"claimed", "label_submitted", "flagged", "reported"} <= {act["kind"] for act in data["acts"]}


def test_messages_and_choices_are_there_with_their_outcome(people):
    mail.choose(people["alice"], [MailGroup.JOBS])
    mail.write(people["alice"], MessageKind.ADDRESS, "E-mail address changed", "It was changed.", address="a@b.example")
    data = privacy.data_of(people["alice"])
    [message] = data["messages"]
    assert (message["kind"], message["address"], message["sent_at"]) == ("address", "a@b.example", None)
    assert data["no_mail_about"] == [{"group": "jobs"}]


def test_nothing_tells_how_many_others_were_there_before(used, people):
    """bob was the first of the trajectory and alice the second: a slot or the number of a row would tell."""
    [label] = privacy.data_of(people["alice"])["labels"]
    assert {"slot", "id", "pk", "assignment"} & set(label) == set()
    assert "sequence" not in json.dumps(privacy.data_of(people["alice"]))


def test_no_hash_of_a_token_or_password_is_there(used, people):
    text = json.dumps(privacy.data_of(people["alice"]))
    assert ApiToken.objects.get(person=people["alice"]).digest not in text
    assert Person.objects.get(username="alice").password not in text


def test_failed_sign_ins_are_there_with_their_address(people):
    client = Client(REMOTE_ADDR="203.0.113.5", HTTP_USER_AGENT="Some Browser")
    client.post(reverse("sign-in"), {"username": "alice", "password": "wrong"})
    client.post(reverse("sign-in"), {"username": "bob", "password": "wrong"})
    [failed] = privacy.data_of(people["alice"])["sign_ins"]["failed"]
    assert (failed["address"], failed["browser"]) == ("203.0.113.5", "Some Browser")


def test_page_api_and_command_give_the_same(used, people, tmp_path):
    client = Client()
    client.force_login(people["bob"])
    page = client.get(reverse("own-data"))
    assert page["Content-Disposition"].startswith("attachment")
    assert page["Cache-Control"] == "private, no-store"
    path = tmp_path / "bob.json"
    call_command("export_person", "bob", "--output", str(path))
    written = json.loads(path.read_text(encoding="utf-8"))
    assert written == page.json() == client.get("/api/v1/account/data").json()
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


def test_the_command_replaces_no_file_and_knows_its_people(people, tmp_path):
    path = tmp_path / "bob.json"
    path.write_text("mine")
    with pytest.raises(CommandError, match="File exists"):
        call_command("export_person", "bob", "--output", str(path))
    assert path.read_text() == "mine"
    with pytest.raises(CommandError, match="The person nobody does not exist"):
        call_command("export_person", "nobody", "--output", str(tmp_path / "other.json"))


def test_a_stranger_gets_nothing(client):
    assert client.get(reverse("own-data")).status_code == 302
    assert client.get("/api/v1/account/data").status_code == 401
    assert client.get(reverse("erasing")).status_code == 302
