"""Every forgery of a bundle is caught, by the check that is there for it, however well its maker covers the traces."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from django.test import override_settings
from pytest_django.plugin import DjangoDbBlocker

from annotation.tests.shared_rows import rolled_back
from evaluations.evidence import writing
from evaluations.tests.forgeries import FORGERIES, beside
from evaluations.tests.forgeries.chain import set_up_earlier
from evaluations.tests.forgeries.ground import Given
from evaluations.tests.forging import Forged, compared_of, failures, once_for_the_same
from evaluations.tests.judged_here import ENDPOINTS, judged_here
from evaluations.tests.test_sample_plan_forgeries import FORGERIES as OF_PLANS
from evaluations.tests.test_sample_stop_forgeries import FORGERIES as OF_STOPS
from evaluations.tests.whole_review import whole_review
from evaluations.verifier import figures
from evaluations.verifier.agreement import collect_cases
from evaluations.verifier.rules import CLAIMS, OF_DOCUMENTS

pytestmark = [pytest.mark.django_db, pytest.mark.once]  # the fixture below asks the database, once for all of them


@pytest.fixture(scope="module")
def honest(
    django_db_setup: None, django_db_blocker: DjangoDbBlocker, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[bytes]:
    """The bundle of a whole review, signed with the forgers' own key: what they make of it is signed alike."""
    folder = tmp_path_factory.mktemp("honest")
    made = folder / "bundle.zip"
    here = override_settings(MEDIA_ROOT=folder / "images", JUDGE_ENDPOINTS=ENDPOINTS)
    with here, rolled_back(django_db_blocker):
        submission = whole_review(folder / "package")
        judged_here(submission)
        writing.write(writing.prepare(submission), made)
    yield Forged(made.read_bytes()).sealed()
    shutil.rmtree(folder)


@pytest.fixture(scope="module", autouse=True)
def figures_are_drawn_once() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(figures, "recompute_agreement", once_for_the_same(figures.recompute_agreement, collect_cases))
        patched.setattr(figures, "recompute_comparison", once_for_the_same(figures.recompute_comparison, compared_of))
        yield


def test_the_honest_bundle_passes(honest: bytes, tmp_path: Path) -> None:
    assert failures(honest, tmp_path) == {}


def test_what_forgers_do_to_cover_traces_changes_nothing_of_an_honest_bundle(honest: bytes, tmp_path: Path) -> None:
    """Otherwise a forgery would be caught for the cover, and not for what it changed."""
    assert failures(Forged(honest).covered(), tmp_path) == {}


def test_a_review_that_was_set_up_long_before_it_began_passes(honest: bytes, tmp_path: Path) -> None:
    """Two forgeries exchange events of it, and nothing but that may be what they are caught by."""
    forged = Forged(honest)
    set_up_earlier(forged)

    assert failures(forged.covered(), tmp_path) == {}


@pytest.mark.parametrize("name", FORGERIES)
def test_a_forgery_is_caught_by_the_check_that_is_there_for_it(name: str, honest: bytes, tmp_path: Path) -> None:
    forgery, forged = FORGERIES[name], Forged(honest)

    forgery.change(forged)
    found = failures(forgery.cover(forged), tmp_path, **forgery.given(Forged(honest), tmp_path))

    assert forgery.caught_by in found, found


@pytest.mark.parametrize(
    "given", [beside.published, beside.saved_head, beside.chain_id, beside.task_list, beside.honest_bundle]
)
def test_the_honest_bundle_passes_with_what_an_auditor_has(given: Given, honest: bytes, tmp_path: Path) -> None:
    assert failures(honest, tmp_path, **given(Forged(honest), tmp_path)) == {}


@pytest.mark.parametrize(
    "name",
    [
        "a_maintainer_rewords_a_label_with_the_servers_key",
        "an_annotator_is_invented",
    ],
)
def test_nothing_in_the_bundle_shows_what_only_what_is_outside_it_does(
    name: str, honest: bytes, tmp_path: Path
) -> None:
    forgery, forged = FORGERIES[name], Forged(honest)
    forgery.change(forged)
    assert failures(forgery.cover(forged), tmp_path) == {}


def test_a_hundred_kinds_of_forgery_are_caught_by_name() -> None:
    """Each has its own test in the file that registers it, with the check that has to catch it."""
    kinds = [*FORGERIES, *OF_PLANS, *OF_STOPS]
    assert len(kinds) == len(set(kinds))
    assert len(kinds) >= 186


def test_every_check_that_can_fail_catches_a_forgery() -> None:
    checks = {*CLAIMS, *OF_DOCUMENTS, "manifest", "signature", "shapes", "supersedes", "revocations", "other_bundle"}
    checks |= {"chain_id", "kept_heads"}
    only_noted = {"times", "exceptions"}
    # judges/tests/test_lab_in_bundle.py forges a test of robustness, test_sample_plan_forgeries.py samples.
    elsewhere = {"robustness", "sample_plan", "estimate"}
    caught = {forgery.caught_by for forgery in FORGERIES.values()}
    assert caught == checks - only_noted - elsewhere
