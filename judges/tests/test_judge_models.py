"""What the database itself holds about judges and runs, on both engines."""

import re
from pathlib import Path

import pytest
from django.db import DatabaseError, IntegrityError, transaction
from django.utils import timezone

from annotation.tests import testing
from judges import models
from judges.models import Judge, JudgeRun, Judgment, ModelCall, RunItem

pytestmark = pytest.mark.django_db


@pytest.fixture
def item():
    submission = testing.bare_submission(1)
    judge = Judge.objects.create(name="careful", scorer="tiny", model="m")
    run = JudgeRun.objects.create(judge=judge, submission=submission)
    return RunItem.objects.create(run=run, trajectory=submission.trajectories.get())


def judgment(item, /, **fields):
    base = {
        "judge": item.run.judge,
        "fingerprint": item.run.judge.fingerprint,
        "item": item,
        "task": item.trajectory.task,
        "agent": item.run.submission.agent,
        "trajectory": item.trajectory,
        "verdict": 1,
        "made_at": timezone.now(),
    }
    return Judgment.objects.create(**(base | fields))


def refused(make):
    with pytest.raises(DatabaseError), transaction.atomic():
        make()


def test_a_judgment_is_never_changed_and_never_deleted(item):
    made = judgment(item)
    refused(lambda: Judgment.objects.filter(pk=made.pk).update(verdict=0))
    refused(lambda: Judgment.objects.filter(pk=made.pk).delete())


def test_a_judge_may_be_changed_until_it_is_frozen_and_never_after(item):
    judge = item.run.judge
    Judge.objects.filter(pk=judge.pk).update(model="another", frozen_at=timezone.now())
    refused(lambda: Judge.objects.filter(pk=judge.pk).update(model="a third"))
    refused(lambda: Judge.objects.filter(pk=judge.pk).delete())


def test_only_what_came_in_a_bundle_has_a_stated_fingerprint(item):
    for wrong in ({"stated": "f" * 64}, {"came_with": item.run.submission}):
        with pytest.raises(IntegrityError, match="bundled_judge_as_stated"), transaction.atomic():
            Judge.objects.create(name="strict", scorer="tiny", **wrong)
    came = Judge.objects.create(name="careful", scorer="tiny", came_with=item.run.submission, stated="f" * 64)
    assert came.fingerprint == "f" * 64
    assert list(Judge.own.all()) == [item.run.judge]


def test_whoever_reads_judges_on_this_floor_reads_its_own():
    """A judge that came in a bundle may have any name: it is in no list, behind no name and none of the models."""
    floor = Path(models.__file__).parent
    files = [file for file in floor.rglob("*.py") if not {"tests", "migrations"} & set(file.parts)]
    reading = [file.name for file in files if re.search(r"Judge\.(objects\.(?!create\()|_)", file.read_text())]
    assert len(files) > 100
    assert reading == []


def test_an_item_has_one_judgment_at_most(item):
    judgment(item)
    with pytest.raises(IntegrityError), transaction.atomic():
        judgment(item)


@pytest.mark.parametrize(("verdict", "unscored"), [(None, ""), (1, "The reply is empty."), (3, "")])
def test_a_judgment_has_a_known_verdict_or_a_reason_why_there_is_none(item, verdict, unscored):
    refused(lambda: judgment(item, verdict=verdict, unscored=unscored))


def test_a_judgment_belongs_to_a_run_or_was_imported(item):
    refused(lambda: judgment(item, item=None))
    refused(lambda: judgment(item, imported={"from": "elsewhere"}))
    judgment(item, item=None, imported={"from": "elsewhere"})


def test_an_item_is_not_done_and_failed_at_once(item):
    now = timezone.now()
    refused(lambda: RunItem.objects.filter(pk=item.pk).update(done_at=now, failed_at=now))


def test_a_call_of_an_attempt_is_written_once(item):
    fields = {"item": item, "attempt": 1, "number": 1, "stage": "verdict", "key": "k", "made_at": timezone.now()}
    ModelCall.objects.create(**fields)
    refused(lambda: ModelCall.objects.create(**fields))


def test_the_fingerprint_depends_on_everything_that_decides_what_a_judge_says():
    base = {"scorer": "tiny", "model": "m", "prompts_digest": "d", "parameters": {"a": 1}, "generation": {"seed": 1}}
    usual = Judge(**base).fingerprint
    others = {"scorer": "big", "model": "n", "prompts_digest": "e", "parameters": {"a": 2}, "generation": {"seed": 2}}
    for name, value in (others | {"scorer_version": 2}).items():
        assert Judge(**(base | {name: value})).fingerprint != usual, name
    same = {"endpoint": "elsewhere", "concurrency": 3, "timeout": 5.0, "attempts": 1, "name": "x", "version": 7}
    assert Judge(**(base | same)).fingerprint == usual


@pytest.mark.parametrize(
    ("fields", "state"),
    [
        ({}, "waiting"),
        ({"started_at": 1}, "running"),
        ({"started_at": 1, "paused_at": 1}, "paused"),
        ({"started_at": 1, "stopped": "The budget is spent."}, "stopped"),
        ({"started_at": 1, "finished_at": 1}, "finished"),
        ({"started_at": 1, "cancelled_at": 1, "paused_at": 1, "stopped": "x"}, "cancelled"),
    ],
)
def test_the_state_of_a_run_follows_from_its_row(fields, state):
    times = {name: timezone.now() if value == 1 else value for name, value in fields.items()}
    assert JudgeRun(**times).state == state
