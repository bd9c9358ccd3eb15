"""Chance and a second look: the claims `draws` and `spot_checks`."""

from __future__ import annotations

import hashlib
import math
import random
from collections.abc import Iterator

from evaluations.verifier.documents import Bundle, Document
from evaluations.verifier.findings import Finding
from evaluations.verifier.replay import History, Moment
from evaluations.verifier.rules import DISPUTE
from evaluations.verifier.wrongs import Wrong, counted, hashed, named, number_of, outcome, text_in, whole_in


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
