"""Checks and rubrics through the API: read, written, withdrawn and imported, with the rights of the pages."""

from __future__ import annotations

import json
from typing import Any

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile
from django.urls import reverse
from rest_framework.test import APIClient

from annotation.models import ApiToken, Person, Task
from judges import expectations
from judges.expectations import Kind
from judges.models import Expectation
from judges.tests.expecting import CHECKS, FAILING, RUBRIC, expect

People = dict[str, Person]


def client_of(person: Person) -> APIClient:
    client = APIClient()
    client.credentials(HTTP_AUTHORIZATION=f"Bearer {ApiToken.issue(person, 'tests', 'admin')[1]}")
    return client


def one(task: Task, kind: str = "network_checks") -> str:
    return reverse("api-expectation", args=["shops", task.external_id, kind])


def test_a_text_is_written_read_and_withdrawn(people: People, task: Task) -> None:
    mira = client_of(people["mira"])
    assert mira.get(one(task)).status_code == 404
    made = mira.put(one(task), {"text": CHECKS, "why": "first", "after": 0}, format="json").json()
    assert (made["version"], made["text"], made["why"], made["written_by"]) == (1, CHECKS, "first", "mira")
    assert (made["task_id"], made["kind"]) == (task.external_id, "network_checks")
    assert mira.get(one(task)).json() == made
    mira.put(one(task), {"text": FAILING}, format="json")
    assert mira.get(one(task), {"version": 1}).json()["text"] == CHECKS
    gone = mira.delete(one(task)).json()
    assert (gone["version"], gone["text"]) == (3, "")
    assert mira.get(one(task)).status_code == 404
    assert mira.get(one(task), {"version": 2}).json()["text"] == FAILING
    assert mira.put(one(task, "rubric"), {"text": RUBRIC}, format="json").json()["version"] == 1


def test_problems_have_their_lines_and_conflicts_their_reason(people: People, task: Task) -> None:
    mira = client_of(people["mira"])
    wrong = CHECKS.replace("url:", "ulr:").replace("last_event_only: false", "last_event_only: 3")
    refused = mira.put(one(task), {"text": wrong}, format="json")
    assert refused.status_code == 400
    assert {error["where"] for error in refused.json()["errors"]} == {"line 4", "line 7"}
    expect(task)
    late = mira.put(one(task), {"text": FAILING, "after": 0}, format="json")
    assert (late.status_code, "newer version" in late.json()["detail"]) == (409, True)
    assert mira.put(one(task), {"text": " "}, format="json").status_code == 400
    assert mira.put(one(task), {"text": "x", "after": -1}, format="json").status_code == 400
    assert Expectation.objects.count() == 1


def test_what_was_written_anew_is_not_withdrawn_by_who_has_not_seen_it(people: People, task: Task) -> None:
    mira = client_of(people["mira"])
    expect(task)
    expect(task, FAILING)
    stale = mira.delete(one(task) + "?after=1")
    assert (stale.status_code, stale["Content-Type"]) == (409, "application/problem+json")
    assert "Another person has saved a newer version of the network checks" in stale.json()["detail"]
    unread = mira.delete(one(task) + "?after=x")
    assert (unread.status_code, unread.json()["errors"][0]["where"]) == (400, "after")
    assert Expectation.objects.count() == 2
    assert mira.get(one(task)).json()["text"] == FAILING
    fresh = mira.delete(one(task) + "?after=2")
    assert (fresh.status_code, fresh.json()["version"], fresh.json()["text"]) == (200, 3, "")
    assert mira.get(one(task)).status_code == 404


def test_the_list_has_what_holds_and_can_be_narrowed(people: People, task: Task) -> None:
    other = task.benchmark.tasks.exclude(pk=task.pk).get()
    expect(task, FAILING)
    expect(task)
    expect(task, RUBRIC, Kind.RUBRIC)
    expect(other)
    expectations.withdraw(None, other, Kind.NETWORK_CHECKS)
    mira, address = client_of(people["mira"]), reverse("api-expectations", args=["shops"])
    rows = mira.get(address).json()["results"]
    assert [(row["task_id"], row["kind"], row["version"]) for row in rows] == [
        (task.external_id, "network_checks", 2),
        (task.external_id, "rubric", 1),
    ]
    assert mira.get(address, {"kind": "rubric"}).json()["count"] == 1
    assert mira.get(address, {"task_id": other.external_id}).json()["count"] == 0
    assert mira.get(address, {"kind": "nothing"}).status_code == 400


def test_a_file_is_imported_as_a_whole_or_not_at_all(people: People, task: Task) -> None:
    mira, address = client_of(people["mira"]), reverse("api-import-expectations", args=["shops"])

    def load(entries: list[dict[str, Any]], **fields: Any) -> Any:
        file = SimpleUploadedFile("checks.json", json.dumps(entries).encode())
        return mira.post(address, {"kind": "network_checks", "file": file, **fields}, format="multipart")

    good = {"task_id": task.external_id, "checks": [{"name": "A", "url": "http://a.example/"}]}
    refused = load([good, {"task_id": "nobody", "checks": good["checks"]}])
    assert refused.status_code == 400
    assert [error["code"] for error in refused.json()["errors"]] == ["task_unknown"]
    assert load([good], dry_run=True).json()["accepted"] == [task.external_id]
    assert not Expectation.objects.exists()
    assert load([good]).json()["accepted"] == [task.external_id]
    assert Expectation.objects.get().written_by == people["mira"]


def test_a_file_that_is_too_large_is_refused_before_it_is_read(
    people: People, task: Task, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("judges.api.expectations.LARGEST_FILE", 10)
    file = SimpleUploadedFile("checks.json", b"[" + b" " * 10)
    address = reverse("api-import-expectations", args=["shops"])
    refused = client_of(people["mira"]).post(address, {"kind": "rubric", "file": file}, format="multipart")
    assert refused.status_code == 400
    assert refused.json()["detail"] == "file: The file has 11 bytes; at most 10 are accepted."


@pytest.mark.parametrize(("name", "status"), [("dave", 403), ("alice", 403), ("carol", 403)])
def test_reviewers_and_outsiders_are_refused_everywhere(people: People, task: Task, name: str, status: int) -> None:
    expect(task)
    Person.objects.filter(pk=people[name].pk).update(is_staff=name != "dave")
    client = client_of(Person.objects.get(username=name))
    file = SimpleUploadedFile("checks.json", b"[]")
    answers = [
        client.get(one(task)),
        client.put(one(task), {"text": FAILING}, format="json"),
        client.delete(one(task)),
        client.get(reverse("api-expectations", args=["shops"])),
        client.post(
            reverse("api-import-expectations", args=["shops"]), {"kind": "rubric", "file": file}, format="multipart"
        ),
    ]
    assert {answer.status_code for answer in answers} == {status}
    assert Expectation.objects.count() == 1


def test_unknown_tasks_and_kinds_are_not_found(people: People, task: Task) -> None:
    mira = client_of(people["mira"])
    assert mira.get(one(task, "nothing")).status_code == 404
    assert mira.get(reverse("api-expectation", args=["shops", "nobody", "rubric"])).status_code == 404
    assert mira.get(reverse("api-expectation", args=["nowhere", task.external_id, "rubric"])).status_code == 404
