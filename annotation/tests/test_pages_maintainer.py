"""The maintainer's pages: upload and report, progress, people, key points, events."""

from __future__ import annotations

import io
import json
import re
import zipfile
from pathlib import Path
from typing import Any

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile
from django.test import Client
from django.urls import reverse

from annotation import jobs, workflow
from annotation.models import Benchmark, Event, Membership, Person, Report, Submission, Upload
from annotation.tests import testing
from annotation.tests.shared_rows import shared_rows


@pytest.fixture
def mira(client: Client, people: dict[str, Person]) -> Client:
    client.force_login(people["mira"])
    return client


@shared_rows
def finished(people: dict[str, Person], submission: Submission) -> Submission:
    """Everything labelled as success, drawn and adjudicated; not frozen."""
    testing.label_all(people, submission, {})
    workflow.draw_spot_checks(people["carol"], submission)
    testing.adjudicate_all(people["carol"], submission)
    return submission


@pytest.fixture
def worker(django_capture_on_commit_callbacks: Any) -> Any:
    """Jobs run at once, as soon as the block has committed."""
    conf = jobs.import_upload.app.conf
    eager, conf.task_always_eager = conf.task_always_eager, True
    yield lambda: django_capture_on_commit_callbacks(execute=True)
    conf.task_always_eager = eager


def zipped(folder: Path) -> SimpleUploadedFile:
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w") as archive:
        for file in sorted(folder.rglob("*")):
            archive.write(file, file.relative_to(folder))
    return SimpleUploadedFile("package.zip", stream.getvalue(), "application/zip")


def test_an_upload_is_imported_by_the_worker_and_leads_to_its_submission(
    mira: Client, worker: Any, tmp_path: Path
) -> None:
    package = zipped(testing.write_submission(tmp_path / "next", 2, steps=2))
    form = {"package": package, "agent_name": "New Agent", "benchmark": Benchmark.objects.get().pk}
    with worker():
        response = mira.post(reverse("upload-package"), form)

    page = mira.get(response["Location"]).content.decode()
    made = Submission.objects.get(agent__name="New Agent")
    assert f'href="{reverse("submission", args=[made.pk])}"' in page
    assert mira.get(reverse("submission", args=[made.pk])).status_code == 200


@pytest.mark.parametrize(
    ("given", "version"), [({}, 1), ({"protocol_version": "1"}, 1), ({"protocol_version": "2"}, 2)]
)
def test_the_upload_page_offers_version_2_first_and_stores_what_is_sent(
    mira: Client, given: dict[str, str], version: int
) -> None:
    page = mira.get(reverse("upload")).content.decode()
    assert re.search(r'<option value="2" selected>2: do the task yourself first', page)

    package = SimpleUploadedFile("package.zip", b"PK")
    form = {"package": package, "agent_name": "New Agent", "benchmark": Benchmark.objects.get().pk}
    assert mira.post(reverse("upload-package"), form | given).status_code == 302
    assert Upload.objects.get().protocol_version == version


def test_a_refused_upload_shows_its_causes_and_can_be_downloaded(mira: Client, worker: Any, tmp_path: Path) -> None:
    folder = testing.write_submission(tmp_path / "bad", 2)
    (folder / "task_0000" / "trajectory" / "0001.png").write_bytes(b"<script>alert(1)</script>")
    form = {"package": zipped(folder), "agent_name": "<b>Bad</b>", "benchmark": Benchmark.objects.get().pk}
    with worker():
        address = mira.post(reverse("upload-package"), form)["Location"]

    page = mira.get(address).content.decode()
    assert "Import failed: 1 cause" in page
    assert "screenshot_not_an_image" in page
    assert "<b>Bad</b>" not in page
    report = mira.get(address + "/report.json")
    assert json.loads(report.content)["rejected"][0]["task_id"] == "task_0000"
    assert "attachment" in report["Content-Disposition"]


def test_an_upload_may_bring_a_new_benchmark(mira: Client, tmp_path: Path) -> None:
    tasks = SimpleUploadedFile("tasks.json", json.dumps([testing.task(7)]).encode())
    form = {
        "package": SimpleUploadedFile("package.zip", b"PK"),
        "agent_name": "New Agent",
        "tasks": tasks,
        "benchmark_name": "More Shops",
    }
    assert mira.post(reverse("upload-package"), form).status_code == 302

    assert Upload.objects.get().benchmark.slug == "more-shops"


def test_an_upload_form_says_what_is_wrong_with_it(mira: Client, settings: Any) -> None:
    settings.WEBVERDICT_MAX_UPLOAD_BYTES = 3
    response = mira.post(reverse("upload-package"), {"package": SimpleUploadedFile("p.zip", b"12345")})

    page = response.content.decode()
    assert response.status_code == 400
    for words in ("at most 3 are accepted", "Choose a benchmark", 'href="#id_agent_name"'):
        assert words in page
    assert not Upload.objects.exists()


def test_the_upload_page_asks_again_while_the_import_runs(mira: Client, people: dict[str, Person]) -> None:
    running = Upload.objects.create(
        uploaded_by=people["mira"], benchmark=Benchmark.objects.get(), agent_name="A", file_name="p", stored_as="u/x"
    )
    address = reverse("upload-status", args=[running.pk])

    assert 'hx-trigger="every 1s"' in mira.get(address).content.decode()
    partial = mira.get(address, HTTP_HX_REQUEST="true").content.decode()
    assert partial.strip().startswith("<section")


def test_nobody_sees_the_upload_of_another(client: Client, people: dict[str, Person]) -> None:
    upload = Upload.objects.create(
        uploaded_by=people["mira"], benchmark=Benchmark.objects.get(), agent_name="A", file_name="p", stored_as="u/x"
    )
    client.force_login(people["alice"])

    assert client.get(reverse("upload-status", args=[upload.pk])).status_code == 404
    assert client.get(reverse("upload")).status_code == 403


def test_the_matrix_shows_slots_by_pseudonym_and_no_verdict_before_the_freeze(
    mira: Client, people: dict[str, Person], submission: Submission
) -> None:
    first = workflow.claim(people["alice"], submission).trajectory
    workflow.submit(people["alice"], first, testing.content(first, 0))
    workflow.claim(people["bob"], submission)

    response = mira.get(reverse("submission-tasks", args=[submission.pk]))
    page = response.content.decode() + mira.get(reverse("submission", args=[submission.pk])).content.decode()
    assert response.context["matrix"][0]["cells"] == [("filled", "A1"), ("held", "A2"), ("open", "")]
    assert "Failure" not in page
    assert "reserved: A2" in page
    assert "at work</td>" not in page
    assert "alice" not in page
    assert "1 of 6" in page


def test_a_matrix_of_one_state_can_be_asked_for(mira: Client, finished: Submission) -> None:
    response = mira.get(reverse("submission-tasks", args=[finished.pk]), {"state": "unanimous"})

    assert [row["trajectory"].state for row in response.context["matrix"]] == ["unanimous"]


def shown(mira: Client, submission: Submission, **filters: Any) -> list[str]:
    rows = mira.get(reverse("submission-tasks", args=[submission.pk]), filters).context["matrix"]
    return [row["trajectory"].task.external_id for row in rows]


def test_the_matrix_is_narrowed_by_slot_annotator_and_words(
    mira: Client, people: dict[str, Person], submission: Submission
) -> None:
    first, second = submission.trajectories.order_by("position")
    for name in ("alice", "bob", "chen"):
        workflow.claim_this(people[name], first)
    workflow.submit(people["alice"], first, testing.content(first))
    workflow.claim_this(people["bob"], second)
    second.assignments.update(lease_expires_at=submission.created_at)

    assert shown(mira, submission, slot="open") == ["task_0001"]
    assert shown(mira, submission, slot="held") == ["task_0000"]
    assert shown(mira, submission, slot="expired") == ["task_0001"]
    assert shown(mira, submission, slot="filled", who="A1") == ["task_0000"]
    assert shown(mira, submission, slot="filled", who="A2") == []
    assert shown(mira, submission, who="A2") == ["task_0000", "task_0001"]
    assert shown(mira, submission, q="TASK_0001") == ["task_0001"]
    assert shown(mira, submission, q="shop 0", who="A3") == ["task_0000"]
    assert shown(mira, submission, state="dispute") == []


def test_a_filter_that_does_not_exist_is_no_filter(mira: Client, submission: Submission) -> None:
    assert shown(mira, submission, state="nonsense", slot="-1", who="alice") == ["task_0000", "task_0001"]


def test_the_filters_stay_in_the_address_of_the_next_part(mira: Client, people: dict[str, Person]) -> None:
    many = testing.bare_submission(120)
    workflow.join_as_maintainer(many, people["mira"])
    page = mira.get(reverse("submission-tasks", args=[many.pk]), {"slot": "open"}).content.decode()

    assert 'href="?slot=open&amp;page=2"' in page
    assert "120 of 120" in page


def test_what_blocks_the_freeze_leads_to_the_trajectories(
    mira: Client, people: dict[str, Person], submission: Submission
) -> None:
    testing.label_all(people, submission, {"task_0000": [1, 1, 0]})
    workflow.open_adjudication(people["carol"], submission.trajectories.get(position=0))
    page = mira.get(reverse("submission", args=[submission.pk])).content.decode()

    tasks = reverse("submission-tasks", args=[submission.pk])
    assert f'<a href="{tasks}?state=dispute">1 dispute</a>: an adjudicator must decide' in page
    assert f'<a href="{tasks}?state=agreed">1 agreed</a>: the spot checks must be drawn' in page
    assert shown(mira, submission, state="agreed") == ["task_0001"]
    assert shown(mira, submission, state="opened, undecided") == ["task_0000"]


def test_freezing_too_early_is_a_conflict_that_names_what_is_missing(mira: Client, submission: Submission) -> None:
    response = mira.post(reverse("freeze", args=[submission.pk]))

    assert response.status_code == 409
    assert "2 of 2 trajectories have no final verdict" in response.content.decode()


def test_a_finished_submission_is_frozen_opened_and_cannot_be_taken_back(mira: Client, finished: Submission) -> None:
    pages = [reverse("submission-trajectory", args=[t.pk]) for t in finished.trajectories.all()]
    assert not any("The steps show it." in mira.get(page).content.decode() for page in pages)
    tasks = reverse("submission-tasks", args=[finished.pk])
    assert [row["verdict"] for row in mira.get(tasks).context["matrix"]] == ["", ""]

    mira.post(reverse("freeze", args=[finished.pk]))
    frozen = mira.get(tasks)
    assert [row["verdict"] for row in frozen.context["matrix"]] == ["Success", "Success"]
    assert all("The steps show it." in mira.get(page).content.decode() for page in pages)
    mira.post(reverse("open-results", args=[finished.pk]))
    refused = mira.post(reverse("reopen-submission", args=[finished.pk]), {"reason": "a mistake"})
    assert refused.status_code == 409


def test_a_trajectory_and_a_submission_are_reopened_with_a_reason_only(mira: Client, finished: Submission) -> None:
    trajectory = finished.trajectories.first()
    assert mira.post(reverse("reopen-trajectory", args=[trajectory.pk])).status_code == 400
    mira.post(reverse("freeze", args=[finished.pk]))
    assert mira.post(reverse("reopen-submission", args=[finished.pk])).status_code == 400
    mira.post(reverse("reopen-submission", args=[finished.pk]), {"reason": "a mistake"})

    page = mira.post(reverse("reopen-trajectory", args=[trajectory.pk]), {"reason": "look again"}, follow=True)
    assert "reopened" in page.content.decode()


def test_what_was_given_back_is_offered_again_for_a_reason(
    mira: Client, people: dict[str, Person], submission: Submission
) -> None:
    trajectory = workflow.claim(people["alice"], submission).trajectory
    workflow.release(people["alice"], trajectory, "I know this shop")
    there, offer = (reverse(name, args=[trajectory.pk]) for name in ("submission-trajectory", "offer-again"))
    assert "1 gave it back" in mira.get(there).content.decode()
    assert mira.post(offer).status_code == 400
    mira.post(offer, {"reason": "somebody has to"})

    assert "gave it back" not in mira.get(there).content.decode()
    assert workflow.claim(people["alice"], submission).trajectory == trajectory


def test_people_are_added_with_one_role_and_deactivated(
    mira: Client, people: dict[str, Person], submission: Submission
) -> None:
    add = reverse("add-person", args=[submission.pk])
    page = mira.post(add, {"person": people["dave"].pk, "role": "annotator"}, follow=True).content.decode()
    assert "dave" in page
    assert "A4" in page
    assert mira.post(add, {"person": people["dave"].pk, "role": "adjudicator"}).status_code == 409
    assert mira.post(add, {"person": "", "role": "king"}).status_code == 400

    mira.post(reverse("deactivate-person", args=[submission.pk, people["dave"].pk]))
    assert Membership.objects.get(person=people["dave"]).deactivated_at is not None
    itself = reverse("deactivate-person", args=[submission.pk, people["mira"].pk])
    assert mira.post(itself).status_code == 409


def test_somebody_who_left_is_let_back_in_with_their_pseudonym(
    mira: Client, people: dict[str, Person], submission: Submission
) -> None:
    there = [submission.pk, people["bob"].pk]
    mira.post(reverse("deactivate-person", args=there))
    assert reverse("reactivate-person", args=there) in mira.get(reverse("people", args=there[:1])).content.decode()
    page = mira.post(reverse("reactivate-person", args=there), follow=True).content.decode()

    assert "bob was reactivated as annotator, A2." in page
    member = Membership.objects.get(submission=submission, person=people["bob"])
    assert (member.role, member.pseudonym, member.deactivated_at) == ("annotator", "A2", None)
    assert Event.objects.filter(submission=submission, kind="member_reactivated").count() == 1


def test_nobody_who_never_took_part_is_let_back_in(
    mira: Client, people: dict[str, Person], submission: Submission
) -> None:
    assert mira.post(reverse("reactivate-person", args=[submission.pk, people["dave"].pk])).status_code == 404


def test_the_people_page_says_when_somebody_was_last_at_work(
    mira: Client, people: dict[str, Person], submission: Submission
) -> None:
    held = workflow.claim(people["alice"], submission)
    workflow.record_activity(people["alice"], held.trajectory, 5, [0])
    page = mira.get(reverse("people", args=[submission.pk])).content.decode()

    assert page.count("active <") == 1
    assert "never" in page


# --- reports ---------------------------------------------------------------------------------------------------------


@shared_rows
def reported(people: dict[str, Person], submission: Submission) -> Report:
    trajectory = workflow.claim(people["bob"], submission).trajectory
    return workflow.report(people["bob"], trajectory, Report.Kind.TASK_OUTDATED, "The shop has <closed>.")


def test_an_open_report_is_counted_at_its_tab_and_settled_with_an_answer(
    mira: Client, submission: Submission, reported: Report
) -> None:
    address, settle = reverse("reports", args=[submission.pk]), reverse("settle-report", args=[reported.pk])
    page = mira.get(address).content.decode()
    for words in (
        "Task outdated",
        "The shop has &lt;closed&gt;.",
        "A2,",
        '1<span class="sr"> open report or question</span>',
        settle,
    ):
        assert words in page
    assert "bob" not in page
    assert mira.post(settle, {"answer": " "}).status_code == 400

    page = mira.post(settle, {"answer": "The task is replaced."}, follow=True).content.decode()
    assert "The task is replaced." in page
    assert "open report" not in page
    assert mira.post(settle, {"answer": "Again."}).status_code == 409


def test_open_reports_come_first_and_the_longest_waiting_on_top(
    mira: Client, people: dict[str, Person], submission: Submission, reported: Report
) -> None:
    second = workflow.report(people["carol"], reported.trajectory, Report.Kind.GUIDELINE_UNCLEAR, "Two readings.")
    third = workflow.report(people["carol"], reported.trajectory, Report.Kind.TASK_OUTDATED, "Closed.")
    workflow.settle_report(people["mira"], reported, "Replaced.")

    entries = mira.get(reverse("reports", args=[submission.pk])).context["entries"]
    assert [entry[0] for entry in entries] == [second, third, reported]


@pytest.mark.parametrize(("name", "status"), [("alice", 403), ("bob", 403), ("carol", 403), ("dave", 404)])
def test_nobody_else_settles_a_report(
    client: Client, people: dict[str, Person], reported: Report, name: str, status: int
) -> None:
    client.force_login(people[name])

    assert client.post(reverse("settle-report", args=[reported.pk]), {"answer": "Mine."}).status_code == status
    reported.refresh_from_db()
    assert reported.settled_at is None


@pytest.mark.django_db(transaction=True)  # the message is sent after the commit
def test_an_upload_is_taken_while_the_broker_is_away(mira: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    def away(*arguments: Any) -> None:
        raise ConnectionError("no broker")

    monkeypatch.setattr(jobs.import_upload, "delay", away)
    form = {"agent_name": "Agent", "benchmark": Benchmark.objects.get().pk}
    package = SimpleUploadedFile("package.zip", b"no zip", "application/zip")
    answer = mira.post(reverse("upload-package"), form | {"package": package})
    assert answer["Location"] == reverse("upload-status", args=[Upload.objects.get().pk])


@pytest.mark.parametrize("view", ["upload", "benchmarks"])
def test_the_forms_name_every_format_that_they_take(mira: Client, view: str) -> None:
    page = mira.get(reverse(view)).content.decode()
    words = ("task_id and confirmed_task", ".parquet", ".jsonl.gz", *(["answer_1.md"] if view == "upload" else []))
    assert [word for word in words if word not in page] == []


def test_the_events_show_pseudonyms_and_whether_the_chain_holds(
    mira: Client, finished: Submission, without_triggers: Any
) -> None:
    address = reverse("events", args=[finished.pk])
    page = mira.get(address).content.decode()
    assert "chain intact" in page
    assert "label_submitted" in page
    assert "alice" not in page

    with without_triggers():
        Event.objects.filter(submission=finished, sequence=3).update(payload={"forged": True})
    assert "broken at event 3" in mira.get(address).content.decode()


def test_the_note_of_a_flag_is_not_shown_before_the_freeze(
    mira: Client, people: dict[str, Person], submission: Submission
) -> None:
    held = workflow.claim(people["alice"], submission).trajectory
    workflow.flag(people["alice"], held, "surely a failure")

    assert "surely a failure" not in mira.get(reverse("events", args=[submission.pk])).content.decode()


PAGES = ["submission", "people", "events", "quality", "reports"]


@pytest.mark.parametrize("name", PAGES)
@pytest.mark.parametrize(("person", "status"), [("alice", 403), ("carol", 403), ("mira", 200), ("dave", 404)])
def test_the_pages_of_a_submission_are_for_its_maintainer(
    client: Client, people: dict[str, Person], submission: Submission, name: str, person: str, status: int
) -> None:
    client.force_login(people[person])

    assert client.get(reverse(name, args=[submission.pk])).status_code == status


def test_the_list_of_submissions_shows_how_far_they_are(
    mira: Client, finished: Submission, tmp_path: Path, django_assert_max_num_queries: Any
) -> None:
    for number in range(3):
        testing.cast(testing.submission(tmp_path / str(number), trajectories=1, agent=f"Agent {number}"))

    with django_assert_max_num_queries(6):
        page = mira.get(reverse("submissions")).content.decode()
    assert "6 of 6" in page
    assert "0 of 3" in page


@pytest.mark.parametrize(("page", "most"), [("submission", 15), ("submission-tasks", 13)])
def test_path_and_tasks_cost_the_same_for_any_number_of_trajectories(
    mira: Client, submission: Submission, page: str, most: int, django_assert_max_num_queries: Any
) -> None:
    with django_assert_max_num_queries(most):
        mira.get(reverse(page, args=[submission.pk]))


def test_an_error_of_ours_is_told_in_the_same_look(mira: Client, submission: Submission) -> None:
    """Rows that no verb would leave behind: an assignment of somebody who was never a member."""
    mira.raise_request_exception = False
    Membership.objects.filter(submission=submission).exclude(person__username="mira").delete()
    first = submission.trajectories.first()
    first.assignments.create(
        annotator=Person.objects.get(username="alice"), slot=1, claimed_at=first.submission.created_at
    )

    response = mira.get(reverse("submission-tasks", args=[submission.pk]))
    assert response.status_code == 500
    assert "Something went wrong on our side" in response.content.decode()
