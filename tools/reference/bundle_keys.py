"""Meanings of keys in the documents of an evidence bundle that are not clear from their names.

They are not in the schemas themselves, because every bundle contains the exact text of these.
"""

MEANINGS: dict[str, dict[str, str]] = {
    "MANIFEST.json": {
        "files": "every file except this one and SIGNATURE.json, sorted by path; canonical JSON and a line feed",
        "stored_files": "the comparison of the stored files with their digests for this bundle; only with `digests`",
        "supersedes": "the SHA-256 of the MANIFEST.json that this bundle replaces, and why; only if given",
    },
    "SIGNATURE.json": {"signature": "over the bytes of MANIFEST.json"},
    "submission.json": {
        "next_seed": "SHA-256 of the seed of the next draw",
        "trajectories": "their number",
        "id": "hash of event 0",
        "missing": "the problems of `check_submission`",
        "process_labels": "whether people could mark steps; missing if not",
    },
    "catalogue.jsonl": {"task_id": "lines are sorted by task id and version", "key_points": "accepted ones"},
    "import-report.json": {"accepted": "the report is null if the import stored only its digest"},
    "trajectories.jsonl": {
        "digest": "the one in the import event; `verifier.documents.summary` says over what",
        "url": "null if it is empty, as status and file name",
        "click": "where a viewer draws the ring",
    },
    "labels.jsonl": {
        "facts": "what the digest in the event covers; lines are sorted by position, slot and revision",
        "findings": "key point, finding and step of each",
        "attempt": "only under version 2 of the protocol",
        "process": "steps that were not right; only if the submission asks for process labels",
    },
    "informed.jsonl": {"shown": "what the annotator was shown", "informed": "null until they decided"},
    "draws.jsonl": {"number": "of the draw, from 1"},
    "adjudications.jsonl": {
        "facts": "as those of a label, without slot",
        "labels": "verdicts by pseudonym when it was decided",
        "majority": "what more than half of the labels say",
        "changed": "whether it differs from the majority",
    },
    "final-verdicts.jsonl": {"verdict": "null while there is none"},
    "events.jsonl": {
        "hash": "SHA-256 of the canonical JSON of all other keys",
        "previous": "the hash of the event before; 64 zeros in event 0",
    },
    "anchors.jsonl": {"target": "`file`, or the name of the place in the settings; no host", "token": "DER in base64"},
    "redactions.jsonl": {
        "revision": "the newest of an original counts",
        "boxes": "x, y, width and height in pixels",
        "redacted": "SHA-256 of the covered image",
    },
    "reports/comparison.json": {
        "judge": "`name@version`, by name and newest version first",
        "rows": "as `compare --json` prints them",
        "status_not_stated": "decided cases whose reply states no verdict; missing for 0",
    },
    "judges/runs.jsonl": {
        "run": "from 1, by start; a run without times for each imported judge comes last",
        "event_run": "its number in the events; null for an imported judge",
        "withheld": "whether an address or a path was taken out of model or parameters",
    },
    "judges/judgments.jsonl": {
        "reason": "without addresses of machines",
        "counts": "whether the comparison takes this one",
        "status_not_stated": "upstream's rules gave the verdict, because the reply states none",
    },
    "Attestation of a bundle": {
        "benchmark": "this and the other keys that submission.json has are copied from it",
        "sample": "whether people labelled all trajectories or a planned sample",
        "labelled": "trajectories that people label: those of the sample, or all",
        "labels": "the newest revision of each counts once",
        "annotators": "people with a label",
        "disputes": "trajectories whose labels have different verdicts",
        "spot_checks": "trajectories that a draw chose",
        "adjudications": "trajectories with a decision of an adjudicator",
        "adjudicators": "people with a decision",
        "frozen_at": "UTC with Z, otherwise as in submission.json",
        "claims": "the result of each claim by its name: pass or note",
    },
}
