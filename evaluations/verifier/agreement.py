"""Recompute reports/agreement.json: the agreement of people.

Within one submission no two cases are of one task, so cases are drawn one by one, as docs/statistics.md says.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from itertools import combinations
from statistics import median
from typing import Any

from evaluations.verifier.documents import Bundle, Document
from evaluations.verifier.numbers import (
    LABELS,
    OUTCOMES_OF_LABELS,
    Patterns,
    alpha_of_one_label,
    coefficient_figure,
    cohen_kappa,
    fleiss_kappa,
    gwet_ac1,
    hits_left,
    krippendorff_alpha,
    labels_compared,
    majority_label,
    natural_order,
    outcome_of_labels,
    pairable_items,
    patterns_of,
    rate_figure,
    raw_agreement,
    sum_of_rates,
)
from evaluations.verifier.resampling import NOWHERE, Ends, Resamples
from evaluations.verifier.rules import UNANIMOUS

FIRST_FIGURES, NEWEST_FIGURES = 1, 2  # versions of the formulas; reports of version 1 do not state it
OF_ALL, OF_PAIRS = 2000, 1000  # resamples behind the intervals of a report
PAIRS_LISTED, PAIRS_WITH_INTERVAL = 500, 100
REASONS_TO_LOOK = ("disputes", "drawn", "flagged")
NEVER_BLIND = "no drawn spot check was judged blind"


Extrapolated = Callable[[Sequence[tuple[int, int, int]]], tuple[float, float, float]]


@dataclass
class Counted:
    """A trajectory with labels: ``said`` has annotator, verdict and seconds of each by slot, its last revision.

    ``adjudicated`` is the last decision, ``blind`` the first where it was made without seeing a label. ``draw`` is the
    number of the draw that it was in, ``drawn`` whether that took it.
    """

    said: list[tuple[str, int, Any]]
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
        return [verdict for _, verdict, _ in self.said]

    @property
    def complete(self) -> bool:
        return len(self.said) >= self.required

    @property
    def unanimous(self) -> bool:
        return self.complete and len(set(self.verdicts)) == 1

    @property
    def checked(self) -> bool:
        """Whether chance chose it and an adjudicator judged it without seeing a label."""
        return self.drawn and self.unanimous and self.blind is not None


def figures_version(report: Any) -> Any:
    """Return the version of the formulas of reports/agreement.json, 1 if it states none."""
    return report.get("figures_version", FIRST_FIGURES) if isinstance(report, dict) else NEWEST_FIGURES


def recompute_agreement(bundle: Bundle) -> Document:
    """The document; where an interval was drawn at random, an `End` says where each end can be.

    Uses the formulas of the version that the bundle's report states, or the newest ones if that is unknown.
    """
    cases = collect_cases(bundle)
    first = figures_version(bundle.agreement) == FIRST_FIGURES
    adjudications = _what_review_changed(cases, sum_of_rates if first else hits_left) if cases else None
    pairs, left_out = _pairs_of_annotators(cases)
    return {
        "rules": "default",
        **({} if first else {"figures_version": NEWEST_FIGURES}),
        **_all_together(cases),
        "undecided": sum(case.final is None for case in cases),
        "pairs": pairs,
        "pairs_left_out": left_out,
        "first_against_second": None,
        "annotators": _each_annotator(cases),
        "adjudications": adjudications,
    }


def collect_cases(bundle: Bundle) -> list[Counted]:
    """The trajectories with labels, by task id."""
    slots: dict[str, dict[int, Document]] = defaultdict(dict)
    for line in sorted(bundle.labels, key=lambda line: int(line["facts"]["revision"])):
        slots[line["facts"]["task_id"]][line["facts"]["slot"]] = line
    required = int(bundle.submission["required_labels"])
    cases = {
        task_id: Counted([_said_in(line) for _, line in sorted(lines.items())], required)
        for task_id, lines in sorted(slots.items())
    }
    _add_decisions(cases, bundle)
    return list(cases.values())


def _said_in(line: Document) -> tuple[str, int, Any]:
    facts = line["facts"]
    return line["annotator"], facts["verdict"], facts.get("active_seconds")


def _add_decisions(cases: dict[str, Counted], bundle: Bundle) -> None:
    nowhere = Counted([], 0)
    for line in bundle.final_verdicts:
        case = cases.get(line["task_id"], nowhere)
        case.final, case.state = line["verdict"], line["state"]
    decisions: dict[str, list[Document]] = defaultdict(list)
    for line in sorted(bundle.adjudications, key=lambda line: int(line["facts"]["revision"])):
        decisions[line["facts"]["task_id"]].append(line["facts"])
    for task_id, facts in decisions.items():
        case = cases.get(task_id, nowhere)
        case.adjudicated = facts[-1]["verdict"]
        case.blind = facts[0]["verdict"] if facts[0]["blind"] else None
    for line in bundle.draws:
        taken = set(line["facts"]["drawn"])
        for task_id in line["facts"]["population"]:
            case = cases.get(task_id, nowhere)
            case.draw, case.drawn = line["facts"]["number"], task_id in taken
    for line in bundle.flags:
        cases.get(line["task_id"], nowhere).flagged = True


# --- all labels together ---------------------------------------------------------------------------------------------


class _Agreed:
    """Coefficients of one set of labels, all over the same resamples."""

    def __init__(self, patterns: Patterns, resamples: int) -> None:
        self.kinds = sorted(patterns)
        self.patterns = {kind: patterns[kind] for kind in self.kinds}
        self.pairable = pairable_items(patterns)
        self.resamples = resamples
        self.draws = Resamples(list(self.patterns.values()))

    def figure(self, formula: Callable[[Patterns], float | None], why: str | None = None) -> Document:
        """``why``: the reason where pairable labels have no value, if it is not that all are the same."""
        value = formula(self.patterns)
        if value is None:
            return coefficient_figure(None, self.pairable, self._why_not(why))
        return coefficient_figure(value, self.pairable, "", self._ends(formula))

    def _ends(self, formula: Callable[[Patterns], float | None]) -> Ends:
        if not self.resamples:
            return NOWHERE
        return self.draws.ends(lambda times: formula(dict(zip(self.kinds, times, strict=True))), self.resamples)

    def _why_not(self, why: str | None) -> str:
        if not self.pairable:
            return "fewer than two labels on every item" if self.kinds else "no labels"
        totals = [sum(times * kind[label] for kind, times in self.patterns.items()) for label in range(LABELS)]
        same = "all labels are the same" if sum(map(bool, totals)) == 1 else None
        return why or same or "all labels that can be compared are the same"


def _all_together(cases: Sequence[Counted]) -> Document:
    agreed = _Agreed(patterns_of(case.verdicts for case in cases), OF_ALL)
    complete = [case for case in cases if case.complete]
    found = Counter(outcome_of_labels(case.verdicts) for case in complete)
    raw = agreed.figure(raw_agreement)
    coefficients = {"alpha": krippendorff_alpha, "ac1": gwet_ac1, "fleiss_kappa": fleiss_kappa}
    figures = {name: agreed.figure(formula) for name, formula in coefficients.items()}
    per_label = {str(label): _of_one_label(agreed, label) for label in range(LABELS)}
    outcomes = {name: rate_figure(found[name], len(complete)) for name in OUTCOMES_OF_LABELS}
    named = {"raw_agreement": raw, **figures}
    named |= {f"per_label.{label}": figure for label, figure in per_label.items()}
    named |= {f"outcomes.{name}": figure for name, figure in outcomes.items()}
    return {
        "n_items": sum(agreed.patterns.values()),
        "n_complete": len(complete),
        "n_pairable": agreed.pairable,
        "raw_agreement": raw["value"],
        "raw_agreement_interval": _ends_of(raw),
        **figures,
        "per_label": per_label,
        "outcomes": outcomes,
        "undefined": {name: figure["undefined"] for name, figure in named.items() if figure["value"] is None},
    }


def _of_one_label(agreed: _Agreed, label: int) -> Document:
    given = any(labels_compared(agreed.patterns)[label : label + 1])
    why = "every label that can be compared is this one" if given else "no label that can be compared is this one"
    return agreed.figure(lambda patterns: alpha_of_one_label(patterns, label), why)


def _ends_of(figure: Document) -> Ends | None:
    return Ends(figure["low"], figure["high"]) if figure["value"] is not None else None


# --- two at a time ---------------------------------------------------------------------------------------------------


def _pairs_of_annotators(cases: Sequence[Counted]) -> tuple[list[Document], int]:
    """Every two with a common case, most cases first, and how many are left out."""
    rank = _ranked({name for case in cases for name, _, _ in case.said})
    common: dict[tuple[str, str], Counter[tuple[int, int]]] = defaultdict(Counter)
    for case in cases:
        by_rank = sorted(case.said, key=lambda said: rank[said[0]])
        for (one, said, _), (other, answered, _) in combinations(by_rank, 2):
            common[one, other][said, answered] += 1
    order = sorted(common, key=lambda pair: (-sum(common[pair].values()), rank[pair[0]], rank[pair[1]]))
    found = [
        _pair_of_annotators(*pair, common[pair], OF_PAIRS if number < PAIRS_WITH_INTERVAL else 0)
        for number, pair in enumerate(order[:PAIRS_LISTED])
    ]
    return found, len(order) - len(found)


def _pair_of_annotators(first: str, second: str, said: Counter[tuple[int, int]], resamples: int) -> Document:
    table = _verdicts_crossed(said)
    cells = [(one, other) for one in range(LABELS) for other in range(LABELS)]
    n = sum(said.values())
    raw = rate_figure(sum(table[label][label] for label in range(LABELS)), n, interval=bool(resamples))
    agreed = _Agreed(patterns_of(pair for pair in said.elements()), resamples)
    kappa, ends = cohen_kappa(table), NOWHERE
    if kappa is not None and resamples:
        draws = Resamples([said[cell] for cell in cells])
        ends = draws.ends(lambda times: cohen_kappa([times[:3], times[3:6], times[6:]]), resamples)
    return {
        "first": first,
        "second": second,
        "n": n,
        "raw_agreement": raw["value"],
        "raw_agreement_interval": [raw["low"], raw["high"]] if resamples else None,
        "kappa": coefficient_figure(kappa, n, "all labels are the same", ends),
        "alpha": agreed.figure(krippendorff_alpha),
        "table": table,
    }


def _verdicts_crossed(counts: Counter[Any]) -> list[list[int]]:
    return [[counts[one, other] for other in range(LABELS)] for one in range(LABELS)]


def _ranked(names: Iterable[str]) -> dict[str, int]:
    return {name: place for place, name in enumerate(sorted(names, key=natural_order))}


# --- each one alone --------------------------------------------------------------------------------------------------


@dataclass
class _Alone:
    """What one annotator said, beside what became final (None where nothing did)."""

    said: Counter[tuple[int, int | None]] = field(default_factory=Counter)
    adjudicated: int = 0
    overturned: int = 0
    seconds: list[Any] = field(default_factory=list)


def _each_annotator(cases: Sequence[Counted]) -> list[Document]:
    records: dict[str, _Alone] = defaultdict(_Alone)
    for case in cases:
        for name, verdict, seconds in case.said:
            record = records[name]
            record.said[verdict, case.final] += 1
            record.adjudicated += case.adjudicated is not None
            record.overturned += case.adjudicated is not None and case.adjudicated != verdict
            record.seconds += [] if seconds is None else [seconds]
    return [_annotator_alone(name, records[name]) for name in sorted(records, key=natural_order)]


def _annotator_alone(name: str, record: _Alone) -> Document:
    hits = sum(record.said[label, label] for label in range(LABELS))
    decided = sum(times for (_, final), times in record.said.items() if final is not None)
    return {
        "name": name,
        "labels": sum(record.said.values()),
        "seconds": median(record.seconds) if record.seconds else None,
        "agreement": rate_figure(hits, decided, "no reviewed case of theirs has a final verdict"),
        "overturned": rate_figure(record.overturned, record.adjudicated, "no case of theirs was adjudicated"),
        "confusion": _verdicts_crossed(record.said),
    }


# --- what the review changed -----------------------------------------------------------------------------------------


def _what_review_changed(cases: Sequence[Counted], extrapolated: Extrapolated) -> Document:
    adjudicated = [case for case in cases if case.adjudicated is not None]
    checked = [case for case in cases if case.checked]
    draws = _draws_of(cases)
    return {
        "adjudicated": len(adjudicated),
        "disputes": sum(case.complete and not case.unanimous for case in cases),
        "unanimous": sum(case.unanimous for case in cases),
        "drawn": sum(case.drawn for case in cases),
        "unchecked": sum(unchecked for unchecked, _, _ in draws),
        "unknown": sum(unchecked for unchecked, _, looked in draws if not looked),
        "changed": _changed_figure(adjudicated),
        "missed": rate_figure(sum(map(_was_missed, checked)), len(checked), NEVER_BLIND),
        "expected_missed": _expected_figure(draws, extrapolated),
        "changed_of": {
            reason: _changed_figure([case for case in adjudicated if _reason_to_look(case) == reason])
            for reason in REASONS_TO_LOOK
        },
    }


def _changed_figure(adjudicated: Sequence[Counted]) -> Document:
    found = [(most, case.adjudicated) for case in adjudicated if (most := majority_label(case.verdicts)) is not None]
    why = "no case with a majority was adjudicated" if adjudicated else "no such case was adjudicated"
    return rate_figure(sum(most != decided for most, decided in found), len(found), why)


def _reason_to_look(case: Counted) -> str:
    if not case.unanimous:
        return "disputes"
    if case.drawn:
        return "drawn"
    return "flagged" if case.flagged else ""


def _was_missed(case: Counted) -> bool:
    return case.verdicts[0] != case.blind


def _draws_of(cases: Sequence[Counted]) -> list[tuple[int, int, int]]:
    """Of each draw the unanimous that nobody looked at, the missed and the checked."""
    found: dict[int | None, list[int]] = defaultdict(lambda: [0, 0, 0])
    for case in cases:
        draw = found[case.draw]
        draw[0] += case.state == UNANIMOUS
        draw[1] += case.checked and _was_missed(case)
        draw[2] += case.checked
    return [(unchecked, missed, checked) for unchecked, missed, checked in found.values()]


def _expected_figure(draws: Sequence[tuple[int, int, int]], extrapolated: Extrapolated) -> Document:
    """The rate of every draw times its own unchecked, summed; draws without a blind check are left out."""
    known = [draw for draw in draws if draw[2]]
    unchecked = sum(draw[0] for draw in known)
    if not known or (not unchecked and any(draw[0] for draw in draws)):
        return {"value": None, "low": None, "high": None, "n": 0, "undefined": NEVER_BLIND}
    value, low, high = extrapolated(known)
    return {"value": value, "low": low, "high": high, "n": sum(draw[2] for draw in known)}
