"""Annotators: two at a time, and each one alone."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from itertools import combinations
from statistics import median

from annotation.records import Verdict
from evaluations.agreement.measuring import FEWER_RESAMPLES, SEED, made_elsewhere, natural, rate, table
from evaluations.agreement.results import Annotator, Pair
from evaluations.cases import Case
from evaluations.statistics import (
    Competence,
    Measure,
    Tally,
    dawid_skene,
    kappa_with_interval,
    krippendorff_alpha,
    mace,
    wilson,
    with_interval,
)

MOST_PAIRS = 500  # imported labels can have hundreds of annotators
ENOUGH_LABELS = 10  # of an annotator, below which an estimate of their competence says nothing

# --- two at a time ---------------------------------------------------------------------------------------------------

Counts = Counter[tuple[Verdict, Verdict]]  # how often two labels were these


def pairs(cases: Iterable[Case]) -> list[tuple[tuple[str, str], Counts]]:
    """Every two annotators with a common case, most cases first."""
    # Thousands of cases are labelled by the same few people with the same few verdicts.
    shapes = Counter(tuple([(label.annotator, label.verdict) for label in case.labels]) for case in cases)
    counts: dict[tuple[str, str], Counts] = defaultdict(Counter)
    for labels, times in shapes.items():
        for (one, said), (other, answered) in combinations(sorted(labels, key=lambda label: natural(label[0])), 2):
            counts[one, other][said, answered] += times
    return sorted(counts.items(), key=lambda pair: (-pair[1].total(), *map(natural, pair[0])))


def pair(first: str, second: str, counts: Counts) -> Pair:
    found, tally = table(counts), Tally.of_labels(counts.elements())
    same = sum(counts[verdict, verdict] for verdict in Verdict)
    return Pair(
        first=first,
        second=second,
        raw_agreement=wilson(same, counts.total()),
        kappa=kappa_with_interval(found, resamples=FEWER_RESAMPLES, seed=SEED),
        alpha=with_interval(tally, krippendorff_alpha, resamples=FEWER_RESAMPLES, seed=SEED),
        table=found,
    )


def listed_pair(cases: Iterable[Case]) -> Pair | None:
    """Of labels made elsewhere, in the order of their file; None where no case has two."""
    twice = [case.labels for case in cases if made_elsewhere(case) and len(case.labels) > 1]
    counts = Counter((labels[0].verdict, labels[1].verdict) for labels in twice)
    return pair("first listed", "second listed", counts) if counts else None


# --- each one alone --------------------------------------------------------------------------------------------------


@dataclass(slots=True)
class _Record:
    """What one annotator has said: the final verdict is None where there is none that is not their own label."""

    said: list[tuple[Verdict, Verdict | None]] = field(default_factory=list)
    adjudicated: int = 0
    overturned: int = 0
    seconds: list[int] = field(default_factory=list)

    def add(self, verdict: Verdict, seconds: int | None, case: Case) -> None:
        self.said.append((verdict, None if made_elsewhere(case) else case.final))
        self.adjudicated += case.adjudicated is not None
        self.overturned += case.adjudicated is not None and case.adjudicated is not verdict
        if seconds is not None:
            self.seconds.append(seconds)


def annotators(cases: Sequence[Case]) -> list[Annotator]:
    records: dict[str, _Record] = defaultdict(_Record)
    for case in cases:
        for label in case.labels:
            records[label.annotator].add(label.verdict, label.seconds, case)
    triplets = [(item, label.annotator, label.verdict) for item, case in enumerate(cases) for label in case.labels]
    competence, trust = dawid_skene(triplets), mace(triplets)
    return [
        _annotator(name, records[name], _hint(competence, name, records[name]), _hint(trust, name, records[name]))
        for name in sorted(records, key=natural)
    ]


def _annotator(name: str, record: _Record, competence: Measure, trust: Measure) -> Annotator:
    counts = Counter(record.said)
    hits = sum(counts[verdict, verdict] for verdict in Verdict)
    decided = len(record.said) - sum(counts[verdict, None] for verdict in Verdict)
    return Annotator(
        name=name,
        labels=len(record.said),
        agreement=rate(hits, decided, "no reviewed case of theirs has a final verdict"),
        confusion=table(counts),
        overturned=rate(record.overturned, record.adjudicated, "no case of theirs was adjudicated"),
        seconds=median(record.seconds) if record.seconds else None,
        competence=competence,
        trust=trust,
    )


def _hint(competence: Competence[str], name: str, record: _Record) -> Measure:
    if len(record.said) < ENOUGH_LABELS:
        return Measure.missing(f"fewer than {ENOUGH_LABELS} labels", len(record.said))
    return competence.of[name]
