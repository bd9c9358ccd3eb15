"""The checks `agreement` and `comparison`: figures that a bundle states, compared with recomputed ones."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from math import isclose
from typing import Any

from evaluations.verifier import numbers
from evaluations.verifier.agreement import FIRST_FIGURES, figures_version, recompute_agreement
from evaluations.verifier.documents import Bundle, Document
from evaluations.verifier.findings import Finding, Violation, Violations, failed, noted, passed, plural
from evaluations.verifier.numbers import NO_CASES, Ends, Resamples, coefficient_figure, rate_figure
from evaluations.verifier.rules import NOT_EXECUTABLE, SUCCESS, is_imported_run

OLDER_FIGURES = (
    " They were computed by formulas of version 1, whose interval for errors among unchecked labels is "
    "too narrow if many were spot-checked."
)
MOST_JUDGES = 1000  # with different fingerprints; the intervals of each are resampled
MOST_LABELS = 99  # of one trajectory; pairing a hostile number of them would take too long
TOLD_IN_FULL = 5
EXACT = 1e-9
MOST_KEPT = 1000  # differences that are listed; more are only counted
NAMED_BY = ("name", "judge", "first", "second", "agent", "human_label_2")  # keys that name an entry of a list


def agreement_finding(bundle: Bundle) -> Finding:
    """Check reports/agreement.json against labels, adjudications, draws, flags and final verdicts."""
    if bundle.agreement is None:
        return failed("agreement", "reports/agreement.json is missing.", ["reports/agreement.json"])
    if strange := [*_crowded(bundle)]:
        return _not_computed("agreement", strange)
    differences = compare(bundle.agreement, recompute_agreement(bundle), "the labels give")
    older = OLDER_FIGURES if figures_version(bundle.agreement) == FIRST_FIGURES else ""
    return differences.conclude("agreement", older)


def comparison_finding(bundle: Bundle) -> Finding:
    """Check reports/comparison.json against judgments and final verdicts; a note if the bundle has no judges."""
    if bundle.judgments is None and bundle.comparison is None:
        return noted("comparison", "This bundle has no judges, so nothing is compared.")
    pairs = {(line["judge"], line["fingerprint"]) for line in bundle.judgments or []}
    crowd = f"it compares {len(pairs):,} judges; the limit is {MOST_JUDGES:,}"
    strange = [(crowd, "judges/judgments.jsonl")] if len(pairs) > MOST_JUDGES else []
    if strange := [*strange, *_judged_in_no_run(bundle)]:
        return _not_computed("comparison", strange)
    if wrong := _miscounted(bundle):
        others = f" The same applies to {len(wrong) - 1} more." if len(wrong) > 1 else ""
        says = f"Not the required judgments count: {wrong[0][0]}.{others}"
        return failed("comparison", says, [place for _, place in wrong])
    recomputed = recompute_comparison(bundle)
    if not recomputed["judges"] and bundle.comparison in (None, recomputed):
        return noted("comparison", "No judge has judged this submission, so nothing is compared.")
    return compare(bundle.comparison, recomputed, "the judgments give").conclude("comparison")


def _not_computed(name: str, strange: list[Violation]) -> Finding:
    says = f"Nothing can be computed from this: {strange[0][0]}."
    return failed(name, says, [place for _, place in strange])


def _crowded(bundle: Bundle) -> Violations:
    slots = {(line["facts"]["task_id"], line["facts"]["slot"]) for line in bundle.labels}
    for task_id, taken in Counter(task_id for task_id, _ in sorted(slots)).items():
        if taken > MOST_LABELS:
            yield f"{task_id} has {taken} labels; the limit is {MOST_LABELS}", task_id


# --- comparing two documents -----------------------------------------------------------------------------------------


@dataclass
class Differences:
    """Result of a comparison: ``numbers`` one by one, ``intervals`` by resampling."""

    gives: str  # what the other document was recomputed from: "the labels give"
    numbers: int = 0
    intervals: int = 0
    wrong: int = 0
    differing: list[Violation] = field(default_factory=list)

    def add(self, place: str, says: str) -> None:
        self.wrong += 1
        if len(self.differing) < MOST_KEPT:
            self.differing.append((f"{place} {says}", place))

    def conclude(self, name: str, more_to_say: str = "") -> Finding:
        if self.wrong:
            first = "; ".join(says for says, _ in self.differing[:TOLD_IN_FULL])
            more = f"; and {self.wrong - TOLD_IN_FULL} more" if self.wrong > TOLD_IN_FULL else ""
            says = f"{plural(self.wrong, 'figure differs', 'figures differ')}: {first}{more}."
            return failed(name, says, [place for _, place in self.differing])
        checked = plural(self.intervals, "interval was checked", "intervals were checked")
        recomputed = plural(self.numbers, "number was", "numbers were")
        return passed(name, f"{recomputed} computed again, and {checked} by resampling.{more_to_say}")

    def compare(self, place: str, stated: Any, recomputed: Any) -> None:
        if isinstance(recomputed, Ends):
            self._compare_interval(place, stated, recomputed)
        elif isinstance(recomputed, dict) and isinstance(stated, dict):
            self._compare_keys(place, stated, recomputed)
        elif isinstance(recomputed, list) and isinstance(stated, list):
            if len(stated) != len(recomputed):
                has = plural(len(stated), "entry", "entries")
                self.add(place, f"has {has}, and {self.gives} {len(recomputed)}")
            for number, (one, other) in enumerate(zip(stated, recomputed)):  # noqa: B905 - the lengths were compared
                self.compare(f"{place}[{_name_entry(other, number)}]", one, other)
        elif not isinstance(recomputed, (dict, list)):
            self.numbers += _is_number(recomputed)
            # Floats are compared to `EXACT`, counts and everything else exactly; true is not 1.
            same = type(stated) is type(recomputed) and stated == recomputed
            if isinstance(recomputed, float) and _is_number(stated):
                same = isclose(stated, recomputed, rel_tol=EXACT, abs_tol=EXACT)
            if not same:
                self.add(place, f"is {_show(stated)}, and {self.gives} {_show(recomputed)}")
        else:
            self.add(place or "it", f"is {_show(stated)}, and should be {_show(recomputed)}")

    def _compare_keys(self, place: str, stated: dict[str, Any], recomputed: dict[str, Any]) -> None:
        """Compare two objects. The ends of an interval are two keys of a figure and are compared together."""
        ends, within = recomputed.get("low"), f"{place}." if place else ""
        for key, value in recomputed.items():
            if key not in stated:
                if not isinstance(value, Ends) or value.needed or key in ("low", "high"):
                    self.add(f"{within}{key}", "is missing")
            elif not (isinstance(ends, Ends) and key in ("low", "high")):
                self.compare(f"{within}{key}", stated[key], value)
        for key in (key for key in stated if key not in recomputed):
            self.add(f"{within}{_shorten(key)}", "does not belong here")
        if isinstance(ends, Ends) and "low" in stated and "high" in stated:
            both = [stated["low"], stated["high"]]
            self._compare_interval(place, None if both == [None, None] else both, ends)

    def _compare_interval(self, place: str, stated: Any, ends: Ends) -> None:
        self.intervals += ends.allowed
        if stated is None:
            if ends.needed:
                self.add(place, f"has no interval, and resampling gives {_show(ends)}")
        elif not ends.allowed:
            self.add(place, f"has an interval, {_show(stated)}, and resampling gives none")
        elif not (isinstance(stated, list) and len(stated) == 2 and all(map(_is_number, stated))):
            self.add(place, f"has {_show(stated)} for an interval")
        else:
            for name, number, bounds in (("low", stated[0], ends.low), ("high", stated[1], ends.high)):
                if not numbers.is_within(number, bounds):
                    says = f"is {_show(number)}, and resampling gives {bounds[0]:.6g} to {bounds[1]:.6g}"
                    self.add(f"{place}.{name}" if place else name, says)


def compare(stated: Any, recomputed: Any, gives: str) -> Differences:
    differences = Differences(gives)
    differences.compare("", stated, recomputed)
    return differences


def _is_number(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def _name_entry(entry: Any, number: int) -> str:
    names = [str(entry[key]) for key in NAMED_BY if key in entry] if isinstance(entry, dict) else []
    return ", ".join(map(_shorten, names)) or str(number)


def _show(value: Any) -> str:
    if isinstance(value, Ends):
        return f"about {value.low[0]:.6g} to {value.high[1]:.6g}"
    if isinstance(value, float):
        return f"{value:.10g}"
    if isinstance(value, list) and len(value) <= 4 and all(map(_is_number, value)):
        return "[" + ", ".join(map(_show, value)) + "]"
    if isinstance(value, (dict, list)):
        return "an object" if isinstance(value, dict) else f"a list of {len(value)}"
    return "nothing" if value is None else _shorten(repr(value))


def _shorten(text: str) -> str:
    return text if len(text) <= 60 else f"{text[:57]}..."


# --- reports/comparison.json again -----------------------------------------------------------------------------------

OF_ROWS = 2000  # resamples for the intervals of a row
SUCCEEDED, DID_NOT, UNSCORED, ERROR, UNJUDGED = "success", "no", "unscored", "error", "nothing"  # answers by a judge

JudgeKey = tuple[str, str]  # name with version, and fingerprint
Crossed = Counter[tuple[int, str]]  # number of decided cases by final verdict and answer of the judge


def recompute_comparison(bundle: Bundle) -> Document:
    final = {line["task_id"]: line["verdict"] for line in bundle.final_verdicts if line["verdict"] is not None}
    lines: dict[JudgeKey, list[Document]] = defaultdict(list)
    for line in bundle.judgments or []:
        if line["counts"]:
            lines[line["judge"], line["fingerprint"]].append(line)
    agent, attempt = bundle.submission["agent"], bundle.submission["attempt"]
    name = agent if attempt == 1 else f"{agent} (attempt {attempt})"
    return {"judges": [_judge_beside_people(key, lines[key], name, final) for key in sorted(lines, key=_judge_order)]}


def _judge_order(key: JudgeKey) -> tuple[Any, ...]:
    """Return a sort key: by name, then the newest version first."""
    name, _, version = key[0].partition("@")
    return numbers.natural_order(name), -int(version[:9]) if version.isdecimal() else 0, key


def _judge_beside_people(key: JudgeKey, lines: Sequence[Document], name: str, final: dict[str, int]) -> Document:
    """Return two rows: one without cases that people judged not executable, and one that counts them as no success."""
    answers: dict[str, str] = {}
    for line in sorted(lines, key=lambda line: not line["error"]):  # a judgment replaces an error
        verdict = SUCCEEDED if line["verdict"] == SUCCESS else DID_NOT
        answers[line["task_id"]] = verdict if line["verdict"] is not None else ERROR if line["error"] else UNSCORED
    crossed = Counter((verdict, answers.get(task_id, UNJUDGED)) for task_id, verdict in final.items())
    apart = Counter({cell: times for cell, times in crossed.items() if cell[0] != NOT_EXECUTABLE})
    excluded = sum(crossed.values()) - sum(apart.values())
    rows = [_row_of_judge(name, "excluded", apart, excluded)] if final else []
    # If nothing is excluded, both rules give the same figures.
    others = [_row_of_judge(name, "not_success", crossed, 0)] if excluded else rows
    rows += [{**row, "human_label_2": "not_success"} for row in others]
    not_stated = sum(line.get("status_not_stated", False) and line["task_id"] in final for line in lines)
    more = {"status_not_stated": not_stated} if not_stated else {}
    return {"judge": key[0], "fingerprint": key[1], "rows": rows, **more}


def _row_of_judge(name: str, rule: str, crossed: Crossed, excluded: int) -> Document:
    cells: Counter[tuple[bool, str]] = Counter()
    for (human, judge), times in crossed.items():
        cells[human == SUCCESS, judge] += times
    tp, fn, fp, tn = (cells[human, judge] for human in (True, False) for judge in (SUCCEEDED, DID_NOT))
    figures = figures_of_cells(tp, fp, tn, fn)
    shown = {**figures, "accuracy": figures["agreement"]}
    return {
        "agent": name,
        "human_label_2": rule,
        "n": tp + fp + tn + fn,
        "excluded": excluded,
        "unscored": cells[True, UNSCORED] + cells[False, UNSCORED],
        "errors": cells[True, ERROR] + cells[False, ERROR],
        "unjudged": cells[True, UNJUDGED] + cells[False, UNJUDGED],
        "tp": tp,
        "fp": fp,
        "tn": tn,
        "fn": fn,
        **{key: figure["value"] for key, figure in shown.items()},
        "intervals": {
            key: figure["low"] if isinstance(figure["low"], Ends) else [figure["low"], figure["high"]]
            for key, figure in shown.items()
            if (figure["low"].allowed if isinstance(figure["low"], Ends) else figure["low"] is not None)
        },
        "undefined": {key: figure["undefined"] for key, figure in shown.items() if figure["value"] is None},
    }


def figures_of_cells(tp: int, fp: int, tn: int, fn: int) -> dict[str, Document]:
    """Return every figure of a row by its name; success is positive. A figure with denominator 0 is undefined.

    Source: Powers (2011), Journal of Machine Learning Technologies 2, 37-63.
    """
    n = tp + fp + tn + fn
    draws = Resamples([tp, fp, tn, fn])

    def rate(hits: int, others: int, why: str = NO_CASES) -> Document:
        return rate_figure(hits, hits + others, why if n else NO_CASES)

    def drawn(formula: Callable[[int, int, int, int], float | None], why: str) -> Document:
        if (value := formula(tp, fp, tn, fn)) is None:
            return coefficient_figure(None, n, why if n else NO_CASES)
        return coefficient_figure(value, n, "", draws.ends(lambda cells: formula(*cells), OF_ROWS))

    return {
        "agreement": rate(tp + tn, fp + fn),
        "precision": rate(tp, fp, "nothing was judged a success"),
        "recall": rate(tp, fn, "no case is a success"),
        "f1": drawn(numbers.f1_score, "no case is a success, nor was judged one"),
        "specificity": rate(tn, fp, "every case is a success"),
        "npv": rate(tn, fn, "everything was judged a success"),
        "false_positive_rate": rate(fp, tn, "every case is a success"),
        "kappa": drawn(numbers.kappa_of_cells, "only one class"),
        "success_rate_human": rate(tp + fn, fp + tn),
        "success_rate_judge": rate(tp + fp, tn + fn),
        "success_rate_gap": numbers.gap_figure(fp, fn, n),
    }


def _judged_in_no_run(bundle: Bundle) -> Violations:
    """Report judgments whose run is not in runs.jsonl, or belongs to another judge."""
    runs = {line["run"]: (f"{line['judge']}@{line['version']}", line["fingerprint"]) for line in bundle.runs or []}
    for line in bundle.judgments or []:
        if runs.get(line["run"]) != (line["judge"], line["fingerprint"]):
            yield f"{line['task_id']} was judged in run {line['run']}, not a run of that judge", line["task_id"]


def _miscounted(bundle: Bundle) -> list[Violation]:
    """Return the tasks whose counting judgments differ from the rule.

    For a judge and a task, the lowest repetition of the newest run with a judgment counts; without one, the lowest
    imported one; without any judgment, the errors.
    """
    imported = {line["run"] for line in bundle.runs or [] if is_imported_run(line)}
    lines: dict[tuple[str, str, str], list[Document]] = defaultdict(list)
    for line in bundle.judgments or []:
        lines[line["judge"], line["fingerprint"], line["task_id"]].append(line)
    wrong = []
    for (judge, _, task_id), own in sorted(lines.items()):
        due = [line for line in own if not line["error"]]
        if due:
            due = [min(due, key=lambda line: (-(0 if line["run"] in imported else line["run"]), line["repetition"]))]
        counting = [line for line in own if line["counts"]]
        if counting != (due or own):
            stated, expected = _spell_out(counting), _spell_out(due or own)
            wrong.append((f"of {judge} on {task_id} {stated} counts, and by the rule {expected} does", task_id))
    return wrong


def _spell_out(lines: Iterable[Document]) -> str:
    return ", ".join(f"run {line['run']} repetition {line['repetition']}" for line in lines)[:100] or "nothing"
