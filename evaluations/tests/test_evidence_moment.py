"""A bundle is of one moment, whatever judges and people do while it is read, and nobody waits for it."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import count, cycle
from pathlib import Path
from typing import Any

import pytest
from django.db import connection

from annotation import workflow
from annotation.models import Membership, Person, Redaction, Screenshot, Submission
from annotation.records import Verdict
from annotation.tests.test_concurrency import at_once
from evaluations.evidence.writing import prepare, write
from evaluations.tests.checks import check
from evaluations.tests.judged_here import ENDPOINTS, WORKER
from evaluations.verifier.findings import Result
from judges.imports import import_judgments
from judges.models import Judgment, RunItem
from judges.scorer import Score
from judges.tests.builders import defined_judge, started_run
from judges.working import leases
from judges.working.call_log import CallTotals

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("store")]

Act = Callable[[], Any]
MANY = 30  # more runs than there are moments in which something happens


@pytest.fixture(autouse=True)
def endpoints(settings: Any) -> None:
    settings.JUDGE_ENDPOINTS = ENDPOINTS


def maintainer(submission: Submission) -> Person:
    return submission.memberships.get(role=Membership.Role.MAINTAINER).person


def judge_works(submission: Submission) -> Iterator[Act]:
    """The next of several runs in work each time, which from then on says what counts: one verdict and one failure."""
    judge, person = defined_judge("busy"), maintainer(submission)
    waiting = [started_run(person, submission, judge).pk for _ in range(MANY)]

    def work(number: int, run: int) -> bool:
        (first,) = leases.claim(run, WORKER, ())
        score = Score(Verdict(number % 2), score=0.7)
        settled = leases.settle(first, WORKER, score, CallTotals(), judge.fingerprint)
        (second,) = leases.claim(run, WORKER, ())
        return settled and leases.fail(second, WORKER, "The endpoint did not answer.")

    return (lambda n=number, run=run: work(n, run) for number, run in enumerate(waiting))


def run_begins(submission: Submission) -> Iterator[Act]:
    """Another run each time, of which the first item fails at once."""
    judge, person = defined_judge("eager"), maintainer(submission)

    def begin() -> bool:
        run = started_run(person, submission, judge)
        (taken,) = leases.claim(run.pk, WORKER, ())
        return leases.fail(taken, WORKER, "The endpoint did not answer.")

    return cycle([begin])


def judgments_come(submission: Submission) -> Iterator[Act]:
    """Files of judgments from elsewhere, each of another judge."""
    lines = [
        json.dumps({"agent": submission.agent.name, "task_id": row.task.external_id, "verdict": 1}).encode()
        for row in submission.trajectories.select_related("task")
    ]

    def bring(number: int) -> Act:
        return lambda: import_judgments(
            b"\n".join(lines), "judged.jsonl", benchmark=submission.benchmark, judge=f"elsewhere{number}"
        )

    return map(bring, count())


def picture_is_covered(submission: Submission) -> Iterator[Act]:
    person = maintainer(submission)
    picture = Screenshot.objects.filter(steps__trajectory__submission=submission).order_by("sha256")[0]
    boxes = ([[number, 0, 30, 20]] for number in count())
    return (lambda b=box: workflow.redact(person, submission, picture, b, "A name can be read.") for box in boxes)


@contextmanager
def meanwhile(acts: Iterator[Act], table: str) -> Iterator[list[Any]]:
    """Somebody else does the next act before every statement here that asks about ``table``; what came of each."""
    done: list[Any] = []

    def look(execute: Any, sql: str, params: Any, many: bool, context: Any) -> Any:
        if f'FROM "{table}' in sql:
            done.extend(at_once(1, lambda _: next(acts)()))
        return execute(sql, params, many, context)

    with connection.execute_wrapper(look):
        yield done


@pytest.mark.parametrize(
    ("acts", "table"),
    [
        (judge_works, "judges_"),
        (run_begins, "judges_"),
        (judgments_come, "judges_"),
        (picture_is_covered, "annotation_redaction"),
    ],
)
def test_what_happens_while_a_bundle_is_read_is_in_it_wholly_or_not_at_all(
    frozen: Submission, tmp_path: Path, acts: Callable[[Submission], Iterator[Act]], table: str
) -> None:
    others = acts(frozen)
    with meanwhile(others, table) as done:
        evidence = prepare(frozen)
    assert len(done) > 1
    assert [each for each in done if isinstance(each, Exception) or not each] == []
    write(evidence, tmp_path / "bundle.zip")
    found = check(str(tmp_path / "bundle.zip"))
    assert [(one.name, one.says, one.places) for one in found if one.result is Result.FAIL] == []


def test_whoever_reads_next_sees_what_happened(frozen: Submission) -> None:
    with meanwhile(judge_works(frozen), "judges_"):
        first = prepare(frozen)
    second = prepare(frozen)
    assert first.bundle.judgments is not None
    assert second.bundle.judgments is not None
    counted = Judgment.objects.count() + RunItem.objects.filter(failed_at__isnull=False).count()
    assert len(first.bundle.judgments) < len(second.bundle.judgments) == counted


def test_a_bundle_leaves_the_connection_as_it_was(frozen: Submission) -> None:
    """What is written next is written, and waits for its turn."""
    prepare(frozen)
    picture = Screenshot.objects.filter(steps__trajectory__submission=frozen).order_by("sha256")[0]
    statements: list[str] = []

    def look(execute: Any, sql: str, params: Any, many: bool, context: Any) -> Any:
        statements.append(sql)
        return execute(sql, params, many, context)

    with connection.execute_wrapper(look):
        workflow.redact(maintainer(frozen), frozen, picture, [[0, 0, 30, 20]], "A name can be read.")
    if connection.vendor == "sqlite":
        assert "BEGIN IMMEDIATE" in statements
        assert "BEGIN DEFERRED" not in statements
    assert Redaction.objects.count() == 1
