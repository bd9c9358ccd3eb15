"""The command compare: which cases it takes, what it prints, and what it refuses."""

from __future__ import annotations

import json
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
from django.core.management import CommandError, call_command

from annotation import workflow
from annotation.catalogue import import_labels
from annotation.models import Benchmark, Person, Submission
from annotation.tests import testing
from annotation.tests.shared_rows import shared_rows
from evaluations.cases import of_benchmark, of_submission, reported_submissions
from evaluations.comparison import compare
from evaluations.tests import builders as results
from judges.models import Judge
from judges.tests.rows import imported_row, judge_row, judgment_row, run_row


def told(**options: Any) -> tuple[str, str]:
    """What it prints and what it says on the side."""
    out, err = StringIO(), StringIO()
    call_command("compare", stdout=out, stderr=err, **options)
    return out.getvalue(), err.getvalue()


def figures(**options: Any) -> dict[str, Any]:
    return dict(json.loads(told(json=True, **options)[0]))


def refused(**options: Any) -> tuple[int, str]:
    with pytest.raises(CommandError) as error:
        told(**options)
    return error.value.returncode, str(error.value)


@shared_rows
def judgments(frozen: Submission) -> Judge:
    """Right about task 0, wrong about task 1."""
    run = run_row(frozen)
    for number, item in enumerate(run.items.order_by("trajectory__position")):
        judgment_row(item, 1 - number)
    return judge_row()


@shared_rows
def labelled() -> Benchmark:
    """Labels made elsewhere of an agent that is not here."""
    benchmark = testing.benchmark(2)
    text = "annotator,task_id,agent,label\nB,task_0000,Elsewhere,1\nB,task_0001,Elsewhere,0\n"
    assert not import_labels(text.encode(), "l.csv", benchmark=benchmark).rejected
    return benchmark


# --- which cases -----------------------------------------------------------------------------------------------------


def test_a_submission_alone_gives_the_figures_of_the_function(frozen: Submission, judgments: Judge) -> None:
    found = figures(benchmark="shops", submission=frozen.pk, judge="careful")
    scope = f"submission {frozen.pk}: Careful Agent"
    people, left_out = found.pop("ceiling"), found.pop("ceiling_leave_one_out")
    # [1, 0, 2]: no majority without one label, and the adjudicated 1 decides, blind or not; [1, 1, 1]: the others.
    assert [(each["annotator"], each["n"], each["tp"], each["fn"]) for each in left_out[-1:]] == [("people", 6, 4, 2)]
    assert (found.pop("human_error"), found.pop("aligned")) == ([], None)
    assert found == compare(judgments, of_submission(frozen), scope, benchmark="shops").as_json()
    row = found["rows"][0]
    # The labels are [1, 0, 2] and [1, 1, 1], both final verdicts 1: four of six say what was decided.
    assert [(each["annotator"], each["n"], each["tp"], each["fn"]) for each in people[::2]] == [
        *((f"A{number}", 2, *cells) for number, cells in enumerate(((2, 0), (1, 1), (1, 1)), 1)),
        ("people", 6, 4, 2),
    ]
    assert (row["agent"], row["n"], row["tp"], row["fn"], row["agreement"]) == ("Careful Agent", 2, 1, 1, 0.5)


def test_a_benchmark_counts_its_frozen_submissions_and_labels_made_elsewhere(
    frozen: Submission, judgments: Judge, labelled: Benchmark
) -> None:
    imported_row(frozen.trajectories.get(position=0), judge=judgments)  # of the agent that is here: its run goes first
    found = figures(benchmark="shops", judge="careful")
    assert [(row["agent"], row["n"], row["unjudged"]) for row in found["rows"][::2]] == [
        ("Careful Agent", 2, 0),
        ("Elsewhere", 0, 2),
    ]


def test_what_is_not_frozen_is_left_out_and_said(
    submission: Submission, people: dict[str, Person], labelled: Benchmark
) -> None:
    testing.label_all(people, submission, {"task_0000": [1, 0, 2]})
    workflow.draw_spot_checks(people["mira"], submission)
    testing.adjudicate_all(people["carol"], submission)
    judgment_row(run_row(submission).items.get(trajectory__position=0))
    code, says = refused(benchmark="shops", judge="careful")
    assert (code, "never judged any of the 2 decided cases" in says) == (1, True)
    _, aside = told(benchmark="shops", submission=submission.pk, judge="careful", json=True)
    assert aside == f"Submission {submission.pk} is not frozen: 2 of 2 trajectories are decided.\n"
    workflow.freeze(people["mira"], submission)
    assert figures(benchmark="shops", judge="careful")["overall"][0]["n"] == 1


def test_the_side_note_names_what_was_left_out(submission: Submission, labelled: Benchmark) -> None:
    imported_row(submission.trajectories.get(position=0))
    with pytest.raises(CommandError):
        call_command("compare", benchmark="shops", judge="elsewhere", stderr=(err := StringIO()))
    assert err.getvalue() == f"Not frozen and left out: {submission.pk}. Use --submission to include one.\n"


def test_imported_labels_alone_need_no_review_but_know_the_trajectories(
    frozen: Submission, judgments: Judge, labelled: Benchmark
) -> None:
    text = "annotator,task_id,agent,label\nB,task_0000,Careful Agent,0\n"  # the review says success
    import_labels(text.encode(), "more.csv", benchmark=labelled)
    found = figures(benchmark="shops", judge="careful", imported=True)
    rows = {row["agent"]: row for row in found["rows"][::2]}
    assert (rows["Careful Agent"]["fp"], rows["Careful Agent"]["n"]) == (1, 1)
    assert rows["Elsewhere"]["unjudged"] == 2
    assert found["differences"][0]["trajectory"] == frozen.trajectories.get(position=0).pk


def test_a_version_of_a_judge_can_be_named(frozen: Submission, judgments: Judge) -> None:
    newer = Judge.objects.create(name="careful", version=2, scorer="webjudge")
    judgment_row(run_row(frozen, newer).items.get(trajectory__position=0), 0)
    assert figures(benchmark="shops", judge="careful")["judge"] == "careful@2"
    assert figures(benchmark="shops", judge="careful@1")["judge"] == "careful"


@pytest.mark.parametrize(
    ("filters", "names", "compared"),
    [
        ({"agent": "Careful Agent"}, ["Careful Agent"], 2),
        ({"website": "https://shop1.example/"}, ["Careful Agent", "Elsewhere"], 1),
        ({"website": "https://shop1.example/", "agent": "Careful Agent"}, ["Careful Agent"], 1),
        ({"level": "easy"}, ["Careful Agent", "Elsewhere"], 2),
    ],
)
def test_filters_narrow_the_cases_as_on_the_page(
    frozen: Submission,
    judgments: Judge,
    labelled: Benchmark,
    filters: dict[str, str],
    names: list[str],
    compared: int,
) -> None:
    found = figures(benchmark="shops", judge="careful", **filters)
    assert [row["agent"] for row in found["rows"][::2]] == names
    assert found["overall"][0]["n"] == compared
    for value in filters.values():
        assert value in found["scope"]


# --- all judges ------------------------------------------------------------------------------------------------------


def test_without_a_judge_it_is_about_all_of_them(frozen: Submission, judgments: Judge) -> None:
    """The second judge is right about both, so it alone is right about task 1."""
    for item in run_row(frozen, judge_row("right")).items.all():
        judgment_row(item, 1)
    found = figures(benchmark="shops")
    assert [(each["judge"], each["overall"][0]["agreement"]) for each in found["judges"]] == [
        ("careful", 0.5),
        ("right", 1.0),
    ]
    for versus in found["versus"]:
        cells = [versus[name] for name in ("first", "second", "both", "first_only", "second_only", "neither")]
        assert cells == ["right", "careful", 1, 1, 0, 0]
        assert versus["p"]["value"] == 1  # of one toss of a coin
    assert [each["annotator"] for each in found["ceiling"][-2:]] == ["people", "people"]
    assert [(each["agent"], each["over_all"]["value"]) for each in found["agents"]] == [("Careful Agent", 1.0)]


def test_without_a_judge_it_prints_the_tables_of_the_page(db: Any) -> None:
    benchmark = results.reviewed(2, 20)
    results.judged(benchmark)
    results.judged(benchmark, "strict", 0.7)
    text, _ = told(benchmark="reviewed")
    assert text.startswith("Judges compared with people: frozen submissions of reviewed, and imported labels.")
    for words in (
        "Agreement of judges by agent",
        "The human ceiling",
        "Judge against judge",
        "Success rates of agents",
    ):
        assert words in text
    cases = of_benchmark(benchmark, reported_submissions(benchmark))
    for judge in Judge.objects.all():
        overall = compare(judge, cases, "", benchmark="reviewed").overall[0]
        assert f"{100 * (overall.measures['agreement'].value or 0):.1f}" in text


def test_without_a_judge_but_no_judge_there_is_nothing_to_compare(frozen: Submission) -> None:
    code, says = refused(benchmark="shops")
    assert (code, "no judge has judged any of these cases" in says) == (1, True)


# --- what it prints --------------------------------------------------------------------------------------------------


def test_without_json_it_prints_tables_with_the_same_figures(db: Any) -> None:
    benchmark = results.reviewed(2, 20)
    results.judged(benchmark)
    text, _ = told(benchmark="reviewed", judge="webjudge")
    cases = of_benchmark(benchmark, reported_submissions(benchmark))
    overall = compare(Judge.objects.get(), cases, "", benchmark="reviewed").overall[0]
    assert "webjudge compared with people: frozen submissions of reviewed, and imported labels." in text
    assert f"{100 * (overall.measures['agreement'].value or 0):.1f}" in text
    for words in ("All agents together", "By level", "Key points", "Cases where judge and people differ"):
        assert words in text


def test_the_published_rules_are_never_the_default(frozen: Submission, judgments: Judge) -> None:
    assert figures(benchmark="shops", judge="careful")["rules"] == "default"
    found = figures(benchmark="shops", judge="careful", rules="published")
    assert (found["rules"], found["overall"][0]["agreement"]) == ("published", 50.0)


# --- what it refuses -------------------------------------------------------------------------------------------------


def test_an_unknown_judge_is_wrong_usage_and_the_nearest_is_named(frozen: Submission, judgments: Judge) -> None:
    code, says = refused(benchmark="shops", judge="carefull")
    assert code == 2
    assert says == "The judge carefull does not exist. Known: careful. Did you mean careful?"
    assert refused(benchmark="shops", judge="careful@7")[0] == 2


def test_an_unknown_benchmark_or_submission_is_wrong_usage(frozen: Submission, judgments: Judge) -> None:
    assert refused(benchmark="nowhere", judge="careful")[0] == 2
    code, says = refused(benchmark="shops", judge="careful", submission=frozen.pk + 99)
    assert (code, "list_submissions" in says) == (2, True)


def test_a_filter_that_fits_no_case_is_refused(frozen: Submission, judgments: Judge, labelled: Benchmark) -> None:
    code, says = refused(benchmark="shops", judge="careful", agent="Careful Agnet")
    assert (code, says.startswith("The agent Careful Agnet does not exist in frozen submissions of shops")) == (2, True)
    assert says.endswith("Did you mean Careful Agent?")
    assert "\n" not in refused(benchmark="shops", judge="careful", website="a\nb")[1]
    Benchmark.objects.get(slug="shops").tasks.filter(external_id="task_0001").update(level="hard")
    code, says = refused(benchmark="shops", judge="careful", level="hard", website="https://shop0.example/")
    assert (code, says.startswith("No case matches level hard, website https://shop0.example/")) == (1, True)


def test_a_submission_of_another_benchmark_is_wrong_usage(frozen: Submission, judgments: Judge) -> None:
    testing.benchmark(1, slug="other")
    code, says = refused(benchmark="other", judge="careful", submission=frozen.pk)
    assert (code, says) == (2, f"Submission {frozen.pk} is of the benchmark shops, not of other.")


def test_a_submission_has_no_labels_made_elsewhere(db: Any) -> None:
    with pytest.raises(CommandError, match="--submission: not allowed with argument --imported"):
        call_command("compare", "--benchmark=shops", "--judge=careful", "--imported", "--submission=1")


def test_nothing_to_compare_says_what_is_missing(
    submission: Submission, people: dict[str, Person], tmp_path: Path
) -> None:
    judge_row()
    none = refused(benchmark="shops", judge="careful")
    assert none[0] == 1
    assert "there are no labels (frozen submissions of shops" in none[1]
    assert "there are no labels" in refused(benchmark="shops", judge="careful", imported=True)[1]
    testing.label_all(people, submission, {})
    open_ones = refused(benchmark="shops", judge="careful", submission=submission.pk)
    assert open_ones == (1, "Nothing to compare: none of the 2 labelled cases is decided.")
    workflow.draw_spot_checks(people["mira"], submission)
    testing.adjudicate_all(people["carol"], submission)
    code, says = refused(benchmark="shops", judge="careful", submission=submission.pk)
    assert (code, "careful never judged any of the 2 decided cases" in says) == (1, True)


def test_labels_made_elsewhere_are_pointed_at_where_a_submission_has_none(submission: Submission) -> None:
    judge_row()
    err = StringIO()
    with pytest.raises(CommandError, match="there are no labels"):
        call_command("compare", benchmark="shops", judge="careful", submission=submission.pk, stderr=err)
    assert "omit --submission to compare them" in err.getvalue()


def test_unscored_judgments_are_something_to_compare(frozen: Submission) -> None:
    for item in run_row(frozen).items.all():
        judgment_row(item, None)
    row = figures(benchmark="shops", judge="careful")["overall"][0]
    assert (row["n"], row["unscored"], row["agreement"], row["undefined"]["agreement"]) == (0, 2, None, "no cases")
