"""Exports and figures for the scripts of maintainers, below /api/v1/."""

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
    "BenchmarkAgreement",
    "BenchmarkComparison",
    "ExportCheck",
    "ExportFile",
    "Judges",
    "Nowhere",
    "SubmissionAgreement",
    "SubmissionComparison",
]
