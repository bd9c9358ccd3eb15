"""How a verdict stands to the labels, in words: what it would change before it is final, and how it compares after."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from annotation.forms import VERDICT_NAMES
from annotation.models import Adjudication
from annotation.records import Verdict
from annotation.views.comparing import Comparison


def listed(names: Iterable[str]) -> str:
    """A1 / A1 and A2 / A1, A2 and A3."""
    *head, last = names
    return f"{', '.join(head)} and {last}" if head else last


def effects(comparison: Comparison, before: Verdict | None) -> list[tuple[Verdict, str]]:
    """What each verdict would do to the labels and to the final verdict, which was ``before`` (None for none)."""
    return [(verdict, f"{_stand(comparison, verdict)} {_becomes(verdict, before)}") for verdict in VERDICT_NAMES]


def _stand(comparison: Comparison, verdict: Verdict) -> str:
    with_it = [column.name for column in comparison.columns if column.label.verdict == verdict]
    against = [column.name for column in comparison.columns if column.label.verdict != verdict]
    parts = [f"agrees with {listed(with_it)}"] if with_it else []
    parts += [f"overturns {listed(against)}"] if against else []
    return f"{VERDICT_NAMES[verdict]}: {', '.join(parts)}."


def _becomes(verdict: Verdict, before: Verdict | None) -> str:
    name = VERDICT_NAMES[verdict].lower()
    if before is None:
        return f"The final verdict becomes {name}."
    if before == verdict:
        return f"The final verdict stays {name}."
    return f"The final verdict becomes {name} (was {VERDICT_NAMES[before].lower()})."


@dataclass(frozen=True, slots=True)
class Agreement:
    """How a decision compares with the labels, in words; ``points`` are (title, sentence) of key points that differ."""

    verdict: str
    agrees: bool
    points: list[tuple[str, str]]
    same_points: int


def agreement(comparison: Comparison, decision: Adjudication, *, own: bool) -> Agreement:
    """Compare a decision with the labels, key point by key point; ``own`` when the reader has made it."""
    against = [column.name for column in comparison.columns if column.label.verdict != decision.verdict]
    with_it = [column.name for column in comparison.columns if column.label.verdict == decision.verdict]
    who = "You agree" if own else "The decision agrees"
    sentences = [f"{who} with {_all(with_it, comparison)}."] if with_it else []
    sentences += [f"{'Your verdict' if own else 'The verdict'} overturns {listed(against)}."] if against else []
    points, same = _point_sentences(comparison, decision, own)
    return Agreement(" ".join(sentences), not against, points, same)


def _all(names: list[str], comparison: Comparison) -> str:
    if len(names) < len(comparison.columns) or len(names) < 2:
        return listed(names)
    return "both labels" if len(names) == 2 else f"all {_number(len(names))} labels"


def _number(count: int) -> str:
    return {3: "three", 4: "four", 5: "five"}.get(count, str(count))


def _point_sentences(comparison: Comparison, decision: Adjudication, own: bool) -> tuple[list[tuple[str, str]], int]:
    points, same = [], 0
    said = [(c.name, {f.key_point_id: f.finding for f in c.label.findings.all()}) for c in comparison.columns]
    for number, finding in enumerate(decision.findings.all(), start=1):
        others: dict[str, list[str]] = {}
        for name, findings in said:
            if findings.get(finding.key_point_id, finding.finding) != finding.finding:
                others.setdefault(findings[finding.key_point_id], []).append(name)
        if not others:
            same += 1
            continue
        rest = "; ".join(
            f"{_all(names, comparison)} {'say' if len(names) > 1 else 'says'} {value}"
            for value, names in others.items()
        )
        who = "you say" if own else "the decision says"
        points.append((f"{number}. {finding.key_point.text}", f"{who} {finding.finding}; {rest}."))
    return points, same
