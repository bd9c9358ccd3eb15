"""Who is erased is nowhere any more: not in any column of any table, not in a file; and what they said stays."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from allauth.socialaccount.models import SocialAccount
from django.conf import settings as django_settings
from django.contrib.admin.models import LogEntry
from django.core.exceptions import PermissionDenied
from django.core.files.uploadedfile import SimpleUploadedFile
from django.core.management import CommandError, call_command
from django.db import connection
from django.test import Client
from django.urls import reverse
from django.utils import timezone

from annotation import sign_ins, workflow
from annotation.models import ApiToken, Draft, Event, MailOptOut, Membership, Message, Person, Phrase, Upload
from annotation.models.events import first_broken
from annotation.records import Problem
from annotation.tests import planted, testing
from annotation.workflow import Conflict, Incomplete, integrity
from annotation.workflow.guards import Role

# Where names, addresses or user agents are before anybody is erased: docs/privacy.md says the same.
KNOWN = {
    "annotation_person": "the one table of identities",
    "annotation_apitoken": "names that people gave their tokens",
    "annotation_message": "the old address, which is told of a new one",
    "annotation_draft": "what people typed and did not submit",
    "annotation_phrase": "wordings that people keep",
    "annotation_upload": "names of uploaded files",
    "socialaccount_socialaccount": "identities at the provider of single sign-on",
    "annotation_signin": "sign-ins",
    "axes_accessattempt": "failed sign-ins, for a day",
    "django_admin_log": "accounts that the administration changed",
}


# --- looking everywhere -----------------------------------------------------------------------------------------------


def tables_with(words: list[str]) -> dict[str, list[str]]:
    """Every table that holds one of the words in any column of any row, with the words."""
    found: dict[str, list[str]] = {}
    with connection.cursor() as cursor:
        for table in connection.introspection.table_names(cursor):
            cursor.execute(f'SELECT * FROM "{table}"')
            data = "\n".join(str(value) for row in cursor.fetchall() for value in row).encode()
            if words_here := planted.found_in(data, words):
                found[table] = words_here
    return found


def files_with(words: list[str]) -> dict[str, list[str]]:
    """Search the files that the application writes here: the database, messages, and the image store of the test."""
    database = Path(connection.settings_dict["NAME"])
    found = {}
    for file in [
        *database.parent.glob(f"{database.name}*"),
        *Path(django_settings.BROKER_FOLDER).rglob("*"),
        *Path(django_settings.MEDIA_ROOT).rglob("*"),
    ]:
        data = file.name.encode() + (file.read_bytes() if file.is_file() else b"")
        if words_here := planted.found_in(data, words):
            found[file.name] = words_here
    return found


# --- a person who has used everything ---------------------------------------------------------------------------------


@pytest.fixture
def lived(transactional_db: Any, tmp_path: Path, settings: Any) -> dict[str, Any]:
    """alice has signed in, failed to, labelled, drafted, uploaded, moved, and been changed in the administration."""
    settings.MEDIA_ROOT = tmp_path / "images"
    submission = testing.submission(tmp_path / "package", trajectories=3)
    people = testing.cast(submission)
    testing.person("root", is_staff=True, is_superuser=True)
    identity = planted.plant({"alice": people["alice"]})["alice"]
    client = Client(REMOTE_ADDR=planted.ADDRESS, HTTP_USER_AGENT=planted.BROWSER)
    sign_in = {"username": identity["username"], "password": "wrong"}
    client.post(reverse("sign-in"), sign_in)
    client.post(reverse("sign-in"), sign_in | {"password": testing.PASSWORD})
    stranger = Client(REMOTE_ADDR=planted.ADDRESS, HTTP_USER_AGENT=planted.BROWSER)
    for typed in (identity["email"], identity["username"].upper()):
        stranger.post(reverse("sign-in"), {"username": typed, "password": "wrong"})
    first, second = submission.trajectories.order_by("position")[:2]
    workflow.claim_this(people["alice"], first)
    workflow.submit(people["alice"], first, testing.content(first, 1))
    workflow.claim_this(people["alice"], second)
    workflow.save_draft(people["alice"], second, {"reasoning": f"Ask {identity['last_name']}."}, 0)
    client.post(reverse("add-phrase"), {"text": f"As {identity['first_name']}"})
    moved = {"email": f"new-{identity['email']}", "password": testing.PASSWORD}
    assert client.post(reverse("change-address"), moved).status_code == 302
    client.post(reverse("choose-mail"), {})
    SocialAccount.objects.create(user=people["alice"], provider="https://login.example", uid=identity["email"])
    ApiToken.issue(people["alice"], f"laptop of {identity['first_name']}", "admin")
    package = SimpleUploadedFile(f"{identity['last_name']}.zip", b"no zip")
    upload = testing.receive_upload(people["alice"], benchmark=submission.benchmark, agent="X", file=package)
    Upload.objects.filter(pk=upload.pk).update(finished_at=timezone.now())
    changed_in_the_administration(people["alice"], identity)
    words = [*identity.values(), planted.ADDRESS, planted.BROWSER]
    return {"submission": submission, "people": people, "words": words, "client": client, "identity": identity}


def changed_in_the_administration(person: Person, identity: dict[str, str]) -> None:
    admin = Client()
    admin.force_login(Person.objects.get(username="root"))
    joined = person.date_joined
    fields = identity | {
        "is_active": "on",
        "date_joined_0": f"{joined:%Y-%m-%d}",
        "date_joined_1": f"{joined:%H:%M:%S}",
    }
    answer = admin.post(reverse("admin:annotation_person_change", args=[person.pk]), fields)
    assert answer.status_code == 302, answer.content.decode()
    assert LogEntry.objects.filter(object_id=str(person.pk)).exists()


def test_identities_are_in_the_tables_that_are_listed_and_in_no_other(lived):
    found = tables_with(lived["words"])
    assert sorted(found) == sorted(KNOWN)
    page = (django_settings.BASE_DIR / "docs" / "privacy.md").read_text(encoding="utf-8")
    assert [table for table in KNOWN if f"`{table}`" not in page] == []


def test_who_is_erased_is_in_no_table_and_in_no_file(lived):
    assert files_with(lived["words"]) or connection.vendor != "sqlite"
    workflow.erase(lived["people"]["mira"], lived["people"]["alice"], "They asked for it.")
    assert not Message.objects.exists()
    assert not MailOptOut.objects.exists()
    assert tables_with(lived["words"]) == {}
    assert files_with(lived["words"]) == {}


def test_what_was_said_stays_under_the_pseudonym_and_every_chain_holds(lived):
    submission, people = lived["submission"], lived["people"]
    workflow.erase(people["mira"], people["alice"], "They asked for it.")
    member = Membership.objects.get(submission=submission, pseudonym="A1")
    assert member.deactivated_at is not None
    assert member.person.username.startswith("erased-")
    assert [member.person.is_active, member.person.has_usable_password()] == [False, False]
    assert submission.trajectories.filter(assignments__annotator=member.person).count() == 1
    assert integrity.problems(submission) == []
    kinds = list(Event.objects.filter(submission=submission).values_list("kind", "actor_pseudonym"))[-2:]
    assert kinds == [("lease_expired", "A1"), ("member_deactivated", "A1")]
    instance = Event.objects.filter(submission=None)
    assert first_broken(instance) is None
    assert [event.kind for event in instance] == ["account_changed", "person_erased"]  # the first by the administration
    assert instance.last().payload == {"person": people["alice"].pk, "reason": "They asked for it."}


def test_what_was_held_goes_back_into_the_queue(lived):
    people, submission = lived["people"], lived["submission"]
    second = submission.trajectories.get(position=1)
    assert second.open_slots == 2
    workflow.erase(people["alice"], people["alice"], "at their own request")
    second.refresh_from_db()
    assert second.open_slots == 3
    assert not Draft.objects.filter(author=people["alice"]).exists()
    assert not Phrase.objects.exists()


def test_nobody_is_signed_in_any_more(lived):
    client, people = lived["client"], lived["people"]
    token = ApiToken.issue(people["alice"], "script", "admin")[1]
    assert client.get(reverse("home")).status_code == 200
    workflow.erase(people["mira"], people["alice"], "They asked for it.")
    assert client.get(reverse("home")).status_code == 302
    assert Client().get("/api/v1/tokens", headers={"Authorization": f"Bearer {token}"}).status_code == 401


# --- closed records ---------------------------------------------------------------------------------------------------


@pytest.fixture
def cast(db, tmp_path, settings):
    settings.MEDIA_ROOT = tmp_path / "images"
    submission = testing.submission(tmp_path / "package", trajectories=2)
    return submission, testing.cast(submission)


def finish(submission, people):
    testing.label_all(people, submission, {"task_0000": [1, 0, 1]})
    workflow.draw_spot_checks(people["mira"], submission)
    testing.adjudicate_all(people["carol"], submission)
    workflow.freeze(people["mira"], submission)


def exported(submission, path, export_format):
    call_command("export_submission", str(submission.pk), "--format", export_format, "--output", str(path))
    return path.read_bytes()


def test_erasing_changes_no_frozen_record_and_no_export(cast, tmp_path):
    submission, people = cast
    finish(submission, people)
    formats = ("human-label", "labels", "trajectories-v2")
    before = [exported(submission, tmp_path / f"before-{name}.zip", name) for name in formats]
    head = Event.objects.filter(submission=submission).latest("sequence").hash
    for name in ("alice", "carol", "mira"):
        workflow.erase(None, people[name], "All of them left.")
    assert [exported(submission, tmp_path / f"after-{name}.zip", name) for name in formats] == before
    assert Event.objects.filter(submission=submission).latest("sequence").hash == head
    assert integrity.problems(submission) == []


def test_an_open_adjudication_of_who_is_erased_is_given_back(cast):
    submission, people = cast
    testing.label_all(people, submission, {"task_0000": [1, 0, 1]})
    disputed = submission.trajectories.get(position=0)
    workflow.open_adjudication(people["carol"], disputed)
    workflow.erase(people["mira"], people["carol"], "She left.")
    assert not disputed.adjudications.exists()
    kinds = list(Event.objects.filter(submission=submission).values_list("kind", "actor_pseudonym"))[-2:]
    assert kinds == [("adjudication_left", "Q1"), ("member_deactivated", "Q1")]


# --- who may, and what is refused -------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["alice", "carol", "dave"])
def test_only_the_person_and_maintainers_of_the_instance_erase(cast, name):
    _, people = cast
    with pytest.raises(PermissionDenied):
        workflow.erase(people[name], people["bob"], "I do not like bobs.")
    assert workflow.erase(people[name], people[name], "I leave.").erased_at is not None


def test_the_last_maintainer_of_an_open_submission_stays_until_somebody_else_is_one_or_that_is_accepted(cast):
    submission, people = cast
    mira = people["mira"]
    with pytest.raises(workflow.LastMaintainer, match=f"Nobody else maintains the open submission {submission.pk}\\."):
        workflow.erase(None, mira, "She left.")
    mira.refresh_from_db()
    assert (mira.username, mira.memberships.get().deactivated_at) == ("mira", None)
    workflow.add_member(mira, submission, people["dave"], Role.MAINTAINER)
    assert workflow.erase(None, mira, "She left.").erased_at is not None
    assert workflow.erase(None, people["dave"], "He too.", accept_unmaintained=True).erased_at is not None


def test_staff_do_not_erase_who_runs_the_instance(cast):
    root = testing.person("root", is_superuser=True)
    testing.person("other-root", is_superuser=True)
    with pytest.raises(PermissionDenied):
        workflow.erase(cast[1]["mira"], root, "They left.")


def test_the_last_who_runs_the_instance_stays(cast):
    root = testing.person("root", is_superuser=True)
    testing.person("gone", is_superuser=True, is_active=False)
    with pytest.raises(Conflict, match="last operator's account"):
        workflow.erase(root, root, "I leave.")
    testing.person("other-root", is_superuser=True)
    assert workflow.erase(root, root, "I leave.").is_superuser is False


def test_nobody_is_erased_twice(cast):
    _, people = cast
    workflow.erase(people["mira"], people["bob"], "He left.")
    with pytest.raises(Conflict, match="already"):
        workflow.erase(people["mira"], people["bob"], "He left.")


def test_a_stand_in_is_nobody_to_erase(cast):
    stand_in = testing.person("stand-in", stand_in=True)
    with pytest.raises(Conflict, match="cannot be erased"):
        workflow.erase(cast[1]["mira"], stand_in, "Who is this?")


@pytest.mark.parametrize("reason", ["", "Bob left.", "bob@people.example asked for it."])
def test_the_reason_is_given_and_does_not_say_who(cast, reason):
    _, people = cast
    with pytest.raises(Incomplete) as refused:
        workflow.erase(people["mira"], people["bob"], reason)
    assert [problem.where for problem in refused.value.problems] == ["reason"]
    assert isinstance(refused.value.problems[0], Problem)
    people["bob"].refresh_from_db()
    assert people["bob"].username == "bob"


# --- page, commands, job ----------------------------------------------------------------------------------------------


def test_a_person_erases_themselves_with_their_password(cast):
    client = Client()
    client.force_login(cast[1]["bob"])
    said = client.get(reverse("erasing")).content.decode()
    assert "cannot be undone" in said
    assert "A2" in said
    refused = client.post(reverse("erase-account"), {"password": "wrong"})
    assert (refused.status_code, Person.objects.filter(username="bob").exists()) == (400, True)
    done = client.post(reverse("erase-account"), {"password": testing.PASSWORD}, follow=True)
    assert "Your account has been erased." in done.content.decode()
    assert not Person.objects.filter(username="bob").exists()
    assert client.get(reverse("account")).status_code == 302


def test_page_and_command_ask_the_last_maintainer_of_an_open_submission(cast):
    submission, people = cast
    assert "stay without a maintainer" not in page_of(people["bob"])
    assert f"submission {submission.pk}</span>" in page_of(people["mira"])
    with pytest.raises(CommandError, match="--accept-unmaintained"):
        call_command("erase_person", "mira", "--reason", "She left.", "--yes")
    client = Client()
    client.force_login(people["mira"])
    sent = {"password": testing.PASSWORD}
    refused = client.post(reverse("erase-account"), sent)
    assert (refused.status_code, 'href="#accept-unmaintained"' in refused.content.decode()) == (409, True)
    client.post(reverse("erase-account"), sent | {"accept_unmaintained": "1"})
    assert not Person.objects.filter(username="mira").exists()


def page_of(person: Person) -> str:
    client = Client()
    client.force_login(person)
    return client.get(reverse("erasing")).content.decode()


def test_who_was_erased_is_not_let_back_in_nor_invited(cast):
    submission, people = cast
    workflow.erase(people["mira"], people["bob"], "He left.")
    mira = Client()
    mira.force_login(people["mira"])
    listed = mira.get(reverse("people", args=[submission.pk])).content.decode()
    assert "erased" in listed
    for address in ("reactivate-person", "invite-again"):
        assert mira.post(reverse(address, args=[submission.pk, people["bob"].pk])).status_code == 409
        assert reverse(address, args=[submission.pk, people["bob"].pk]) not in listed


def test_the_command_erases_and_needs_a_yes_where_nobody_can_be_asked(cast, capsys):
    with pytest.raises(CommandError, match="--yes"):
        call_command("erase_person", "bob", "--reason", "He left.")
    call_command("erase_person", "bob", "--reason", "He left.", "--yes")
    assert "erased-" in capsys.readouterr().out
    assert Event.objects.get(submission=None).actor is None
    with pytest.raises(CommandError, match="The person bob does not exist"):
        call_command("erase_person", "bob", "--reason", "He left.", "--yes")
    with pytest.raises(CommandError, match="name and address"):
        call_command("erase_person", "chen", "--reason", "Chen left.", "--yes")


def test_records_of_sign_ins_are_forgotten_after_a_day(cast):
    client = Client(REMOTE_ADDR=planted.ADDRESS)
    client.post(reverse("sign-in"), {"username": "bob", "password": "wrong"})
    client.post(reverse("sign-in"), {"username": "alice", "password": testing.PASSWORD})
    assert sign_ins.attempts_of(cast[1]["bob"]).count() == 1
    assert sign_ins.forget_sign_ins() == 0
    sign_ins.attempts_of(cast[1]["bob"]).update(attempt_time=timezone.now() - 2 * sign_ins.KEPT)
    [session] = sign_ins.sessions_of(cast[1]["alice"].pk)
    type(session).objects.update(expire_date=timezone.now())
    assert sign_ins.forget_sign_ins() == 2
    assert sorted(tables_with([planted.ADDRESS])) == ["annotation_signin"]  # for longer: test_sign_in_log.py


def test_a_reactivated_role_is_not_needed_to_read_the_record(cast):
    """An erased maintainer leaves a submission that another maintainer can go on with."""
    submission, people = cast
    workflow.add_member(people["mira"], submission, people["dave"], Role.MAINTAINER)
    workflow.erase(people["mira"], people["mira"], "I leave.")
    finish(submission, people | {"mira": people["dave"]})
    assert json.loads(json.dumps(integrity.problems(submission))) == []
