"""Many people invited with one CSV file: on the page and by the command, all or nobody."""

from __future__ import annotations

import csv
import io
import re
from pathlib import Path
from typing import Any

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile
from django.core.management import CommandError, call_command
from django.test import Client
from django.urls import reverse

from annotation import invitations, jobs, workflow
from annotation.formats.people_csv import LARGEST_FILE, MOST_ROWS
from annotation.models import Event, Membership, Message, Person, Submission
from annotation.models.events import first_broken
from annotation.tests import smtp, testing
from annotation.tests.shared_rows import shared_rows
from annotation.tests.test_concurrency import at_once
from annotation.workflow import Conflict

People = dict[str, Person]
HEADER = "name,e-mail,role,submission"
NEW = {"new_password1": "a long walk home", "new_password2": "a long walk home"}


@shared_rows
def other(folder: Path) -> Submission:
    """A submission that mira does not maintain."""
    return testing.submission(folder, trajectories=1, agent="Other Agent")


@pytest.fixture
def mira(client: Client, people: People) -> Client:
    client.force_login(people["mira"])
    return client


def lines(*rows: str, header: str = HEADER) -> bytes:
    return "\n".join([header, *rows]).encode()


def upload(client: Client, data: bytes, **fields: Any) -> Any:
    file = SimpleUploadedFile("people.csv", data, "text/csv")
    return client.post(reverse("upload-people"), {"people": file} | fields)


def invite(people: People, *rows: str, **options: Any) -> invitations.Report:
    return invitations.invite_all(people["mira"], lines(*rows), "people.csv", **options)


def problems(people: People, *rows: str) -> list[tuple[str, str]]:
    """The codes and messages of a file that is refused, after which everything is as before."""
    before = count_rows()
    report = invite(people, *rows)
    assert report.problems
    assert not report.outcomes
    assert count_rows() == before
    return [(problem.code, problem.message) for problem in report.problems]


def count_rows() -> list[int]:
    return [model.objects.count() for model in (Person, Membership, Event, Message)]


def roles_of(submission: Submission, name: str) -> list[str]:
    return list(submission.memberships.filter(person__username=name).values_list("role", flat=True))


def download_links(client: Client, page: Any) -> list[dict[str, str]]:
    people = re.findall(r'name="person" value="(\d+)"', page.content.decode())
    text = client.post(reverse("invitation-links"), {"person": people}).content.decode()
    return list(csv.DictReader(io.StringIO(text)))


# --- what it does -----------------------------------------------------------------------------------------------------


def test_new_people_are_invited_and_join_with_the_links_of_the_file(mira: Client, submission: Submission) -> None:
    page = upload(mira, lines(f"Erin Example,erin@people.example,annotator,{submission.pk}"))

    assert "1 invited, 0 added to a submission, 0 unchanged" in page.content.decode()
    assert roles_of(submission, "Erin-Example") == ["annotator"]
    assert first_broken(submission.events.order_by("sequence")) is None
    [row] = download_links(mira, page)
    assert (row["name"], row["e-mail"]) == ("Erin-Example", "erin@people.example")
    guest = Client()
    form = guest.get(row["link"], follow=True)
    joined = guest.post(form.redirect_chain[-1][0], NEW, follow=True)
    assert joined.request["PATH_INFO"] == reverse("work", args=[submission.pk])
    assert download_links(mira, page) == []  # no second link to the account of somebody who has joined


def test_existing_person_is_added_and_told(people: People, submission: Submission) -> None:
    report = invite(people, f"dave,DAVE@people.example,adjudicator,{submission.pk}")

    assert [outcome.done for outcome in report.outcomes] == ["added"]
    assert roles_of(submission, "dave") == ["adjudicator"]
    assert Person.objects.filter(email__iexact="dave@people.example").count() == 1
    assert "/home" in Message.objects.get(person=people["dave"]).link


def test_same_file_again_changes_nothing(people: People, submission: Submission) -> None:
    rows = [
        f"erin,erin@people.example,annotator,{submission.pk}",
        f"dave,dave@people.example,annotator,{submission.pk}",
    ]
    invite(people, *rows)
    before = count_rows()

    report = invite(people, *rows)

    assert [outcome.done for outcome in report.outcomes] == ["unchanged", "unchanged"]
    assert [person.username for person in report.without_mail] == ["erin"]  # whose link can be downloaded again
    assert count_rows() == before


def test_operator_who_uploads_known_people_joins_no_submission(people: People, submission: Submission) -> None:
    root = Person.objects.create_superuser("root", password=testing.PASSWORD)
    before = count_rows()

    data = lines(f"alice,alice@people.example,annotator,{submission.pk}")
    report = invitations.invite_all(root, data, "people.csv")

    assert report.summary == "0 invited, 0 added to a submission, 1 unchanged."
    assert count_rows() == before


def test_person_of_several_submissions_gets_one_mail(
    people: People, submission: Submission, other: Submission, settings: Any
) -> None:
    workflow.join_as_maintainer(other, people["mira"])
    with smtp.serve(settings) as mailbox:
        report = invite(
            people,
            f"erin,erin@people.example,annotator,{other.pk}",
            f"erin,erin@people.example,adjudicator,{submission.pk}",
        )
        jobs.send_messages()
        assert mailbox.recipients == ["erin@people.example"]
        text = mailbox.text()
    assert f"submission {other.pk}, as annotator; submission {submission.pk}, as adjudicator" in text
    assert len(re.findall(r"/join/", text)) == 1
    assert report.without_mail == []


def test_check_saves_nothing(mira: Client, submission: Submission) -> None:
    before = count_rows()
    page = upload(mira, lines(f"erin,erin@people.example,annotator,{submission.pk}"), dry_run="on").content.decode()

    assert "No problems. Nobody was invited yet." in page
    assert "Download invitation links" not in page
    assert count_rows() == before


@pytest.mark.parametrize(
    ("header", "row"),
    [
        ("name;e-mail;role;submission;language", "erin;erin@people.example;annotator;{};de"),
        ("\ufeffName,Email,Role,Submission", "  erin , erin@people.example ,Annotator, {} "),
        ("submission,role,e_mail,name", '{},annotator,erin@people.example,"erin"\r\n\r\n'),
    ],
)
def test_spellings_of_the_file_that_are_accepted(people: People, submission: Submission, header: str, row: str) -> None:
    data = lines(row.format(submission.pk), header=header)
    report = invitations.invite_all(people["mira"], data, "people.csv")

    assert report.problems == []
    assert roles_of(submission, "erin") == ["annotator"]
    assert [warning.code for warning in report.warnings] == (["language_ignored"] if "language" in header else [])


# --- what it refuses --------------------------------------------------------------------------------------------------


def test_all_problems_are_listed_with_their_lines_and_nobody_is_invited(
    mira: Client, people: People, submission: Submission
) -> None:
    before = count_rows()
    good = f"erin,erin@people.example,annotator,{submission.pk}"
    page = upload(mira, lines(good, f"O'Brien,nowhere,auditor,{submission.pk}", "dave,dave@people.example,annotator,x"))

    assert page.status_code == 400
    text = page.content.decode()
    for code in ("name_invalid", "email_invalid", "role_unknown", "submission_invalid"):
        assert code in text
    assert re.findall(r"people\.csv: line (\d)", text) == ["3", "3", "3", "4"]
    assert "Nobody was invited" in text
    assert count_rows() == before


def test_submission_of_others_is_refused_as_one_that_does_not_exist(people: People, other: Submission) -> None:
    workflow.join_as_maintainer(other, testing.person("rita", is_staff=True))
    absent = other.pk + 1000

    [(code, message), (other_code, other_message)] = problems(
        people, f"erin,erin@people.example,annotator,{other.pk}", f"fay,fay@people.example,annotator,{absent}"
    )

    assert code == other_code == "submission_unknown"
    assert message.replace(str(other.pk), "") == other_message.replace(str(absent), "").replace("line 3", "line 2")


def test_operator_may_invite_to_every_submission(people: People, other: Submission) -> None:
    root = Person.objects.create_superuser("root", password=testing.PASSWORD)
    invitations.invite_all(root, lines(f"erin,erin@people.example,annotator,{other.pk}"), "people.csv")

    assert roles_of(other, "erin") == ["annotator"]
    assert roles_of(other, "root") == ["maintainer"]  # as in every other change by an operator


@pytest.mark.parametrize(
    ("row", "code"),
    [
        ("dave,erin@people.example,annotator,{}", "name_taken"),
        ("erin,dave@people.example,annotator,{}", "address_taken"),
        ("alice,alice@people.example,adjudicator,{}", "member_refused"),
        ("erin,erin@people.example,auditor,{}", "role_unknown"),
        ("erin,erin@people.example,operator,{}", "role_unknown"),
        ("erin,erin@people.example,annotator,-{}", "submission_invalid"),
        ("erin,erin@people.example,annotator,9{:018}", "field_too_long"),
        ("\ufdfa" * 20 + ",erin@people.example,annotator,{}", "field_too_long"),  # 18 characters each when normalised
        ("\uff41lice,erin@people.example,annotator,{}", "name_taken"),
        (",erin@people.example,annotator,{}", "field_empty"),
        ("er\u200bin,erin@people.example,annotator,{}", "field_unprintable"),
        ("=1+1,erin@people.example,annotator,{}", "name_invalid"),
        ("erin,erin@people.example,annotator,{},more", "row_length"),
    ],
)
def test_line_is_refused(people: People, submission: Submission, row: str, code: str) -> None:
    [(found, message)] = problems(people, row.format(submission.pk))

    assert found == code
    assert "people.csv: line 2: " in message


@pytest.mark.parametrize(
    ("second", "code"),
    [
        ("erin,ERIN@people.example,annotator,{}", "person_repeated"),
        ("erin,erin@people.example,adjudicator,{}", "person_repeated"),
        ("fay,erin@people.example,annotator,{}", "person_conflict"),
        ("Erin,fay@people.example,annotator,{}", "person_conflict"),
    ],
)
def test_lines_that_contradict_each_other_are_refused(
    people: People, submission: Submission, second: str, code: str
) -> None:
    rows = ["erin,erin@people.example,annotator,{}", second]
    [(found, message)] = problems(people, *(row.format(submission.pk) for row in rows))

    assert found == code
    assert re.search(r"line 3: .* line 2", message)


@pytest.mark.parametrize(
    ("data", "code"),
    [
        (b"", "column_missing"),
        (HEADER.encode(), "rows_missing"),
        (b"name,e-mail,role\nerin,erin@people.example,annotator", "column_missing"),
        (b"name\te-mail\trole\tsubmission", "csv_separator"),
        (f"{HEADER},role\n".encode(), "column_twice"),
        (lines("M\u00fcller,m@people.example,annotator,1").decode().encode("latin-1"), "not_utf8"),
        (lines("erin,erin@people.example,annotator,1").decode().encode("utf-16"), "not_utf8"),
        (lines("er\x00in,erin@people.example,annotator,1"), "nul_character"),
        (lines('"erin,erin@people.example'), "csv_invalid"),
        (lines(f"{'x' * 140_000},erin@people.example,annotator,1"), "csv_invalid"),
        (lines(*(f"p{n},p{n}@people.example,annotator,1" for n in range(MOST_ROWS + 1))), "too_many_rows"),
        (b"x" * (LARGEST_FILE + 1), "file_too_large"),
        (b"PK\x03\x04", "not_utf8"),
    ],
)
def test_file_is_refused(people: People, data: bytes, code: str) -> None:
    report = invitations.invite_all(people["mira"], data, "people.csv")

    assert [problem.code for problem in report.problems] == [code]


def test_page_refuses_a_large_file_before_it_reads_it(mira: Client) -> None:
    page = upload(mira, b"x" * (LARGEST_FILE + 1))

    assert page.status_code == 400
    assert f"at most {LARGEST_FILE:,} are accepted" in page.content.decode()


def test_closed_and_deactivated_people_are_refused(people: People, submission: Submission) -> None:
    Person.objects.filter(username="dave").update(is_active=False)
    workflow.deactivate_member(people["mira"], submission, people["bob"])

    found = problems(
        people,
        f"dave,dave@people.example,annotator,{submission.pk}",
        f"bob,bob@people.example,annotator,{submission.pk}",
    )

    assert [code for code, _ in found] == ["account_closed", "member_deactivated"]


def test_erased_person_is_not_recognised(people: People, submission: Submission) -> None:
    workflow.erase(people["dave"], people["dave"], "Leaving.")

    report = invite(people, f"dave,dave@people.example,annotator,{submission.pk}")

    assert [outcome.done for outcome in report.outcomes] == ["invited"]


def test_account_that_is_created_meanwhile_stops_the_upload(
    people: People, submission: Submission, monkeypatch: pytest.MonkeyPatch
) -> None:
    create = Person.objects.create_user

    def create_twice(*args: Any) -> Person:
        create(*args)
        return create(*args)

    monkeypatch.setattr(Person.objects, "create_user", create_twice)
    before = count_rows()

    with pytest.raises(Conflict, match="Nobody was invited"):
        invite(people, f"erin,erin@people.example,annotator,{submission.pk}")
    assert count_rows() == before


@pytest.mark.django_db(transaction=True)
def test_two_uploads_at_once_invite_everybody_once() -> None:
    submission = testing.bare_submission(1)
    people = testing.cast(submission)
    rows = [f"p{number},p{number}@people.example,annotator,{submission.pk}" for number in range(5)]

    outcomes = at_once(4, lambda number: invite(people, *(rows if number % 2 else reversed(rows))))

    assert all(isinstance(each, invitations.Report | Conflict) for each in outcomes), outcomes
    assert [each for each in outcomes if isinstance(each, invitations.Report) and each.problems] == []
    assert Person.objects.filter(username__startswith="p").count() == 5
    added = Event.objects.filter(submission=submission, kind="member_added")
    assert added.count() == submission.memberships.count() == 10
    assert first_broken(submission.events.order_by("sequence")) is None


# --- who may do it ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["alice", "carol", "dave"])
def test_only_maintainers_of_the_instance_may_invite(
    client: Client, people: People, submission: Submission, name: str
) -> None:
    client.force_login(people[name])
    before = count_rows()

    assert client.get(reverse("invite-many")).status_code == 403
    assert upload(client, lines(f"erin,erin@people.example,annotator,{submission.pk}")).status_code == 403
    assert client.post(reverse("invitation-links"), {"person": [people["bob"].pk]}).status_code == 403
    assert count_rows() == before


def test_links_of_other_people_are_not_given(mira: Client, people: People, other: Submission) -> None:
    rita = testing.person("rita", is_staff=True)
    workflow.join_as_maintainer(other, rita)
    data = lines(f"erin,erin@people.example,annotator,{other.pk}")
    invitations.invite_all(rita, data, "people.csv")
    asked = [Person.objects.get(username="erin").pk, people["alice"].pk, "x", "9" * 30]

    answer = mira.post(reverse("invitation-links"), {"person": asked})

    assert answer.content.decode() == "name,e-mail,link\r\n"
    assert "no-store" in answer["Cache-Control"]


def test_file_of_links_contains_no_formula(people: People, submission: Submission) -> None:
    invite(people, f"@sum,=cmd@people.example,annotator,{submission.pk}")
    person = Person.objects.get(username="@sum")

    [_, row] = csv.reader(io.StringIO(invitations.write_links(people["mira"], [person], "https://x.example")))

    assert row[:2] == ["'@sum", "'=cmd@people.example"]


def test_page_lists_the_submissions_of_the_person_only(mira: Client, submission: Submission, other: Submission) -> None:
    page = mira.get(reverse("invite-many")).content.decode()

    assert "Careful Agent" in page
    assert "Other Agent" not in page


# --- the command ------------------------------------------------------------------------------------------------------


def run(capsys: Any, *arguments: Any) -> str:
    call_command("invite_people", *map(str, arguments))
    return str(capsys.readouterr().out)


def test_command_invites_and_writes_the_links_once(
    people: People, submission: Submission, tmp_path: Path, capsys: Any
) -> None:
    file, links = tmp_path / "people.csv", tmp_path / "links.csv"
    file.write_bytes(lines(f"erin,erin@people.example,annotator,{submission.pk}"))

    assert "1 invited" in run(capsys, file, "--as", "mira", "--dry-run")
    assert roles_of(submission, "erin") == []
    assert "1 person without e-mail. Run the command again with --links" in run(capsys, file, "--as", "mira")
    assert "1 unchanged" in run(capsys, file, "--as", "mira", "--links", links)
    [row] = csv.DictReader(io.StringIO(links.read_text()))
    assert "/join/" in row["link"]
    assert links.stat().st_mode & 0o777 == 0o600
    with pytest.raises(CommandError, match="exists") as refused:
        run(capsys, file, "--as", "mira", "--links", links)
    assert refused.value.returncode == 2


def test_command_lists_the_problems(people: People, tmp_path: Path, capsys: Any) -> None:
    file = tmp_path / "people.csv"
    file.write_bytes(lines("erin,nowhere,annotator,1000"))

    with pytest.raises(CommandError, match="1 problem; nobody was invited") as refused:
        run(capsys, file, "--as", "mira")
    assert refused.value.returncode == 1
    assert "problem: email_invalid: people.csv: line 2: e-mail is 'nowhere'" in capsys.readouterr().err
    with pytest.raises(CommandError, match="alice may not invite people"):
        run(capsys, file, "--as", "alice")
