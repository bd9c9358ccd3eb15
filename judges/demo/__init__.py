"""Judgments of the demo's agents, written by hand, and a judge that asks no model.

In the reviewed submission, two trajectories are unscored, and on four the judge is stricter than the people. For the
agent with imported labels, one task is unscored, one has no judgment, and the judge is too lenient.
"""

from __future__ import annotations

from pathlib import Path

from django.db import transaction
from django.utils import timezone

from annotation.models import Benchmark, Person, Submission, Task
from judges import defining, expectations, imports, runs
from judges.models import Judge, JudgeRun
from judges.scorer import IMPORTED
from judges.scorers.network_trace.judge import NAME as SCORER
from judges.working.worker import work

HERE = Path(__file__).parent
FILE = HERE / "judgments.jsonl"
ELSEWHERE = HERE / "judgments_elsewhere.jsonl"  # of an agent without trajectories on this instance
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
        raise RuntimeError(f"The judgments of the demo were rejected: {outcome.report.as_json()['rejected']}")
    return sum(outcome.judges.values())


# --- judges that ask no model -----------------------------------------------------------------------------------------


FOLDERS = {"network_checks": HERE / "checks", "rubric": HERE / "rubrics"}
NETWORK = "demo-network"
NETWORK_DESCRIPTION = "Network checks of the demo's tasks against what the agents' browsers sent. No model is asked."
AGENTS = ("Careful", "Hasty")
WHY = "Written for the demo."
SLICE = 60.0  # seconds of work before the run is read again


def write_expectations(maintainer: Person) -> str:
    """Write checks and rubrics of tasks that have none; return a line that counts them."""
    counts = {
        kind: sum(_write(maintainer, file, kind) for file in sorted(FOLDERS[kind].glob("*.yaml"))) for kind in FOLDERS
    }
    return f"expectations: network checks of {counts['network_checks']} tasks, rubrics of {counts['rubric']}"


def _write(maintainer: Person, file: Path, kind: str) -> int:
    task = Task.objects.filter(external_id=file.stem, benchmark__slug__startswith="demo").order_by("-version").first()
    if task is None:
        return 0
    if not task.expectations.filter(kind=kind).exists():
        expectations.write(maintainer, task, kind, file.read_text(encoding="utf-8"), WHY)
    return 1


def run_judge(maintainer: Person) -> str:
    """Define the judge and complete its new or existing runs in this process, in addition to any workers."""
    judge = Judge.own.filter(name=NETWORK).first()
    if judge is None:
        judge = defining.define(None, name=NETWORK, scorer=SCORER, description=NETWORK_DESCRIPTION)
    made = sum(_run(maintainer, judge, agent) for agent in AGENTS)
    return f"judge {NETWORK}: {made} judgments of {' and '.join(AGENTS)}, without a model"


def _run(maintainer: Person, judge: Judge, agent: str) -> int:
    submission = Submission.objects.get(benchmark__slug="demo", agent__name=agent)
    run = JudgeRun.objects.filter(judge=judge, submission=submission, test=False).order_by("pk").first()
    if run is None:
        run = runs.start(maintainer, judge, submission, {})
    while run.state in ("waiting", "running") and work(run.pk, "load_demo", seconds=SLICE):
        run.refresh_from_db()
    return run.items.filter(done_at__isnull=False).count()
