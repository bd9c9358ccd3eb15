"""The pages of evaluations, one module a subject; names of agents and all text of them are inert."""

from evaluations.views.agreement import agreement, benchmark_agreement
from evaluations.views.comparison import benchmark_comparison, comparison, differences
from evaluations.views.exporting import export, export_check, export_file
from evaluations.views.leaderboards import agents, judge_standings
from evaluations.views.report import report

__all__ = [
    "agents",
    "agreement",
    "benchmark_agreement",
    "benchmark_comparison",
    "comparison",
    "differences",
    "export",
    "export_check",
    "export_file",
    "judge_standings",
    "report",
]
