"""The further demo: answers with their citations, and reference trajectories, each in a benchmark of its own."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from annotation import catalogue, ingest
from annotation.demo import DATA
from annotation.models import Benchmark, Person, Submission

ANSWERS, REFERENCE = "demo-answers", "demo-actions"  # slugs of the benchmarks
RESEARCHER, PERSON = "Researcher", "Reference"  # agents


def submissions(maintainer: Person) -> Iterator[tuple[Submission, str, bool]]:
    """What is there, loaded where it was not: with the name of its reviews, and whether it is to be frozen."""
    first, second = _answers(maintainer)
    yield first, "researcher-1", True
    yield second, "researcher-2", False
    yield _reference(maintainer), "reference", True


def _answers(maintainer: Person) -> list[Submission]:
    found = Submission.objects.filter(benchmark__slug=ANSWERS, agent__name=RESEARCHER).order_by("attempt")
    if found:
        return list(found)
    tasks = DATA / "answers.json"
    catalogue.import_tasks(
        tasks.read_bytes(), tasks.name, benchmark_slug=ANSWERS, benchmark_name="Demo answers (simulated times)"
    )
    return _imported(DATA / "answers", ANSWERS, RESEARCHER, maintainer)


def _reference(maintainer: Person) -> Submission:
    found = Submission.objects.filter(benchmark__slug=REFERENCE, agent__name=PERSON).first()
    if found is not None:
        return found
    rows = DATA / "reference.jsonl.gz"
    catalogue.import_task_path(rows, benchmark_slug=REFERENCE, benchmark_name="Demo actions (simulated times)")
    return _imported(rows, REFERENCE, PERSON, maintainer)[0]


def _imported(path: Path, slug: str, agent: str, maintainer: Person) -> list[Submission]:
    benchmark = Benchmark.objects.get(slug=slug)
    report, made = ingest.import_all(path, benchmark=benchmark, agent_name=agent, maintainer=maintainer)
    if not made:
        raise RuntimeError(f"The demo data of {agent} were refused: {report.as_json()['rejected']}")
    return made
