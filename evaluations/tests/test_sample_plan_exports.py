"""Exports, bundles and audits of a submission with a planned sample: they count what was drawn, and say so."""

from __future__ import annotations

import json
import re
import subprocess
import sys
import zipfile
from pathlib import Path
from typing import Any

import pytest
from django.core.management import CommandError, call_command
from django.test import Client
from django.urls import reverse

from annotation import workflow
from annotation.catalogue import import_labels
from annotation.models import Person, PlannedItem, SamplePlan, Submission
from annotation.models.states import State, with_state
from annotation.tests import testing
from annotation.tests.test_api_submissions import get as api_get
from evaluations import access, cases, exports, sending
from evaluations.auditing import actions
from evaluations.auditing.importing import open_bundle
from evaluations.estimating import estimate, load_population
from evaluations.evidence.verification import verify_bundle
from evaluations.exports import ExportFormat, ExportRefused
from evaluations.publication import results
from evaluations.publication.options import Options, ResultFormat
from evaluations.tests import audited
from evaluations.tests.finished import finish
from evaluations.tests.forging import Forged
from evaluations.tests.planned_review import drawn_tasks, planned_review
from evaluations.tests.test_earlier_bundles import BUNDLES
from evaluations.verifier.checking import Given
from evaluations.verifier.documents import OF_SAMPLE
from evaluations.verifier.findings import Result
from judges.tests import rows as judged

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("store")]

ONE_EARLIER = "1 earlier sample of this agent on this benchmark was drawn."
NOTE = "Estimated from the labels of 5 of 10 trajectories: the sample plan drew no others."


@pytest.fixture
def planned(tmp_path: Path) -> Submission:
    return planned_review(tmp_path / "package")


def test_nothing_is_missing_once_the_drawn_trajectories_are_final(
    planned: Submission, capsys: pytest.CaptureFixture[str]
) -> None:
    call_command("check_submission", planned.pk)
    assert "nothing is missing" in capsys.readouterr().out


def test_drawn_trajectory_without_its_labels_is_missing(tmp_path: Path) -> None:
    submission = planned_review(tmp_path / "package", frozen=False)
    missing = [problem.where for problem in exports.missing_for_export(submission) if problem.code == "labels_missing"]
    assert sorted(missing) == sorted(drawn_tasks(submission))


def test_list_of_human_labels_has_the_sample_only_and_says_that_it_is_partial(planned: Submission) -> None:
    export = exports.prepare(planned, ExportFormat.HUMAN_LABEL)
    document = json.loads(b"".join(export.chunks()))
    assert sorted(label["task_id"] for label in document["labels"]) == sorted(drawn_tasks(planned))
    assert (document["partial"], document["missing"][0]["message"]) == (True, NOTE)
    assert ".partial." in export.file_name


def test_label_file_states_the_sample_in_its_header(planned: Submission) -> None:
    lines = b"".join(exports.prepare(planned, ExportFormat.LABELS).chunks()).splitlines()
    header = json.loads(lines[0])
    assert (header["trajectories"], header["final"], header["partial"]) == (10, 5, True)
    assert header["missing"] == [{"code": "planned_sample", "message": NOTE, "where": ""}]
    assert {json.loads(line)["task_id"] for line in lines[1:]} == set(drawn_tasks(planned))


@pytest.mark.parametrize("kind", [ResultFormat.EVERY_EVAL_EVER, ResultFormat.EVAL_RESULTS, ResultFormat.DATASET])
def test_format_with_the_rate_of_all_trajectories_is_refused(planned: Submission, kind: ResultFormat) -> None:
    with pytest.raises(ExportRefused, match="5 of 10 trajectories"):
        results.prepare(planned, kind, Options(partial=True, accept_names=True, dataset="a/b"))


def test_rewards_are_of_the_sample_only_and_partial(planned: Submission) -> None:
    result = results.prepare(planned, ResultFormat.REWARD_OUTCOMES, Options(accept_names=True))
    lines = [json.loads(line) for line in b"".join(result.chunks()).splitlines()]
    assert result.partial
    assert len(lines) == 5


def test_sample_is_not_sent_to_a_leaderboard(planned: Submission) -> None:
    assert [problem.code for problem in sending.find_missing(planned, converted=True)] == ["planned_sample"]


def test_figures_leave_out_what_was_not_drawn_and_the_population_has_it(planned: Submission) -> None:
    assert sorted(case.task_id for case in cases.of_submission(planned)) == sorted(drawn_tasks(planned))
    others = [case for case in cases.of_population(planned) if case.state is State.NOT_DRAWN]
    assert len(others) == 5
    assert all(case.final is None and not case.labels for case in others)


def test_planned_sample_does_not_count_in_the_rates_of_its_benchmark(
    planned: Submission, capsys: pytest.CaptureFixture[str]
) -> None:
    assert planned not in cases.reported_submissions(planned.benchmark)
    with pytest.raises(CommandError, match="There are no labels"):
        call_command("agreement", "--benchmark", planned.benchmark.slug)
    assert f"Labelled as a planned sample and left out: {planned.pk}." in capsys.readouterr().err


def test_imported_label_of_a_trajectory_that_was_not_drawn_is_refused(planned: Submission, tmp_path: Path) -> None:
    left_out = PlannedItem.objects.filter(position=None).values_list("trajectory__task__external_id", flat=True)[0]
    file = tmp_path / "labels.csv"
    file.write_text(f"annotator,task_id,agent,label\nzoe,{left_out},{planned.agent.name},1\n")
    report = import_labels(file.read_bytes(), "labels.csv", benchmark=planned.benchmark)
    assert [problem.code for problem in report.rejected[left_out]] == ["not_drawn"]


@pytest.mark.parametrize("name", ["agreement", "comparison"])
def test_plain_figures_of_a_sample_say_that_they_are_not_weighted(
    name: str, planned: Submission, client: Client
) -> None:
    judged.judgment_row(judged.run_row(planned).items.filter(trajectory__planned_item__position=0)[0])
    client.force_login(testing.cast(planned)["mira"])
    assert cases.UNWEIGHTED in client.get(reverse(name, args=[planned.pk])).content.decode()


def test_command_says_that_the_figures_of_a_sample_are_not_weighted(
    planned: Submission, capsys: pytest.CaptureFixture[str]
) -> None:
    call_command("agreement", "--submission", planned.pk)
    assert cases.UNWEIGHTED in capsys.readouterr().err


def test_sample_is_left_out_of_pairs_of_agents(planned: Submission, client: Client) -> None:
    client.force_login(testing.cast(planned)["mira"])
    page = client.get(reverse("two-agents", args=[planned.benchmark.slug])).content.decode()
    assert "Planned samples are left out" in page
    assert access.compared_submissions(testing.cast(planned)["mira"], planned.benchmark.slug)[1] == []


# --- evidence ---------------------------------------------------------------------------------------------------------


def test_bundle_has_plan_items_and_estimate_and_verifies(planned: Submission, tmp_path: Path) -> None:
    path = audited.bundle(planned, tmp_path)
    with zipfile.ZipFile(path) as package:
        items = [json.loads(line) for line in package.read("sample-items.jsonl").splitlines()]
        figures = json.loads(package.read("reports/estimate.json"))
        page = package.read("reports/report.html").decode()
    assert len(items) == 10
    assert (figures["n_labelled"], figures["n_total"]) == (5, 10)
    assert "Estimated from the labels of 5 of 10 trajectories" in page
    outcome = verify_bundle(str(path), Given())
    assert [finding.says for finding in outcome.findings if finding.result is Result.FAIL] == []
    assert {"sample_plan", "estimate"} <= {f.name for f in outcome.findings if f.result is Result.PASS}


def test_bundle_tells_of_an_earlier_sample_of_the_agent_and_can_be_audited(tmp_path: Path) -> None:
    planned_review(tmp_path / "abandoned", frozen=False)
    again = planned_review(tmp_path / "again", steps=3)
    path = audited.bundle(again, tmp_path)
    with zipfile.ZipFile(path) as package:
        assert ONE_EARLIER in package.read("reports/report.html").decode()
    findings = {each.name: each for each in verify_bundle(str(path), Given()).findings}
    assert [each.says for each in findings.values() if each.result is Result.FAIL] == []
    assert findings["exceptions"].result is Result.NOTE
    assert "1 earlier sample of this agent" in findings["exceptions"].says
    assert SamplePlan.objects.filter(submission=audited.audit_of(again, tmp_path).submission).exists()


@pytest.mark.parametrize("name", ["sample-plan", "success-rate"])
def test_pages_tell_of_an_earlier_sample_of_the_agent(name: str, tmp_path: Path, client: Client) -> None:
    first = planned_review(tmp_path / "abandoned", frozen=False)
    again = planned_review(tmp_path / "again", steps=3)
    client.force_login(testing.cast(again)["mira"])
    assert ONE_EARLIER in client.get(reverse(name, args=[again.pk])).content.decode()
    assert "earlier sample" not in client.get(reverse("sample-plan", args=[first.pk])).content.decode()


def test_planner_tells_of_earlier_samples_before_the_draw(tmp_path: Path, client: Client) -> None:
    planned_review(tmp_path / "abandoned", frozen=False)
    again = testing.submission(tmp_path / "again", trajectories=9, steps=2)
    client.force_login(testing.cast(again)["mira"])
    assert ONE_EARLIER in client.get(reverse("sample-plan", args=[again.pk])).content.decode()


def test_bundle_without_a_plan_has_none_of_its_files(tmp_path: Path) -> None:
    submission = testing.submission(tmp_path / "package", trajectories=1)
    finish(testing.cast(submission), submission, {})
    path = audited.bundle(submission, tmp_path)
    with zipfile.ZipFile(path) as package:
        assert not {*OF_SAMPLE, "schemas/sample-plan.schema.json"} & set(package.namelist())
    assert not {"sample_plan", "estimate"} & {f.name for f in verify_bundle(str(path), Given()).findings}


def test_partial_bundle_of_an_unfinished_sample_says_what_its_estimate_lacks(tmp_path: Path) -> None:
    submission = planned_review(tmp_path / "package", frozen=False)
    path = audited.bundle(submission, tmp_path, partial=True)
    with zipfile.ZipFile(path) as package:
        figures = json.loads(package.read("reports/estimate.json"))
    reason = "5 of the 5 drawn trajectories have no final verdict yet"
    assert (figures["people"]["value"], figures["reason"]) == (None, reason)
    failed = {f.name for f in verify_bundle(str(path), Given()).findings if f.result is Result.FAIL}
    assert failed == {"annotators", "export", "frozen"}


def test_partial_bundle_has_no_rate_while_a_drawn_trajectory_is_disputed(tmp_path: Path) -> None:
    # Two disputes and one drawn spot check wait. Each stratum has a label, and without those all are a success.
    submission = planned_review(tmp_path / "package", frozen=False)
    people = {person.username: person for person in Person.objects.all()}
    first, second = drawn_tasks(submission)[:2]
    testing.label_all(people, submission, {first: [0, 1, 0], second: [1, 0, 0]})
    workflow.draw_spot_checks(people["mira"], submission)
    path = audited.bundle(submission, tmp_path, partial=True)
    with zipfile.ZipFile(path) as package:
        figures = json.loads(package.read("reports/estimate.json"))
    reason = "3 of the 5 drawn trajectories have no final verdict yet"
    assert [figures[name]["undefined"] for name in ("people", "combined")] == [reason, reason]
    assert (figures["n_labelled"], figures["reason"]) == (2, reason)
    failed = {f.name for f in verify_bundle(str(path), Given()).findings if f.result is Result.FAIL}
    assert failed == {"disputes", "export", "frozen", "spot_checks"}


def test_verifier_of_an_earlier_version_refuses_a_bundle_with_a_plan(planned: Submission, tmp_path: Path) -> None:
    path = audited.bundle(planned, tmp_path)
    with zipfile.ZipFile(BUNDLES[0]) as package:
        (tmp_path / "earlier_verify.py").write_bytes(package.read("verify.py"))
    command = [sys.executable, "-I", str(tmp_path / "earlier_verify.py"), str(path), "--json"]
    ran = subprocess.run(command, capture_output=True, text=True, check=False)
    found = {each["name"]: each["says"] for each in json.loads(ran.stdout)["findings"] if each["result"] == "fail"}
    assert ran.returncode == 1
    assert "sample-items.jsonl is no file of this format" in found["manifest"]
    assert "sample_planned" in found["complete_record"]


def test_plan_with_probabilities_of_another_draw_is_rejected(planned: Submission, tmp_path: Path) -> None:
    forged = Forged(audited.bundle(planned, tmp_path).read_bytes())
    for item in forged["sample-items"]:
        item["probability"] = 0.1
    (tmp_path / "forged.zip").write_bytes(forged.covered())
    audit = open_bundle(tmp_path / "forged.zip", audited.auditor())
    says = re.compile(r"sample plan: an item of the stratum '(easy|hard)' has the probability 0\.1, and [23] of its 5")
    assert says.search(str(audit.checks.get().findings))
    assert not SamplePlan.objects.filter(submission=audit.submission).exists()
    estimate(load_population(audit.submission, None))


def test_audit_of_a_bundle_has_the_plan_and_draws_from_the_labelled(planned: Submission, tmp_path: Path) -> None:
    audit = audited.audit_of(planned, tmp_path)
    rows: Any = with_state(audit.submission.trajectories.select_related("task"))
    left_out = {row.task.external_id for row in rows if row.state == State.NOT_DRAWN}
    assert len(left_out) == 5
    assert SamplePlan.objects.get(submission=audit.submission).seed == SamplePlan.objects.get(submission=planned).seed
    sample = actions.draw(audit, audited.auditor(), 5)
    assert not left_out & set(sample.trajectories.values_list("task__external_id", flat=True))


def test_report_page_states_the_estimate_and_not_the_plain_rate(planned: Submission, client: Client) -> None:
    client.force_login(testing.cast(planned)["mira"])
    response = client.get(reverse("printable-report", args=[planned.pk]))
    page = " ".join(response.content.decode().split())
    assert "Estimated from the labels of 5 of 10 trajectories." in page
    assert "5 of 10, drawn by a sample plan" in page
    assert page.count(cases.UNWEIGHTED) == 4
    assert "over all trajectories" not in page
    assert "Success rate over all" not in page
    tables = response.context["tables"]
    assert "success" not in tables
    assert tables["success_rate"].rows[0][0].value == estimate(load_population(planned, None)).people.value
    assert sum(count for _, count in tables["verdicts"].rows) == 5  # no column of shares
    assert client.get(reverse("printable-report", args=[planned.pk]), {"paper": "1"}).status_code == 200


@pytest.mark.parametrize("name", ["send", "submission", "export", "printable-report"])
def test_pages_say_that_a_sample_is_not_sent_and_call_nothing_missing(
    name: str, planned: Submission, client: Client
) -> None:
    client.force_login(testing.cast(planned)["mira"])
    page = " ".join(client.get(reverse(name, args=[planned.pk])).content.decode().split())
    assert SamplePlan.NOT_SENT in page
    assert "Something is missing" not in page
    assert "Missing for" not in page
    assert "Create the files" not in page
    assert "Create the three files" not in page


def test_check_submission_says_that_a_sample_is_not_sent(
    planned: Submission, capsys: pytest.CaptureFixture[str]
) -> None:
    call_command("check_submission", planned.pk)
    assert SamplePlan.NOT_SENT in capsys.readouterr().out


OF_BENCHMARK = ("agents", "benchmark-agreement", "judge-standings", "benchmark-comparison", "differences", "two-agents")


@pytest.mark.parametrize("name", OF_BENCHMARK)
def test_benchmark_pages_name_the_samples_that_they_leave_out_to_their_maintainer(
    name: str, planned: Submission, client: Client
) -> None:
    link, page = reverse("success-rate", args=[planned.pk]), reverse(name, args=[planned.benchmark.slug])
    mira = testing.cast(planned)["mira"]
    client.force_login(mira)
    assert link in client.get(page).content.decode()
    other = testing.person("olga", is_staff=True)
    client.force_login(other)
    response = client.get(page)
    assert response.status_code == 200
    assert link not in response.content.decode()
    assert access.find_left_out(other, planned.benchmark) == []


@pytest.mark.parametrize("name", ["agents", "judges", "agreement"])
def test_api_lists_the_samples_that_the_figures_of_a_benchmark_leave_out(name: str, planned: Submission) -> None:
    path, mira = f"/benchmarks/{planned.benchmark.slug}/{name}", testing.cast(planned)["mira"]
    (left_out,) = api_get(mira, path).json()["left_out"]
    assert left_out["submission"] == planned.pk
    assert left_out["estimate"] == f"/api/v1/submissions/{planned.pk}/estimate"
    if name != "agents":
        assert api_get(mira, path, imported=True).json()["left_out"] == []
    assert api_get(testing.person("olga", is_staff=True), path).json()["left_out"] == []
