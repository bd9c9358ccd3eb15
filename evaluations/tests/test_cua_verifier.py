"""The figures of CUAVerifierBench, recomputed from rows with its columns and its traps; expected values by hand."""

from __future__ import annotations

import io
import json
from pathlib import Path
from typing import Any

import pytest
from django.core.management import call_command
from django.core.management.base import CommandError

# Trajectories: task, three verifiers, stored majority, final label, process score; then the annotators' outcomes.
# "c" is a tie, stored as 0, and "d" was changed by the adjudication.
ROWS: dict[str, tuple[tuple[Any, ...], list[str]]] = {
    "a": ((True, True, True, 1, "Correct", 1.0), ["Correct", "Correct"]),
    "b": ((False, True, False, 0, "Incorrect", 0.2), ["Incorrect", "Incorrect", "Incorrect"]),
    "c": ((True, True, None, 0, "Correct", 0.8), ["Correct", "Incorrect"]),
    "d": ((False, False, True, 1, "Incorrect", 0.5), ["Correct", "Incorrect", "Correct"]),
    "e": ((True, False, True, 1, "Correct", None), ["Correct", "Correct"]),
}
NAMES = (
    "uv_outcome_success", "mm_is_success", "verifier_is_success", "majority_human_outcome_vote",
    "final_human_outcome_label", "uv_rubric_score",
)  # fmt: skip
# Process scores: only those of "a", "b" and "c".
SCORES = {"a": [0.9, 1.0], "b": [0.1, 0.1, 0.4], "c": [0.6, 0.8]}
# Only the annotators of "d" saw the verdict "failure": the first disagrees, the others agree.
INFORMED = {"d": ["Disagree", "Agree", "Agree"]}


def tables() -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    trajectories = [{"task_id": task} | dict(zip(NAMES, values, strict=True)) for task, (values, _) in ROWS.items()]
    annotations = [
        {
            "task_id": task,
            "annotator": f"Judge{number + 1}",
            "human_judgement_outcome": outcome,
            "human_judgement_process": outcome,
            "human_process_score": SCORES[task][number] if task in SCORES else None,
            "informed_outcome_agreement": INFORMED[task][number] if task in INFORMED else None,
        }
        for task, (_, outcomes) in ROWS.items()
        for number, outcome in enumerate(outcomes)
    ]
    return trajectories, annotations


def written(folder: Path, *rows: list[dict[str, Any]]) -> list[str]:
    paths = [folder / f"{name}.jsonl" for name in ("trajectories", "annotations")]
    for path, lines in zip(paths, rows, strict=True):
        path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    return list(map(str, paths))


def report(folder: Path, *rows: list[dict[str, Any]]) -> dict[str, Any]:
    out = io.StringIO()
    call_command("cua_verifier_agreement", *written(folder, *rows), "--json", stdout=out)
    return dict(json.loads(out.getvalue()))


@pytest.fixture(scope="module")
def figures(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    return report(tmp_path_factory.mktemp("rows"), *tables())


def row(figures: dict[str, Any], verifier: str, truth: str) -> dict[str, Any]:
    (found,) = [each for each in figures["outcome"] if (each["verifier"], each["truth"]) == (verifier, truth)]
    return {name: value["value"] if isinstance(value, dict) else value for name, value in found.items()}


def test_each_verifier_is_compared_with_each_truth(figures: dict[str, Any]) -> None:
    # Majority: a 1, b 0, d 1, e 1; verifier: 1, 0, 0, 1. p_o = 3/4, p_e = 1/2 * 3/4 + 1/2 * 1/4 = 1/2.
    majority = row(figures, "uv_outcome_success", "majority")
    assert (majority["n"], majority["accuracy"]) == (4, 0.75)
    assert majority["kappa"] == pytest.approx((3 / 4 - 1 / 2) / (1 / 2))
    assert (majority["false_positive_rate"], majority["false_negative_rate"]) == (0, pytest.approx(1 / 3))
    # Stored: a 1, b 0, c 0, d 1, e 1; verifier: 1, 0, 1, 0, 1.
    stored = row(figures, "uv_outcome_success", "stored_majority")
    assert (stored["n"], stored["accuracy"]) == (5, 0.6)
    assert (stored["false_positive_rate"], stored["false_negative_rate"]) == (0.5, pytest.approx(1 / 3))
    # Final: a 1, b 0, c 1, d 0, e 1: the verifier agrees everywhere.
    final = row(figures, "uv_outcome_success", "final")
    assert (final["n"], final["accuracy"], final["kappa"]) == (5, 1, 1)
    # The third verifier has no result for c.
    assert row(figures, "verifier_is_success", "final")["n"] == 4


def test_ties_and_truths_that_differ_are_counted(figures: dict[str, Any]) -> None:
    assert (figures["trajectories"], figures["annotations"], figures["ties"]) == (5, 12, 1)
    assert figures["truths_that_differ"] == {
        "majority, final": 1,  # d
        "stored_majority, final": 2,  # c and d
        "majority, stored_majority": 0,  # the tie has no majority
    }


def test_annotators_agree_by_pairs(figures: dict[str, Any]) -> None:
    # Pairs that agree: a 1, b 1, c 0, d 1/3, e 1; the mean of five.
    assert figures["annotators"]["outcome"]["agreement"]["value"] == pytest.approx((1 + 1 + 0 + 1 / 3 + 1) / 5)
    assert figures["annotators"]["process"]["agreement"]["n"] == 5


def test_process_scores_are_correlated(figures: dict[str, Any]) -> None:
    # Verifier 1.0, 0.2, 0.8; people's means 0.95, 0.2, 0.7: same order; differences 0.05, 0, 0.1.
    verifier = figures["process_scores"]["verifier_and_people"]
    assert verifier["spearman"]["value"] == pytest.approx(1)
    assert verifier["mean_absolute_difference"] == pytest.approx(0.05)
    assert verifier["pearson"]["n"] == 3
    # Pairs in both orders: a 0.1 (2), b 0, 0.3, 0.3 (6), c 0.2 (2); (0.2 + 1.2 + 0.4) / 10.
    assert figures["process_scores"]["annotators"]["mean_absolute_difference"] == pytest.approx(0.18)


def test_informed_labels_follow_who_agrees(figures: dict[str, Any]) -> None:
    # The verdict on d is failure. Disagree: Correct stays. Agree: Incorrect stays, Correct becomes Incorrect.
    informed = figures["informed"]
    assert (informed["annotations"], informed["success_to_failure"], informed["failure_to_success"]) == (3, 1, 0)
    assert informed["blind"]["accuracy"]["hits"] == 1
    assert informed["informed"]["accuracy"]["hits"] == 2


def test_parquet_gives_the_same_figures(tmp_path: Path, figures: dict[str, Any]) -> None:
    pa = pytest.importorskip("pyarrow")
    import pyarrow.parquet as pq

    trajectories, annotations = tables()
    paths = []
    for name, rows in (("trajectories", trajectories), ("annotations", annotations)):
        paths.append(str(tmp_path / f"{name}.parquet"))
        pq.write_table(pa.Table.from_pylist(rows), paths[-1])
    out = io.StringIO()
    call_command("cua_verifier_agreement", *paths, "--json", stdout=out)
    assert json.loads(out.getvalue()) == figures


def test_table_says_every_figure_in_a_line(tmp_path: Path) -> None:
    out = io.StringIO()
    call_command("cua_verifier_agreement", *written(tmp_path, *tables()), stdout=out)
    lines = out.getvalue().splitlines()
    assert lines[0] == "5 trajectories, 12 annotations, 1 ties"
    assert lines[1].startswith("uv_outcome_success against majority (n = 4): kappa 0.50, accuracy 0.75")
    assert len(lines) == 1 + 9 + 2 + 2 + 1


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"uv_outcome_success": "maybe"}, "row 1: uv_outcome_success is 'maybe', which is unknown"),
        ({"uv_rubric_score": "high"}, "row 1: uv_rubric_score is 'high', which is unknown"),
        ({"task_id": "b"}, "has the task b twice"),
        ({"task_id": "z"}, "annotates a, which trajectories.jsonl lacks"),
    ],
)
def test_rows_that_cannot_be_used_are_refused(tmp_path: Path, change: dict[str, Any], says: str) -> None:
    trajectories, annotations = tables()
    trajectories[0] |= change
    with pytest.raises(CommandError, match=says):
        report(tmp_path, trajectories, annotations)


def test_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(CommandError, match="cannot be read"):
        call_command("cua_verifier_agreement", str(tmp_path / "a"), str(tmp_path / "b"))
