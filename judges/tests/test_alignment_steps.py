"""An alignment stops, goes on and ends as its rows say; the split and the looks stay as they are."""

from __future__ import annotations

from dataclasses import replace
from decimal import Decimal
from typing import Any

import pytest
from django.core.exceptions import PermissionDenied
from django.core.management import call_command
from django.db import DatabaseError, IntegrityError, transaction
from django.http import Http404
from django.test import Client
from django.urls import reverse

from annotation import workflow
from annotation.models import Submission
from annotation.records import Verdict
from annotation.tests import testing
from annotation.workflow import Conflict
from evaluations.judge_alignment import disagreements, looks, material, reporting, splitting, starting, steps
from evaluations.judge_alignment.optimisers import OPTIMISERS, PLAIN, Material, Rewriting
from judges.models import (
    Alignment,
    AlignmentRun,
    AlignmentSplit,
    AlignmentTask,
    Judge,
    LookAtTest,
    ModelCall,
    ModelTerms,
    Part,
)
from judges.tests.aligned import JUDGING, LEARNS, REWRITE, RULE, SEED, TASKS, align, decided_submission, written_judge
from judges.tests.builders import Fake, defined_judge
from judges.working.worker import work

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def learning(settings: Any, fake: Fake) -> Fake:
    settings.JUDGE_ENDPOINTS = {"default": fake.url}
    fake.says(*LEARNS)
    written_judge()
    return fake


def started(**terms: Any) -> Alignment:
    submission, people = decided_submission()
    judge = Judge.own.get(name="careful")
    return starting.start(people["mira"], judge, submission.benchmark, lambda pk: None, **terms)


def advance(alignment: Alignment, most: int = 50) -> Alignment:
    """Work on it as jobs do, for at most so many steps."""
    for _ in range(most):
        step = steps.take_step(alignment.pk, "worker")
        if step is steps.Step.ENDED:
            break
        if step is steps.Step.WAITING:
            for row in AlignmentRun.objects.filter(version__alignment=alignment, run__finished_at=None):
                work(row.run_id, "worker", seconds=60)
    alignment.refresh_from_db()
    return alignment


def test_killed_worker_pays_for_no_call_twice(learning: Fake, monkeypatch: pytest.MonkeyPatch) -> None:
    class Killed(Rewriting):
        async def propose(self, material: Material, ask: Any) -> str:
            await super().propose(material, ask)
            raise KeyboardInterrupt

    alignment = started(rounds=1)
    monkeypatch.setitem(OPTIMISERS, PLAIN, Killed())
    with pytest.raises(KeyboardInterrupt):
        advance(alignment)
    Alignment.objects.filter(pk=alignment.pk).update(worker="dead", heartbeat_at="2020-01-01T00:00Z")
    monkeypatch.setitem(OPTIMISERS, PLAIN, Rewriting())
    before = learning.counts()["by_rule"]["rewrite"]
    assert steps.find_idle() == [alignment.pk]
    advance(alignment)

    assert alignment.state == "finished"
    assert learning.counts()["by_rule"]["rewrite"] == before == 1
    rewrites = ModelCall.objects.filter(stage="rewrite")
    assert sorted(rewrites.values_list("hit", flat=True)) == [False, True]


def test_second_worker_waits_while_the_first_has_the_alignment(learning: Fake) -> None:
    alignment = started()
    Alignment.objects.filter(pk=alignment.pk).update(worker="first", heartbeat_at=alignment.created_at)
    assert steps.take_step(alignment.pk, "second") is steps.Step.WAITING
    assert AlignmentRun.objects.count() == 0


def test_budget_of_calls_stops_before_it_is_exceeded_and_a_higher_one_goes_on(learning: Fake) -> None:
    alignment = advance(started(rounds=1, max_calls=20))
    assert alignment.state == "stopped"
    assert alignment.stopped == "18 of 20 calls are used, and the next step needs 24. Resume with a higher limit."
    assert steps.count_calls(alignment) == learning.counts()["calls"] == 18

    starting.resume(alignment.created_by, alignment, lambda pk: None, max_calls=100)
    advance(alignment)
    assert alignment.state == "finished"
    assert steps.count_calls(alignment) == learning.counts()["calls"] == 18 + 24 + 1 + 18


def test_budget_of_money_is_that_of_all_runs_together(learning: Fake) -> None:
    ModelTerms.objects.create(endpoint="default", model="fake-model-1", input_price=1, output_price=1)
    alignment = advance(started(rounds=1, max_cost=Decimal("0.03")))
    assert alignment.state == "stopped"
    spent = steps.sum_cost(alignment)
    assert Decimal("0.03") <= spent < Decimal("0.06")

    starting.resume(alignment.created_by, alignment, lambda pk: None, max_cost=Decimal(10))
    assert advance(alignment).state == "finished"


def test_quota_of_the_benchmark_stops_an_alignment(learning: Fake) -> None:
    alignment = started(rounds=1)
    type(alignment.split.benchmark).objects.update(quota_calls=20)
    assert "quota of 20 model calls" in advance(alignment).stopped


def test_text_that_is_no_text_loses_its_round(learning: Fake) -> None:
    learning.says(REWRITE | {"reply": "I cannot help with that."}, *JUDGING)
    alignment = advance(started(rounds=2))
    assert alignment.state == "finished"
    versions = list(alignment.versions.order_by("number"))
    assert [(each.accepted, each.judge is None) for each in versions] == [(True, False), (False, True), (False, True)]
    assert versions[1].reason.startswith("No usable text: ")


def test_judge_without_criteria_is_refused_and_draws_no_split(learning: Fake) -> None:
    submission, people = decided_submission(split=False)
    other = defined_judge("published")
    with pytest.raises(Conflict, match="no criteria of its own"):
        starting.start(people["mira"], other, submission.benchmark, lambda pk: None)
    with pytest.raises(Conflict, match="does not exist"):
        starting.start(
            people["mira"], Judge.own.get(name="careful"), submission.benchmark, lambda pk: None, optimiser="nobody"
        )
    assert AlignmentSplit.objects.count() == 0


def test_too_few_tasks_are_refused(learning: Fake) -> None:
    submission, people = decided_submission(split=False)
    decided = splitting.load_decided(submission.benchmark, [submission])[:18]
    with pytest.raises(Conflict, match="at least 19 tasks"):
        splitting.draw(people["mira"], submission.benchmark, decided, [SEED])


# --- the split -------------------------------------------------------------------------------------------------------


def test_split_and_looks_cannot_be_changed_in_the_database(learning: Fake) -> None:
    alignment = advance(started(rounds=1))
    looks.look(alignment.created_by, alignment.versions.get(number=1))
    for rows in (AlignmentSplit.objects.all(), AlignmentTask.objects.all(), LookAtTest.objects.all()):
        with pytest.raises(DatabaseError), transaction.atomic():
            rows.delete()
    with pytest.raises(DatabaseError), transaction.atomic():
        AlignmentTask.objects.filter(part=Part.TEST).update(part=Part.TRAIN)
    with pytest.raises(DatabaseError), transaction.atomic():
        LookAtTest.objects.update(person=None)
    with pytest.raises(IntegrityError), transaction.atomic():
        AlignmentSplit.objects.create(benchmark=alignment.split.benchmark, seed=1, digest="")


def test_task_added_later_is_for_training_and_an_added_row_is_found(learning: Fake) -> None:
    alignment = started()
    case = material.load_cases(alignment, Part.TRAIN)[0]

    later = replace(case, task_id="task_9999")
    assert splitting.select_part(alignment.split, [later], Part.TRAIN) == [later]
    assert splitting.select_part(alignment.split, [later], Part.DEVELOPMENT, Part.TEST) == []
    AlignmentTask.objects.create(split=alignment.split, external_id="task_9999", part=Part.TEST)
    with pytest.raises(Conflict, match="changed in the database"):
        splitting.load_parts(alignment.split)


def test_all_runs_of_a_task_are_in_one_part(learning: Fake) -> None:
    decided_submission("Other Agent")
    alignment = started()
    parts = {part: {case.task_id for case in material.load_cases(alignment, part)} for part in Part}
    assert alignment.submissions.count() == 2
    assert sum(map(len, parts.values())) == len(set.union(*parts.values())) == TASKS
    assert [len(material.load_cases(alignment, part)) for part in Part] == [48, 36, 36]


def test_reopened_submission_stops_an_alignment(learning: Fake) -> None:
    alignment = started()
    Submission.objects.update(frozen_at=None)
    assert "was reopened" in advance(alignment).stopped


# --- looks and disagreements -----------------------------------------------------------------------------------------


def test_each_look_is_counted_and_none_is_allowed_before_the_end(learning: Fake) -> None:
    alignment = started(rounds=1)
    mira = alignment.created_by
    with pytest.raises(Conflict, match="has not ended"):
        looks.look(mira, alignment.versions.get(number=0))
    advance(alignment)
    with pytest.raises(Conflict, match="rewritten"):
        looks.look(mira, alignment.versions.get(number=0))
    for number in (1, 2):
        made = looks.look(mira, alignment.versions.get(number=1))
        assert looks.count_looks(alignment.split) == number
    while not looks.evaluate(made):
        for row in AlignmentRun.objects.filter(part=Part.TEST, run__finished_at=None):
            work(row.run_id, "worker", seconds=60)
    assert made.report["kappa"]["after"]["value"] == 1
    paid = learning.counts()["calls"]
    assert steps.count_calls(alignment) == paid - 2 * 18  # looks are not part of the optimisation


def test_disagreements_become_a_criterion_of_a_new_version(learning: Fake) -> None:
    alignment = advance(started(rounds=1))
    mira, version = alignment.created_by, disagreements.find_version(alignment, 0)
    rows = disagreements.list_rows(version)
    assert {row.judge_verdict for row in rows} == {"success"}
    assert {row.part for row in rows} == {Part.TRAIN, Part.DEVELOPMENT}
    assert (rows[0].judgment.explanation, rows[0].reasons.texts) == ("The cart is full.", ("carol decided FAILURE.",))
    first, second = (row.judgment.pk for row in rows[:2])
    disagreements.mark(mira, version, [first], "judge")
    with pytest.raises(Conflict, match="the judge is right"):
        disagreements.add_criterion(mira, version, [first], "x")
    made = disagreements.add_criterion(mira, version, [first, second], RULE)
    assert (str(made), made.frozen_at) == ("careful@2", None)
    assert made.parameters["criteria"] == f"Judge the cart.\n\n{RULE}"
    for text in ("", " "):
        with pytest.raises(Conflict, match="in your own words"):
            disagreements.add_criterion(mira, version, [second], text)
    assert Judge.own.filter(name="careful").count() == 2


def test_pages_mark_and_add_a_criterion_with_one_click(learning: Fake) -> None:
    alignment = advance(started(rounds=1))
    mira = Client()
    mira.force_login(alignment.created_by)
    shown = mira.get(reverse("alignment", args=[alignment.pk])).content.decode()
    assert "looked at <b>0 times</b>" in shown
    assert f"careful-aligned-{alignment.pk}" in shown
    rows = disagreements.list_rows(disagreements.find_version(alignment, 0))
    chosen = {"judgments": [row.judgment.pk for row in rows[:2]], "right": "people", "criterion": RULE}
    here = [alignment.pk, 0]
    assert mira.post(reverse("mark-disagreements", args=here), chosen).status_code == 302
    assert {row.right for row in disagreements.list_rows(disagreements.find_version(alignment, 0))} == {"people", ""}
    answer = mira.post(reverse("add-criterion", args=here), chosen, follow=True)
    assert RULE in answer.content.decode()
    assert answer.redirect_chain[-1][0] == reverse("edit-judge", args=[Judge.own.get(name="careful", version=2).pk])


def test_estimate_is_the_same_on_the_page_by_the_api_and_the_command(
    learning: Fake, capsys: pytest.CaptureFixture[str]
) -> None:
    _, people = decided_submission()
    mira = Client()
    mira.force_login(people["mira"])
    judge = Judge.own.get(name="careful")
    terms = {"judge": judge.pk, "rounds": 2, "estimate": "1"}
    page = mira.post(reverse("start-alignment", args=["bare"]), terms).content.decode()
    # The original judges 18 development and 24 training tasks; at most two versions more judge development, and one
    # training. Every call can be repeated, and each round has a call to rewrite. A look asks both judges 18 tasks.
    most = 2 * (3 * 18 + 2 * 24) + 2
    assert f"42 to {most} calls, cost unknown: the model has no price. A test takes 36 calls more." in page
    path = reverse("api-plan-alignment", args=["bare"])
    planned = mira.post(path, {"judge": "careful@1", "rounds": 2}, content_type="application/json")
    assert planned.json() == {"calls": 42, "calls_high": most, "cost": None, "cost_high": None, "look_calls": 36}
    call_command("align_judge", "careful", "--benchmark", "bare", "--rounds", "2", "--plan", "--as", "mira")
    assert f"42 to {most} calls" in capsys.readouterr().out
    assert not Alignment.objects.exists()
    ModelTerms.objects.create(endpoint="default", model="fake-model-1", input_price=1, output_price=1)
    priced = mira.post(path, {"judge": "careful", "rounds": 2}, content_type="application/json").json()
    assert 0 < float(priced["cost"]) < float(priced["cost_high"])
    unknown = mira.post(path, {"judge": "nobody"}, content_type="application/json")
    assert (unknown.status_code, "The judge nobody does not exist" in unknown.content.decode()) == (400, True)


def test_alignment_starts_on_the_page_and_by_the_api(learning: Fake, settings: Any) -> None:
    submission, people = decided_submission()
    mira = Client()
    mira.force_login(people["mira"])
    judge = Judge.own.get(name="careful")
    page = mira.post(reverse("start-alignment", args=["bare"]), {"judge": judge.pk, "rounds": 1})
    first = Alignment.objects.latest("pk")
    assert page.headers["Location"] == reverse("alignment", args=[first.pk])
    made = mira.post(
        reverse("api-alignments", args=["bare"]), {"judge": "careful", "rounds": 1}, content_type="application/json"
    )
    assert (made.status_code, made.json()["state"]) == (201, "running")
    assert AlignmentSplit.objects.count() == 1
    assert submission.alignments.count() == 2
    cancelled = mira.post(reverse("api-cancel-alignment", args=[first.pk]))
    assert cancelled.json()["state"] == "cancelled"


@pytest.mark.parametrize("name", ["alice", "carol", "dave"])
def test_only_maintainers_reach_an_alignment(learning: Fake, name: str) -> None:
    alignment = started(rounds=1)
    person = testing.person(name)
    client = Client()
    client.force_login(person)
    with pytest.raises((PermissionDenied, Http404)):
        starting.find_benchmark(person, "bare")
    for address in ("alignment", "api-alignment", "cancel-alignment", "resume-alignment", "api-cancel-alignment"):
        assert client.generic(
            "POST" if "cancel" in address or "resume" in address else "GET", reverse(address, args=[alignment.pk])
        ).status_code in (403, 404)
    for address in ("disagreements", "api-disagreements", "mark-disagreements", "add-criterion", "api-criteria"):
        method = "GET" if address.endswith("disagreements") and "mark" not in address else "POST"
        assert client.generic(method, reverse(address, args=[alignment.pk, 0])).status_code in (403, 404)
    assert client.get(reverse("alignments", args=["bare"])).status_code in (403, 404)
    alignment.refresh_from_db()
    assert alignment.state == "running"


def test_maintainer_who_labels_another_submission_sees_no_alignment(learning: Fake) -> None:

    alignment = started(rounds=1)
    other = testing.bare_submission(3, agent="Open")
    workflow.join_as_maintainer(other, testing.person("erin"))
    workflow.add_member(testing.person("erin"), other, alignment.created_by, "annotator")
    with pytest.raises(Http404):
        starting.find_alignment(alignment.created_by, alignment.pk)


def test_unfinished_alignment_is_continued_by_the_same_command(learning: Fake) -> None:
    alignment = started(rounds=2)
    advance(alignment, most=1)
    found = align()
    assert (found["alignment"], found["state"]) == (alignment.pk, "finished")
    assert Alignment.objects.count() == 1


def test_cancelled_run_still_counts_and_cancel_ends_open_runs(learning: Fake) -> None:
    alignment = started(rounds=1)
    mira = alignment.created_by
    steps.take_step(alignment.pk, "worker")
    first = AlignmentRun.objects.get()
    work(first.run_id, "worker", seconds=60)
    type(first.run).objects.filter(pk=first.run_id).update(finished_at=None, cancelled_at=alignment.created_at)
    assert "is cancelled" in advance(alignment).stopped
    starting.resume(mira, alignment, lambda pk: None)
    assert steps.count_calls(alignment) == 18
    steps.take_step(alignment.pk, "worker")
    starting.cancel(mira, alignment)
    assert {row.run.state for row in AlignmentRun.objects.select_related("run")} == {"cancelled"}


def test_parts_without_both_verdicts_and_too_few_tasks_are_refused(learning: Fake) -> None:
    submission, people = decided_submission()
    split = splitting.lock(people["mira"], submission.benchmark)
    ids = [f"task_{number:04d}" for number in range(TASKS)]
    other, _ = decided_submission("Other Agent", dict.fromkeys(ids, Verdict.SUCCESS))
    with pytest.raises(Conflict, match="training tasks do not have both verdicts"):
        starting._check_parts(split, [other], 5)
    with pytest.raises(Conflict, match="no result on fewer than 19 tasks"):  # 2 / 2^18 > 0.05 / 10,000
        starting._check_parts(split, [submission], 10_000)


def test_stopped_look_says_why_and_resumes(learning: Fake) -> None:
    alignment = advance(started(rounds=1))
    mira = alignment.created_by
    made = looks.look(mira, alignment.versions.get(number=1))
    assert not looks.evaluate(made)
    run = AlignmentRun.objects.get(part=Part.TEST).run
    type(run).objects.filter(pk=run.pk).update(stopped="No money.")
    assert looks.find_reason(made) == f"Run {run.pk} is stopped. No money."
    found = align("--look", rounds=1)
    assert [each["test"] is not None for each in found["looks"]] == [True]
    assert (Alignment.objects.count(), found["versions_tried"]) == (1, 1)


def test_look_has_what_is_left_of_the_budget(learning: Fake) -> None:
    ModelTerms.objects.create(endpoint="default", model="fake-model-1", input_price=1, output_price=1)
    alignment = advance(started(rounds=1, max_cost=Decimal(10)))
    Alignment.objects.filter(pk=alignment.pk).update(max_cost=steps.sum_cost(alignment))
    with pytest.raises(Conflict, match="The budget is too small for a look"):
        looks.look(alignment.created_by, alignment.versions.get(number=1))
    assert LookAtTest.objects.count() == 0


def test_look_on_the_page_needs_a_confirmation_and_an_accepted_version(learning: Fake) -> None:
    alignment = advance(started(rounds=2))
    mira = Client()
    mira.force_login(alignment.created_by)
    accepted = {each.number: each.accepted for each in alignment.versions.all()}
    assert accepted[1]
    shown = mira.get(reverse("alignment", args=[alignment.pk])).content.decode()
    for number, won in accepted.items():
        assert (reverse("look-at-test", args=[alignment.pk, number]) in shown) is (won and number > 0)
    assert "when the alignment is finished" not in shown
    address = reverse("look-at-test", args=[alignment.pk, 1])
    assert mira.post(address).status_code == 409
    assert not LookAtTest.objects.exists()
    assert mira.post(address, {"confirmed": "on"}).status_code == 302
    assert LookAtTest.objects.count() == 1


def test_page_shows_criteria_cases_and_kappa_with_its_interval(learning: Fake) -> None:
    alignment = advance(started(rounds=1))
    mira = Client()
    mira.force_login(alignment.created_by)
    shown = " ".join(mira.get(reverse("alignment", args=[alignment.pk])).content.decode().split())
    assert RULE in shown
    assert "24 training, 18 development, 18 test" in shown
    base, first = (alignment.versions.get(number=number).figures for number in (0, 1))
    kappa, rate, _ = reporting.format_changes(base, base=True)
    assert kappa in shown
    assert "change" not in kappa
    assert "% (" in rate
    changed, rate, _ = reporting.format_changes(first)
    assert changed in shown
    assert ", change +" in changed
    assert " points (" in rate


def test_page_of_disagreements_names_the_agent(learning: Fake) -> None:
    alignment = advance(started(rounds=1))
    mira = Client()
    mira.force_login(alignment.created_by)
    shown = mira.get(reverse("disagreements", args=[alignment.pk, 0])).content.decode()
    assert disagreements.list_rows(disagreements.find_version(alignment, 0))[0].case.agent_name in shown
