"""Addresses of the pages."""

from django.urls import path

from evaluations.views import (
    agreement,
    auditing,
    comparison,
    evidence,
    exporting,
    leaderboards,
    report,
    sending,
    two_agents,
)

urlpatterns = [
    path(".well-known/webverdict-keys.json", evidence.signing_keys, name="signing-keys"),
    path("submissions/<int:pk>/agreement", agreement.agreement, name="agreement"),
    path("submissions/<int:pk>/comparison", comparison.comparison, name="comparison"),
    path("submissions/<int:pk>/anchors", evidence.anchors, name="anchors"),
    path("submissions/<int:pk>/report", report.report, name="printable-report"),
    path("submissions/<int:pk>/export", exporting.export, name="export"),
    path("submissions/<int:pk>/export/check", exporting.export_check, name="export-check"),
    path("submissions/<int:pk>/export/<slug:export_format>", exporting.export_file, name="export-file"),
    path("submissions/<int:pk>/send", sending.send, name="send"),
    path("submissions/<int:pk>/send/create", sending.create_files, name="create-files"),
    path("submissions/<int:pk>/send/cancel", sending.cancel_files, name="cancel-files"),
    path("submissions/<int:pk>/send/<slug:part>", sending.sent_file, name="sent-file"),
    path("audits", auditing.audits, name="audits"),
    path("audits/open", auditing.open_audit, name="open-audit"),
    path("audits/uploads/<uuid:pk>", auditing.bundle_upload, name="bundle-upload"),
    path("audits/uploads/<uuid:pk>/cancel", auditing.cancel_bundle, name="cancel-bundle"),
    path("audits/<int:pk>", auditing.audit, name="audit"),
    path("audits/<int:pk>/draw", auditing.draw_sample, name="draw-sample"),
    path("audits/<int:pk>/decide", auditing.decide_audit, name="decide-audit"),
    path("audits/<int:pk>/auditors", auditing.add_auditor, name="add-auditor"),
    path("audits/<int:pk>/report", auditing.audit_report, name="audit-report"),
    path("submissions/<int:pk>/evidence", evidence.evidence, name="evidence"),
    path("submissions/<int:pk>/evidence/bundle", evidence.evidence_file, name="evidence-file"),
    path("benchmarks/<slug:slug>/agents", leaderboards.agents, name="agents"),
    path("benchmarks/<slug:slug>/two-agents", two_agents.two_agents, name="two-agents"),
    path("trajectories/<int:pk>/against/<int:other>", two_agents.task_pair, name="task-pair"),
    path("benchmarks/<slug:slug>/judges", leaderboards.judge_standings, name="judge-standings"),
    path("benchmarks/<slug:slug>/agreement", agreement.benchmark_agreement, name="benchmark-agreement"),
    path("benchmarks/<slug:slug>/comparison", comparison.benchmark_comparison, name="benchmark-comparison"),
    path("benchmarks/<slug:slug>/differences", comparison.differences, name="differences"),
]
