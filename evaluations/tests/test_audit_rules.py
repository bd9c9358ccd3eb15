"""Audits that a rule decides: the draw, the looks, the early stop, and decisions with and against the rule."""

from __future__ import annotations

import json
import random
import re
import zipfile
from pathlib import Path
from typing import Any

import pytest
from django.db import IntegrityError, transaction
from django.urls import reverse

from annotation import queue, workflow
from annotation.models import PlannedItem, SamplePlan, SampleStop, Submission
from annotation.models.states import State, with_state
from annotation.tests import testing
from annotation.tests.shared_rows import shared_rows
from annotation.workflow import Conflict, Incomplete, integrity, stopping
from evaluations import audit_rules, estimating
from evaluations.auditing import actions
from evaluations.auditing.results import result
from evaluations.evidence.verification import verify_bundle
from evaluations.models import Audit, AuditDecision
from evaluations.statistics import Decision
from evaluations.tests.audited import ANNOTATORS, add_people, audit_of, auditor, bundle, client_of
from evaluations.tests.finished import finish
from evaluations.tests.test_audit_pages import posted, run, text
from evaluations.verifier.checking import Given
from evaluations.verifier.findings import Result

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("store")]
TOLERANCE = 0.5  # of six: three claimed successes that are none, so two right ones of the four decide
FAILURES = ("task_0004", "task_0005")


@shared_rows
def audit(folder: Path) -> Audit:
    """Of six trajectories: four are claimed to be a success, two to be a failure."""
    submission = testing.submission(folder, trajectories=6, steps=2)
    people = testing.cast(submission)
    workflow.configure(people["mira"], submission, spot_check_rate=0.0)
    finish(people, submission, {task_id: [0, 0, 0] for task_id in FAILURES})
    submission.refresh_from_db()
    return audit_of(submission, folder.parent)


@pytest.fixture
def look_after_each_label(monkeypatch: pytest.MonkeyPatch) -> None:
    """Samples here are too small for a look after every tenth label."""
    monkeypatch.setattr(stopping, "LOOK_EVERY", 1)


@pytest.fixture
def sample(audit: Audit) -> Submission:
    made = actions.draw(audit, auditor(), 6, "a seed", TOLERANCE)
    add_people(made)
    return made


def order(sample: Submission) -> list[str]:
    items = PlannedItem.objects.filter(plan__submission=sample).order_by("position")
    return list(items.values_list("trajectory__task__external_id", flat=True))


def label(sample: Submission, number: int, others: tuple[str, ...] = ()) -> None:
    """Give the next ``number`` places of the order their final verdicts: as submitted, but for the tasks ``others``."""
    people = {name: testing.person(name) for name in (*ANNOTATORS, "hugo")}

    def verdict(task_id: str) -> int:
        return int((task_id in FAILURES) == (task_id in others))

    for name in ANNOTATORS:
        for _ in range(number):
            held = workflow.claim(people[name], sample)
            assert held is not None
            said = testing.content(held.trajectory, verdict(held.trajectory.task.external_id))
            workflow.submit(people[name], held.trajectory, said)
    if with_state(sample.trajectories.all()).filter(state=State.AGREED.value).exists():
        workflow.draw_spot_checks(auditor(), sample)
    for row in queue.load_queue(sample):
        workflow.open_adjudication(people["hugo"], row)
        workflow.decide(people["hugo"], row, testing.content(row, verdict(row.task.external_id)))


def label_until(sample: Submission, audit: Audit, others: tuple[str, ...] = ()) -> int:
    """Label place by place until the rule has decided; the number of places."""
    for number in range(1, 7):
        label(sample, 1, others)
        if progress(audit).is_decided:
            return number
    raise AssertionError("The rule did not decide.")


def progress(audit: Audit) -> audit_rules.RuleProgress:
    found = audit_rules.find_progress(Audit.objects.get(pk=audit.pk))
    assert found is not None
    return found


# --- the draw ---------------------------------------------------------------------------------------------------------


def test_claimed_successes_and_others_are_drawn_apart_and_anybody_can_repeat_it(audit: Audit) -> None:
    sample = actions.draw(audit, auditor(), 3, "a seed", TOLERANCE)

    expected = []
    for tasks, number, name in (((0, 1, 2, 3), 2, "success"), ((4, 5), 1, "other")):
        generator = random.Random(f"a seed:{name}")
        ranked = sorted((generator.random(), f"task_000{task}") for task in tasks)
        expected += [task for _, task in ranked[:number]]
    assert sorted(order(sample)) == sorted(expected)
    audit.refresh_from_db()
    assert (audit.size, audit.tolerance, audit.sample) == (3, TOLERANCE, sample)
    payload = sample.events.get(kind="imported").payload["sample_of"]
    assert (payload["size"], payload["tolerance"]) == (3, TOLERANCE)


def test_order_is_that_of_a_plan_which_tells_no_claim(sample: Submission) -> None:
    plan = SamplePlan.objects.get(submission=sample)
    assert (plan.rule, plan.labels) == ({"rule": "audit", "tolerance": TOLERANCE}, {"all": 6})
    assert set(plan.items.values_list("stratum", "judged")) == {("all", None)}
    held = workflow.claim(testing.person("erin"), sample)
    assert held is not None
    assert held.trajectory.task.external_id == order(sample)[0]


def test_draw_of_fixed_size_has_no_rule(audit: Audit) -> None:
    sample = actions.draw(audit, auditor(), 3, "a seed")
    audit.refresh_from_db()
    assert (audit.tolerance, SamplePlan.objects.filter(submission=sample).exists()) == (None, False)
    assert "tolerance" not in sample.events.get(kind="imported").payload["sample_of"]
    assert audit_rules.find_progress(audit) is None


@pytest.mark.parametrize(
    ("size", "tolerance", "says"),
    [(1, 0.5, "Draw 2 to 6"), (7, 0.5, "Draw 1 to 6"), (3, 0.7, "4 of 6 submitted verdicts"), (3, 0.0, "above 0")],
)
def test_terms_that_leave_nothing_to_decide_are_refused(audit: Audit, size: int, tolerance: float, says: str) -> None:
    with pytest.raises(Incomplete, match=says):
        actions.draw(audit, auditor(), size, "a seed", tolerance)
    assert audit.sample is None


def test_database_refuses_a_tolerance_that_is_no_share(audit: Audit) -> None:
    with pytest.raises(IntegrityError), transaction.atomic():
        Audit.objects.filter(pk=audit.pk).update(tolerance=1.5)


@pytest.mark.parametrize(
    ("options", "says"),
    [
        (("--size", 3, "--tolerance", 0.5), "belong to a rule"),
        (("--max-size", 3), "belong to a rule"),
        (("--rule", "accept", "--max-size", 3, "--tolerance", 0.9), "needs a claimed rate"),
    ],
)
def test_command_refuses_terms_that_do_not_fit(audit: Audit, options: tuple[Any, ...], says: str) -> None:
    _, err, code = run("draw_audit_sample", audit.pk, *options)
    assert (code, says in err, audit.sample) == (2, True, None)


def test_command_draws_by_the_rule(audit: Audit) -> None:
    out, err, code = run("draw_audit_sample", audit.pk, "--rule", "accept", "--tolerance", 0.5, "--max-size", 4)
    assert (code, err) == (0, "")
    assert "4 trajectories drawn" in out
    assert "50 points or more too high in at most 5% of audits" in out
    audit.refresh_from_db()
    assert (audit.size, audit.tolerance) == (4, 0.5)


def test_page_and_api_draw_by_the_rule(audit: Audit) -> None:
    amy, address = client_of(auditor()), reverse("draw-sample", args=[audit.pk])
    assert 'name="tolerance"' in text(amy.get(reverse("audit", args=[audit.pk])))
    assert "belong to a rule" in text(amy.post(address, {"size": 3, "tolerance": "0.5"}), 400)
    assert "belong to a rule" in text(posted(amy, "api-audit-sample", audit, {"size": 3, "tolerance": 0.5}), 400)
    assert "State the largest number" in text(posted(amy, "api-audit-sample", audit, {"rule": "accept"}), 400)
    with transaction.atomic():
        sent = {"rule": "accept", "tolerance": 0.5, "max_size": 3}
        answer = posted(amy, "api-audit-sample", audit, sent)
        assert (answer.status_code, answer.json()["tolerance"], answer.json()["rule"]["at_most"]) == (201, 0.5, 3)
        transaction.set_rollback(True)
    page = text(amy.post(address, {"rule": "accept", "size": 3, "tolerance": "0.5"}, follow=True))
    assert "Sample drawn" in page
    audit.refresh_from_db()
    assert (audit.size, audit.tolerance) == (3, 0.5)


# --- what the rule says -----------------------------------------------------------------------------------------------


@pytest.mark.usefixtures("look_after_each_label")
def test_rule_accepts_as_soon_as_enough_claims_are_right(audit: Audit, sample: Submission) -> None:
    assert progress(audit).decision is Decision.CONTINUE
    number = label_until(sample, audit)

    found = progress(audit)
    assert (found.decision, found.decided_after, found.labelled) == (Decision.ACCEPT, number, number)
    right = sum(task not in FAILURES for task in order(sample)[:number])
    assert right == 2  # then at most two of four can be wrong, and the tolerance is three of six
    assert found.high < TOLERANCE
    assert (found.tolerance, found.claimed_rate, found.at_most) == (TOLERANCE, pytest.approx(4 / 6), 6)
    assert found.sentence == f"After {number} of at most 6 audited trajectories the rule says accept."


@pytest.mark.usefixtures("look_after_each_label")
def test_rule_rejects_claims_that_are_wrong_and_its_first_decision_stands(audit: Audit, sample: Submission) -> None:
    wrong = ("task_0000", "task_0001", "task_0002", "task_0003")
    number = label_until(sample, audit, wrong)
    assert progress(audit).decision is Decision.REJECT
    label(sample, 6 - number, wrong)
    found = progress(audit)
    assert (found.decision, found.decided_after, found.labelled) == (Decision.REJECT, number, 6)
    assert found.difference == pytest.approx(4 / 6)
    assert "is about +66.7 points" in found.known


def test_undecided_sample_is_queried_after_its_last_label(audit: Audit) -> None:
    """Two claimed successes, one right and one wrong, and a failure: too few for either side."""
    sample = actions.draw(audit, auditor(), 3, "a seed", TOLERANCE)
    add_people(sample)
    label(sample, 3, tuple(task for task in order(sample) if task not in FAILURES)[:1])
    found = progress(audit)
    assert (found.decision, found.labelled) == (Decision.QUERY, 3)
    assert "query: the sample did not decide" in found.sentence


def test_nothing_is_told_between_two_looks(audit: Audit, sample: Submission) -> None:
    """The change after one label would tell its verdict; the next look is after ten labels or the last."""
    label(sample, 5)
    found = progress(audit)
    assert (found.labelled, found.difference, found.low, found.high) == (0, None, -1.0, 1.0)
    page = text(client_of(auditor()).get(reverse("audit", args=[audit.pk])))
    assert "The answer changes only after every 10 audited trajectories. No difference is known yet." in page
    label(sample, 1)
    assert progress(audit).labelled == 6


@pytest.mark.usefixtures("look_after_each_label")
def test_order_counts_only_up_to_its_first_open_place(audit: Audit, sample: Submission) -> None:
    label(sample, 2)
    held = workflow.claim(testing.person("erin"), sample)
    assert held is not None
    assert progress(audit).labelled == 2


@pytest.mark.usefixtures("look_after_each_label")
def test_page_and_api_say_what_is_known_with_its_error_rates(audit: Audit, sample: Submission) -> None:
    label_until(sample, audit)
    amy, found = client_of(auditor()), progress(audit)
    page = " ".join(re.sub("<[^>]+>", " ", text(amy.get(reverse("audit", args=[audit.pk])))).split())
    for said in (found.sentence, found.known, found.errors, "Stop labelling"):
        assert said.replace("'", "&#x27;") in page
    given = amy.get(reverse("api-audit", args=[audit.pk])).json()["rule"]
    assert given == json.loads(json.dumps(found.as_json()))
    assert (given["decision"], given["decided_after"]) == ("accept", found.labelled)
    report = text(amy.get(reverse("audit-report", args=[audit.pk])))
    assert "are drawn separately, with the seed" in report
    assert found.sentence in report
    out, _, _ = run("audit_report", audit.pk)
    assert found.sentence in out
    told = json.loads(run("audit_report", audit.pk, "--json")[0])
    assert (told["rule"]["decision"], told["sample"]["tolerance"]) == ("accept", TOLERANCE)


@pytest.mark.parametrize("name", ["erin", "hugo"])
def test_people_of_the_sample_learn_nothing_of_the_rule(audit: Audit, sample: Submission, name: str) -> None:
    client = client_of(testing.person(name))
    for address in (reverse("audit", args=[audit.pk]), reverse("api-audit", args=[audit.pk])):
        assert client.get(address).status_code == 404
    for address in (reverse("sample-plan", args=[sample.pk]), reverse("api-stop-sampling", args=[sample.pk])):
        assert client.get(address).status_code in (403, 404)


# --- stopping ---------------------------------------------------------------------------------------------------------


@pytest.mark.usefixtures("look_after_each_label")
def test_labelling_stops_when_the_rule_has_decided(audit: Audit, sample: Submission, tmp_path: Path) -> None:
    with pytest.raises(Conflict, match="has not decided yet"):
        estimating.stop_sampling(auditor(), sample)
    number = label_until(sample, audit)
    amy = client_of(auditor())
    page = text(amy.get(reverse("sample-plan", args=[sample.pk])))
    assert f"After {number} of at most 6 labelled trajectories the rule has decided." in page
    assert "accept" not in page.partition("<main")[2]
    amy.post(reverse("stop-sampling", args=[sample.pk]), {"confirmed": "on"})

    assert SampleStop.objects.get().labelled == number
    workflow.freeze(auditor(), sample)
    sample.refresh_from_db()
    assert integrity.problems(sample) == []
    compared = result(Audit.objects.get(pk=audit.pk))
    assert compared is not None
    assert (compared.drawn, compared.n, compared.incomplete) == (number, number, 0)
    assert compared.wrong.undefined == "claimed successes were drawn more often than others"
    assert f"{3 * number} of {3 * number}" in text(amy.get(reverse("audit", args=[audit.pk]))).replace("\n", " ")

    (tmp_path / "again").mkdir()
    path = bundle(sample, tmp_path / "again")
    checks = {each.name: each for each in verify_bundle(str(path), Given()).findings}
    assert [name for name, each in checks.items() if each.result is Result.FAIL] == []
    assert "stopped by the rule of an audit, which only the audited bundle confirms" in checks["exceptions"].says
    with zipfile.ZipFile(path) as package:
        assert json.loads(package.read("sample-plan.json"))["rule"] == {"rule": "audit", "tolerance": TOLERANCE}


def test_progress_of_the_sample_tells_only_whether_the_rule_has_decided(audit: Audit, sample: Submission) -> None:
    given = client_of(auditor()).get(reverse("api-stop-sampling", args=[sample.pk])).json()
    assert given == {
        "labelled": 0,
        "at_most": 6,
        "half_width": None,
        "wanted": None,
        "may_stop": False,
        "stopped": None,
        "decided": False,
    }


# --- decisions --------------------------------------------------------------------------------------------------------


def decision(audit: Audit) -> AuditDecision:
    found = audit.decisions.order_by("-pk").first()
    assert found is not None
    return found


@pytest.mark.usefixtures("look_after_each_label")
def test_decision_stores_what_the_rule_said_and_whether_it_was_against_it(audit: Audit, sample: Submission) -> None:
    options = ("--reason", "All right.", "--as", "amy")
    out, _, _ = run("decide_audit", audit.pk, "--outcome", "query", *options)
    assert "the rule says continue" in out
    assert out.endswith(f"audit {audit.pk}: queried, against the rule: continue.\n")
    label_until(sample, audit)
    out, _, _ = run("decide_audit", audit.pk, "--outcome", "accept", *options)
    assert "the rule says accept" in out
    assert out.endswith(f"audit {audit.pk}: accepted.\n")
    assert (decision(audit).rule_said, decision(audit).against_rule) == ("accept", False)

    amy = client_of(auditor())
    answer = posted(amy, "api-audit-decisions", audit, {"outcome": "reject", "reason": "No.", "rule_said": "reject"})
    assert (answer.status_code, answer.json()["rule_said"]) == (201, "accept")
    assert decision(audit).against_rule
    for name in ("audit", "audit-report"):
        assert "The rule said accept." in text(amy.get(reverse(name, args=[audit.pk])))
    assert "rejected, against the rule (accept)" in run("audit_report", audit.pk)[0]
    page = text(amy.post(reverse("decide-audit", args=[audit.pk]), {"outcome": "query", "reason": "Ask."}, follow=True))
    assert "Submission queried, against the rule." in page


def test_decision_without_a_rule_is_against_none(audit: Audit) -> None:
    made = actions.decide(auditor(), audit, "accept", "Fine.")
    assert (made.rule_said, made.against_rule) == ("", False)
    assert "against the rule" not in text(client_of(auditor()).get(reverse("audit", args=[audit.pk])))
