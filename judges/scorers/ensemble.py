"""The judge that combines judgments which other judges have already made of a trajectory; it asks no model.

Votes are those of the newest run in which a member judged the trajectory, one for each of its repetitions, or its
imported judgments of the trajectory. Judgments of test runs are not votes. An expected repetition without a judgment,
and an unscored judgment, are votes without a verdict: they count in the total, for no verdict.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Annotated, Any, Literal

from annotation.formats.printable import counted, printable
from annotation.records import Verdict
from judges.llm import Asker
from judges.scorer import Kind, ParameterError, Prompts, Requirement, Score, Subject, Vote, register
from judges.scorers.detail_values import read_as

NAME = "ensemble"
MOST_MEMBERS = 20
MEMBER = re.compile(r"([\w-]{1,64})(?:@([1-9]\d{0,8}))?(?:=(\d{1,6}(?:\.\d{1,6})?))?", re.ASCII)
MOST_SHOWN = 1000  # votes of a member on a page
COST = re.compile(r"\d{1,12}(?:\.\d{1,12})?", re.ASCII)
NO_JUDGMENT = "It has no judgment of this trajectory."
WORDS: dict[int | None, str] = {
    Verdict.SUCCESS: "success",
    Verdict.FAILURE: "failure",
    Verdict.NOT_EXECUTABLE: "not executable",
}


@dataclass(frozen=True, slots=True)
class Member:
    """A judge with its weight; ``version`` is None before it is resolved."""

    name: str
    version: int | None
    weight: Decimal = Decimal(1)

    @property
    def label(self) -> str:
        return self.name if self.version is None else f"{self.name}@{self.version}"

    def __str__(self) -> str:
        return self.label if self.weight == 1 else f"{self.label}={self.weight.normalize():f}"


@dataclass(frozen=True, slots=True)
class EnsembleParameters:
    members: str = field(
        default="",
        metadata={
            "help": "Judges, separated by commas: careful@1, strict@2. Without a version: the newest. With the rule "
            "weighted, a weight may follow: careful@1=2. Each must have judged before. The judge's newest run "
            "on the trajectory counts, else its imported judgments. Test runs do not count."
        },
    )
    rule: Literal["majority", "unanimous", "weighted"] = field(
        default="majority",
        metadata={
            "help": "majority: the verdict of more than half of all expected votes, missing and unscored ones "
            "included. unanimous: failure if any vote is failure, another verdict if all votes agree. weighted: the "
            "verdict with more than half of all expected weights. Otherwise the trajectory is unscored."
        },
    )
    votes: Literal["judge", "repetition"] = field(
        default="judge",
        metadata={
            "help": "judge: each judge has one vote, the majority of its repetitions. repetition: each repetition is "
            "a vote, with the weight of its judge."
        },
    )
    fingerprints: str = field(
        default="",
        metadata={"help": "Fingerprints of the members, filled in when the judge is defined.", "derived": True},
    )

    def __post_init__(self) -> None:
        found = self.parse_members()
        if self.rule != "weighted" and any(one.weight != 1 for one in found):
            raise ParameterError("members", "Weights need the rule weighted.")

    def parse_members(self) -> tuple[Member, ...]:
        """Return the members in the order of the text; raise ParameterError."""
        entries = [entry.strip() for entry in self.members.split(",")] if self.members.strip() else []
        if len(entries) > MOST_MEMBERS:
            raise ParameterError("members", f"An ensemble has at most {MOST_MEMBERS} judges; these are {len(entries)}.")
        found = tuple(_parse_member(entry) for entry in entries)
        labels = [one.label for one in found]
        if twice := next((label for label in labels if labels.count(label) > 1), None):
            raise ParameterError("members", f"{twice} is named twice. Give it a weight instead.")
        return found

    def parse_fingerprints(self) -> tuple[str, ...]:
        return tuple(one.strip() for one in self.fingerprints.split(",")) if self.fingerprints.strip() else ()


def _parse_member(entry: str) -> Member:
    parsed = MEMBER.fullmatch(entry)
    if parsed is None:
        raise ParameterError(
            "members", f"{printable(entry, 80) or 'An empty name'} is not NAME, NAME@VERSION or NAME@VERSION=WEIGHT."
        )
    name, version, weight = parsed.groups()
    value = Decimal(weight or 1)
    if not value:
        raise ParameterError("members", f"The weight of {name} must be above 0.")
    return Member(name, int(version) if version else None, value)


# --- counting --------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Ballot:
    """A vote that the rule counts; ``verdict`` is None if it is missing or unscored."""

    verdict: Verdict | None
    weight: Decimal


@dataclass(frozen=True, slots=True)
class MemberResult:
    """A member with its votes, and the verdict of more than half of them; without one, ``unscored`` says why."""

    member: Member
    fingerprint: str
    votes: tuple[Vote, ...]
    verdict: Verdict | None
    unscored: str


def find_results(parameters: EnsembleParameters, votes: Iterable[Vote]) -> list[MemberResult]:
    given = tuple(votes)
    pairs = zip(parameters.parse_members(), parameters.parse_fingerprints(), strict=True)
    results = []
    for member, fingerprint in pairs:
        own = tuple(one for one in given if (one.judge, one.fingerprint) == (member.label, fingerprint))
        verdict = find_majority([Ballot(one.verdict, Decimal(1)) for one in own])
        unscored = "" if verdict is not None else _explain_silence(own)
        results.append(MemberResult(member, fingerprint, own, verdict, unscored))
    return results


def _explain_silence(votes: Sequence[Vote]) -> str:
    if len(votes) == 1:
        return votes[0].unscored
    return f"No verdict has more than half of its {len(votes)} repetitions." if votes else NO_JUDGMENT


def list_ballots(parameters: EnsembleParameters, results: Iterable[MemberResult]) -> list[Ballot]:
    """Return the votes that count; a member without any judgment has one without a verdict."""
    if parameters.votes == "judge":
        return [Ballot(one.verdict, one.member.weight) for one in results]
    return [
        Ballot(verdict, one.member.weight)
        for one in results
        for verdict in ([vote.verdict for vote in one.votes] or [None])
    ]


def find_majority(ballots: Iterable[Ballot]) -> Verdict | None:
    """Return the verdict with more than half of all weights, those of ballots without a verdict included."""
    cast = list(ballots)
    total = sum((one.weight for one in cast), Decimal(0))
    return next((verdict for verdict in Verdict if 2 * _weigh(cast, verdict) > total), None)


def _weigh(ballots: Iterable[Ballot], verdict: int | None) -> Decimal:
    return sum((one.weight for one in ballots if one.verdict == verdict), Decimal(0))


def find_unanimous(ballots: Sequence[Ballot]) -> Verdict | None:
    """Return failure if any vote says so, another verdict if every vote says it, else None."""
    said = {one.verdict for one in ballots}
    if Verdict.FAILURE in said:
        return Verdict.FAILURE
    return said.pop() if len(said) == 1 else None


def combine(parameters: EnsembleParameters, votes: Iterable[Vote]) -> Score:
    results = find_results(parameters, votes)
    ballots = list_ballots(parameters, results)
    verdict = find_unanimous(ballots) if parameters.rule == "unanimous" else find_majority(ballots)
    told = _describe(ballots, weighted=parameters.rule == "weighted")
    scored = [one for one in ballots if one.verdict is not None]
    share = _weigh(scored, Verdict.SUCCESS) / sum(one.weight for one in scored) if scored else None
    return Score(
        verdict,
        unscored="" if verdict is not None else f"The rule {parameters.rule} gives no verdict: {told}.",
        score=None if share is None else float(share),
        explanation=f"{parameters.rule.capitalize()}: {told}.",
        details=_build_details(parameters, results, ballots),
    )


def _describe(ballots: Sequence[Ballot], *, weighted: bool) -> str:
    """Return the count of each verdict in words: "2 success and 1 without a verdict, of 3 votes"."""
    names = WORDS | {None: "without a verdict"}
    sums = [(_weigh(ballots, verdict), name) for verdict, name in names.items()]
    said = [f"{amount.normalize():f} {name}" for amount, name in sums if amount]
    total = sum((one.weight for one in ballots), Decimal(0))
    of = f"a total weight of {total.normalize():f}" if weighted else counted(len(ballots), "vote")
    return f"{' and '.join([', '.join(said[:-1]), said[-1]] if said[1:] else said)}, of {of}"


def _build_details(
    parameters: EnsembleParameters, results: Iterable[MemberResult], ballots: Sequence[Ballot]
) -> dict[str, Any]:
    return {
        "kind": NAME,
        "rule": parameters.rule,
        "votes": parameters.votes,
        "sums": {name: float(_weigh(ballots, verdict)) for verdict, name in (WORDS | {None: "none"}).items()},
        "members": [
            {
                "judge": one.member.label,
                "fingerprint": one.fingerprint,
                "weight": float(one.member.weight),
                "verdict": None if one.verdict is None else int(one.verdict),
                "unscored": one.unscored,
                "votes": [_build_vote(vote) for vote in one.votes],
            }
            for one in results
        ],
    }


def _build_vote(vote: Vote) -> dict[str, Any]:
    return {
        "repetition": vote.repetition,
        "run": vote.run,
        "judgment": vote.judgment,
        "verdict": None if vote.verdict is None else int(vote.verdict),
        "unscored": vote.unscored,
        "cost": None if vote.cost is None else f"{vote.cost:f}",
    }


@dataclass(frozen=True, slots=True)
class EnsembleScorer:
    parameters: EnsembleParameters

    async def score(self, subject: Subject, model: Asker) -> Score:
        return combine(self.parameters, subject.votes)


def has_all_votes(parameters: EnsembleParameters, subject: Subject) -> bool:
    """Return whether every vote that counts has a verdict."""
    ballots = list_ballots(parameters, find_results(parameters, subject.votes))
    return all(one.verdict is not None for one in ballots)


# --- the page --------------------------------------------------------------------------------------------------------


def _word(verdict: int | None) -> str:
    return WORDS.get(verdict, "unscored")


def _tone(verdict: int | None) -> str:
    return f"v{verdict}" if verdict in WORDS else "unclear"


@dataclass(frozen=True, slots=True)
class ShownVote:
    repetition: int | None
    run: int | None
    judgment: int | None
    verdict: int | None
    unscored: Annotated[str, 500]
    cost: Annotated[str, 40]

    @property
    def page(self) -> int | None:
        return self.judgment if self.judgment is not None and self.judgment > 0 else None

    @property
    def word(self) -> str:
        return _word(self.verdict) if self.judgment is not None else "no vote"

    @property
    def tone(self) -> str:
        return _tone(self.verdict)


@dataclass(frozen=True, slots=True)
class ShownMember:
    judge: Annotated[str, 80]
    fingerprint: Annotated[str, 64]
    weight: float | None
    verdict: int | None
    unscored: Annotated[str, 500]
    votes: Annotated[list[ShownVote], MOST_SHOWN]

    @property
    def word(self) -> str:
        return _word(self.verdict)

    @property
    def tone(self) -> str:
        return _tone(self.verdict)


@dataclass(frozen=True, slots=True)
class EnsembleDetails:
    """``counted`` is what counts as a vote."""

    rule: Annotated[str, 40]
    counted: Annotated[str, 40, "votes"]
    members: Annotated[list[ShownMember], MOST_MEMBERS]

    @property
    def weighted(self) -> bool:
        return self.rule == "weighted"

    @property
    def cost(self) -> Decimal | None:
        """Return what the judgments cost in US dollars, None if one has no known cost."""
        costs = [vote.cost for member in self.members for vote in member.votes if vote.judgment is not None]
        return sum(map(Decimal, costs), Decimal(0)) if costs and all(map(COST.fullmatch, costs)) else None


def read_details(details: Mapping[str, Any]) -> EnsembleDetails:
    return read_as(EnsembleDetails, details)


def build(parameters: EnsembleParameters, prompts: Prompts) -> EnsembleScorer:
    return EnsembleScorer(parameters)


register(
    Kind(
        name=NAME,
        version=1,
        title="Ensemble",
        description="Combines judgments that other judges have already made: majority, unanimous, or weighted votes.",
        parameters=EnsembleParameters,
        prompts="",
        build=build,
        asks=False,
        requires=lambda parameters: Requirement(
            "verdicts of all members", lambda subject: has_all_votes(parameters, subject), of_task=False, may_miss=True
        ),
        read_details=read_details,
        combines_judges=True,
    )
)
