"""What a judge could have said of the demo's agents: written by hand, so that there is something to see.

Of the reviewed submission two trajectories are unscored, and on four the judgment is not what the people say: the judge
is too strict there. Of the agent with labels made elsewhere one task is unscored and one was never asked about, and the
judge is too kind.
"""

from __future__ import annotations

from pathlib import Path

from django.db import transaction
from django.utils import timezone

from annotation.models import Benchmark
from judges import imports
from judges.models import Judge
from judges.scorer import IMPORTED

FILE = Path(__file__).parent / "judgments.jsonl"
ELSEWHERE = Path(__file__).parent / "judgments_elsewhere.jsonl"  # of an agent whose trajectories are not here
NAME, MODEL = "demo-judge", "written-by-hand"
DESCRIPTION = "Written by hand for the demo: no model was asked."


@transaction.atomic
def load_judgments(benchmark: str) -> str:
    made = {
        "scorer": IMPORTED,
        "model": MODEL,
        "parameters": {"name": NAME},
        "description": DESCRIPTION,
        "frozen_at": timezone.now(),
    }
    Judge.own.get_or_create(name=NAME, version=1, defaults=made)
    counts = [_load(file, Benchmark.objects.get(slug=benchmark)) for file in (FILE, ELSEWHERE)]
    return f"judge {NAME}: {counts[0]} judgments of Careful and {counts[1]} of Casual, written by hand"


def _load(file: Path, benchmark: Benchmark) -> int:
    outcome = imports.import_judgments(file.read_bytes(), file.name, benchmark=benchmark, judge=NAME)
    if outcome.report.rejected:
        raise RuntimeError(f"The judgments of the demo were refused: {outcome.report.as_json()['rejected']}")
    return sum(outcome.judges.values())
