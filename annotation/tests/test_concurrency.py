"""Many people at the same instant, on real connections: on PostgreSQL and on a SQLite file."""

import os
import random
import threading
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta

import pytest
from django.db import connection, transaction

from annotation import clock, ingest, parked, screenshots, workflow
from annotation.forms import LabelForm
from annotation.models import (
    Assignment,
    Draft,
    Event,
    Flag,
    Label,
    Membership,
    SamplePlan,
    SampleStop,
    Screenshot,
    SpotCheckDraw,
    Submission,
    Trajectory,
)
from annotation.models.events import first_broken
from annotation.tests import testing
from annotation.workflow import Conflict
from annotation.workflow.guards import lock_submission
from annotation.workflow.sampling import PLANNED_ALREADY
from config.tests.waiting import wait_until
from conftest import examples

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


def test_undo_and_the_worker_at_once_leave_either_a_label_or_a_draft(monkeypatch, settings):
    settings.UNDO_SECONDS = 15
    submission = testing.bare_submission(examples(20, usual=5))
    people = annotators(submission, 1)
    for trajectory in submission.trajectories.all():
        workflow.claim_this(people[0], trajectory)
        typed = {"verdict": "1", "reasoning": "It is done."}
        for point in workflow.key_points_of(trajectory):
            typed |= {f"finding_{point.pk}": "met", f"finding_{point.pk}_step": "0"}
        content = LabelForm(typed, workflow.asked_of(trajectory)).content()
        workflow.park(people[0], trajectory, typed, content)
        late = clock.now() + timedelta(minutes=1)
        monkeypatch.setattr(clock, "now", lambda late=late: late)

        def act(number, trajectory=trajectory, person=people[0]):
            return workflow.undo_submit(person, trajectory) if number % 2 else parked.submit_due()

        outcomes = at_once(6, act)
        labels = Label.objects.filter(assignment__trajectory=trajectory).count()
        assert Draft.objects.filter(trajectory=trajectory).count() == 1 - labels
        assert sorted(outcomes) == ([0, 0, 0, 0, 0, 1] if labels else [0, 0, 0, 1, 1, 1]), outcomes


def test_eight_people_race_through_a_submission_without_a_slot_given_twice():
    size = 300 if os.environ.get("LONG_TESTS") == "1" else 60
    submission = testing.bare_submission(size)
    people = annotators(submission, 8)

    def work(number):
        chance, done = random.Random(number), 0
        while (held := workflow.claim(people[number], submission)) is not None:
            workflow.submit(people[number], held.trajectory, testing.content(held.trajectory, chance.choice([1, 2])))
            done += 1
        return done

    outcomes = at_once(8, work)
    assert [o for o in outcomes if not isinstance(o, int)] == []
    assert sum(outcomes) == 3 * size
    assert Label.objects.count() == 3 * size
    per_trajectory = Counter(Label.objects.values_list("assignment__trajectory", flat=True))
    assert set(per_trajectory.values()) == {3}
    assert len(per_trajectory) == size
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
    assert [type(o).__name__ for o in outcomes] == ["Label"] * 6  # the same one: a repeated request is no second label
    assert Label.objects.count() == 1
    assert Event.objects.filter(kind="label_submitted").count() == 1


def test_one_of_many_labels_of_one_person_submitted_at_once_is_the_label():
    submission = testing.bare_submission(1)
    (alice,) = annotators(submission, 1)
    row = workflow.claim(alice, submission).trajectory
    outcomes = at_once(6, lambda n: workflow.submit(alice, row, testing.content(row, reasoning=f"Words {n}.")))
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


# --- two who need the same rows: neither may wait for the other, whatever the order in which they came ----------------


def just_before(wanted, act):
    """A block in which ``act`` is called once, just before the first statement of this thread that is ``wanted``."""
    waiting = [act]

    def look(execute, sql, params, many, context):
        if waiting and wanted(sql):
            waiting.pop()()
        return execute(sql, params, many, context)

    return connection.execute_wrapper(look)


def locks_the_submission(sql):
    return 'FROM "annotation_submission"' in sql and "FOR NO KEY UPDATE" in sql


def asks_for_a_membership(sql):
    return sql.startswith('UPDATE "annotation_membership"') or (
        'FROM "annotation_membership"' in sql and "FOR UPDATE" in sql
    )


VERBS = {
    "flag": lambda who, trajectory: workflow.flag(who, trajectory, "Look."),
    "revise": lambda who, trajectory: workflow.revise(who, trajectory, testing.content(trajectory), "Said better."),
}


@pytest.mark.postgresql
@pytest.mark.parametrize("verb", VERBS)
def test_a_draw_and_somebody_who_holds_a_trajectory_do_not_wait_for_each_other(verb):
    submission = testing.bare_submission(2, steps=3)
    people = testing.cast(submission)
    testing.label_all(people, submission, {})
    trajectory = submission.trajectories.first()
    meeting = threading.Barrier(2, timeout=30)

    def act(number):
        if number == 1:
            meeting.wait()
            with just_before(locks_the_submission, meeting.wait):
                return VERBS[verb](people["alice"], trajectory)
        with transaction.atomic():
            lock_submission(submission.pk)
            meeting.wait()  # from here on the submission is ours
            meeting.wait()  # and the trajectory theirs
            return workflow.draw_spot_checks(people["mira"], submission)

    drawn, done = at_once(2, act)
    assert isinstance(drawn, SpotCheckDraw), drawn
    # A draw over complete labels makes them final.
    assert type(done) is {"flag": Flag, "revise": Conflict}[verb], done
    assert drawn.members.count() == 2


@pytest.mark.postgresql
def test_a_claim_and_the_end_of_the_membership_do_not_wait_for_each_other():
    submission = testing.bare_submission(2)
    people = testing.cast(submission)
    meeting = threading.Barrier(2, timeout=30)

    def both_have_begun():
        meeting.wait()  # the claim holds the membership and a trajectory
        meeting.wait()  # and the other one is about to ask for the membership

    def act(number):
        if number == 0:
            with just_before(locks_the_submission, both_have_begun):
                return workflow.claim(people["alice"], submission)
        meeting.wait()
        with just_before(asks_for_a_membership, meeting.wait):
            return workflow.deactivate_member(people["mira"], submission, people["alice"])

    claimed, ended = at_once(2, act)
    assert isinstance(claimed, Assignment), claimed
    assert isinstance(ended, Membership), ended
    # What was given at the last moment comes back too.
    assert not Assignment.objects.exists()
    kinds = Event.objects.filter(submission=submission).values_list("kind", flat=True)
    assert list(kinds)[-3:] == ["claimed", "member_deactivated", "slot_returned"]


def connections_that_wait():
    """How many connections of this database wait for a lock of another one."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_stat_clear_snapshot()")  # a transaction keeps what it saw first
        cursor.execute(
            "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'"
        )
        return cursor.fetchone()[0]


@pytest.mark.postgresql
def test_two_imports_that_share_new_screenshots_do_not_wait_for_each_other(tmp_path, settings):
    settings.MEDIA_ROOT = tmp_path / "images"
    pictures = sorted((testing.png(n) for n in range(3)), key=lambda data: screenshots.inspect(data).sha256)
    middle = screenshots.inspect(pictures[1])
    for folder, order in (("0", pictures), ("1", pictures[::-1])):
        images = {f"{n:04d}.png": data for n, data in enumerate(order)}
        testing.write_trajectory(tmp_path / folder, testing.result_v2(0), images)
    shops = [testing.benchmark(1), testing.benchmark(1, slug="others")]
    begun = threading.Barrier(3, timeout=30)

    def read(number):
        begun.wait()
        return ingest.import_submission(tmp_path / f"{number}", benchmark=shops[number], agent_name=f"A{number}")[1]

    def hold_what_both_need_second_until_both_wait():
        with transaction.atomic():
            facts = {"media_type": "image/png", "width": 320, "height": 200, "size": middle.size}
            Screenshot.objects.create(sha256=middle.sha256, **facts)
            begun.wait()
            wait_until(lambda: connections_that_wait() == 2, "both imports wait")

    acts = [lambda: read(0), lambda: read(1), hold_what_both_need_second_until_both_wait]
    first, second, third = at_once(3, lambda number: acts[number]())
    assert third is None, third
    assert isinstance(first, Submission), first
    assert isinstance(second, Submission), second
    assert Screenshot.objects.count() == 3


@pytest.mark.postgresql
def test_choosing_a_practice_set_and_archiving_its_benchmark_lock_submissions_in_the_same_order():
    practice = testing.bare_submission(1, agent="Practice Agent")
    submission = testing.bare_submission(1)
    mira = testing.cast(practice)["mira"]
    testing.cast(submission)
    workflow.configure(mira, practice, practice=True)
    meeting = threading.Barrier(2, timeout=30)

    def wait_for_the_other():
        meeting.wait()  # the practice set, which is archived first, is locked
        wait_until(lambda: connections_that_wait() == 1, "the other one waits for the practice set")

    def act(number):
        if number == 0:
            with just_before(lambda sql: sql.startswith('UPDATE "annotation_submission"'), wait_for_the_other):
                return workflow.archive_benchmark(mira, submission.benchmark)
        meeting.wait()
        return workflow.configure(mira, submission, practice_set=practice, required_labels=4)

    archived, configured = at_once(2, act)
    assert archived is None, archived
    assert isinstance(configured, Conflict), configured


def test_two_sample_plans_at_once_are_one_plan():
    submission = testing.bare_submission(10)
    people = testing.cast(submission)
    terms = [testing.plan_terms(submission, labels={"easy": number, "hard": 2}) for number in (2, 3, 4, 5)]

    answers = at_once(4, lambda number: workflow.make_plan(people["mira"], submission, terms[number]))

    [plan] = [answer for answer in answers if isinstance(answer, SamplePlan)]
    assert [str(answer) for answer in answers if not isinstance(answer, SamplePlan)] == [PLANNED_ALREADY] * 3
    assert submission.events.filter(kind="sample_planned").count() == 1
    assert plan.items.exclude(position=None).count() == sum(plan.labels.values())
    assert first_broken(submission.events.order_by("sequence")) is None


def test_plan_and_first_claims_at_once_never_reserve_what_was_not_drawn():
    for _ in range(3):
        submission = testing.bare_submission(10, agent=f"agent {random.random()}")
        people = testing.cast(submission)
        terms = testing.plan_terms(submission)

        def act(number, submission=submission, people=people, terms=terms):
            if number == 0:
                return workflow.make_plan(people["mira"], submission, terms)
            return workflow.claim(people[("alice", "bob", "chen")[number - 1]], submission)

        answers = at_once(4, act)

        assert not [answer for answer in answers[1:] if not isinstance(answer, Assignment)]
        reserved = Assignment.objects.filter(trajectory__submission=submission)
        if isinstance(answers[0], SamplePlan):
            assert not reserved.filter(trajectory__planned_item__position=None).exists()
        else:
            assert "already reserved" in str(answers[0])
            assert not SamplePlan.objects.filter(submission=submission).exists()


def test_stop_and_claim_of_the_next_trajectory_at_once_leave_one_of_them():
    outcomes = Counter()
    for turn in range(examples(12, usual=4)):
        submission = testing.bare_submission(6, agent=f"agent {turn}")
        people = testing.cast(submission)
        tasks = submission.trajectories.values_list("task__external_id", flat=True)
        rule = {"rule": "anytime", "half_width": 0.3}
        terms = testing.plan_terms(submission, strata=dict.fromkeys(tasks, "all"), labels={"all": 4}, rule=rule)
        workflow.make_plan(people["mira"], submission, terms)
        for name in ("alice", "bob", "chen"):
            held = workflow.claim(people[name], submission)
            workflow.submit(people[name], held.trajectory, testing.content(held.trajectory))
        workflow.draw_spot_checks(people["mira"], submission)
        testing.adjudicate_all(people["carol"], submission)

        def act(number, submission=submission, people=people):
            if number == 0:
                return workflow.stop_sampling(people["mira"], submission, lambda plan: None)
            return workflow.claim(people["alice"], submission)

        stop, held = at_once(2, act)

        assert isinstance(stop, SampleStop), stop
        assert (stop.labelled, held is None) in ((1, True), (2, False)), held
        outcomes[stop.labelled] += 1
        left_out = submission.trajectories.filter(planned_item__position__gte=stop.labelled)
        assert set(left_out.values_list("open_slots", flat=True)) == {0}
        assert not Assignment.objects.filter(trajectory__in=left_out).exists()
        assert first_broken(submission.events.order_by("sequence")) is None
    assert sum(outcomes.values()) == examples(12, usual=4)
