"""Write a submission as a dataset folder for Hugging Face: Parquet tables, README.md and Croissant metadata."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator
from pathlib import Path

from annotation import store_checks
from annotation.backups.manifest import product_version
from annotation.formats import scratch
from annotation.models import Submission
from annotation.records import Problem
from evaluations.exports import Entry
from evaluations.exports_v2 import stored_digests
from evaluations.publication import card, croissant, parquet
from evaluations.publication.content import count_verdicts
from evaluations.publication.options import NOT_STATED, Options
from evaluations.publication.tables import (
    JUDGMENTS,
    LABELS,
    STEPS,
    TRAJECTORIES,
    Row,
    Table,
    judgment_rows,
    label_rows,
    step_rows,
    trajectory_rows,
)
from evaluations.verifier.documents import Document

README, METADATA = "README.md", "croissant.json"
CHUNK = 1 << 20
NO_LICENCE = "https://choosealicense.com/no-permission/"  # Croissant requires a licence


def find_damaged(submission: Submission) -> list[Problem]:
    """Read the images of the dataset, and return a problem for each use of a damaged or lost one."""
    return store_checks.check_submission(submission, stored_digests(submission))


def fill(folder: Path, submission: Submission, missing: tuple[Problem, ...], options: Options) -> None:
    """Write all files into an empty folder. Images that ``missing`` names as damaged or lost are left out."""
    (folder / "data").mkdir()
    unreadable = _find_unreadable(submission, missing)
    rows: list[tuple[Table, Iterable[Row]]] = [
        (TRAJECTORIES, trajectory_rows(submission)),
        (STEPS, step_rows(submission, unreadable)),
        (LABELS, label_rows(submission)),
        (JUDGMENTS, judgment_rows(submission)),
    ]
    counts = {table: parquet.write(table, each, folder / table.path) for table, each in rows}
    written = {table: count for table, count in counts.items() if count}
    files = {table.path: _describe_file(folder / table.path) for table in written}
    about = _describe(submission, options)
    (folder / METADATA).write_bytes(croissant.build(about, files, list(written)))
    verdicts = count_verdicts(submission)
    readme = card.build(submission, options, verdicts, missing, written, product_version())
    (folder / README).write_bytes(readme)


def entries(submission: Submission, missing: tuple[Problem, ...], options: Options) -> Iterator[Entry]:
    """Yield the files for a zip. All of them are written to a temporary folder first."""
    with scratch.folder("dataset") as folder:
        fill(folder, submission, missing, options)
        for path in sorted(path for path in folder.rglob("*") if path.is_file()):
            name, size = path.relative_to(folder).as_posix(), path.stat().st_size
            yield Entry(name, _read(path), compressed=path.suffix != ".parquet", size=size)


def _read(path: Path) -> Iterator[bytes]:
    with path.open("rb") as file:
        while chunk := file.read(CHUNK):
            yield chunk


def _find_unreadable(submission: Submission, missing: tuple[Problem, ...]) -> frozenset[str]:
    if not any(problem.code in store_checks.CODES for problem in missing):
        return frozenset()
    return frozenset(store_checks.find_bad(stored_digests(submission)))


def _describe_file(path: Path) -> tuple[int, str]:
    """Return size and SHA-256."""
    with path.open("rb") as file:
        return path.stat().st_size, hashlib.file_digest(file, "sha256").hexdigest()


def _describe(submission: Submission, options: Options) -> Document:
    """Return the properties of the dataset that Croissant requires. Its date is that of the freeze."""
    frozen = submission.frozen_at
    if frozen is None:
        raise ValueError("Only a frozen submission has a dataset.")
    licence = f"https://choosealicense.com/licenses/{options.licence}/" if options.licence else NO_LICENCE
    return {
        "name": f"{submission} on {submission.benchmark.name}",
        "description": "Trajectories of a web agent with the labels and final verdicts of people.",
        "license": licence,
        "url": options.url or ".",
        "creator": {"@type": "sc:Organization", "name": options.creator or NOT_STATED},
        "datePublished": frozen.date().isoformat(),
        "version": "1.0.0",
    }
