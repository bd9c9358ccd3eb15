"""What a forger does to a bundle: takes it apart, changes one thing, and covers the traces as far as they can.

The strongest forger is the submitter, who has the signing key and may compute everything again: digests in events, the
chain, claims, figures' page and manifest. What they cannot do is make the records agree with each other afterwards.
"""

from __future__ import annotations

import copy
import io
import json
import zipfile
from collections.abc import Callable
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from evaluations.evidence.companions import build_crate, build_readme
from evaluations.evidence.report.page import render_report
from evaluations.evidence.verification import RENDERERS
from evaluations.tests.checks import check
from evaluations.tests.hand_made_bundle import KEY, sha256, signed, zipped
from evaluations.verifier import checking
from evaluations.verifier.canonical import as_text, canonical_json, digest
from evaluations.verifier.documents import LINES, VALUES, Bundle, summary

STRANGER = Ed25519PrivateKey.from_private_bytes(bytes(range(100, 132)))
Line = dict[str, Any]


class Forged:
    """A bundle taken apart: ``lines`` and ``values`` by the names of `LINES` and `VALUES`, and all other files."""

    def __init__(self, data: bytes) -> None:
        with zipfile.ZipFile(io.BytesIO(data)) as package:
            self.files = {name: package.read(name) for name in package.namelist()}
        self.before = dict(self.files)
        self.documents: dict[str, Any] = {}
        for name in self.files:
            if name in LINES:
                self.documents[name] = [json.loads(line) for line in self.files[name].decode().splitlines()]
            elif name in VALUES:
                self.documents[name] = json.loads(self.files[name])
        self._as_they_were = copy.deepcopy(self.documents)

    # --- looking ---------------------------------------------------------------------------------------------------

    def __getitem__(self, name: str) -> Any:
        """A document: ``labels`` for labels.jsonl, ``submission`` for submission.json."""
        return self.documents[f"{name}.jsonl" if f"{name}.jsonl" in self.documents else f"{name}.json"]

    def label(self, task_id: str, slot: int = 1, revision: int = 1) -> Line:
        wanted = (task_id, slot, revision)
        return next(
            row
            for row in self["labels"]
            if (row["facts"]["task_id"], row["facts"]["slot"], row["facts"]["revision"]) == wanted
        )

    def adjudication(self, task_id: str) -> Line:
        return next(row for row in self["adjudications"] if row["facts"]["task_id"] == task_id)

    def events_of(self, kind: str, **payload: Any) -> list[Line]:
        """The events of a kind whose payload has these values."""
        return [
            event
            for event in self["events"]
            if event["kind"] == kind and all(event["payload"].get(name) == value for name, value in payload.items())
        ]

    def event(self, kind: str, **payload: Any) -> Line:
        return self.events_of(kind, **payload)[0]

    # --- changing --------------------------------------------------------------------------------------------------

    def refact(self, row: Line, kind: str, facts: str = "facts", **changes: Any) -> None:
        """Change facts of a row, and their digest in the event that has it under ``kind``."""
        event = next(e for e in self["events"] if e["payload"].get(kind) == digest(row[facts]))
        row[facts].update(changes)
        event["payload"][kind] = digest(row[facts])

    def drop_event(self, event: Line) -> None:
        self["events"].remove(event)

    def move_event(self, event: Line, before: Line) -> None:
        """Put an event before another one, at its time."""
        events = self["events"]
        events.remove(event)
        place = events.index(before)
        event["at"] = before["at"]
        events.insert(place, event)

    def add_event(self, after: Line | None, kind: str, actor: str, /, **payload: Any) -> Line:
        """Make up an event behind ``after``, or at the end."""
        events = self["events"]
        place = len(events) if after is None else events.index(after) + 1
        made = {"kind": kind, "actor": actor, "at": events[place - 1]["at"], "payload": payload}
        events.insert(place, made)
        return made

    def drop_label(self, task_id: str, slot: int) -> None:
        """All revisions of a label, and every event of that slot."""
        self["labels"][:] = [
            row for row in self["labels"] if (row["facts"]["task_id"], row["facts"]["slot"]) != (task_id, slot)
        ]
        self["events"][:] = [
            event
            for event in self["events"]
            if (event["payload"].get("task_id"), event["payload"].get("slot")) != (task_id, slot)
        ]

    def drop_adjudications(self, task_id: str) -> None:
        self["adjudications"][:] = [row for row in self["adjudications"] if row["facts"]["task_id"] != task_id]
        self["events"][:] = [
            event
            for event in self["events"]
            if not (event["kind"].startswith("adjudication") and event["payload"].get("task_id") == task_id)
        ]

    def drop_task(self, task_id: str) -> None:
        """A trajectory with everything that was ever said about it."""
        for name in (n for n in self.documents if n in LINES and n not in ("events.jsonl", "catalogue.jsonl")):
            self.documents[name][:] = [
                row for row in self.documents[name] if task_id not in (row.get("task_id"), _facts(row).get("task_id"))
            ]
        self["events"][:] = [event for event in self["events"] if event["payload"].get("task_id") != task_id]
        self.event("imported")["payload"]["trajectories"].pop(task_id)
        self["submission"]["trajectories"] -= 1
        left = sorted([row["task_id"], row["digest"]] for row in self["trajectories"])
        self["submission"]["digest"] = digest(left)

    def decide(self, task_id: str, verdict: int | None, by: str | None = None, state: str | None = None) -> None:
        """State another final verdict everywhere that states one."""
        row = next(row for row in self["final-verdicts"] if row["task_id"] == task_id)
        row.update(verdict=verdict, by=by or row["by"], state=state or row["state"])
        for stated in self["human-label"]:
            if stated["task_id"] == task_id:
                stated[next(name for name in stated if name.endswith("_human_label"))] = str(verdict)
        self.refreeze()

    def refreeze(self) -> None:
        """What the freeze recorded, from the final verdicts and the catalogue as they are now."""
        for event in self.events_of("frozen"):
            verdicts = {row["task_id"]: row["verdict"] for row in self["final-verdicts"]}
            catalogue = self["catalogue"]
            event["payload"].update(verdicts=digest(verdicts), trajectories=len(verdicts), catalogue=digest(catalogue))

    def picture(self) -> str:
        """The path of a screenshot that is in the bundle whole."""
        return next(name for name in self.files if name.startswith("screenshots/") and "redacted" not in name)

    # --- covering traces -------------------------------------------------------------------------------------------

    def relink(self) -> None:
        """Compute the chain again, and name its new head."""
        last = "0" * 64
        for number, event in enumerate(self["events"]):
            event.update(sequence=number, previous=last)
            last = event["hash"] = digest({name: value for name, value in event.items() if name != "hash"})
        events = self["events"]
        self["submission"]["chain"] = {"id": events[0]["hash"], "events": len(events), "head": last}

    def restate(self) -> None:
        """What the product would say of these documents, and the page that shows it."""
        made = self.bundle()
        found = checking.claims(made)
        self.documents["claims.json"] = {"claims": [finding.as_json() for finding in found]}
        made.claims = self.documents["claims.json"]["claims"]
        self.files["reports/report.html"] = render_report(made).encode()

    def bundle(self) -> Bundle:
        fields = {field: self.documents.get(name) for name, field in {**LINES, **VALUES}.items()}
        fields["trajectories"] = [summary(line) for line in fields["trajectories"]]
        fields["people"] = fields["people"]["people"]
        fields["claims"] = fields["claims"] and fields["claims"]["claims"]
        return Bundle(**copy.deepcopy(fields))

    def written(self) -> dict[str, bytes]:
        """Every file, the changed documents written again."""
        for name, value in self.documents.items():
            if value != self._as_they_were.get(name):
                self.files[name] = _written(name, value)
        return self.files

    def sealed(self, key: Ed25519PrivateKey = KEY) -> bytes:
        """The package with a new manifest and a new signature."""
        self.written()
        self.explain()
        return self.sealed_as_it_is(key)

    def sealed_as_it_is(self, key: Ed25519PrivateKey = KEY) -> bytes:
        """The same with the README and the metadata that are there."""
        files = {name: data for name, data in self.written().items() if name not in ("MANIFEST.json", "SIGNATURE.json")}
        return zipped(signed(files, key, explain=False))

    def explain(self) -> None:
        """README and metadata of the files as they are now."""
        made, ours = self.bundle(), ("MANIFEST.json", "SIGNATURE.json", "ro-crate-metadata.json")
        self.files["README.md"] = build_readme(made.submission, {*self.files, *ours})
        listed = [(name, sha256(data), len(data)) for name, data in self.files.items() if name not in ours]
        self.files["ro-crate-metadata.json"] = as_text(build_crate(made, listed))

    def unsealed(self) -> bytes:
        """The package under its old manifest and signature."""
        return zipped(self.written())

    def under_the_old_signature(self) -> bytes:
        """A new manifest, and the signature that was made for the old one."""
        files = {name: data for name, data in self.written().items() if name not in ("MANIFEST.json", "SIGNATURE.json")}
        return zipped(signed(files, explain=False) | {"SIGNATURE.json": self.before["SIGNATURE.json"]})

    def covered(self) -> bytes:
        """Everything computed again that a submitter with the key can compute again."""
        self.relink()
        self.restate()
        return self.sealed()


def later(at: str, seconds: float) -> str:
    return (datetime.fromisoformat(at) + timedelta(seconds=seconds)).isoformat(timespec="microseconds")


def once_for_the_same(compute: Callable[[Bundle], Line], rests_on: Callable[[Bundle], Any]) -> Callable[[Bundle], Line]:
    """The figures that ``compute`` makes of a bundle, kept for others where they rest on the same.

    Most forgeries leave alone what figures are made of, and drawing the intervals again takes most of a check.
    """
    kept: dict[str, Line] = {}

    def computed(bundle: Bundle) -> Line:
        key = repr(rests_on(bundle))
        if key not in kept:
            kept[key] = compute(bundle)
        return copy.deepcopy(kept[key])

    return computed


def compared_of(bundle: Bundle) -> list[Any]:
    """What a comparison rests on."""
    agent = [bundle.submission["agent"], bundle.submission["attempt"]]
    return [agent, bundle.final_verdicts, bundle.judgments]


def failures(data: bytes, folder: Path, **options: Any) -> dict[str, str]:
    """The names of the checks that fail on a package, with what they say."""
    path = folder / "forged.zip"
    path.write_bytes(data)
    options = {"keys": KEY.public_key().public_bytes_raw().hex(), "renderers": RENDERERS} | options
    return {one.name: one.says for one in check(str(path), **options) if one.result.value == "fail"}


def _facts(row: Line) -> Line:
    return row.get("facts") or row.get("shown") or {}


def _written(name: str, value: Any) -> bytes:
    if name.endswith(".jsonl"):
        return "".join(canonical_json(line) + "\n" for line in value).encode()
    return json.dumps(value, ensure_ascii=False, indent=2).encode() + b"\n"
