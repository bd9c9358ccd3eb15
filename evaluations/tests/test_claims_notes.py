"""The claims `times` and `exceptions`: told and never failed."""

from __future__ import annotations

from typing import Any

import pytest

from evaluations.tests.forging import later
from evaluations.tests.hand_made_bundle import KEY_POINT
from evaluations.tests.tampered import Tampered, hand_made, undrawn
from evaluations.verifier import deviations
from evaluations.verifier.canonical import digest, mismatches
from evaluations.verifier.findings import Finding, Result, parse_kinds
from evaluations.verifier.replay import replay_events
from evaluations.verifier.shapes import LONGEST_TEXT, SCHEMAS


def noted(tampered: Tampered, name: str) -> Finding:
    found = tampered.found()[name]
    assert found.result is Result.NOTE
    return found


def test_times_of_people_who_read_pass() -> None:
    found = hand_made().found()["times"]

    assert found.result is Result.PASS
    assert found.says == "9 labels took 27 minutes of measured work. Nothing was faster than reading takes."


ODD: dict[str, dict[str, Any]] = {
    "Decisions in less than a second a step: 1.": {"active_seconds": 4},
    "Decisions with more work than time since they were opened: 1.": {"active_seconds": 400},
    "Decisions for which fewer than half of the steps were opened: 1.": {"steps_seen": [7, 8]},
    "Decisions with a failure step that was not opened: 1.": {
        "verdict": 0, "failure_step": 1, "failure_type": "loop", "steps_seen": [0],
    },
}  # fmt: skip


@pytest.mark.parametrize("says", ODD)
def test_what_is_odd_about_a_label_is_noted(says: str) -> None:
    tampered = hand_made()
    tampered.restate(tampered.label("task_a"), **ODD[says])

    found = noted(tampered, "times")
    assert says in found.says
    assert found.places == ("task_a",)


def test_a_label_without_measured_time_is_noted() -> None:
    tampered = hand_made()
    del tampered.label("task_a")["facts"]["active_seconds"]

    assert "Labels whose time was not measured: 1." in noted(tampered, "times").says


def test_labels_without_any_measured_time_took_no_zero_minutes() -> None:
    tampered = hand_made()
    for row in tampered.bundle.labels:
        row["facts"].pop("active_seconds", None)
    says = noted(tampered, "times").says
    assert says.startswith("No time was measured for 9 labels. ")
    assert "minutes" not in says

    tampered = hand_made()
    del tampered.label("task_a")["facts"]["active_seconds"]
    assert "measured work, and no time was measured for 1 more. " in noted(tampered, "times").says


def test_labels_of_one_person_closer_together_than_they_took_are_noted() -> None:
    tampered = hand_made()
    first, second = tampered.label("task_a", 1), tampered.label("task_b", 1)
    second["facts"]["at"] = first["facts"]["at"]

    found = noted(tampered, "times")
    assert "Labels sooner after the same person's previous label than they took: 1." in found.says
    assert found.places == ("task_b",)


def test_the_time_of_the_submit_counts_for_labels_that_are_recorded_later() -> None:
    tampered = hand_made()
    first, second = tampered.label("task_a", 1), tampered.label("task_b", 1)
    second["facts"] |= {"submitted_at": second["facts"]["at"], "at": first["facts"]["at"]}
    first["facts"]["submitted_at"] = first["claimed_at"]

    says = noted(tampered, "times").says
    assert "Labels sooner" not in says
    assert "Decisions sooner after they were opened than reading takes: 1." in says


def test_events_that_run_backwards_are_noted() -> None:
    tampered = hand_made()
    tampered.events[3]["at"] = "2026-01-05T08:00:00.000000+00:00"

    found = noted(tampered, "times")
    assert "Events that are older than the one before them: 1." in found.says
    assert found.places == ("#3",)


def test_a_review_without_exceptions_has_none() -> None:
    found = hand_made().found()["exceptions"]

    assert (found.result, found.says) == (Result.PASS, "No exceptions.")


def test_a_task_that_somebody_finds_outdated_is_told_with_the_reasoning() -> None:
    tampered = hand_made()
    tampered.restate(tampered.label("task_a", 2), verdict=2, cause="task_outdated", reasoning="The shop has closed.")

    assert tampered.exceptions() == "1 outdated task: task_a by A2 (“The shop has closed.”)."


def test_an_outdated_task_is_one_however_many_say_so_and_however_often() -> None:
    tampered = hand_made()
    at = tampered.events[-1]["at"]
    for slot in (1, 2, 3):
        tampered.restate(tampered.label("task_a", slot), verdict=2, cause="task_outdated", reasoning=f"Gone, {slot}.")
    second = tampered.label("task_a", 2)
    again = second["facts"] | {"revision": 2, "revision_reason": "A date.", "reasoning": "Gone since May."}
    tampered.bundle.labels.append({**second, "facts": again})
    report = {"task_id": "task_a", "kind": "task_outdated", "reported_at": at}
    report |= {"settled_at": None, "settled_by": None, "answer": None}
    tampered.bundle.reports += [report | {"reporter": f"A{n}", "note": "Look."} for n in (1, 2, 3)]

    told = tampered.exceptions().splitlines()
    voices = "A1 (“Gone, 1.”), A2 (“Gone since May.”), A3 (“Gone, 3.”)"
    assert (
        f"1 outdated task: task_a by {voices}, a report of A1 (“Look.”), a report of A2 (“Look.”) and 1 more." in told
    )


def test_a_draw_of_less_than_the_usual_rate_is_told() -> None:
    tampered = hand_made()
    tampered.bundle.draws[0]["facts"]["rate"] = 0.02

    assert tampered.exceptions() == "1 draw of less than 10%: draw 1 at 2%."


def test_who_had_not_passed_the_practice_that_was_asked_for_is_told() -> None:
    tampered = hand_made()
    set_up = tampered.add(tampered.event("member_added", member="A1"), "configured", "M1", pass_mark=[None, 0.6])
    tampered.submission["pass_mark"] = 0.6
    for name in ("A1", "A3"):
        tampered.add(set_up, "practice_passed", name, round=1, right=3, of=3, pass_mark=0.6)

    says = tampered.exceptions()
    assert says == "1 annotator who had not passed the required practice: A2 with 3 labels."


def test_a_decision_after_a_look_at_the_network_evidence_is_told() -> None:
    tampered = hand_made()
    opened = tampered.event("adjudication_opened", task_id="task_b")
    tampered.add(opened, "network_evidence_seen", "Q1", task_id="task_b", trajectory=2, checks="", trace="")

    assert tampered.exceptions().endswith("uses: Q1 on task_b, decision 1.")
    assert tampered.failed() == {}


def flooded(tampered: Tampered, number: int) -> None:
    """So many things are missing, and one draw at the end is a small one."""
    problem = {"code": "labels_missing", "message": "", "where": "task_a"}
    tampered.submission["missing"] = [problem | {"where": f"task_{one}"} for one in range(number)]
    tampered.restate(tampered.bundle.draws[0], rate=0.02)


def test_all_exceptions_are_told_however_many_there_are_of_one_kind() -> None:
    tampered = hand_made()
    flooded(tampered, 2000)

    found = noted(tampered, "exceptions")
    sentence, kinds = parse_kinds(found.says)
    assert sentence == "2,001 exceptions of 2 kinds."
    assert kinds[0][0] == "2,000 missing from a partial bundle"
    assert kinds[0][1] == [f"labels_missing task_{one}" for one in range(2000)]
    assert kinds[1] == ("1 draw of less than 10%", ["draw 1 at 2%"])
    assert len(found.places) == 2001
    assert mismatches({"claims": [found.as_json()]}, SCHEMAS["claims.json"]) == []


def test_a_kind_that_has_no_end_says_how_many_of_it_are_told() -> None:
    tampered = hand_made()
    flooded(tampered, 30_000)

    found = noted(tampered, "exceptions")
    first, second = parse_kinds(found.says)[1]
    assert (
        first[0]
        == f"30,000 missing from a partial bundle (the first {len(first[1]):,} are listed here; the records have all)"
    )
    assert 10_000 < len(first[1]) < 20_000
    assert second[0] == "1 draw of less than 10%"
    assert mismatches({"claims": [found.as_json()]}, SCHEMAS["claims.json"]) == []


def test_all_kinds_at_their_longest_are_a_text_that_claims_json_takes() -> None:
    tampered = hand_made()
    history = replay_events(tampered.bundle)
    kinds = [*deviations.exceptions(tampered.bundle, history)]

    assert len(kinds) * (deviations.LONGEST_OF_A_KIND + 200) < LONGEST_TEXT


def test_what_people_wrote_is_one_line_of_its_kind() -> None:
    tampered = hand_made()
    at = tampered.events[-1]["at"]
    row = {"task_id": "task_a", "annotator": "A1", "reason": "No.\x1b[2J\n- x\n" + "x" * 5000, "released_at": at}
    tampered.bundle.releases.append(row | {"lifted_at": None})

    sentence, *lines = noted(tampered, "exceptions").says.split("\n")
    assert sentence == "1 exception of 1 kind."
    assert len(lines) == 2
    assert all(line.isprintable() and len(line) < 200 for line in lines)


# --- what was changed on the way ------------------------------------------------------------------------------------


def revised(tampered: Tampered, task_id: str, verdict: int) -> None:
    """The label of slot 1 once more, behind its event."""
    row = tampered.label(task_id)
    facts = row["facts"] | {"revision": 2, "revision_reason": "I misread it.", "verdict": verdict}
    tampered.bundle.labels.append({**row, "facts": facts})
    payload = {"task_id": task_id, "slot": 1, "revision": 2, "label": digest(facts)}
    tampered.add(tampered.of(row), "label_revised", "A1", **payload)


def test_revisions_of_labels_are_told_with_their_reasons_those_that_turn_a_verdict_first() -> None:
    tampered = hand_made()
    revised(tampered, "task_a", 2)
    revised(tampered, "task_b", 1)

    says = tampered.exceptions()
    turned = "1 label turned by a revision: task_a by A1 from 1 to 2 (“I misread it.”)."
    other = "1 other revision of a label: task_b by A1 (“I misread it.”)."
    assert turned in says
    assert other in says
    assert says.index(turned) < says.index(other)


@pytest.mark.parametrize(
    ("blind", "verdict", "kind"),
    [
        (True, 0, "1 blind decision turned afterwards: {} by Q1 from 1 to 0 (“I misread it.”)."),
        (False, 0, "1 decision turned afterwards: {} by Q1 from 1 to 0 (“I misread it.”)."),
        (True, 1, "1 other revision of a decision: {} by Q1 (“I misread it.”)."),
    ],
)
def test_revisions_of_decisions_are_told_with_their_reasons(blind: bool, verdict: int, kind: str) -> None:
    tampered = hand_made()
    row = tampered.bundle.adjudications[0]
    row["facts"] |= {"verdict": 1, "blind": blind}
    changes = {"revision": 2, "revision_reason": "I misread it.", "verdict": verdict, "blind": False}
    tampered.bundle.adjudications.append({**row, "facts": row["facts"] | changes})

    assert kind.format(row["facts"]["task_id"]) in tampered.exceptions()


def test_a_flag_after_the_draw_is_told_with_what_came_of_it() -> None:
    tampered = hand_made()
    left_out = undrawn(tampered)
    draw = tampered.event("spot_checks_drawn")
    tampered.add(draw, "flagged", "A1", task_id=left_out, note="Odd.")

    says = tampered.exceptions()
    assert f"1 flag after a draw or a final verdict: {left_out} by A1 (“Odd.”), " in says
    assert "became None" in says


def test_a_flag_before_the_draw_is_no_exception() -> None:
    tampered = hand_made()
    last = tampered.of(tampered.label("task_b", 3))
    tampered.add(last, "flagged", "A1", task_id="task_b", note="Odd.")

    assert "after a draw" not in tampered.exceptions()


def test_settings_changed_after_the_first_label_are_told() -> None:
    tampered = hand_made()
    tampered.add(tampered.of(tampered.label("task_a")), "configured", "M1", spot_check_rate=[0.3, 0.1])
    tampered.add(tampered.event("imported"), "configured", "M1", second_stage=[True, False])

    says = tampered.exceptions()
    assert says == "1 setting changed after the first label: spot_check_rate from 0.3 to 0.1."


# --- tasks ----------------------------------------------------------------------------------------------------------


def test_a_task_with_two_generations_is_told_by_its_id() -> None:
    tampered = hand_made()
    for rows in (tampered.bundle.trajectories, tampered.bundle.catalogue):
        rows.append({**rows[0], "task_id": "task_a_110325"})

    assert tampered.exceptions().startswith("1 task with several trajectories: task_a (task_a, task_a_110325).")
    found = tampered.found()["coverage"]
    assert "4 trajectories for 3 tasks" in found.says or found.result is Result.FAIL


def test_a_trajectory_of_a_task_that_is_worded_otherwise_is_told() -> None:
    tampered = hand_made()
    first, second, _ = tampered.bundle.trajectories
    first["task_text"] = "Do   thing\n0."
    second["task_text"] = "Do an easier thing."

    says = tampered.exceptions()
    assert says == "1 trajectory of a task worded otherwise: task_b (“Do an easier thing.”)."


def test_a_trajectory_of_a_replaced_version_is_told() -> None:
    tampered = hand_made()
    tampered.bundle.catalogue.append({**tampered.bundle.catalogue[0], "version": 2})

    says = tampered.exceptions()
    assert says == "1 trajectory of a replaced task version: task_a by version 1 of 2."


def test_missing_and_late_key_points_are_told() -> None:
    tampered = hand_made()
    tampered.bundle.catalogue[0]["key_points"].clear()
    tampered.bundle.catalogue[1]["key_points"][0]["accepted_at"] = tampered.events[-1]["at"]

    says = tampered.exceptions()
    assert "1 task without a key point: task_a." in says
    assert "1 key point written after somebody had claimed the trajectory: task_b (“The page shows it.”)." in says


def test_a_key_point_that_is_written_while_somebody_labels_is_told_though_every_label_speaks_of_it() -> None:
    tampered = hand_made()
    first = tampered.label("task_b", 1)
    assert [text for text, _, _ in first["facts"]["findings"]] == [KEY_POINT]
    tampered.bundle.catalogue[1]["key_points"][0]["accepted_at"] = later(first["claimed_at"], 5)

    assert "1 key point written after somebody had claimed the trajectory: task_b" in tampered.exceptions()
    tampered.bundle.catalogue[1]["key_points"][0]["accepted_at"] = later(first["claimed_at"], -5)
    assert "written after somebody had claimed" not in tampered.exceptions()


def test_a_key_point_that_is_written_after_a_claim_that_was_given_back_is_told() -> None:
    tampered = hand_made()
    claimed = tampered.event("claimed", task_id="task_b")
    own = {name: claimed["payload"][name] for name in ("task_id", "slot")}
    before = tampered.add(tampered.event("imported"), "claimed", claimed["actor"], **own)
    tampered.add(before, "released", claimed["actor"], **own, reason="I know the shop.")
    tampered.bundle.catalogue[1]["key_points"][0]["accepted_at"] = later(before["at"], 5)

    assert "1 key point written after somebody had claimed the trajectory: task_b" in tampered.exceptions()


def test_labels_before_the_practice_was_asked_for_are_told() -> None:
    tampered = hand_made()
    last = tampered.of(tampered.label("task_c", 3))
    tampered.add(last, "configured", "M1", pass_mark=[None, 0.6])
    tampered.submission["pass_mark"] = 0.6

    assert "A1 with 3 labels, 3 before it was asked for" in tampered.exceptions()


# --- times of decisions ---------------------------------------------------------------------------------------------


def test_an_adjudication_without_measured_time_is_noted() -> None:
    tampered = hand_made()
    del tampered.adjudication("task_b")["facts"]["active_seconds"]

    assert "Adjudications whose time was not measured: 1." in noted(tampered, "times").says


def test_a_label_that_does_not_say_which_steps_were_opened_is_noted() -> None:
    tampered = hand_made()
    del tampered.label("task_a")["facts"]["steps_seen"]

    assert "Labels without a record of the opened steps: 1." in noted(tampered, "times").says


@pytest.mark.parametrize("begun", ["claimed_at", "opened_at"])
def test_a_decision_within_seconds_of_its_beginning_is_noted_by_the_clock(begun: str) -> None:
    tampered = hand_made()
    row = tampered.label("task_b") if begun == "claimed_at" else tampered.adjudication("task_b")
    row["facts"].pop("active_seconds")
    row[begun] = row["facts"]["at"]

    assert "Decisions sooner after they were opened than reading takes: 1." in noted(tampered, "times").says
