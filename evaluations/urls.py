"""Addresses of the pages."""

from django.urls import path

from evaluations import views

urlpatterns = [
    path(".well-known/webverdict-keys.json", views.signing_keys, name="signing-keys"),
    path("submissions/<int:pk>/agreement", views.agreement, name="agreement"),
    path("submissions/<int:pk>/comparison", views.comparison, name="comparison"),
    path("submissions/<int:pk>/anchors", views.anchors, name="anchors"),
    path("submissions/<int:pk>/report", views.report, name="printable-report"),
    path("submissions/<int:pk>/export", views.export, name="export"),
    path("submissions/<int:pk>/export/check", views.export_check, name="export-check"),
    path("submissions/<int:pk>/export/<slug:export_format>", views.export_file, name="export-file"),
    path("audits", views.audits, name="audits"),
    path("audits/open", views.open_audit, name="open-audit"),
    path("audits/uploads/<uuid:pk>", views.bundle_upload, name="bundle-upload"),
    path("audits/uploads/<uuid:pk>/cancel", views.cancel_bundle, name="cancel-bundle"),
    path("audits/<int:pk>", views.audit, name="audit"),
    path("audits/<int:pk>/draw", views.draw_sample, name="draw-sample"),
    path("audits/<int:pk>/decide", views.decide_audit, name="decide-audit"),
    path("audits/<int:pk>/auditors", views.add_auditor, name="add-auditor"),
    path("audits/<int:pk>/report", views.audit_report, name="audit-report"),
    path("submissions/<int:pk>/evidence", views.evidence, name="evidence"),
    path("submissions/<int:pk>/evidence/bundle", views.evidence_file, name="evidence-file"),
    path("benchmarks/<slug:slug>/agents", views.agents, name="agents"),
    path("benchmarks/<slug:slug>/judges", views.judge_standings, name="judge-standings"),
    path("benchmarks/<slug:slug>/agreement", views.benchmark_agreement, name="benchmark-agreement"),
    path("benchmarks/<slug:slug>/comparison", views.benchmark_comparison, name="benchmark-comparison"),
    path("benchmarks/<slug:slug>/differences", views.differences, name="differences"),
]
