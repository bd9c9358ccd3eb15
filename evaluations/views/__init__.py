"""The pages of evaluations, one module a subject; names of agents and all text of them are inert."""

from evaluations.views.agreement import agreement, benchmark_agreement
from evaluations.views.auditing import (
    add_auditor,
    audit,
    audit_report,
    audits,
    bundle_upload,
    cancel_bundle,
    decide_audit,
    draw_sample,
    open_audit,
)
from evaluations.views.comparison import benchmark_comparison, comparison, differences
from evaluations.views.evidence import evidence, evidence_file
from evaluations.views.exporting import export, export_check, export_file
from evaluations.views.leaderboards import agents, judge_standings
from evaluations.views.published import anchors, signing_keys
from evaluations.views.report import report

__all__ = [
    "add_auditor",
    "agents",
    "agreement",
    "anchors",
    "audit",
    "audit_report",
    "audits",
    "benchmark_agreement",
    "benchmark_comparison",
    "bundle_upload",
    "cancel_bundle",
    "comparison",
    "decide_audit",
    "differences",
    "draw_sample",
    "evidence",
    "evidence_file",
    "export",
    "export_check",
    "export_file",
    "judge_standings",
    "open_audit",
    "report",
    "signing_keys",
]
