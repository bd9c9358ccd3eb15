"""Exports and figures for the scripts of maintainers, below /api/v1/."""

from evaluations.api.audits import AuditDecisions, AuditDetail, Auditors, Audits, AuditSample, BundleUploadStatus
from evaluations.api.evidence import Claims, EvidenceFile
from evaluations.api.exporting import ExportCheck, ExportFile, Nowhere
from evaluations.api.reports import (
    Agents,
    BenchmarkAgreement,
    BenchmarkComparison,
    Judges,
    SubmissionAgreement,
    SubmissionComparison,
)

__all__ = [
    "Agents",
    "AuditDecisions",
    "AuditDetail",
    "AuditSample",
    "Auditors",
    "Audits",
    "BenchmarkAgreement",
    "BenchmarkComparison",
    "BundleUploadStatus",
    "Claims",
    "EvidenceFile",
    "ExportCheck",
    "ExportFile",
    "Judges",
    "Nowhere",
    "SubmissionAgreement",
    "SubmissionComparison",
]
