"""Planned samples: the draw, its terms, and what people may do with the trajectories that were not drawn."""

from __future__ import annotations

import hashlib
from collections import Counter
from typing import Any

import pytest
from django.core.exceptions import PermissionDenied
from django.db import DatabaseError, IntegrityError, transaction
from django.test import Client
from django.urls import reverse

from annotation import progress, queue, workflow
from annotation.models import Assignment, PlannedItem, SamplePlan, Submission
from annotation.models.events import digest
from annotation.models.states import State, state_of
from annotation.models.trajectories import seed_hash
from annotation.tests.testing import adjudicate_all, bare_submission, cast, content, label_all, plan_terms
from annotation.workflow import integrity
from annotation.workflow.facts import plan_facts
from annotation.workflow.sampling import draw

pytestmark = pytest.mark.django_db


@pytest.fixture
def made() -> Submission:
    return bare_submission(10)


def task_ids(submission: Submission) -> list[str]:
    return list(submission.trajectories.values_list("task__external_id", flat=True))


# --- the draw ---------------------------------------------------------------------------------------------------------


def test_draw_takes_the_lowest_hashes_of_each_stratum() -> None:
    strata = {f"t{n}": "even" if n % 2 == 0 else "odd" for n in range(20)}
    drawn = draw(strata, {"even": 3, "odd": 5}, "seed")
    for stratum, number in (("even", 3), ("odd", 5)):
        members = [task for task, own in strata.items() if own == stratum]
        lowest = sorted(members, key=lambda task: hashlib.sha256(f"seed:{task}".encode()).hexdigest())[:number]
        assert {task for task in drawn if strata[task] == stratum} == set(lowest)
    assert sorted(drawn.values()) == list(range(8))


def test_each_prefix_of_the_order_is_proportional_to_the_planned_labels() -> None:
    strata = {f"t{n}": "a" if n < 60 else "b" for n in range(100)}
    drawn = draw(strata, {"a": 4, "b": 12}, "seed")
    in_order = sorted(drawn, key=drawn.__getitem__)
    # 4 of a and 12 of b: each four in a row have one of a and three of b.
    assert [Counter(strata[task] for task in in_order[n : n + 4]) for n in (0, 4, 8, 12)] == [{"a": 1, "b": 3}] * 4
    for stratum in ("a", "b"):
        own = [task for task in in_order if strata[task] == stratum]
        assert own == sorted(own, key=lambda task: hashlib.sha256(f"seed:{task}".encode()).hexdigest())


def test_draw_is_even_over_many_seeds() -> None:
    strata = {f"t{n}": "a" for n in range(5)}
    times = Counter(task for seed in range(4000) for task in draw(strata, {"a": 2}, str(seed)))
    assert all(abs(times[task] / 4000 - 0.4) < 0.04 for task in strata)  # five standard errors


# --- making a plan ----------------------------------------------------------------------------------------------------


def test_plan_stores_strata_probabilities_and_places(made: Submission) -> None:
    people = cast(made)
    plan = workflow.make_plan(people["mira"], made, plan_terms(made, labels={"easy": 2, "hard": 3}))
    items = list(PlannedItem.objects.filter(plan=plan).order_by("position"))
    assert {(item.stratum, item.probability) for item in items} == {("easy", 0.4), ("hard", 0.6)}  # 2 and 3 of 5
    assert sorted(item.position for item in items if item.position is not None) == [0, 1, 2, 3, 4]
    left_out = [item.trajectory for item in items if item.position is None]
    assert {trajectory.open_slots for trajectory in left_out} == {0}


def test_plan_is_recorded_with_the_seed_that_was_fixed_before(made: Submission) -> None:
    people = cast(made)
    fixed, secret = made.next_seed, made.spot_check_seed
    plan = workflow.make_plan(people["mira"], made, plan_terms(made))
    made.refresh_from_db()
    event = made.events.get(kind="sample_planned")
    assert event.payload == {
        "plan": digest(plan_facts(plan)),
        "trajectories": 10,
        "labels": 4,
        "secret": secret,
        "next_seed": seed_hash(made.spot_check_seed),
        "earlier": [],
    }
    assert seed_hash(event.payload["secret"]) == fixed
    assert made.spot_check_seed != secret


def test_plan_names_the_earlier_samples_of_the_agent_that_share_tasks(made: Submission) -> None:
    first = workflow.make_plan(cast(made)["mira"], made, plan_terms(made))
    other_agent, again = bare_submission(10, agent="Other Agent"), bare_submission(9)
    for each in (other_agent, again):
        workflow.make_plan(cast(each)["mira"], each, plan_terms(each))
    terms = plan_facts(first)
    terms = {name: terms[name] for name in ("goal", "judge", "labels", "estimand", "rule")} | {
        "items": [item[:3] for item in terms["items"]]
    }
    known = {"chain": made.events.get(sequence=0).hash, "terms": digest(terms)}
    earlier = {each: each.events.get(kind="sample_planned").payload["earlier"] for each in (made, other_agent, again)}
    assert earlier == {made: [], other_agent: [], again: [known]}


def test_sample_of_other_tasks_is_no_earlier_sample(made: Submission) -> None:
    workflow.make_plan(cast(made)["mira"], made, plan_terms(made))
    others = bare_submission(20)
    others.trajectories.filter(task__in=made.trajectories.values("task")).delete()
    workflow.make_plan(cast(others)["mira"], others, plan_terms(others))
    assert others.events.get(kind="sample_planned").payload["earlier"] == []


def test_any_other_term_gives_another_seed() -> None:
    seeds = set()
    for changes in ({}, {"goal": {"half_width": 0.2}}, {"labels": {"easy": 3, "hard": 2}}, {"estimand": "agent"}):
        with transaction.atomic():
            submission = bare_submission(10)
            Submission.objects.filter(pk=submission.pk).update(spot_check_seed="the same secret")
            plan = workflow.make_plan(cast(submission)["mira"], submission, plan_terms(submission, **changes))
            seeds.add(plan.seed)
            transaction.set_rollback(True)
    assert len(seeds) == 4


@pytest.mark.parametrize("name", ["alice", "carol", "dave"])
def test_only_a_maintainer_can_plan(made: Submission, name: str) -> None:
    with pytest.raises(PermissionDenied):
        workflow.make_plan(cast(made)[name], made, plan_terms(made))
    assert not SamplePlan.objects.exists()


def test_second_plan_is_refused(made: Submission) -> None:
    people = cast(made)
    first = workflow.make_plan(people["mira"], made, plan_terms(made))
    with pytest.raises(workflow.Conflict, match="already has a sample plan"):
        workflow.make_plan(people["mira"], made, plan_terms(made))
    assert SamplePlan.objects.get() == first


def test_database_refuses_a_second_plan(made: Submission) -> None:
    plan = workflow.make_plan(cast(made)["mira"], made, plan_terms(made))
    plan.pk = None
    with pytest.raises(IntegrityError):
        plan.save(force_insert=True)


def test_plan_is_refused_after_the_first_reservation(made: Submission) -> None:
    people = cast(made)
    workflow.claim(people["alice"], made)
    with pytest.raises(workflow.Conflict, match="before the first label"):
        workflow.make_plan(people["mira"], made, plan_terms(made))


def test_plan_is_possible_after_a_reservation_was_returned(made: Submission) -> None:
    people = cast(made)
    held = workflow.claim(people["alice"], made)
    assert held is not None
    workflow.release(people["alice"], held.trajectory, "I know this shop.")
    assert workflow.make_plan(people["mira"], made, plan_terms(made)).pk


WRONG: dict[str, dict[str, Any]] = {
    "plan_stratum_missing": {"strata": {"task_0000": "easy"}, "labels": {"easy": 1}},
    "plan_labels_out_of_range": {"labels": {"easy": 1, "hard": 2}},
    "plan_labels_unlike_strata": {"labels": {"easy": 2, "hard": 2, "soft": 2}},
    "plan_verdict_unusable": {"judged": {"task_0000": 3}},
    "plan_judge_missing": {"judge": {}},
    "plan_task_unknown": {"judged": {"task_9999": 1}},
    "plan_stratum_unnamed": {"strata": {"task_0000": " "}},
    "plan_estimand_unknown": {"estimand": "all"},
    "plan_rule_unknown": {"rule": {"rule": "when it looks good"}},
    "plan_term_unusable": {"goal": {"half_width": float("nan")}},
}


@pytest.mark.parametrize("code", WRONG)
def test_wrong_term_is_refused_and_nothing_is_stored(made: Submission, code: str) -> None:
    people = cast(made)
    with pytest.raises(workflow.Incomplete) as refused:
        workflow.make_plan(people["mira"], made, plan_terms(made, **WRONG[code]))
    assert code in [problem.code for problem in refused.value.problems]
    assert not SamplePlan.objects.exists()
    assert not made.events.filter(kind="sample_planned").exists()


def test_stratum_may_be_drawn_completely(made: Submission) -> None:
    strata = {task: "lone" if n == 0 else "rest" for n, task in enumerate(task_ids(made))}
    terms = plan_terms(made, strata=strata, labels={"lone": 1, "rest": 9})
    plan = workflow.make_plan(cast(made)["mira"], made, terms)
    assert not plan.items.filter(position=None).exists()
    assert set(plan.items.values_list("probability", flat=True)) == {1.0}


# --- labelling --------------------------------------------------------------------------------------------------------


def test_queue_serves_the_drawn_trajectories_in_the_order_of_the_plan(made: Submission) -> None:
    people = cast(made)
    plan = workflow.make_plan(people["mira"], made, plan_terms(made))
    in_order = list(plan.items.filter(position__isnull=False).order_by("position").values_list("trajectory", flat=True))
    served = []
    while (held := workflow.claim(people["alice"], made)) is not None:
        served.append(held.trajectory_id)
        workflow.submit(people["alice"], held.trajectory, content(held.trajectory))
    assert served == in_order


def test_database_refuses_an_assignment_of_a_trajectory_that_was_not_drawn(made: Submission) -> None:
    people = cast(made)
    plan = workflow.make_plan(people["mira"], made, plan_terms(made))
    left_out = plan.items.filter(position=None).first()
    assert left_out is not None
    with pytest.raises(IntegrityError):
        Assignment.objects.create(
            trajectory=left_out.trajectory,
            annotator=people["alice"],
            slot=1,
            claimed_at=plan.planned_at,
            lease_expires_at=plan.planned_at,
        )


# --- every way to a label of a trajectory that was not drawn ---------------------------------------------------------


@pytest.fixture
def planned(made: Submission) -> Submission:
    workflow.make_plan(cast(made)["mira"], made, plan_terms(made))
    made.refresh_from_db()
    return made


def left_out_of(submission: Submission) -> Any:
    item = PlannedItem.objects.filter(plan__submission=submission, position=None).order_by("pk").first()
    assert item is not None
    return item.trajectory


NOT_DRAWN = "did not draw this trajectory"
WAYS: dict[str, Any] = {
    "claim_this": lambda people, row: workflow.claim_this(people["alice"], row),
    "submit": lambda people, row: workflow.submit(people["alice"], row, content(row)),
    "hold_again": lambda people, row: workflow.hold_again(people["alice"], row),
    "park": lambda people, row: workflow.park(people["alice"], row, {}, content(row)),
}


@pytest.mark.parametrize("way", WAYS)
def test_trajectory_that_was_not_drawn_gets_no_label(planned: Submission, way: str) -> None:
    row = left_out_of(planned)
    with pytest.raises(workflow.Conflict, match=NOT_DRAWN):
        WAYS[way](cast(planned), row)
    assert not row.assignments.exists()


@pytest.mark.parametrize(
    "transition",
    [
        lambda people, row: workflow.open_adjudication(people["carol"], row),
        lambda people, row: workflow.open_adjudication(people["carol"], row, "I want to."),
        lambda people, row: workflow.reopen(people["mira"], row, "I want to."),
        lambda people, row: workflow.flag(people["alice"], row, "Odd."),
        lambda people, row: workflow.revise(people["alice"], row, content(row), "Odd."),
        lambda people, row: workflow.put_off(people["alice"], row),
        lambda people, row: workflow.release(people["alice"], row, "Odd."),
        lambda people, row: workflow.offer_again(people["mira"], row, "Odd."),
    ],
)
def test_no_transition_takes_a_trajectory_out_of_not_drawn(planned: Submission, transition: Any) -> None:
    row = left_out_of(planned)
    with pytest.raises(workflow.Conflict):
        transition(cast(planned), row)
    assert state_of(row) is State.NOT_DRAWN


def test_desk_and_api_give_nobody_a_trajectory_that_was_not_drawn(planned: Submission) -> None:
    people, row = cast(planned), left_out_of(planned)
    for name in ("alice", "carol", "dave"):
        client = Client()
        client.force_login(people[name])
        assert client.get(reverse("trajectory", args=[row.pk])).status_code in (403, 404)
        client.post(reverse("submit", args=[row.pk]), {"verdict": "1", "reasoning": "The steps show it."})
    assert not row.assignments.exists()


# --- states and figures -----------------------------------------------------------------------------------------------


def test_settings_that_labels_depend_on_keep_the_draw(planned: Submission) -> None:
    people = cast(planned)
    workflow.configure(people["mira"], planned, required_labels=4)
    slots = dict(planned.trajectories.values_list("pk", "open_slots"))
    drawn = set(PlannedItem.objects.exclude(position=None).values_list("trajectory", flat=True))
    assert {pk: count for pk, count in slots.items() if count} == dict.fromkeys(drawn, 4)
    with pytest.raises(workflow.Conflict, match="A sample of it is planned"):
        workflow.configure(people["mira"], planned, practice=True)


def test_progress_counts_the_drawn_trajectories(planned: Submission) -> None:
    assert progress.count_done([planned.pk])[planned.pk] == {"trajectories": 10, "to_label": 4, "labels": 0}
    standing = progress.count_states(planned)
    assert dict(standing.states) == {State.IN_REVIEW: 4, State.NOT_DRAWN: 6}
    assert queue.count_own(cast(planned)["alice"], planned) == (0, 4)


def test_review_of_the_drawn_trajectories_can_be_frozen(planned: Submission) -> None:
    people = cast(planned)
    with pytest.raises(workflow.Conflict, match="4 of 4 trajectories have no final verdict"):
        workflow.freeze(people["mira"], planned)
    label_all(people, planned, {})
    draw_of = workflow.draw_spot_checks(people["mira"], planned)
    adjudicate_all(people["carol"], planned)
    assert len(draw_of.population) == 4
    assert progress.count_states(planned).is_ready
    frozen = workflow.freeze(people["mira"], planned)
    assert frozen.events.get(kind="frozen").payload["trajectories"] == 4
    assert dict(progress.count_states(planned).states)[State.NOT_DRAWN] == 6


def test_page_of_the_submission_counts_the_sample(planned: Submission) -> None:
    client = Client()
    client.force_login(cast(planned)["mira"])
    page = client.get(reverse("submission", args=[planned.pk])).content.decode()
    assert "0 of 12 labels" in page
    assert "4 of 10 trajectories in the planned sample" in " ".join(page.split())
    tasks = client.get(reverse("submission-tasks", args=[planned.pk]), {"state": "not drawn"}).content.decode()
    assert tasks.count("not drawn") >= 6


def test_changed_plan_blocks_the_freeze(planned: Submission) -> None:
    assert not integrity.problems(planned)
    facts = plan_facts(SamplePlan.objects.get())
    event = planned.events.get(kind="sample_planned")
    assert digest(facts | {"goal": {}}) != event.payload["plan"] == digest(facts)
    with pytest.raises(DatabaseError), transaction.atomic():
        SamplePlan.objects.update(estimand="agent")
    with pytest.raises(DatabaseError), transaction.atomic():
        PlannedItem.objects.update(position=None)


def test_submission_with_a_plan_is_not_deleted(planned: Submission) -> None:
    with pytest.raises(workflow.Conflict):
        workflow.delete_submission(cast(planned)["mira"], planned, str(planned))
    assert SamplePlan.objects.filter(submission=planned).exists()


def test_plan_is_refused_for_frozen_practice_and_archived_submissions(made: Submission) -> None:
    people = cast(made)
    for changes in ({"practice": True}, {"archived_at": made.created_at}, {"frozen_at": made.created_at}):
        with transaction.atomic():
            Submission.objects.filter(pk=made.pk).update(**changes)
            with pytest.raises(workflow.Conflict):
                workflow.make_plan(people["mira"], made, plan_terms(made))
            transaction.set_rollback(True)
