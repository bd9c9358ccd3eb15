"""Exports through the API."""

from __future__ import annotations

import json
from typing import Any

import pytest

from annotation.models import Person, Submission
from annotation.tests import testing
from annotation.tests.test_api_submissions import client, get, problem

People = dict[str, Person]


@pytest.mark.parametrize("path", ["export-check", "exports/human-label", "exports/labels", "exports/trajectories-v2"])
@pytest.mark.parametrize(("who", "status"), [("mira", 200), ("alice", 403), ("carol", 403), ("dave", 404), (None, 401)])
def test_only_maintainers_export(frozen: Submission, people: People, path: str, who: str | None, status: int) -> None:
    response = get(people[who] if who else None, f"/submissions/{frozen.pk}/{path}")
    assert response.status_code == status
    if status != 200:
        problem(response, status)


def test_the_check_names_what_is_missing(submission: Submission, people: People) -> None:
    body = get(people["mira"], f"/submissions/{submission.pk}/export-check").json()
    assert body["complete"] is False
    assert [p["code"] for p in body["missing"]] == ["labels_missing", "labels_missing", "not_frozen"]
    assert body["unconvertible"] == body["warnings"] == []


def test_the_check_of_a_frozen_submission_is_complete(frozen: Submission, people: People) -> None:
    assert get(people["mira"], f"/submissions/{frozen.pk}/export-check").json()["complete"] is True


@pytest.mark.parametrize("name", ["human-label", "labels", "trajectories-v2"])
def test_an_export_that_is_not_ready_is_refused_with_every_reason(
    submission: Submission, people: People, name: str
) -> None:
    body = problem(get(people["mira"], f"/submissions/{submission.pk}/exports/{name}"), 409)
    assert {"labels_missing", "not_frozen"} <= {error["code"] for error in body["errors"]}


@pytest.mark.parametrize(
    ("name", "accept", "media_type"),
    [
        ("human-label", "application/json", "application/json"),
        ("labels", "application/jsonl", "application/jsonl"),
        ("trajectories-v2", "application/zip", "application/zip"),
        ("trajectories-v2", "*/*", "application/zip"),
    ],
)
def test_an_export_streams_as_what_it_is(
    frozen: Submission, people: People, name: str, accept: str, media_type: str
) -> None:
    address = f"/api/v1/submissions/{frozen.pk}/exports/{name}"
    response: Any = client(people["mira"]).get(address, HTTP_ACCEPT=accept)
    assert response.streaming
    assert response["Content-Type"] == media_type
    assert response["Content-Disposition"].startswith('attachment; filename="shops.Careful-Agent.')
    assert response.getvalue()


def test_a_partial_export_is_asked_for(uncovered: Submission, people: People) -> None:
    problem(get(people["mira"], f"/submissions/{uncovered.pk}/exports/human-label"), 409)
    response = get(people["mira"], f"/submissions/{uncovered.pk}/exports/human-label", partial="true")
    assert json.loads(response.getvalue())["partial"] is True
    problem(get(people["mira"], f"/submissions/{uncovered.pk}/exports/human-label", partial="maybe"), 400)


@pytest.mark.parametrize("name", ["human-label", "labels"])
def test_partial_labels_and_verdicts_are_withheld_until_the_freeze(
    submission: Submission, people: People, name: str
) -> None:
    testing.label_all(people, submission, {"task_0000": [1, 0, 1]})
    testing.adjudicate_all(people["carol"], submission)
    body = problem(get(people["mira"], f"/submissions/{submission.pk}/exports/{name}", partial="true"), 409)
    assert body["errors"][0]["code"] == "labels_blind"


def test_an_unknown_format_is_not_found(frozen: Submission, people: People) -> None:
    problem(get(people["mira"], f"/submissions/{frozen.pk}/exports/csv"), 404)


@pytest.mark.parametrize("path", ["/nothing", "/submissions/x", "/submissions/-1", "/submissions/"])
def test_an_address_that_is_not_there_is_a_problem_too(submission: Submission, people: People, path: str) -> None:
    problem(get(people["mira"], path), 404)
    problem(client(people["mira"]).post(f"/api/v1{path}"), 404)
    problem(get(None, path), 401)
