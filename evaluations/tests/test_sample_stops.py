"""Samples that may stop early: the planner, the progress, the stop by page, API and command, and what is estimated."""

from __future__ import annotations

import html
import json
import re
import zipfile
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
from django.core.management import CommandError, call_command
from django.test import Client
from django.urls import reverse

from annotation import workflow
from annotation.models import Membership, Person, SamplePlan, SampleStop, Submission
from annotation.models.states import State, with_state
from annotation.tests import testing
from annotation.tests.test_api_submissions import get as api_get
from annotation.tests.test_api_submissions import problem
from annotation.workflow import stopping
from evaluations import exports
from evaluations.api.estimating import ProgressSerializer, SamplePlanningSerializer
from evaluations.estimating import estimate, find_progress, load_population
from evaluations.evidence.verification import verify_bundle
from evaluations.statistics.estimates import MAY_STOP, Estimand
from evaluations.statistics.sequential import confidence_sequence
from evaluations.tests import audited
from evaluations.tests.planned import JUDGE, judged_submission
from evaluations.tests.planned_review import drawn_tasks, label_first, stopped_review
from evaluations.tests.test_api_reports import undescribed
from evaluations.verifier.checking import Given
from evaluations.verifier.findings import Result

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("store")]
LOOK_EVERY = stopping.LOOK_EVERY
Made = tuple[Submission, dict[str, Person]]
RULE = {"rule": "anytime", "half_width": 0.31}


@pytest.fixture(autouse=True)
def look_after_each_label(monkeypatch: pytest.MonkeyPatch) -> None:
    """Samples here are too small for a look after every tenth label."""
    monkeypatch.setattr(stopping, "LOOK_EVERY", 1)


@pytest.fixture
def made() -> Made:
    """Ten trajectories, of which at most eight are labelled; half widths fall by 0.05 with each label."""
    submission = testing.bare_submission(10, steps=2)
    people = testing.cast(submission)
    tasks = submission.trajectories.values_list("task__external_id", flat=True)
    terms = testing.plan_terms(submission, strata=dict.fromkeys(tasks, "all"), labels={"all": 8}, rule=RULE)
    workflow.make_plan(people["mira"], submission, terms)
    return submission, people


def client_of(person: Person | None) -> Client:
    client = Client()
    if person is not None:
        client.force_login(person)
    return client


def text(response: Any, status: int = 200) -> str:
    assert response.status_code == status, response.content.decode()[-2000:]
    return " ".join(html.unescape(re.sub(r"<[^>]+>", " ", response.content.decode())).split())


def told(name: str, *options: Any) -> tuple[str, str]:
    out, err = StringIO(), StringIO()
    call_command(name, *map(str, options), stdout=out, stderr=err)
    return out.getvalue(), err.getvalue()


def stop_address(submission: Submission, name: str = "stop-sampling") -> str:
    return reverse(name, args=[submission.pk])


# --- the planner ------------------------------------------------------------------------------------------------------


def planned(submission: Submission, *options: Any) -> dict[str, Any]:
    return dict(json.loads(told("plan_sample", "--submission", submission.pk, "--json", *options)[0]))


def test_plan_states_the_most_the_mean_and_the_fixed_number_of_labels() -> None:
    submission, _ = judged_submission(60)
    found = planned(submission, "--half-width", 0.1, "--may-stop")
    fixed = planned(submission, "--half-width", 0.1)
    stopping = found["stopping"]
    assert fixed["labels"] == stopping["fixed"] < stopping["expected"] < stopping["at_most"] == found["labels"] < 60
    assert (fixed["stopping"], fixed["goal"]) == (None, {"half_width": 0.1, "estimand": "runs"})
    assert [(each["name"], each["labels"]) for each in found["strata"]] == [("all", found["labels"])]
    assert (found["goal"]["may_stop"], found["expected_half_width"]) == (True, 0.1)
    assert found["reviews"]["planned"] == 3 * found["labels"]


def test_judge_changes_only_what_is_expected() -> None:
    submission, _ = judged_submission(60)
    options = ("--judge", JUDGE, "--sensitivity", 0.9, "--specificity", 0.5, "--half-width", 0.1)
    alone = planned(submission, "--half-width", 0.1, "--may-stop")["stopping"]
    with_judge = planned(submission, *options, "--may-stop")["stopping"]
    # Half is judged a success, so the rate is expected to be 0: r = (0.5 + 0.5 - 1) / 0.4.
    assert (with_judge["at_most"], with_judge["expected"] < alone["expected"]) == (alone["at_most"], True)
    assert with_judge["fixed"] == planned(submission, *options)["labels"]


def test_words_say_that_a_fixed_sample_needs_fewer() -> None:
    submission, _ = judged_submission(60)
    found = planned(submission, "--half-width", 0.1, "--may-stop")["stopping"]
    out, _ = told("plan_sample", "--submission", submission.pk, "--half-width", 0.1, "--may-stop")
    assert f"Label at most {found['at_most']} of 60 trajectories." in out
    assert f"this takes {found['expected']} labelled trajectories on average" in out
    assert f"A sample of fixed size with this expected half width needs {found['fixed']}." in out


@pytest.mark.parametrize("options", [("--budget", 30), ("--accept", 0.2), ("--half-width", 0.1, "--estimand", "agent")])
def test_only_a_half_width_of_these_runs_may_stop(options: tuple[Any, ...]) -> None:
    submission, _ = judged_submission(60)
    with pytest.raises(CommandError, match="needs a half width as the goal and the rate of these") as refused:
        planned(submission, *options, "--may-stop")
    assert refused.value.returncode == 2


def test_used_plan_has_the_rule() -> None:
    submission, _ = judged_submission(60)
    found = planned(submission, "--judge", JUDGE, "--half-width", 0.1, "--may-stop", "--use", "--as", "mira")
    plan = SamplePlan.objects.get()
    assert plan.rule == {"rule": "anytime", "half_width": 0.1}
    assert (plan.labels, plan.judge["name"]) == ({"all": found["labels"]}, JUDGE)


def test_page_offers_the_rule_and_draws_by_it() -> None:
    submission, people = judged_submission(60)
    client, page = client_of(people["mira"]), reverse("sample-plan", args=[submission.pk])
    assert 'name="may_stop"' in client.get(page).content.decode()
    asked = {"half_width": "0.1", "may_stop": "on"}
    shown = client.get(page, asked).content.decode()
    (digest,) = re.findall(r'name="digest" value="(\w+)"', shown)
    client.post(reverse("use-sample-plan", args=[submission.pk]), asked | {"digest": digest, "confirmed": "on"})
    assert SamplePlan.objects.get().rule == {"rule": "anytime", "half_width": 0.1}
    assert "as soon as the half width of the 95% interval is 10.0 points" in text(client.get(page))


def test_page_refuses_the_rule_for_a_budget_at_its_field() -> None:
    submission, people = judged_submission(60)
    asked = {"budget": "30", "may_stop": "on"}
    page = client_of(people["mira"]).get(reverse("sample-plan", args=[submission.pk]), asked)
    assert "needs a half width as the goal and the rate of these" in text(page, 400)


def test_api_plans_with_the_rule() -> None:
    submission, people = judged_submission(60)
    path = f"/submissions/{submission.pk}/sample-plan"
    found = api_get(people["mira"], path, half_width="0.1", may_stop="true").json()
    assert undescribed(found, SamplePlanningSerializer()) == set()
    assert found["stopping"]["at_most"] == found["labels"]


# --- the progress and the stop ---------------------------------------------------------------------------------


def test_progress_has_no_rate(made: Made) -> None:
    submission, people = made
    empty = find_progress(submission)
    assert empty is not None
    assert (empty.labelled, empty.at_most, empty.half_width, empty.may_stop) == (0, 8, None, False)
    label_first(submission, people, 3)
    progress = find_progress(submission)
    assert progress is not None
    assert progress.as_json() == {
        "labelled": 3,
        "at_most": 8,
        "half_width": 0.35,
        "wanted": 0.31,
        "may_stop": False,
        "stopped": None,
        "decided": False,
    }
    assert progress.sentence == "After 3 of at most 8 labelled trajectories: half width 35.0 points, goal 31."


def test_progress_changes_only_with_every_tenth_label(made: Made, monkeypatch: pytest.MonkeyPatch) -> None:
    """The change of the width after one label would tell its verdict."""
    submission, people = made
    assert LOOK_EVERY == 10
    monkeypatch.setattr(stopping, "LOOK_EVERY", 3)
    label_first(submission, people, 2)
    before = find_progress(submission)
    assert before is not None
    assert (before.labelled, before.half_width, before.may_stop) == (0, None, False)
    label_first(submission, people, 2)
    after = find_progress(submission)
    assert after is not None
    assert after.labelled == 3


def test_page_stops_when_the_interval_is_narrow_enough(made: Made) -> None:
    submission, people = made
    client, page = client_of(people["mira"]), reverse("sample-plan", args=[submission.pk])
    label_first(submission, people, 3)
    shown = client.get(page)
    assert "After 3 of at most 8 labelled trajectories: half width 35.0 points, goal 31." in text(shown)
    assert stop_address(submission) not in shown.content.decode()
    refused = client.post(stop_address(submission), {"confirmed": "on"})
    assert "The interval is too wide to stop." in text(refused, 409)
    label_first(submission, people, 1)
    assert stop_address(submission) in client.get(page).content.decode()
    assert "cannot be undone" in text(client.post(stop_address(submission)), 400)
    assert not SampleStop.objects.exists()
    done = client.post(stop_address(submission), {"confirmed": "on"}, follow=True)
    assert "Labelling stops at 4 trajectories." in text(done)
    assert stop_address(submission) not in client.get(page).content.decode()


@pytest.mark.parametrize(("who", "code"), [("alice", 403), ("carol", 403), ("dave", 404), (None, 302)])
def test_only_its_maintainer_stops_by_page(made: Made, who: str | None, code: int) -> None:
    submission, people = made
    label_first(submission, people, 4)
    person = None if who is None else people[who]
    assert client_of(person).post(stop_address(submission), {"confirmed": "on"}).status_code == code
    assert not SampleStop.objects.exists()


@pytest.mark.parametrize(("who", "status"), [("alice", 403), ("carol", 403), ("dave", 404), (None, 401)])
def test_progress_is_for_the_maintainer(made: Made, who: str | None, status: int) -> None:
    submission, people = made
    person = None if who is None else people[who]
    problem(api_get(person, f"/submissions/{submission.pk}/sample-plan/stop"), status)


def test_operator_who_labels_sees_no_progress(made: Made) -> None:
    submission, people = made
    operator = testing.person("olga", is_staff=True)
    Person.objects.filter(pk=operator.pk).update(is_superuser=True)
    operator.refresh_from_db()
    path = f"/submissions/{submission.pk}/sample-plan/stop"
    assert api_get(operator, path).status_code == 200
    workflow.add_member(people["mira"], submission, operator, Membership.Role.ANNOTATOR)
    problem(api_get(operator, path), 403)


def test_api_shows_progress_and_stops(made: Made) -> None:
    submission, people = made
    client, path = client_of(people["mira"]), reverse("api-stop-sampling", args=[submission.pk])
    label_first(submission, people, 3)
    assert "The interval is too wide to stop." in problem(client.post(path), 409)["detail"]
    label_first(submission, people, 1)
    assert client.get(path).json()["may_stop"] is True
    found = client.post(path)
    assert (found.status_code, found.json()["stopped"], found.json()["may_stop"]) == (200, 4, False)
    assert undescribed(found.json(), ProgressSerializer()) == set()
    assert "already stopped" in problem(client.post(path), 409)["detail"]


def test_api_has_no_progress_of_a_fixed_sample() -> None:
    submission, people = judged_submission(12)
    path = f"/submissions/{submission.pk}/sample-plan/stop"
    problem(api_get(people["mira"], path), 404)
    workflow.make_plan(people["mira"], submission, testing.plan_terms(submission))
    problem(api_get(people["mira"], path), 404)


def test_commands_show_progress_and_stop(made: Made) -> None:
    submission, people = made
    label_first(submission, people, 3)
    says = "After 3 of at most 8 labelled trajectories: half width 35.0 points, goal 31."
    out, err = told("estimate", "--submission", submission.pk)
    assert says in err
    assert "5 of the 8 drawn trajectories have no final verdict yet" in out
    with pytest.raises(CommandError, match=f"too wide to stop. {says}"):
        told("stop_sampling", submission.pk, "--as", "mira")
    label_first(submission, people, 1)
    with pytest.raises(CommandError, match="Only an active maintainer"):
        told("stop_sampling", submission.pk, "--as", "alice")
    out, _ = told("stop_sampling", submission.pk, "--as", "mira")
    assert out == f"Labelling stops at 4 trajectories of submission {submission.pk}.\n"
    assert "Labelling stops at 4." in told("estimate", "--submission", submission.pk)[1]


# --- what is estimated ------------------------------------------------------------------------------------------------


def test_estimate_is_the_confidence_sequence(tmp_path: Path) -> None:
    submission = stopped_review(tmp_path / "package")
    found = estimate(load_population(submission, None))
    interval = confidence_sequence([0, 1, 1, 1, 1], 10)[-1]
    assert found.people == found.combined == interval
    assert (found.n_labelled, found.n_total, found.method, found.reason) == (5, 10, "people alone", MAY_STOP)
    assert [(each.drawn, each.labelled, each.successes) for each in found.strata] == [(5, 5, 4)]
    assert [each.people for each in found.levels] == [interval]


def test_estimate_of_the_agent_is_undefined(tmp_path: Path) -> None:
    submission = stopped_review(tmp_path / "package")
    found = estimate(load_population(submission, None), Estimand.AGENT)
    assert "only the rate of these runs is estimated" in found.people.undefined
    assert found.combined.value is None


def test_files_of_verdicts_say_that_labelling_stopped(tmp_path: Path) -> None:
    submission = stopped_review(tmp_path / "package")
    (note,) = exports.describe_sample(submission)
    assert note.message == "Estimated from the labels of 5 of 10 trajectories: labelling of the sample stopped early."


def test_bundle_with_a_stop_verifies_and_can_be_audited(tmp_path: Path) -> None:
    submission = stopped_review(tmp_path / "package")
    path = audited.bundle(submission, tmp_path)
    with zipfile.ZipFile(path) as package:
        plan = json.loads(package.read("sample-plan.json"))
        figures = json.loads(package.read("reports/estimate.json"))
    assert plan["stopped"] == {"labelled": 5, "stopped_by": "M1", "stopped_at": plan["stopped"]["stopped_at"]}
    interval = confidence_sequence([0, 1, 1, 1, 1], 10)[-1]
    assert figures["people"] == figures["combined"] == interval.as_json()
    findings = {each.name: each for each in verify_bundle(str(path), Given()).findings}
    assert [each.says for each in findings.values() if each.result is Result.FAIL] == []
    assert "Labelling stopped early: 8 were drawn." in findings["sample_plan"].says
    audit = audited.audit_of(submission, tmp_path)
    rows: Any = with_state(audit.submission.trajectories.select_related("task"))
    labelled = {row.task.external_id for row in rows if row.state != State.NOT_DRAWN}
    assert labelled == set(drawn_tasks(submission)[:5])
    assert estimate(load_population(audit.submission, None)).people == interval
