"""What a judge could have said of the demo's reviewed submission: written by hand, so that there is something to see.

Two trajectories are unscored, and on four the judgment is not what the people say.
"""

from __future__ import annotations

from pathlib import Path

from django.db import transaction
from django.utils import timezone

from annotation.models import Benchmark
from judges import imports
from judges.models import Judge

FILE = Path(__file__).parent / "judgments.jsonl"
NAME, MODEL = "demo-judge", "written-by-hand"
DESCRIPTION = "Written by hand for the demo: no model was asked."


@transaction.atomic
def judgments(benchmark: str) -> str:
    """Load what is not there yet into the benchmark with this slug; says what there is."""
    made = {
        "scorer": imports.IMPORTED,
        "model": MODEL,
        "parameters": {"name": NAME},
        "description": DESCRIPTION,
        "frozen_at": timezone.now(),
    }
    Judge.objects.get_or_create(name=NAME, version=1, defaults=made)
    outcome = imports.import_judgments(
        FILE.read_bytes(), FILE.name, benchmark=Benchmark.objects.get(slug=benchmark), judge=NAME
    )
    if outcome.report.rejected:
        raise RuntimeError(f"The judgments of the demo were refused: {outcome.report.as_json()['rejected']}")
    return f"judge {NAME}: {sum(outcome.judges.values())} judgments of Careful, written by hand"
