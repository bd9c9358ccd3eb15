"""The documents of an evidence bundle, built from the rows as docs/evidence.md specifies."""

from __future__ import annotations

import json

from django.conf import settings

from annotation.models import Flag, Redaction, Release, Reopening, Report, Submission
from annotation.models.events import instant
from annotation.protocol import CAUSES, CRITERIA, DECIDING, FAILURE_TYPES, MINIMUM_LABELS, PATHS, VERDICT_RULES, Term
from annotation.records import Problem
from evaluations import exports_labels
from evaluations.evidence import decisions, judging, trajectories
from evaluations.exports import describe_sample, missing_for_export
from evaluations.models import Anchor
from evaluations.verifier.documents import Bundle, Document, summary
from evaluations.verifier.shapes import FORMAT

SUBMISSION_COLUMNS = (  # columns that a bundle copies; `auditing.importing` reads them
    "attempt",
    "digest",
    "protocol_version",
    "required_labels",
    "spot_check_rate",
    "pass_mark",
    "second_stage",
)


def documents(submission: Submission, judges: bool = True, screenshots: str = "files") -> Bundle:
    """Return everything that claims are computed from, without claims and figures.

    The number of queries does not depend on the number of trajectories, and only their summaries stay in memory. With
    ``judges`` it depends on the number of judges. ``screenshots`` is "files" or "digests".
    """
    missing = missing_for_export(submission)
    people = decisions.pseudonyms(submission)
    events = [event.canonical() | {"hash": event.hash} for event in submission.events.order_by("sequence")]
    lines = [summary(line) for line in trajectories.lines(submission)]
    contents = {"screenshots": screenshots, "judges": judges}
    plan, items = decisions.sample_plan(submission, people)
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
        flags=decisions.rows_as_they_are(Flag, submission, people),
        reports=decisions.rows_as_they_are(Report, submission, people),
        releases=decisions.rows_as_they_are(Release, submission, people),
        reopenings=decisions.rows_as_they_are(Reopening, submission, people),
        draws=decisions.draws(submission),
        informed=decisions.informed(submission, people),
        redactions=decisions.rows_as_they_are(Redaction, submission, people),
        final_verdicts=decisions.final_verdicts(submission),
        events=events,
        anchors=_anchors(submission),
        protocol=protocol(submission.protocol_version),
        runs=runs,
        judgments=judgments,
        sample_plan=plan,
        sample_items=items,
        robustness=(judging.robustness_cards(submission) or None) if judges else None,
    )


def human_label(submission: Submission, missing: list[Problem]) -> bytes:
    """Return the same file as `export_submission --format human-label`."""
    return b"".join(exports_labels.human_label(submission, [*missing, *describe_sample(submission)]))


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
        **{name: getattr(submission, name) for name in SUBMISSION_COLUMNS},
        **({"process_labels": True} if submission.process_labels else {}),
        "next_seed": submission.next_seed,
        "practice_set": None if practice_set is None else f"{practice_set.benchmark.slug}: {practice_set}",
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
    """List where the head was published; failed attempts are not evidence.

    Hosts and addresses are left out: places of this instance have the names in the settings.
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
