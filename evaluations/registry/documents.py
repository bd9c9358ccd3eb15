"""A published entry as data: our own JSON (schemas/registry.schema.json), Every Eval Ever and `.eval_results`."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from annotation.models import Benchmark
from annotation.models.events import instant
from evaluations.models import Entry, EntryRow, EntryVersion
from evaluations.publication import every_eval_ever
from evaluations.publication.eval_results import write_result
from evaluations.publication.options import Options
from evaluations.registry import chain, published
from evaluations.registry.figures import Method, describe_figures, measure
from evaluations.tables import visible

Document = dict[str, Any]
FORMAT = {"format": "webverdict-registry", "version": 1}
NOT_EXECUTABLE = "A task that is not executable counts as not a success."
MEASURED = {
    Method.PEOPLE: every_eval_ever.DESCRIPTION,
    Method.SAMPLE: "Share of successes, estimated from a planned sample of trajectories that people labelled and the "
    f"verdicts of an automatic judge on all trajectories. {NOT_EXECUTABLE}",
    Method.JUDGE: f"Share of trajectories that an automatic judge called a success. {NOT_EXECUTABLE}",
}
INTERVALS = {
    Method.PEOPLE: "Wilson score",
    Method.SAMPLE: "stratified sample corrected by a judge",
    Method.JUDGE: "Wilson score",
}


def write_entry(entry: Entry, versions: Iterable[EntryVersion]) -> Document:
    """Return a published entry with all versions, their rates as fractions, and its chain. ``rank`` is not part of it.

    Each hash of the chain is the SHA-256 of the JSON of the event's ``entry`` (the key), ``sequence``, ``kind``,
    ``role``, ``at``, ``content`` and ``previous``, with sorted keys and no spaces. ``content`` is the hash of
    ``reason`` and ``facts``, which are shown for public events only.
    """
    described = published.describe_entry(entry)
    return {
        "key": entry.key,
        "state": chain.state_of(entry).value,
        **{name: getattr(described, name) for name in published.TEXTS},
        "run_on": described.run_on and described.run_on.isoformat(),
        "cost_usd": None if described.cost_usd is None else float(described.cost_usd),
        "evaluated_by": described.relationship.value,
        **({"taken_down": described.hidden} if described.hidden else {}),
        "versions": [write_version(each) for each in versions],
        "chain": published.describe_events(entry),
    }


def write_version(version: EntryVersion) -> Document:
    names = ("number", "rate", "low", "high", "rows", "method", "people", "judge", "manifest", "tasks", "audited")
    event = {"event": version.event.sequence, "at": instant(version.event.at)}
    return {name: getattr(version, name) for name in names} | event


def write_row(row: EntryRow) -> Document:
    """Return a row. ``version`` is its first version; the row counts until a newer row of the same task."""
    names = ("task_id", "task_version", "text", "verdict", "included", "reason")
    return {"version": row.version.number} | {name: getattr(row, name) for name in names}


def write_every_eval_ever(benchmark: Benchmark, entry: Entry, version: EntryVersion, source: str) -> Document:
    """Return the aggregate record of a version with a rate; ``source`` is the address of the entry's page."""
    described, method = published.describe_entry(entry), Method(version.method)
    model, time = every_eval_ever.name_model(described.name), f"{version.event.at.timestamp():.6f}"
    evaluation = f"{benchmark.stated_slug}/{model}/{time}"
    options = Options(organization=benchmark.name, relationship=described.relationship.value)
    details = {"entry": entry.key, "version": str(version.number), "measured": method.label, "bundle": version.manifest}
    details |= {name: str(number) for name, number in version.people.items()}
    about = {"model": described.model, "scaffold": described.scaffold, "version": described.agent_version}
    result = {
        "evaluation_result_id": f"{evaluation}#{every_eval_ever.METRIC}",
        "evaluation_name": benchmark.stated_slug,
        "source_data": {"dataset_name": benchmark.name, "source_type": "url", "url": [source]},
        "evaluation_timestamp": time,
        "metric_config": every_eval_ever.describe_metric(MEASURED[method]),
        "score_details": every_eval_ever.describe_score(measure(version), details, INTERVALS[method]),
    }
    return {
        **every_eval_ever.describe_evaluation(evaluation, time, options),
        "model_info": {
            "name": described.name,
            "id": model,
            **({"developer": described.organisation} if described.organisation else {}),
            "additional_details": every_eval_ever.MODEL_UNKNOWN | {name: text for name, text in about.items() if text},
        },
        "evaluation_results": [result],
    }


def write_eval_results(entry: Entry, version: EntryVersion, options: Options) -> bytes:
    described, figures = published.describe_entry(entry), describe_figures(version)
    notes = (
        f"Success rate of {visible(described.name)} over {figures.rows}: {figures.in_words}. Version {version.number}, "
        f"evidence bundle {version.manifest}. {NOT_EXECUTABLE}"
    )
    return write_result(version.rate, version.event.at.date(), notes, options)


def write_board(entries: Sequence[Document], benchmark: Benchmark, **further: Any) -> Document:
    return {**FORMAT, "benchmark": {"slug": benchmark.slug, "name": benchmark.name}, **further, "entries": entries}
