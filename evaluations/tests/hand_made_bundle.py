"""A whole evidence bundle, written by hand: its documents, and the package that holds them.

Three annotators labelled three trajectories. On ``task_b`` they differ, and Q1 decided; ``task_a`` and ``task_c`` are
unanimous, and the draw took one of them, which Q1 judged blind. M1 froze it. Every value is a plain object, to be
changed as a test wants; nothing is computed again unless it is asked for.
"""

from __future__ import annotations

import hashlib
import io
import json
import zipfile
from collections.abc import Callable
from dataclasses import MISSING, fields
from datetime import UTC, datetime, timedelta
from typing import Any

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from PIL import Image

from annotation import protocol
from annotation.models.states import State
from annotation.records import Verdict
from annotation.workflow.adjudicating import choose
from evaluations.agreement import agreement
from evaluations.cases import BlindLabel, Case
from evaluations.evidence.bundle import HINTS, LEFT_OUT
from evaluations.evidence.companions import build_crate, build_readme
from evaluations.evidence.report.page import render_report
from evaluations.verifier.canonical import as_text, canonical_json, digest
from evaluations.verifier.checking import claims
from evaluations.verifier.contents import schema_files
from evaluations.verifier.documents import LINES, VALUES, Bundle, summary

SEED, NEXT_SEED = "first seed", "second seed"
BEGAN = datetime(2026, 1, 5, 9, 0, tzinfo=UTC)
KEY = Ed25519PrivateKey.from_private_bytes(bytes(range(32)))
PEOPLE = {"M1": "maintainer", "A1": "annotator", "A2": "annotator", "A3": "annotator", "Q1": "adjudicator"}
# By task: what A1, A2 and A3 said.
SAID = {"task_a": (1, 1, 1), "task_b": (1, 0, 1), "task_c": (0, 0, 0)}
KEY_POINT = "The page shows it."


def sha256(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def picture(shade: int) -> bytes:
    stream = io.BytesIO()
    Image.new("RGB", (4, 3), (shade, shade, shade)).save(stream, "PNG")
    return stream.getvalue()


class HandMade:
    """``documents`` by file name (a list for JSON Lines), and ``files``: the pictures and attachments by path."""

    def __init__(self) -> None:
        self.now = BEGAN
        optional = ("judges/", "sample-")
        self.documents: dict[str, Any] = {name: [] for name in LINES if not name.startswith(optional)}
        self.files: dict[str, bytes] = {}
        self._catalogue()
        self._trajectories()
        self._events()
        self._submission()

    # --- what there is ---------------------------------------------------------------------------------------------

    def _catalogue(self) -> None:
        point = {"position": 0, "text": KEY_POINT, "accepted_at": _spelt(BEGAN - timedelta(days=1)), "retired_at": None}
        for number, task_id in enumerate(SAID):
            task = {"task_id": task_id, "version": 1, "text": f"Do thing {number}.", "website": "https://shop.example/"}
            self.documents["catalogue.jsonl"].append(
                task | {"reference_length": 2, "level": "easy", "key_points": [dict(point)]}
            )
        self.documents["protocol.json"] = protocol_document()

    def _trajectories(self) -> None:
        for position, task in enumerate(self.documents["catalogue.jsonl"]):
            line = {
                "task_id": task["task_id"],
                "task_version": 1,
                "position": position,
                "task_text": task["text"],
                "final_answer": "Done." if position else None,
                "reference_length": 2,
                "source_format": "online-mind2web-v2",
                "digest": "",
                "warnings": [],
                "steps": [self._step(position, index) for index in range(2)],
                "attachments": [self._attachment()] if position == 0 else [],
            }
            line["digest"] = summary(line)["computed"]
            self.documents["trajectories.jsonl"].append(line)

    def _step(self, position: int, index: int) -> dict[str, Any]:
        data = picture(40 * position + 10 * index)
        self.files[f"screenshots/{sha256(data)}.png"] = data
        shown = {"sha256": sha256(data), "size": len(data), "width": 4, "height": 3, "media_type": "image/png"}
        return {
            "index": index,
            "action": f"click [{index}]",
            "thought": None,
            "url": f"https://shop.example/{index}",
            "status": "SUCCESS",
            "file_name": f"{index}_full_screenshot.png",
            "screenshot": shown,
            "click": [1.5, 2.0] if index == 0 else None,
            "warnings": [],
        }

    def _attachment(self) -> dict[str, Any]:
        data = b'{"log": {}}'
        self.files[f"attachments/{sha256(data)}"] = data
        return {"kind": "network_trace", "name": "network.har", "sha256": sha256(data), "size": len(data)}

    # --- what happened ---------------------------------------------------------------------------------------------

    def _events(self) -> None:
        documents = self.documents
        report = {"accepted": list(SAID), "rejected": [], "warnings": []}
        documents["import-report.json"] = report
        digests = {line["task_id"]: line["digest"] for line in documents["trajectories.jsonl"]}
        self.event(
            "imported",
            "",
            agent="Walker",
            benchmark="hand-made",
            attempt=1,
            trajectories=digests,
            report=digest(report),
            report_kept=True,
            next_seed=sha256(SEED.encode()),
        )
        self._people()
        for task_id, said in SAID.items():
            for slot, verdict in enumerate(said, start=1):
                self._label(task_id, slot, verdict)
        documents["labels.jsonl"].sort(key=lambda line: (line["facts"]["task_id"], line["facts"]["slot"]))
        drawn = self._draw(["task_a", "task_c"])
        self._adjudicate("task_b", 0, blind=False)
        self._adjudicate(drawn, SAID[drawn][0], blind=True)
        self._freeze(drawn)

    def _people(self) -> None:
        documents = self.documents
        documents["people.json"] = {"people": []}
        for pseudonym, role in PEOPLE.items():
            joined = self.tick()
            self.event("member_added", "M1", member=pseudonym, role=role)
            documents["people.json"]["people"].append(
                {"pseudonym": pseudonym, "role": role, "joined_at": joined, "deactivated_at": None}
            )
        documents["people.json"]["people"].sort(key=lambda person: person["pseudonym"])

    def _label(self, task_id: str, slot: int, verdict: int) -> None:
        claimed_at = self.tick()
        self.event("claimed", f"A{slot}", task_id=task_id, slot=slot)
        self.now += timedelta(minutes=4)
        facts = decided(verdict) | {"task_id": task_id, "slot": slot, "at": self.tick()}
        facts |= {"active_seconds": 180, "steps_seen": [0, 1]}
        self.documents["labels.jsonl"].append({"annotator": f"A{slot}", "claimed_at": claimed_at, "facts": facts})
        self.event("label_submitted", f"A{slot}", task_id=task_id, slot=slot, label=digest(facts))

    def _draw(self, population: list[str]) -> str:
        drawn = choose(population, 0.1, SEED)
        facts = {"number": 1, "seed": SEED, "rate": 0.1, "population": population, "drawn": drawn}
        self.documents["draws.jsonl"].append({"facts": facts, "drawn_at": self.tick()})
        fixed = sha256(NEXT_SEED.encode())
        self.event("spot_checks_drawn", "M1", draw=digest(facts), number=1, seed=SEED, next_seed=fixed)
        return drawn[0]

    def _adjudicate(self, task_id: str, verdict: int, *, blind: bool) -> None:
        opened_at = self.tick()
        self.event("adjudication_opened", "Q1", task_id=task_id, revision=1, blind=blind)
        self.now += timedelta(minutes=5)
        facts = decided(verdict) | {"task_id": task_id, "blind": blind, "criterion": "key_point", "at": self.tick()}
        facts |= {"active_seconds": 240, "steps_seen": [0, 1]}
        labels = {f"A{slot}": said for slot, said in enumerate(SAID[task_id], start=1)}
        majority = max(set(SAID[task_id]), key=SAID[task_id].count)
        self.documents["adjudications.jsonl"].append(
            {
                "adjudicator": "Q1",
                "opened_at": opened_at,
                "facts": facts,
                "labels": labels,
                "majority": majority,
                "changed": verdict != majority,
            }
        )
        self.event("adjudication_decided", "Q1", task_id=task_id, revision=1, adjudication=digest(facts))

    def _freeze(self, drawn: str) -> None:
        verdicts = {task_id: said[0] for task_id, said in SAID.items()} | {"task_b": 0}
        for task_id, verdict in verdicts.items():
            adjudicated = task_id in ("task_b", drawn)
            self.documents["final-verdicts.jsonl"].append(
                {
                    "task_id": task_id,
                    "state": "adjudicated" if adjudicated else "unanimous",
                    "verdict": verdict,
                    "by": "adjudication" if adjudicated else "unanimous",
                }
            )
        self.frozen_at = self.tick()
        catalogue = digest(self.documents["catalogue.jsonl"])
        self.event("frozen", "M1", trajectories=3, verdicts=digest(verdicts), catalogue=catalogue)
        self.documents["human-label.json"] = [
            {"task_id": task["task_id"], "confirmed_task": task["text"], "Walker_human_label": str(verdict)}
            for task, verdict in zip(self.documents["catalogue.jsonl"], verdicts.values(), strict=True)
        ]

    def _submission(self) -> None:
        events, trajectories = self.documents["events.jsonl"], self.documents["trajectories.jsonl"]
        self.documents["submission.json"] = {
            "format": "webverdict-evidence-1",
            "benchmark": "hand-made",
            "benchmark_name": "Made by hand",
            "agent": "Walker",
            "attempt": 1,
            "digest": digest(sorted([line["task_id"], line["digest"]] for line in trajectories)),
            "protocol_version": 1,
            "required_labels": 3,
            "spot_check_rate": 0.1,
            "next_seed": sha256(NEXT_SEED.encode()),
            "practice_set": None,
            "pass_mark": None,
            "second_stage": False,
            "created_at": _spelt(BEGAN),
            "frozen_at": self.frozen_at,
            "opened_at": None,
            "trajectories": len(trajectories),
            "chain": {"id": events[0]["hash"], "events": len(events), "head": events[-1]["hash"]},
            "contents": {"screenshots": "files", "judges": False},
            "partial": False,
            "missing": [],
        }

    def tick(self) -> str:
        """A second later, as a row spells it; its event comes five milliseconds after it."""
        self.now += timedelta(seconds=1)
        return _spelt(self.now)

    def event(self, kind: str, actor: str, /, **payload: Any) -> dict[str, Any]:
        """Append an event to the chain as it is."""
        events = self.documents["events.jsonl"]
        at = _spelt(self.now + timedelta(milliseconds=5))
        last = events[-1]["hash"] if events else "0" * 64
        event = {"sequence": len(events), "kind": kind, "actor": actor, "at": at, "payload": payload, "previous": last}
        event["hash"] = digest(event)
        events.append(event)
        return event

    # --- what it becomes -------------------------------------------------------------------------------------------

    def rechain(self) -> None:
        """Compute all hashes again, as a forger would, and name the new head."""
        events, last = self.documents["events.jsonl"], "0" * 64
        for number, event in enumerate(events):
            event |= {"sequence": number, "previous": last}
            last = event["hash"] = digest({name: value for name, value in event.items() if name != "hash"})
        self.documents["submission.json"]["chain"] = {"id": events[0]["hash"], "events": len(events), "head": last}

    def bundle(self) -> Bundle:
        """The documents as the claims take them."""
        of = self.documents
        fields = {field: of[name] for name, field in {**LINES, **VALUES}.items() if name in of}
        fields["trajectories"] = [summary(line) for line in of["trajectories.jsonl"]]
        fields["people"] = of["people.json"]["people"]
        if "claims.json" in of:
            fields["claims"] = of["claims.json"]["claims"]
        return Bundle(**json.loads(json.dumps(fields)))

    def complete(self) -> HandMade:
        """Fill in what the product says of these documents: figures, claims and the report page."""
        self.documents["reports/agreement.json"] = self._agreement()
        self.documents["claims.json"] = {"claims": [finding.as_json() for finding in claims(self.bundle())]}
        self.files["reports/report.html"] = render_report(self.bundle()).encode()
        return self

    def _agreement(self) -> dict[str, Any]:
        """The figures of the product, without what a bundle leaves out."""
        found = agreement([self._case(line) for line in self.documents["final-verdicts.jsonl"]], "").as_json()
        for annotator in found["annotators"]:
            for name in HINTS:
                del annotator[name]
        return {name: value for name, value in found.items() if name not in LEFT_OUT}

    def _case(self, line: dict[str, Any]) -> Case:
        task_id, adjudicated = line["task_id"], line["by"] == "adjudication"
        final = Verdict(line["verdict"])
        drawn = self.documents["draws.jsonl"][0]["facts"]
        blind = adjudicated and task_id in drawn["drawn"]
        return Case(
            agent="Walker",
            task_id=task_id,
            level="easy",
            website="https://shop.example/",
            labels=tuple(
                BlindLabel(f"A{slot}", Verdict(said), (), 180) for slot, said in enumerate(SAID[task_id], start=1)
            ),
            final=final,
            expected=3,
            trajectory=list(SAID).index(task_id),
            submission=1,
            state=State(line["state"]),
            adjudicated=final if adjudicated else None,
            adjudicated_blind=final if blind else None,
            drawn=task_id in drawn["drawn"] if task_id in drawn["population"] else None,
            draw=1 if task_id in drawn["population"] else None,
        )

    def entries(self) -> dict[str, bytes]:
        """Every file of the package by name but the manifest and the signature."""
        made = {name: _written(name, value) for name, value in self.documents.items()}
        return made | self.files

    def zipped(self, change: Callable[[dict[str, bytes]], None] = lambda entries: None) -> bytes:
        """The package. ``change`` is made after the manifest was signed."""
        entries = signed(self.entries())
        change(entries)
        return zipped(entries)


def decided(verdict: int) -> dict[str, Any]:
    """The facts that labels and adjudications have in common, complete for a verdict of 0 or 1."""
    return {
        "verdict": verdict,
        "reasoning": "The last picture shows it.",
        "failure_step": 1 if verdict == 0 else None,
        "failure_type": "wrong_item" if verdict == 0 else "",
        "cause": "",
        "exception_reason": "",
        "revision": 1,
        "revision_reason": "",
        "findings": [[KEY_POINT, "met" if verdict else "unmet", 1]],
    }


def protocol_document() -> dict[str, Any]:
    """protocol.json of version 1."""

    def terms(given: tuple[protocol.Term, ...]) -> list[dict[str, str]]:
        return [{"code": term.code, "name": term.name, "definition": term.definition} for term in given]

    rules = protocol.VERDICT_RULES
    return {
        "version": 1,
        "minimum_labels": protocol.MINIMUM_LABELS,
        "criteria": terms(protocol.CRITERIA),
        "failure_types": terms(protocol.FAILURE_TYPES),
        "causes": terms(protocol.CAUSES),
        "deciding": terms(protocol.DECIDING),
        "paths": terms(protocol.PATHS),
        "verdicts": [
            {"verdict": int(v), "name": v.name.lower().replace("_", " "), "definition": rules[v]} for v in Verdict
        ],
    }


def signed(
    entries: dict[str, bytes],
    key: Ed25519PrivateKey = KEY,
    *,
    explain: bool = True,
    sound: dict[str, bytes] | None = None,
    stated: dict[str, Any] | None = None,
) -> dict[str, bytes]:
    """The entries with a manifest of them, and its signature; with what explains them, as `explained` has it. The
    manifest also has what is ``stated``."""
    if explain:
        entries = explained(entries, sound)
    files = [{"path": name, "sha256": sha256(data), "size": len(data)} for name, data in sorted(entries.items())]
    said = {"format": "webverdict-evidence-1", "files": files} | (stated or {})
    manifest = canonical_json(said).encode() + b"\n"
    return entries | {"MANIFEST.json": manifest, "SIGNATURE.json": signature(manifest, key)}


def explained(entries: dict[str, bytes], sound: dict[str, bytes] | None = None) -> dict[str, bytes]:
    """The entries with README, metadata and schemas, unless they are there. Where a test has broken the documents that
    these tell of, they tell of the ``sound`` ones."""
    documents = entries if sound is None else sound
    submission = json.loads(documents["submission.json"])
    last = json.loads(documents["events.jsonl"].splitlines()[-1])
    files = {**schema_files(entries), **entries}
    paths = {*files, "README.md", "ro-crate-metadata.json", "MANIFEST.json", "SIGNATURE.json"}
    files = {"README.md": build_readme(submission, paths), **files}
    listed = [(name, sha256(data), len(data)) for name, data in files.items() if name != "ro-crate-metadata.json"]
    return {"ro-crate-metadata.json": as_text(build_crate(_told_of(submission, last), listed)), **files}


def _told_of(submission: dict[str, Any], last: dict[str, Any]) -> Bundle:
    """A bundle of nothing but this submission and its last event."""
    needed = [each.name for each in fields(Bundle) if each.default is MISSING and each.default_factory is MISSING]
    nothing: dict[str, Any] = {name: [] for name in needed}
    return Bundle(**nothing | {"submission": submission, "events": [last]})


def signature(manifest: bytes, key: Ed25519PrivateKey = KEY) -> bytes:
    public = key.public_key().public_bytes_raw()
    document = {
        "algorithm": "Ed25519",
        "key_id": sha256(public)[:16],
        "public_key": public.hex(),
        "signature": key.sign(manifest).hex(),
        "signed": "MANIFEST.json",
    }
    return canonical_json(document).encode() + b"\n"


def zipped(entries: dict[str, bytes]) -> bytes:
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in entries.items():
            archive.writestr(zipfile.ZipInfo(name, (1980, 1, 1, 0, 0, 0)), data, zipfile.ZIP_DEFLATED)
    return stream.getvalue()


def _written(name: str, value: Any) -> bytes:
    if name.endswith(".jsonl"):
        return "".join(canonical_json(line) + "\n" for line in value).encode()
    return json.dumps(value, ensure_ascii=False, indent=2).encode() + b"\n"


def _spelt(at: datetime) -> str:
    return at.isoformat(timespec="microseconds")
