"""What was done when: the claims `blind_order`, `fixed_labels` and `frozen`."""

from __future__ import annotations

from collections.abc import Iterator

from evaluations.verifier.documents import Bundle
from evaluations.verifier.findings import Finding
from evaluations.verifier.replay import History, Moment
from evaluations.verifier.rules import (
    IN_REVIEW,
    MINIMUM_LABELS,
    NOT_FINAL,
    TOLERANCE,
    WHILE_FROZEN,
    undated,
)
from evaluations.verifier.wrongs import Wrong, counted, named, number_of, outcome, passed_between, together, whole_in

LABELLING = ("label_submitted", "label_revised")


def blind_order_claim(bundle: Bundle, history: History) -> Finding:
    """Labels come before everything that could show their authors what others, or judges, say of the trajectory."""
    labels, shown = len(history.of(*LABELLING)), len(history.of("judgments_shown"))
    good = f"{counted(labels, 'label or revision', 'labels and revisions')}, each before its author could see another"
    return outcome("blind_order", f"{good} one; {counted(shown, 'second stage')}.", _not_blind(bundle, history))


def _not_blind(bundle: Bundle, history: History) -> Iterator[Wrong]:
    for moment in history.of(*LABELLING):
        yield from _seen_before(moment)
    yield from _shown_in_time(history)
    yield from _looked_in_rows(bundle)


def _shown_in_time(history: History) -> Iterator[Wrong]:
    for moment in history.of("judgments_shown"):
        if not _own_label_is_in(moment):
            says = f"{named(moment.actor)} was shown what judges say of {named(moment.task_id)} before labelling it."
            yield Wrong(says, moment.task_id or number_of(moment.event))
        if moment.settings["second_stage"] is not True:
            says = f"Event {number_of(moment.event)} shows judgments, and there is no second stage then."
            yield Wrong(says, number_of(moment.event))


def _seen_before(moment: Moment) -> Iterator[Wrong]:
    place = moment.task_id or number_of(moment.event)
    what = f"The label of {named(moment.actor)} on {named(moment.task_id)} (event {number_of(moment.event)})"
    if moment.results_open:
        yield Wrong(f"{what} was made after the results were opened.", place)
    slots = moment.before.slots.items() if moment.before else ()
    own = {number: slot for number, slot in slots if slot.holder == moment.actor}
    if any(slot.looked for slot in own.values()):
        yield Wrong(f"{what} was made after they were shown what judges say.", place)
    this = whole_in(moment.payload, "slot")
    other = next((number for number, slot in own.items() if slot.verdict is not None and number != this), None)
    if other is not None:
        yield Wrong(f"{what} is their second one: they have slot {other} already.", place)


def _own_label_is_in(moment: Moment) -> bool:
    slot = moment.before.slots.get(whole_in(moment.payload, "slot") or 0) if moment.before else None
    return slot is not None and slot.holder == moment.actor and slot.verdict is not None


def _looked_in_rows(bundle: Bundle) -> Iterator[Wrong]:
    """The same by the times of the rows: what was shown comes after every revision of that label."""
    last: dict[tuple[str, str], str] = {}
    opened = bundle.submission["opened_at"]
    for row in bundle.labels:
        facts = row["facts"]
        key = (facts["task_id"], row["annotator"])
        last[key] = max(last.get(key, ""), facts["at"])
        if (passed_between(opened, facts["at"]) or 0) > 0:
            yield Wrong(f"{named(key[1])} labelled {named(key[0])} after the results were opened.", key[0])
    for row in bundle.informed:
        key = (row["shown"]["task_id"], row["annotator"])
        seconds = passed_between(last.get(key), row["shown"]["at"])
        if seconds is None or seconds < 0:
            yield Wrong(f"{named(key[1])} was shown judgments of {named(key[0])} before the label.", key[0])


def fixed_labels_claim(bundle: Bundle, history: History) -> Finding:
    """Once an adjudicator has opened a trajectory, or a draw was made over its labels, they stay as they are."""
    wrongs = []
    for moment in history.of(*LABELLING):
        place = moment.task_id or number_of(moment.event)
        what = f"The label of {named(moment.actor)} on {named(moment.task_id)} (event {number_of(moment.event)})"
        if moment.before is not None and moment.before.was_opened:
            wrongs.append(Wrong(f"{what} was made after an adjudicator had opened it.", place))
        if moment.before is not None and moment.before.was_drawn_over:
            wrongs.append(Wrong(f"{what} was made after a draw over its labels.", place))
        if moment.frozen:
            wrongs.append(Wrong(f"{what} was made while the submission was frozen.", place))
    for moment in history.of("adjudication_opened"):
        if moment.before is not None and moment.before.state == IN_REVIEW:
            says = f"{named(moment.task_id)} was opened for adjudication before all its labels were in."
            wrongs.append(Wrong(says, moment.task_id or ""))
    opened = _first_opened(bundle)
    for row in bundle.labels:
        task_id = row["facts"]["task_id"]
        if (passed_between(opened.get(task_id), row["facts"]["at"]) or 0) > 0:
            says = f"{named(row['annotator'])} labelled {named(task_id)} later than its adjudication was opened."
            wrongs.append(Wrong(says, task_id))
    labels, openings = counted(len(bundle.labels), "label"), counted(len(opened), "trajectory", "trajectories")
    good = f"{labels}, which stayed once a draw was made over them; {openings} opened, each with labels that stayed."
    return outcome("fixed_labels", good, wrongs)


def _first_opened(bundle: Bundle) -> dict[str, str]:
    found: dict[str, str] = {}
    for row in bundle.adjudications:
        task_id = row["facts"]["task_id"]
        found[task_id] = min(found.get(task_id, row["opened_at"]), row["opened_at"])
    return found


def frozen_claim(bundle: Bundle, history: History) -> Finding:
    """The last freeze stands, everything was final then, and since then nothing happened that counts."""
    submission, wrongs = bundle.submission, []
    for moment in history.moments:
        if moment.frozen and moment.kind not in WHILE_FROZEN:
            says = f"Event {number_of(moment.event)} is {named(moment.kind)}, in a frozen submission."
            wrongs.append(Wrong(says, number_of(moment.event)))
        if moment.kind == "frozen" and moment.unfinished:
            says = f"{counted(moment.unfinished, 'trajectory', 'trajectories')} had no final verdict when it was frozen"
            wrongs.append(Wrong(f"{says} ({number_of(moment.event)}).", number_of(moment.event)))
        if moment.kind == "submission_reopened" and (moment.results_open or not moment.frozen):
            why = "after its results were opened" if moment.results_open else "and was not frozen"
            says = f"Event {number_of(moment.event)} reopens the submission, {why}."
            wrongs.append(Wrong(says, number_of(moment.event)))
    wrongs += [*_freeze_times(bundle, history), *_opened_times(bundle, history), *_missing_stated(bundle, history)]
    good = f"Frozen at {named(submission['frozen_at'])}, with {counted(len(bundle.trajectories), 'final verdict')}."
    return outcome("frozen", good, wrongs)


def _freeze_times(bundle: Bundle, history: History) -> Iterator[Wrong]:
    freezes, stated = history.of("frozen"), bundle.submission["frozen_at"]
    if not history.frozen:
        says = "The submission is not frozen" if stated is None else "submission.json says frozen, and no event does"
        yield Wrong(f"{says}: its labels could still change.", "submission.json")
    elif stated is None:
        yield Wrong("The events say frozen, and submission.json does not.", "submission.json")
    elif not together(stated, freezes[-1].event["at"], TOLERANCE):
        yield Wrong("submission.json states another time of the freeze than its event.", "submission.json")
    if history.frozen:
        yield from _after_the_freeze(bundle, freezes[-1].event["at"])


def _after_the_freeze(bundle: Bundle, frozen_at: str) -> Iterator[Wrong]:
    """By the times: a freeze that was dated back is older than what it froze."""
    for row in bundle.labels + bundle.adjudications:
        facts = row["facts"]
        if (passed_between(frozen_at, facts["at"]) or 0) > TOLERANCE:
            yield Wrong(f"{named(facts['task_id'])} was judged later than the freeze.", facts["task_id"])
    if (passed_between(bundle.submission["created_at"], frozen_at) or 0) < -TOLERANCE:
        yield Wrong("The submission is younger than its freeze.", "submission.json")


def _opened_times(bundle: Bundle, history: History) -> Iterator[Wrong]:
    openings, stated = history.of("results_opened"), bundle.submission["opened_at"]
    if any(not moment.frozen for moment in openings):
        yield Wrong("The results were opened while the submission was not frozen.", number_of(openings[0].event))
    if (stated is None) != (not openings):
        yield Wrong("submission.json and events do not agree on whether the results were opened.", "submission.json")
    elif openings and (passed_between(bundle.submission["frozen_at"], stated) or 0) < -TOLERANCE:
        yield Wrong("The results were opened before the freeze.", "submission.json")
    elif openings and not together(stated, openings[0].event["at"], TOLERANCE):
        yield Wrong("submission.json states another time of the opening than its event.", "submission.json")


def _missing_stated(bundle: Bundle, history: History) -> Iterator[Wrong]:
    """``partial`` and ``missing`` of submission.json are what these documents lack."""
    submission = bundle.submission
    if submission["partial"] != bool(submission["missing"]):
        yield Wrong(
            "submission.json lists what is missing and is not partial, or the other way round.", "submission.json"
        )
    stated = {_problem(each["code"], each["where"]) for each in submission["missing"]}
    real = {_problem("not_frozen", "")} if not history.frozen else set()
    if submission["required_labels"] < MINIMUM_LABELS:
        real.add(_problem("too_few_labels_required", ""))
    for task_id, past in history.tasks.items():
        if past.open is not None:
            real.add(_problem("adjudication_open", task_id))
        elif past.state in NOT_FINAL:
            real.add(_problem(NOT_FINAL[past.state], task_id))
    present = {undated(task_id) for task_id in history.tasks}
    tasks = {undated(task["task_id"]) for task in bundle.catalogue}
    real |= {_problem("task_not_covered", task_id) for task_id in tasks - present}
    for code, where in sorted(real - stated):
        yield Wrong(f"submission.json does not say that something is missing ({code}).", where or "submission.json")
    for code, where in sorted(stated - real):
        yield Wrong(
            f"submission.json says that something is missing which is there ({named(code)}).",
            where or "submission.json",
        )


def _problem(code: str, where: str) -> tuple[str, str]:
    return (code, undated(where) if code == "task_not_covered" else where)
