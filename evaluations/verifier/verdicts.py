"""Claims about the outcome: `disputes`, `draws`, `spot_checks`, `final_verdicts` and `export`."""

from __future__ import annotations

import hashlib
import math
import random
from collections.abc import Iterator
from typing import Any

from evaluations.verifier.canonical import hashed
from evaluations.verifier.documents import Bundle, Document
from evaluations.verifier.findings import Finding, Wrong, counted, named, number_of, outcome, text_in, whole_in
from evaluations.verifier.replay import History, Moment, stands
from evaluations.verifier.rules import ADJUDICATED, DISPUTE, FINAL_STATES, UNANIMOUS

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


# --- draws and spot checks -------------------------------------------------------------------------------------------


def draws_claim(bundle: Bundle, history: History) -> Finding:
    """Every draw by its seed, rate and population; the seed is the one whose hash was on record before."""
    wrongs: list[Wrong] = []
    rows = {hashed(row["facts"]): row["facts"] for row in bundle.draws}
    committed = next((text_in(moment.payload, "next_seed") for moment in history.of("imported")), None)
    if committed is None:
        wrongs.append(Wrong("The import fixed no seed for the first draw.", "#0"))
    for number, moment in enumerate(history.of("spot_checks_drawn"), start=1):
        wrongs += _drawn_rightly(moment, rows.pop(text_in(moment.payload, "draw") or "", None), number, committed)
        committed = text_in(moment.payload, "next_seed")
    if bundle.submission["next_seed"] != committed:
        wrongs.append(Wrong("submission.json names another next seed than the last that was fixed.", "submission.json"))
    if [row["facts"]["number"] for row in bundle.draws] != list(range(1, len(bundle.draws) + 1)):
        wrongs.append(Wrong("The draws are not numbered from 1 on.", "draws.jsonl"))
    drawn = sum(len(row["facts"]["drawn"]) for row in bundle.draws)
    of = sum(len(row["facts"]["population"]) for row in bundle.draws)
    rates = ", ".join(sorted({f"{row['facts']['rate'] * 100:g} %" for row in bundle.draws}))
    unanimous = counted(of, "unanimous trajectory", "unanimous trajectories")
    good = f"{counted(len(bundle.draws), 'draw')} took {drawn} of {unanimous}" + (f", at {rates}." if rates else ".")
    return outcome("draws", good, wrongs)


def _drawn_rightly(moment: Moment, draw: Document | None, number: int, committed: str | None) -> Iterator[Wrong]:
    place = number_of(moment.event)
    if draw is None:
        yield Wrong(f"There is no row of the draw of event {place}.", place)
        return
    told = (whole_in(moment.payload, "number"), text_in(moment.payload, "seed"))
    if told != (draw["number"], draw["seed"]) or draw["number"] != number:
        yield Wrong(f"Draw {number} and its event {place} have other numbers or seeds.", place)
        return
    if not draw["population"]:
        yield Wrong(f"Draw {number} was made among no trajectory.", place)
    if committed is None or seed_digest(draw["seed"]) != committed:
        yield Wrong(f"The seed of draw {number} is not the one that was fixed before it.", place)
    if text_in(moment.payload, "next_seed") is None:
        yield Wrong(f"Draw {number} fixed no seed for the next one.", place)
    if draw["rate"] != moment.settings["spot_check_rate"]:
        yield Wrong(f"Draw {number} was made at another rate than was set then.", place)
    if moment.population is None:
        among = counted(len(draw["population"]), "trajectory", "trajectories")
        says = f"Draw {number} was made among {among}. Unanimous and in no draw then: {moment.agreed}."
        yield Wrong(says, place)
    elif list(moment.population) != draw["population"]:
        odd = sorted(set(moment.population) ^ set(draw["population"]))
        yield Wrong(f"Draw {number} was not made among what was unanimous then.", odd[0] if odd else place)
    if draw["drawn"] != chosen_by(draw["population"], draw["rate"], draw["seed"]):
        yield Wrong(f"Draw {number} is not what its seed chooses.", place)


def seed_digest(seed: str) -> str:
    return hashlib.sha256(seed.encode(errors="surrogatepass")).hexdigest()


def chosen_by(population: list[str], rate: float, seed: str) -> list[str] | None:
    """``ceil(rate * n)`` of the sorted population, ranked by one random number each; None where there is no choice.

    The decimal product is rounded first, since 0.1 * 30 is a little more than 3 in binary.
    """
    if not 0 <= rate <= 1 or not seed.isascii():
        return None
    count = math.ceil(round(rate * len(population), 9))
    generator = random.Random(seed)  # noqa: S311 - a reproducible draw, not a secret
    ranked = sorted((generator.random(), item) for item in sorted(population))
    return sorted(item for _, item in ranked[:count])


def spot_checks_claim(bundle: Bundle, history: History) -> Finding:
    """Everything that was drawn or flagged has a decision, and the first one on what was no dispute is blind."""
    drawn = {task_id for row in bundle.draws for task_id in row["facts"]["drawn"]}
    drawn |= {task_id for task_id, past in history.tasks.items() if past.drawn}
    flagged = {row["task_id"] for row in bundle.flags}
    flagged |= {task_id for task_id, past in history.tasks.items() if past.flagged}
    decided = {row["facts"]["task_id"] for row in bundle.adjudications}
    wrongs = [
        Wrong(f"{named(task_id)} was {'drawn' if task_id in drawn else 'flagged'}, and nobody has judged it.", task_id)
        for task_id in sorted(drawn | flagged)
        if task_id not in decided or not history.decided_on(task_id)
    ]
    open_ones = len(wrongs)
    wrongs += [*_opened_rightly(history), *_decided_as_opened(bundle, history)]
    wanted = len(drawn | flagged)
    trajectories = counted(wanted, "trajectory", "trajectories")
    bad = f"Drawn or flagged and not judged: {open_ones} of {trajectories}." if open_ones else ""
    blind = sum(row["facts"]["blind"] for row in bundle.adjudications)
    good = f"{len(drawn)} drawn and {counted(len(flagged), 'flagged trajectory', 'flagged trajectories')} judged, "
    good += f"{counted(blind, 'decision')} blind."
    return outcome("spot_checks", good, wrongs, bad)


def _opened_rightly(history: History) -> Iterator[Wrong]:
    for moment in history.of("adjudication_opened"):
        if moment.before is None:
            continue
        demanded = moment.before.decisions == 0 and moment.before.state != DISPUTE
        if moment.payload.get("blind") is not demanded:
            how = "blind" if demanded else "with its labels"
            says = f"{named(moment.task_id)} had to be opened {how} (event {number_of(moment.event)}), and was not."
            yield Wrong(says, moment.task_id or number_of(moment.event))


def _decided_as_opened(bundle: Bundle, history: History) -> Iterator[Wrong]:
    opened = {
        text_in(moment.payload, "adjudication"): moment.before.blind
        for moment in history.of("adjudication_decided")
        if moment.before is not None
    }
    for row in bundle.adjudications:
        facts = row["facts"]
        if opened.get(hashed(facts)) is not facts["blind"]:
            says = (
                f"The decision on {named(facts['task_id'])} is said to be {'blind' if facts['blind'] else 'not blind'},"
            )
            yield Wrong(f"{says} and was opened otherwise.", facts["task_id"])
