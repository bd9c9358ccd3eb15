"""Recompute reports/agreement.json: the agreement of people.

Two cases of one submission never belong to the same task, so cases are resampled singly, as in docs/statistics.md.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import combinations
from statistics import median
from typing import Any

from evaluations.verifier import numbers
from evaluations.verifier.documents import Bundle, Document
from evaluations.verifier.numbers import LABELS, NOWHERE, Patterns, Resamples, coefficient_figure, rate_figure
from evaluations.verifier.rules import UNANIMOUS

FIRST_FIGURES, NEWEST_FIGURES = 1, 2  # versions of the formulas; reports of version 1 do not state it
OF_ALL, OF_PAIRS = 2000, 1000  # resamples for the intervals of a report
PAIRS_LISTED, PAIRS_WITH_INTERVAL = 500, 100
REASONS_TO_LOOK = ("disputes", "drawn", "flagged")
NEVER_BLIND = "no drawn spot check was judged blind"

Extrapolated = Callable[[Sequence[tuple[int, int, int]]], tuple[float, float, float]]


@dataclass
class Counted:
    """A trajectory; ``labels`` has annotator, verdict and seconds of the last revision of each label, by slot.

    ``adjudicated`` is the last decision; ``blind`` is the first one if it was made without seeing a label. ``draw`` is
    the number of the draw that included the trajectory, ``drawn`` whether that draw selected it.
    """

    labels: list[tuple[str, int, Any]]
    required: int
    final: int | None = None
    state: str = ""
    adjudicated: int | None = None
    blind: int | None = None
    draw: int | None = None
    drawn: bool = False
    flagged: bool = False

    @property
    def verdicts(self) -> list[int]:
        return [verdict for _, verdict, _ in self.labels]

    @property
    def complete(self) -> bool:
        return len(self.labels) >= self.required

    @property
    def unanimous(self) -> bool:
        return self.complete and len(set(self.verdicts)) == 1

    @property
    def checked(self) -> bool:
        """Return whether a draw selected it, it was unanimous, and an adjudicator judged it blind."""
        return self.drawn and self.unanimous and self.blind is not None

    @property
    def reason_to_look(self) -> str:
        if not self.unanimous:
            return "disputes"
        return "drawn" if self.drawn else "flagged" if self.flagged else ""


def figures_version(report: Any) -> Any:
    """Return the version of the formulas of reports/agreement.json, 1 if it states none."""
    return report.get("figures_version", FIRST_FIGURES) if isinstance(report, dict) else NEWEST_FIGURES


def recompute_agreement(bundle: Bundle) -> Document:
    """Return the document; `Ends` replace the bounds of an interval that is computed by resampling.

    It uses the formulas of the version that the bundle's report states, or the newest ones if that is unknown.
    """
    cases = collect_cases(bundle)
    first = figures_version(bundle.agreement) == FIRST_FIGURES
    extrapolate = numbers.sum_of_rates if first else numbers.hits_left
    pairs, left_out = _pairs_of_annotators(cases)
    own: dict[str, list[tuple[int, Any, Counted]]] = defaultdict(list)
    for case in cases:
        for name, verdict, seconds in case.labels:
            own[name].append((verdict, seconds, case))
    return {
        "rules": "default",
        **({} if first else {"figures_version": NEWEST_FIGURES}),
        **_all_together(cases),
        "undecided": sum(case.final is None for case in cases),
        "pairs": pairs,
        "pairs_left_out": left_out,
        "first_against_second": None,
        "annotators": [_annotator_alone(name, own[name]) for name in sorted(own, key=numbers.natural_order)],
        "adjudications": _what_review_changed(cases, extrapolate) if cases else None,
    }


def collect_cases(bundle: Bundle) -> list[Counted]:
    required = int(bundle.submission["required_labels"])
    cases: dict[str, Counted] = defaultdict(lambda: Counted([], 0))
    for task_id, lines in sorted(bundle.newest_labels().items()):
        given = [(line["annotator"], line["facts"]) for _, line in sorted(lines.items())]
        labels = [(name, facts["verdict"], facts.get("active_seconds")) for name, facts in given]
        cases[task_id] = Counted(labels, required)
    labelled = list(cases.values())
    for line in bundle.final_verdicts:
        case = cases[line["task_id"]]
        case.final, case.state = line["verdict"], line["state"]
    for line in sorted(bundle.adjudications, key=lambda line: int(line["facts"]["revision"])):
        facts = line["facts"]
        case = cases[facts["task_id"]]
        if case.adjudicated is None and facts["blind"]:
            case.blind = facts["verdict"]
        case.adjudicated = facts["verdict"]
    for line in bundle.draws:
        taken = set(line["facts"]["drawn"])
        for task_id in line["facts"]["population"]:
            cases[task_id].draw, cases[task_id].drawn = line["facts"]["number"], task_id in taken
    for line in bundle.flags:
        cases[line["task_id"]].flagged = True
    return labelled


class _Agreed:
    """Coefficients of one set of labels, all computed from the same resamples."""

    def __init__(self, patterns: Patterns, resamples: int) -> None:
        self.kinds = sorted(patterns)
        self.patterns = {kind: patterns[kind] for kind in self.kinds}
        self.pairable = numbers.pairable_items(patterns)
        self.resamples = resamples
        self.draws = Resamples(list(self.patterns.values()))

    def figure(self, formula: Callable[[Patterns], float | None], why: str | None = None) -> Document:
        """Return the figure; ``why`` replaces the default reason if pairable labels have no value."""
        value, ends = formula(self.patterns), NOWHERE
        if value is None:
            return coefficient_figure(None, self.pairable, self._why_not(why))
        if self.resamples:
            ends = self.draws.ends(lambda times: formula(dict(zip(self.kinds, times, strict=True))), self.resamples)
        return coefficient_figure(value, self.pairable, "", ends)

    def _why_not(self, why: str | None) -> str:
        if not self.pairable:
            return "fewer than two labels on every item" if self.kinds else "no labels"
        totals = [sum(times * kind[label] for kind, times in self.patterns.items()) for label in range(LABELS)]
        same = "all labels are the same" if sum(map(bool, totals)) == 1 else None
        return why or same or "all labels that can be compared are the same"


def _all_together(cases: Sequence[Counted]) -> Document:
    agreed = _Agreed(numbers.patterns_of(case.verdicts for case in cases), OF_ALL)
    complete = [case for case in cases if case.complete]
    found = Counter(numbers.outcome_of_labels(case.verdicts) for case in complete)
    raw = agreed.figure(numbers.raw_agreement)
    figures = {
        "alpha": agreed.figure(numbers.krippendorff_alpha),
        "ac1": agreed.figure(numbers.gwet_ac1),
        "fleiss_kappa": agreed.figure(numbers.fleiss_kappa),
    }
    per_label = {}
    for label in range(LABELS):
        given = any(numbers.labels_compared(agreed.patterns)[label : label + 1])
        why = f"{'every' if given else 'no'} label that can be compared is this one"
        per_label[str(label)] = agreed.figure(partial(numbers.alpha_of_one_label, label=label), why)
    outcomes = {name: rate_figure(found[name], len(complete)) for name in numbers.OUTCOMES_OF_LABELS}
    named = {"raw_agreement": raw, **figures}
    named |= {f"per_label.{label}": figure for label, figure in per_label.items()}
    named |= {f"outcomes.{name}": figure for name, figure in outcomes.items()}
    return {
        "n_items": sum(agreed.patterns.values()),
        "n_complete": len(complete),
        "n_pairable": agreed.pairable,
        "raw_agreement": raw["value"],
        "raw_agreement_interval": raw["low"],
        **figures,
        "per_label": per_label,
        "outcomes": outcomes,
        "undefined": {name: figure["undefined"] for name, figure in named.items() if figure["value"] is None},
    }


def _pairs_of_annotators(cases: Sequence[Counted]) -> tuple[list[Document], int]:
    """Return the pairs of annotators with common cases, most cases first, and the number of pairs left out."""
    names = sorted({name for case in cases for name, _, _ in case.labels}, key=numbers.natural_order)
    rank = {name: place for place, name in enumerate(names)}
    common: dict[tuple[str, str], Counter[tuple[int, int]]] = defaultdict(Counter)
    for case in cases:
        by_rank = sorted(case.labels, key=lambda label: rank[label[0]])
        for (one, verdict, _), (other, other_verdict, _) in combinations(by_rank, 2):
            common[one, other][verdict, other_verdict] += 1
    order = sorted(common, key=lambda pair: (-sum(common[pair].values()), rank[pair[0]], rank[pair[1]]))
    pairs = [
        _pair_of_annotators(*pair, common[pair], OF_PAIRS if number < PAIRS_WITH_INTERVAL else 0)
        for number, pair in enumerate(order[:PAIRS_LISTED])
    ]
    return pairs, len(order) - len(pairs)


def _pair_of_annotators(first: str, second: str, verdicts: Counter[tuple[int, int]], resamples: int) -> Document:
    table = _cross_verdicts(verdicts)
    n = sum(verdicts.values())
    raw = rate_figure(sum(table[label][label] for label in range(LABELS)), n, interval=bool(resamples))
    agreed = _Agreed(numbers.patterns_of(pair for pair in verdicts.elements()), resamples)
    kappa, ends = numbers.cohen_kappa(table), NOWHERE
    if kappa is not None and resamples:
        draws = Resamples([times for row in table for times in row])
        ends = draws.ends(lambda times: numbers.cohen_kappa([times[:3], times[3:6], times[6:]]), resamples)
    return {
        "first": first,
        "second": second,
        "n": n,
        "raw_agreement": raw["value"],
        "raw_agreement_interval": [raw["low"], raw["high"]] if resamples else None,
        "kappa": coefficient_figure(kappa, n, "all labels are the same", ends),
        "alpha": agreed.figure(numbers.krippendorff_alpha),
        "table": table,
    }


def _cross_verdicts(counts: Counter[Any]) -> list[list[int]]:
    return [[counts[one, other] for other in range(LABELS)] for one in range(LABELS)]


def _annotator_alone(name: str, own: list[tuple[int, Any, Counted]]) -> Document:
    verdicts = Counter((verdict, case.final) for verdict, _, case in own)
    overturned = [case.adjudicated != verdict for verdict, _, case in own if case.adjudicated is not None]
    times = [seconds for _, seconds, _ in own if seconds is not None]
    hits = sum(verdicts[label, label] for label in range(LABELS))
    decided = sum(case.final is not None for _, _, case in own)
    return {
        "name": name,
        "labels": len(own),
        "seconds": median(times) if times else None,
        "agreement": rate_figure(hits, decided, "no reviewed case of theirs has a final verdict"),
        "overturned": rate_figure(sum(overturned), len(overturned), "no case of theirs was adjudicated"),
        "confusion": _cross_verdicts(verdicts),
    }


def _what_review_changed(cases: Sequence[Counted], extrapolate: Extrapolated) -> Document:
    adjudicated = [case for case in cases if case.adjudicated is not None]
    checked = [case for case in cases if case.checked]
    missed = [case.verdicts[0] != case.blind for case in checked]  # whether the unanimous label was wrong
    # By draw: the numbers of unanimous trajectories without a check, of missed errors and of checks.
    of_draw: dict[int | None, list[int]] = defaultdict(lambda: [0, 0, 0])
    for case in cases:
        numbers_of = of_draw[case.draw]
        numbers_of[0] += case.state == UNANIMOUS
        numbers_of[1] += case.checked and case.verdicts[0] != case.blind
        numbers_of[2] += case.checked
    draws = [(unchecked, missed, looked) for unchecked, missed, looked in of_draw.values()]
    return {
        "adjudicated": len(adjudicated),
        "disputes": sum(case.complete and not case.unanimous for case in cases),
        "unanimous": sum(case.unanimous for case in cases),
        "drawn": sum(case.drawn for case in cases),
        "unchecked": sum(unchecked for unchecked, _, _ in draws),
        "unknown": sum(unchecked for unchecked, _, looked in draws if not looked),
        "changed": _changed_figure(adjudicated),
        "missed": rate_figure(sum(missed), len(checked), NEVER_BLIND),
        "expected_missed": _expected_figure(draws, extrapolate),
        "changed_of": {
            reason: _changed_figure([case for case in adjudicated if case.reason_to_look == reason])
            for reason in REASONS_TO_LOOK
        },
    }


def _changed_figure(adjudicated: Sequence[Counted]) -> Document:
    majorities = [(numbers.majority_label(case.verdicts), case.adjudicated) for case in adjudicated]
    changed = [most != decided for most, decided in majorities if most is not None]
    why = "no case with a majority was adjudicated" if adjudicated else "no such case was adjudicated"
    return rate_figure(sum(changed), len(changed), why)


def _expected_figure(draws: Sequence[tuple[int, int, int]], extrapolate: Extrapolated) -> Document:
    """Return the sum over all draws of rate times unchecked trajectories, without draws that have no blind check."""
    known = [draw for draw in draws if draw[2]]
    unchecked = sum(draw[0] for draw in known)
    if not known or (not unchecked and any(draw[0] for draw in draws)):
        return {"value": None, "low": None, "high": None, "n": 0, "undefined": NEVER_BLIND}
    value, low, high = extrapolate(known)
    return {"value": value, "low": low, "high": high, "n": sum(draw[2] for draw in known)}
