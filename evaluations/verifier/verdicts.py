"""What the labels come to: the claims `disputes`, `final_verdicts` and `export`."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from evaluations.verifier.documents import Bundle, Document
from evaluations.verifier.findings import Finding
from evaluations.verifier.replay import History, stands
from evaluations.verifier.rules import ADJUDICATED, FINAL_STATES, UNANIMOUS
from evaluations.verifier.wrongs import Wrong, counted, hashed, named, number_of, outcome, text_in

BY = {UNANIMOUS: "unanimous", ADJUDICATED: "adjudication"}
Standing = tuple[str, Any, Any]  # state, verdict, and by what it is final


def disputes_claim(bundle: Bundle, history: History) -> Finding:
    """Labels that differ in their newest revisions, and a decided adjudication in rows and events."""
    labels = newest_labels(bundle)
    decided = {row["facts"]["task_id"] for row in bundle.adjudications}
    by_rows = [task_id for task_id, slots in labels.items() if len(set(slots.values())) > 1]
    by_events = [task_id for task_id, past in history.tasks.items() if len(set(past.said.values())) > 1]
    differing = list(dict.fromkeys(by_rows + by_events))
    open_ones = [t for t in differing if t not in decided or not history.decided_on(t)]
    wrongs = [Wrong(f"{named(task_id)} has labels that differ, and no decision.", task_id) for task_id in open_ones]
    disputes = counted(len(differing), "dispute has", "disputes have")
    good = f"{len(differing)} of {disputes} an adjudication."
    return outcome("disputes", good, wrongs, f"{len(open_ones)} of {disputes} no adjudication.")


def newest_labels(bundle: Bundle) -> dict[str, dict[int, int]]:
    """By task and slot: the verdict of the newest revision, by the rows."""
    newest: dict[tuple[str, int], Document] = {}
    for row in bundle.labels:
        facts = row["facts"]
        key = (facts["task_id"], facts["slot"])
        if key not in newest or newest[key]["revision"] < facts["revision"]:
            newest[key] = facts
    found: dict[str, dict[int, int]] = {}
    for (task_id, slot), facts in newest.items():
        found.setdefault(task_id, {})[slot] = facts["verdict"]
    return found


def final_verdicts_claim(bundle: Bundle, history: History) -> Finding:
    """final-verdicts.jsonl is what the rows come to, and what the events come to, one by one."""
    wrongs = []
    by_rows = _by_rows(bundle)
    stated = [row["task_id"] for row in bundle.final_verdicts]
    if stated != [line["task_id"] for line in bundle.trajectories]:
        wrongs.append(
            Wrong("final-verdicts.jsonl is not of these trajectories in their order.", "final-verdicts.jsonl")
        )
    for row in bundle.final_verdicts:
        task_id = row["task_id"]
        says = (row["state"], row["verdict"], row["by"])
        past = history.tasks.get(task_id)
        by_events = (past.state, past.verdict, BY.get(past.state)) if past else None
        for source, expected in (("labels and decisions", by_rows.get(task_id)), ("events", by_events)):
            if expected != says:
                wrongs.append(
                    Wrong(f"{named(task_id)} is {_spoken(says)}; by its {source} {_spoken(expected)}.", task_id)
                )
    final = sum(row["state"] in FINAL_STATES for row in bundle.final_verdicts)
    unanimous = sum(row["by"] == BY[UNANIMOUS] for row in bundle.final_verdicts)
    of_all = counted(len(stated), "verdict is", "verdicts are")
    good = f"{final} of {of_all} final: {unanimous} unanimous, {final - unanimous} by adjudication."
    return outcome("final_verdicts", good, wrongs)


def _spoken(said: Standing | None) -> str:
    return "nothing" if said is None else f"{named(said[0])} with verdict {named(said[1])}"


def _by_rows(bundle: Bundle) -> dict[str, Standing]:
    """What each trajectory comes to by its rows, without a look at the events."""
    labels = newest_labels(bundle)
    flagged = {row["task_id"] for row in bundle.flags}
    drawn = {task_id: False for row in bundle.draws for task_id in row["facts"]["population"]}
    drawn |= {task_id: True for row in bundle.draws for task_id in row["facts"]["drawn"]}
    last: dict[str, Document] = {}
    for row in sorted(bundle.adjudications, key=lambda row: row["facts"]["revision"]):
        last[row["facts"]["task_id"]] = row["facts"]
    asked: dict[str, int] = {}
    for row in bundle.reopenings:
        asked[row["task_id"]] = max(asked.get(row["task_id"], 0), row["revision"])
    found = {}
    for line in bundle.trajectories:
        task_id = line["task_id"]
        said, decision = list(labels.get(task_id, {}).values()), last.get(task_id)
        state = stands(
            labels=said,
            required=bundle.submission["required_labels"],
            asked_for=asked.get(task_id, 0),
            answered=decision["revision"] if decision else 0,
            decided=decision["verdict"] if decision else None,
            flagged=task_id in flagged,
            drawn=drawn.get(task_id),
        )
        verdict = decision["verdict"] if decision and state == ADJUDICATED else said[0] if state == UNANIMOUS else None
        found[task_id] = (state, verdict, BY.get(state))
    return found


def export_claim(bundle: Bundle, history: History) -> Finding:
    """human-label.json has these verdicts and nothing else, and the event of the last freeze their digest."""
    wrongs = [*_human_label(bundle), *_in_the_freeze(bundle, history)]
    verdicts = counted(len(bundle.final_verdicts), "verdict")
    good = f"human-label.json has {verdicts}, and the event of the freeze is over the same."
    return outcome("export", good, wrongs)


def _human_label(bundle: Bundle) -> Iterator[Wrong]:
    document, file = bundle.human_label, "human-label.json"
    if bundle.submission["partial"]:
        if not isinstance(document, dict) or document.get("partial") is not True:
            yield Wrong("human-label.json does not say that it is partial.", file)
            return
        if document.get("missing") != bundle.submission["missing"]:
            yield Wrong(
                "human-label.json lists as missing what submission.json does not, or the other way round.", file
            )
        document = document.get("labels")
    if not isinstance(document, list):
        yield Wrong("human-label.json has no list of labels.", file)
        return
    texts = {(task["task_id"], task["version"]): task["text"] for task in bundle.catalogue}
    versions = {line["task_id"]: line["task_version"] for line in bundle.trajectories}
    key = f"{bundle.submission['agent']}_human_label"
    expected = [
        {
            "task_id": row["task_id"],
            "confirmed_task": texts.get((row["task_id"], versions.get(row["task_id"]))),
            key: str(row["verdict"]),
        }
        for row in bundle.final_verdicts
        if row["verdict"] is not None
    ]
    if len(document) != len(expected):
        yield Wrong(f"human-label.json has {counted(len(document), 'label')}; final verdicts: {len(expected):,}.", file)
    for entry, wanted in zip(document, expected, strict=False):
        if entry != wanted:
            yield Wrong(f"human-label.json says something else of {named(wanted['task_id'])}.", str(wanted["task_id"]))


def _in_the_freeze(bundle: Bundle, history: History) -> Iterator[Wrong]:
    """The last freeze was over the verdicts that the events come to, which are those of final-verdicts.jsonl."""
    freezes = history.of("frozen")
    if not freezes or not history.frozen:
        yield Wrong("No freeze that stands states these verdicts.", "events.jsonl")
        return
    stated, place = text_in(freezes[-1].payload, "verdicts"), number_of(freezes[-1].event)
    if stated != hashed({row["task_id"]: row["verdict"] for row in bundle.final_verdicts}):
        yield Wrong("The event of the freeze is over other verdicts than final-verdicts.jsonl.", place)
    if stated != hashed(history.verdicts):
        yield Wrong("The event of the freeze is over other verdicts than there were then.", place)
