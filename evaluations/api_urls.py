"""Addresses of the API, below /api/v1/."""

from django.urls import path

from evaluations.api import alignments, audits, entries, estimating, exporting, reports, sending

urlpatterns = [
    path("submissions/<int:pk>/export-check", exporting.ExportCheck.as_view(), name="api-export-check"),
    path("submissions/<int:pk>/exports/<slug:export_format>", exporting.ExportFile.as_view(), name="api-export"),
    path("submissions/<int:pk>/evidence", exporting.EvidenceFile.as_view(), name="api-evidence"),
    path("submissions/<int:pk>/attestation", exporting.Attestation.as_view(), name="api-attestation"),
    path("submissions/<int:pk>/claims", exporting.Claims.as_view(), name="api-claims"),
    path("submissions/<int:pk>/agreement", reports.SubmissionAgreement.as_view(), name="api-agreement"),
    path("submissions/<int:pk>/comparison", reports.SubmissionComparison.as_view(), name="api-comparison"),
    path("submissions/<int:pk>/estimate", estimating.SubmissionEstimate.as_view(), name="api-estimate"),
    path("submissions/<int:pk>/sample-plan", estimating.PlannedSample.as_view(), name="api-sample-plan"),
    path("submissions/<int:pk>/sample-plan/stop", estimating.SamplingStop.as_view(), name="api-stop-sampling"),
    path("benchmarks/<slug:slug>/agreement", reports.BenchmarkAgreement.as_view(), name="api-benchmark-agreement"),
    path("benchmarks/<slug:slug>/comparison", reports.BenchmarkComparison.as_view(), name="api-benchmark-comparison"),
    path("benchmarks/<slug:slug>/judges", reports.Judges.as_view(), name="api-benchmark-judges"),
    path("benchmarks/<slug:slug>/agents", reports.Agents.as_view(), name="api-agents"),
    path("benchmarks/<slug:slug>/alignments", alignments.Alignments.as_view(), name="api-alignments"),
    path("benchmarks/<slug:slug>/alignments/plan", alignments.AlignmentPlan.as_view(), name="api-plan-alignment"),
    path("alignments/<int:pk>", alignments.AlignmentDetail.as_view(), name="api-alignment"),
    path("alignments/<int:pk>/resume", alignments.AlignmentResume.as_view(), name="api-resume-alignment"),
    path("alignments/<int:pk>/cancel", alignments.AlignmentCancel.as_view(), name="api-cancel-alignment"),
    path("alignments/<int:pk>/looks", alignments.AlignmentLooks.as_view(), name="api-alignment-looks"),
    path(
        "alignments/<int:pk>/disagreements/<int:number>",
        alignments.Disagreements.as_view(),
        name="api-disagreements",
    ),
    path("alignments/<int:pk>/disagreements/<int:number>/criteria", alignments.Criteria.as_view(), name="api-criteria"),
    path("audits", audits.Audits.as_view(), name="api-audits"),
    path("audits/uploads/<uuid:pk>", audits.BundleUploadStatus.as_view(), name="api-bundle-upload"),
    path("audits/<int:pk>", audits.AuditDetail.as_view(), name="api-audit"),
    path("audits/<int:pk>/sample", audits.AuditSample.as_view(), name="api-audit-sample"),
    path("audits/<int:pk>/auditors", audits.Auditors.as_view(), name="api-auditors"),
    path("audits/<int:pk>/decisions", audits.AuditDecisions.as_view(), name="api-audit-decisions"),
    path("audits/<int:pk>/attestation", audits.AuditAttestation.as_view(), name="api-audit-attestation"),
    path("audits/<int:pk>/archive", audits.AuditArchive.as_view(), name="api-archive-audit"),
    path("audits/<int:pk>/restore", audits.AuditRestore.as_view(), name="api-restore-audit"),
    path("entries", entries.Entries.as_view(), name="api-own-entries"),
    path("entries/<slug:key>", entries.EntryDetail.as_view(), name="api-entry"),
    path("entries/<slug:key>/actions", entries.EntryActions.as_view(), name="api-entry-actions"),
    path("benchmarks/<slug:slug>/entries", entries.BenchmarkEntries.as_view(), name="api-entries"),
    path("benchmarks/<slug:slug>/intake", entries.BenchmarkIntake.as_view(), name="api-intake"),
    path("benchmarks/<slug:slug>/owners", entries.Owners.as_view(), name="api-owners"),
    path("submissions/<int:pk>/files", sending.Files.as_view(), name="api-files"),
    path("submissions/<int:pk>/files/<slug:part>", sending.SentFile.as_view(), name="api-sent-file"),
    path("submissions/<int:pk>/anchors", sending.Anchors.as_view(), name="api-anchors"),
    # The last route of the project below /api/v1/: unknown addresses get an error in the format of the API.
    path("<path:rest>", exporting.Nowhere.as_view(), name="api-nowhere"),
]
