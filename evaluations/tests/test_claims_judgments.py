"""Judgments against the digests that the chain has of them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pytest
from django.test import override_settings
from pytest_django.plugin import DjangoDbBlocker

from annotation.models import Submission
from annotation.models.events import digest
from annotation.tests import testing
from annotation.tests.shared_rows import rolled_back
from evaluations.evidence.documents import documents
from evaluations.tests.forging import later
from evaluations.tests.judged_here import ENDPOINTS, judged_here
from evaluations.tests.tampered import Line, Tampered
from evaluations.verifier.documents import Bundle
from evaluations.verifier.findings import Finding, Result
from evaluations.verifier.judgments import RUN_FACTS, judgments_findings
from judges.working.leases import collect_outcomes

pytestmark = [pytest.mark.django_db, pytest.mark.once]  # the fixture below asks the database, once for all of them


@dataclass
class _Judged:
    bundle: Bundle
    facts: list[Line]  # of run 1, from the rows


@pytest.fixture(scope="module")
def judged(django_db_setup: None, django_db_blocker: DjangoDbBlocker) -> _Judged:
    """10 trajectories; run 1 finished, run 2 was cancelled after two judgments."""
    with override_settings(JUDGE_ENDPOINTS=ENDPOINTS), rolled_back(django_db_blocker):
        submission = testing.bare_submission(10)
        testing.cast(submission)
        finished, _ = judged_here(submission)
        return _Judged(documents(Submission.objects.get(pk=submission.pk)), collect_outcomes(finished.pk))


@pytest.fixture
def made(judged: _Judged) -> Tampered:
    return Tampered(judged.bundle)


def found(tampered: Tampered) -> Finding:
    tampered.relink()
    return judgments_findings(tampered.bundle)[0]


def test_where_all_judgments_are_covered_it_passes(made: Tampered) -> None:
    assert found(made).result is Result.PASS
    assert "All 12 judgments" in found(made).says


def test_what_no_end_covers_is_noted_with_how_many_of_it_count(made: Tampered) -> None:
    made.events.remove(_event(made, "judge_run_cancelled"))
    runs(made)[1]["state"] = "running"
    assert found(made).result is Result.NOTE
    assert "10 of 12 judgments are covered by the chain of events, and 2 are not" in found(made).says
    assert "Run 2 neither finished nor was cancelled" in found(made).says
    assert "and 2 of them count." in found(made).says


def test_a_judge_without_its_addresses_is_noted_and_not_compared_with_its_fingerprint(made: Tampered) -> None:
    runs(made)[1] |= {"model": "(address)", "withheld": True}
    assert found(made).result is Result.NOTE
    assert "Of Run 2 an address or a path was removed" in found(made).says


def test_cancellations_without_digest_may_have_judgments_that_were_on_their_way(made: Tampered) -> None:
    cancelled = _event(made, "judge_run_cancelled")
    del cancelled["payload"]["judgments"]
    made_last = [line for line in judgments(made) if line["run"] == 2][-1]
    judgments(made).append(made_last | {"task_id": judgments(made)[-3]["task_id"]})
    assert found(made).result is Result.NOTE
    cancelled["at"] = later(cancelled["at"], 1000)
    assert "do not have the number in event" in found(made).says


def test_the_event_has_the_digest_of_the_lines_of_the_bundle(judged: _Judged, made: Tampered) -> None:
    lines = [{name: line[name] for name in RUN_FACTS} for line in judgments(made) if line["run"] == 1]
    assert judged.facts == sorted(lines, key=lambda line: line["task_id"])
    ends = [event for event in made.events if event["kind"] == "judge_run_finished"]
    assert ends[-1]["payload"]["judgments"] == digest(judged.facts)
    assert ends[0]["payload"]["judgments"] != ends[-1]["payload"]["judgments"]  # a failed item was tried again


def runs(tampered: Tampered) -> list[Line]:
    assert tampered.bundle.runs is not None
    return tampered.bundle.runs


def judgments(tampered: Tampered) -> list[Line]:
    assert tampered.bundle.judgments is not None
    return tampered.bundle.judgments


def _first(tampered: Tampered, **wanted: Any) -> Line:
    return next(line for line in judgments(tampered) if wanted.items() <= line.items())


def _event(tampered: Tampered, kind: str) -> Line:
    """The last one of its kind."""
    return [event for event in tampered.events if event["kind"] == kind][-1]


def _verdict(made: Tampered) -> None:
    _first(made, run=1, verdict=1)["verdict"] = 0


def _removed(made: Tampered) -> None:
    judgments(made).remove(_first(made, run=1))


def _failure_removed(made: Tampered) -> None:
    judgments(made).remove(_first(made, run=1, error=True))


def _added(made: Tampered) -> None:
    judgments(made).append(_first(made, run=1, error=True) | {"repetition": 2})


def _run_left_out(made: Tampered) -> None:
    judgments(made)[:] = [line for line in judgments(made) if line["run"] != 1]
    runs(made).pop(0)


def _all_left_out(made: Tampered) -> None:
    judgments(made)[:] = [line for line in judgments(made) if line["run"] != 1]


def _to_another_run(made: Tampered) -> None:
    _first(made, run=1, verdict=1)["run"] = 2


def _said_to_be_imported(made: Tampered) -> None:
    nothing = dict.fromkeys(("event_run", "repeat", "started_at", "finished_at"))
    runs(made)[0] |= nothing | {"state": "imported"}


def _without_events(made: Tampered) -> None:
    runs(made)[0] |= {"event_run": None}


def _imported_with_times(made: Tampered) -> None:
    runs(made)[0] |= {"event_run": None, "repeat": None, "state": "imported"}


def _imported_with_events(made: Tampered) -> None:
    runs(made)[0] |= {"repeat": None, "state": "imported", "started_at": None, "finished_at": None}


def _said_to_be_cancelled(made: Tampered) -> None:
    runs(made)[0] |= {"state": "cancelled", "finished_at": None}


def _never_finished(made: Tampered) -> None:
    for event in [event for event in made.events if event["kind"] == "judge_run_finished"]:
        made.events.remove(event)


def _another_judge(made: Tampered) -> None:
    runs(made)[0]["judge"] = "kinder-judge"


def _another_time(made: Tampered) -> None:
    runs(made)[0]["finished_at"] = "2020-01-01T00:00:00.000000+00:00"


def _a_later_end_without_digest(made: Tampered) -> None:
    del [event for event in made.events if event["kind"] == "judge_run_finished"][-1]["payload"]["judgments"]


def _run_of_no_event(made: Tampered) -> None:
    runs(made).append(runs(made)[1] | {"run": 3, "event_run": 10**6})


def _ended_twice(made: Tampered) -> None:
    last = [event for event in made.events if event["kind"] == "judge_run_finished"][-1]
    made.add(last, "judge_run_finished", "", **last["payload"])


def _started_by_nobody(made: Tampered) -> None:
    made.add(made.events[-1], "judge_run_finished", "", run=10**6)


def _number_twice(made: Tampered) -> None:
    runs(made).append(runs(made)[0] | {"event_run": None, "state": "imported"})


def _one_run_as_two(made: Tampered) -> None:
    runs(made).append(runs(made)[1] | {"run": 3})


def _of_a_run_that_is_not_there(made: Tampered) -> None:
    _first(made, run=2)["run"] = 7


def _renumbered(made: Tampered) -> None:
    for line in runs(made) + judgments(made):
        line["run"] = 3 - line["run"]


def _imported_first(made: Tampered) -> None:
    nothing = dict.fromkeys(("event_run", "repeat", "started_at", "finished_at"))
    runs(made).append(runs(made)[0] | nothing | {"run": 0, "state": "imported"})


def _cancelled_verdict(made: Tampered) -> None:
    line = _first(made, run=2)
    line.update(verdict=None, reason="Unsure.") if line["verdict"] is not None else line.update(verdict=1, reason=None)


def _cancelled_verdict_of_an_older_chain(made: Tampered) -> None:
    del _event(made, "judge_run_cancelled")["payload"]["judgments"]
    _cancelled_verdict(made)


def _cancelled_left_out(made: Tampered) -> None:
    judgments(made)[:] = [line for line in judgments(made) if line["run"] != 2]


def _no_digests_and_other_verdicts(made: Tampered) -> None:
    for event in made.events:
        event["payload"].pop("judgments", None)
    _verdict(made)


def _other_counts(made: Tampered) -> None:
    payload = _event(made, "judge_run_finished")["payload"]
    payload["verdicts"]["1"] -= 1
    payload["unscored"] += 1


def _more_counts(made: Tampered) -> None:
    _event(made, "judge_run_finished")["payload"]["failed"] = 77


def _fewer_trajectories(made: Tampered) -> None:
    made.event("judge_run_started")["payload"]["trajectories"] = 1


def _another_fingerprint_at_the_end(made: Tampered) -> None:
    _event(made, "judge_run_finished")["payload"]["fingerprint"] = "0" * 64


def _a_test_when_it_started(made: Tampered) -> None:
    made.event("judge_run_started")["payload"]["test"] = True


def _after_a_cancellation(made: Tampered, kind: str, **payload: Any) -> None:
    cancelled = _event(made, "judge_run_cancelled")
    own = {name: cancelled["payload"][name] for name in ("run", "judge", "fingerprint", "test")}
    made.add(cancelled, kind, "M1", **own, **payload)


def _paused_after_a_cancellation(made: Tampered) -> None:
    _after_a_cancellation(made, "judge_run_paused")


def _retried_after_a_cancellation(made: Tampered) -> None:
    _after_a_cancellation(made, "judge_run_retried", items=1)


def _retried_nothing(made: Tampered) -> None:
    _event(made, "judge_run_retried")["payload"]["items"] = 0


def _in_work(made: Tampered) -> None:
    made.events.remove(_event(made, "judge_run_cancelled"))
    runs(made)[1]["state"] = "paused"


def _another_model(made: Tampered) -> None:
    runs(made)[0]["model"] = "gpt-5"


def _other_parameters(made: Tampered) -> None:
    runs(made)[1]["parameters"] = {"threshold": 0.9}


def _more_repetitions(made: Tampered) -> None:
    runs(made)[1]["repeat"] = 5


def _began_long_ago(made: Tampered) -> None:
    runs(made)[1]["started_at"] = "2020-01-01T00:00:00.000000+00:00"


def _cancelled_when_it_had_finished(made: Tampered) -> None:
    runs(made)[1]["finished_at"] = runs(made)[1]["started_at"]


def _judged_later(made: Tampered) -> None:
    _first(made, run=2)["judged_at"] = "2099-01-01T00:00:00.000000+00:00"


def _imported(made: Tampered, **changes: Any) -> None:
    nothing = dict.fromkeys(("event_run", "repeat", "started_at", "finished_at"))
    runs(made).append(runs(made)[0] | nothing | {"run": 3, "state": "imported"})
    judgments(made).append(_first(made, run=1, verdict=1) | {"run": 3} | changes)


def _imported_of_no_task(made: Tampered) -> None:
    _imported(made, task_id="nowhere")


def _imported_twice(made: Tampered) -> None:
    _imported(made)
    judgments(made).append(judgments(made)[-1] | {"verdict": 0})


def _imported_repetition_0(made: Tampered) -> None:
    _imported(made, repetition=0)


def _imported_failure(made: Tampered) -> None:
    _imported(made, error=True)


def _verdict_and_reason(made: Tampered) -> None:
    _first(made, run=1, verdict=1)["reason"] = "Unsure."


def _reason_of_a_failure(made: Tampered) -> None:
    _first(made, run=1, error=True)["reason"] = "x"


@pytest.mark.parametrize(
    ("change", "says"),
    [
        (_verdict, "do not match the digest in event #"),
        (_removed, "do not match the digest in event #"),
        (_failure_removed, "do not match the digest in event #"),
        (_added, "do not match the digest in event #"),
        (_all_left_out, "do not match the digest in event #"),
        (_to_another_run, "do not match the digest in event #"),
        (_run_left_out, "is missing from runs.jsonl"),
        (_said_to_be_imported, "is missing from runs.jsonl"),
        (_without_events, "Run 1 is finished, without an event"),
        (_imported_with_times, "Run 1 is marked as imported, and has times, repetitions or events"),
        (_imported_with_events, "Run 1 is marked as imported, and has times, repetitions or events"),
        (_said_to_be_cancelled, "is cancelled, but finished"),
        (_never_finished, "is finished, but open"),
        (_another_judge, "names another judge than its events"),
        (_another_time, "finished at another time than its event"),
        (_a_later_end_without_digest, "has no digest of judgments, and earlier ones have"),
        (_run_of_no_event, "Run 3 (present-judge) has no events"),
        (_ended_twice, "ends a run that had ended"),
        (_started_by_nobody, "belongs to no run"),
        (_number_twice, "Run 1 is twice in runs.jsonl"),
        (_one_run_as_two, "is two runs in runs.jsonl"),
        (_of_a_run_that_is_not_there, "1 judgment of run 7, which does not exist"),
        (_renumbered, "Run 2 started before run 1"),
        (_imported_first, "was not imported as that run"),
        (_cancelled_verdict, "do not match the digest in event #"),
        (_cancelled_verdict_of_an_older_chain, "do not have the number in event #"),
        (_cancelled_left_out, "do not match the digest in event #"),
        (_no_digests_and_other_verdicts, "do not have the number in event #"),
        (_other_counts, "do not have the number in event #"),
        (_more_counts, "does not count as many items as its run has"),
        (_fewer_trajectories, "does not count as many items as its run has"),
        (_another_fingerprint_at_the_end, "names another judge than event #"),
        (_a_test_when_it_started, "only one of the two is a test"),
        (_paused_after_a_cancellation, "(judge_run_paused) belongs to a run that was cancelled"),
        (_retried_after_a_cancellation, "(judge_run_retried) belongs to a run that was cancelled"),
        (_retried_nothing, "retries 0 items, which is not the number of failed items"),
        (_in_work, "is paused, but open"),
        (_another_model, "does not match its fingerprint"),
        (_other_parameters, "does not match its fingerprint"),
        (_more_repetitions, "has 5 repetitions, unlike event #"),
        (_began_long_ago, "began before its first event, or after its last"),
        (_cancelled_when_it_had_finished, "is cancelled, and has a finish time"),
        (_judged_later, "it was given before its run started, or after it ended"),
        (_imported_of_no_task, "no trajectory has that task"),
        (_imported_twice, "it occurs twice"),
        (_imported_repetition_0, "this repetition does not exist"),
        (_imported_failure, "it failed, without a run"),
        (_verdict_and_reason, "it must have either a verdict or a reason for none"),
        (_reason_of_a_failure, "it failed and has a reason"),
    ],
)
def test_whoever_changes_judgments_or_runs_is_caught(
    made: Tampered, change: Callable[[Tampered], None], says: str
) -> None:
    change(made)
    assert found(made).result is Result.FAIL
    assert says in found(made).says


def test_chains_that_are_older_than_the_digest_are_noted(made: Tampered) -> None:
    for event in made.events:
        event["payload"].pop("judgments", None)
    assert found(made).result is Result.NOTE
    assert "0 of 12 judgments are covered" in found(made).says


def test_tests_of_a_judge_are_not_in_a_bundle(made: Tampered) -> None:
    number = runs(made)[1]["event_run"]
    for event in made.events:
        if event["payload"].get("run") == number:
            event["payload"]["test"] = True
    assert "has no events" in found(made).says
    runs(made).pop()
    judgments(made)[:] = [line for line in judgments(made) if line["run"] == 1]
    assert found(made).result is Result.PASS
