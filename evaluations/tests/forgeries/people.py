"""Who did it, and what QA did, changed by somebody with the signing key."""

from __future__ import annotations

from evaluations.tests.forgeries.ground import DISPUTE, LATE, PLAIN, drawn, forgery, unanimous
from evaluations.tests.forging import Forged, Line
from evaluations.verifier.canonical import digest
from evaluations.verifier.verdicts import seed_digest


@forgery("complete_record")
def an_annotator_is_swapped(forged: Forged) -> None:
    forged.label(DISPUTE, slot=1)["annotator"] = "A4"


@forgery("annotators")
def one_annotator_made_two_labels_of_a_trajectory(forged: Forged) -> None:
    forged.label(PLAIN, slot=2)["annotator"] = forged.label(PLAIN, slot=1)["annotator"]
    for event in forged.events_of("claimed", task_id=PLAIN, slot=2) + forged.events_of(
        "label_submitted", task_id=PLAIN, slot=2
    ):
        event["actor"] = forged.label(PLAIN, slot=1)["annotator"]


@forgery("annotators")
def a_label_is_left_out_with_its_events(forged: Forged) -> None:
    forged.drop_label(PLAIN, 3)


@forgery("roles")
def an_annotator_adjudicated(forged: Forged) -> None:
    forged.adjudication(DISPUTE)["adjudicator"] = "A1"
    for event in forged["events"]:
        if event["kind"].startswith("adjudication") and event["payload"]["task_id"] == DISPUTE:
            event["actor"] = "A1"


@forgery("roles")
def the_adjudicator_made_a_label(forged: Forged) -> None:
    forged.label(PLAIN, slot=1)["annotator"] = "Q1"
    for event in forged.events_of("claimed", task_id=PLAIN, slot=1) + forged.events_of(
        "label_submitted", task_id=PLAIN, slot=1
    ):
        event["actor"] = "Q1"


@forgery("roles")
def a_person_has_two_roles(forged: Forged) -> None:
    annotator = next(person for person in forged["people"]["people"] if person["pseudonym"] == "A1")
    forged["people"]["people"].append({**annotator, "role": "adjudicator"})


@forgery("disputes")
def a_dispute_has_no_adjudication(forged: Forged) -> None:
    forged.drop_adjudications(DISPUTE)
    forged.decide(DISPUTE, 1, by="unanimous", state="unanimous")


@forgery("final_verdicts")
def the_majority_of_a_dispute_is_final(forged: Forged) -> None:
    forged.decide(DISPUTE, 1)


@forgery("draws")
def the_draw_leaves_one_out_that_it_took(forged: Forged) -> None:
    draw = forged["draws"][0]
    forged.refact(draw, "draw", drawn=draw["facts"]["drawn"][1:])


@forgery("draws")
def the_draw_was_made_among_fewer(forged: Forged) -> None:
    facts = forged["draws"][0]["facts"]
    kept = [task for task in facts["population"] if task in facts["drawn"] or task == facts["population"][-1]]
    forged.refact(forged["draws"][0], "draw", population=kept)


@forgery("draws")
def the_draw_has_another_seed(forged: Forged) -> None:
    forged.refact(forged["draws"][0], "draw", seed="a seed that takes the right ones")
    forged.event("spot_checks_drawn", number=1)["payload"]["seed"] = "a seed that takes the right ones"


@forgery("spot_checks")
def a_drawn_spot_check_is_dropped(forged: Forged) -> None:
    task = drawn(forged)
    verdict = forged.label(task)["facts"]["verdict"]
    forged.drop_adjudications(task)
    forged.decide(task, verdict, by="unanimous", state="unanimous")


@forgery("spot_checks")
def a_spot_check_was_not_made_blind(forged: Forged) -> None:
    task = drawn(forged)
    forged.refact(forged.adjudication(task), "adjudication", blind=False)
    forged.event("adjudication_opened", task_id=task)["payload"]["blind"] = False


@forgery("complete_record")
def an_adjudication_says_something_else(forged: Forged) -> None:
    forged.adjudication(DISPUTE)["facts"]["reasoning"] = "The labels are right."


@forgery("complete_record")
def what_an_adjudication_changed_is_hidden(forged: Forged) -> None:
    row = forged.adjudication(DISPUTE)
    row.update(changed=False, majority=row["facts"]["verdict"])


@forgery("fixed_labels")
def a_label_is_made_after_the_adjudication_was_opened(forged: Forged) -> None:
    submitted = forged.event("label_submitted", task_id=DISPUTE, slot=3)
    opened = forged.event("adjudication_opened", task_id=DISPUTE)
    forged.move_event(opened, before=submitted)


@forgery("fixed_labels")
def a_label_is_corrected_after_the_adjudication_was_opened(forged: Forged) -> None:
    old = forged.label(DISPUTE, slot=1)
    opened = forged.event("adjudication_opened", task_id=DISPUTE)
    facts = {**old["facts"], "revision": 2, "revision_reason": "I looked again.", "at": opened["at"]}
    forged["labels"].insert(forged["labels"].index(old) + 1, {**old, "facts": facts})
    payload = {"task_id": DISPUTE, "slot": 1, "revision": 2, "label": digest(facts)}
    forged.add_event(opened, "label_revised", old["annotator"], **payload)


@forgery("blind_order")
def a_label_is_made_after_the_results_were_opened(forged: Forged) -> None:
    first = forged.event("label_submitted", task_id=LATE)
    forged.add_event(forged["events"][forged["events"].index(first) - 1], "results_opened", "M1")


@forgery("fixed_labels")
def labels_that_the_draw_left_out_are_turned_together(forged: Forged) -> None:
    task = unanimous(forged)
    for slot in (1, 2, 3):
        _revise_after_the_draws(forged, forged.label(task, slot=slot), 0)
    forged.decide(task, 0)


@forgery("fixed_labels")
def a_label_is_mended_between_the_draw_and_the_adjudication(forged: Forged) -> None:
    task = drawn(forged)
    row = forged.label(task, slot=2)
    _revise_after_the_draws(forged, row, row["facts"]["verdict"], forged.event("spot_checks_drawn", number=1))


def _revise_after_the_draws(forged: Forged, old: Line, verdict: int, after: Line | None = None) -> None:
    """Make the next revision of a label, complete for its verdict, behind an event: the last draw."""
    behind = after or forged.events_of("spot_checks_drawn")[-1]
    failed = {"failure_step": 1, "failure_type": "wrong_item"} if verdict == 0 else {}
    revision = old["facts"]["revision"] + 1
    facts = old["facts"] | failed | {"verdict": verdict, "revision": revision, "at": behind["at"]}
    facts |= {"revision_reason": "I looked again."}
    forged["labels"].insert(forged["labels"].index(old) + 1, {**old, "facts": facts})
    payload = {"task_id": facts["task_id"], "slot": facts["slot"], "revision": revision, "label": digest(facts)}
    forged.add_event(behind, "label_revised", old["annotator"], **payload)


@forgery("draws")
def a_seed_is_used_up_by_a_draw_of_nothing(forged: Forged) -> None:
    """With a draw among nobody the seed of the next one could be chosen by trying."""
    last = forged.events_of("spot_checks_drawn")[-1]
    number, seed = last["payload"]["number"] + 1, "whatever"
    last["payload"]["next_seed"] = seed_digest(seed)
    facts = {"number": number, "seed": seed, "rate": forged["submission"]["spot_check_rate"]}
    facts |= {"population": [], "drawn": []}
    forged["draws"].append({"facts": facts, "drawn_at": last["at"]})
    after = seed_digest("another one")
    payload = {"draw": digest(facts), "number": number, "seed": seed, "next_seed": after}
    forged.add_event(last, "spot_checks_drawn", last["actor"], **payload)
    forged["submission"]["next_seed"] = after


@forgery("complete_record")
def somebody_passed_a_practice_of_nothing(forged: Forged) -> None:
    added = forged.event("member_added", member="A1")
    asked = forged.add_event(added, "configured", "M1", pass_mark=[None, 0.6])
    forged["submission"]["pass_mark"] = 0.6
    forged.add_event(asked, "practice_passed", "A1", round=1, right=0, of=0, pass_mark=0.6)


@forgery("complete_record")
def somebody_passed_with_too_few(forged: Forged) -> None:
    added = forged.event("member_added", member="A1")
    asked = forged.add_event(added, "configured", "M1", pass_mark=[None, 0.6])
    forged["submission"]["pass_mark"] = 0.6
    forged.add_event(asked, "practice_passed", "A1", round=1, right=2, of=5, pass_mark=0.6)


@forgery("complete_record")
def a_slot_of_somebody_who_works_is_taken_away(forged: Forged) -> None:
    claimed = forged.event("claimed", task_id=PLAIN, slot=1)
    row, who = forged.label(PLAIN, slot=1), claimed["actor"]
    taken = forged.add_event(claimed, "slot_returned", "M1", task_id=PLAIN, slot=1, held_by=who)
    forged.add_event(taken, "claimed", who, task_id=PLAIN, slot=1)
    row["claimed_at"] = taken["at"]


@forgery("complete_record")
def an_adjudication_of_somebody_who_works_is_taken_away(forged: Forged) -> None:
    opened = forged.event("adjudication_opened", task_id=DISPUTE)
    who, payload = opened["actor"], opened["payload"]
    gone = forged.add_event(opened, "adjudication_returned", "M1", task_id=DISPUTE, revision=1, held_by=who)
    forged.add_event(gone, "adjudication_opened", who, **payload)
