"""Ensembles in evidence bundles, and beside decisions made with the network evidence."""

from __future__ import annotations

import json
import zipfile
from io import StringIO
from pathlib import Path

import pytest
from django.core.management import call_command

from annotation.models import Submission
from annotation.records import Verdict
from evaluations import cases
from evaluations.comparison import compare, find_judgments
from evaluations.tests.audited import audit_of, bundle
from evaluations.tests.test_comparison_looking import looked
from judges import defining
from judges.models import Judge, JudgeRun
from judges.ready_judges import prepare
from judges.scorer import REGISTRY, Score
from judges.scorers.ensemble import combine
from judges.tests import rows, voting
from judges.tests.builders import started_run
from judges.working import leases
from judges.working.call_log import CallTotals
from judges.working.subjects import load_subjects

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("store")]


def judge_all(judge: Judge, submission: Submission, score: Score | None = None) -> JudgeRun:
    """A run as workers do it, with ``score`` for every trajectory if it is given."""
    maintainer = submission.memberships.filter(role="maintainer").earliest("pk").person
    run = started_run(maintainer, submission, judge)
    ready = prepare(run.judge)
    while taken := leases.claim(run.pk, "w", ()):
        for item in taken:
            (_, subject) = next(load_subjects([item.trajectory], ready.members))
            made = score or combine(ready.parameters, subject.votes)
            assert leases.settle(item, "w", made, CallTotals(), run.judge.fingerprint)
    assert leases.finish_run(run.pk)
    return run


@pytest.fixture
def together(frozen: Submission) -> Judge:
    """An ensemble of a judge of network traces and an imported one, which has judged one trajectory."""
    judge_all(defining.define(None, name="traces", scorer="network-trace"), frozen, Score(Verdict.SUCCESS))
    rows.imported_row(frozen.trajectories.earliest("position"), 1)
    return voting.ensemble("traces, elsewhere=0.5", rule="weighted")


def test_bundle_with_an_ensemble_verifies_and_opens(frozen: Submission, together: Judge, tmp_path: Path) -> None:
    judge_all(together, frozen)
    path = bundle(frozen, tmp_path)
    out = StringIO()
    call_command("verify_evidence", str(path), stdout=out, json=True)
    findings = json.loads(out.getvalue())["findings"]
    assert {one["name"] for one in findings if one["result"] == "fail"} == set()
    with zipfile.ZipFile(path) as files:
        runs = [json.loads(line) for line in files.read("judges/runs.jsonl").splitlines()]
        judgments = [json.loads(line) for line in files.read("judges/judgments.jsonl").splitlines()]
    (stated,) = [one for one in runs if one["scorer"] == "ensemble"]
    assert stated["parameters"]["members"] == "traces@1, elsewhere@1=0.5"
    assert stated["withheld"] is False  # whoever has the bundle can compute the fingerprint
    assert sum(one["judge"] == "together@1" for one in judgments) == frozen.trajectories.count()

    (tmp_path / "again").mkdir()
    audit = audit_of(frozen, tmp_path / "again")
    came = Judge.objects.get(came_with=audit.submission, name="together")
    assert came.fingerprint == together.fingerprint


def count_decided(judge: Judge, submission: Submission) -> int:
    found, slug = cases.of_submission(submission), submission.benchmark.slug
    said = find_judgments(judge, found)
    return compare(judge, found, "", benchmark=slug, said=said).decided_after_network_evidence


def test_decisions_after_the_network_evidence_count_for_an_ensemble_with_its_judge(
    frozen: Submission, together: Judge
) -> None:
    assert REGISTRY["network-trace"].shown_as_evidence
    judge_all(together, frozen)
    looked(frozen, task_id="task_0000")
    assert count_decided(together, frozen) == 1


def test_decisions_count_for_an_ensemble_from_a_bundle_whose_members_are_unknown(
    frozen: Submission, together: Judge
) -> None:
    stated = {"parameters": together.parameters, "came_with": frozen, "stated": "f" * 64}
    came = rows.judge_row("came", scorer="ensemble", **stated)
    for item in rows.run_row(frozen, came).items.all():
        rows.judgment_row(item, 1)
    assert count_decided(came, frozen) == 0
    looked(frozen, task_id="task_0000")
    assert count_decided(came, frozen) == 1
