"""The export page and its downloads: for maintainers, with every reason of a refusal."""

from __future__ import annotations

import json
from typing import Any

import pytest
from django.test import Client
from django.urls import reverse

from annotation.models import Agent, Person, Submission
from annotation.tests import testing

People = dict[str, Person]
PAGES = [("export", []), ("export-check", []), *[("export-file", [f]) for f in ("human-label", "labels")]]


def get(person: Person | None, name: str, submission: Submission, *args: str, htmx: bool = False, **query: str) -> Any:
    client = Client(headers={"HX-Request": "true"} if htmx else {})
    if person is not None:
        client.force_login(person)
    return client.get(reverse(name, args=[submission.pk, *args]), query)


@pytest.mark.parametrize(("name", "args"), PAGES)
@pytest.mark.parametrize(("who", "code"), [("mira", 200), ("alice", 403), ("carol", 403), ("dave", 404), (None, 302)])
def test_only_maintainers_reach_the_export(
    frozen: Submission, people: People, name: str, args: list[str], who: str | None, code: int
) -> None:
    # As its own script asks: the check answers a plain link with a redirect to the page.
    assert get(people[who] if who else None, name, frozen, *args, htmx=True).status_code == code


def test_the_page_says_everything_that_is_missing(submission: Submission, people: People) -> None:
    text = get(people["mira"], "export", submission).content.decode()
    assert "task_0000: has 0 of 3 labels." in text
    assert "task_0001: has 0 of 3 labels." in text
    assert "The submission is not frozen" in text


def test_the_page_of_a_frozen_submission_says_that_nothing_is_missing(frozen: Submission, people: People) -> None:
    assert "Nothing is missing" in get(people["mira"], "export", frozen).content.decode()


def test_the_partial_is_no_whole_page(submission: Submission, people: People) -> None:
    response = get(people["mira"], "export-check", submission, htmx=True)
    assert response.status_code == 200
    assert "<html" not in response.content.decode()


def test_the_partial_followed_as_a_link_is_the_page(submission: Submission, people: People) -> None:
    assert get(people["mira"], "export-check", submission)["Location"] == reverse("export", args=[submission.pk])


def test_a_refused_download_shows_every_reason(submission: Submission, people: People) -> None:
    response = get(people["mira"], "export-file", submission, "human-label")
    assert response.status_code == 409
    assert "The export human-label was refused" in response.content.decode()
    assert "task_0001: has 0 of 3 labels." in response.content.decode()


def test_a_download_streams_with_a_safe_name(frozen: Submission, people: People) -> None:
    Agent.objects.update(name='x"\r\nSet-Cookie: a/../é')
    response = get(people["mira"], "export-file", frozen, "human-label")
    assert response.streaming
    assert response["Content-Disposition"] == 'attachment; filename="shops.x-Set-Cookie-a.human-label.json"'
    assert len(json.loads(response.getvalue())) == 2


def test_the_zip_of_trajectories_is_a_download(frozen: Submission, people: People) -> None:
    response = get(people["mira"], "export-file", frozen, "trajectories-v2")
    assert response["Content-Type"] == "application/zip"
    assert response.getvalue().startswith(b"PK")


def test_a_partial_download_is_asked_for(uncovered: Submission, people: People) -> None:
    response = get(people["mira"], "export-file", uncovered, "human-label", partial="1")
    assert response["Content-Disposition"].endswith('human-label.partial.json"')
    assert json.loads(response.getvalue())["partial"] is True


@pytest.mark.parametrize("name", ["human-label", "labels"])
def test_labels_and_verdicts_are_not_downloaded_before_the_freeze(
    submission: Submission, people: People, name: str
) -> None:
    testing.label_all(people, submission, {"task_0000": [1, 0, 1]})
    testing.adjudicate_all(people["carol"], submission)
    response = get(people["mira"], "export-file", submission, name, partial="1")
    assert response.status_code == 409
    assert "because people work independently until then" in response.content.decode()


def test_an_unknown_format_is_not_found(frozen: Submission, people: People) -> None:
    assert get(people["mira"], "export-file", frozen, "csv").status_code == 404


def test_what_an_agent_wrote_is_shown_as_text(imported_v1: Any) -> None:
    submission = imported_v1(action_history=["a", "<script>alert(1)</script>"], thoughts=[])
    submission.trajectories.get().steps.filter(index=2).delete()
    mira = testing.cast(submission)["mira"]
    text = get(mira, "export", submission).content.decode()
    assert "&lt;script&gt;alert(1)" in text
    assert "<script>alert" not in text
