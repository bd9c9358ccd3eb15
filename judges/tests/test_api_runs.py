"""Judge runs and judgments in the API: planned, started, followed and read by the scripts of maintainers."""

from __future__ import annotations

from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from django.test import Client
from django.utils import timezone

from annotation.models import ApiToken, Person, Submission
from annotation.tests import testing
from judges import defining
from judges.models import Judge, JudgeRun, Judgment
from judges.tests import rows
from judges.tests.builders import defined_judge, started_run

People = dict[str, Person]


@pytest.fixture
def submission(db: Any, tmp_path: Path, settings: Any) -> Submission:
    settings.MEDIA_ROOT = tmp_path / "images"
    settings.JUDGE_ENDPOINTS = {"default": "http://127.0.0.1:9/v1"}
    return testing.submission(tmp_path / "package", trajectories=3)


@pytest.fixture
def judge(submission: Submission) -> Judge:
    defining.set_terms(None, endpoint="default", model="fake-model-1", input_price=Decimal(1), output_price=Decimal(4))
    return defined_judge()


def client_of(person: Person) -> Client:
    token = ApiToken.issue(person, "test", "admin")[1]
    return Client(headers={"Authorization": f"Bearer {token}"})


@pytest.fixture
def mira(people: People) -> Client:
    return client_of(people["mira"])


def post(client: Client, path: str, code: int, **body: Any) -> Any:
    response = client.post(f"/api/v1/{path}", body, content_type="application/json")
    assert response.status_code == code, response.content.decode()
    return response.json()


def get(client: Client, path: str, code: int = 200) -> Any:
    response = client.get(f"/api/v1/{path}")
    assert response.status_code == code, response.content.decode()
    return response.json()


def test_a_run_is_planned_and_nothing_starts(mira: Client, submission: Submission, judge: Judge) -> None:
    plan = post(mira, f"submissions/{submission.pk}/judge-runs/plan", 200, judge="careful", repetitions=2, limit=2)
    assert (plan["trajectories"], plan["calls"], plan["pictures"]) == (2, 4, 4)
    assert Decimal(plan["cost"]) > 0
    assert JudgeRun.objects.count() == 0


def test_a_run_is_started_listed_and_followed(mira: Client, submission: Submission, judge: Judge) -> None:
    made = post(
        mira, f"submissions/{submission.pk}/judge-runs", 201, judge="careful@1", max_cost="1.5", task_ids=["task_0001"]
    )
    run = JudgeRun.objects.get()
    assert (made["id"], made["state"], made["max_cost"]) == (run.pk, "waiting", "1.5000")
    assert made["selection"] == {"task_ids": ["task_0001"]}
    assert made["standing"]["total"] == 1
    listed = get(mira, f"submissions/{submission.pk}/judge-runs?judge=careful")
    assert [one["id"] for one in listed["results"]] == [run.pk]
    assert get(mira, f"submissions/{submission.pk}/judge-runs?judge=other")["count"] == 0
    assert get(mira, f"judge-runs/{run.pk}")["standing"]["done"] == 0


def test_a_random_sample_is_kept_with_its_seed(mira: Client, submission: Submission, judge: Judge) -> None:
    made = post(mira, f"submissions/{submission.pk}/judge-runs", 201, judge="careful", limit=2, seed=0)
    assert made["selection"] == {"limit": 2, "seed": 0}
    assert made["standing"]["total"] == 2


@pytest.mark.parametrize(
    ("body", "where", "code"),
    [
        ({"judge": "nobody"}, "judge", 400),
        ({}, "judge", 400),
        ({"judge": "careful", "repetitions": 0}, "repetitions", 400),
        ({"judge": "careful", "state": "banana"}, "state", 400),
        ({"judge": "careful", "max_cost": "much"}, "max_cost", 400),
        ({"judge": "careful", "limit": 2, "seed": -1}, "seed", 400),
        ({"judge": "careful", "limit": 2, "seed": 2**32}, "seed", 400),
        ({"judge": "careful", "limit": 2, "seed": "luck"}, "seed", 400),
        ({"judge": "careful", "seed": 0}, "needs a limit", 409),
        ({"judge": "careful", "task_ids": ["task_9999"]}, "task_9999", 409),
        ({"judge": "careful", "max_cost": "-1"}, "budget", 409),
    ],
)
def test_what_cannot_be_run_is_refused_with_the_reason(
    mira: Client, submission: Submission, judge: Judge, body: dict[str, Any], where: str, code: int
) -> None:
    refused = post(mira, f"submissions/{submission.pk}/judge-runs", code, **body)
    assert where in str(refused)
    assert JudgeRun.objects.count() == 0


def test_a_run_is_paused_resumed_cancelled_and_retried(
    mira: Client, people: People, submission: Submission, judge: Judge
) -> None:
    run = started_run(people["mira"], submission, judge)
    assert post(mira, f"judge-runs/{run.pk}/pause", 200)["state"] == "paused"
    assert "paused" in post(mira, f"judge-runs/{run.pk}/pause", 409)["detail"]
    assert post(mira, f"judge-runs/{run.pk}/resume", 200, max_cost="3")["max_cost"] == "3.0000"
    run.items.filter(pk=run.items.order_by("pk")[0].pk).update(failed_at=timezone.now(), error="gone")
    assert get(mira, f"judge-runs/{run.pk}")["standing"]["errors"] == [{"message": "gone", "count": 1}]
    assert post(mira, f"judge-runs/{run.pk}/retry", 200) == {"items": 1}
    assert post(mira, f"judge-runs/{run.pk}/cancel", 200)["state"] == "cancelled"


def test_judgments_come_in_pages_with_their_evidence(mira: Client, submission: Submission) -> None:
    run = rows.run_row(submission, repetitions=2)
    for item in run.items.all():
        rows.judgment_row(item, None if item.repetition == 2 else 1)
    page = get(mira, f"judge-runs/{run.pk}/judgments?page_size=4")
    assert (page["count"], len(page["results"])) == (6, 4)
    assert page["results"][0]["evidence"]["key_points"][0]["finding"] == "met"
    assert (page["results"][0]["run"], page["results"][0]["verdict"]) == (run.pk, 1)
    assert get(mira, f"judge-runs/{run.pk}/judgments?unscored=true")["count"] == 3
    assert get(mira, f"judge-runs/{run.pk}/judgments?verdict=0")["count"] == 0
    assert get(mira, f"judge-runs/{run.pk}/judgments?task_id=task_0001&repetition=2")["count"] == 1
    assert "banana" in str(get(mira, f"judge-runs/{run.pk}/judgments?banana=1", 400))


def test_a_judgment_and_its_trace_are_read_alone(mira: Client, submission: Submission) -> None:
    item = rows.run_row(submission).items.order_by("pk")[0]
    made = rows.judgment_row(item)
    call = rows.call_row(item)
    assert get(mira, f"judgments/{made.pk}")["fingerprint"] == made.fingerprint
    trace = get(mira, f"judgments/{made.pk}/trace")
    assert trace["judgment"]["id"] == made.pk
    assert [one["key"] for one in trace["calls"]] == [call.key]
    imported = rows.imported_row(item.trajectory, mark="x ")
    assert get(mira, f"judgments/{imported.pk}")["imported"] == {"run": "x run of somebody"}
    assert get(mira, f"judgments/{imported.pk}")["run"] is None


@pytest.mark.parametrize(("who", "code"), [("alice", 403), ("carol", 403), ("dave", 404)])
def test_nobody_else_learns_anything(people: People, submission: Submission, judge: Judge, who: str, code: int) -> None:
    run = rows.run_row(submission, judge)
    made = rows.judgment_row(run.items.order_by("pk")[0])
    client = client_of(people[who])
    get(client, f"submissions/{submission.pk}/judge-runs", code)
    for path in (f"judge-runs/{run.pk}", f"judge-runs/{run.pk}/judgments"):
        get(client, path, 404)
    for path in ("judge-runs/plan", "judge-runs"):
        post(client, f"submissions/{submission.pk}/{path}", code, judge="careful")
    for act in ("pause", "resume", "cancel", "retry"):
        post(client, f"judge-runs/{run.pk}/{act}", 404)
    for path in (f"judgments/{made.pk}", f"judgments/{made.pk}/trace"):
        get(client, path, 404)
    assert (JudgeRun.objects.count(), Judgment.objects.count()) == (1, 1)
