"""Agreement of pairs of annotators, and figures of each annotator."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import combinations
from statistics import median
from typing import Any

from annotation.records import Verdict
from evaluations.agreement.measuring import (
    FEWER_RESAMPLES,
    RESAMPLES,
    SEED,
    hits_of_tasks,
    made_elsewhere,
    pooled,
    rate,
    table,
)
from evaluations.agreement.results import Annotator, Pair
from evaluations.cases import Case
from evaluations.naming import natural
from evaluations.statistics import (
    Competence,
    Measure,
    Tally,
    clusters_of,
    cohen_kappa,
    dawid_skene,
    kappa_with_interval,
    krippendorff_alpha,
    mace,
    wilson,
    with_interval,
)

MOST_PAIRS = 500  # imported labels can have hundreds of annotators
MOST_INTERVALS = 100  # pairs that get intervals
ENOUGH_LABELS = 10  # labels of an annotator on shared cases; with fewer, an estimate of their competence is meaningless
ENOUGH_PEOPLE = 3  # between two annotators, either one can explain each difference

# --- pairs -----------------------------------------------------------------------------------------------------------

Names = tuple[str, str]
Common = list[tuple[tuple[Verdict, Verdict], Sequence[Case]]]  # two people's labels, and the cases with them


def pairs(cases: Sequence[Case]) -> tuple[list[Pair], int]:
    """Return every two annotators with a common case, most cases first, and the number of pairs left out.

    The largest pairs have intervals.
    """
    names = sorted({label.annotator for case in cases for label in case.labels}, key=natural)
    rank = {name: place for place, name in enumerate(names)}
    common = _common(cases, rank)
    largest = sorted(common, key=lambda pair: (-_cases_of(common[pair]), rank[pair[0]], rank[pair[1]]))
    found = [
        _pair(*pair, common[pair], FEWER_RESAMPLES if number < MOST_INTERVALS else 0)
        for number, pair in enumerate(largest[:MOST_PAIRS])
    ]
    return found, len(largest) - len(found)


def listed_pair(cases: Iterable[Case]) -> Pair | None:
    """Return the first and second imported labels in the order of their file; None if no case has two."""
    twice: dict[tuple[Verdict, Verdict], list[Case]] = defaultdict(list)
    for case in cases:
        if made_elsewhere(case) and len(case.labels) > 1:
            twice[case.labels[0].verdict, case.labels[1].verdict].append(case)
    return _pair("first listed", "second listed", list(twice.items()), RESAMPLES) if twice else None


def _common(cases: Iterable[Case], rank: Mapping[str, int]) -> dict[Names, Common]:
    # Group cases by labels first: a few people give thousands of cases the same few verdicts.
    shapes: dict[tuple[tuple[str, Verdict], ...], list[Case]] = defaultdict(list)
    for case in cases:
        shapes[tuple([(label.annotator, label.verdict) for label in case.labels])].append(case)
    found: dict[Names, Common] = defaultdict(list)
    for labels, alike in shapes.items():
        for (one, said), (other, answered) in combinations(sorted(labels, key=lambda label: rank[label[0]]), 2):
            found[one, other].append(((said, answered), alike))
    return found


def _cases_of(common: Common) -> int:
    return sum(len(alike) for _, alike in common)


def _pair(first: str, second: str, common: Common, resamples: int) -> Pair:
    counts: Counter[tuple[Verdict, Verdict]] = Counter()
    for said, alike in common:
        counts[said] += len(alike)
    found, tally = table(counts), Tally.of_labels(counts.elements())
    same = sum(counts[verdict, verdict] for verdict in Verdict)
    raw = wilson(same, counts.total())
    if not resamples:
        plain = replace(raw, low=None, high=None)
        return Pair(first, second, plain, cohen_kappa(found), krippendorff_alpha(tally), found)
    drawn: dict[str, Any] = {"resamples": resamples, "seed": SEED}
    if not pooled([case for _, alike in common for case in alike]):
        kappa, alpha = kappa_with_interval(found, **drawn), with_interval(tally, krippendorff_alpha, **drawn)
        return Pair(first, second, raw, kappa, alpha, found)
    places = [(case.task_id, said) for said, alike in common for case in alike]
    cells = clusters_of(((task, len(Verdict) * one + other) for task, (one, other) in places), len(Verdict) ** 2)
    return Pair(
        first,
        second,
        wilson(same, len(places), hits_of_tasks((task, one is other) for task, (one, other) in places)),
        kappa_with_interval(found, cells, **drawn),
        with_interval(tally, krippendorff_alpha, tally.clusters(places), **drawn),
        found,
    )


# --- single annotators -----------------------------------------------------------------------------------------------


@dataclass(slots=True)
class _Record:
    """The labels of one annotator. The final verdict is None for imported labels and undecided cases."""

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
    competence, trust = _hints(cases)
    return [_annotator(name, records[name], competence[name], trust[name]) for name in sorted(records, key=natural)]


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


def _hints(cases: Sequence[Case]) -> tuple[dict[str, Measure], dict[str, Measure]]:
    """Return competence and trust of each annotator, estimated only among annotators connected by shared cases."""
    competence: dict[str, Measure] = {}
    trust: dict[str, Measure] = {}
    group_of = _join_annotators({tuple([label.annotator for label in case.labels]) for case in cases})
    triplets: dict[str, list[tuple[int, str, Verdict]]] = defaultdict(list)
    for item, case in enumerate(cases):
        for label in case.labels:
            triplets[group_of[label.annotator]].append((item, label.annotator, label.verdict))
    people = Counter(group_of.values())
    for group, given in triplets.items():
        if people[group] < ENOUGH_PEOPLE:
            why = "shares no case with anybody" if people[group] == 1 else "fewer than three annotators share cases"
            found = trusted = {name: Measure.missing(why) for _, name, _ in given}
        else:
            found, trusted = _enough(dawid_skene(given)), _enough(mace(given))
        competence |= found
        trust |= trusted
    return competence, trust


def _join_annotators(together: Iterable[Sequence[str]]) -> dict[str, str]:
    """Map each annotator to a representative of all whom shared cases connect, directly or through others."""
    above: dict[str, str] = {}

    def top(name: str) -> str:
        while above.setdefault(name, name) != name:
            above[name] = name = above[above[name]]
        return name

    for first, *others in together:
        for name in [first, *others]:
            above[top(name)] = top(first)
    return {name: top(name) for name in list(above)}


def _enough(competence: Competence[str]) -> dict[str, Measure]:
    few = f"fewer than {ENOUGH_LABELS} labels on shared cases"
    return {
        name: Measure.missing(few, found.n) if found.value is not None and found.n < ENOUGH_LABELS else found
        for name, found in competence.of.items()
    }
