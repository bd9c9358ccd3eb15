"""Addresses of the API, below /api/v1/."""

from django.urls import path

from evaluations import api

urlpatterns = [
    path("submissions/<int:pk>/export-check", api.ExportCheck.as_view(), name="api-export-check"),
    path("submissions/<int:pk>/exports/<slug:export_format>", api.ExportFile.as_view(), name="api-export"),
    path("submissions/<int:pk>/evidence", api.EvidenceFile.as_view(), name="api-evidence"),
    path("submissions/<int:pk>/claims", api.Claims.as_view(), name="api-claims"),
    path("submissions/<int:pk>/agreement", api.SubmissionAgreement.as_view(), name="api-agreement"),
    path("submissions/<int:pk>/comparison", api.SubmissionComparison.as_view(), name="api-comparison"),
    path("benchmarks/<slug:slug>/agreement", api.BenchmarkAgreement.as_view(), name="api-benchmark-agreement"),
    path("benchmarks/<slug:slug>/comparison", api.BenchmarkComparison.as_view(), name="api-benchmark-comparison"),
    path("benchmarks/<slug:slug>/judges", api.Judges.as_view(), name="api-benchmark-judges"),
    path("benchmarks/<slug:slug>/agents", api.Agents.as_view(), name="api-agents"),
    path("audits", api.Audits.as_view(), name="api-audits"),
    path("audits/uploads/<uuid:pk>", api.BundleUploadStatus.as_view(), name="api-bundle-upload"),
    path("audits/<int:pk>", api.AuditDetail.as_view(), name="api-audit"),
    path("audits/<int:pk>/sample", api.AuditSample.as_view(), name="api-audit-sample"),
    path("audits/<int:pk>/auditors", api.Auditors.as_view(), name="api-auditors"),
    path("audits/<int:pk>/decisions", api.AuditDecisions.as_view(), name="api-audit-decisions"),
    # The last address of the last floor below /api/v1/: whatever nobody answers is answered in the API's own way.
    path("<path:rest>", api.Nowhere.as_view(), name="api-nowhere"),
]
