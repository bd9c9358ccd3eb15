"""The claims `chain` and `complete_record`: what was recorded is whole, and rows are what was recorded."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from evaluations.tests.forging import later
from evaluations.tests.tampered import Tampered, drawn, hand_made
from evaluations.verifier.checking import claims
from evaluations.verifier.findings import Result
from evaluations.verifier.values import seconds_between

LATE = "2026-01-05T23:00:00.000000+00:00"


def chain_says(tampered: Tampered) -> str:
    """What `chain` says where nobody computes the hashes again."""
    finding = next(one for one in claims(tampered.bundle) if one.name == "chain")
    assert finding.result is Result.FAIL
    return finding.says


def test_a_consistent_bundle_passes_in_everything() -> None:
    found = hand_made().found()

    assert {name for name, finding in found.items() if finding.result is not Result.PASS} == set()
    assert found["chain"].says.startswith("30 events")
    assert "12 entries" in found["complete_record"].says  # 9 labels, 1 draw, 2 adjudications


def test_an_edited_event_is_not_what_its_hash_was_made_over() -> None:
    tampered = hand_made()
    tampered.events[7]["actor"] = "A9"

    assert "Event 7 does not match its hash" in chain_says(tampered)


def test_a_removed_event_leaves_a_hole() -> None:
    tampered = hand_made()
    del tampered.events[7]

    says = chain_says(tampered)
    assert "Event 7 has the number 8" in says
    assert "does not follow" in says


def test_events_that_changed_places_do_not_follow_each_other() -> None:
    tampered = hand_made()
    tampered.events[7], tampered.events[8] = tampered.events[8], tampered.events[7]

    assert "does not follow" in chain_says(tampered)


def test_an_event_that_was_moved_before_older_ones_fails_though_every_hash_was_computed_again() -> None:
    tampered = hand_made()
    claimed = tampered.event("claimed", task_id="task_c", slot=3)
    first = tampered.event("claimed", task_id="task_a", slot=1)
    apart = seconds_between(first["at"], claimed["at"])
    assert apart is not None
    assert apart > 24 * 60
    tampered.move(claimed, before=first)

    says = tampered.failed()["chain"]
    number = claimed["sequence"]
    assert f"Event {number + 1} is {apart:.0f} seconds older than event {number}, which comes before it" in says
    assert f"#{number + 1}" in tampered.found()["chain"].places
    assert set(tampered.failed()) == {"chain"}


@pytest.mark.parametrize(("slips", "number"), [([-29, -29], 0), ([-31], 1), ([-20, -40], 1), ([-20, -40, -60], 2)])
def test_clocks_of_servers_may_differ_by_half_a_minute_and_no_more(slips: list[float], number: int) -> None:
    """Slips are against the newest event before all of them, so that nobody goes back in small steps."""
    tampered = hand_made()
    at = tampered.events[5]["at"]
    for event, slip in zip(tampered.events[6:], slips, strict=False):
        event["at"] = later(at, slip)

    wrong = [place for place in tampered.found()["chain"].places if place != "submission.json"]
    assert len(wrong) == number


@pytest.mark.parametrize("name", ["id", "events", "head"])
def test_submission_json_names_the_ends_of_the_chain(name: str) -> None:
    tampered = hand_made()
    tampered.submission["chain"][name] = 5 if name == "events" else "0" * 64

    assert "submission.json states another" in chain_says(tampered)


def test_a_bundle_without_events_has_no_chain() -> None:
    tampered = hand_made()
    tampered.events.clear()

    assert "There are no events" in chain_says(tampered)


def test_a_label_that_was_changed_has_no_event() -> None:
    tampered = hand_made()
    tampered.label("task_a")["facts"]["reasoning"] = "Something else."

    assert "No event records this for task_a" in tampered.failed()["complete_record"]


def test_a_label_by_somebody_else_has_no_event() -> None:
    tampered = hand_made()
    tampered.label("task_a", 1)["annotator"] = "A2"

    assert "No event records this for task_a: label_submitted by A2" in tampered.failed()["complete_record"]


def test_an_event_without_its_row_is_named() -> None:
    tampered = hand_made()
    gone = tampered.label("task_a", 2)
    event = tampered.of(gone)
    tampered.bundle.labels.remove(gone)

    failed = tampered.failed()
    assert f"Event #{event['sequence']} has no matching row" in failed["complete_record"]
    assert "annotators" in failed


def test_one_event_is_not_enough_for_two_rows() -> None:
    tampered = hand_made()
    tampered.bundle.labels.append(tampered.label("task_a", 2))

    assert "complete_record" in tampered.failed()


def test_a_row_has_the_time_of_its_event() -> None:
    tampered = hand_made()
    tampered.restate(tampered.label("task_a"), at=LATE)

    assert "another time than its event" in tampered.failed()["complete_record"]


def test_a_claim_has_the_time_of_its_event_and_comes_before_the_label() -> None:
    tampered = hand_made()
    tampered.label("task_a")["claimed_at"] = LATE

    says = tampered.failed()["complete_record"]
    assert "another time of the claim" in says
    assert "older than its claim" in says


def test_a_label_is_not_recorded_before_it_is_submitted() -> None:
    tampered = hand_made()
    label = tampered.label("task_a")
    tampered.restate(label, submitted_at=label["facts"]["at"])
    assert "complete_record" not in tampered.failed()
    tampered.restate(label, submitted_at=LATE)
    assert "was recorded before it was submitted" in tampered.failed()["complete_record"]


def a_flag(tampered: Tampered) -> None:
    row = {"task_id": "task_b", "annotator": "A1", "note": "Odd.", "flagged_at": LATE}
    tampered.bundle.flags.append(row)


def a_report(tampered: Tampered) -> None:
    settled = {"settled_at": None, "settled_by": None, "answer": None}
    row = {"task_id": "task_b", "reporter": "A1", "kind": "task_outdated", "note": "Odd.", "reported_at": LATE}
    tampered.bundle.reports.append(row | settled)


def a_release(tampered: Tampered) -> None:
    row = {"task_id": "task_b", "annotator": "A1", "reason": "No.", "released_at": LATE, "lifted_at": None}
    tampered.bundle.releases.append(row)


def a_reopening(tampered: Tampered) -> None:
    row = {"task_id": "task_b", "reopened_by": "M1", "reason": "No.", "revision": 2, "reopened_at": LATE}
    tampered.bundle.reopenings.append(row)


def a_redaction(tampered: Tampered) -> None:
    row = {"original": "0" * 64, "revision": 1, "boxes": [], "reason": "No.", "redacted": None, "size": 0}
    tampered.bundle.redactions.append(row | {"redacted_by": "M1", "redacted_at": LATE})


def a_draw(tampered: Tampered) -> None:
    facts = {"number": 2, "seed": "second seed", "rate": 0.1, "population": [], "drawn": []}
    tampered.bundle.draws.append({"facts": facts, "drawn_at": LATE})


def a_look(tampered: Tampered) -> None:
    shown = {"task_id": "task_b", "slot": 1, "revision": 1, "judgments": [], "at": LATE}
    tampered.bundle.informed.append({"annotator": "A1", "shown": shown, "informed": None})


@pytest.mark.parametrize("invent", [a_flag, a_report, a_release, a_reopening, a_redaction, a_draw, a_look])
def test_no_row_is_without_its_event(invent: Callable[[Tampered], None]) -> None:
    tampered = hand_made()
    invent(tampered)

    assert "No event records this" in tampered.failed()["complete_record"]


UNLIKELY: dict[str, tuple[str, str, dict[str, Any]]] = {
    "has an unknown kind": ("label_mended", "M1", {"task_id": "task_a"}),
    "belongs to no trajectory of the bundle": ("known_answer_set", "M1", {"task_id": "task_z", "answer": "0" * 64}),
    "has no matching row": ("flagged", "A1", {"task_id": "task_a", "note": ""}),
    "not an active member": ("judge_run_started", "M7", {}),
    "it has a label": ("known_answer_set", "M1", {"task_id": "task_a", "answer": "0" * 64}),
    "this slot does not exist": ("claimed", "A1", {"task_id": "task_a", "slot": 4}),
    "the slot is taken": ("claimed", "A1", {"task_id": "task_a", "slot": 1}),
    "the slot has a label": ("lease_expired", "A1", {"task_id": "task_a", "slot": 1}),
    "they had not opened it": ("adjudication_left", "Q1", {"task_id": "task_a", "revision": 1}),
    "0 had declined it": ("offered_again", "M1", {"task_id": "task_a", "reason": "So.", "releases": 1}),
    "they have no slot of it": ("flagged", "Q1", {"task_id": "task_a", "note": ""}),
    "it has no reason": ("reopened", "M1", {"task_id": "task_a", "reason": " "}),
    "they were shown nothing": ("informed_decided", "A1", {"task_id": "task_a", "slot": 1, "informed": "0" * 64}),
    "which is impossible": ("member_added", "M1", {"member": "A1", "role": "annotator"}),
    "which earlier work depends on": ("configured", "M1", {"required_labels": [3, 3]}),
    "The import is not the first event": ("imported", "", {}),
}


@pytest.mark.parametrize("says", UNLIKELY)
def test_an_event_that_cannot_have_happened_is_named(says: str) -> None:
    tampered = hand_made()
    kind, actor, payload = UNLIKELY[says]
    tampered.add(tampered.events[-2], kind, actor, **payload)

    assert says in tampered.failed()["complete_record"]


def test_judged_blind_nobody_looks_at_the_network_evidence() -> None:
    tampered = hand_made()
    opened = tampered.event("adjudication_opened", task_id=drawn(tampered))
    tampered.add(opened, "network_evidence_seen", "Q1", task_id=drawn(tampered), trajectory=1, checks="", trace="")

    assert "they judge it blind" in tampered.failed()["complete_record"]


def test_a_label_needs_a_claim() -> None:
    tampered = hand_made()
    tampered.events.remove(tampered.event("claimed", task_id="task_a", slot=2))

    assert "they do not hold the slot" in tampered.failed()["complete_record"]


def test_a_decision_needs_an_opening() -> None:
    tampered = hand_made()
    tampered.events.remove(tampered.event("adjudication_opened", task_id="task_b"))

    says = tampered.failed()["complete_record"]
    assert "was opened by nobody, or by another person" in says


def test_a_decision_comes_after_its_opening() -> None:
    tampered = hand_made()
    tampered.adjudication("task_b")["opened_at"] = LATE

    says = tampered.failed()["complete_record"]
    assert "another time of its opening" in says
    assert "was decided before it was opened" in says


def test_no_row_is_of_a_task_without_a_trajectory() -> None:
    tampered = hand_made()
    tampered.bundle.draws[0]["facts"]["population"].append("task_z")

    assert "draws.jsonl names task_z, which has no trajectory" in tampered.failed()["complete_record"]


def test_an_adjudication_states_the_labels_that_there_were_and_what_it_changed() -> None:
    tampered = hand_made()
    row = tampered.adjudication("task_b")
    row["labels"]["A2"], row["changed"] = 1, False

    says = tampered.failed()["complete_record"]
    assert "states other labels than existed" in says
    assert "does not state its change" in says


def test_the_settings_are_those_that_the_events_come_to() -> None:
    tampered = hand_made()
    tampered.add(tampered.event("member_added"), "configured", "M1", second_stage=[False, True])

    assert "another second_stage than the events" in tampered.failed()["complete_record"]


def test_each_change_of_a_setting_goes_on_from_the_one_before() -> None:
    tampered = hand_made()
    first = tampered.add(tampered.event("member_added"), "configured", "M1", spot_check_rate=[0.2, 0.3])
    tampered.add(first, "configured", "M1", spot_check_rate=[0.2, 0.1])

    assert "states another old value of spot_check_rate" in tampered.failed()["complete_record"]


@pytest.mark.parametrize(
    ("name", "value", "says"),
    [
        ("joined_at", LATE, "joined at another time"),
        ("deactivated_at", LATE, "has left by people.json or by the events"),
    ],
)
def test_people_are_who_the_events_say(name: str, value: str, says: str) -> None:
    tampered = hand_made()
    tampered.bundle.people[0][name] = value

    assert says in tampered.failed()["complete_record"]


def test_nobody_is_left_out_of_the_people() -> None:
    tampered = hand_made()
    tampered.bundle.people.pop()

    assert "is missing from people.json" in tampered.failed()["complete_record"]


def test_nobody_is_among_the_people_whom_no_event_adds() -> None:
    tampered = hand_made()
    tampered.bundle.people.append({**tampered.bundle.people[0], "pseudonym": "A4"})

    assert "No event adds A4" in tampered.failed()["complete_record"]


def test_the_number_of_trajectories_is_stated() -> None:
    tampered = hand_made()
    tampered.submission["trajectories"] = 4

    assert "submission.json counts another number of trajectories" in tampered.failed()["complete_record"]


def test_the_freeze_counts_the_trajectories() -> None:
    tampered = hand_made()
    tampered.event("frozen")["payload"]["trajectories"] = 4

    assert "The event of the freeze counts another number of trajectories" in tampered.failed()["complete_record"]
