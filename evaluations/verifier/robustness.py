"""The check `robustness`: figures of attacks on judges, computed again from the verdicts of each pair."""

from __future__ import annotations

from collections import Counter
from typing import Any

from evaluations.verifier.documents import Bundle, Document
from evaluations.verifier.figures import compare
from evaluations.verifier.findings import Finding, Violations, conclude
from evaluations.verifier.numbers import gap_figure, rate_figure
from evaluations.verifier.rules import FAILURE, KEEPS_VERDICT, SUCCESS

CARDS = "judges/robustness.jsonl"
STATED_ONLY = ("not_applicable",)  # changes that did not apply leave no pair


def robustness_findings(bundle: Bundle) -> list[Finding]:
    """Check judges/robustness.jsonl; no finding if the bundle has no card."""
    if not bundle.robustness:
        return []
    if violations := [*_impossible_pairs(bundle)]:
        return [conclude("robustness", "", violations)]
    stated = [{"judge": card["judge"], "changes": card["changes"]} for card in bundle.robustness]
    recomputed = [{"judge": card["judge"], "changes": recompute_changes(card)} for card in bundle.robustness]
    return [compare(stated, recomputed, "the pairs give").conclude("robustness")]


def recompute_changes(card: Document) -> list[Document]:
    """Return the figures of each change that the card names, in its order.

    A pair has the judge's verdict on a trajectory and on its changed copy. Rates and their difference are of the pairs
    with both verdicts.
    """
    return [_recompute_change(change, card) for change in card["changes"]]


def _recompute_change(change: Document, card: Document) -> Document:
    name = change.get("operator")
    pairs = [pair for pair in card["pairs"] if pair["operator"] == name]
    scored = [(pair["original"], pair["changed"]) for pair in pairs if None not in (pair["original"], pair["changed"])]
    cells = Counter((original == SUCCESS, changed == SUCCESS) for original, changed in scored)
    n, flips, added = len(scored), sum(original != changed for original, changed in scored), cells[False, True]
    same = name in KEEPS_VERDICT
    failed = flips if same else added
    return {
        "operator": name,
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
        "result": "not tested" if not n else "fail" if failed else "pass",
        **{key: change[key] for key in STATED_ONLY if key in change},
    }


def _impossible_pairs(bundle: Bundle) -> Violations:
    final = {line["task_id"]: line["verdict"] for line in bundle.final_verdicts}
    for card in bundle.robustness or []:
        named = Counter(_read_name(change) for change in card["changes"])
        for name, times in named.items():
            if times > 1:
                yield f"{card['judge']}: the change {name} is listed {times} times", CARDS
        originals: dict[str, Any] = {}
        seen: set[tuple[str, str]] = set()
        for pair in card["pairs"]:
            task_id, key = pair["task_id"], (pair["operator"], pair["task_id"])
            where = f"{card['judge']}, {pair['operator']}: {task_id}"
            if final.get(task_id) != FAILURE:
                yield f"{where} is not a failure by its final verdict", task_id
            if originals.setdefault(task_id, pair["original"]) != pair["original"]:
                yield f"{where} has another verdict on the original than in another pair", task_id
            if key in seen:
                yield f"{where} is paired twice", task_id
            if pair["operator"] not in named:
                yield f"{where} belongs to a change without figures", task_id
            seen.add(key)


def _read_name(change: Document) -> str:
    return str(change.get("operator"))
