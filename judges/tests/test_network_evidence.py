"""Network evidence on the adjudicator's desk: for who no longer judges blind, recorded, and counted in comparisons."""

from __future__ import annotations

import html
import json
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
from django.core.management import call_command
from django.test import Client
from django.urls import reverse

from annotation import workflow
from annotation.models import Person, Submission, Trajectory
from annotation.models.events import Event, first_broken
from annotation.tests import testing
from judges import defining, expectations, trying
from judges.disclosure import SEEN
from judges.expectations import Kind
from judges.models import Judgment
from judges.tests import rows
from judges.tests.builders import started_run, worked
from judges.tests.expecting import CHECKS, FAILING, expect, give_trace
from judges.tests.pages import read_page

People = dict[str, Person]
ANSWER = """\
checks:
  - name: The answer
    evaluator: agent_response
    status: SUCCESS
    retrieved_data: [lamp, sofa]
"""


@pytest.fixture
def submission(db: Any, tmp_path: Path, settings: Any) -> Submission:
    settings.MEDIA_ROOT = tmp_path / "images"
    made = testing.submission(tmp_path / "package", trajectories=3)
    made.spot_check_rate = 1.0
    made.save()
    return made


@pytest.fixture
def people(submission: Submission) -> People:
    """The first trajectory is a dispute, the second a spot check, the third unanimous; all have traces and checks."""
    found = testing.cast(submission)
    ids = list(submission.trajectories.order_by("position").values_list("task__external_id", flat=True))
    testing.label_all(found, submission, {ids[0]: [1, 0, 1], ids[1]: [1, 1, 1], ids[2]: [0, 0, 0]})
    workflow.draw_spot_checks(found["mira"], submission)
    for trajectory in submission.trajectories.all():
        give_trace(trajectory)
        expect(trajectory.task)
    return found


def trajectory(submission: Submission, position: int) -> Trajectory:
    return submission.trajectories.order_by("position")[position]


def ask(person: Person, found: Trajectory, *, look: bool = False, htmx: bool = True) -> Any:
    client = Client(headers={"HX-Request": "true"} if htmx else {})
    client.force_login(person)
    if look:
        return client.post(reverse("look-network-evidence", args=[found.pk]))
    return client.get(reverse("network-evidence", args=[found.pk]))


def looks() -> list[Event]:
    return list(Event.objects.filter(kind=SEEN).order_by("sequence"))


# --- when ------------------------------------------------------------------------------------------------------------


def test_a_dispute_shows_it_once_it_is_opened_and_only_after_a_click(people: People, submission: Submission) -> None:
    dispute = trajectory(submission, 0)
    assert ask(people["carol"], dispute).status_code == 404
    workflow.open_adjudication(people["carol"], dispute)
    panel = read_page(ask(people["carol"], dispute))
    assert "opening it is recorded" in panel
    assert "check-result" not in panel
    assert looks() == []
    shown = read_page(ask(people["carol"], dispute, look=True))
    assert "check-result ok" in shown
    assert "every check passes" in shown


def test_a_spot_check_shows_nothing_before_the_blind_decision(people: People, submission: Submission) -> None:
    checked = trajectory(submission, 1)
    assert {ask(people["carol"], checked, look=look).status_code for look in (False, True)} == {404}
    workflow.open_adjudication(people["carol"], checked)
    assert {ask(people["carol"], checked, look=look).status_code for look in (False, True)} == {404}
    assert looks() == []
    workflow.decide(people["carol"], checked, testing.content(checked))
    assert "opening it is recorded" in read_page(ask(people["carol"], checked))
    assert "check-result" in read_page(ask(people["carol"], checked, look=True))


@pytest.mark.parametrize(("name", "status"), [("alice", 403), ("mira", 403), ("dave", 404)])
def test_nobody_but_the_adjudicator_reaches_it(people: People, submission: Submission, name: str, status: int) -> None:
    dispute = trajectory(submission, 0)
    workflow.open_adjudication(people["carol"], dispute)
    assert {ask(people[name], dispute, look=look).status_code for look in (False, True)} == {status}
    assert looks() == []


def test_without_a_trace_or_checks_the_panel_is_empty_and_nothing_can_be_opened(
    people: People, submission: Submission
) -> None:
    dispute = trajectory(submission, 0)
    workflow.open_adjudication(people["carol"], dispute)
    expectations.withdraw(None, dispute.task, Kind.NETWORK_CHECKS)
    assert ask(people["carol"], dispute).content == b""
    assert ask(people["carol"], dispute, htmx=False).status_code == 404
    assert ask(people["carol"], dispute, look=True).status_code == 404
    expect(dispute.task)
    dispute.attachments.all().delete()
    assert ask(people["carol"], dispute).content == b""


@pytest.mark.django_db(transaction=True)  # a run is worked on in threads
@pytest.mark.parametrize(
    ("answer", "chip", "conclusion"),
    [
        ({"status": "SUCCESS", "retrieved_data": ["sofa", "lamp"]}, "ok", "every check passes"),
        ({"status": "SUCCESS", "retrieved_data": ["sofa"]}, "bad", "a check fails"),
        (None, "warn", "Unscored"),
    ],
)
def test_checks_of_the_answer_alone_need_no_trace_and_say_what_the_judge_says(
    people: People, submission: Submission, answer: dict[str, Any] | None, chip: str, conclusion: str
) -> None:
    dispute = trajectory(submission, 0)
    workflow.open_adjudication(people["carol"], dispute)
    dispute.attachments.all().delete()
    expect(dispute.task, ANSWER)
    if answer is not None:
        Trajectory.objects.filter(pk=dispute.pk).update(final_answer=json.dumps(answer))
    assert "opening it is recorded" in read_page(ask(people["carol"], dispute))
    shown = html.unescape(read_page(ask(people["carol"], dispute, look=True)))
    assert f"check-result {chip}" in shown
    assert conclusion in shown
    assert "what the agent answered" in shown
    (event,) = looks()
    assert event.payload["trace"] == ""
    assert "check-result" in read_page(ask(people["carol"], dispute, htmx=False))  # what was opened stays open

    run = started_run(people["mira"], submission, defining.define(None, name="network", scorer="network-trace"))
    worked(run)
    judgment = Judgment.objects.get(item__run=run, trajectory=dispute)
    (check,) = judgment.evidence["details"]["checks"]
    assert check["message"] in shown
    assert judgment.unscored in shown
    assert (judgment.unscored != "") is (chip == "warn")


def test_one_check_of_the_network_among_those_of_the_answer_needs_a_trace(
    people: People, submission: Submission
) -> None:
    dispute = trajectory(submission, 0)
    workflow.open_adjudication(people["carol"], dispute)
    dispute.attachments.all().delete()
    expect(dispute.task, CHECKS + ANSWER.partition("\n")[2])
    assert ask(people["carol"], dispute).content == b""
    assert ask(people["carol"], dispute, look=True).status_code == 404
    assert looks() == []


def test_the_desk_asks_for_the_panel_where_labels_are_shown_and_nowhere_else(
    people: People, submission: Submission
) -> None:
    client = Client()
    client.force_login(people["carol"])
    for position, before, after in ((0, False, True), (1, False, False)):
        found = trajectory(submission, position)
        address = reverse("network-evidence", args=[found.pk])
        desk = reverse("adjudication", args=[found.pk])
        assert (address in client.get(desk).content.decode()) is before
        workflow.open_adjudication(people["carol"], found)
        page = client.get(desk).content.decode()
        assert (address in page) is after
        assert ("htmx-2.min.js" in page) is after


# --- recorded --------------------------------------------------------------------------------------------------------


def test_the_first_look_is_an_event_in_the_chain_and_the_next_ones_are_none(
    people: People, submission: Submission
) -> None:
    dispute = trajectory(submission, 0)
    workflow.open_adjudication(people["carol"], dispute)
    for _ in range(3):
        ask(people["carol"], dispute, look=True)
    (event,) = looks()
    made = expectations.find_current(dispute.task, Kind.NETWORK_CHECKS)
    assert made is not None
    assert event.payload == {
        "task_id": dispute.task.external_id,
        "trajectory": dispute.pk,
        "checks": made.digest,
        "trace": dispute.attachments.get().sha256,
    }
    assert (event.actor, event.actor_pseudonym, event.submission) == (people["carol"], "Q1", submission)
    assert first_broken(submission.events.order_by("sequence")) is None
    assert "check-result ok" in read_page(ask(people["carol"], dispute))  # what was opened stays open


def test_other_checks_are_another_look(people: People, submission: Submission) -> None:
    dispute = trajectory(submission, 0)
    workflow.open_adjudication(people["carol"], dispute)
    ask(people["carol"], dispute, look=True)
    expect(dispute.task, FAILING)
    assert "check-result" not in read_page(ask(people["carol"], dispute))
    assert "a check fails" in read_page(ask(people["carol"], dispute, look=True))
    assert len(looks()) == 2


def test_without_a_script_it_is_a_page_that_says_first_what_a_look_means(
    people: People, submission: Submission
) -> None:
    dispute = trajectory(submission, 0)
    workflow.open_adjudication(people["carol"], dispute)
    page = read_page(ask(people["carol"], dispute, htmx=False))
    assert "is recorded as an event of the submission" in page
    assert "check-result" not in page
    answer = ask(people["carol"], dispute, look=True, htmx=False)
    assert answer.status_code == 302
    assert "check-result ok" in read_page(ask(people["carol"], dispute, htmx=False))


def test_what_is_found_is_the_judgment_of_the_judge_itself(people: People, submission: Submission) -> None:
    dispute = trajectory(submission, 0)
    score = trying.try_checks(dispute, CHECKS)
    assert (score.verdict, score.score) == (1, 1.0)
    assert trying.try_checks(dispute, FAILING).verdict == 0
    assert trying.try_checks(dispute, "checks: []").verdict is None


# --- counted ---------------------------------------------------------------------------------------------------------


def judged(submission: Submission, scorer: str) -> str:
    judge = rows.judge_row(f"the-{scorer}", scorer=scorer, model="", prompts="")
    for item in rows.run_row(submission, judge).items.all():
        rows.judgment_row(item, 1)
    return judge.name


def decided(people: People, submission: Submission) -> None:
    """The dispute after a look, the spot check before one."""
    first, second = trajectory(submission, 0), trajectory(submission, 1)
    workflow.open_adjudication(people["carol"], first)
    ask(people["carol"], first, look=True)
    workflow.decide(people["carol"], first, testing.content(first))
    workflow.open_adjudication(people["carol"], second)
    workflow.decide(people["carol"], second, testing.content(second))
    ask(people["carol"], second, look=True)
    testing.adjudicate_all(people["carol"], submission)
    workflow.freeze(people["mira"], submission)


def test_a_comparison_says_how_many_cases_were_decided_after_a_look(people: People, submission: Submission) -> None:
    name, other = judged(submission, "network-trace"), judged(submission, "webjudge")
    decided(people, submission)
    assert len(looks()) == 2
    out = StringIO()
    call_command("compare", benchmark="shops", judge=name, json=True, stdout=out)
    assert json.loads(out.getvalue())["decided_after_network_evidence"] == 1
    out = StringIO()
    call_command("compare", benchmark="shops", judge=other, json=True, stdout=out)
    assert json.loads(out.getvalue())["decided_after_network_evidence"] == 0
    out = StringIO()
    call_command("compare", benchmark="shops", judge=name, stdout=out)
    assert "1 case was decided after the adjudicator had opened the network evidence" in " ".join(
        out.getvalue().split()
    )
    client = Client()
    client.force_login(people["mira"])
    page = client.get(reverse("comparison", args=[submission.pk]), {"judge": f"{name}@1"}).content.decode()
    assert "1 case was decided after the adjudicator had opened the network evidence" in page
    page = client.get(reverse("comparison", args=[submission.pk]), {"judge": f"{other}@1"}).content.decode()
    assert "opened the network evidence" not in page
    told = client.get(reverse("api-comparison", args=[submission.pk]), {"judge": name}).json()
    assert told["decided_after_network_evidence"] == 1


def test_a_decision_that_is_made_anew_after_a_look_counts(people: People, submission: Submission) -> None:
    name = judged(submission, "network-trace")
    second = trajectory(submission, 1)
    workflow.open_adjudication(people["carol"], second)
    workflow.decide(people["carol"], second, testing.content(second))
    ask(people["carol"], second, look=True)
    workflow.open_adjudication(people["carol"], second, "I overlooked the cart.")
    workflow.decide(people["carol"], second, testing.content(second))
    testing.adjudicate_all(people["carol"], submission)
    workflow.freeze(people["mira"], submission)
    out = StringIO()
    call_command("compare", benchmark="shops", judge=name, json=True, stdout=out)
    assert json.loads(out.getvalue())["decided_after_network_evidence"] == 1
