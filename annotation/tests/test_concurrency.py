"""Many people at the same instant, on real connections: on PostgreSQL and on a SQLite file."""

import random
import threading
from collections import Counter
from concurrent.futures import ThreadPoolExecutor

import pytest
from django.db import connection

from annotation import testing, workflow
from annotation.models import Assignment, Event, Label, Membership, Submission, Trajectory
from annotation.models.events import first_broken
from annotation.workflow import Conflict

pytestmark = pytest.mark.django_db(transaction=True)


def at_once(workers, action):
    """Run ``action(number)`` in as many threads, all started at the same instant; what each returned or raised."""
    barrier = threading.Barrier(workers)

    def run(number):
        try:
            barrier.wait(timeout=30)
            return action(number)
        except Exception as error:
            return error
        finally:
            connection.close()

    with ThreadPoolExecutor(workers) as pool:
        return list(pool.map(run, range(workers)))


def annotators(submission, count):
    people = testing.cast(submission)
    names = [f"annotator{n}" for n in range(count)]
    for name in names:
        workflow.add_member(people["mira"], submission, testing.person(name), Membership.Role.ANNOTATOR)
    return [testing.person(name) for name in names]


def test_eight_people_race_through_300_trajectories_without_a_slot_given_twice():
    submission = testing.bare_submission(300)
    people = annotators(submission, 8)

    def work(number):
        chance, done = random.Random(number), 0
        while (held := workflow.claim(people[number], submission)) is not None:
            workflow.submit(people[number], held.trajectory, testing.content(held.trajectory, chance.choice([1, 2])))
            done += 1
        return done

    outcomes = at_once(8, work)
    assert [o for o in outcomes if not isinstance(o, int)] == []
    assert sum(outcomes) == 900
    assert Label.objects.count() == 900
    per_trajectory = Counter(Label.objects.values_list("assignment__trajectory", flat=True))
    assert set(per_trajectory.values()) == {3}
    assert len(per_trajectory) == 300
    assert first_broken(Event.objects.filter(submission=submission)) is None


def test_the_last_slots_are_given_to_exactly_as_many_as_there_are():
    submission = testing.bare_submission(1)
    people = annotators(submission, 8)
    outcomes = at_once(8, lambda number: workflow.claim(people[number], submission))
    assert [o for o in outcomes if isinstance(o, Exception)] == []
    assert sum(o is not None for o in outcomes) == 3
    assert Assignment.objects.count() == 3


def test_nobody_is_told_that_there_is_no_work_while_there_is_some():
    submission = testing.bare_submission(2)
    people = annotators(submission, 6)
    outcomes = at_once(6, lambda number: workflow.claim(people[number], submission))
    assert all(isinstance(o, Assignment) for o in outcomes), outcomes


def test_one_person_asking_many_times_at_once_is_given_one_trajectory():
    submission = testing.bare_submission(5)
    (alice,) = annotators(submission, 1)
    outcomes = at_once(6, lambda number: workflow.claim(alice, submission))
    assert len({o.pk for o in outcomes}) == 1
    assert Assignment.objects.count() == 1


def test_one_label_submitted_many_times_at_once_is_one_label():
    submission = testing.bare_submission(1)
    (alice,) = annotators(submission, 1)
    held = workflow.claim(alice, submission)
    outcomes = at_once(6, lambda number: workflow.submit(alice, held.trajectory, testing.content(held.trajectory)))
    assert sorted(type(o).__name__ for o in outcomes) == ["Conflict"] * 5 + ["Label"]
    assert Label.objects.count() == 1


def test_a_trajectory_is_opened_by_one_adjudicator():
    submission = testing.bare_submission(1, steps=3)
    people = testing.cast(submission)
    testing.label_all(people, submission, {"task_0000": [0, 1, 1]})
    judges = [testing.person(f"judge{n}") for n in range(4)]
    for judge in judges:
        workflow.add_member(people["mira"], submission, judge, Membership.Role.ADJUDICATOR)
    trajectory = Trajectory.objects.get()
    outcomes = at_once(4, lambda number: workflow.open_adjudication(judges[number], trajectory))
    assert sorted(type(o).__name__ for o in outcomes) == ["Adjudication", "Conflict", "Conflict", "Conflict"]


def test_a_label_and_a_freeze_at_the_same_instant_never_both_go_through():
    submission = testing.bare_submission(1, steps=3)
    people = testing.cast(submission)
    testing.label_all(people, submission, {})
    workflow.draw_spot_checks(people["mira"], submission)
    trajectory = Trajectory.objects.get()
    testing.adjudicate_all(people["carol"], submission)

    def act(number):
        if number == 0:
            return workflow.freeze(people["mira"], submission)
        return workflow.flag(people["alice"], trajectory, "wait")

    frozen, flagged = at_once(2, act)
    submission.refresh_from_db()
    events = list(Event.objects.filter(submission=submission).values_list("kind", flat=True))
    assert isinstance(frozen, Submission)
    assert isinstance(flagged, Conflict) or events.index("flagged") < events.index("frozen")
