"""The check `robustness`: tests of judges on changed copies of failures, computed again from all of their judgments.

The judgments of a test are bound to the chain of events: they have the digest that the end of their run recorded.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from typing import Any

from evaluations.verifier.canonical import try_digest
from evaluations.verifier.documents import Bundle, Document
from evaluations.verifier.figures import compare
from evaluations.verifier.findings import Finding, Violations, conclude, noted
from evaluations.verifier.judgments import RUN_FINISHED, THEIR_WORD, RecordedRun, recorded_runs
from evaluations.verifier.numbers import gap_figure, rate_figure
from evaluations.verifier.rules import ADDS_NO_SUCCESS, CHANGES_VERSION, FAILURE, KEEPS_VERDICT, SUCCESS

CARDS = "judges/robustness.jsonl"
ORIGINAL = 1  # repetition of the unchanged trajectories; the first change has the next one
Verdicts = dict[int, dict[str, Any]]  # by repetition and task


def robustness_findings(bundle: Bundle) -> list[Finding]:
    """Check judges/robustness.jsonl; no finding if the bundle has no such test."""
    cards = bundle.robustness
    if not cards:
        return []
    if later := [card["judge"] for card in cards if card["operators_version"] > CHANGES_VERSION]:
        says = f"Not checked: the changes for {later[0]} are of a later version. Check with its verify.py."
        return [noted("robustness", says, later)]
    recorded, _ = recorded_runs(bundle.events)  # what is wrong there is another finding
    if violations := [*_unlike_events(cards, recorded), *_impossible_cards(bundle, cards)]:
        return [conclude("robustness", "", violations)]
    stated = [{"judge": card["judge"], "changes": card["changes"]} for card in cards]
    recomputed = [{"judge": card["judge"], "changes": recompute_changes(card)} for card in cards]
    return [compare(stated, recomputed, "the judgments give").conclude("robustness", f" {THEIR_WORD}")]


def recompute_changes(card: Document) -> list[Document]:
    """Return the figures of each change, in the order of the card.

    A pair has the judge's verdicts on a trajectory and on its changed copy. Rates and their difference are of the pairs
    with both verdicts.
    """
    verdicts = _sort(card)
    return [
        _recompute_change(change, verdicts[ORIGINAL], verdicts[number])
        for number, change in enumerate(card["changes"], ORIGINAL + 1)
    ]


def _sort(card: Document) -> Verdicts:
    found: Verdicts = defaultdict(dict)
    for line in card["judgments"]:
        found[line["repetition"]][line["task_id"]] = line["verdict"]
    return found


def _recompute_change(change: Document, originals: dict[str, Any], copies: dict[str, Any]) -> Document:
    pairs = [(originals.get(task_id), verdict) for task_id, verdict in copies.items()]
    scored = [pair for pair in pairs if None not in pair]
    cells = Counter((original == SUCCESS, changed == SUCCESS) for original, changed in scored)
    n, flips, added = len(scored), sum(original != changed for original, changed in scored), cells[False, True]
    same = change["operator"] in KEEPS_VERDICT
    return {
        "operator": change["operator"],
        "expects": "same" if same else "not_success",
        "n": n,
        "flips": flips,
        "added_false_positives": added,
        "false_positive_rate": {
            "original": rate_figure(cells[True, True] + cells[True, False], n),
            "changed": rate_figure(cells[True, True] + added, n),
        },
        "difference": gap_figure(added, cells[True, False], n),
        "unscored": len(pairs) - n,
        "not_applicable": change["not_applicable"],  # by reason; their number is checked
        "result": "not tested" if not n else "fail" if (flips if same else added) else "pass",
    }


def _unlike_events(cards: list[Document], recorded: dict[int, RecordedRun]) -> Violations:
    for number, times in Counter(card["event_run"] for card in cards).items():
        if times > 1:
            yield f"Run {number} is listed {times} times", CARDS
    for card in cards:
        run, where = recorded.get(card["event_run"]), f"{card['judge']}: run {card['event_run']}"
        if run is None or not run.test:
            yield f"{where} is no test of the chain of events", CARDS
            continue
        named = (run.start["payload"].get("judge"), run.start["payload"].get("fingerprint"))
        if named not in ((card["judge"], card["fingerprint"]), (card["judge"].removesuffix("@1"), card["fingerprint"])):
            yield f"{where} is of another judge in the chain of events", CARDS
        if run.end is None or run.end["kind"] != RUN_FINISHED:
            yield f"{where} has not finished", CARDS
        elif run.digest != try_digest([{**line, "error": False} for line in card["judgments"]]):
            yield f"{where} has other judgments than the chain of events recorded", CARDS


def _impossible_cards(bundle: Bundle, cards: list[Document]) -> Violations:
    final = {line["task_id"]: line["verdict"] for line in bundle.final_verdicts}
    for card in cards:
        verdicts, judge = _sort(card), card["judge"]
        names = [change.get("operator") for change in card["changes"]]
        for name in names:
            if not isinstance(name, str):
                yield f"{judge}: a change has no name", CARDS
            elif name not in KEEPS_VERDICT | ADDS_NO_SUCCESS or names.count(name) > 1:
                yield f"{judge}: the change {name} is unknown or listed twice", CARDS
        originals = verdicts[ORIGINAL]
        if len(card["judgments"]) != sum(map(len, verdicts.values())):
            yield f"{judge}: a trajectory was judged twice with the same change", CARDS
        if strange := sorted(set(verdicts) - {*range(ORIGINAL, ORIGINAL + len(names) + 1)}):
            yield f"{judge}: repetition {strange[0]} belongs to no change", CARDS
        for task_id in sorted(originals):
            if final.get(task_id) != FAILURE:
                yield f"{judge}: {task_id} is not a failure by its final verdict", task_id
        for number, change in enumerate(card["changes"], ORIGINAL + 1):
            name, copies = change.get("operator"), verdicts[number]
            if not copies.keys() <= originals.keys():
                yield f"{judge}, {name}: a copy has no original", CARDS
            elif len(copies) + _count(change.get("not_applicable")) != len(originals):
                yield f"{judge}, {name}: {len(copies)} copies and those left out are not {len(originals)}", CARDS


def _count(left_out: Any) -> int:
    """Return the number of trajectories left out, or -1 if it is not stated by reason."""
    numbers = list(left_out.values()) if isinstance(left_out, dict) else [-1]
    good = all(isinstance(number, int) and not isinstance(number, bool) and number > 0 for number in numbers)
    return sum(numbers) if good else -1
