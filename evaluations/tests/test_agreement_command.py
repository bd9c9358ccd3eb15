"""The command agreement as a script sees it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from annotation import catalogue
from annotation.models import Person, Submission
from annotation.tests import testing
from evaluations import cases
from evaluations.agreement import agreement
from evaluations.cases import Rules
from evaluations.management.commands.agreement import Command
from evaluations.tests.test_agreement import REAL, real_benchmark
from evaluations.tests.test_export_commands import run

LABELS = "annotator,task_id,agent,label\np1,task_0000,X,0\np2,task_0000,X,1\np1,task_0001,X,1\np2,task_0001,X,1\n"


def test_it_prints_the_numbers_of_the_pages_as_json(frozen: Submission) -> None:
    out, err, code = run("agreement", "--submission", frozen.pk, "--json")
    scope = f"submission {frozen.pk}: {frozen}"
    assert (code, err) == (0, "")
    assert json.loads(out) == json.loads(json.dumps(agreement(cases.of_submission(frozen), scope).as_json()))


def test_it_prints_tables_without_json(frozen: Submission) -> None:
    out, err, code = run("agreement", "--submission", frozen.pk)
    assert (code, err) == (0, "")
    assert out.startswith(f"Agreement of people: submission {frozen.pk}: Careful Agent.")
    assert "Krippendorff alpha" in out
    assert "A3" in out


def test_of_a_submission_that_is_not_frozen_it_says_how_complete_it_is(
    submission: Submission, people: dict[str, Person]
) -> None:
    testing.label(people["alice"], submission.trajectories.order_by("position")[0])
    out, err, code = run("agreement", "--submission", submission.pk, "--json")
    assert code == 0
    assert "is not frozen: 0 of 2 trajectories have every label." in err
    assert json.loads(out)["n_items"] == 1


def test_a_benchmark_has_its_frozen_submissions_and_the_labels_made_elsewhere(
    frozen: Submission, people: dict[str, Person], tmp_path: Path
) -> None:
    open_one = testing.bare_submission(2)
    open_one.benchmark = frozen.benchmark
    open_one.save()
    catalogue.import_labels(LABELS.encode(), "labels.csv", benchmark=frozen.benchmark)
    out, err, code = run("agreement", "--benchmark", "shops", "--json")
    assert code == 0
    assert f"Not frozen and left out: {open_one.pk}." in err
    told = json.loads(out)
    assert [(group["name"], group["n_items"]) for group in told["groups"]["agent"]] == [("Careful Agent", 2), ("X", 2)]
    assert [each["name"] for each in told["annotators"]][:1] == [f"{frozen.pk}: A1"]


def test_labels_made_elsewhere_can_be_analysed_alone(db: Any) -> None:
    shops = testing.benchmark(2)
    catalogue.import_labels(LABELS.encode(), "labels.csv", benchmark=shops)
    told = json.loads(run("agreement", "--benchmark", "shops", "--imported", "--json")[0])
    assert (told["n_complete"], told["undecided"], told["adjudications"]) == (2, 1, None)
    assert told["raw_agreement"] == 0.5
    published = json.loads(run("agreement", "--benchmark", "shops", "--imported", "--rules", "published", "--json")[0])
    assert (published["rules"], published["undecided"]) == ("published", 0)


def test_filters_narrow_the_cases_as_on_the_page(frozen: Submission) -> None:
    catalogue.import_labels(LABELS.encode(), "labels.csv", benchmark=frozen.benchmark)
    for words, expected in (
        (("--agent", "X"), 2),
        (("--website", "https://shop1.example/"), 2),
        (("--website", "https://shop1.example/", "--agent", "X"), 1),
        (("--level", "easy"), 4),
    ):
        told = json.loads(run("agreement", "--benchmark", "shops", "--json", *words)[0])
        assert told["n_items"] == expected, words
        assert words[1] in told["scope"]
    _, err, code = run("agreement", "--submission", frozen.pk, "--level", "easyy")
    assert (code, "The level easyy does not exist in submission" in err, "Did you mean easy?" in err) == (2, True, True)


def test_the_published_rules_give_the_expected_figures_of_the_real_labels(db: Any) -> None:
    benchmark = real_benchmark()
    out, _, _ = run(
        "agreement", "--benchmark", benchmark.slug, "--imported", "--rules", Rules.PUBLISHED.value, "--json"
    )
    told, expected = json.loads(out), json.loads((REAL / "expected_dev.json").read_text())["inter_annotator"]
    figures = (told["n_complete"], told["raw_agreement"], told["alpha"]["value"])
    assert figures == (expected["n"], expected["raw"], expected["krippendorff_alpha_nominal"])
    assert told["first_against_second"]["kappa"]["value"] == expected["cohen_kappa"]


def test_without_any_label_it_is_refused(submission: Submission) -> None:
    out, err, code = run("agreement", "--submission", submission.pk)
    assert (out, code) == ("", 1)
    assert "There are no labels" in err


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (("--submission", 10**9), "Submission 1000000000 does not exist"),
        (("--benchmark", "no"), "The benchmark no does not exist"),
    ],
)
def test_what_is_not_there_is_wrong_usage(db: Any, words: tuple[Any, ...], says: str) -> None:
    _, err, code = run("agreement", *words)
    assert code == 2
    assert says in err


@pytest.mark.parametrize(
    ("words", "says"),
    [
        ((), "required"),
        (("--submission", "1", "--benchmark", "shops"), "not allowed with"),
        (("--benchmark", "shops", "--rules", "mine"), "invalid choice"),
    ],
)
def test_wrong_words_exit_2(words: tuple[str, ...], says: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as stopped:
        Command().run_from_argv(["manage.py", "agreement", *words])
    assert stopped.value.code == 2
    assert says in capsys.readouterr().err


def test_imported_labels_of_a_submission_are_wrong_usage(submission: Submission) -> None:
    _, err, code = run("agreement", "--submission", submission.pk, "--imported")
    assert code == 2
    assert "Use --imported with --benchmark" in err
