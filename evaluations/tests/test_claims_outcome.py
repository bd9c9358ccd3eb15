"""The claims `disputes`, `draws`, `spot_checks`, `final_verdicts`, `export` and `frozen`: what it all came to."""

from __future__ import annotations

from typing import Any

import pytest

from evaluations.tests.tampered import Tampered, drawn, hand_made, undrawn
from evaluations.verifier.canonical import digest
from evaluations.verifier.findings import conclude
from evaluations.verifier.verdicts import draw_sample, seed_digest

LATER = "2026-01-06T09:00:00.000000+00:00"


def undecided(tampered: Tampered, task_id: str) -> None:
    """No adjudication of a task was ever opened."""
    tampered.bundle.adjudications.remove(tampered.adjudication(task_id))
    for kind in ("adjudication_opened", "adjudication_decided"):
        tampered.events.remove(tampered.event(kind, task_id=task_id))


def final(tampered: Tampered, task_id: str, **changes: Any) -> None:
    """State another outcome of a task wherever it is stated."""
    next(row for row in tampered.bundle.final_verdicts if row["task_id"] == task_id).update(changes)
    stated = next(entry for entry in tampered.bundle.human_label if entry["task_id"] == task_id)
    stated["Walker_human_label"] = str(changes["verdict"])
    tampered.refreeze()


def test_disputes_are_counted() -> None:
    assert hand_made().found()["disputes"].says == "1 of 1 dispute has an adjudication."


def test_a_dispute_without_a_decision_fails() -> None:
    tampered = hand_made()
    undecided(tampered, "task_b")

    found = tampered.found()["disputes"]
    assert found.says.startswith("1 of 1 dispute has no adjudication.")
    assert found.places == ("task_b",)


def test_a_majority_is_never_final_by_itself() -> None:
    tampered = hand_made()
    undecided(tampered, "task_b")
    final(tampered, "task_b", verdict=1, state="unanimous", by="unanimous")

    failed = tampered.failed()
    assert "task_b is unanimous with verdict 1; by its events dispute with verdict None" in failed["final_verdicts"]
    assert "1 trajectory had no final verdict when it was frozen" in failed["frozen"]
    assert "covers other verdicts than existed then" in failed["export"]


def test_a_final_verdict_other_than_the_decision_fails() -> None:
    tampered = hand_made()
    final(tampered, "task_b", verdict=1)

    says = tampered.failed()["final_verdicts"]
    assert "by its labels and decisions adjudicated with verdict 0" in says
    assert "by its events adjudicated with verdict 0" in says


def test_every_trajectory_has_a_final_verdict_in_its_order() -> None:
    tampered = hand_made()
    tampered.bundle.final_verdicts.reverse()

    assert "does not list these trajectories in their order" in tampered.failed()["final_verdicts"]


def test_a_draw_is_the_choice_of_its_seed() -> None:
    tampered = hand_made()
    tampered.restate(tampered.bundle.draws[0], drawn=[undrawn(tampered)])

    assert "Draw 1 does not match its seed" in tampered.failed()["draws"]


def test_a_seed_that_was_not_fixed_before_fails_however_well_it_chooses() -> None:
    tampered = hand_made()
    facts = tampered.bundle.draws[0]["facts"]
    seed = next(s for s in map(str, range(99)) if draw_sample(facts["population"], 0.1, s) != facts["drawn"])
    tampered.restate(tampered.bundle.draws[0], seed=seed, drawn=draw_sample(facts["population"], 0.1, seed))
    tampered.event("spot_checks_drawn")["payload"]["seed"] = seed

    assert "The seed of draw 1 is not the one that was fixed before it" in tampered.failed()["draws"]


def test_the_seed_of_the_next_draw_is_fixed() -> None:
    tampered = hand_made()
    tampered.submission["next_seed"] = seed_digest("a third seed")

    assert "another next seed than the last fixed one" in tampered.failed()["draws"]


def test_every_draw_fixes_the_seed_of_the_next() -> None:
    tampered = hand_made()
    del tampered.event("spot_checks_drawn")["payload"]["next_seed"]

    assert "Draw 1 fixed no seed for the next one" in tampered.failed()["draws"]


def test_a_draw_leaves_nothing_out_that_was_unanimous() -> None:
    tampered = hand_made()
    chosen = drawn(tampered)
    tampered.restate(tampered.bundle.draws[0], population=[chosen])

    assert "over 1 trajectory. Unanimous and in no draw then: 2" in tampered.failed()["draws"]


def test_a_draw_takes_nothing_in_that_was_not_unanimous() -> None:
    tampered = hand_made()
    chosen = drawn(tampered)
    tampered.restate(tampered.bundle.draws[0], population=sorted([chosen, "task_b"]))

    assert "Draw 1 was not over the unanimous trajectories of that time" in tampered.failed()["draws"]


def test_a_draw_is_made_at_the_rate_that_was_set() -> None:
    tampered = hand_made()
    tampered.restate(tampered.bundle.draws[0], rate=0.05)

    assert "another rate than the one set at that time" in tampered.failed()["draws"]


def test_a_rate_that_was_changed_counts_from_then_on() -> None:
    tampered = hand_made()
    tampered.add(tampered.event("member_added", member="Q1"), "configured", "M1", spot_check_rate=[0.5, 0.1])

    assert tampered.failed() == {}


def test_draws_are_numbered() -> None:
    tampered = hand_made()
    tampered.restate(tampered.bundle.draws[0], number=2)
    tampered.event("spot_checks_drawn")["payload"]["number"] = 2

    assert "The draws are not numbered from 1" in tampered.failed()["draws"]


def test_a_draw_without_its_row_fails() -> None:
    tampered = hand_made()
    tampered.bundle.draws.clear()

    assert "has no row for its draw" in tampered.failed()["draws"]


def test_what_was_drawn_is_judged() -> None:
    tampered = hand_made()
    chosen = drawn(tampered)
    undecided(tampered, chosen)
    verdict = tampered.label(chosen)["facts"]["verdict"]
    final(tampered, chosen, verdict=verdict, state="unanimous", by="unanimous")

    failed = tampered.failed()
    assert "Drawn or flagged and not judged: 1 of 1 trajectory." in failed["spot_checks"]
    assert "by its events spot check with verdict None" in failed["final_verdicts"]


def test_what_was_flagged_is_judged() -> None:
    tampered = hand_made()
    task_id, at = undrawn(tampered), tampered.event("spot_checks_drawn")["at"]
    tampered.bundle.flags.append({"task_id": task_id, "annotator": "A1", "note": "Odd.", "flagged_at": at})
    tampered.add(tampered.event("spot_checks_drawn"), "flagged", "A1", task_id=task_id, note="Odd.")

    failed = tampered.failed()
    assert f"{task_id} was flagged and not judged" in failed["spot_checks"]
    assert "complete_record" not in failed


@pytest.mark.parametrize(("task", "blind"), [("drawn", False), ("disputed", True)])
def test_a_first_look_is_blind_but_at_a_dispute(task: str, blind: bool) -> None:
    tampered = hand_made()
    task_id = drawn(tampered) if task == "drawn" else "task_b"
    tampered.event("adjudication_opened", task_id=task_id)["payload"]["blind"] = blind
    tampered.restate(tampered.adjudication(task_id), blind=blind)

    says = tampered.failed()["spot_checks"]
    assert f"{task_id} had to be opened {'with its labels' if blind else 'blind'}" in says


def test_a_decision_is_as_blind_as_it_was_opened() -> None:
    tampered = hand_made()
    tampered.restate(tampered.adjudication(drawn(tampered)), blind=False)

    assert "is recorded as not blind, but was opened otherwise" in tampered.failed()["spot_checks"]


def test_the_submission_json_states_the_final_verdicts() -> None:
    tampered = hand_made()
    tampered.bundle.human_label[1]["Walker_human_label"] = "1"

    found = tampered.found()["export"]
    assert "human-label.json has another label for task_b" in found.says
    assert found.places == ("task_b",)


@pytest.mark.parametrize("document", [{"labels": []}, [], "labels", None])
def test_a_submission_json_of_another_form_fails(document: Any) -> None:
    tampered = hand_made()
    tampered.bundle.human_label = document

    assert "human-label.json has" in tampered.failed()["export"]


def test_the_freeze_is_over_the_final_verdicts() -> None:
    tampered = hand_made()
    tampered.event("frozen")["payload"]["verdicts"] = digest({})

    assert "covers other verdicts than final-verdicts.jsonl" in tampered.failed()["export"]


def test_a_partial_bundle_says_so_in_the_submission_json() -> None:
    tampered = hand_made()
    tampered.submission["partial"] = True

    assert "does not say that it is partial" in tampered.failed()["export"]


def test_a_partial_bundle_is_not_frozen_and_says_what_is_missing() -> None:
    tampered = hand_made()
    tampered.events.pop()
    missing = [{"code": "not_frozen", "message": "The submission is not frozen.", "where": ""}]
    tampered.submission.update(partial=True, missing=missing, frozen_at=None)
    tampered.bundle.human_label = {"partial": True, "missing": missing, "labels": tampered.bundle.human_label}

    failed = tampered.failed()
    assert set(failed) == {"frozen", "export"}
    assert failed["frozen"] == "The submission is not frozen: its labels could still change."
    assert failed["export"] == "No valid freeze states these verdicts."


def test_a_partial_submission_json_lists_what_is_missing() -> None:
    tampered = hand_made()
    tampered.submission["partial"] = True
    tampered.bundle.human_label = {"partial": True, "missing": ["all"], "labels": tampered.bundle.human_label}

    assert "human-label.json and submission.json differ on what is missing" in tampered.failed()["export"]


def test_what_is_missing_is_not_hidden() -> None:
    tampered = hand_made()
    undecided(tampered, "task_b")

    assert "does not list this as missing: dispute_open" in tampered.failed()["frozen"]


def test_nothing_is_said_to_be_missing_that_is_there() -> None:
    tampered = hand_made()
    problem = {"code": "labels_missing", "message": "task_a has 2 of 3 labels.", "where": "task_a"}
    tampered.submission.update(partial=True, missing=[problem])

    assert "lists as missing what is included: labels_missing" in tampered.failed()["frozen"]


@pytest.mark.parametrize(
    ("name", "value", "says"),
    [
        ("frozen_at", LATER, "another time of the freeze"),
        ("frozen_at", None, "The events say frozen, but submission.json does not"),
        ("opened_at", LATER, "differ on whether the results were opened"),
        ("partial", True, "must list what is missing exactly if it is partial"),
    ],
)
def test_the_freeze_is_the_one_of_the_events(name: str, value: Any, says: str) -> None:
    tampered = hand_made()
    tampered.submission[name] = value

    assert says in tampered.failed()["frozen"]


def test_nothing_that_counts_happens_after_the_freeze() -> None:
    tampered = hand_made()
    at = tampered.event("frozen")["at"]
    tampered.bundle.flags.append({"task_id": "task_b", "annotator": "A1", "note": "Odd.", "flagged_at": at})
    tampered.add(tampered.event("frozen"), "flagged", "A1", task_id="task_b", note="Odd.")

    assert "is flagged, in a frozen submission" in tampered.failed()["frozen"]


def test_judges_may_run_after_the_freeze() -> None:
    tampered = hand_made()
    started = tampered.add(tampered.event("frozen"), "judge_run_started", "M1", run=1)
    tampered.add(started, "judge_run_finished", "", run=1)

    assert tampered.failed() == {}


def test_results_are_opened_only_while_it_is_frozen() -> None:
    tampered = hand_made()
    opened = tampered.add(tampered.events[-2], "results_opened", "M1")
    tampered.submission["opened_at"] = opened["at"]

    assert "opened while the submission was not frozen" in tampered.failed()["frozen"]


def test_a_submission_is_not_reopened_once_its_results_are() -> None:
    tampered = hand_made()
    opened = tampered.add(tampered.event("frozen"), "results_opened", "M1")
    reopened = tampered.add(opened, "submission_reopened", "M1", reason="A mistake.")
    tampered.submission["opened_at"] = opened["at"]
    tampered.add(reopened, "frozen", "M1", **tampered.event("frozen")["payload"])

    assert "reopens the submission, after its results were opened" in tampered.failed()["frozen"]


# --- what a hostile bundle must not cost ----------------------------------------------------------------------------


def test_a_row_is_the_draw_of_one_event_only() -> None:
    tampered = hand_made()
    draw = tampered.event("spot_checks_drawn")
    tampered.add(draw, "spot_checks_drawn", "M1", **draw["payload"])

    assert "Event" in tampered.failed()["draws"]


def test_of_very_many_wrongs_the_first_are_kept_and_all_are_counted() -> None:
    made = ((f"Number {number}.", f"#{number}") for number in range(1000))

    found = conclude("chain", "", made)

    assert found.says == "1000 problems. The first: Number 0. Number 1. Number 2."
    assert found.places == tuple(f"#{number}" for number in range(20))


def test_a_freeze_is_no_older_than_what_it_froze() -> None:
    tampered = hand_made()
    event = tampered.event("frozen")
    event["at"] = tampered.submission["frozen_at"] = "2026-01-04T09:00:00.000000+00:00"

    assert "was judged later than the freeze" in tampered.failed()["frozen"]


def test_a_partial_bundle_says_nothing_that_is_not_known() -> None:
    tampered = hand_made()
    tampered.submission["missing"] = [{"code": "a_page", "message": "", "where": ""}]
    tampered.submission["partial"] = True

    assert "lists as missing what is included: a_page" in tampered.failed()["frozen"]


@pytest.mark.parametrize("agree", [True, False])
def test_a_label_that_was_complete_at_a_draw_stays_whether_labels_agree_or_not(agree: bool) -> None:
    tampered = hand_made()
    task_id = undrawn(tampered) if agree else "task_b"
    row = tampered.label(task_id)
    facts = row["facts"] | {"revision": 2, "revision_reason": "I misread it."}
    tampered.bundle.labels.append({**row, "facts": facts})
    payload = {"task_id": task_id, "slot": 1, "revision": 2, "label": digest(facts)}
    tampered.add(tampered.event("spot_checks_drawn"), "label_revised", "A1", **payload)

    assert "was created after a draw over its labels" in tampered.failed()["fixed_labels"]
