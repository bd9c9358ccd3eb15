"""Labels made elsewhere."""

from __future__ import annotations

from collections.abc import Sequence
from random import Random

from annotation.models import (
    Agent,
    Benchmark,
    ImportedLabel,
)
from annotation.protocol import FAILURE_TYPES
from annotation.records import Verdict
from evaluations.tests.builders.rows import saved


def labelled_elsewhere(
    benchmark: Benchmark,
    *,
    agents: Sequence[str] = ("Elsewhere Agent",),
    annotators: int = 4,
    twice: float = 0.5,
    differ: float = 0.2,
    seed: int = 1,
) -> list[ImportedLabel]:
    """Imported labels of every task of the benchmark for these agents.

    Each case has one label, a share of ``twice`` has two by different people of ``annotators`` (named person 1, ...),
    and of those a share of ``differ`` has two verdicts.
    """
    random = Random(f"{seed} elsewhere")
    position = ImportedLabel.objects.filter(benchmark=benchmark).count()
    rows: list[ImportedLabel] = []
    for agent in [Agent.objects.get_or_create(name=name)[0] for name in agents]:
        for found in benchmark.tasks.order_by("pk"):
            first = random.choices(list(Verdict), (0.5, 0.46, 0.04))[0]
            said = [first]
            if random.random() < twice:
                other = random.choice([verdict for verdict in Verdict if verdict is not first])
                said.append(other if random.random() < differ else first)
            for number, verdict in zip(random.sample(range(1, annotators + 1), len(said)), said, strict=True):
                kind = random.choice(FAILURE_TYPES).code if verdict is Verdict.FAILURE else ""
                rows.append(
                    ImportedLabel(
                        benchmark=benchmark,
                        task=found,
                        agent=agent,
                        annotator=f"person {number}",
                        position=position + len(rows),
                        verdict=verdict,
                        failure_type=kind,
                    )
                )
    return saved(rows)
