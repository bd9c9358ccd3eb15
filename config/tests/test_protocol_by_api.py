"""The whole protocol through the API, from tasks to a verified evidence bundle: nobody opens a page."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from django.core.management import call_command
from rest_framework.test import APIClient

from annotation import jobs
from annotation.models import ApiToken, Label, Person
from annotation.tests import testing
from annotation.tests.test_api_uploads import task_file, zip_of

pytestmark = pytest.mark.django_db
ANNOTATORS = ("alice", "bob", "chen")


class Script:
    """The script of a person, with a token of the smallest scope that it needs."""

    def __init__(self, name: str, scope: str = "write", **fields: Any) -> None:
        self.client = APIClient()
        token = ApiToken.issue(testing.person(name, **fields), "script", scope)[1]
        self.client.credentials(HTTP_AUTHORIZATION=f"Bearer {token}")

    def get(self, path: str, status: int = 200) -> Any:
        return self.answer(self.client.get(f"/api/v1/{path}"), status)

    def post(self, path: str, status: int = 200, file: bool = False, **body: Any) -> Any:
        given = self.client.post(f"/api/v1/{path}", body, format="multipart" if file else "json")
        return self.answer(given, status)

    @staticmethod
    def answer(response: Any, status: int) -> Any:
        assert response.status_code == status, response.content
        return response.json() if response.content else None


def decision(desk: dict[str, Any], verdict: int, **fields: Any) -> dict[str, Any]:
    """A complete label of what a desk shows; it proves everything by step 1."""
    found = [{"key_point": text, "finding": "met" if verdict else "unmet", "step": 1} for text in desk["key_points"]]
    said = {"verdict": verdict, "reasoning": "The steps show it.", "findings": found}
    failure = {} if verdict else {"failure_step": 1, "failure_type": "range_not_exact"}
    return said | failure | fields


@pytest.fixture(autouse=True)
def own_images(tmp_path: Path, settings: Any) -> None:
    settings.MEDIA_ROOT = tmp_path / "images"
    settings.UNDO_SECONDS = 10  # as in production


def import_package(mira: Script, folder: Path) -> int:
    tasks = task_file(*(testing.task(number) for number in range(3)))
    mira.answer(mira.client.post("/api/v1/benchmarks/shops/tasks", {"file": tasks, "name": "Shops"}), 200)
    package = {"benchmark": "shops", "agent": "Careful Agent", "file": zip_of(testing.write_submission(folder, 3))}
    taken = mira.answer(mira.client.post("/api/v1/uploads", package), 202)
    jobs.import_upload(taken["id"])  # what the worker does with the message
    return int(mira.get(f"uploads/{taken['id']}")["submission"])


def label_everything(name: str, submission: int, verdicts: dict[str, int]) -> int:
    script, done = Script(name), 0
    while (desk := script.post(f"submissions/{submission}/next", 204 if done == 3 else 200)) is not None:
        body = decision(desk, verdicts.get(desk["task_id"], 1))
        made = script.post(f"trajectories/{desk['trajectory']}/label", 201, **body)
        assert (made["active_seconds"], made["steps_seen"]) == (None, None)
        assert script.post(f"trajectories/{desk['trajectory']}/label", 201, **body) == made  # nothing is added
        done += 1
    return done


def test_scripts_take_a_submission_from_its_tasks_to_a_verified_bundle(tmp_path: Path) -> None:
    for name in (*ANNOTATORS, "carol"):
        testing.person(name)
    mira = Script("mira", "admin", is_staff=True)
    submission = import_package(mira, tmp_path / "package")
    at = f"submissions/{submission}"
    for name in ANNOTATORS:
        mira.post(f"{at}/members", 201, name=name, role="annotator")
    mira.post(f"{at}/members", 201, name="carol", role="adjudicator")
    invited = mira.post(f"{at}/invitations", 201, username="newcomer", role="annotator")
    assert "/join/" in invited["link"]
    mira.answer(mira.client.patch(f"/api/v1/{at}/settings", {"spot_check_rate": 0.5}, format="json"), 200)

    for name in ANNOTATORS:
        assert label_everything(name, submission, {"task_0000": int(name == "bob")}) == 3
    assert Label.objects.count() == 9

    carol = Script("carol")
    dispute = carol.post(f"{at}/adjudication-queue/next")
    assert [label["verdict"] for label in dispute["labels"]] == [0, 1, 0]
    ruled = decision(dispute, 0, criterion="key_point")
    carol.post(f"trajectories/{dispute['trajectory']}/adjudication/decision", 201, **ruled)
    assert carol.post(f"{at}/draws", 201) == {"number": 1, "population": 2, "drawn": 1}
    check = carol.post(f"{at}/adjudication-queue/next")
    assert (check["blind"], check["labels"]) == (True, None)
    said = carol.post(
        f"trajectories/{check['trajectory']}/adjudication/decision", 201, **decision(check, 1, criterion="key_point")
    )
    assert [len(said["labels"]), said["decisions"][0]["active_seconds"]] == [3, None]
    carol.post(f"{at}/adjudication-queue/next", 204)

    assert mira.post(f"{at}/freeze")["frozen_at"]
    assert {row["task_id"]: row["verdict"] for row in mira.get(f"{at}/verdicts")["results"]} == {
        "task_0000": 0, "task_0001": 1, "task_0002": 1,
    }  # fmt: skip
    bundle = mira.client.get(f"/api/v1/{at}/evidence")
    assert bundle["Content-Type"] == "application/zip"
    file = tmp_path / "bundle.zip"
    file.write_bytes(b"".join(bundle.streaming_content))
    call_command("verify_evidence", file)  # exits with an error if a claim fails
    assert Person.objects.get(username="newcomer").last_login is None
