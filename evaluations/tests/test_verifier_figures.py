"""The figures that a bundle states, computed again from its labels and judgments."""

from __future__ import annotations

import json
from copy import deepcopy
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from annotation.models import Submission
from annotation.tests.shared_rows import shared_rows
from evaluations.agreement import agreement
from evaluations.cases import of_submission
from evaluations.evidence import bundle as figures
from evaluations.evidence.documents import documents
from evaluations.tests.builders import judged, reviewed
from evaluations.tests.whole_review import whole_review
from evaluations.verifier.agreement import recompute_agreement
from evaluations.verifier.documents import Bundle
from evaluations.verifier.figures import agreement_finding, compare, comparison_finding
from evaluations.verifier.findings import Finding, Result
from evaluations.verifier.judgments import OF_PLAN, judgments_findings

pytestmark = pytest.mark.django_db


def stated(submission: Submission) -> Bundle:
    """Its documents with the figures, as they come out of a file."""
    bundle = documents(submission)
    bundle.agreement = json.loads(json.dumps(figures.agreement(submission)))
    bundle.comparison = json.loads(json.dumps(figures.comparison(submission)))
    return bundle


def bulk(tasks: int = 40, **fields: Any) -> Bundle:
    """A submission of many trajectories, with two judges that ran, one of which failed often, and an imported one."""
    benchmark = reviewed(1, tasks, **fields)
    judged(benchmark, "steady", repetitions=2)
    judged(benchmark, "kind", accuracy=0.6, repetitions=1, failed=0.3, unscored=0.2)
    judged(benchmark, "elsewhere")
    return stated(Submission.objects.get(benchmark=benchmark))


def of_agreement(bundle: Bundle) -> Finding:
    finding = agreement_finding(bundle)
    assert finding.name == "agreement"
    return finding


def of_comparison(bundle: Bundle) -> Finding:
    finding = comparison_finding(bundle)
    assert finding.name == "comparison"
    return finding


# --- honest ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("tasks", "annotators", "skill"), [(3, 3, 0.9), (12, 3, 1.0), (50, 5, 0.6), (120, 4, 0.95)])
def test_honest_figures_pass_whatever_the_labels_are(tasks, annotators, skill):
    bundle = bulk(tasks, annotators=annotators, skill=skill, seed=tasks)
    for finding in (of_agreement(bundle), of_comparison(bundle)):
        assert finding.result is Result.PASS, finding.says


def test_honest_figures_of_a_review_that_went_through_everything_pass(tmp_path: Path):
    bundle = stated(whole_review(tmp_path / "package"))
    assert of_agreement(bundle).result is Result.PASS, of_agreement(bundle).says
    assert of_comparison(bundle).result is Result.PASS, of_comparison(bundle).says


def test_honest_figures_of_an_unfinished_review_pass():
    bundle = bulk(30, frozen=False)
    assert of_agreement(bundle).result is Result.PASS, of_agreement(bundle).says
    assert of_comparison(bundle).result is Result.PASS, of_comparison(bundle).says


def test_a_submission_without_a_label_has_figures_too(submission: Submission):
    finding = of_agreement(stated(submission))
    assert finding.result is Result.PASS, finding.says


def test_it_says_how_much_was_computed_again():
    bundle = bulk(60, annotators=4)
    with_interval = [bundle.agreement["alpha"], bundle.agreement["ac1"], bundle.agreement["fleiss_kappa"]]
    with_interval += bundle.agreement["per_label"].values()
    with_interval += [pair[name] for pair in bundle.agreement["pairs"] for name in ("kappa", "alpha")]
    number = 1 + sum(figure["low"] is not None for figure in with_interval)  # and that of raw agreement
    assert f"and {number} intervals were checked by resampling" in of_agreement(bundle).says


def test_figures_of_an_older_bundle_pass_by_the_formulas_of_then():
    bundle = bulk(200, annotators=3, skill=0.95)
    expected = bundle.agreement["adjudications"]["expected_missed"]
    newest = (expected["low"], expected["high"])
    missed, left = bundle.agreement["adjudications"]["missed"], bundle.agreement["adjudications"]["unchecked"]
    # Version 1 had Wilson's interval of the checked ones times the others, and reports did not state a version.
    expected |= {"low": left * missed["low"], "high": left * missed["high"]}
    assert (expected["low"], expected["high"]) != newest
    assert "adjudications.expected_missed.high" in of_agreement(bundle).places
    del bundle.agreement["figures_version"]
    finding = of_agreement(bundle)
    assert finding.result is Result.PASS, finding.says
    assert "formulas of version 1" in finding.says


@pytest.mark.parametrize("version", [1, 3, None, "2", True, []])
def test_figures_of_an_unknown_version_are_refused(version: Any):
    bundle = bulk(5)
    bundle.agreement["figures_version"] = version
    refused(of_agreement(bundle), "figures_version")


# --- what the documents say ------------------------------------------------------------------------------------------


def test_the_agreement_is_that_of_the_command_without_groups_hints_and_opinions():
    submission = Submission.objects.get(benchmark=reviewed(1, 10))
    told = agreement(of_submission(submission), "").as_json()
    found = figures.agreement(submission)
    assert set(told) - set(found) == {"scope", "groups", "informed", "human_error", "specific_agreement"}
    assert set(told["annotators"][0]) - set(found["annotators"][0]) == {"competence", "trust"}
    assert all(found[key] == told[key] for key in found if key != "annotators")


def test_judges_come_by_name_and_version_with_both_rules():
    bundle = bulk(10)
    assert [judge["judge"] for judge in bundle.comparison["judges"]] == ["elsewhere@1", "kind@1", "steady@1"]
    for judge in bundle.comparison["judges"]:
        assert [row["human_label_2"] for row in judge["rows"]] == ["excluded", "not_success"]


def test_there_is_no_comparison_without_a_judgment():
    submission = Submission.objects.get(benchmark=reviewed(1, 5))
    assert figures.comparison(submission) is None
    assert of_comparison(stated(submission)).result is Result.NOTE


def test_a_bundle_without_judges_is_noted():
    bundle = bulk(5)
    bundle.runs = bundle.judgments = bundle.comparison = None
    assert "has no judges" in of_comparison(bundle).says
    [judgments] = judgments_findings(bundle)
    assert judgments.result is Result.NOTE
    assert "records 2 runs of judges, without tests" in judgments.says
    bundle.events = [event for event in bundle.events if not event["kind"].startswith("judge_run_")]
    assert judgments_findings(bundle) == []


def test_imported_judgments_are_noted_as_the_word_of_the_submitter():
    [judgments] = judgments_findings(bulk(5))
    assert judgments.result is Result.NOTE
    assert "15 of 20 judgments are covered by the chain of events, and 5 are not" in judgments.says


@pytest.mark.parametrize(("plan", "told"), [(None, False), ({"judge": {}}, False), ({"judge": {"name": "kind"}}, True)])
def test_rates_of_a_plan_with_a_judge_depend_on_the_judgments(plan, told):
    bundle = bulk(5)
    bundle.sample_plan = plan
    assert (OF_PLAN in judgments_findings(bundle)[0].says) is told


@pytest.mark.parametrize("change", [{"run": 99}, {"judge": "kind@2"}, {"fingerprint": "f" * 64}])
def test_a_judgment_is_of_a_run_of_its_judge(change):
    bundle = bulk(5)
    bundle.judgments[0] |= change
    assert of_comparison(bundle).result is Result.FAIL
    assert "not a run of that judge" in of_comparison(bundle).says


def test_countless_judges_are_not_computed():
    bundle = bulk(5)
    line = bundle.judgments[0]
    bundle.judgments = [line | {"fingerprint": f"{number:064x}"} for number in range(1001)]
    assert "it compares 1,001 judges" in of_comparison(bundle).says


# --- forged ----------------------------------------------------------------------------------------------------------


@cache
def made_once() -> Bundle:
    return bulk(50, annotators=3, skill=0.75)


@shared_rows
def bundle() -> Bundle:
    """One and the same for all that forge it: it is plain values, and outlives its rows."""
    return deepcopy(made_once())


def refused(finding: Finding, place: str) -> str:
    assert finding.result is Result.FAIL
    assert place in finding.places, finding.says
    return finding.says


def test_a_coefficient_that_the_labels_do_not_give_is_named(bundle: Bundle):
    bundle.agreement["pairs"][0]["kappa"]["value"] = 0.91
    first, second = bundle.agreement["pairs"][0]["first"], bundle.agreement["pairs"][0]["second"]
    place = f"pairs[{first}, {second}].kappa.value"
    assert f"{place} is 0.91, and the labels give " in refused(of_agreement(bundle), place)


def test_every_number_of_the_agreement_counts(bundle: Bundle):
    paths = [
        "n_items", "raw_agreement", "alpha.value", "ac1.value", "fleiss_kappa.value", "per_label.2.value",
        "outcomes.unanimous.low", "outcomes.split.hits", "undecided", "adjudications.drawn", "adjudications.unchecked",
        "adjudications.changed.value", "adjudications.missed.n", "adjudications.expected_missed.value",
        "adjudications.expected_missed.high", "adjudications.changed_of.disputes.value",
    ]  # fmt: skip
    for path in paths:
        inner: Any = bundle.agreement
        *above, last = path.split(".")
        for key in above:
            inner = inner[key]
        inner[last] += 1 if isinstance(inner[last], int) else 1e-6
    assert set(of_agreement(bundle).places) == set(paths)


def test_every_number_of_an_annotator_counts(bundle: Bundle):
    annotator = bundle.agreement["annotators"][1]
    annotator |= {"labels": 1, "seconds": 2.5}
    annotator["confusion"][0][1] += 1
    annotator["overturned"]["hits"] += 1
    annotator["agreement"]["low"] -= 1e-6
    wrong = ("labels", "seconds", "agreement.low", "overturned.hits", "confusion[0][1]")
    assert of_agreement(bundle).places == tuple(f"annotators[A2].{each}" for each in wrong)


def test_an_interval_that_was_moved_is_seen(bundle: Bundle):
    alpha = bundle.agreement["alpha"]
    alpha["low"] += 0.3 * (alpha["high"] - alpha["low"])
    assert "and resampling gives" in refused(of_agreement(bundle), "alpha.low")


def test_an_interval_that_was_taken_away_is_seen(bundle: Bundle):
    bundle.agreement["raw_agreement_interval"] = None
    refused(of_agreement(bundle), "raw_agreement_interval")


def test_half_an_interval_is_none(bundle: Bundle):
    bundle.agreement["ac1"]["low"] = None
    refused(of_agreement(bundle), "ac1")


def test_what_is_missing_and_what_does_not_belong_is_seen(bundle: Bundle):
    del bundle.agreement["alpha"]["n"]
    bundle.agreement["certified"] = True
    finding = of_agreement(bundle)
    assert {"alpha.n", "certified"} <= set(finding.places)


def test_true_is_not_one(bundle: Bundle):
    bundle.agreement["pairs_left_out"] = False
    refused(of_agreement(bundle), "pairs_left_out")


def test_an_annotator_who_is_left_out_is_seen(bundle: Bundle):
    bundle.agreement["annotators"].pop()
    assert "has 2 entries, and the labels give 3" in refused(of_agreement(bundle), "annotators")


def test_nonsense_in_place_of_a_figure_is_a_difference_and_no_crash(bundle: Bundle):
    nonsense = [None, [], "0.9", {"a": 1}, 10**29, 1e300, True]
    keys = ("alpha", "pairs", "raw_agreement", "raw_agreement_interval", "annotators", "adjudications")
    recomputed = recompute_agreement(bundle)
    for each in nonsense:
        walked = compare(bundle.agreement | dict.fromkeys(keys, each), recomputed, "the labels give")
        assert {place.partition(".")[0].partition("[")[0] for _, place in walked.differing} == set(keys)


def test_a_label_that_was_changed_moves_the_figures(bundle: Bundle):
    facts = bundle.labels[0]["facts"]
    facts["verdict"] = 1 - min(facts["verdict"], 1)
    assert of_agreement(bundle).result is Result.FAIL


def test_only_the_last_revision_of_a_label_counts(bundle: Bundle):
    earlier = {**bundle.labels[0], "facts": {**bundle.labels[0]["facts"], "verdict": 2, "revision": 0}}
    bundle.labels.append(earlier)
    assert of_agreement(bundle).result is Result.PASS


def test_missing_figures_are_a_failure(bundle: Bundle):
    bundle.agreement = bundle.comparison = None
    refused(of_agreement(bundle), "reports/agreement.json")
    assert of_comparison(bundle).result is Result.FAIL


def test_more_labels_than_a_trajectory_can_have_are_not_paired_for_ever(bundle: Bundle):
    line = bundle.labels[0]
    bundle.labels += [
        {"annotator": f"A{slot}", "claimed_at": None, "facts": {**line["facts"], "slot": slot}}
        for slot in range(10, 30_000)
    ]
    refused(of_agreement(bundle), line["facts"]["task_id"])


# --- judges ----------------------------------------------------------------------------------------------------------


def test_every_number_of_a_judge_counts(bundle: Bundle):
    row = bundle.comparison["judges"][1]["rows"][1]
    keys = ("tp", "n", "unscored", "errors", "unjudged", "excluded", "precision", "accuracy", "kappa")
    for key in keys:
        row[key] += 1 if isinstance(row[key], int) else 1e-6
    finding = of_comparison(bundle)
    assert "the judgments give" in finding.says
    assert set(finding.places) == {f"judges[kind@1].rows[{row['agent']}, not_success].{key}" for key in keys}


def test_the_interval_of_a_judge_is_checked(bundle: Bundle):
    rows = bundle.comparison["judges"][2]["rows"]
    rows[0]["intervals"]["kappa"][0] -= 0.3
    rows[1]["intervals"]["agreement"][1] -= 0.01
    place = f"judges[steady@1].rows[{rows[0]['agent']}, "
    finding = of_comparison(bundle)
    refused(finding, f"{place}excluded].intervals.kappa.low")
    refused(finding, f"{place}not_success].intervals.agreement[1]")


def test_a_judge_that_is_left_out_is_seen(bundle: Bundle):
    bundle.comparison["judges"].pop(0)
    refused(of_comparison(bundle), "judges")


def test_a_verdict_that_became_another_moves_the_figures(bundle: Bundle):
    line = next(line for line in bundle.judgments if line["counts"] and line["verdict"] == 0)
    line["verdict"] = 1
    assert of_comparison(bundle).result is Result.FAIL


def test_the_repetition_that_suits_better_cannot_count(bundle: Bundle):
    first = next(line for line in bundle.judgments if line["judge"] == "steady@1" and line["repetition"] == 1)
    second = next(
        line for line in bundle.judgments
        if line["judge"] == "steady@1" and line["repetition"] == 2 and line["task_id"] == first["task_id"]
    )  # fmt: skip
    first["counts"], second["counts"] = False, True
    assert "repetition 2 counts, and by the rule run" in refused(of_comparison(bundle), first["task_id"])


def test_a_judgment_that_hurts_cannot_be_left_uncounted(bundle: Bundle):
    line = next(line for line in bundle.judgments if line["counts"])
    line["counts"] = False
    assert "nothing counts" in refused(of_comparison(bundle), line["task_id"])
