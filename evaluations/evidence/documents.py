"""The documents of an evidence bundle from the rows, exactly as docs/evidence.md says."""

from __future__ import annotations

import json

from django.conf import settings

from annotation.models import Submission
from annotation.models.events import instant
from annotation.protocol import CAUSES, CRITERIA, DECIDING, FAILURE_TYPES, MINIMUM_LABELS, PATHS, VERDICT_RULES, Term
from annotation.records import Problem
from evaluations import exports_labels
from evaluations.evidence import decisions, judging, trajectories
from evaluations.exports import missing_for_export
from evaluations.models import Anchor
from evaluations.verifier.documents import Bundle, Document, summary
from evaluations.verifier.shapes import FORMAT


def documents(submission: Submission, judges: bool = True, screenshots: str = "files") -> Bundle:
    """Everything that claims are computed from; claims and figures are not filled in.

    The number of queries does not grow with the trajectories, and of those only summaries are kept. With ``judges``
    it grows with the number of judges. ``screenshots`` is "files" or "digests".
    """
    missing = missing_for_export(submission)
    people = decisions.pseudonyms(submission)
    events = [event.canonical() | {"hash": event.hash} for event in submission.events.order_by("sequence")]
    lines = [summary(line) for line in trajectories.lines(submission)]
    contents = {"screenshots": screenshots, "judges": judges}
    runs, judgments = judging.runs_and_judgments(submission) if judges else (None, None)
    return Bundle(
        submission=_submission(submission, events, len(lines), missing) | {"contents": contents},
        people=decisions.members(submission),
        human_label=json.loads(human_label(submission, missing)),
        import_report=submission.import_report,
        catalogue=trajectories.catalogue(submission),
        trajectories=lines,
        labels=decisions.labels(submission, people),
        adjudications=decisions.adjudications(submission, people),
        flags=decisions.flags(submission, people),
        reports=decisions.reports(submission, people),
        releases=decisions.releases(submission, people),
        reopenings=decisions.reopenings(submission, people),
        draws=decisions.draws(submission),
        informed=decisions.informed(submission, people),
        redactions=decisions.redactions(submission, people),
        final_verdicts=decisions.final_verdicts(submission),
        events=events,
        anchors=_anchors(submission),
        protocol=protocol(submission.protocol_version),
        runs=runs,
        judgments=judgments,
    )


def human_label(submission: Submission, missing: list[Problem]) -> bytes:
    """The very file of `export_submission --format human-label`."""
    return b"".join(exports_labels.human_label(submission, missing))


def protocol(version: int) -> Document:
    return {
        "version": version,
        "minimum_labels": MINIMUM_LABELS,
        "verdicts": [
            {"verdict": int(verdict), "name": verdict.name.lower().replace("_", " "), "definition": rule}
            for verdict, rule in VERDICT_RULES.items()
        ],
        "criteria": _terms(CRITERIA),
        "failure_types": _terms(FAILURE_TYPES),
        "causes": _terms(CAUSES),
        "deciding": _terms(DECIDING),
        "paths": _terms(PATHS),
    }


def _terms(terms: tuple[Term, ...]) -> list[Document]:
    return [{"code": term.code, "name": term.name, "definition": term.definition} for term in terms]


def _submission(submission: Submission, events: list[Document], number: int, missing: list[Problem]) -> Document:
    practice_set = submission.practice_set
    return {
        "format": FORMAT,
        "benchmark": submission.benchmark.stated_slug,
        "benchmark_name": submission.benchmark.name,
        "agent": submission.agent.name,
        "attempt": submission.attempt,
        "digest": submission.digest,
        "protocol_version": submission.protocol_version,
        "required_labels": submission.required_labels,
        "spot_check_rate": submission.spot_check_rate,
        "next_seed": submission.next_seed,
        "practice_set": None if practice_set is None else f"{practice_set.benchmark.slug}: {practice_set}",
        "pass_mark": submission.pass_mark,
        "second_stage": submission.second_stage,
        "created_at": instant(submission.created_at),
        "frozen_at": instant(submission.frozen_at),
        "opened_at": instant(submission.opened_at),
        "trajectories": number,
        "chain": {
            "id": events[0]["hash"] if events else None,
            "events": len(events),
            "head": events[-1]["hash"] if events else None,
        },
        "partial": bool(missing),
        "missing": [problem.as_json() for problem in missing],
    }


def _anchors(submission: Submission) -> list[Document]:
    """Where the head was published; what was tried and not done is no evidence.

    Hosts and addresses stay here: of our own the place is what the settings call it.
    """
    called = {
        Anchor.Method.FILE: "file",
        Anchor.Method.WEBHOOK: settings.ANCHOR_WEBHOOK_NAME,
        Anchor.Method.TIME_STAMP: settings.ANCHOR_TIME_STAMP_NAME,
    }
    return [
        {
            "method": str(row.method),
            "sequence": row.sequence,
            "head": row.head,
            "target": row.target if submission.audited else called[Anchor.Method(row.method)],
            "token": row.token or None,
            "published_at": instant(row.published_at),
        }
        for row in submission.anchors.filter(error="").order_by("sequence", "method")
    ]
