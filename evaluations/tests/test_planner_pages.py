"""The pages and the API of planned samples and of estimated success rates: for whom, what they show and refuse."""

from __future__ import annotations

import html
import re
from typing import Any

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.urls import reverse
from scipy.stats import hypergeom

from annotation import workflow
from annotation.models import Membership, Person, SamplePlan, Submission
from annotation.tests import testing
from annotation.tests.shared_rows import shared_rows
from annotation.tests.test_api_submissions import get as api_get
from annotation.tests.test_api_submissions import problem
from evaluations.api.estimating import EstimateSerializer, SamplePlanningSerializer
from evaluations.tests import builders
from evaluations.tests.finished import finish
from evaluations.tests.planned import JUDGE, judged_submission
from evaluations.tests.test_api_reports import undescribed
from judges.tests import rows as judged

pytestmark = pytest.mark.django_db
Made = tuple[Submission, dict[str, Person]]
HOSTILE = "<script>alert(1)</script>"


@shared_rows
def made() -> Made:
    return judged_submission(12)


@shared_rows
def reviewed(made: Made) -> Made:
    """Six of the twelve were drawn and labelled: those of the judge's successes 1, 1, 0 and of the others 0."""
    submission, people = made
    client_of(people["mira"]).post(use(submission), agreed(submission))
    finish(people, submission, {})
    submission.refresh_from_db()
    return submission, people


def client_of(person: Person | None) -> Client:
    client = Client()
    if person is not None:
        client.force_login(person)
    return client


def planner(submission: Submission) -> str:
    return reverse("sample-plan", args=[submission.pk])


def use(submission: Submission) -> str:
    return reverse("use-sample-plan", args=[submission.pk])


def agreed(submission: Submission, **changes: str) -> dict[str, str]:
    """The form of the button "Use this plan" for six labels, as the page fills it in."""
    asked = {"judge": f"{JUDGE}@1", "budget": "18"} | changes
    mira = Person.objects.get(username="mira")
    page = client_of(mira).get(planner(submission), asked).content.decode()
    (digest,) = re.findall(r'name="digest" value="(\w+)"', page)
    return asked | {"digest": digest, "confirmed": "on"}


def text(response: Any, status: int = 200) -> str:
    assert response.status_code == status, response.content.decode()[-2000:]
    return " ".join(html.unescape(re.sub(r"<[^>]+>", " ", response.content.decode())).split())


# --- for whom ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("who", "code"), [("mira", 200), ("alice", 403), ("carol", 403), ("dave", 404), (None, 302)])
def test_only_its_maintainer_sees_the_planner(made: Made, who: str | None, code: int) -> None:
    person = None if who is None else testing.person(who) if who == "dave" else made[1][who]
    assert client_of(person).get(planner(made[0]), {"judge": f"{JUDGE}@1", "half_width": "0.1"}).status_code == code


@pytest.mark.parametrize(("who", "code"), [("alice", 403), ("carol", 403), ("dave", 404), (None, 302)])
def test_only_its_maintainer_can_use_a_plan(made: Made, who: str | None, code: int) -> None:
    given = agreed(made[0])
    person = None if who is None else testing.person(who) if who == "dave" else made[1][who]
    assert client_of(person).post(use(made[0]), given).status_code == code
    assert not SamplePlan.objects.exists()


@pytest.mark.parametrize(("who", "code"), [("mira", 200), ("alice", 403), ("carol", 403), ("dave", 404), (None, 302)])
def test_only_its_maintainer_sees_the_success_rate(reviewed: Made, who: str | None, code: int) -> None:
    person = None if who is None else testing.person(who) if who == "dave" else reviewed[1][who]
    assert client_of(person).get(reverse("success-rate", args=[reviewed[0].pk])).status_code == code


@pytest.mark.parametrize("path", ["estimate", "sample-plan"])
@pytest.mark.parametrize(("who", "status"), [("alice", 403), ("carol", 403), ("dave", 404), (None, 401)])
def test_api_is_for_the_maintainer(reviewed: Made, path: str, who: str | None, status: int) -> None:
    person = None if who is None else testing.person(who) if who == "dave" else reviewed[1][who]
    query = {"half_width": "0.1"} if path == "sample-plan" else {}
    problem(api_get(person, f"/submissions/{reviewed[0].pk}/{path}", **query), status)


# --- the planner ------------------------------------------------------------------------------------------------------


def test_path_links_to_the_planner_before_the_first_label(made: Made) -> None:
    submission, people = made
    path = reverse("submission", args=[submission.pk])
    assert planner(submission) in client_of(people["mira"]).get(path).content.decode()
    testing.label(people["alice"], submission.trajectories.earliest("position"))
    assert planner(submission) not in client_of(people["mira"]).get(path).content.decode()


def test_page_shows_the_plan_and_the_confirmation(made: Made) -> None:
    shown = text(client_of(made[1]["mira"]).get(planner(made[0]), {"judge": f"{JUDGE}@1", "budget": "18"}))
    assert "Label 6 of 12 trajectories." in shown
    assert "Estimand: the success rate of these 12 trajectories." in shown
    assert "This takes 18 reviews instead of 36. That saves 18, not counting adjudication." in shown
    assert "Expected of the judge: sensitivity 75.0% and specificity 80.0%, assumed" in shown
    assert "I know that the plan cannot be changed" in shown


@pytest.mark.parametrize(
    "number", ["nan", "inf", "-inf", "1e308", "-1", "0", "1e-400", "x", HOSTILE, "9" * 400, "\u0664"]
)
@pytest.mark.parametrize("field", ["half_width", "budget", "power", "accept", "sensitivity", "review_usd"])
def test_hostile_numbers_are_refused_with_the_field(made: Made, field: str, number: str) -> None:
    response = client_of(made[1]["mira"]).get(planner(made[0]), {"judge": f"{JUDGE}@1", field: number})
    shown = text(response, 409 if field == "budget" and number == "\u0664" else 400)
    assert "This could not be accepted" in shown
    assert HOSTILE not in response.content.decode()


@pytest.mark.parametrize("asked", [{"half_width": "0.1", "budget": "18"}, {"judge": f"{JUDGE}@1"}, {"judge": "nobody"}])
def test_question_needs_one_goal_and_a_known_judge(made: Made, asked: dict[str, str]) -> None:
    text(client_of(made[1]["mira"]).get(planner(made[0]), asked), 400)


def test_judge_without_verdicts_is_not_offered_and_one_that_is_silent_is_refused(made: Made) -> None:
    submission, people = made
    judged.judge_row("idle")
    for item in judged.run_row(submission, judged.judge_row("silent")).items.all():
        judged.judgment_row(item, None)
    client = client_of(people["mira"])
    assert "idle" not in text(client.get(planner(submission)))
    shown = text(client.get(planner(submission), {"judge": "silent@1", "half_width": "0.1"}), 409)
    assert "silent has no verdict on any of the 12 trajectories" in shown


def test_plan_is_used_once_and_then_shown(made: Made) -> None:
    submission, people = made
    client, given = client_of(people["mira"]), agreed(made[0])
    response = client.post(use(submission), given, follow=True)
    assert "Sample drawn: people label 6 of 12 trajectories." in text(response)
    assert "The plan cannot be changed" in text(client.get(planner(submission)))
    assert "already has a sample plan" in text(client.post(use(submission), given), 409)
    assert SamplePlan.objects.get().items.filter(position__isnull=False).count() == 6


def test_plan_needs_the_confirmation(made: Made) -> None:
    given = agreed(made[0])
    del given["confirmed"]
    assert "Confirm that you know" in text(client_of(made[1]["mira"]).post(use(made[0]), given), 400)
    assert not SamplePlan.objects.exists()


def test_plan_that_has_changed_since_it_was_shown_is_shown_again(made: Made) -> None:
    submission, people = made
    given = agreed(submission)
    newer = judged.run_row(submission, judged.judge_row(JUDGE))
    judged.judgment_row(newer.items.get(trajectory__position=0), 0)
    assert "The judgments have changed since" in text(client_of(people["mira"]).post(use(submission), given), 409)
    assert not SamplePlan.objects.exists()


def test_plan_cannot_be_used_after_the_first_label(made: Made) -> None:
    submission, people = made
    given = agreed(submission)
    testing.label(people["alice"], submission.trajectories.earliest("position"))
    client = client_of(people["mira"])
    assert "before the first label" in text(client.post(use(submission), given), 409)
    shown = text(client.get(planner(submission), {"budget": "18"}))
    assert "This plan cannot be used." in shown
    assert "Use this plan" not in shown


def test_plan_of_an_archived_benchmark_cannot_be_used(made: Made) -> None:
    submission, people = made
    given = agreed(submission)
    workflow.archive_benchmark(people["mira"], submission.benchmark)
    assert "archived" in text(client_of(people["mira"]).post(use(submission), given), 409)
    assert not SamplePlan.objects.exists()


def test_planner_measures_no_judge_on_labels_that_its_reader_may_not_know(made: Made) -> None:
    submission, people = made
    benchmark = builders.reviewed(agents=1, tasks=60)
    judge = builders.judged(benchmark, "steady", repetitions=1)
    Submission.objects.filter(pk=submission.pk).update(benchmark=benchmark)
    for item in judged.run_row(submission, judge).items.all():
        judged.judgment_row(item, item.trajectory.position % 2)
    asked = {"judge": "steady@1", "half_width": "0.2"}
    mira = Membership.objects.filter(submission__frozen_at__isnull=False, person=people["mira"])
    assert "measured on" in text(client_of(people["mira"]).get(planner(submission), asked))
    mira.update(person=testing.person("root"))
    assert "assumed" in text(client_of(people["mira"]).get(planner(submission), asked))


# --- the success rate -------------------------------------------------------------------------------------------------


def test_success_rate_is_shown_after_the_freeze_only(made: Made) -> None:
    submission, people = made
    address = reverse("success-rate", args=[submission.pk])
    shown = text(client_of(people["mira"]).get(address))
    assert "Not frozen yet" in shown
    assert JUDGE not in shown
    assert client_of(people["mira"]).get(address, {"csv": "success-rate"}).status_code == 404
    problem(api_get(people["mira"], f"/submissions/{submission.pk}/estimate"), 409)


def test_success_rate_is_side_by_side_with_what_it_is_estimated_from(reviewed: Made) -> None:
    submission, people = reviewed
    shown = text(client_of(people["mira"]).get(reverse("success-rate", args=[submission.pk])))
    for words in ("People alone", "People and judge", "Judge only", "By level", "Labels by stratum"):
        assert words in shown
    assert "Estimated from the labels of 6 of 12 trajectories." in shown
    assert "Estimand: the success rate of these 12 trajectories." in shown
    agent = client_of(people["mira"]).get(reverse("success-rate", args=[submission.pk]), {"estimand": "agent"})
    assert "the success rate of the agent" in text(agent)


def test_judge_of_the_plan_is_the_one_that_counts_if_none_is_named(reviewed: Made) -> None:
    submission, people = reviewed
    later = judged.run_row(submission, judged.judge_row("aaa", model="another-model"))
    for item in later.items.all():
        judged.judgment_row(item, item.trajectory.position % 2)
    client, address = client_of(people["mira"]), reverse("success-rate", args=[submission.pk])
    without = "The sample plan was made without the verdicts of this judge."
    assert without not in text(client.get(address))
    assert without in text(client.get(address, {"judge": "aaa@1"}))
    path = f"/submissions/{submission.pk}/estimate"
    assert api_get(people["mira"], path).json()["judge"] == JUDGE
    named = api_get(people["mira"], path, judge="aaa").json()
    assert (named["judge"], named["method"], named["reason"]) == ("aaa", "people alone", without)


@pytest.mark.parametrize(("verdict", "says"), [(1, "Accepted:"), (2, "Not accepted: 0 successes,")])
def test_acceptance_is_decided_by_the_rule_that_the_plan_has(verdict: int, says: str) -> None:
    submission, people = judged_submission(40)
    asked = {"accept": "0.2", "judge": f"{JUDGE}@1"}
    client = client_of(people["mira"])
    client.post(use(submission), agreed(submission, **asked, budget=""))
    plan = SamplePlan.objects.get()
    assert plan.goal["error"] == 0.05
    assert plan.goal["labels"] == plan.items.filter(position__isnull=False).count()
    needed, labels = plan.goal["accept_from"], plan.goal["labels"]
    # Of 40, 8 are the most successes that are not to be accepted.
    assert hypergeom(40, 8, labels).sf(needed - 1) <= 0.05 < hypergeom(40, 8, labels).sf(needed - 2)
    rule = f"accepted wrongly with a probability of at most 5.0%, at least {needed} successes, in {labels} labels."
    assert f"Goal: a success rate above 20.0%, {rule}" in text(client.get(planner(submission)))
    tasks = plan.items.filter(position__isnull=False).values_list("trajectory__task__external_id", flat=True)
    finish(people, submission, dict.fromkeys(tasks, [verdict] * 3), adjudicated=verdict)
    shown = text(client.get(reverse("success-rate", args=[submission.pk])))
    assert says in shown
    assert f"and the plan accepts from {needed}." in shown


def test_success_rate_as_csv_has_both_intervals(reviewed: Made) -> None:
    address = reverse("success-rate", args=[reviewed[0].pk])
    lines = client_of(reviewed[1]["mira"]).get(address, {"csv": "success-rate"}).content.decode().splitlines()
    row = dict(zip(lines[0].lstrip("\ufeff").split(","), lines[1].split(","), strict=True))
    assert row["people_alone"] == row["people_and_judge"] == "1.0"  # every label is a success
    assert float(row["people_alone_low"]) < 1
    assert (row["labelled"], row["trajectories"]) == ("6", "12")


# --- the API ----------------------------------------------------------------------------------------------------------


def test_api_answers_have_every_key_of_the_schema(reviewed: Made) -> None:
    submission, people = reviewed
    found = api_get(people["mira"], f"/submissions/{submission.pk}/estimate", judge=JUDGE).json()
    assert undescribed(found, EstimateSerializer()) == set()
    assert (found["planned"], found["n_labelled"], found["n_total"]) == (True, 6, 12)
    path = f"/submissions/{submission.pk}/sample-plan"
    told = api_get(people["mira"], path, judge=JUDGE, half_width="0.2").json()
    assert undescribed(told, SamplePlanningSerializer()) == set()
    assert told["refusal"] == "This submission already has a sample plan. A plan never changes."


def test_api_uses_a_plan_once(made: Made) -> None:
    submission, people = made
    client, path = client_of(people["mira"]), f"/api/v1/submissions/{submission.pk}/sample-plan"
    body = {"judge": JUDGE, "budget": 18}
    first = client.post(path, body, content_type="application/json")
    assert (first.status_code, first.json()["labels"]) == (201, 6)
    assert client.post(path, body, content_type="application/json").status_code == 409
    assert SamplePlan.objects.get().judge["name"] == JUDGE


def test_api_refuses_a_plan_that_has_changed_since_it_was_seen(made: Made) -> None:
    submission, people = made
    client, path = client_of(people["mira"]), f"/api/v1/submissions/{submission.pk}/sample-plan"
    body = {"judge": JUDGE, "budget": 18, "digest": "0" * 64}
    refused = client.post(path, body, content_type="application/json")
    assert (refused.status_code, "have changed since" in refused.content.decode()) == (409, True)
    assert not SamplePlan.objects.exists()
    seen = client.get(path, {"judge": JUDGE, "budget": 18}).json()["digest"]
    assert client.post(path, body | {"digest": seen}, content_type="application/json").status_code == 201


@pytest.mark.parametrize(
    "query",
    [{}, {"half_width": "nan"}, {"half_width": "1e308"}, {"budget": "0"}, {"budget": "-3"}, {"judge": "nobody"},
     {"half_width": "0.1", "estimand": "all"}, {"half_width": "0.1", "colour": "red"}],
)  # fmt: skip
def test_api_refuses_unusable_questions(made: Made, query: dict[str, str]) -> None:
    problem(api_get(made[1]["mira"], f"/submissions/{made[0].pk}/sample-plan", **query), 400)


# --- size -------------------------------------------------------------------------------------------------------------


def test_pages_of_3000_trajectories_are_small_and_need_few_queries() -> None:
    benchmark = builders.reviewed(agents=1, tasks=3000)
    builders.judged(benchmark, "steady", repetitions=1)
    submission, mira = benchmark.submissions.get(), Person.objects.get(username="mira")
    client = client_of(mira)
    asked = {"judge": "steady@1", "half_width": "0.02"}
    for address, query, most in (
        (planner(submission), asked, 32),
        (reverse("success-rate", args=[submission.pk]), {}, 32),
    ):
        client.get(address, query)
        with CaptureQueriesContext(connection) as queries:
            response = client.get(address, query)
        assert len(response.content) < 200_000
        assert len(queries) <= most, [each["sql"][:100] for each in queries]


def test_api_says_that_a_judge_has_to_run_before_a_plan_with_it(made: Made) -> None:
    judged.judge_row("silent")
    told = problem(api_get(made[1]["mira"], f"/submissions/{made[0].pk}/sample-plan", judge="silent", budget=18), 409)
    assert "silent has no verdict on any of the 12 trajectories. Run it first" in str(told)
