"""The documents of a bundle in the hands of somebody who changes them, and computes every hash again."""

from __future__ import annotations

import copy
from typing import Any

from evaluations.tests.hand_made_bundle import HandMade
from evaluations.verifier.canonical import digest
from evaluations.verifier.checking import claims
from evaluations.verifier.documents import Bundle
from evaluations.verifier.findings import Finding, Result, parse_kinds

Line = dict[str, Any]


class Tampered:
    """A copy of a bundle, to be changed; ``found`` covers the traces in the chain before it asks for the claims."""

    def __init__(self, bundle: Bundle) -> None:
        self.bundle = copy.deepcopy(bundle)

    @property
    def submission(self) -> Line:
        return self.bundle.submission

    @property
    def events(self) -> list[Line]:
        return self.bundle.events

    def label(self, task_id: str, slot: int = 1, revision: int = 1) -> Line:
        wanted = (task_id, slot, revision)
        rows = self.bundle.labels
        return next(r for r in rows if (r["facts"]["task_id"], r["facts"]["slot"], r["facts"]["revision"]) == wanted)

    def adjudication(self, task_id: str) -> Line:
        return next(row for row in self.bundle.adjudications if row["facts"]["task_id"] == task_id)

    def event(self, kind: str, **payload: Any) -> Line:
        """The first event of a kind whose payload has these values."""
        return next(e for e in self.events if e["kind"] == kind and payload.items() <= _plain(e["payload"]).items())

    def of(self, row: Line) -> Line:
        """The event that has the digest of the facts of a row."""
        return next(e for e in self.events if digest(row["facts"]) in _plain(e["payload"]).values())

    def restate(self, row: Line, **changes: Any) -> None:
        """Change facts of a label, an adjudication or a draw, and their digest in the event."""
        payload, old = self.of(row)["payload"], digest(row["facts"])
        name = next(name for name, value in payload.items() if value == old)
        row["facts"].update(changes)
        payload[name] = digest(row["facts"])

    def add(self, after: Line, kind: str, actor: str, /, **payload: Any) -> Line:
        """Make up an event behind another one, at its time."""
        made = {"kind": kind, "actor": actor, "at": after["at"], "payload": payload}
        self.events.insert(self.events.index(after) + 1, made)
        return made

    def move(self, event: Line, before: Line) -> None:
        self.events.remove(event)
        self.events.insert(self.events.index(before), event)

    def refreeze(self) -> None:
        """State in the last freeze what final-verdicts.jsonl says."""
        verdicts = {row["task_id"]: row["verdict"] for row in self.bundle.final_verdicts}
        freeze = [event for event in self.events if event["kind"] == "frozen"][-1]
        freeze["payload"] |= {"verdicts": digest(verdicts), "trajectories": len(verdicts)}

    def relink(self) -> None:
        last = "0" * 64
        for number, event in enumerate(self.events):
            event |= {"sequence": number, "previous": last}
            last = event["hash"] = digest({name: value for name, value in event.items() if name != "hash"})
        chain = {"id": self.events[0]["hash"], "events": len(self.events), "head": last}
        self.submission["chain"] = chain

    def found(self) -> dict[str, Finding]:
        self.relink()
        return {finding.name: finding for finding in claims(self.bundle)}

    def failed(self) -> dict[str, str]:
        """What the claims that fail say, by their names."""
        return {name: one.says for name, one in self.found().items() if one.result is Result.FAIL}

    def exceptions(self) -> str:
        """What `exceptions` tells, a line for each kind; "" where there is none."""
        found = self.found()["exceptions"]
        assert found.result in (Result.NOTE, Result.PASS)
        return "\n".join(f"{kind}: {'; '.join(told_of)}." for kind, told_of in parse_kinds(found.says)[1])


def hand_made() -> Tampered:
    """Three tasks by A1, A2 and A3: task_b is a dispute, one of task_a and task_c was drawn; Q1 decided, M1 froze."""
    return Tampered(HandMade().bundle())


def drawn(tampered: Tampered) -> str:
    return str(tampered.bundle.draws[0]["facts"]["drawn"][0])


def undrawn(tampered: Tampered) -> str:
    facts = tampered.bundle.draws[0]["facts"]
    return str(next(task_id for task_id in facts["population"] if task_id not in facts["drawn"]))


def _plain(payload: Line) -> Line:
    return {name: value for name, value in payload.items() if not isinstance(value, (dict, list))}
