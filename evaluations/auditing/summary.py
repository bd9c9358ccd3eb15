"""What the checks of a bundle show, by fixed rules: a sentence of four parts, and the findings to act on by weight.

A part says what its own checks say, and never that the bundle is valid: no check shows that verdicts are right.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from enum import IntEnum
from typing import Any

from evaluations.auditing.importing import OPENED
from evaluations.verifier.anchors import HOW_TO_CHECK
from evaluations.verifier.findings import plural

Row = Mapping[str, Any]  # a finding, as `Finding.as_json`
Rows = Sequence[Row]

CHANGED, RULES, SIGNER, TIME = "changed", "rules", "signer", "time"
QUESTIONS = {
    CHANGED: "Was anything changed, or does it contradict itself?",
    RULES: "Were the rules of the protocol followed?",
    SIGNER: "Who signed it?",
    TIME: "When was it judged, and how is the time proved?",
}
RULES_NEEDED = (
    *("protocol", "coverage", "annotators", "roles", "disputes", "draws", "spot_checks", "blind_order", "reasons"),
    *("fixed_labels", "final_verdicts", "frozen"),
)
CHANGED_NEEDED = ("manifest", "shapes", "imported", "export", "complete_record", "chain")
PART_OF = (
    dict.fromkeys((*RULES_NEEDED, "tasks", "exceptions"), RULES)
    | dict.fromkeys(("signature", "revocations"), SIGNER)
    | dict.fromkeys(("times", "anchors", "chain_id", "kept_heads"), TIME)
)  # all other checks are about changes and contradictions

# How far heads from outside fix the chain, as `anchors` and `kept_heads` state it when they pass.
_FIXED = re.compile(r"events 0 to (\d+) are (?:as they were|unchanged since) then\.\Z")
_KINDS = re.compile(r"[A-Z][^.:]*: [\d,]+\.")  # of work that `times` notes
_UNMEASURED = re.compile("was not measured|without a record")


class State(IntEnum):
    GOOD = 0
    DOUBTFUL = 1
    BAD = 2

    @property
    def chip(self) -> str:
        return ("ok", "warn", "bad")[self]


@dataclass(frozen=True, slots=True)
class Part:
    """The answer to one of the `QUESTIONS`: ``words`` are its part of the sentence, ``detail`` states its basis."""

    name: str
    state: State
    words: str
    detail: str

    @property
    def question(self) -> str:
        return QUESTIONS[self.name]


@dataclass(frozen=True, slots=True)
class Summary:
    parts: tuple[Part, ...]

    @property
    def sentence(self) -> str:
        """Return all four words; "unchanged and rule-abiding" if both hold."""
        changed, rules, *others = (part.words for part in self.parts)
        joint = " and " if self.parts[0].state is self.parts[1].state is State.GOOD else "; "
        said = "; ".join([f"{changed}{joint}{rules}", *others])
        return f"{said[0].upper()}{said[1:]}."

    @property
    def state(self) -> State:
        return max(part.state for part in self.parts)


def summarise(findings: Rows, frozen_at: datetime | None, frozen_event: int | None) -> Summary:
    """Return the four answers. ``frozen_event`` is the number of the event of the last freeze; None if not frozen."""
    changed = _changed(findings)
    return Summary(
        (changed, _rules(findings, changed.state), _signer(findings), _time(findings, frozen_at, frozen_event))
    )


def _changed(findings: Rows) -> Part:
    signed = _results(findings, "signature") in ({"pass"}, {"note"})
    if wrong := _failed(findings, CHANGED):
        files = any(row["name"] == "manifest" for row in wrong)
        words = "changed after signing" if files and signed else "changed or contradictory"
        return Part(CHANGED, State.BAD, words, _list_failed(wrong))
    if not signed:
        detail = "Without a signature that holds, anybody could have changed it."
        return Part(CHANGED, State.BAD, "not shown to be unchanged", detail)
    if left := _unchecked(findings, CHANGED_NEEDED):
        return Part(CHANGED, State.DOUBTFUL, "not fully checked for changes", left)
    return Part(CHANGED, State.GOOD, "unchanged", _says(findings, "manifest", "complete_record"))


def _rules(findings: Rows, changed: State) -> Part:
    if wrong := _failed(findings, RULES):
        return Part(RULES, State.BAD, "rules broken", _list_failed(wrong))
    if left := _unchecked(findings, RULES_NEEDED):
        return Part(RULES, State.DOUBTFUL, "rules not fully checked", left)
    detail = _says(findings, "annotators", "disputes")
    if noted := [row for row in findings if row["name"] == "exceptions" and row["result"] == "note"]:
        detail += " " + noted[0]["says"].partition("\n")[0]
    if changed is not State.GOOD:
        return Part(RULES, State.DOUBTFUL, "rule-abiding by its own records", detail)
    return Part(RULES, State.GOOD, "rule-abiding", detail)


def _signer(findings: Rows) -> Part:
    results, detail = _results(findings, "signature"), _says(findings, "signature")
    if "fail" in _results(findings, "revocations"):
        words = "failed against the submitter's list of revocations"
        return Part(SIGNER, State.BAD, words, _says(findings, "revocations"))
    if results == {"pass"}:
        return Part(SIGNER, State.GOOD, "signer known", detail)
    if results == {"note"}:
        return Part(SIGNER, State.DOUBTFUL, "signer not confirmed", detail)
    return Part(SIGNER, State.BAD, "no valid signature", detail or "The signature was not checked.")


def _time(findings: Rows, frozen_at: datetime | None, frozen_event: int | None) -> Part:
    if wrong := _failed(findings, TIME):
        return Part(TIME, State.BAD, "time contradicted from outside", _list_failed(wrong))
    when = f"Frozen {frozen_at:%Y-%m-%d %H:%M} UTC" if frozen_at else "Not frozen"
    of_outside = [row for row in findings if row["name"] in ("anchors", "kept_heads", "chain_id")]
    told = [(_FIXED.search(row["says"]), row) for row in of_outside if row["result"] == "pass"]
    fixed = [(int(found[1]), row) for found, row in told if found]
    basis = " ".join(row["says"].partition("\n")[0] for row in of_outside)
    if fixed and _results(findings, "chain") == {"pass"}:
        last, row = max(fixed, key=lambda each: each[0])
        if frozen_event is not None and last >= frozen_event:
            detail = f"{when}, fixed by heads that are known from outside. {row['says']}"
            return _plausible(findings, Part(TIME, State.GOOD, "time proved", detail))
        basis, words = row["says"], "time proved only in part"
        when += f"; known heads fix only events 0 to {last}."
    elif any(HOW_TO_CHECK in row["says"] for row in of_outside):
        words = "time stamps not checked yet"
        when += " by its own clock, with time stamps whose signatures you still have to check."
    elif "pass" in _results(findings, "chain_id"):
        words = "time not proved"
        when += " by its own clock; only the start of its chain is known from outside."
    else:
        words = "time not proved"
        when += " by its own clock, which nothing from outside confirms."
    return _plausible(findings, Part(TIME, State.DOUBTFUL, words, f"{when} {basis}".strip()))


def _plausible(findings: Rows, part: Part) -> Part:
    """Return the part with what the check `times` notes: work faster than reading, or work that was not measured."""
    if _results(findings, "times") == {"pass"}:
        return part
    says = _says(findings, "times")
    if odd := [kind[0] for kind in _KINDS.finditer(says) if not _UNMEASURED.search(kind[0])]:
        return replace(part, state=State.DOUBTFUL, words="timing implausible", detail=" ".join([*odd, part.detail]))
    words = f"{part.words}, working times unknown" if part.state is State.GOOD else part.words
    return replace(part, state=State.DOUBTFUL, words=words, detail=f"{part.detail} {says}".strip())


def _results(findings: Rows, name: str) -> set[str]:
    return {row["result"] for row in findings if row["name"] == name}


def part_of(row: Row) -> str:
    """Return the part that a finding belongs to; an unfinished check belongs to that of the check."""
    name = row["places"][0] if row["name"] == "internal" and row["places"] else row["name"]
    return PART_OF.get(name, CHANGED)


def _failed(findings: Rows, part: str) -> Rows:
    return [row for row in findings if row["result"] == "fail" and part_of(row) == part and row["name"] != OPENED]


def _list_failed(wrong: Rows) -> str:
    more = f" And {len(wrong) - 2} more." if len(wrong) > 2 else ""
    return f"{plural(len(wrong), 'check')} failed: {'; '.join(row['title'] for row in wrong[:2])}.{more}"


def _unchecked(findings: Rows, needed: Iterable[str]) -> str:
    """Name the checks that were not made: they are missing, or they are notes where they can only pass or fail."""
    left = [name for name in needed if _results(findings, name) != {"pass"}]
    return f"Not checked: {', '.join(left)}." if left else ""


def _says(findings: Rows, *names: str) -> str:
    return " ".join(row["says"].partition("\n")[0] for name in names for row in findings if row["name"] == name)


# --- counts ----------------------------------------------------------------------------------------------------------


def checks_of_bundle(findings: Iterable[Row]) -> list[Row]:
    """Return the findings that every program makes of a bundle, and that are counted: without that of the import."""
    return [row for row in findings if row["name"] != OPENED]


def count_results(findings: Iterable[Row]) -> Counter[str]:
    return Counter(row["result"] for row in checks_of_bundle(findings))


# --- what to act on --------------------------------------------------------------------------------------------------


class Weight(IntEnum):
    """A check that failed is serious. A note is medium if it could change whether to rely on the verdicts."""

    SERIOUS = 0
    MEDIUM = 1
    MINOR = 2
    ALWAYS = 3

    @property
    def word(self) -> str:
        return self.name.lower()

    @property
    def chip(self) -> str:
        return ("bad", "warn", "", "")[self]


AGAIN, READ, SAMPLE = "again", "read", "sample"  # links of an advice


@dataclass(frozen=True, slots=True)
class Advice:
    text: str
    link: str = ""


FAILED = {
    CHANGED: Advice("Do not rely on this bundle. Ask the submitter for a new one, and for an explanation."),
    RULES: Advice("Ask the submitter for the reason. Open the places below before you rely on their verdicts.", READ),
    SIGNER: Advice(
        "Fetch the published keys from the submitter's own address, and upload the bundle again with them. If it still "
        "fails, somebody else signed it.",
        AGAIN,
    ),
    TIME: Advice("Ask the submitter who had these heads, and why the chain differs. Do not rely on it until then."),
}
NOT_OPENED = Advice("Read the records below in the bundle itself: figures and pages here are without them.")
NOTED = {
    "signature": (
        Weight.MEDIUM,
        Advice(
            "Fetch the published keys from the submitter's own address, and upload the bundle again with them.", AGAIN
        ),
    ),
    "anchors": (
        Weight.MEDIUM,
        Advice(
            "Ask where heads were published, get the lines from that place and not from the submitter, and send the "
            "bundle again with them.",
            AGAIN,
        ),
    ),
    "revocations": (Weight.MEDIUM, Advice("Ask the submitter for the bundle that counts now.")),
    "supersedes": (Weight.MINOR, Advice("Ask the submitter for the replaced bundle, and compare the verdicts.")),
    "tasks": (Weight.MEDIUM, Advice("Upload the bundle again with the benchmark's own task list.", AGAIN)),
    "times": (Weight.MEDIUM, Advice("Open some of these trajectories, and compare the reasons with the steps.", READ)),
    "exceptions": (Weight.MEDIUM, Advice("Read the reason of each, and open those that changed a verdict.", READ)),
    "pictures": (Weight.MEDIUM, Advice("Ask for a bundle with screenshots: verdicts cannot be judged without them.")),
    "redacted": (Weight.MINOR, Advice("Read what was covered and why.", READ)),
    "judgments": (Weight.MINOR, Advice("Rely on the judges' figures no more than on the submitter's word.")),
    "comparison": (Weight.MINOR, Advice("Nothing to do: the verdicts of people rest on no judge.")),
    "verifier": (Weight.MINOR, Advice("Never run the verify.py of a bundle: use one from a source that you trust.")),
    "limits": (Weight.ALWAYS, Advice("Let your own people judge a sample.", SAMPLE)),
}
OTHERWISE = (Weight.MINOR, Advice("Check it with the version of WebVerdict that created the bundle."))
UNCHECKED = (Weight.MEDIUM, Advice("Ask the submitter for a complete bundle: this could not be checked."))
NOTE_TITLES = {
    "anchors": "Proof of the chain from outside",
    "tasks": "Comparison with the benchmark's own task list",
    "revocations": "Entries in the submitter's list of revocations",
    **dict.fromkeys(("supersedes", "exceptions", "redacted", "verifier", "limits"), ""),
}


@dataclass(frozen=True, slots=True)
class Risk:
    """A finding that did not pass, with its weight, what to do about it, and a title that says so."""

    row: Row
    weight: Weight
    title: str
    advice: Advice


def list_risks(findings: Rows) -> list[Risk]:
    """Return all findings that did not pass, the most serious first."""
    return sorted((_risk(row) for row in findings if row["result"] != "pass"), key=lambda risk: risk.weight)


def _risk(row: Row) -> Risk:
    name, title = row["name"], row["title"]
    bare = title if title[1:2].isupper() else title[:1].lower() + title[1:]
    if row["result"] == "fail":
        advice = NOT_OPENED if name == OPENED else FAILED[part_of(row)]
        return Risk(row, Weight.SERIOUS, f"Failed: {bare}", advice)
    unchecked = name in (*CHANGED_NEEDED, *RULES_NEEDED)
    weight, advice = NOTED.get(name, UNCHECKED if unchecked else OTHERWISE)
    return Risk(row, weight, (NOTE_TITLES.get(name, f"Not confirmed: {bare}") or title), advice)


def list_passed(findings: Rows) -> list[tuple[str, list[Row]]]:
    """Return the checks that passed by the question that they answer, in the order of `QUESTIONS`."""
    passed = [row for row in checks_of_bundle(findings) if row["result"] == "pass"]
    return [(question, [row for row in passed if part_of(row) == part]) for part, question in QUESTIONS.items()]
