"""Submissions at several places of the protocol, for every test of this floor."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from django.test import Client, override_settings
from pytest_django import DjangoDbBlocker

from annotation import ingest
from annotation.models import Person, Submission
from annotation.tests import testing
from annotation.tests.shared_rows import rolled_back, shared_rows
from evaluations.auditing.importing import open_bundle
from evaluations.evidence import writing
from evaluations.models import Audit
from evaluations.tests.audited import auditor, client_of
from evaluations.tests.finished import finish
from evaluations.tests.forging import once_for_the_same
from evaluations.verifier import figures

# `figures.recompute_agreement`, which is most of a check, worked out once for the same bundle.
RECOUNTED = once_for_the_same(figures.recompute_agreement, lambda bundle: bundle)
BUNDLES: dict[str, Path] = {}  # those of the fixture `bundles`, which is made before any shared rows


@shared_rows
def submission(folder: Path) -> Submission:
    """Two trajectories of three steps each, version 2."""
    return testing.submission(folder, trajectories=2)


@shared_rows
def people(submission: Submission) -> dict[str, Person]:
    return testing.cast(submission)


@shared_rows
def frozen(submission: Submission, people: dict[str, Person]) -> Submission:
    """Task 0 is disputed and adjudicated as a success, task 1 is a unanimous success and spot-checked."""
    return finish(people, submission, {"task_0000": [1, 0, 2]})


@shared_rows
def uncovered(submission: Submission, people: dict[str, Person]) -> Submission:
    """As `frozen`, with a task of the benchmark that it has no trajectory for."""
    testing.benchmark(3)
    return finish(people, submission, {"task_0000": [1, 0, 2]})


# --- what auditors have ----------------------------------------------------------------------------------------------


@pytest.fixture(scope="session")
def bundles(
    django_db_setup: None, django_db_blocker: DjangoDbBlocker, tmp_path_factory: pytest.TempPathFactory
) -> dict[str, Path]:
    """Two evidence bundles of a submission like `frozen`, made once: with its screenshots ("files") and without
    ("digests"). Neither the submission nor the key that signed them is in the database of a test."""
    folder = tmp_path_factory.mktemp("bundles")
    found = {kind: folder / f"{kind}.zip" for kind in ("files", "digests")}
    with override_settings(MEDIA_ROOT=folder / "images"), rolled_back(django_db_blocker):
        submission = testing.submission(folder / "package", trajectories=2)
        frozen = finish(testing.cast(submission), submission, {"task_0000": [1, 0, 2]})
        for kind, path in found.items():
            writing.write(writing.prepare(frozen, screenshots=kind), path)
    BUNDLES.update(found)
    return found


@pytest.fixture
def store(tmp_path: Path, settings: Any) -> None:
    """An image store of the test's own."""
    settings.MEDIA_ROOT = tmp_path / "images"


@shared_rows
def opened_bundle(folder: Path) -> Audit:
    """For `audit`, which sees to it that the bundle has been written."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(figures, "recompute_agreement", RECOUNTED)
        return open_bundle(BUNDLES["files"], auditor())


@pytest.fixture
def audit(bundles: dict[str, Path], store: None, opened_bundle: Audit, monkeypatch: pytest.MonkeyPatch) -> Audit:
    """One of `bundles`, the one with screenshots, opened by amy."""
    monkeypatch.setattr(figures, "recompute_agreement", RECOUNTED)
    return opened_bundle


@pytest.fixture
def amy(db: Any) -> Client:
    """amy, who audits, at her browser."""
    return client_of(auditor())


@pytest.fixture
def imported_v1(db: Any, tmp_path: Path) -> Callable[..., Submission]:
    """A function that imports one version 1 trajectory: the fields of its result.json, and its images."""

    def make(images: dict[str, bytes] | None = None, reference_length: int | None = 4, **fields: Any) -> Submission:
        pictures = {f"{n}_full.png": testing.png(n) for n in range(3)} if images is None else images
        package = tmp_path / "package"
        testing.write_trajectory(package, testing.result_v1(0, **fields), pictures)
        benchmark = testing.benchmark(1, reference_length=reference_length)
        report, made = ingest.import_submission(package, benchmark=benchmark, agent_name="Old Agent")
        assert made is not None, report.as_json()
        return made

    return make
