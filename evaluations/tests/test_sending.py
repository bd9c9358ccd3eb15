"""The files for sending: created together from one freeze, checked, and offered only while they are of that freeze."""

from __future__ import annotations

import hashlib
import io
import json
import os
import zipfile
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from django.core.files.base import ContentFile
from django.core.files.storage import default_storage
from django.test import Client
from django.urls import reverse
from django.utils import timezone

from annotation import arrivals, workflow
from annotation.models import Agent, Benchmark, Person, Screenshot, Submission
from annotation.tests import testing
from annotation.tests.test_concurrency import at_once, just_before
from evaluations import jobs, sending
from evaluations.evidence.verification import verify_bundle
from evaluations.models import Delivery
from evaluations.tests.finished import finish
from evaluations.verifier.checking import Given

People = dict[str, Person]
WHO = [("mira", 200), ("alice", 403), ("carol", 403), ("dave", 404), (None, 302)]


@pytest.fixture(autouse=True)
def own_store(tmp_path: Path, settings: Any) -> None:
    settings.MEDIA_ROOT = tmp_path / "images"


def browser_of(person: Person | None) -> Client:
    client = Client()
    if person is not None:
        client.force_login(person)
    return client


def page_of(person: Person, submission: Submission, **headers: str) -> str:
    return browser_of(person).get(reverse("send", args=[submission.pk]), headers=headers).content.decode()


def request(person: Person, submission: Submission, **options: bool) -> Delivery:
    given = {"with_screenshots": False, "accept_names": False} | options
    return sending.request(person, submission, str, **given)


def create(people: People, submission: Submission, **options: bool) -> Delivery:
    """Request the files, let a worker create them, and return the row."""
    made = request(people["mira"], submission, **options)
    jobs.create_delivery(str(made.pk))
    made.refresh_from_db()
    return made


def fetch(people: People, submission: Submission, part: str) -> Any:
    """Return the answer with its ``data`` read, which closes the file."""
    answer: Any = browser_of(people["mira"]).get(reverse("sent-file", args=[submission.pk, part]))
    answer.data = answer.getvalue() if answer.streaming else b""
    return answer


def stored_files() -> list[str]:
    try:
        return sorted(default_storage.listdir(sending.FOLDER)[1])
    except FileNotFoundError:
        return []


# --- the files -------------------------------------------------------------------------------------------------------


def test_three_files_of_one_freeze_are_created_and_checked(frozen: Submission, people: People, tmp_path: Path) -> None:
    made = create(people, frozen)
    assert made.problems == []
    assert [each["part"] for each in made.files] == ["labels", "trajectories", "evidence"]
    sent = {each["part"]: fetch(people, frozen, each["part"]) for each in made.files}
    content = {part: answer.data for part, answer in sent.items()}
    for each in made.files:
        data = content[each["part"]]
        assert (len(data), hashlib.sha256(data).hexdigest()) == (each["size"], each["sha256"])
        assert each["name"] in sent[each["part"]]["Content-Disposition"]
        assert each.get("failed", []) == []

    bundle = zipfile.ZipFile(io.BytesIO(content["evidence"]))
    assert bundle.read("human-label.json") == content["labels"]
    assert len(json.loads(content["labels"])) == 2
    assert {name.split("/")[0] for name in zipfile.ZipFile(io.BytesIO(content["trajectories"])).namelist()} == {
        "task_0000",
        "task_0001",
    }
    path = tmp_path / "bundle.zip"
    path.write_bytes(content["evidence"])
    assert verify_bundle(str(path), Given()).good
    assert (made.done, made.total) == (300, 300)


def test_page_shows_name_size_digest_check_and_destination(frozen: Submission, people: People) -> None:
    made = create(people, frozen)
    page = page_of(people["mira"], frozen)
    for each in made.files:
        assert each["name"] in page
        assert each["sha256"] in page
        assert reverse("sent-file", args=[frozen.pk, each["part"]]) in page
    assert "2 labels, as in the bundle." in page
    assert "2 trajectories read again, no problems" in page
    assert page.count("Goes to") == 3
    assert page.count('<span class="chip ok">checked</span>') == 3


def test_screenshots_are_in_the_bundle_only_if_asked_for(frozen: Submission, people: People) -> None:
    names = []
    for choice in (False, True):
        create(people, frozen, with_screenshots=choice)
        data = fetch(people, frozen, "evidence").data
        names.append([name for name in zipfile.ZipFile(io.BytesIO(data)).namelist() if name.startswith("screenshots/")])
    assert [bool(each) for each in names] == [False, True]


def test_new_files_replace_the_earlier_ones(frozen: Submission, people: People) -> None:
    first, second = create(people, frozen), create(people, frozen)
    assert Delivery.objects.get() == second
    assert stored_files() == sorted(each["stored_as"].split("/")[1] for each in second.files)
    assert not set(stored_files()) & {each["stored_as"].split("/")[1] for each in first.files}


@pytest.mark.parametrize(("slug", "is_known"), [("online-mind2web", True), ("shops", False)])
def test_rules_of_online_mind2web_are_shown_for_that_benchmark(
    frozen: Submission, people: People, slug: str, is_known: bool
) -> None:
    Benchmark.objects.filter(pk=frozen.benchmark_id).update(slug=slug)
    create(people, frozen)
    page = " ".join(page_of(people["mira"], frozen).split())
    assert ("As of November 2026 they publish your own human evaluation, but do not rank it." in page) is is_known
    assert ("Rules of Online-Mind2Web, November 2026" in page) is is_known
    assert ("does not know the submission rules" in page) is not is_known


# --- who and when ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("who", "code"), WHO)
def test_only_maintainers_reach_page_and_files(frozen: Submission, people: People, who: str | None, code: int) -> None:
    create(people, frozen)
    client = browser_of(people[who] if who else None)
    for name, args in (("send", []), ("sent-file", ["labels"])):
        answer = client.get(reverse(name, args=[frozen.pk, *args]))
        assert answer.status_code == code
        if answer.streaming:
            answer.getvalue()  # closes the file
    for name in ("create-files", "cancel-files"):
        answer = client.post(reverse(name, args=[frozen.pk]))
        assert answer.status_code == (302 if code == 200 else code)
        if who is None:
            assert "sign-in" in answer["Location"]


def test_before_the_freeze_the_page_says_what_is_missing_and_no_verdict(submission: Submission, people: People) -> None:
    testing.label_all(people, submission, {"task_0000": [1, 0, 1]})
    page = page_of(people["mira"], submission)
    assert "Not frozen yet" in page
    assert "task_0000: the labels differ" in page
    assert "Create the three files" not in page
    answer = browser_of(people["mira"]).post(reverse("create-files", args=[submission.pk]), follow=True)
    assert "The submission is not frozen. Freeze it, then create the files." in answer.content.decode()
    assert not Delivery.objects.exists()


def test_missing_task_is_listed_and_nothing_is_created(uncovered: Submission, people: People) -> None:
    page = page_of(people["mira"], uncovered)
    assert "task_0002: the submission has no trajectory for this task." in page
    made = create(people, uncovered)
    assert [each["code"] for each in made.problems] == ["task_not_covered"]
    assert stored_files() == []


def test_practice_submission_has_nothing_to_send(people: People, frozen: Submission) -> None:
    Submission.objects.filter(pk=frozen.pk).update(practice=True)
    assert "nothing to send" in page_of(people["mira"], frozen)
    assert browser_of(people["mira"]).post(reverse("create-files", args=[frozen.pk])).status_code == 404


# --- of which freeze -------------------------------------------------------------------------------------------------


def test_files_of_an_undone_freeze_are_not_offered(frozen: Submission, people: People) -> None:
    create(people, frozen)
    workflow.reopen_submission(people["mira"], frozen, "One more look.")
    page = page_of(people["mira"], frozen)
    assert "Earlier files are not offered" in page
    assert "Download" not in page
    answer = browser_of(people["mira"]).get(reverse("sent-file", args=[frozen.pk, "labels"]), follow=True)
    assert "from an earlier freeze" in answer.content.decode()

    workflow.freeze(people["mira"], frozen)  # another freeze, even with the same verdicts
    assert "Earlier files are not offered" in page_of(people["mira"], frozen)
    assert fetch(people, frozen, "labels").status_code == 302


def redact(people: People, submission: Submission) -> None:
    step = submission.trajectories.get(position=0).steps.get(index=1)
    workflow.redact(people["mira"], submission, step.screenshot, [[1, 1, 9, 9]], "A face.")


def test_files_from_before_a_redaction_are_not_offered(frozen: Submission, people: People) -> None:
    create(people, frozen)
    redact(people, frozen)
    assert "Earlier files are not offered" in page_of(people["mira"], frozen)
    assert fetch(people, frozen, "trajectories").status_code == 302
    assert create(people, frozen).files
    assert fetch(people, frozen, "trajectories").status_code == 200


def unfreeze(people: People, submission: Submission) -> None:
    workflow.reopen_submission(people["mira"], submission, "One more look.")


def freeze_again(people: People, submission: Submission) -> None:
    unfreeze(people, submission)
    workflow.freeze(people["mira"], submission)


@pytest.mark.parametrize("change", [unfreeze, freeze_again, redact])
def test_change_before_the_worker_starts_ends_without_files(frozen: Submission, people: People, change: Any) -> None:
    made = request(people["mira"], frozen)
    change(people, frozen)
    jobs.create_delivery(str(made.pk))
    made.refresh_from_db()
    assert [each["code"] for each in made.problems] == ["freeze_changed"]
    assert stored_files() == []


def test_change_while_files_are_created_ends_without_files(
    frozen: Submission, people: People, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The change comes after the last file is stored: the stored files are deleted again."""
    made = request(people["mira"], frozen)
    save = default_storage.save

    def save_and_change(name: str, content: Any) -> str:
        stored = save(name, content)
        if name.endswith(".evidence"):
            freeze_again(people, frozen)
        return stored

    monkeypatch.setattr(default_storage, "save", save_and_change)
    jobs.create_delivery(str(made.pk))
    made.refresh_from_db()
    assert (made.files, [each["code"] for each in made.problems]) == ([], ["freeze_changed"])
    assert stored_files() == []


def test_labels_that_differ_from_those_of_the_bundle_are_not_offered(frozen: Submission, people: People) -> None:
    """Here the agent gets another name after the labels are written, which the freeze does not prevent."""
    made = request(people["mira"], frozen)
    with just_before(saves_the_progress, lambda: Agent.objects.update(name="Renamed")):
        jobs.create_delivery(str(made.pk))
    made.refresh_from_db()
    assert [each["code"] for each in made.problems] == ["freeze_changed"]
    assert stored_files() == []


def saves_the_progress(sql: str) -> bool:
    return sql.startswith('UPDATE "evaluations_delivery"') and '"total" = ' in sql


# --- trouble ---------------------------------------------------------------------------------------------------------


def lose_a_screenshot() -> None:
    lost = Screenshot.objects.order_by("sha256")[0]
    default_storage.delete(f"originals/{lost.sha256[:2]}/{lost.sha256}")


def test_lost_screenshot_leaves_no_file_and_the_earlier_ones_stay(frozen: Submission, people: People) -> None:
    earlier = create(people, frozen)
    lose_a_screenshot()
    made = create(people, frozen)
    assert made.files == []
    assert "screenshot" in made.problems[0]["message"]
    assert len(stored_files()) == 3
    page = page_of(people["mira"], frozen)
    assert "Something is missing" in page
    assert earlier.files[0]["sha256"] in page


def test_full_disk_leaves_no_file_and_says_what_to_do(
    frozen: Submission, people: People, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = request(people["mira"], frozen)
    save = default_storage.save

    def fail(name: str, content: Any) -> str:
        if name.endswith(".evidence"):
            raise OSError(28, "No space left on device")
        return str(save(name, content))

    monkeypatch.setattr(default_storage, "save", fail)
    jobs.create_delivery(str(made.pk))
    made.refresh_from_db()
    (problem,) = made.problems
    assert problem["message"] == (
        "The files were not created: No space left on device. Nothing was saved. Create the files again."
    )
    assert problem["message"] in page_of(people["mira"], frozen)
    assert stored_files() == []


def test_text_with_a_name_is_created_only_if_accepted(frozen: Submission, people: People) -> None:
    Agent.objects.update(name="Agent of somebody@people.example")
    made = create(people, frozen)
    assert {each["code"] for each in made.problems} == {"name_in_text"}
    assert 'name="accept_names"' in page_of(people["mira"], frozen)
    assert create(people, frozen, accept_names=True).files


def test_package_that_cannot_be_imported_again_is_not_offered(frozen: Submission, people: People) -> None:
    """The check is the import's own: here a screenshot that is stored intact, but is not an image."""
    step = frozen.trajectories.get(position=0).steps.get(index=1)
    data = b"not an image"
    sha256 = hashlib.sha256(data).hexdigest()
    default_storage.save(f"originals/{sha256[:2]}/{sha256}", ContentFile(data))
    Screenshot.objects.filter(pk=step.screenshot_id).update(sha256=sha256, size=len(data))
    made = create(people, frozen)
    assert [each["code"] for each in made.problems] == ["screenshot_not_an_image"]
    assert stored_files() == []


# --- the job ---------------------------------------------------------------------------------------------------------


def test_second_request_finds_the_running_one(frozen: Submission, people: People) -> None:
    first = request(people["mira"], frozen)
    assert request(people["mira"], frozen) == first
    assert Delivery.objects.count() == 1


@pytest.mark.django_db(transaction=True)
def test_of_many_requests_at_once_one_is_queued(tmp_path: Path) -> None:
    submission = testing.submission(tmp_path / "package", trajectories=1)
    people = testing.cast(submission)
    finish(people, submission, {"task_0000": [1, 0, 2]})
    sent: list[str] = []

    def ask(number: int) -> Delivery:
        return sending.request(people["mira"], submission, sent.append, with_screenshots=False, accept_names=False)

    found = at_once(5, ask)
    assert len({each.pk for each in found}) == 1
    assert len(sent) == 1


def test_running_request_shows_its_progress_and_can_be_cancelled(frozen: Submission, people: People) -> None:
    made = request(people["mira"], frozen)
    assert "Waiting for a worker" in page_of(people["mira"], frozen)
    taken = arrivals.claim(Delivery, str(made.pk))
    Delivery.objects.filter(pk=made.pk).update(done=150, total=300)
    partial = page_of(people["mira"], frozen, **{"HX-Request": "true"})
    assert "Creating and checking file 2 of 3" in partial
    assert "<html" not in partial
    assert "every 2s" in partial

    browser_of(people["mira"]).post(reverse("cancel-files", args=[frozen.pk]))
    assert taken is not None
    sending.process(taken)
    assert not Delivery.objects.exists()
    assert stored_files() == []


def test_request_without_worker_is_queued_again(frozen: Submission, people: People) -> None:
    made = request(people["mira"], frozen)
    conf = jobs.create_delivery.app.conf
    eager, conf.task_always_eager = conf.task_always_eager, True
    try:
        jobs.resume_bundles()
        made.refresh_from_db()
        assert made.finished_at is None
        silent = timezone.now() - arrivals.MESSAGE_DELAY - timedelta(seconds=1)
        Delivery.objects.update(heartbeat_at=silent)
        jobs.resume_bundles()
    finally:
        conf.task_always_eager = eager
    made.refresh_from_db()
    assert len(made.files) == 3


def test_files_are_deleted_after_a_week(frozen: Submission, people: People) -> None:
    create(people, frozen)
    jobs.forget_bundles()
    assert len(stored_files()) == 3
    Delivery.objects.update(finished_at=timezone.now() - sending.STORED_FOR - timedelta(seconds=1))
    assert "Download" not in page_of(people["mira"], frozen)
    jobs.forget_bundles()
    assert stored_files() == []
    assert not Delivery.objects.exists()


def test_orphaned_file_is_deleted_after_a_day(frozen: Submission, people: People, tmp_path: Path) -> None:
    create(people, frozen)

    for name in (*stored_files(), "left.1.labels"):
        if name == "left.1.labels":
            default_storage.save(f"{sending.FOLDER}/{name}", ContentFile(b"x"))
        old = (timezone.now() - arrivals.ORPHAN_AGE - timedelta(hours=1)).timestamp()
        os.utime(default_storage.path(f"{sending.FOLDER}/{name}"), (old, old))
    jobs.forget_bundles()
    assert len(stored_files()) == 3
    assert "left.1.labels" not in stored_files()


def test_lost_file_in_the_store_is_reported(frozen: Submission, people: People) -> None:
    made = create(people, frozen)
    default_storage.delete(made.files[0]["stored_as"])
    client = browser_of(people["mira"])
    page = client.get(reverse("sent-file", args=[frozen.pk, "labels"]), follow=True).content.decode()
    assert "This file cannot be read from the store" in page
    assert client.get(reverse("sent-file", args=[frozen.pk, "other"])).status_code == 404


def test_frozen_submission_links_to_the_page(frozen: Submission, people: People) -> None:
    page = browser_of(people["mira"]).get(reverse("submission", args=[frozen.pk])).content.decode()
    assert reverse("send", args=[frozen.pk]) in page
