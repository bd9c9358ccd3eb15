"""The claims `coverage`, `imported` and `reasons`: what was to be judged, and whether each decision says enough."""

from __future__ import annotations

from typing import Any

import pytest

from evaluations.tests.hand_made_bundle import KEY_POINT
from evaluations.tests.tampered import drawn, hand_made
from evaluations.verifier.canonical import digest

LATER = "2026-01-06T09:00:00.000000+00:00"


def test_a_task_of_the_catalogue_without_a_trajectory_fails() -> None:
    tampered = hand_made()
    tampered.bundle.catalogue.append({**tampered.bundle.catalogue[0], "task_id": "task_d"})

    found = tampered.found()["coverage"]
    assert found.says.startswith("1 of 4 tasks have no trajectory. task_d has no trajectory.")
    assert "task_d" in found.places


def test_a_replaced_task_counts_by_its_id_without_the_date() -> None:
    tampered = hand_made()
    tampered.bundle.catalogue.append({**tampered.bundle.catalogue[0], "task_id": "task_a_110325"})
    del tampered.event("frozen")["payload"]["catalogue"]

    found = tampered.found()["coverage"]
    assert found.says == "3 of 3 tasks have a trajectory: 3 trajectories for 3 tasks."
    assert tampered.failed() == {}
    assert "1 freeze without the catalogue: event #29 has no digest" in tampered.exceptions()


@pytest.mark.parametrize(
    ("there", "lacks", "told"),
    [
        (["task_a"], ["task_a_110325"], ["task_a, replaced by task_a_110325"]),
        (["task_a_123024"], ["task_a_110325", "task_a"], ["task_a_123024, replaced by task_a_110325"]),
        (
            ["task_a", "task_a_123024"],
            ["task_a_110325"],
            [f"task_a{on}, replaced by task_a_110325" for on in ("", "_123024")],
        ),
        (["task_a_110325"], ["task_a"], []),
        (["task_a", "task_a_110325"], [], []),
    ],
)
def test_a_trajectory_of_a_task_that_a_dated_one_replaced_is_told(
    there: list[str], lacks: list[str], told: list[str]
) -> None:
    tampered = hand_made()
    catalogue, trajectories = tampered.bundle.catalogue, tampered.bundle.trajectories
    catalogue[:1] = [{**catalogue[0], "task_id": task_id} for task_id in there + lacks]
    trajectories[:1] = [{**trajectories[0], "task_id": task_id} for task_id in there]

    number = f"{len(told)} {'trajectory of a task' if len(told) == 1 else 'trajectories of tasks'}"
    line = f"{number} that a dated one replaced: {'; '.join(told)}."
    assert (line in tampered.exceptions().splitlines()) is bool(told)
    assert ("that a dated one replaced" in tampered.exceptions()) is bool(told)


def test_a_catalogue_other_than_that_of_the_freeze_fails() -> None:
    tampered = hand_made()
    tampered.bundle.catalogue[0]["level"] = "hard"

    assert "not the one of the freeze" in tampered.failed()["coverage"]


def test_a_trajectory_has_its_version_in_the_catalogue() -> None:
    tampered = hand_made()
    tampered.bundle.trajectories[0]["task_version"] = 2

    assert "task_a was judged by a version that does not exist" in tampered.failed()["coverage"]


def test_a_trajectory_is_what_its_digest_was_made_over() -> None:
    tampered = hand_made()
    tampered.bundle.trajectories[0]["computed"] = digest("something else")

    assert "task_a does not match its digest" in tampered.failed()["imported"]


def test_a_trajectory_is_what_was_imported() -> None:
    tampered = hand_made()
    line = tampered.bundle.trajectories[0]
    line["computed"] = line["digest"] = digest("something else")

    says = tampered.failed()["imported"]
    assert "task_a differs from its import" in says
    assert "The digest of the submission is not that of its trajectories" in says


def test_a_trajectory_that_was_imported_is_here() -> None:
    tampered = hand_made()
    tampered.event("imported")["payload"]["trajectories"]["task_d"] = "0" * 64

    assert "task_d was imported and is missing" in tampered.failed()["imported"]


def test_a_trajectory_that_is_here_was_imported() -> None:
    tampered = hand_made()
    del tampered.event("imported")["payload"]["trajectories"]["task_a"]

    assert "task_a was not imported" in tampered.failed()["imported"]


def test_a_trajectory_is_there_once() -> None:
    tampered = hand_made()
    tampered.bundle.trajectories.append({**tampered.bundle.trajectories[0], "position": 9})

    assert "task_a occurs twice" in tampered.failed()["imported"]


def test_a_task_is_in_the_catalogue_once_in_each_version() -> None:
    tampered = hand_made()
    tampered.bundle.catalogue.append({**tampered.bundle.catalogue[0], "text": "Do something easy."})

    assert "The catalogue has a version of a task twice" in tampered.failed()["coverage"]


def test_a_submission_is_not_younger_than_its_import() -> None:
    tampered = hand_made()
    tampered.submission["created_at"] = LATER

    assert "The submission was created after its import" in tampered.failed()["imported"]


def test_trajectories_are_in_their_order() -> None:
    tampered = hand_made()
    tampered.bundle.trajectories.reverse()

    assert "not in the order of the submission" in tampered.failed()["imported"]


def test_the_import_report_is_the_one_of_the_import() -> None:
    tampered = hand_made()
    tampered.bundle.import_report["warnings"].append({"task_id": "", "code": "x", "message": "x", "where": ""})

    assert "The import report is not the one of the import" in tampered.failed()["imported"]


REPORTS: dict[str, dict[str, Any]] = {
    "did not accept task_c": {"accepted": ["task_a", "task_b"]},
    "accepted task_d, which is missing": {"accepted": ["task_a", "task_b", "task_c", "task_d"]},
    "rejected task_a, which is included": {"rejected": [{"task_id": "task_a", "problems": []}]},
}


@pytest.mark.parametrize("says", REPORTS)
def test_the_import_report_is_about_these_trajectories(says: str) -> None:
    tampered = hand_made()
    tampered.bundle.import_report |= REPORTS[says]
    tampered.event("imported")["payload"]["report"] = digest(tampered.bundle.import_report)

    assert says in tampered.failed()["imported"]


def test_an_import_that_became_several_submissions_may_have_taken_more_than_is_here() -> None:
    tampered = hand_made()
    report = tampered.bundle.import_report
    report["accepted"].append("task_d")
    report["rejected"].append({"task_id": "task_a", "problems": []})
    report["warnings"].append({"task_id": "", "code": "several_submissions", "message": "", "where": ""})
    tampered.event("imported")["payload"]["report"] = digest(report)

    assert tampered.failed() == {}


def test_reasoning_that_nobody_can_see_is_none() -> None:
    tampered = hand_made()
    tampered.restate(tampered.label("task_a"), reasoning="\u200b \u2060\ufeff\u3164")

    assert "A1 on task_a lacks reasoning" in tampered.failed()["reasons"]


def test_an_import_of_before_reports_were_kept_passes_and_is_told() -> None:
    tampered = hand_made()
    tampered.bundle.import_report = None
    assert "though the import states that it was stored" in tampered.failed()["imported"]
    del tampered.event("imported")["payload"]["report_kept"]

    assert tampered.failed() == {}
    assert "The import report itself is missing; only its digest" in tampered.found()["imported"].says
    assert "1 import without its report: event #0 has only its digest" in tampered.exceptions()


def test_a_report_of_before_reports_were_kept_is_compared_with_its_digest_where_it_is_there() -> None:
    tampered = hand_made()
    del tampered.event("imported")["payload"]["report_kept"]
    assert "import without its report" not in tampered.exceptions()
    tampered.bundle.import_report["warnings"].append({"task_id": "", "code": "x", "message": "x", "where": ""})

    assert "The import report is not the one of the import" in tampered.failed()["imported"]


def test_an_import_records_its_report() -> None:
    tampered = hand_made()
    del tampered.event("imported")["payload"]["report"]

    assert "The import does not have the digest of its report" in tampered.failed()["imported"]


@pytest.mark.parametrize("name", ["agent", "benchmark", "attempt"])
def test_the_submission_is_the_imported_one(name: str) -> None:
    tampered = hand_made()
    tampered.event("imported")["payload"][name] = "another"

    assert f"another {name} than the import" in tampered.failed()["imported"]


def test_without_an_import_nothing_is_known_of_where_it_came_from() -> None:
    tampered = hand_made()
    tampered.events.remove(tampered.event("imported"))

    assert "The first event is not the import" in tampered.failed()["imported"]


# Of the label of A1 on task_a (1, two steps, one key point): what it lacks after a change.
LACKS: dict[str, dict[str, Any]] = {
    "lacks reasoning": {"reasoning": " "},
    "a text of at most 10000 characters": {"reasoning": "x" * 10_001},
    "the step where it failed": {"verdict": 0, "failure_type": "loop"},
    "an existing failure step": {"verdict": 0, "failure_type": "loop", "failure_step": 2},
    "the type of the failure": {"verdict": 0, "failure_step": 1, "failure_type": "bad luck"},
    "a further failure type of the protocol": {
        "verdict": 0, "failure_step": 1, "failure_type": "loop", "further_failure_types": ["bad luck"],
    },
    "the failure that it describes": {"failure_type": "loop"},
    "a cause that fits its verdict": {"verdict": 2, "cause": "bad luck"},
    "a verdict of 0, 1 or 2": {"verdict": 3},
    "a success with an unmet key point": {"findings": [[KEY_POINT, "unmet", 1]]},
    "a finding on the key point": {"findings": []},
    "one finding for each key point": {"findings": [[KEY_POINT, "met", 1], [KEY_POINT, "met", 0]]},
    "“It is nice.” that the task had": {"findings": [[KEY_POINT, "met", 1], ["It is nice.", "met", 1]]},
    "a step that proves": {"findings": [[KEY_POINT, "met", None]]},
    "a step that proves “The page": {"findings": [[KEY_POINT, "unclear", 2]]},
    "met, unmet or unclear": {"findings": [[KEY_POINT, "perhaps", 1]]},
    "an existing step of missing evidence": {"evidence_missing": [2]},
    "an existing step of a box": {"boxes": [{"key_point": None, "step": 2, "box": [0, 0, 1, 1]}]},
    "a box with a size": {"boxes": [{"key_point": None, "step": 1, "box": [0, 0, 0, 1]}]},
    "one box for each key point: it has two": {"boxes": 2 * [{"key_point": KEY_POINT, "step": 1, "box": [0, 0, 1, 1]}]},
    "a key point “It is nice.” of its box": {"boxes": [{"key_point": "It is nice.", "step": 1, "box": [0, 0, 1, 1]}]},
    "permission to mark steps": {"process": [{"step": 0, "mark": "wrong"}]},
    "an existing step of a process label": {"process": [{"step": 2, "mark": "wrong"}]},
    "a process label that exists": {"process": [{"step": 0, "mark": "right"}]},
    "one process label for each step": {"process": 2 * [{"step": 0, "mark": "wrong"}]},
    "the version of the protocol that requires an own attempt": {"attempt": {"steps": 1, "notes": "", "path": ""}},
}  # fmt: skip


@pytest.mark.parametrize("lacks", LACKS)
def test_a_label_that_lacks_something_is_named(lacks: str) -> None:
    tampered = hand_made()
    tampered.restate(tampered.label("task_a"), **LACKS[lacks])

    found = tampered.found()["reasons"]
    assert "A1 on task_a lacks" in found.says
    assert lacks in found.says
    assert found.places == ("task_a",)


def test_a_decision_is_about_a_trajectory_of_the_bundle() -> None:
    tampered = hand_made()
    tampered.restate(tampered.label("task_a"), task_id="task_z")

    assert "task_z was judged and has no trajectory" in tampered.failed()["reasons"]


def test_an_unclear_key_point_needs_no_step_and_an_unmet_one_only_a_reason() -> None:
    tampered = hand_made()
    tampered.restate(tampered.label("task_a", 1), findings=[[KEY_POINT, "unclear", None]])
    tampered.restate(tampered.label("task_a", 2), findings=[[KEY_POINT, "unmet", 0]], exception_reason="It is moot.")

    assert tampered.failed() == {}


def test_a_task_that_nobody_could_do_needs_no_findings() -> None:
    tampered = hand_made()
    tampered.restate(tampered.label("task_a"), verdict=2, cause="blocked", findings=[])

    assert "reasons" not in tampered.failed()


def test_boxes_of_a_key_point_and_a_failure_are_accepted() -> None:
    tampered = hand_made()
    boxes = [
        {"key_point": KEY_POINT, "step": 1, "box": [0, 0, 1, 1]},
        {"key_point": None, "step": 0, "box": [5, 5, 9, 9]},
    ]
    tampered.restate(tampered.label("task_a", 1), boxes=boxes)

    assert tampered.failed() == {}


def test_process_labels_are_accepted_where_the_submission_asks_for_them() -> None:
    tampered = hand_made()
    tampered.bundle.submission["process_labels"] = True
    tampered.restate(tampered.label("task_a", 1), process=[{"step": 1, "mark": "side_effect"}])

    assert "reasons" not in tampered.failed()


def test_an_adjudication_names_its_criterion() -> None:
    tampered = hand_made()
    tampered.restate(tampered.adjudication("task_b"), criterion="taste")

    assert "Q1 on task_b lacks the criterion that decides" in tampered.failed()["reasons"]


def test_a_revision_says_why() -> None:
    tampered = hand_made()
    tampered.restate(tampered.label("task_a"), revision=2)
    tampered.restate(tampered.adjudication(drawn(tampered)), revision=2)

    says = tampered.failed()["reasons"]
    assert "A1 on task_a lacks a reason for the revision" in says
    assert f"Q1 on {drawn(tampered)} lacks a reason for the revision" in says


@pytest.mark.parametrize(("accepted_at", "retired_at"), [(LATER, None), (None, "2026-01-05T08:00:00.000000+00:00")])
def test_key_points_of_another_time_are_not_asked_for(accepted_at: str | None, retired_at: str | None) -> None:
    tampered = hand_made()
    points = tampered.bundle.catalogue[0]["key_points"]
    points.append({**points[0], "text": "It is nice.", "retired_at": retired_at})
    points[1]["accepted_at"] = accepted_at or points[0]["accepted_at"]
    tampered.event("frozen")["payload"]["catalogue"] = digest(tampered.bundle.catalogue)

    assert tampered.failed() == {}


def test_a_key_point_that_was_there_is_asked_for() -> None:
    tampered = hand_made()
    points = tampered.bundle.catalogue[0]["key_points"]
    points.append({**points[0], "text": "It is nice."})

    assert "a finding on the key point “It is nice.”" in tampered.failed()["reasons"]


def test_the_second_version_of_the_protocol_asks_for_an_own_attempt() -> None:
    tampered = hand_made()
    tampered.submission["protocol_version"] = tampered.bundle.protocol["version"] = 2
    attempt = {"steps": 4, "notes": "By the menu.", "link": "", "path": "longer"}
    for row in tampered.bundle.labels:
        tampered.restate(row, attempt=attempt)
    tampered.restate(tampered.label("task_b", 1), attempt=attempt | {"seconds": 95})
    assert tampered.failed() == {}

    for slot, given in enumerate((None, attempt | {"steps": None}, attempt | {"notes": " "}), start=1):
        tampered.restate(tampered.label("task_a", slot), attempt=given)
    tampered.restate(tampered.label("task_c", 1), attempt=attempt | {"path": "scenic"})

    found = tampered.found()["reasons"]
    assert found.says.startswith("4 problems")
    assert set(found.places) == {"task_a", "task_c"}


def test_the_protocol_of_the_bundle_is_not_a_softer_one() -> None:
    tampered = hand_made()
    tampered.bundle.protocol["minimum_labels"] = 1
    tampered.bundle.protocol["verdicts"].pop()
    tampered.bundle.protocol["failure_types"].append({"code": "bad_luck", "name": "Bad luck", "definition": ""})

    says = tampered.failed()["reasons"]
    assert "requires another number of labels" in says
    assert "other failure types than the protocol" in says
    assert "other verdicts than the protocol" in says
