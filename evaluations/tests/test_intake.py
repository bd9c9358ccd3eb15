"""A benchmark takes entries: from the submitter's bundle to the owners' decision, and what happens afterwards."""

from __future__ import annotations

import io
import json
import zipfile
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from django.core.exceptions import PermissionDenied
from django.core.files.uploadedfile import SimpleUploadedFile
from django.http import Http404
from django.test import Client
from django.urls import reverse
from django.utils import timezone

from annotation import workflow
from annotation.models import Affiliation, Benchmark, Membership, Person
from annotation.tests import testing
from annotation.tests.test_api_uploads import zip_of
from annotation.workflow import Conflict, Incomplete
from evaluations import jobs
from evaluations.auditing import actions
from evaluations.models import BundleUpload, Entry, EntryEvent, EntryRow, Intake, Owner
from evaluations.registry import chain, entries, published
from evaluations.registry.chain import Kind, State
from evaluations.registry.entries import SentFile
from evaluations.registry.scoring import Change
from evaluations.tests.audited import auditor, client_of, work
from evaluations.tests.finished import finish

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("store")]
DESCRIPTION = {
    "agent": "Pathfinder",
    "organisation": "Acme",
    "model": "m-5",
    "relationship": "third_party",
    "contact": "sam@example.org",
}


@pytest.fixture(scope="session")
def data(bundles: dict[str, Path]) -> bytes:
    """A bundle of two trajectories, both successes, signed by a key of another instance."""
    return bundles["files"].read_bytes()


def read_key(data: bytes) -> str:
    with zipfile.ZipFile(io.BytesIO(data)) as package:
        key: str = json.loads(package.read("SIGNATURE.json"))["public_key"]
    return key


@pytest.fixture
def olga() -> Person:
    return auditor("olga")


@pytest.fixture
def sam() -> Person:
    return testing.person("sam")


@pytest.fixture
def intake(olga: Person) -> Intake:
    benchmark = Benchmark.objects.create(slug="web-tasks", name="Web tasks")
    return entries.configure(olga, benchmark, public=True, contact="olga@example.org")


def file(data: bytes) -> SimpleUploadedFile:
    return SimpleUploadedFile("theirs.zip", data, "application/zip")


def submit(person: Person, intake: Intake, data: bytes, **description: Any) -> Entry:
    return entries.submit(person, intake, DESCRIPTION | description, SentFile(file(data)), lambda pk: None)


def checked(person: Person, intake: Intake, data: bytes, **description: Any) -> Entry:
    made = submit(person, intake, data, **description)
    work()
    made.refresh_from_db()
    return made


def kinds(entry: Entry) -> list[str]:
    return list(entry.events.values_list("kind", flat=True))


def results(entry: Entry) -> dict[str, str]:
    last = entry.events.filter(kind=Kind.CHECKED).latest("sequence")
    return {each["name"]: each["result"] for each in last.facts["checks"]}


def test_entry_is_checked_by_a_worker_and_readable_by_every_owner(
    intake: Intake, olga: Person, sam: Person, data: bytes
) -> None:
    pete = auditor("pete")
    entries.add_owner(olga, intake.benchmark, pete)
    entry = checked(sam, intake, data)
    assert kinds(entry) == ["submitted", "checked"]
    assert entry.audit is not None
    readers = entry.audit.submission.memberships.filter(role=Membership.Role.AUDITOR)
    assert {each.person.username for each in readers} == {"olga", "pete"}
    found = results(entry)
    assert found["bundle"] == "pass"
    assert found["signature"] == "note"  # no partner's key is registered
    assert found["duplicates"] == "pass"


def test_signer_is_known_if_the_intake_names_its_key(intake: Intake, olga: Person, sam: Person, data: bytes) -> None:
    entries.configure(olga, intake.benchmark, trusted_keys=read_key(data))
    intake.refresh_from_db()
    assert results(checked(sam, intake, data))["signature"] == "pass"


def test_bundle_that_cannot_be_opened_is_told_and_can_be_replaced(
    intake: Intake, olga: Person, sam: Person, data: bytes
) -> None:
    entry = checked(sam, intake, b"nothing")
    assert results(entry) == {"bundle": "fail"}
    assert "not a zip" in entry.events.latest("sequence").facts["checks"][0]["says"]
    with pytest.raises(Conflict, match="could not be opened"):
        entries.accept(olga, entry, "Fine.")
    entries.answer(sam, entry, "The right file.", SentFile(file(data)), lambda pk: None)
    with pytest.raises(Conflict, match="after the file was checked"):
        entries.answer(sam, entry, "Again.", SentFile(file(data)), lambda pk: None)
    work()
    entry.refresh_from_db()
    assert kinds(entry) == ["submitted", "checked", "answered", "checked"]
    assert entry.audit is not None


def test_checks_are_recorded_once_and_caught_up_after_a_killed_worker(intake: Intake, sam: Person, data: bytes) -> None:
    entry = submit(sam, intake, data)
    upload = str(entry.upload_id)
    entries.record_checks(upload)
    assert kinds(entry) == ["submitted"]  # not opened yet
    assert entries.find_unchecked() == []
    work()
    entries.record_checks(upload)
    assert kinds(entry) == ["submitted", "checked"]
    assert entries.find_unchecked() == []
    # As if the worker had died between opening the bundle and its checks.
    other = submit(sam, intake, b"nothing")
    BundleUpload.objects.filter(pk=other.upload_id).update(finished_at=other.submitted_at, refused="Not a zip.")
    assert entries.find_unchecked() == [str(other.upload_id)]
    jobs.record_checks(str(other.upload_id))
    assert results(other) == {"bundle": "fail"}


def test_same_bundle_twice_is_a_duplicate(intake: Intake, sam: Person, data: bytes) -> None:
    checked(sam, intake, data)
    again = checked(sam, intake, data, agent="Other name")
    assert results(again)["duplicates"] == "fail"
    third = checked(sam, intake, b"nothing", agent="pathfinder")
    assert results(third) == {"bundle": "fail"}


def test_tasks_of_the_benchmark_are_compared_with_the_bundle(intake: Intake, sam: Person, data: bytes) -> None:
    intake.benchmark.tasks.create(external_id="not-there", text="Buy a lamp.")
    entry = checked(sam, intake, data)
    assert results(entry)["tasks"] == "fail"


def test_accepting_publishes_figures_and_rows(intake: Intake, olga: Person, sam: Person, data: bytes) -> None:
    entry = checked(sam, intake, data)
    assert not published.find_entries(intake.benchmark)
    version = entries.accept(olga, entry, "Checked.")
    rows = published.rows_of(version)
    counted = [row for row in rows if row.included]
    assert version.rate == sum(row.verdict == 1 for row in counted) / len(counted)
    assert version.low is not None
    assert version.low <= version.rate <= (version.high or 0)
    assert version.rows == len(counted) == version.entry.audit.submission.trajectories.count()
    assert [each.pk for each in published.find_entries(intake.benchmark)] == [entry.pk]
    assert [place.rank for place in published.load_board("web-tasks").rank()] == [1]
    with pytest.raises(Conflict, match="accepted"):
        entries.reject(olga, entry, "Too late.")


def test_new_score_is_a_version_and_the_earlier_one_stays(
    intake: Intake, olga: Person, sam: Person, data: bytes
) -> None:
    entry = checked(sam, intake, data)
    first = entries.accept(olga, entry, "Checked.")
    before = {row.task_id: (row.verdict, row.included) for row in published.rows_of(first)}
    success = next(task for task, (verdict, _) in before.items() if verdict == 1)
    second = entries.rescore(olga, entry, {success: Change("The site is gone.", included=False)}, "The site is gone.")
    assert second.number == 2
    assert second.rows == first.rows - 1
    assert EntryRow.objects.filter(version=second).count() == 1
    assert {row.task_id: (row.verdict, row.included) for row in published.rows_of(first)} == before
    now = {row.task_id: row for row in published.rows_of(second)}[success]
    assert (now.included, now.reason) == (False, "The site is gone.")
    # Another change keeps the first one; a changed verdict counts in the rate.
    other = next(task for task in before if task != success)
    verdict = 0 if before[other][0] == 1 else 1
    third = entries.rescore(olga, entry, {other: Change("The rubric was wrong.", verdict)}, "The rubric was wrong.")
    assert third.rows == second.rows
    assert third.rate != second.rate
    with pytest.raises(Incomplete, match="no task nowhere"):
        entries.rescore(olga, entry, {"nowhere": Change("x")}, "x")
    assert entry.versions.count() == 3
    assert chain.find_broken(entry.events.all()) is None


def test_removed_entry_keeps_its_page_and_leaves_the_ranking(
    intake: Intake, olga: Person, sam: Person, data: bytes
) -> None:
    entry = checked(sam, intake, data)
    entries.accept(olga, entry, "Checked.")
    entries.remove(olga, entry, "The agent had seen the answers.")
    found = published.find_entries(intake.benchmark)
    assert [each.pk for each in found] == [entry.pk]
    assert published.load_board("web-tasks").rank() == []
    entries.appeal(sam, entry, "It had not.")
    with pytest.raises(Conflict, match="not decided your last appeal"):
        entries.appeal(sam, entry, "Really.")
    entries.decide_appeal(olga, entry, "Right.", upheld=True)
    entries.restore(olga, entry, "Right.")
    assert len(published.load_board("web-tasks").rank()) == 1


def test_embargoed_entry_is_found_when_the_embargo_is_over(
    intake: Intake, olga: Person, sam: Person, data: bytes
) -> None:
    later = timezone.now() + timedelta(days=1)
    entry = checked(sam, intake, data, embargo_until=later)
    entries.accept(olga, entry, "Checked.")
    assert not published.find_entries(intake.benchmark)
    with pytest.raises(Http404):
        published.find_entry(intake.benchmark, entry.key)
    entries.change_embargo(olga, entry, None, "They published it.")
    assert published.find_entry(intake.benchmark, entry.key) == entry
    with pytest.raises(Conflict, match="public already"):
        entries.change_embargo(olga, entry, later, "Too late.")


def test_owner_does_not_decide_about_an_own_entry(intake: Intake, olga: Person, data: bytes) -> None:
    entries.add_owner(olga, intake.benchmark, auditor("pete"))
    entry = checked(olga, intake, data)
    for act in (entries.accept, entries.reject, entries.query):
        with pytest.raises(PermissionDenied, match="another owner"):
            act(olga, entry, "Mine.")


@pytest.mark.parametrize(
    "act", [entries.accept, entries.query, entries.reject, entries.remove, entries.restore, entries.take_down]
)
def test_only_owners_take_the_actions_of_owners(intake: Intake, sam: Person, data: bytes, act: Any) -> None:
    entry = checked(sam, intake, data)
    for person in (sam, auditor("nora")):
        with pytest.raises(PermissionDenied, match="owners"):
            act(person, entry, "No.")
    assert kinds(entry) == ["submitted", "checked"]


@pytest.mark.parametrize("act", [entries.withdraw, entries.appeal])
def test_only_the_submitter_takes_the_actions_of_submitters(
    intake: Intake, olga: Person, sam: Person, act: Any
) -> None:
    entry = checked(sam, intake, b"nothing")
    with pytest.raises(PermissionDenied, match="submitted"):
        act(olga, entry, "No.")


def test_actions_need_a_reason(intake: Intake, olga: Person, sam: Person, data: bytes) -> None:
    entry = checked(sam, intake, data)
    with pytest.raises(Incomplete, match="Enter a reason"):
        entries.accept(olga, entry, "  ")
    assert kinds(entry) == ["submitted", "checked"]
    assert not entry.versions.exists()


def test_changed_event_breaks_the_chain(intake: Intake, olga: Person, sam: Person, data: bytes) -> None:
    entry = checked(sam, intake, data)
    entries.accept(olga, entry, "Checked.")
    events = list(entry.events.select_related("entry"))
    assert chain.find_broken(events) is None
    events[2].reason = "Not checked."
    assert chain.find_broken(events) == 2
    assert chain.find_broken(events[1:]) == 0


def test_text_that_was_taken_down_leaves_its_digest(intake: Intake, olga: Person, sam: Person, data: bytes) -> None:
    entry = checked(sam, intake, data)
    entries.accept(olga, entry, "Checked by Olga Owner.")
    entries.take_down(olga, entry, "It named a person.", 2)
    shown = published.describe_events(entry)
    assert [each["kind"] for each in shown] == ["submitted", "checked", "accepted", "taken_down"]
    assert (shown[3]["reason"], shown[3]["facts"]) == ("It named a person.", {"event": 2})
    assert chain.find_broken(entry.events.select_related("entry")) is None
    entries.take_down(olga, entry, "Again.", 2)
    assert len(published.describe_events(entry)) == 4
    assert shown[2]["taken_down"] == "It named a person."
    assert "Olga Owner" not in str(shown)
    assert "theirs.zip" not in str(shown)  # the text of an event that is not public
    with pytest.raises(Incomplete, match="no event 7"):
        entries.take_down(olga, entry, "x", 7)


def test_closed_intake_takes_no_entry_and_stores_no_file(intake: Intake, olga: Person, sam: Person) -> None:
    entries.configure(olga, intake.benchmark, closes_at=timezone.now() - timedelta(hours=1))
    intake.refresh_from_db()
    with pytest.raises(Conflict, match="no entries now"):
        submit(sam, intake, b"nothing")
    assert not BundleUpload.objects.exists()
    assert not Entry.objects.exists()


def test_one_person_cannot_fill_the_queue(intake: Intake, sam: Person) -> None:
    for _ in range(entries.MOST_WAITING):
        submit(sam, intake, b"nothing")
    with pytest.raises(Conflict, match="wait for the owners"):
        submit(sam, intake, b"nothing")
    entries.withdraw(sam, Entry.objects.latest("pk"), "Wrong file.")
    submit(sam, intake, b"nothing")


def test_owners_are_maintainers_of_the_instance_and_one_stays(intake: Intake, olga: Person, sam: Person) -> None:
    with pytest.raises(Incomplete, match="only maintainers of the instance"):
        entries.add_owner(olga, intake.benchmark, sam)
    with pytest.raises(Conflict, match="needs an owner"):
        entries.remove_owner(olga, intake.benchmark, olga)
    pete = auditor("pete")
    with pytest.raises(PermissionDenied):
        entries.add_owner(pete, intake.benchmark, pete)
    entries.add_owner(olga, intake.benchmark, pete)
    entries.remove_owner(pete, intake.benchmark, olga)
    assert [each.person for each in Owner.objects.all()] == [pete]


def test_unreadable_keys_are_refused(intake: Intake, olga: Person) -> None:
    with pytest.raises(Incomplete, match="keys cannot be read"):
        entries.configure(olga, intake.benchmark, trusted_keys="nonsense")


# --- trajectories without labels -------------------------------------------------------------------------------------


@pytest.fixture
def package(tmp_path: Path) -> bytes:
    """Two trajectories of the tasks of `testing.benchmark`."""
    return zip_of(testing.write_submission(tmp_path / "package", 2, 3)).read()


def test_trajectories_are_labelled_by_people_of_the_owners(olga: Person, sam: Person, package: bytes) -> None:
    benchmark = testing.benchmark(2)
    intake = entries.configure(olga, benchmark, public=True, contact="olga", takes_trajectories=True)
    sent = SentFile(SimpleUploadedFile("run.zip", package), is_package=True)
    entry = entries.submit(sam, intake, DESCRIPTION, sent, lambda pk: None)
    jobs.import_entry(str(entry.package_id))
    entry.refresh_from_db()
    assert results(entry) == {"coverage": "pass", "duplicates": "pass", "relationship": "pass"}
    assert entry.submission is not None
    assert entry.submission.memberships.get().person == olga
    with pytest.raises(Conflict, match="could still change"):
        entries.accept(olga, entry, "Too early.")
    workflow.configure(olga, entry.submission, protocol_version=1)  # in version 2 they also do the tasks themselves
    finish(testing.cast(entry.submission), entry.submission, {"task_0000": [1, 0, 2]})
    version = entries.accept(olga, entry, "Labelled by three people.")
    assert (version.rate, version.rows, version.manifest) == (1, 2, "")  # adjudicated as successes
    assert version.people == {"labels": 3, "annotators": 3, "adjudicators": 1}


def test_package_with_faults_is_told_to_the_submitter(olga: Person, sam: Person) -> None:
    intake = entries.configure(olga, testing.benchmark(2), public=True, contact="olga", takes_trajectories=True)
    sent = SentFile(SimpleUploadedFile("run.zip", b"nothing"), is_package=True)
    entry = entries.submit(sam, intake, DESCRIPTION, sent, lambda pk: None)
    jobs.import_entry(str(entry.package_id))
    entry.refresh_from_db()
    assert "Nothing was imported" in entry.events.latest("sequence").facts["checks"][0]["says"]
    assert entry.submission is None


def test_intake_takes_trajectories_only_if_its_owners_label_them(intake: Intake, sam: Person, package: bytes) -> None:
    with pytest.raises(Conflict, match="no trajectories without labels"):
        entries.submit(sam, intake, DESCRIPTION, SentFile(file(package), is_package=True), lambda pk: None)
    assert not Entry.objects.exists()
    page = client_of(sam).get(reverse("new-entry", args=[intake.benchmark.slug])).content.decode()
    assert "Or trajectories" not in page


# --- pages -----------------------------------------------------------------------------------------------------------


def test_submitter_and_owner_go_from_intake_to_publication(
    intake: Intake, olga: Person, sam: Person, data: bytes, client: Client
) -> None:
    slug = intake.benchmark.slug
    page = client.get(reverse("intake", args=[slug]))
    assert page.status_code == 200
    assert "olga@example.org" in page.content.decode()
    assert client.get(reverse("new-entry", args=[slug])).status_code == 302  # to the sign-in

    theirs, ours = client_of(sam), client_of(olga)
    sent = theirs.post(reverse("submit-entry", args=[slug]), DESCRIPTION | {"bundle": file(data)})
    entry = Entry.objects.get()
    assert sent.headers["Location"] == reverse("entry", args=[entry.key])
    address = reverse("entry", args=[entry.key])
    assert "A worker is checking the file" in theirs.get(address).content.decode()
    work()
    assert "Open audit" not in theirs.get(address).content.decode()
    assert "Open audit" in ours.get(address).content.decode()
    assert "Pathfinder" in ours.get(reverse("benchmark-intake", args=[slug])).content.decode()
    assert "Pathfinder" in theirs.get(reverse("own-entries")).content.decode()

    def act(client: Client, action: str, **data: Any) -> int:
        return client.post(reverse("entry-action", args=[entry.key, action]), data).status_code

    assert act(theirs, "accept", reason="Mine.") == 404
    assert act(ours, "answer", reason="Not mine.") == 404
    assert act(ours, "accept", reason="") == 400
    assert act(ours, "query", reason="Which scaffold?") == 302
    assert act(theirs, "answer", reason="Ours.") == 302
    assert act(ours, "accept", reason="Checked.") == 302
    task = EntryRow.objects.order_by("task_id").first()
    assert task is not None
    assert act(ours, "rescore", reason="Site gone.", changes=f"{task.task_id} maybe") == 400
    assert act(ours, "rescore", reason="Site gone.", changes=f"{task.task_id} out") == 302
    assert act(ours, "correct", **(DESCRIPTION | {"model": "m-6"}), reason="They told us.") == 302
    assert act(theirs, "appeal", reason="It was up.") == 302
    assert act(ours, "decide-appeal", reason="It was not.", upheld="no") == 302
    assert act(ours, "remove", reason="Withdrawn by its authors.") == 302
    assert act(ours, "accept", reason="Again.") == 409
    assert kinds(entry) == [
        *("submitted", "checked", "queried", "answered", "accepted", "rescored"),
        *("corrected", "appealed", "appeal_decided", "removed"),
    ]
    entry.refresh_from_db()
    assert entry.model == "m-6"
    assert EntryEvent.objects.get(kind=Kind.CORRECTED).facts == {"before": {"model": "m-5"}}
    assert chain.state_of(entry) is State.REMOVED


def test_pages_of_an_entry_are_for_its_owners_and_its_submitter(intake: Intake, sam: Person, olga: Person) -> None:
    entry = submit(sam, intake, b"nothing")
    slug = intake.benchmark.slug
    for stranger in (client_of(auditor("nora")), client_of(testing.person("nils"))):
        assert stranger.get(reverse("entry", args=[entry.key])).status_code == 404
        assert stranger.get(reverse("benchmark-intake", args=[slug])).status_code == 404
        assert stranger.post(reverse("entry-action", args=[entry.key, "query"]), {"reason": "x"}).status_code == 404
    assert client_of(sam).get(reverse("benchmark-intake", args=[slug])).status_code == 404


def test_intake_is_private_until_it_is_published(intake: Intake, olga: Person, client: Client) -> None:
    ours, slug = client_of(olga), intake.benchmark.slug
    saved = ours.post(reverse("save-intake", args=[slug]), {"contact": "olga@example.org"})
    assert saved.status_code == 302
    assert client.get(reverse("intake", args=[slug])).status_code == 404
    wrong = {"contact": "x", "opens_at": "2026-02-02T10:00", "closes_at": "2026-02-01T10:00"}
    assert ours.post(reverse("save-intake", args=[slug]), wrong).status_code == 400


# --- conflicts of interest -------------------------------------------------------------------------------------------


def test_people_of_the_organisation_do_not_label_the_sample_of_its_entry(
    intake: Intake, olga: Person, sam: Person, data: bytes
) -> None:
    entry = checked(sam, intake, data)
    assert entry.audit is not None
    sample = actions.draw(entry.audit, olga, 1)
    nils = testing.person("nils")
    assert client_of(nils).post(reverse("declare-affiliation"), {"organisation": "  ACME "}).status_code == 302
    for role in (Membership.Role.ANNOTATOR, Membership.Role.ADJUDICATOR):
        with pytest.raises(Conflict, match="nils declares an affiliation with Acme") as raised:
            workflow.add_member(olga, sample, nils, role)
        assert raised.value.code == "conflict_of_interest"
    stated = Affiliation.objects.get()
    assert client_of(sam).post(reverse("end-affiliation", args=[stated.pk])).status_code == 404
    assert client_of(nils).post(reverse("end-affiliation", args=[stated.pk])).status_code == 302
    assert workflow.add_member(olga, sample, nils, Membership.Role.ANNOTATOR)


def test_owner_does_not_decide_about_an_entry_of_the_own_organisation(
    intake: Intake, olga: Person, sam: Person, data: bytes
) -> None:
    entry = checked(sam, intake, data)
    Affiliation.objects.create(person=olga, organisation="acme")
    with pytest.raises(PermissionDenied, match="declare an affiliation with Acme"):
        entries.accept(olga, entry, "Ours.")
    Affiliation.objects.update(ended_at=timezone.now())
    assert entries.accept(olga, entry, "Not ours any more.")


def test_erased_submitter_leaves_no_contact(intake: Intake, sam: Person) -> None:
    entry = submit(sam, intake, b"nothing")
    root = testing.person("root", is_superuser=True, is_staff=True)
    workflow.erase(root, sam, "They asked.")
    entry.refresh_from_db()
    assert entry.contact == ""
