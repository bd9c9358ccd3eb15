"""The checks `agreement` and `comparison`: figures that a bundle states, compared with recomputed ones."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from math import isclose
from typing import Any

from evaluations.verifier.agreement import FIRST_FIGURES, figures_version, recompute_agreement
from evaluations.verifier.comparison import judged_in_no_run, miscounted, recompute_comparison
from evaluations.verifier.documents import Bundle
from evaluations.verifier.findings import Finding, failed, noted, passed, plural
from evaluations.verifier.resampling import End, Ends

OF_AGREEMENT = "reports/agreement.json has the figures of these labels"
OF_COMPARISON = "reports/comparison.json has the figures of these judgments"
OLDER_FIGURES = (
    " They were made by formulas of version 1, in which the interval for errors among unchecked labels is too narrow "
    "where many were spot-checked."
)
VERDICTS = (0, 1, 2)
MOST_JUDGES = 1000  # with another fingerprint; the intervals of each are drawn again
MOST_LABELS = 99  # of one trajectory; a hostile number of them would be paired for ever
TOLD_IN_FULL = 5


def agreement_findings(bundle: Bundle) -> list[Finding]:
    """reports/agreement.json against labels, adjudications, draws, flags and final verdicts."""
    if bundle.agreement is None:
        return [failed("agreement", OF_AGREEMENT, "reports/agreement.json is missing.", ["reports/agreement.json"])]
    if strange := [*_strange_verdicts(bundle), *_crowded(bundle)]:
        return [_not_computed("agreement", OF_AGREEMENT, strange)]
    walked = walk(bundle.agreement, recompute_agreement(bundle), "the labels give")
    older = OLDER_FIGURES if figures_version(bundle.agreement) == FIRST_FIGURES else ""
    return [_figures_finding("agreement", OF_AGREEMENT, walked, older)]


def comparison_findings(bundle: Bundle) -> list[Finding]:
    """reports/comparison.json against judgments and final verdicts; a note where the bundle has no judges."""
    if bundle.judgments is None and bundle.comparison is None:
        return [noted("comparison", OF_COMPARISON, "This bundle was made without judges, so nothing is compared.")]
    if strange := [*_too_many_judges(bundle), *_strange_verdicts(bundle), *judged_in_no_run(bundle)]:
        return [_not_computed("comparison", OF_COMPARISON, strange)]
    if wrong := miscounted(bundle):
        others = f" So it is with {len(wrong) - 1} more." if len(wrong) > 1 else ""
        says = f"Not the judgments count that should: {wrong[0][1]}.{others}"
        return [failed("comparison", OF_COMPARISON, says, [place for place, _ in wrong])]
    recomputed = recompute_comparison(bundle)
    if not recomputed["judges"] and bundle.comparison in (None, recomputed):
        return [noted("comparison", OF_COMPARISON, "No judge has judged this submission, so nothing is compared.")]
    walked = walk(bundle.comparison, recomputed, "the judgments give")
    return [_figures_finding("comparison", OF_COMPARISON, walked)]


def _figures_finding(name: str, title: str, walked: Walked, more_to_say: str = "") -> Finding:
    if walked.wrong:
        first = "; ".join(says for _, says in walked.differing[:TOLD_IN_FULL])
        more = f"; and {walked.wrong - TOLD_IN_FULL} more" if walked.wrong > TOLD_IN_FULL else ""
        stated = f"{plural(walked.wrong, 'figure differs', 'figures differ')}: {first}{more}."
        return failed(name, title, stated, [place for place, _ in walked.differing])
    checked = plural(walked.intervals, "interval was checked", "intervals were checked")
    recomputed = plural(walked.numbers, "number was", "numbers were")
    return passed(name, title, f"{recomputed} computed again, and {checked} by resampling.{more_to_say}")


def _not_computed(name: str, title: str, strange: list[tuple[str, str]]) -> Finding:
    says = f"Nothing can be computed of this: {strange[0][1]}."
    return failed(name, title, says, [place for place, _ in strange])


def _strange_verdicts(bundle: Bundle) -> Iterator[tuple[str, str]]:
    """Places and sentences of verdicts that there are not."""
    decisions: Iterable[Any] = (line["facts"] for line in [*bundle.labels, *bundle.adjudications])
    for facts in decisions:
        if not _is_verdict(facts["verdict"]):
            yield facts["task_id"], f"{facts['task_id']} has the verdict {str(facts['verdict'])[:20]}"
    for line in [*bundle.final_verdicts, *(bundle.judgments or [])]:
        if line["verdict"] is not None and not _is_verdict(line["verdict"]):
            yield line["task_id"], f"{line['task_id']} has the verdict {str(line['verdict'])[:20]}"


def _too_many_judges(bundle: Bundle) -> Iterator[tuple[str, str]]:
    pairs = {(line["judge"], line["fingerprint"]) for line in bundle.judgments or []}
    if len(pairs) > MOST_JUDGES:
        yield "judges/judgments.jsonl", f"it is of {len(pairs):,} judges, and {MOST_JUDGES:,} are the most"


def _is_verdict(value: Any) -> bool:
    return type(value) is int and value in VERDICTS


def _crowded(bundle: Bundle) -> Iterator[tuple[str, str]]:
    slots: dict[str, set[Any]] = {}
    for line in bundle.labels:
        slots.setdefault(line["facts"]["task_id"], set()).add(line["facts"]["slot"])
    for task_id, taken in slots.items():
        if len(taken) > MOST_LABELS:
            yield task_id, f"{task_id} has {len(taken)} labels, and {MOST_LABELS} are the most that a trajectory has"


# --- comparing two documents -----------------------------------------------------------------------------------------


EXACT = 1e-9
MOST_KEPT = 1000  # differences that are written out; more are counted
NAMED_BY = ("name", "judge", "first", "second", "agent", "human_label_2")  # what an entry of a list is called by


@dataclass
class Walked:
    """What was compared: ``numbers`` one by one, ``intervals`` by resampling; ``differing`` has place and sentence."""

    gives: str  # what the other document was recomputed from: "the labels give"
    numbers: int = 0
    intervals: int = 0
    wrong: int = 0
    differing: list[tuple[str, str]] = field(default_factory=list)

    def differs(self, place: str, says: str) -> None:
        self.wrong += 1
        if len(self.differing) < MOST_KEPT:
            self.differing.append((place, f"{place} {says}"))


def walk(stated: Any, recomputed: Any, gives: str) -> Walked:
    """Compare any JSON with a recomputed document, whose intervals may be `End` and `Ends`."""
    walked = Walked(gives)
    _walk_value(walked, "", stated, recomputed)
    return walked


def _walk_value(walked: Walked, place: str, stated: Any, recomputed: Any) -> None:
    if isinstance(recomputed, Ends):
        _walk_interval(walked, place, stated, recomputed)
    elif isinstance(recomputed, dict) and isinstance(stated, dict):
        _walk_keys(walked, place, stated, recomputed)
    elif isinstance(recomputed, list) and isinstance(stated, list):
        _walk_entries(walked, place, stated, recomputed)
    elif not isinstance(recomputed, (dict, list)):
        walked.numbers += _is_number(recomputed)
        if not _same(stated, recomputed):
            walked.differs(place, f"is {_told(stated)}, and {walked.gives} {_told(recomputed)}")
    else:
        walked.differs(place or "it", f"is {_told(stated)}, and should be {_told(recomputed)}")


def _walk_keys(walked: Walked, place: str, stated: dict[str, Any], recomputed: dict[str, Any]) -> None:
    ends = isinstance(recomputed.get("low"), End)
    for key, value in recomputed.items():
        inner = f"{place}.{key}" if place else key
        if key not in stated:
            if not (isinstance(value, Ends) and not value.low.needed):
                walked.differs(inner, "is missing")
        elif not (ends and key in ("low", "high")):
            _walk_value(walked, inner, stated[key], value)
    for key in stated:
        if key not in recomputed:
            walked.differs(f"{place}.{_short(key)}" if place else _short(key), "does not belong there")
    if ends and "low" in stated and "high" in stated:
        both = [stated["low"], stated["high"]]
        given = None if both == [None, None] else both
        _walk_interval(walked, place, given, Ends(recomputed["low"], recomputed["high"]))


def _walk_entries(walked: Walked, place: str, stated: list[Any], recomputed: list[Any]) -> None:
    if len(stated) != len(recomputed):
        walked.differs(place, f"has {plural(len(stated), 'entry', 'entries')}, and {walked.gives} {len(recomputed)}")
    for number, (one, other) in enumerate(zip(stated, recomputed)):  # noqa: B905 - the lengths were compared
        _walk_value(walked, f"{place}[{_entry_name(other, number)}]", one, other)


def _walk_interval(walked: Walked, place: str, stated: Any, ends: Ends) -> None:
    walked.intervals += ends.low.allowed
    if stated is None:
        if ends.low.needed:
            walked.differs(place, f"has no interval, and resampling gives {_told(ends)}")
    elif not ends.low.allowed:
        walked.differs(place, f"has an interval, {_told(stated)}, and resampling gives none")
    elif not (isinstance(stated, list) and len(stated) == 2 and all(map(_is_number, stated))):
        walked.differs(place, f"has {_told(stated)} for an interval")
    else:
        for name, number, end in (("low", stated[0], ends.low), ("high", stated[1], ends.high)):
            if not end.fits(number):
                says = f"is {_told(number)}, and resampling gives {_told(end)}"
                walked.differs(f"{place}.{name}" if place else name, says)


def _same(stated: Any, recomputed: Any) -> bool:
    """As numbers to `EXACT`, counts and everything else as they are; true is not 1."""
    if isinstance(recomputed, float):
        return _is_number(stated) and isclose(stated, recomputed, rel_tol=EXACT, abs_tol=EXACT)
    return type(stated) is type(recomputed) and bool(stated == recomputed)


def _is_number(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def _entry_name(entry: Any, number: int) -> str:
    names = [str(entry[key]) for key in NAMED_BY if key in entry] if isinstance(entry, dict) else []
    return ", ".join(map(_short, names)) or str(number)


def _told(value: Any) -> str:
    if isinstance(value, Ends):
        return f"about {value.low.least:.6g} to {value.high.most:.6g}"
    if isinstance(value, End):
        return f"{value.least:.6g} to {value.most:.6g}"
    if isinstance(value, float):
        return f"{value:.10g}"
    if isinstance(value, list) and len(value) <= 4 and all(map(_is_number, value)):
        return "[" + ", ".join(map(_told, value)) + "]"
    if isinstance(value, (dict, list)):
        return "an object" if isinstance(value, dict) else f"a list of {len(value)}"
    return "nothing" if value is None else _short(repr(value))


def _short(text: str) -> str:
    return text if len(text) <= 60 else f"{text[:57]}..."
