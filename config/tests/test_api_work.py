"""Work through the API: roles, scopes, what each role reads, and what is refused."""

from __future__ import annotations

from typing import Any

import pytest
from rest_framework.test import APIClient

from annotation import workflow
from annotation.models import Activity, ApiToken, Event, KeyPoint, Label, Person, Submission
from annotation.tests import testing
from annotation.tests.shared_rows import shared_rows
from config.tests.test_protocol_by_api import decision

pytestmark = pytest.mark.django_db
People = dict[str, Person]


@shared_rows
def submission(folder: Any) -> Submission:
    return testing.submission(folder, trajectories=2)


@shared_rows
def people(submission: Submission) -> People:
    return testing.cast(submission)


def script(person: Person, scope: str = "write") -> APIClient:
    client = APIClient()
    client.credentials(HTTP_AUTHORIZATION=f"Bearer {ApiToken.issue(person, 'test', scope)[1]}")
    return client


def post(client: APIClient, path: str, **body: Any) -> Any:
    return client.post(f"/api/v1/{path}", body, format="json")


def take(client: APIClient, submission: Submission) -> dict[str, Any]:
    return dict(post(client, f"submissions/{submission.pk}/next").json())


# --- roles and scopes -------------------------------------------------------------------------------------------------

FOR = {
    "alice": ["submissions/{s}/next", "trajectories/{t}/label", "trajectories/{t}/flag", "trajectories/{t}/decline"],
    "carol": ["submissions/{s}/adjudication-queue/next", "trajectories/{t}/adjudication/decision"],
    "mira": [
        "submissions/{s}/freeze", "submissions/{s}/members", "submissions/{s}/invitations", "submissions/{s}/archive",
        "submissions/{s}/members/A1/deactivate", "submissions/{s}/reminders", "trajectories/{t}/offer-again",
    ],
}  # fmt: skip


@pytest.mark.parametrize("role", FOR)
def test_work_of_a_role_is_refused_to_others_and_to_tokens_of_a_smaller_scope(
    submission: Submission, people: People, role: str
) -> None:
    trajectory = workflow.claim(people["alice"], submission).trajectory  # type: ignore[union-attr]
    paths = [path.format(s=submission.pk, t=trajectory.pk) for path in FOR[role]]
    events = Event.objects.count()
    clients = {who: script(people[who], "admin") for who in {"alice", "carol", "mira", "dave"} - {role}}
    for path in paths:
        answers = {who: post(client, path).status_code for who, client in clients.items()}
        assert answers.pop("dave") == 404, path
        assert set(answers.values()) == {403}, path
    reading = script(people[role], "read")
    assert {post(reading, path).status_code for path in paths} == {403}
    assert Event.objects.count() == events


def test_people_and_deletion_need_the_scope_admin(submission: Submission, people: People) -> None:
    writing, name = script(people["mira"]), {"name": "dave", "role": "annotator"}
    assert post(writing, f"submissions/{submission.pk}/members", **name).status_code == 403
    assert writing.delete(f"/api/v1/submissions/{submission.pk}?name=Careful Agent").status_code == 403
    added = post(script(people["mira"], "admin"), f"submissions/{submission.pk}/members", **name)
    assert (added.status_code, added.json()["pseudonym"]) == (201, "A4")


# --- annotators -------------------------------------------------------------------------------------------------------


def test_a_label_by_script_has_no_measured_time_although_the_desk_measured_some(
    submission: Submission, people: People
) -> None:
    alice = script(people["alice"])
    desk = take(alice, submission)
    Activity.objects.create(
        trajectory_id=desk["trajectory"], person=people["alice"], seconds=50, steps=[0], last_at=submission.created_at
    )
    body = decision(desk, 0, active_seconds=9, steps_seen=[0, 1])
    assert post(alice, f"trajectories/{desk['trajectory']}/label", **body).status_code == 201
    label = Label.objects.get()
    assert (label.active_seconds, label.steps_seen, label.failure_step) == (None, None, 1)
    revised = post(alice, f"trajectories/{desk['trajectory']}/label/revisions", **decision(desk, 1), reason="Looked.")
    assert (revised.status_code, revised.json()["active_seconds"], revised.json()["revision"]) == (201, None, 2)


def test_an_incomplete_label_is_refused_with_every_problem(submission: Submission, people: People) -> None:
    alice = script(people["alice"])
    desk = take(alice, submission)
    address = f"trajectories/{desk['trajectory']}/label"
    empty = post(alice, address).json()
    assert {"verdict_missing", "reasoning_missing", "finding_missing"} <= {each["code"] for each in empty["errors"]}
    twice = decision(desk, 1)
    twice["findings"] = [*twice["findings"], twice["findings"][0], {"key_point": "none", "finding": "met"}]
    codes = {each["code"] for each in post(alice, address, **twice).json()["errors"]}
    assert codes == {"finding_twice", "finding_unknown"}
    attempt = post(alice, address, **decision(desk, 1, attempt={"notes": "I searched."})).json()
    assert attempt["errors"][0]["code"] == "attempt_not_asked"
    assert not Label.objects.exists()


def test_version_2_asks_for_the_own_attempt(submission: Submission, people: People) -> None:
    workflow.configure(people["mira"], submission, protocol_version=2)
    alice = script(people["alice"])
    desk = take(alice, submission)
    address = f"trajectories/{desk['trajectory']}/label"
    refused = post(alice, address, **decision(desk, 1))
    assert "attempt_notes_missing" in {each["code"] for each in refused.json()["errors"]}
    attempt = {"notes": "I searched.", "steps": 3, "path": "as_short"}
    made = post(alice, address, **decision(desk, 1, attempt=attempt, flag_note="Please look."))
    assert (made.status_code, made.json()["attempt"]["steps"]) == (201, 3)
    assert alice.get(f"/api/v1/trajectories/{desk['trajectory']}/desk").json()["flagged"] is True


def test_screenshots_have_their_media_type(submission: Submission, people: People) -> None:
    alice = script(people["alice"], "read")
    held = workflow.claim(people["alice"], submission)
    assert held is not None
    for kind, media_type, start in (("display", "image/webp", b"RIFF"), ("full", "image/png", b"\x89PNG")):
        answer = alice.get(f"/api/v1/trajectories/{held.trajectory_id}/steps/0/{kind}", HTTP_ACCEPT="image/*")
        assert (answer["Content-Type"], answer.content[:4]) == (media_type, start)
    other = submission.trajectories.exclude(pk=held.trajectory_id).get()
    assert alice.get(f"/api/v1/trajectories/{other.pk}/steps/0/full").status_code == 404


def test_answers_to_an_annotator_do_not_depend_on_what_others_did(submission: Submission, people: People) -> None:
    alice = script(people["alice"])
    desk = take(alice, submission)
    mine = f"/api/v1/trajectories/{desk['trajectory']}"
    body = decision(desk, 1)
    label = post(alice, f"{mine[8:]}/label", **body).content

    def read() -> list[bytes]:
        paths = (f"{mine}/desk", f"/api/v1/submissions/{submission.pk}/questions", "/api/v1/my/labels")
        posts = [post(alice, f"{mine[8:]}/label", **body), post(alice, f"{mine[8:]}/key-points", text="in stock")]
        return [alice.get(path).content for path in paths] + [each.content for each in posts]

    read()  # the first proposal is the caller's own
    before = read()
    trajectory = submission.trajectories.get(pk=desk["trajectory"])
    for name, verdict in (("bob", 0), ("chen", 1)):
        testing.label(people[name], trajectory, verdict)
    workflow.flag(people["bob"], trajectory, "Look.")
    workflow.ask_question(people["bob"], submission, "What is cheap?")
    workflow.open_adjudication(people["carol"], trajectory)
    KeyPoint.objects.create(task=trajectory.task, position=9, text="in stock", proposed_by=people["bob"])
    assert read() == before
    assert label == before[3]


# --- adjudicators and maintainers -------------------------------------------------------------------------------------


def test_an_adjudicator_reads_labels_only_after_opening_the_dispute(submission: Submission, people: People) -> None:
    testing.label_all(people, submission, {"task_0000": [0, 1, 1]})
    carol = script(people["carol"])
    listed = carol.get(f"/api/v1/submissions/{submission.pk}/adjudication-queue").json()["results"]
    at = f"/api/v1/trajectories/{listed[0]['trajectory']}/adjudication"
    assert (listed[0]["kind"], carol.get(at).json()["labels"]) == ("opposed", None)
    opened = post(carol, at[8:]).json()
    assert [label["annotator"] for label in opened["labels"]] == ["A1", "A2", "A3"]
    assert post(carol, f"{at[8:]}/put-off").json()["until"]
    assert post(carol, f"{at[8:]}/leave").status_code == 204
    assert post(carol, f"{at[8:]}/decision", **decision(opened, 1, criterion="key_point")).status_code == 409


def test_a_maintainer_changes_settings_and_reads_events_without_notes(submission: Submission, people: People) -> None:
    mira, at = script(people["mira"]), f"/api/v1/submissions/{submission.pk}"
    held = workflow.claim(people["alice"], submission)
    assert held is not None
    workflow.flag(people["alice"], held.trajectory, "It failed.")
    workflow.release(people["alice"], held.trajectory, "I failed it.")
    events = mira.get(f"{at}/events").json()["results"]
    assert [event["kind"] for event in events[:2]] == ["released", "flagged"]
    assert "failed" not in str(events)
    assert mira.patch(f"{at}/settings", {"spot_check_rate": 0.25}, format="json").json()["spot_check_rate"] == 0.25
    assert mira.patch(f"{at}/settings", {"spot_check_rate": 2}, format="json").status_code == 400
    again = f"trajectories/{held.trajectory_id}/offer-again"
    assert [post(mira, again, reason="Try it.").status_code for _ in range(2)] == [204, 409]
    asked = post(script(people["alice"]), f"{at[8:]}/questions", text="What is cheap?").json()
    assert (asked["id"], asked["asker"], asked["mine"]) == (None, None, True)
    [question] = mira.get(f"{at}/questions").json()["results"]
    assert question["asker"] == "A1"
    assert post(mira, f"questions/{question['id']}/answer", answer="The lowest price.").status_code == 204
    assert post(mira, f"{at[8:]}/archive").json()["archived_at"]
    assert post(mira, f"{at[8:]}/restore").json()["archived_at"] is None


def test_practice_shows_the_known_answer_after_the_own_answer(
    submission: Submission, people: People, tmp_path: Any
) -> None:
    practice = testing.practice_set(people, submission, tmp_path / "practice", answers=(0,))
    alice, at = script(people["alice"]), f"/api/v1/submissions/{submission.pk}/practice"
    item = practice.trajectories.get().pk
    state = alice.get(at).json()
    assert ([each["trajectory"] for each in state["items"]], state["admitted"]) == ([item], False)
    desk = alice.get(f"{at}/{item}").json()
    assert (desk["known_answer"], desk["right"]) == (None, None)
    answered = post(alice, f"{at[8:]}/{item}", **decision(desk, 0), round=state["open_round"]).json()
    assert (answered["known_answer"]["verdict"], answered["right"]) == (0, True)
    known = script(people["mira"]).get(f"/api/v1/trajectories/{item}/known-answer").json()
    assert known == answered["known_answer"]
