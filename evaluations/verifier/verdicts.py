"""Claims about the outcome: `disputes`, `draws`, `spot_checks`, `final_verdicts` and `export`."""

from __future__ import annotations

import hashlib
import math
import random
from typing import Any

from evaluations.verifier.canonical import try_digest
from evaluations.verifier.documents import Bundle, Document
from evaluations.verifier.findings import Finding, Violation, Violations, conclude, plural
from evaluations.verifier.replay import History, Moment, Past, Slot
from evaluations.verifier.rules import ADJUDICATED, DISPUTE, FINAL_STATES, UNANIMOUS
from evaluations.verifier.values import get_integer, get_text, show

BY = {UNANIMOUS: "unanimous", ADJUDICATED: "adjudication"}
SUBMISSION, LABELS, VERDICTS = "submission.json", "human-label.json", "final-verdicts.jsonl"

Standing = tuple[str, Any, Any]  # state, verdict, and the basis of a final verdict


def disputes_claim(bundle: Bundle, history: History) -> Finding:
    """Check that labels whose newest revisions differ have a decided adjudication, in rows and in events."""
    decided = {row["facts"]["task_id"] for row in bundle.adjudications}
    newest = bundle.newest_labels()
    by_rows = [task_id for task_id, rows in newest.items() if len({r["facts"]["verdict"] for r in rows.values()}) > 1]
    by_events = [task_id for task_id, past in history.tasks.items() if len(set(past.labels.values())) > 1]
    differing = list(dict.fromkeys(by_rows + by_events))
    open_ones = [t for t in differing if t not in decided or not history.decided_on(t)]
    violations = [(f"{show(task_id)} has labels that differ, and no decision.", task_id) for task_id in open_ones]
    disputes = plural(len(differing), "dispute has", "disputes have")
    good = f"{len(differing)} of {disputes} an adjudication."
    return conclude("disputes", good, violations, f"{len(open_ones)} of {disputes} no adjudication.")


def draws_claim(bundle: Bundle, history: History) -> Finding:
    """Check every draw by its seed, rate and population; the hash of the seed must be recorded before the draw."""
    violations: list[Violation] = []
    draws = [row["facts"] for row in bundle.draws]
    rows = {try_digest(draw): draw for draw in draws}
    committed = next((get_text(moment.payload, "next_seed") for moment in history.of("imported")), None)
    if committed is None:
        violations.append(("The import fixed no seed for the first draw.", "#0"))
    number = 0
    for moment in history.of("spot_checks_drawn", "sample_planned"):
        if moment.kind == "sample_planned":
            violations += _check_secret(moment, committed)
        else:
            number += 1
            draw = rows.pop(get_text(moment.payload, "draw") or "", None)
            violations += _check_draw(moment, draw, number, committed)
        committed = get_text(moment.payload, "next_seed")
    if bundle.submission["next_seed"] != committed:
        violations.append(("submission.json names another next seed than the last fixed one.", SUBMISSION))
    if [draw["number"] for draw in draws] != list(range(1, len(draws) + 1)):
        violations.append(("The draws are not numbered from 1.", "draws.jsonl"))
    drawn = sum(len(draw["drawn"]) for draw in draws)
    unanimous = plural(sum(len(d["population"]) for d in draws), "unanimous trajectory", "unanimous trajectories")
    rates = ", ".join(sorted({f"{draw['rate'] * 100:g}%" for draw in draws}))
    good = f"{plural(len(draws), 'draw')} took {drawn} of {unanimous}" + (f", at {rates}." if rates else ".")
    return conclude("draws", good, violations)


def _check_secret(moment: Moment, committed: str | None) -> Violations:
    place = moment.event_place
    if committed is None or seed_digest(get_text(moment.payload, "secret") or "") != committed:
        yield f"The secret of the sample plan ({place}) is not the seed that was fixed before it.", place
    if get_text(moment.payload, "next_seed") is None:
        yield f"The sample plan ({place}) fixed no seed for the next draw.", place


def _check_draw(moment: Moment, draw: Document | None, number: int, committed: str | None) -> Violations:
    place = moment.event_place
    if draw is None:
        yield f"Event {place} has no row for its draw.", place
        return
    stated = (get_integer(moment.payload, "number"), get_text(moment.payload, "seed"))
    if stated != (draw["number"], draw["seed"]) or draw["number"] != number:
        yield f"Draw {number} and its event {place} have other numbers or seeds.", place
        return
    if not draw["population"]:
        yield f"Draw {number} had no trajectories to choose from.", place
    if committed is None or seed_digest(draw["seed"]) != committed:
        yield f"The seed of draw {number} is not the one that was fixed before it.", place
    if get_text(moment.payload, "next_seed") is None:
        yield f"Draw {number} fixed no seed for the next one.", place
    if draw["rate"] != moment.settings["spot_check_rate"]:
        yield f"Draw {number} used another rate than the one set at that time.", place
    if moment.population is None:
        among = plural(len(draw["population"]), "trajectory", "trajectories")
        yield f"Draw {number} was over {among}. Unanimous and in no draw then: {moment.agreed}.", place
    elif list(moment.population) != draw["population"]:
        odd = sorted(set(moment.population) ^ set(draw["population"]))
        yield f"Draw {number} was not over the unanimous trajectories of that time.", odd[0] if odd else place
    if draw["drawn"] != draw_sample(draw["population"], draw["rate"], draw["seed"]):
        yield f"Draw {number} does not match its seed.", place


def seed_digest(seed: str) -> str:
    return hashlib.sha256(seed.encode(errors="surrogatepass")).hexdigest()


def draw_sample(population: list[str], rate: float, seed: str) -> list[str] | None:
    """Return ``ceil(rate * n)`` of n items, those with the lowest random numbers; None if rate or seed is invalid.

    Each item gets one number, in sorted order. The product is rounded first, since 0.1 * 30 exceeds 3 in binary.
    """
    if not 0 <= rate <= 1 or not seed.isascii():
        return None
    count = math.ceil(round(rate * len(population), 9))
    generator = random.Random(seed)  # noqa: S311 - a reproducible draw, not a secret
    ranked = sorted((generator.random(), item) for item in sorted(population))
    return sorted(item for _, item in ranked[:count])


def spot_checks_claim(bundle: Bundle, history: History) -> Finding:
    """Check that each drawn or flagged trajectory has a decision, whose first one is blind if it was not a dispute."""
    drawn = {task_id for row in bundle.draws for task_id in row["facts"]["drawn"]}
    drawn |= {task_id for task_id, past in history.tasks.items() if past.drawn}
    flagged = {row["task_id"] for row in bundle.flags}
    flagged |= {task_id for task_id, past in history.tasks.items() if past.flagged}
    decided = {row["facts"]["task_id"] for row in bundle.adjudications}
    violations = [
        (f"{show(task_id)} was {'drawn' if task_id in drawn else 'flagged'} and not judged.", task_id)
        for task_id in sorted(drawn | flagged)
        if task_id not in decided or not history.decided_on(task_id)
    ]
    open_ones, trajectories = len(violations), plural(len(drawn | flagged), "trajectory", "trajectories")
    violations += [*_opened_wrongly(history), *_decided_unlike_opened(bundle, history)]
    bad = f"Drawn or flagged and not judged: {open_ones} of {trajectories}." if open_ones else ""
    blind = plural(sum(row["facts"]["blind"] for row in bundle.adjudications), "decision")
    good = f"{len(drawn)} drawn and {plural(len(flagged), 'flagged trajectory', 'flagged trajectories')} judged, "
    return conclude("spot_checks", f"{good}{blind} blind.", violations, bad)


def _opened_wrongly(history: History) -> Violations:
    for moment in history.of("adjudication_opened"):
        if moment.before is None:
            continue
        demanded = moment.before.decisions == 0 and moment.before.state != DISPUTE
        if moment.payload.get("blind") is not demanded:
            how, place = "blind" if demanded else "with its labels", moment.event_place
            says = f"{show(moment.task_id)} had to be opened {how} (event {place}), and was not."
            yield says, moment.task_id or place


def _decided_unlike_opened(bundle: Bundle, history: History) -> Violations:
    decided = [
        (get_text(moment.payload, "adjudication"), moment.before) for moment in history.of("adjudication_decided")
    ]
    opened = {facts: past.blind for facts, past in decided if past is not None}
    for facts in (row["facts"] for row in bundle.adjudications):
        if opened.get(try_digest(facts)) is not facts["blind"]:
            how = "blind" if facts["blind"] else "not blind"
            says = f"The decision on {show(facts['task_id'])} is recorded as {how}, but was opened otherwise."
            yield says, facts["task_id"]


def final_verdicts_claim(bundle: Bundle, history: History) -> Finding:
    """Check each line of final-verdicts.jsonl against the result of the rows, and against that of the events."""
    violations = []
    by_rows = _standing_by_rows(bundle)
    stated = [row["task_id"] for row in bundle.final_verdicts]
    if stated != [line["task_id"] for line in bundle.to_label()]:
        violations.append(("final-verdicts.jsonl does not list these trajectories in their order.", VERDICTS))
    for row in bundle.final_verdicts:
        task_id = row["task_id"]
        own, past = (row["state"], row["verdict"], row["by"]), history.tasks.get(task_id)
        by_events = (past.state, past.verdict, BY.get(past.state)) if past else None
        for source, expected in (("labels and decisions", by_rows.get(task_id)), ("events", by_events)):
            if expected != own:
                says = f"{show(task_id)} is {_describe(own)}; by its {source} {_describe(expected)}."
                violations.append((says, task_id))
    final = sum(row["state"] in FINAL_STATES for row in bundle.final_verdicts)
    unanimous = sum(row["by"] == BY[UNANIMOUS] for row in bundle.final_verdicts)
    of_all = plural(len(stated), "verdict is", "verdicts are")
    good = f"{final} of {of_all} final: {unanimous} unanimous, {final - unanimous} by adjudication."
    return conclude("final_verdicts", good, violations)


def _describe(standing: Standing | None) -> str:
    return "nothing" if standing is None else f"{show(standing[0])} with verdict {show(standing[1])}"


def _standing_by_rows(bundle: Bundle) -> dict[str, Standing]:
    """Return the standing of each trajectory from the rows alone, without the events."""
    labels = bundle.newest_labels()
    flagged = {row["task_id"] for row in bundle.flags}
    drawn = {task_id: False for row in bundle.draws for task_id in row["facts"]["population"]}
    drawn |= {task_id: True for row in bundle.draws for task_id in row["facts"]["drawn"]}
    decisions = sorted((row["facts"] for row in bundle.adjudications), key=lambda facts: int(facts["revision"]))
    last = {facts["task_id"]: facts for facts in decisions}
    asked = {row["task_id"]: row["revision"] for row in sorted(bundle.reopenings, key=lambda row: int(row["revision"]))}
    standing = {}
    for task_id in (line["task_id"] for line in bundle.to_label()):
        past = Past(
            bundle.submission["required_labels"],
            {n: Slot(str(n), "", verdict=row["facts"]["verdict"]) for n, row in labels.get(task_id, {}).items()},
            flagged=task_id in flagged,
            drawn=drawn.get(task_id),
            decisions=last[task_id]["revision"] if task_id in last else 0,
            decided=last[task_id]["verdict"] if task_id in last else None,
            asked_for=asked.get(task_id, 0),
        )
        standing[task_id] = (past.state, past.verdict, BY.get(past.state))
    return standing


def export_claim(bundle: Bundle, history: History) -> Finding:
    """Check that human-label.json has exactly these verdicts, and the event of the last freeze their digest."""
    verdicts = plural(len(bundle.final_verdicts), "verdict")
    good = f"human-label.json has {verdicts}, and the event of the freeze is over the same."
    return conclude("export", good, [*_check_human_label(bundle), *_check_freeze(bundle, history)])


def _check_human_label(bundle: Bundle) -> Violations:
    document, missing = bundle.human_label, list(bundle.submission["missing"])
    if bundle.sample_plan is not None:
        stopped = "stopped" in bundle.sample_plan
        missing.append(sample_note(len(bundle.to_label()), len(bundle.trajectories), stopped))
    if missing or bundle.submission["partial"]:
        if not isinstance(document, dict) or document.get("partial") is not True:
            yield "human-label.json does not say that it is partial.", LABELS
            return
        if document.get("missing") != missing:
            yield "human-label.json and submission.json differ on what is missing.", LABELS
        document = document.get("labels")
    if not isinstance(document, list):
        yield "human-label.json has no list of labels.", LABELS
        return
    texts = {(task["task_id"], task["version"]): task["text"] for task in bundle.catalogue}
    confirmed = {t["task_id"]: texts.get((t["task_id"], t["task_version"])) for t in bundle.trajectories}
    key = f"{bundle.submission['agent']}_human_label"
    final = [row for row in bundle.final_verdicts if row["verdict"] is not None]
    if len(document) != len(final):
        yield f"human-label.json has {plural(len(document), 'label')}; final verdicts: {len(final):,}.", LABELS
    for entry, row in zip(document, final, strict=False):
        task_id = row["task_id"]
        if entry != {"task_id": task_id, "confirmed_task": confirmed.get(task_id), key: str(row["verdict"])}:
            yield f"human-label.json has another label for {show(task_id)}.", task_id


def sample_note(labelled: int, total: int, stopped: bool) -> Document:
    """Return the statement in files of verdicts that these are of a planned sample."""
    why = "labelling of the sample stopped early" if stopped else "the sample plan drew no others"
    says = f"Estimated from the labels of {labelled:,} of {total:,} trajectories: {why}."
    return {"code": "planned_sample", "message": says, "where": ""}


def _check_freeze(bundle: Bundle, history: History) -> Violations:
    """Check that the digest of the last freeze matches final-verdicts.jsonl and the verdicts by the events."""
    freezes = history.of("frozen")
    if not freezes or not history.frozen:
        yield "No valid freeze states these verdicts.", "events.jsonl"
        return
    stated, place = get_text(freezes[-1].payload, "verdicts"), freezes[-1].event_place
    if stated != try_digest({row["task_id"]: row["verdict"] for row in bundle.final_verdicts}):
        yield "The event of the freeze covers other verdicts than final-verdicts.jsonl.", place
    if stated != try_digest(history.verdicts):
        yield "The event of the freeze covers other verdicts than existed then.", place
