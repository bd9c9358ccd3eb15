"""Which judgment speaks for a judge: the newest run, its first repetition, an import; never a test."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from annotation import ingest
from annotation.catalogue import import_labels, import_tasks
from annotation.models import Benchmark, Submission
from annotation.records import Verdict
from annotation.tests import testing
from evaluations.cases import Case, of_benchmark, of_imported, of_submission, reported_submissions
from evaluations.comparison import compare, find_judgments, link_trajectories, list_judges
from evaluations.tests import builders as results
from evaluations.tests import hand_made
from judges.imports import import_judgments
from judges.models import Judge, JudgeRun, RunItem
from judges.tests.rows import imported_row, judge_row, judgment_row, run_row

AGENT = "Careful Agent"


def first(submission: Submission) -> Case:
    return of_submission(submission)[0]


def said(submission: Submission, judge: Judge | None = None) -> Any:
    return find_judgments(judge or judge_row(), [first(submission)]).get(first(submission).key)


def items(run: JudgeRun) -> list[RunItem]:
    """Those of the first trajectory, by repetition."""
    return list(run.items.filter(trajectory__position=0).order_by("repetition").select_related("run__submission"))


def failed(item: RunItem) -> None:
    RunItem.objects.filter(pk=item.pk).update(failed_at=timezone.now(), error="no answer")


# --- runs ------------------------------------------------------------------------------------------------------------


def test_a_case_that_the_judge_was_never_asked_about_has_nothing(submission: Submission) -> None:
    assert find_judgments(judge_row(), of_submission(submission)) == {}
    assert find_judgments(judge_row(), []) == {}
    run_row(submission)  # nothing has come of it yet
    assert find_judgments(judge_row(), of_submission(submission)) == {}


def test_a_judgment_counts_with_its_score_tokens_and_cost(submission: Submission) -> None:
    row = judgment_row(items(run_row(submission))[0])
    found = said(submission)
    assert (found.judgment, found.verdict, found.error, found.score) == (row.pk, Verdict.SUCCESS, False, 0.75)
    assert (found.spent, found.repeated) == (((1234, 0.00123),), (Verdict.SUCCESS,))


def test_the_newest_run_with_a_judgment_counts(submission: Submission) -> None:
    judgment_row(items(run_row(submission))[0], 1)
    newer = judgment_row(items(run_row(submission))[0], 0)
    run_row(submission)  # newer still, and has judged nothing
    assert said(submission).judgment == newer.pk


def test_a_test_run_counts_nowhere(submission: Submission) -> None:
    trial = run_row(submission, test=True)
    judgment_row(items(trial)[0])
    failed(run_row(submission, test=True).items.get(trajectory__position=1))
    assert find_judgments(judge_row(), of_submission(submission)) == {}
    assert list_judges(of_submission(submission)) == []


def test_the_first_repetition_counts_and_the_others_only_tell_how_steady_it_is(submission: Submission) -> None:
    one, two, three = items(run_row(submission, repetitions=3))
    judgment_row(three, 0)
    judgment_row(two, None)
    mine = judgment_row(one, 1)
    found = said(submission)
    assert (found.judgment, found.repeated) == (mine.pk, (Verdict.SUCCESS, None, Verdict.FAILURE))


def test_where_the_first_repetition_failed_the_next_one_counts(submission: Submission) -> None:
    one, two = items(run_row(submission, repetitions=2))
    failed(one)
    row = judgment_row(two, 0)
    found = said(submission)
    assert (found.judgment, found.verdict, found.repeated) == (row.pk, Verdict.FAILURE, (Verdict.FAILURE,))


def test_repetitions_of_another_run_are_not_mixed_in(submission: Submission) -> None:
    for item in items(run_row(submission, repetitions=2)):
        judgment_row(item, 0)
    judgment_row(items(run_row(submission))[0], 1)
    assert said(submission).repeated == (Verdict.SUCCESS,)


def test_unscored_is_not_an_error_and_a_failed_item_without_a_judgment_is(submission: Submission) -> None:
    run = run_row(submission)
    judgment_row(items(run)[0], None)
    failed(run.items.get(trajectory__position=1))
    found = find_judgments(judge_row(), of_submission(submission))
    one, two = [found[case.key] for case in of_submission(submission)]
    assert (one.verdict, one.error) == (None, False)
    assert (two.verdict, two.error, two.judgment) == (None, True, None)


def test_a_failure_after_a_judgment_takes_nothing_away(submission: Submission) -> None:
    row = judgment_row(items(run_row(submission))[0])
    failed(items(run_row(submission))[0])
    assert said(submission).judgment == row.pk


def test_other_judges_say_nothing_for_this_one(submission: Submission) -> None:
    judgment_row(items(run_row(submission, judge_row("other")))[0])
    assert said(submission) is None


# --- judgments made elsewhere ----------------------------------------------------------------------------------------


def load(benchmark: Benchmark, *rows: tuple[int, int | None], agent: str = AGENT, judge: str = "elsewhere") -> Judge:
    lines = [json.dumps({"task_id": f"task_{n:04d}", "agent": agent, "verdict": verdict}) for n, verdict in rows]
    outcome = import_judgments("\n".join(lines).encode(), "j.jsonl", benchmark=benchmark, judge=judge)
    assert not outcome.report.rejected, outcome.report.as_json()
    return Judge.objects.get(name=judge)


def label(benchmark: Benchmark, number: int = 0, agent: str = AGENT) -> list[Case]:
    text = f"annotator,task_id,agent,label\nB,task_{number:04d},{agent},1\n"
    report = import_labels(text.encode(), "l.csv", benchmark=benchmark)
    assert not report.rejected, report.as_json()
    return of_imported(benchmark)


def test_a_linked_judgment_counts_for_its_trajectory(submission: Submission) -> None:
    row = imported_row(submission.trajectories.get(position=0), 0)
    found = said(submission, row.judge)
    assert (found.judgment, found.verdict, found.repeated) == (row.pk, 0, (Verdict.FAILURE,))
    assert [cost for _, cost in found.spent] == [None]


def test_a_linked_judgment_counts_for_labels_made_elsewhere_too(submission: Submission) -> None:
    judge = load(submission.benchmark, (0, 1))
    (case,) = label(submission.benchmark)
    assert case.trajectory is None
    assert find_judgments(judge, [case])[case.key].verdict == Verdict.SUCCESS


def test_a_judgment_that_came_before_the_submission_counts_for_its_only_trajectory(db: Any, tmp_path: Path) -> None:
    benchmark = testing.benchmark(2)
    judge = load(benchmark, (0, 1))
    made = testing.submission(tmp_path, trajectories=2)
    assert not judge.judgments.filter(trajectory__isnull=False).exists()
    assert said(made, judge).verdict == Verdict.SUCCESS


def second_attempt(benchmark: Benchmark, folder: Path) -> Submission:
    report, made = ingest.import_submission(
        testing.write_submission(folder, 2, steps=4), benchmark=benchmark, agent_name=AGENT
    )
    assert made is not None, report.as_json()
    return made


def test_of_two_attempts_nobody_knows_which_one_an_unlinked_judgment_is_about(db: Any, tmp_path: Path) -> None:
    benchmark = testing.benchmark(2)
    judge = load(benchmark, (0, 1))
    one = testing.submission(tmp_path / "one", trajectories=2)
    two = second_attempt(benchmark, tmp_path / "two")
    assert said(one, judge) is said(two, judge) is None
    (case,) = label(benchmark)  # labels by task and agent are matched by task and agent
    (case,) = link_trajectories([case], [one, two])
    assert find_judgments(judge, [case])[case.key].verdict == Verdict.SUCCESS


def test_benchmarks_that_share_task_ids_and_agents_are_kept_apart(db: Any) -> None:
    one, two = testing.benchmark(1), testing.benchmark(1, slug="other")
    judge = load(one, (0, 1))
    assert load(two, (0, 0)) == judge
    for benchmark, verdict in ((one, 1), (two, 0)):
        (case,) = label(benchmark)
        assert find_judgments(judge, [case], benchmark=benchmark.slug)[case.key].verdict == verdict
        found = compare(judge, [case], "", benchmark=benchmark.slug)
        assert found.overall[0].confusion.tp == verdict


def test_a_new_version_of_a_task_loses_no_judgment(db: Any) -> None:
    benchmark = testing.benchmark(1)
    judge = load(benchmark, (0, 1))
    import_tasks(json.dumps([testing.task(0, level="hard")]).encode(), "t.json", benchmark_slug="shops")
    (case,) = label(benchmark)
    assert find_judgments(judge, [case])[case.key].verdict == Verdict.SUCCESS


# --- labels made elsewhere of trajectories that are here -------------------------------------------------------------


def test_a_judge_that_ran_here_is_compared_with_labels_made_elsewhere(submission: Submission) -> None:
    judgment_row(items(run_row(submission))[0], 0)
    cases = label(submission.benchmark)
    assert find_judgments(judge_row(), cases) == {}
    (case,) = placed = link_trajectories(cases, [submission])
    assert (case.trajectory, case.submission) == (submission.trajectories.get(position=0).pk, submission.pk)
    assert (case.state, case.labels, case.final) == (None, cases[0].labels, Verdict.SUCCESS)
    found = compare(judge_row(), placed, "", benchmark="shops")
    assert found.overall[0].confusion.fn == 1
    assert [(one.case.trajectory, one.judged.step) for one in found.differences] == [(case.trajectory, 1)]


def test_they_stand_on_the_newest_attempt_and_never_on_a_practice_set(submission: Submission, tmp_path: Path) -> None:
    second = second_attempt(submission.benchmark, tmp_path / "two")
    cases = label(submission.benchmark)
    everything = list(Submission.objects.all())
    assert link_trajectories(cases, everything)[0].submission == second.pk
    Submission.objects.filter(pk=second.pk).update(practice=True)
    assert link_trajectories(cases, everything)[0].submission == submission.pk
    assert link_trajectories(cases, []) == cases


def test_two_versions_of_a_task_in_one_attempt_leave_it_open_which_is_meant(submission: Submission) -> None:
    cases = label(submission.benchmark)
    other = submission.trajectories.get(position=1).task
    type(other).objects.filter(pk=other.pk).update(external_id="task_0000", version=2)
    assert link_trajectories(cases, [submission]) == cases


def test_undecided_cases_are_those_with_labels(db: Any) -> None:
    cases = [hand_made.case(0, None), hand_made.case(1, None, labels=()), hand_made.case(2, 1)]
    assert compare(judge_row(), cases, "", benchmark="shops").undecided == 1


# --- who was asked, and in how many queries --------------------------------------------------------------------------


def test_judges_are_those_with_runs_or_imported_judgments_newest_version_first(submission: Submission) -> None:
    careful = judge_row("careful")
    newer = Judge.objects.create(name="careful", version=2, scorer="webjudge", frozen_at=timezone.now())
    for judge in (careful, newer):
        judgment_row(items(run_row(submission, judge))[0])
    elsewhere = load(submission.benchmark, (0, 1))
    load(submission.benchmark, (0, 1), agent="Other Agent", judge="of-another-agent")
    load(testing.benchmark(1, slug="other"), (0, 1), judge="of-another-benchmark")
    judge_row("unused")
    cases = of_submission(submission)
    assert list_judges(cases) == list_judges(cases, benchmark="shops") == [newer, careful, elsewhere]
    assert list_judges([]) == []


@pytest.mark.parametrize("repetitions", [0, 2])
def test_queries_do_not_depend_on_the_number_of_cases(db: Any, repetitions: int) -> None:
    counts = []
    for tasks in (5, 30):
        benchmark = results.reviewed(2, tasks, slug=f"of-{tasks}")
        judge = results.judged(benchmark, f"judge-{tasks}", accuracy=0.5, repetitions=repetitions)
        cases = of_benchmark(benchmark, reported_submissions(benchmark))
        with CaptureQueriesContext(connection) as queries:
            found = compare(judge, cases, "", benchmark=benchmark.slug)
        counts.append(len(queries))
        assert found.overall[0].n > tasks
        with CaptureQueriesContext(connection) as few:
            compare(judge, cases, "", benchmark=benchmark.slug, details=False)
        assert len(few) <= 4
    assert counts[0] == counts[1] <= 10
