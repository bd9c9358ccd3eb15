"""The chain of events, changed by somebody with the signing key."""

from __future__ import annotations

from evaluations.tests.forgeries.ground import DISPUTE, PLAIN, forgery
from evaluations.tests.forging import Forged, Line, later


@forgery("chain", Forged.sealed)
def an_event_is_edited(forged: Forged) -> None:
    forged.event("claimed")["actor"] = "A2"


@forgery("chain", Forged.sealed)
def an_event_is_removed(forged: Forged) -> None:
    forged.drop_event(forged.event("claimed"))


@forgery("chain", Forged.sealed)
def two_events_are_exchanged(forged: Forged) -> None:
    events = forged["events"]
    events[5], events[6] = events[6], events[5]


def set_up_earlier(forged: Forged) -> tuple[Line, Line]:
    """The review that was set up 24 minutes before anybody else came and worked, as honest as the other: the last event
    of the setting up, and a claim of what nobody had claimed before.
    """
    configured = forged.event("configured")
    for event in forged["events"][: forged["events"].index(configured) + 1]:
        event["at"] = later(event["at"], -24 * 60)
    forged["submission"]["created_at"] = later(forged["submission"]["created_at"], -24 * 60)
    for person in forged["people"]["people"]:
        person["joined_at"] = forged.event("member_added", member=person["pseudonym"])["at"]
    return configured, forged.event("claimed", task_id=DISPUTE)


def exchange(forged: Forged, one: Line, other: Line) -> None:
    events = forged["events"]
    here, there = events.index(one), events.index(other)
    events[here], events[there] = other, one


@forgery("chain")
def two_events_are_exchanged_and_the_chain_computed_again(forged: Forged) -> None:
    exchange(forged, *set_up_earlier(forged))


@forgery("complete_record")
def two_events_are_exchanged_with_their_times_and_the_chain_computed_again(forged: Forged) -> None:
    one, other = set_up_earlier(forged)
    exchange(forged, one, other)
    one["at"], other["at"] = other["at"], one["at"]


@forgery("chain", Forged.sealed)
def an_event_is_written_twice(forged: Forged) -> None:
    forged["events"].insert(5, dict(forged["events"][5]))


@forgery("chain", Forged.sealed)
def another_head_is_named(forged: Forged) -> None:
    forged["submission"]["chain"]["head"] = "a" * 64


@forgery("chain", Forged.sealed)
def the_end_of_the_chain_is_cut_off(forged: Forged) -> None:
    forged["events"].pop()


@forgery("complete_record")
def a_label_is_edited_with_all_hashes_but_its_facts(forged: Forged) -> None:
    forged.label(DISPUTE)["facts"]["reasoning"] = "I was told so."


@forgery("complete_record")
def the_event_of_a_label_is_removed_and_the_chain_computed_again(forged: Forged) -> None:
    forged.drop_event(forged.event("label_submitted", task_id=PLAIN))


@forgery("complete_record")
def an_event_of_a_label_that_is_nowhere_is_added(forged: Forged) -> None:
    forged.add_event(forged.event("label_submitted"), "label_submitted", "A1", task_id=PLAIN, slot=1, label="0" * 64)


@forgery("complete_record")
def an_event_of_an_unknown_kind_is_added(forged: Forged) -> None:
    forged.add_event(None, "blessed", "M1")


@forgery("complete_record")
def the_time_of_a_label_is_changed(forged: Forged) -> None:
    row = forged.label(PLAIN)
    forged.refact(row, "label", at=later(row["facts"]["at"], -3600))


@forgery("complete_record")
def the_correction_of_a_label_is_hidden(forged: Forged) -> None:
    row = next(row for row in forged["labels"] if row["facts"]["revision"] == 2)
    forged["labels"].remove(row)


@forgery("complete_record")
def a_flag_is_taken_away(forged: Forged) -> None:
    forged["flags"].clear()


@forgery("draws")
def a_flag_is_taken_away_with_its_event(forged: Forged) -> None:
    forged["flags"].clear()
    forged.drop_event(forged.event("flagged"))


@forgery("complete_record")
def a_report_to_the_maintainer_is_reworded(forged: Forged) -> None:
    forged["reports"][0]["note"] = "All is well."


@forgery("complete_record")
def a_trajectory_given_back_is_forgotten(forged: Forged) -> None:
    forged["releases"].clear()


@forgery("complete_record")
def the_reason_of_a_reopening_is_another_one(forged: Forged) -> None:
    forged["reopenings"][0]["reason"] = "A mistake of ours."


@forgery("complete_record")
def somebody_acts_who_was_never_a_member(forged: Forged) -> None:
    forged.drop_event(forged.event("member_added", member="A3"))
