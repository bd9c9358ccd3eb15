"""audit_report ID [--json]"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any

from django.core.management.base import BaseCommand, CommandParser

from annotation.formats.printable import counted
from annotation.models.events import instant
from evaluations import audit_rules, report_tables
from evaluations.auditing.importing import OPENED
from evaluations.auditing.results import BundleCheck, find_freeze, find_related_bundles, list_checks, result
from evaluations.auditing.summary import checks_of_bundle, summarise
from evaluations.encoding import to_json
from evaluations.management.reports import find_audit, seed_told
from evaluations.models import Audit
from evaluations.tables import visible
from evaluations.verifier.findings import Finding, Result
from evaluations.verifier.main import format_findings


class Command(BaseCommand):
    help = (
        "Print the results of an audit: its checks, the agreement of submitted and audited verdicts, and the decisions."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("audit", type=int, metavar="ID", help="the number of the audit")
        parser.add_argument("--json", action="store_true", help="JSON with every finding")

    def handle(self, *args: Any, **options: Any) -> None:
        audit = find_audit(options["audit"])
        if options["json"]:
            self.stdout.write(json.dumps(_as_json(audit), indent=2, ensure_ascii=False))
            return
        self.stdout.write(f"Audit {audit.pk} of {visible(str(audit.submission))}, {visible(audit.file_name)}")
        found = summarise(audit.findings, audit.submission.frozen_at, find_freeze(audit))
        self.stdout.write(visible(found.sentence))
        self.stdout.write(format_findings(audit.manifest, _key(audit), _findings(checks_of_bundle(audit.findings))))
        for finding in (each for each in audit.findings if each["name"] == OPENED):
            self.stdout.write(f"{finding['result'].upper()}  {OPENED}  {visible(finding['says'])}")
        for check in list_checks(audit)[1:]:
            self.stdout.write(_earlier(check))
        self._sample(audit)
        for decision in audit.decisions.all():
            against = f", against the rule ({decision.rule_said})" if decision.against_rule else ""
            self.stdout.write(f"{decision}{against} {instant(decision.decided_at)}: {visible(decision.reason)}")

    def _sample(self, audit: Audit) -> None:
        found, more = result(audit), find_related_bundles(audit)
        if audit.seed:
            drawn = counted(audit.size or 0, "trajectory", "trajectories")
            self.stdout.write(f"{drawn} drawn with the seed {visible(seed_told(audit))}.")
        if (rule := audit_rules.find_progress(audit)) is not None:
            self.stdout.write(f"{rule.sentence} {rule.known} {rule.errors}")
        if more.others:
            bundles = ", ".join(each.manifest for each in more.others)
            self.stdout.write(f"Other bundles of this submission opened here: {bundles}. All samples: {more.drawn}.")
        if found is None:
            self.stdout.write("The sample is not frozen." if audit.sample else "No sample was drawn.")
            return
        for table in (
            report_tables.audit_figures(found),
            report_tables.compare_verdicts(found),
            report_tables.differing(found, {}),
        ):
            self.stdout.write(table.as_text())


def _key(audit: Audit) -> str:
    if not audit.key_id:
        return "none"
    known = (
        "the submitter's, as far as this instance knows"
        if audit.key_trusted
        else "not known to belong to the submitter"
    )
    return f"{audit.key_id}, {known}"


def _earlier(check: BundleCheck) -> str:
    failed = ", ".join(each["name"] for each in check.row.failed) or "none"
    at = instant(check.row.checked_at)
    return f"Checked earlier, {at}, by {check.by}, given: {check.given}, key: {check.row.key_id}; failed: {failed}."


def _findings(rows: Iterable[Mapping[str, Any]]) -> list[Finding]:
    return [
        Finding(each["name"], each["title"], Result(each["result"]), each["says"], tuple(each["places"]))
        for each in rows
    ]


def _as_json(audit: Audit) -> dict[str, Any]:
    found, sample, rule = result(audit), audit.sample, audit_rules.find_progress(audit)
    return {
        "audit": audit.pk,
        "submission": audit.submission_id,
        "agent": audit.submission.agent.name,
        "benchmark": audit.submission.benchmark.stated_slug,
        "manifest": audit.manifest,
        "key_id": audit.key_id,
        "key_trusted": audit.key_trusted,
        "findings": audit.findings,
        "checks": [each.as_json() for each in list_checks(audit)],
        "sample": sample and _describe_draw(audit, sample.pk),
        **find_related_bundles(audit).as_json(),
        "rule": rule and rule.as_json(),
        "result": to_json(found),
        "decisions": [
            {
                "outcome": each.outcome,
                "reason": each.reason,
                "rule_said": each.rule_said,
                "decided_at": instant(each.decided_at),
            }
            for each in audit.decisions.all()
        ],
    }


def _describe_draw(audit: Audit, sample: int) -> dict[str, Any]:
    names = ("size", "tolerance", "seed", "nonce", "seed_chosen")
    return {"submission": sample, **{name: getattr(audit, name) for name in names}}
