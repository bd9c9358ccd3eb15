"""The API for a maintainer's script: who may ask, what comes back, and the filters."""

from __future__ import annotations

from typing import Any

import pytest
from rest_framework.test import APIClient

from annotation import workflow
from annotation.models import ApiToken, Label, Person, Report, Submission
from annotation.records import AttemptContent
from annotation.tests import testing
from annotation.tests.shared_rows import shared_rows

People = dict[str, Person]
OF_SUBMISSION = [
    "", "/progress", "/members", "/trajectories", "/labels", "/adjudications", "/verdicts", "/reports",
]  # fmt: skip
FOR_MAINTAINERS = ["/benchmarks", "/benchmarks/shops/tasks", "/submissions"]


def client(person: Person | None) -> APIClient:
    made = APIClient()
    if person is not None:
        made.credentials(HTTP_AUTHORIZATION=f"Bearer {ApiToken.issue(person, 'test', 'admin')[1]}")
    return made


def get(person: Person | None, path: str, **query: Any) -> Any:
    return client(person).get(f"/api/v1{path}", query)


def results(person: Person, path: str, **query: Any) -> list[dict[str, Any]]:
    response = get(person, path, **query)
    assert response.status_code == 200, response.json()
    return response.json()["results"]


def problem(response: Any, status: int) -> dict[str, Any]:
    assert response.status_code == status
    assert response["Content-Type"] == "application/problem+json"
    body = response.json()
    assert (body["type"], body["status"]) == ("about:blank", status)
    return body


@shared_rows
def frozen(submission: Submission, people: People) -> Submission:
    testing.label_all(people, submission, {"task_0000": [1, 0, 1], "task_0001": [2, 1, 1]})
    testing.adjudicate_all(people["carol"], submission, 0)
    return workflow.freeze(people["mira"], submission)


# --- who may ask ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("path", OF_SUBMISSION)
@pytest.mark.parametrize(("who", "status"), [("alice", 403), ("carol", 403), ("dave", 404), (None, 401)])
def test_a_submission_is_for_its_maintainers(
    frozen: Submission, people: People, path: str, who: str | None, status: int
) -> None:
    problem(get(people[who] if who else None, f"/submissions/{frozen.pk}{path}"), status)
    assert get(people["mira"], f"/submissions/{frozen.pk}{path}").status_code == 200


@pytest.mark.parametrize("path", FOR_MAINTAINERS)
@pytest.mark.parametrize(("who", "status"), [("alice", 403), ("carol", 403), ("dave", 403), (None, 401)])
def test_lists_are_for_maintainers(
    submission: Submission, people: People, path: str, who: str | None, status: int
) -> None:
    problem(get(people[who] if who else None, path), status)
    assert get(people["mira"], path).status_code == 200


@pytest.mark.parametrize(("who", "status"), [("alice", 403), ("dave", 404), ("mira", 200)])
def test_a_trajectory_is_for_the_maintainers(submission: Submission, people: People, who: str, status: int) -> None:
    workflow.claim(people["alice"], submission)
    path = f"/trajectories/{submission.trajectories.get(position=0).pk}"
    assert get(people[who], path).status_code == status


def test_a_revoked_token_and_an_unknown_one_are_refused(submission: Submission, people: People) -> None:
    scripted = client(people["mira"])
    assert scripted.get("/api/v1/submissions").status_code == 200
    token = ApiToken.objects.get()
    assert scripted.delete(f"/api/v1/tokens/{token.pk}").status_code == 204
    response = scripted.get("/api/v1/submissions")
    assert "revoked" in problem(response, 401)["detail"]
    assert response["WWW-Authenticate"] == "Bearer"
    scripted.credentials(HTTP_AUTHORIZATION="Bearer wv_unknown")
    problem(scripted.get("/api/v1/submissions"), 401)


def test_the_token_of_a_deactivated_person_is_refused(submission: Submission, people: People) -> None:
    scripted = client(people["mira"])
    Person.objects.filter(username="mira").update(is_active=False)
    problem(scripted.get("/api/v1/submissions"), 401)


def test_a_signed_in_browser_may_read_too(submission: Submission, people: People) -> None:
    browser = APIClient()
    browser.force_login(people["mira"])
    assert browser.get("/api/v1/submissions").status_code == 200


def test_somebody_who_maintains_another_submission_does_not_see_this_one(
    submission: Submission, people: People
) -> None:
    staff = testing.person("otto", is_staff=True)
    assert results(staff, "/submissions") == []
    problem(get(staff, f"/submissions/{submission.pk}"), 404)


# --- what comes back -----------------------------------------------------------------------------------------------


def test_a_submission_is_described(submission: Submission, people: People) -> None:
    listed = results(people["mira"], "/submissions")
    assert listed == [get(people["mira"], f"/submissions/{submission.pk}").json()]
    assert {k: listed[0][k] for k in ("id", "benchmark", "agent", "attempt", "trajectories", "frozen_at")} == {
        "id": submission.pk,
        "benchmark": "shops",
        "agent": "Careful Agent",
        "attempt": 1,
        "trajectories": 2,
        "frozen_at": None,
    }


@pytest.mark.parametrize(
    ("query", "count"),
    [
        ({"benchmark": "shops"}, 1),
        ({"benchmark": "other"}, 0),
        ({"agent": "Careful Agent"}, 1),
        ({"agent": "Careful"}, 0),
        ({"frozen": "false"}, 1),
        ({"frozen": "true"}, 0),
        ({}, 1),
    ],
)
def test_submissions_are_filtered(submission: Submission, people: People, query: dict[str, str], count: int) -> None:
    assert len(results(people["mira"], "/submissions", **query)) == count


@pytest.mark.parametrize(
    ("path", "query", "where"),
    [
        ("/submissions", {"frozen": "perhaps"}, "frozen"),
        ("/submissions", {"frozzen": "true"}, "frozzen"),
        ("/submissions", {"benchmark": "a b"}, "benchmark"),
        ("/submissions", {"agent": "\x00"}, "agent"),
        ("/submissions", {"page_size": "0"}, "page_size"),
        ("/submissions", {"page_size": "201"}, "page_size"),
        ("/submissions", {"page_size": "many"}, "page_size"),
        ("/submissions/{pk}/progress", {"state": "done"}, "state"),
        ("/submissions/{pk}/members", {"role": "boss"}, "role"),
        ("/submissions/{pk}", {"verbose": "1"}, "verbose"),
    ],
)
def test_a_wrong_or_unknown_query_parameter_is_refused_and_named(
    submission: Submission, people: People, path: str, query: dict[str, str], where: str
) -> None:
    body = problem(get(people["mira"], path.format(pk=submission.pk), **query), 400)
    assert [error["where"] for error in body["errors"]] == [where]


def test_lists_come_in_pages(submission: Submission, people: People) -> None:
    path = f"/submissions/{submission.pk}/progress"
    first = get(people["mira"], path, page_size=1).json()
    assert (first["count"], len(first["results"])) == (2, 1)
    second = client(people["mira"]).get(first["next"]).json()
    assert [row["task_id"] for row in first["results"] + second["results"]] == ["task_0000", "task_0001"]
    assert second["next"] is None
    problem(get(people["mira"], path, page=3), 404)


def test_progress_tells_how_far_and_not_what(submission: Submission, people: People) -> None:
    trajectory = submission.trajectories.get(position=0)
    testing.label(people["alice"], trajectory, 0)
    path = f"/submissions/{submission.pk}/progress"
    assert results(people["mira"], path) == [
        {"trajectory": trajectory.pk, "task_id": "task_0000", "state": "in review", "labels": 1},
        {"trajectory": trajectory.pk + 1, "task_id": "task_0001", "state": "in review", "labels": 0},
    ]
    assert len(results(people["mira"], path, state="dispute")) == 0
    assert len(results(people["mira"], path, state="in review")) == 2
    assert [row["task_id"] for row in results(people["mira"], path, task_id="task_0001")] == ["task_0001"]


def test_a_trajectory_has_its_steps(submission: Submission, people: People) -> None:
    listed = results(people["mira"], f"/submissions/{submission.pk}/trajectories", task_id="task_0001")
    assert [(row["task_id"], row["steps"], row["source_format"]) for row in listed] == [
        ("task_0001", 3, "online-mind2web-v2")
    ]
    detail = get(people["mira"], f"/trajectories/{listed[0]['id']}").json()
    first = detail["steps"][0]
    assert (first["index"], first["click_x"], first["click_y"]) == (0, 100.0, 50.0)
    assert first["screenshot"]["media_type"] == "image/png"
    assert len(detail["steps"]) == 3


@pytest.mark.parametrize("what", ["labels", "adjudications", "verdicts", "reports"])
def test_what_people_said_is_withheld_until_the_freeze(submission: Submission, people: People, what: str) -> None:
    testing.label_all(people, submission, {"task_0000": [1, 0, 1]})
    testing.adjudicate_all(people["carol"], submission)
    body = problem(get(people["mira"], f"/submissions/{submission.pk}/{what}"), 409)
    assert "once the submission is frozen" in body["detail"]
    assert "errors" not in body


def test_labels_are_under_pseudonyms_after_the_freeze(frozen: Submission, people: People) -> None:
    found = results(people["mira"], f"/submissions/{frozen.pk}/labels")
    assert [(label["task_id"], label["annotator"], label["slot"], label["verdict"]) for label in found] == [
        ("task_0000", "A1", 1, 1),
        ("task_0000", "A2", 2, 0),
        ("task_0000", "A3", 3, 1),
        ("task_0001", "A1", 1, 2),
        ("task_0001", "A2", 2, 1),
        ("task_0001", "A3", 3, 1),
    ]
    assert found[1]["findings"][0] == {"key_point": "at least 16 GB", "finding": "unmet", "step": 0}
    assert len(results(people["mira"], f"/submissions/{frozen.pk}/labels", task_id="task_0001")) == 3


def test_adjudications_and_verdicts_come_after_the_freeze(frozen: Submission, people: People) -> None:
    made = results(people["mira"], f"/submissions/{frozen.pk}/adjudications", task_id="task_0000")
    assert [(row["adjudicator"], row["verdict"], row["blind"]) for row in made] == [("Q1", 0, False)]
    verdicts = results(people["mira"], f"/submissions/{frozen.pk}/verdicts")
    assert verdicts == [
        {"task_id": "task_0000", "verdict": 0, "state": "adjudicated"},
        {"task_id": "task_0001", "verdict": 0, "state": "adjudicated"},
    ]


def test_a_label_says_what_was_measured_and_null_where_nothing_was(submission: Submission, people: People) -> None:
    held = workflow.claim(people["alice"], submission)
    assert held is not None
    workflow.record_activity(people["alice"], held.trajectory, 30, [2, 0])
    entered = testing.content(held.trajectory, 0, further_failure_types=("loop",), evidence_missing=(1,))
    workflow.submit(people["alice"], held.trajectory, entered)
    testing.label_all(people, submission, {"task_0000": [1, 1, 1], "task_0001": [1, 0, 1]})
    testing.adjudicate_all(people["carol"], submission)
    workflow.freeze(people["mira"], submission)
    alice, bob, _ = results(people["mira"], f"/submissions/{submission.pk}/labels", task_id="task_0000")
    names = ("further_failure_types", "evidence_missing", "active_seconds", "steps_seen", "attempt")
    assert [alice[name] for name in names] == [["loop"], [1], 30, [0, 2], None]
    assert [bob[name] for name in names] == [[], [], None, None, None]
    assert [results(people["alice"], "/my/labels")[0][name] for name in names] == [alice[name] for name in names]
    decided = results(people["mira"], f"/submissions/{submission.pk}/adjudications")
    assert {(row["criterion"], row["steps_seen"]) for row in decided} == {("key_point", None)}


def test_a_label_under_version_2_has_the_own_attempt(submission: Submission, people: People) -> None:
    Submission.objects.update(protocol_version=2)
    for trajectory in submission.trajectories.all():
        for name in ("alice", "bob", "chen"):
            held = workflow.claim_this(people[name], trajectory)
            attempt = AttemptContent(4, f"Notes of {name}.", "", "as_short", 95)
            workflow.submit(people[name], held.trajectory, testing.content(trajectory, attempt=attempt))
    workflow.draw_spot_checks(people["mira"], submission)
    testing.adjudicate_all(people["carol"], submission)
    workflow.freeze(people["mira"], submission)
    first = results(people["mira"], f"/submissions/{submission.pk}/labels")[0]
    assert first["attempt"] == {"steps": 4, "notes": "Notes of alice.", "link": "", "path": "as_short", "seconds": 95}
    own = results(people["bob"], "/my/labels")
    assert {row["attempt"]["notes"] for row in own} == {"Notes of bob."}


def test_reports_come_under_pseudonyms_after_the_freeze(submission: Submission, people: People) -> None:
    testing.label_all(people, submission, {"task_0000": [1, 0, 1], "task_0001": [1, 0, 1]})
    trajectory = submission.trajectories.get(position=1)
    made = workflow.report(people["bob"], trajectory, Report.Kind.TASK_OUTDATED, "The shop has closed.")
    workflow.settle_report(people["mira"], made, "The task is replaced.")
    testing.adjudicate_all(people["carol"], submission)
    workflow.freeze(people["mira"], submission)
    path = f"/submissions/{submission.pk}/reports"
    (only,) = results(people["mira"], path, task_id="task_0001")
    assert (only["reporter"], only["kind"], only["note"]) == ("A2", "task_outdated", "The shop has closed.")
    assert (only["answer"], only["settled_at"] is None) == ("The task is replaced.", False)
    assert results(people["mira"], path, task_id="task_0000") == []


def test_members_have_pseudonyms_and_their_names_are_for_maintainers(submission: Submission, people: People) -> None:
    found = results(people["mira"], f"/submissions/{submission.pk}/members", role="annotator")
    assert [(row["pseudonym"], row["name"]) for row in found] == [
        ("A1", "alice"),
        ("A2", "bob"),
        ("A3", "chen"),
    ]


@pytest.mark.parametrize("path", ["progress", "trajectories", "labels", "verdicts"])
def test_the_queries_of_a_list_do_not_grow_with_its_rows(
    frozen: Submission, people: People, path: str, django_assert_num_queries: Any
) -> None:
    scripted = client(people["mira"])
    address = f"/api/v1/submissions/{frozen.pk}/{path}"
    scripted.get(address)
    from django.db import connection
    from django.test.utils import CaptureQueriesContext

    counts = []
    for size in (1, 2):
        with CaptureQueriesContext(
            connection,
        ) as captured:
            assert len(scripted.get(address, {"page_size": size}).json()["results"]) == size
        counts.append(len(captured))
    assert counts[0] == counts[1] <= 12


# --- the caller's own ----------------------------------------------------------------------------------------------


def test_an_annotator_gets_their_own_labels_and_nothing_of_others(frozen: Submission, people: People) -> None:
    found = results(people["bob"], "/my/labels")
    assert [(row["task_id"], row["verdict"], row["revision"]) for row in found] == [
        ("task_0000", 0, 1),
        ("task_0001", 1, 1),
    ]
    assert not {"id", "slot", "annotator"} & set(found[0])
    assert Label.objects.count() == 6
    assert results(people["dave"], "/my/labels") == []


def test_tokens_are_the_caller_s_own(submission: Submission, people: People) -> None:
    foreign, _ = ApiToken.issue(people["bob"], "of bob", "admin")
    listed = results(people["alice"], "/tokens")
    assert [row["name"] for row in listed] == ["test"]
    assert set(listed[0]) == {
        "id", "name", "created_at", "last_used_at", "revoked_at", "scope", "expires_at",
    }  # fmt: skip
    problem(client(people["alice"]).delete(f"/api/v1/tokens/{foreign.pk}"), 404)
    foreign.refresh_from_db()
    assert foreign.revoked_at is None


def test_revoking_twice_keeps_the_first_time(submission: Submission, people: People) -> None:
    old, _ = ApiToken.issue(people["mira"], "old", "admin")
    scripted = client(people["mira"])
    scripted.delete(f"/api/v1/tokens/{old.pk}")
    old.refresh_from_db()
    first = old.revoked_at
    assert scripted.delete(f"/api/v1/tokens/{old.pk}").status_code == 204
    old.refresh_from_db()
    assert old.revoked_at == first is not None


def test_tokens_are_not_made_by_the_api(submission: Submission, people: People) -> None:
    problem(client(people["mira"]).post("/api/v1/tokens", {"name": "child"}), 405)


@pytest.mark.parametrize("path", ["/submissions/{}", "/submissions/{}/progress", "/trajectories/{}"])
def test_a_number_beyond_every_column_is_not_found(submission: Submission, people: People, path: str) -> None:
    problem(get(people["mira"], path.format(2**70)), 404)
