"""Operations of the API that change benchmarks, people, judges and comments do what the pages do."""

from __future__ import annotations

from typing import Any

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile
from rest_framework.test import APIClient

from annotation import workflow
from annotation.models import ApiToken, Benchmark, Membership, Person, Submission
from annotation.tests import testing
from annotation.tests.shared_rows import shared_rows
from judges import defining
from judges.models import Judge

pytestmark = pytest.mark.django_db
People = dict[str, Person]
JUDGE = {"name": "strict", "scorer": "webjudge", "model": "some-model"}


@shared_rows
def submission(folder: Any) -> Submission:
    return testing.submission(folder, trajectories=1)


@shared_rows
def people(submission: Submission) -> People:
    return testing.cast(submission)


def call(person: Person, method: str, path: str, body: Any = None, form: str = "json") -> Any:
    client = APIClient()
    client.credentials(HTTP_AUTHORIZATION=f"Bearer {ApiToken.issue(person, 'test', 'admin')[1]}")
    return getattr(client, method)(f"/api/v1/{path}", body, format=form)


# --- judges -----------------------------------------------------------------------------------------------------------


def test_unused_judge_is_changed_and_deleted(people: People) -> None:
    made = call(people["mira"], "post", "judges", JUDGE).json()
    changed = call(people["mira"], "patch", f"judges/{made['id']}", {"model": "other-model"})
    assert changed.status_code == 200
    assert changed.json() == made | {"model": "other-model", "fingerprint": changed.json()["fingerprint"]}
    assert changed.json()["fingerprint"] != made["fingerprint"]
    assert call(people["mira"], "patch", f"judges/{made['id']}", {"name": "mild"}).json()["name"] == "strict"
    assert call(people["alice"], "delete", f"judges/{made['id']}").status_code == 403
    assert call(people["mira"], "delete", f"judges/{made['id']}").status_code == 204
    assert not Judge.objects.exists()


def test_used_judge_stays_as_it_is(people: People) -> None:
    made = call(people["mira"], "post", "judges", JUDGE).json()
    defining.freeze(Judge.objects.get())
    assert call(people["mira"], "patch", f"judges/{made['id']}", {"model": "other-model"}).status_code == 409
    assert call(people["mira"], "delete", f"judges/{made['id']}").status_code == 409
    assert Judge.objects.get().model == "some-model"


# --- benchmarks -------------------------------------------------------------------------------------------------------


def test_benchmark_is_archived_with_its_submissions_and_restored(submission: Submission, people: People) -> None:
    assert call(people["alice"], "post", "benchmarks/shops/archive").status_code == 404
    assert call(people["mira"], "post", "benchmarks/shops/archive").status_code == 200
    submission.refresh_from_db()
    assert submission.archived_at is not None
    assert call(people["alice"], "post", f"submissions/{submission.pk}/next").status_code == 409
    assert call(people["mira"], "post", "benchmarks/shops/restore").status_code == 200
    assert call(people["alice"], "post", f"submissions/{submission.pk}/next").status_code == 200


def test_benchmark_is_deleted_by_its_name_only_without_submissions(submission: Submission, people: People) -> None:
    Benchmark.objects.create(slug="empty", name="Empty")
    path = "benchmarks/empty?name="
    assert call(people["mira"], "delete", f"{path}Shops").status_code == 400
    assert call(people["mira"], "delete", f"benchmarks/shops?name={submission.benchmark.name}").status_code == 409
    assert call(people["mira"], "delete", f"{path}Empty").status_code == 204
    assert list(Benchmark.objects.values_list("slug", flat=True)) == ["shops"]


# --- people -----------------------------------------------------------------------------------------------------------


def people_file(*rows: str) -> SimpleUploadedFile:
    text = "\n".join(["name,e-mail,role,submission", *rows])
    return SimpleUploadedFile("people.csv", text.encode(), "text/csv")


def test_people_of_a_file_are_invited_and_get_links(submission: Submission, people: People) -> None:
    row = f"Dora Lee,dora@example.org,annotator,{submission.pk}"
    checked = call(
        people["mira"], "post", "people/invitations", {"file": people_file(row), "dry_run": True}, "multipart"
    )
    assert [each["done"] for each in checked.json()["outcomes"]] == ["invited"]
    assert not Person.objects.filter(email="dora@example.org").exists()

    invited = call(people["mira"], "post", "people/invitations", {"file": people_file(row)}, "multipart").json()
    (outcome,) = invited["outcomes"]
    assert (outcome["username"], outcome["role"], outcome["line"]) == ("Dora-Lee", "annotator", 2)
    assert invited["without_mail"] == ["Dora-Lee"]
    assert Membership.objects.get(person__username="Dora-Lee").submission == submission

    (told,) = call(people["mira"], "post", "people/invitations/links", {"usernames": ["Dora-Lee", "alice"]}).json()
    given = {"link": told["link"], "password": "rubber owl 71 tea", "name": "script"}
    joined = APIClient().post("/api/v1/join", given, format="json")
    assert joined.status_code == 201, joined.json()
    assert joined.json()["token"].startswith("wv_")


def test_nobody_is_invited_if_a_line_is_wrong(submission: Submission, people: People) -> None:
    rows = [f"Dora Lee,dora@example.org,annotator,{submission.pk}", "Eve,eve@example.org,annotator,999999"]
    before = Person.objects.count()
    refused = call(people["mira"], "post", "people/invitations", {"file": people_file(*rows)}, "multipart")
    assert refused.status_code == 400
    assert ["line 3" in each["where"] for each in refused.json()["errors"]] == [True]
    assert Person.objects.count() == before


# --- comments ---------------------------------------------------------------------------------------------------------


def test_comments_begin_once_results_are_open_and_are_deleted_by_their_author(
    submission: Submission, people: People
) -> None:
    submission.spot_check_rate = 0
    submission.save()
    testing.label_all(people, submission, {"task_0000": [1, 0, 1]})
    testing.adjudicate_all(people["carol"], submission)
    path = f"trajectories/{submission.trajectories.get().pk}/comments"
    assert call(people["alice"], "get", path).status_code == 409
    workflow.freeze(people["mira"], submission)
    workflow.open_results(people["mira"], submission)

    made = call(people["alice"], "post", path, {"text": "The filter was not set.", "step": 1})
    assert made.status_code == 201
    assert made.json() | {"id": 0, "written_at": ""} == {
        "id": 0, "author": "A1", "step": 1, "text": "The filter was not set.", "written_at": "",
    }  # fmt: skip
    assert call(people["bob"], "get", path).json() == [made.json()]
    assert call(people["bob"], "delete", f"comments/{made.json()['id']}").status_code == 404
    assert call(people["alice"], "delete", f"comments/{made.json()['id']}").status_code == 204
    assert call(people["bob"], "get", path).json() == []
