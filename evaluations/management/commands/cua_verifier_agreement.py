"""cua_verifier_agreement TRAJECTORIES ANNOTATIONS [--json]"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser

from annotation.formats.documents import FormatError
from annotation.management.reports import report_read_errors
from evaluations import cua_verifier


class Command(BaseCommand):
    help = (
        "Recompute the agreement figures of CUAVerifierBench from its tables `trajectories` and `annotations`: "
        "verifiers against three human truths, annotators, process scores, and labels before and after a verdict was "
        "seen."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        for name in ("trajectories", "annotations"):
            parser.add_argument(name, type=Path, metavar=name.upper(), help=f"the table {name} (parquet or JSON Lines)")
        parser.add_argument("--json", action="store_true", help="print every figure as JSON")

    def handle(self, *args: Any, **options: Any) -> None:
        paths = options["trajectories"], options["annotations"]
        try:
            with report_read_errors(paths[0]), report_read_errors(paths[1]):
                report = cua_verifier.build_report(cua_verifier.read_runs(*paths))
        except FormatError as error:
            raise CommandError("\n".join(problem.message for problem in error.problems)) from error
        except cua_verifier.UnusableTable as error:
            raise CommandError(str(error)) from error
        if options["json"]:
            self.stdout.write(json.dumps(report, indent=2))
            return
        counts = (f"{report[name]:,} {name}" for name in ("trajectories", "annotations", "ties"))
        self.stdout.write(", ".join(counts))
        for row in report["outcome"]:
            figures = ", ".join(
                f"{name.replace('_', ' ')} {_show(row[name])}"
                for name in ("kappa", "accuracy", "false_positive_rate", "false_negative_rate")
            )
            self.stdout.write(f"{row['verifier']} against {row['truth']} (n = {row['n']}): {figures}")
        for name, found in report["annotators"].items():
            self.stdout.write(f"annotators, {name}: alpha {_show(found['krippendorff_alpha'])}")
        for name, found in report["process_scores"].items():
            told = f"Pearson {_show(found['pearson'])}, Spearman {_show(found['spearman'])}"
            self.stdout.write(f"process scores, {name.replace('_', ' ')}: {told}")
        informed = report["informed"]
        self.stdout.write(
            f"after seeing the verdict: {informed['success_to_failure']} of {informed['annotations']} to failure, "
            f"{informed['failure_to_success']} to success; kappa {_show(informed['blind']['kappa'])} before, "
            f"{_show(informed['informed']['kappa'])} after"
        )


def _show(found: dict[str, Any]) -> str:
    return "undefined" if found["value"] is None else f"{found['value']:.2f}"
