"""Trajectories without steps: what people say about an answer, and what the pages show in place of steps."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
from django.db import IntegrityError, transaction
from django.test import Client
from django.urls import reverse
from django.utils import timezone

from annotation import ingest, screenshots, workflow
from annotation.models import (
    Adjudication,
    Assignment,
    Attachment,
    Label,
    Person,
    Screenshot,
    Submission,
    Trajectory,
)
from annotation.models.states import FINAL, state_of
from annotation.records import AttachmentKind
from annotation.tests import testing
from annotation.workflow import Incomplete

pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def images_in_a_folder_of_their_own(tmp_path: Path, settings: Any) -> None:
    settings.MEDIA_ROOT = tmp_path / "images"


@pytest.fixture
def answers(tmp_path: Path) -> Submission:
    return testing.answered(tmp_path / "answers")


@pytest.fixture
def people(answers: Submission) -> dict[str, Person]:
    return testing.cast(answers)


@pytest.fixture
def held(answers: Submission, people: dict[str, Person]) -> Trajectory:
    assignment = workflow.claim(people["alice"], answers)
    assert assignment is not None
    return assignment.trajectory


@pytest.fixture
def alice(people: dict[str, Person]) -> Client:
    client = Client()
    client.force_login(people["alice"])
    return client


def shown(client: Client, trajectory: Trajectory, query: str = "", name: str = "trajectory", **headers: str) -> str:
    answer = client.get(reverse(name, args=[trajectory.pk]) + query, headers=headers)
    assert answer.status_code == 200, answer.content
    return answer.content.decode()


# --- rows --------------------------------------------------------------------------------------------------------


def test_an_answer_is_a_trajectory_without_steps_and_with_its_pages(answers: Submission) -> None:
    trajectory = answers.trajectories.get(position=0)
    assert trajectory.source_format == "mind2web-2"
    assert trajectory.steps.count() == 0
    assert "499 EUR" in (trajectory.final_answer or "")
    assert trajectory.task_text == trajectory.task.text  # the answers do not say it
    kinds = set(trajectory.attachments.values_list("kind", flat=True))
    assert kinds == {AttachmentKind.CACHED_PAGE}
    picture = trajectory.attachments.get(name__endswith=".jpg")
    assert Screenshot.objects.get(sha256=picture.sha256).width == 320


def test_the_database_takes_a_failure_of_an_answer_without_a_step(held: Trajectory, people: Any) -> None:
    label = testing.label(people["alice"], held, 0)
    assert (label.failure_step, label.failure_type) == (None, "range_not_exact")


def refused(action: Any) -> bool:
    with pytest.raises(IntegrityError), transaction.atomic():
        action()
    return True


@pytest.fixture
def walked(tmp_path: Path) -> Trajectory:
    """A trajectory that has steps."""
    made = testing.submission(tmp_path / "steps", trajectories=1)
    testing.cast(made)
    return made.trajectories.get()


def test_the_database_refuses_a_label_of_a_failure_without_its_step_where_there_are_steps(walked: Trajectory) -> None:
    assignment = Assignment.objects.create(
        trajectory=walked, annotator=Person.objects.get(username="bob"), slot=1, claimed_at=timezone.now()
    )
    said = {"verdict": 0, "reasoning": "It failed.", "failure_type": "other", "created_at": timezone.now()}
    assert refused(lambda: Label.objects.create(assignment=assignment, **said))
    Label.objects.create(assignment=assignment, failure_step=1, **said)


def test_the_database_refuses_an_adjudication_of_a_failure_without_its_step_where_there_are_steps(
    walked: Trajectory,
) -> None:
    now = timezone.now()
    row = Adjudication.objects.create(
        trajectory=walked, adjudicator=Person.objects.get(username="carol"), blind=True, opened_at=now
    )
    decided = {"verdict": 0, "reasoning": "It failed.", "failure_type": "other", "decided_at": now}
    assert refused(lambda: Adjudication.objects.filter(pk=row.pk).update(**decided))
    assert refused(
        lambda: Adjudication.objects.create(
            trajectory=walked, adjudicator=row.adjudicator, blind=True, opened_at=now, revision=2, **decided
        )
    )
    Adjudication.objects.filter(pk=row.pk).update(failure_step=1, **decided)


def test_the_database_refuses_a_failure_of_an_answer_without_its_type(held: Trajectory, people: Any) -> None:
    assignment = held.assignments.get()
    said = {"verdict": 0, "reasoning": "It failed.", "created_at": timezone.now()}
    assert refused(lambda: Label.objects.create(assignment=assignment, **said))


# --- what a complete label says ----------------------------------------------------------------------------------


def test_a_failure_of_an_answer_still_needs_its_type_and_the_reasoning(held: Trajectory, people: Any) -> None:
    with pytest.raises(Incomplete) as lacking:
        workflow.submit(people["alice"], held, testing.content(held, 0, failure_type="", reasoning=" "))
    assert [problem.code for problem in lacking.value.problems] == ["failure_type_missing", "reasoning_missing"]


def test_no_step_of_an_answer_can_be_named(held: Trajectory, people: Any) -> None:
    with pytest.raises(Incomplete) as lacking:
        workflow.submit(people["alice"], held, testing.content(held, 0, failure_step=0, evidence_missing=(1,)))
    assert [p.code for p in lacking.value.problems] == ["failure_step_unknown", "evidence_step_unknown"]


def test_answers_go_through_labels_a_dispute_and_the_freeze(answers: Submission, people: Any) -> None:
    testing.label_all(people, answers, {"task_0000": [0, 1, 1], "task_0001": [0, 0, 0]})
    workflow.draw_spot_checks(people["carol"], answers)
    testing.adjudicate_all(people["carol"], answers, 0)
    workflow.freeze(people["mira"], answers)
    assert {state_of(row) for row in answers.trajectories.all()} <= set(FINAL)
    assert Adjudication.objects.filter(verdict=0, failure_step=None).exists()


def test_a_known_answer_of_an_answer_needs_no_step(answers: Submission, people: Any) -> None:
    row = answers.trajectories.get(position=0)
    workflow.set_known_answer(people["mira"], row, testing.content(row, 0))
    assert row.known_answer.failure_step is None


# --- the desk ----------------------------------------------------------------------------------------------------


def test_the_form_asks_for_no_step(alice: Client, held: Trajectory) -> None:
    page = shown(alice, held)
    assert "499 EUR" in page
    for absent in ("failure_step", "evidence_missing", "_step", "Step 0", 'id="strip"', "at this step"):
        assert absent not in page, absent


def test_a_failure_can_be_submitted_through_the_form(alice: Client, held: Trajectory) -> None:
    points = {f"finding_{point.pk}": "unmet" for point in workflow.key_points_of(held)}
    form = points | {"verdict": "0", "failure_type": "wrong_answer", "reasoning": "The list says 599 EUR."}
    answer = alice.post(reverse("submit", args=[held.pk]), form)
    assert answer.status_code == 302, answer.content
    label = Label.objects.get()
    assert (label.verdict, label.failure_step) == (0, None)
    assert "Wrong or incomplete answer" in shown(alice, held)


def test_citations_are_listed_and_those_that_were_kept_open(alice: Client, held: Trajectory) -> None:
    page = shown(alice, held)
    number = held.task.external_id[-1]
    assert re.search(r'data-kept="1 2"', page)
    assert f"https://www.shop{number}.example/laptops/?utm_source=chat" in page
    assert page.count("not kept") == 1
    picture = held.attachments.get(name__endswith=".jpg")
    opened = shown(alice, held, "?page=1")
    assert reverse("page-picture", args=[held.pk, picture.pk, "display"]) in opened
    assert f"List {number}: 499 EUR" in shown(alice, held, "?page=1&show=text")
    assert f"Sheet {number}" in shown(alice, held, "?page=2")
    for unknown in ("3", "9", "-1", "x", "1" * 500):
        assert 'aria-label="Stored page" hidden' in shown(alice, held, f"?page={unknown}")


def test_a_script_gets_the_page_without_the_answer(alice: Client, held: Trajectory) -> None:
    partial = shown(alice, held, "?page=1&show=text&bare", **{"HX-Request": "true"})
    assert "List" in partial
    assert "The cheapest laptop" not in partial
    assert "<html" not in partial


def test_the_picture_of_a_page_is_encoded_anew_and_shown_to_whoever_may_see_the_answer(
    alice: Client, held: Trajectory, people: Any, answers: Submission
) -> None:
    file = held.attachments.get(name__endswith=".jpg")
    address = reverse("page-picture", args=[held.pk, file.pk, "full"])
    answer = alice.get(address)
    assert (answer.status_code, answer["Content-Type"]) == (200, "image/png")
    assert answer["X-Content-Type-Options"] == "nosniff"
    assert answer.content != screenshots.original(file.sha256)
    for name, status in (("dave", 404), ("bob", 404), ("carol", 200), ("mira", 200)):
        other = Client()
        other.force_login(people[name])
        assert other.get(address).status_code == status, name


def test_no_other_file_is_served_as_a_picture_of_a_page(alice: Client, held: Trajectory) -> None:
    text = held.attachments.get(name__endswith=".txt")
    assert alice.get(reverse("page-picture", args=[held.pk, text.pk, "full"])).status_code == 404
    picture = held.attachments.get(name__endswith=".jpg")
    held.attachments.filter(pk=picture.pk).update(kind=AttachmentKind.INPUT_IMAGE)
    assert alice.get(reverse("page-picture", args=[held.pk, picture.pk, "full"])).status_code == 404


def test_a_pdf_is_a_download_that_no_browser_shows(alice: Client, held: Trajectory) -> None:
    file = held.attachments.get(name__endswith=".pdf")
    answer = alice.get(reverse("attachment", args=[held.pk, file.pk]))
    assert answer["Content-Disposition"].startswith("attachment")
    assert (answer["Content-Type"], answer["X-Content-Type-Options"]) == ("application/octet-stream", "nosniff")
    answer.close()


def test_hostile_answers_and_pages_are_shown_as_text(alice: Client, held: Trajectory) -> None:
    hostile = (
        "<script>alert(1)</script> <img src=x onerror=alert(2)> [go](javascript:alert(3)) ![p](data:text/html;x) "
        '![q](https://tracker.example/p.png) [r](<https://x.example/" onclick="alert(4)>)'
    )
    Trajectory.objects.filter(pk=held.pk).update(final_answer=hostile)
    page = shown(alice, held)
    body = page[page.index('id="leaf"') : page.index('id="page"')]
    assert "<script" not in body
    assert "<img" not in body
    assert 'href="javascript' not in body
    assert 'href="data' not in body
    assert not re.search(r"<[^>]*\son\w+=", body)
    assert "alert(1)" in body
    assert 'href="https://tracker.example/p.png" rel="nofollow noreferrer noopener"' in body


def test_pages_that_the_store_has_lost_are_said_to_be_lost(alice: Client, held: Trajectory) -> None:
    Attachment.objects.filter(name__endswith=".txt").update(sha256="0" * 64)
    assert "the file store does not answer" in shown(alice, held, "?page=1&show=text")
    Attachment.objects.filter(name="pages/index.json").update(sha256="0" * 64)
    assert "The file store does not answer." in shown(alice, held)


@pytest.mark.parametrize("given", [None, "", "Plain words."])
def test_an_answer_without_pages_or_without_text_is_shown(alice: Client, held: Trajectory, given: str | None) -> None:
    held.attachments.all().delete()
    Trajectory.objects.filter(pk=held.pk).update(final_answer=given)
    page = shown(alice, held)
    assert ("no answer was given" in page, "its answer is empty" in page) == (given is None, given == "")
    assert "The answer cites no address." in page


def test_every_desk_shows_an_answer(answers: Submission, people: Any, client: Client) -> None:
    testing.label_all(people, answers, {"task_0000": [0, 1, 1]})
    row = answers.trajectories.get(task__external_id="task_0000")
    client.force_login(people["carol"])
    client.post(reverse("open-adjudication", args=[row.pk]))
    assert "499 EUR" in shown(client, row, name="adjudication")
    points = {f"finding_{point.pk}": "unmet" for point in workflow.key_points_of(row)}
    said = points | {"verdict": "0", "failure_type": "other", "reasoning": "Wrong.", "criterion": "key_point"}
    assert client.post(reverse("decide", args=[row.pk]), said).status_code == 302
    assert Adjudication.objects.get().failure_step is None
    client.force_login(people["mira"])
    for name in ("submission-trajectory", "known-answer"):
        assert "499 EUR" in shown(client, row, "?page=1", name=name)
    for name in ("submission", "quality"):
        assert client.get(reverse(name, args=[answers.pk])).status_code == 200


def test_a_newcomer_practises_on_answers(answers: Submission, people: Any, tmp_path: Path, client: Client) -> None:
    _, (practice,) = ingest.import_all(
        testing.write_answers(tmp_path / "practice"),
        benchmark=answers.benchmark,
        agent_name="Practice Agent",
        maintainer=people["mira"],
    )
    workflow.configure(people["mira"], practice, practice=True)
    for row, verdict in zip(practice.trajectories.all(), (0, 1), strict=True):
        workflow.set_known_answer(people["mira"], row, testing.content(row, verdict))
    workflow.configure(people["mira"], answers, practice_set=practice, pass_mark=0.5)
    client.force_login(people["alice"])
    row = practice.trajectories.get(position=0)
    address = reverse("practice-desk", args=[answers.pk, row.pk])
    asked = client.get(address).content.decode()
    assert "499 EUR" in asked
    assert "failure_step" not in asked
    points = {f"finding_{point.pk}": "unmet" for point in workflow.key_points_of(row)}
    said = points | {"verdict": "0", "failure_type": "other", "reasoning": "Wrong."}
    assert client.post(f"{address}?round=1", said).status_code in (200, 302)
    assert "Right." in client.get(address).content.decode()


def test_nothing_of_an_answer_is_fetched_ahead_for_the_strip(answers: Submission, people: Any) -> None:
    first = workflow.claim(people["alice"], answers)
    client = Client()
    client.force_login(people["alice"])
    assert client.post(reverse("ahead", args=[first.trajectory.pk])).json() == {"pictures": []}


def test_the_api_hands_out_an_answer(held: Trajectory, people: Any) -> None:
    client = Client()
    client.force_login(people["mira"])
    answer = client.get(reverse("api-trajectory", args=[held.pk]))
    assert answer.status_code == 200, answer.content
    assert answer.json()["steps"] == []
    assert answer.json()["source_format"] == "mind2web-2"
