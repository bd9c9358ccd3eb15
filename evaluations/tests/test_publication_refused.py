"""Who gets an export in a format of others, and when: maintainers, after the freeze, if nothing is missing."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from django.test import Client
from django.urls import reverse

from annotation import workflow
from annotation.models import Person, Submission
from annotation.tests import testing
from evaluations.exports import ExportRefused
from evaluations.models import Audit
from evaluations.publication.options import Options, ResultFormat
from evaluations.publication.results import MEDIA_TYPES, prepare
from evaluations.tests.finished import finish
from evaluations.tests.test_export_commands import run

People = dict[str, Person]
NAMES = [each.value for each in ResultFormat]
GIVEN = {"dataset": "maker/shops"}  # for eval-results


def codes(submission: Submission, name: str, **options: Any) -> list[str]:
    with pytest.raises(ExportRefused) as refused:
        prepare(submission, ResultFormat(name), Options(**(GIVEN | options)))
    return [problem.code for problem in refused.value.problems]


def get(person: Person | None, address: str, **query: str) -> Any:
    client = Client()
    if person is not None:
        client.force_login(person)
    return client.get(address, GIVEN | query)


@pytest.mark.parametrize("partial", [False, True])
@pytest.mark.parametrize("name", NAMES)
def test_nothing_is_exported_before_the_freeze(
    submission: Submission, people: People, name: str, partial: bool
) -> None:
    assert codes(submission, name, partial=partial)[-3:] == ["labels_missing", "labels_missing", "not_frozen"]
    testing.label_all(people, submission, {"task_0000": [1, 0, 1], "task_0001": [1, 0, 1]})
    testing.adjudicate_all(people["carol"], submission)
    assert codes(submission, name, partial=partial)[-1] == "not_frozen"
    for address in (reverse("export-file", args=[submission.pk, name]), api(submission, name)):
        assert get(people["mira"], address, partial="1").status_code == 409


def api(submission: Submission, name: str) -> str:
    return reverse("api-export", args=[submission.pk, name])


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize(("who", "page", "of_api"), [
    ("mira", 200, 200), ("alice", 403, 403), ("carol", 403, 403), ("dave", 404, 404), (None, 302, 401),
])  # fmt: skip
def test_only_maintainers_get_the_files(
    frozen: Submission, people: People, name: str, who: str | None, page: int, of_api: int
) -> None:
    person = people[who] if who else None
    assert get(person, reverse("export-file", args=[frozen.pk, name])).status_code == page
    assert get(person, api(frozen, name)).status_code == of_api


@pytest.mark.parametrize("name", NAMES)
def test_a_download_streams_as_what_it_is(frozen: Submission, people: People, name: str) -> None:
    media_type, suffix = MEDIA_TYPES[ResultFormat(name)]
    for address in (reverse("export-file", args=[frozen.pk, name]), api(frozen, name)):
        response = get(people["mira"], address)
        assert response.streaming
        assert response["Content-Type"] == media_type
        assert response["Content-Disposition"] == f'attachment; filename="shops.Careful-Agent.{name}.{suffix}"'
        assert response.getvalue()


def test_the_page_lists_every_format_with_its_address(frozen: Submission, people: People) -> None:
    text = get(people["mira"], reverse("export", args=[frozen.pk])).content.decode()
    assert [name for name in NAMES if f'action="{reverse("export-file", args=[frozen.pk, name])}"' not in text] == []


def test_a_refused_download_says_why_on_the_page(frozen: Submission, people: People) -> None:
    address = reverse("export-file", args=[frozen.pk, "eval-results"])
    response = get(people["mira"], address, dataset="no slash")
    assert response.status_code == 409
    assert "The dataset must be owner/name: letters" in response.content.decode()


@pytest.mark.parametrize("name", NAMES)
def test_a_benchmark_that_is_not_covered_is_refused(uncovered: Submission, name: str) -> None:
    assert codes(uncovered, name) == ["task_not_covered"]


def test_a_leaderboard_never_gets_a_result_of_a_part(uncovered: Submission) -> None:
    assert codes(uncovered, "eval-results", partial=True) == ["partial_result", "task_not_covered"]


@pytest.mark.parametrize(
    ("name", "options", "code"),
    [
        ("eval-results", {"dataset": ""}, "dataset_missing"),
        ("eval-results", {"dataset": "https://huggingface.co/a/b"}, "dataset_invalid"),
        ("every-eval-ever", {"model": "../../etc"}, "model_invalid"),
        ("every-eval-ever", {"model": "../x"}, "model_invalid"),
        ("dataset", {"licence": "CC BY 4.0"}, "licence_invalid"),
    ],
)
def test_wrong_options_are_refused(frozen: Submission, name: str, options: dict[str, str], code: str) -> None:
    assert codes(frozen, name, **options) == [code]


def test_an_audited_submission_is_left_to_its_submitter(audit: Audit) -> None:
    assert codes(audit.submission, "reward-outcomes", accept_names=True) == ["audited"]


def test_a_practice_set_has_no_results(submission: Submission, people: People, tmp_path: Path) -> None:
    practice = testing.practice_set(people, submission, tmp_path / "practice")
    assert codes(practice, "reward-outcomes")[0] == "practice"


@pytest.mark.parametrize("name", NAMES)
def test_a_name_in_a_reason_is_refused_until_it_is_accepted(submission: Submission, people: People, name: str) -> None:
    people["bob"].last_name = "Quastenflosser"
    people["bob"].save()
    first = submission.trajectories.get(position=0)
    workflow.claim_this(people["alice"], first)
    workflow.submit(people["alice"], first, testing.content(first, reasoning="As Quastenflosser told me."))
    done = finish(people, submission, {})
    assert codes(done, name) == ["name_in_text"]
    assert prepare(done, ResultFormat(name), Options(**GIVEN, accept_names=True)).missing == ()


# --- commands --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", [name for name in NAMES if name != "dataset"])
def test_the_command_writes_a_file(frozen: Submission, tmp_path: Path, name: str) -> None:
    output = tmp_path / "out"
    words = ("--format", name, "--output", output, *(("--dataset", "a/b") if name == "eval-results" else ()))
    out, err, code = run("export_results", frozen.pk, *words)
    assert (code, out) == (0, f"{output}: {name} of Careful Agent.\n")
    assert err.startswith("warning: no_process_labels: ") if name == "reward-steps" else err == ""
    assert output.stat().st_size > 100


def test_the_command_says_every_reason_and_writes_nothing(submission: Submission, tmp_path: Path) -> None:
    words = ("--format", "otel", "--output", tmp_path / "out")
    _, err, code = run("export_results", submission.pk, *words)
    assert code == 1
    assert err.count("refused: labels_missing") == 2
    assert err.endswith("3 problems; nothing was written.")
    assert list(tmp_path.glob("out*")) == []


def test_the_command_says_what_a_partial_export_left_out(uncovered: Submission, tmp_path: Path) -> None:
    words = ("--format", "otel", "--output", tmp_path / "out", "--partial")
    out, err, code = run("export_results", uncovered.pk, *words)
    assert (code, err.startswith("left out: task_not_covered: ")) == (0, True)
    assert "partial otel" in out


def test_the_command_passes_on_what_was_stated(frozen: Submission, tmp_path: Path) -> None:
    stated = ("--model", "maker/agent", "--organization", "Lab", "--relationship", "third_party")
    output = tmp_path / "out.zip"
    words = ("--format", "every-eval-ever", "--schema-version", "0.2.1", "--output", output, *stated)
    assert run("export_results", frozen.pk, *words)[2] == 0
    data = output.read_bytes()
    assert b"data/shops/maker/agent/" in data
