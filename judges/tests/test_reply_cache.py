"""Replies belong to the endpoint that gave them: its name and its address."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from annotation.models import Person, Submission
from annotation.tests import testing
from judges.models import Judgment, ModelCall
from judges.tests.builders import Fake, defined_judge, fake_endpoint, started_run, worked
from judges.tests.tiny import tiny_scorer

pytestmark = pytest.mark.django_db(transaction=True)

SUCCESS, FAILURE = {"reply": "All was done, so: success"}, {"reply": "The cart is empty: failure"}


@pytest.fixture(scope="module")
def other_process() -> Iterator[Fake]:
    with fake_endpoint() as other:
        yield other


@pytest.fixture
def other(other_process: Fake) -> Fake:
    """A second server that serves a model of the same name."""
    other_process.reset()
    other_process.says(FAILURE)
    return other_process


@pytest.fixture
def here(settings: Any, fake: Fake, other: Fake, tmp_path: Path) -> Iterator[tuple[Submission, Person]]:
    """One trajectory with one picture, which a judge asks two calls for."""
    settings.JUDGE_ENDPOINTS = {"first": fake.url, "second": other.url}
    fake.says(SUCCESS)
    with tiny_scorer():
        submission = testing.submission(tmp_path, trajectories=1, steps=1)
        yield submission, testing.cast(submission)["mira"]


def run_at(endpoint: str, here: tuple[Submission, Person], name: str = "") -> int | None:
    """Run a judge at an endpoint; its verdict."""
    submission, mira = here
    judge = defined_judge(name or f"at-{endpoint}", scorer="tiny", endpoint=endpoint)
    run = started_run(mira, submission, judge)
    worked(run)
    return Judgment.objects.get(item__run=run).verdict


def store_under_former_keys() -> None:
    """Turn the stored replies into those of an earlier version, whose keys did not have the endpoint."""
    for call in ModelCall.objects.all():
        canonical = json.dumps(call.request, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
        call.key = hashlib.sha256(canonical.encode()).hexdigest()
        call.save(update_fields=["key"])


def test_a_judge_at_another_endpoint_does_not_get_the_replies_of_the_first(here: Any, fake: Fake, other: Fake) -> None:
    assert run_at("first", here) == 1
    assert run_at("second", here) == 0
    assert (fake.counts()["calls"], other.counts()["calls"]) == (2, 2)


def test_an_endpoint_that_got_another_address_is_asked_again(here: Any, settings: Any, fake: Fake, other: Fake) -> None:
    assert run_at("first", here) == 1
    settings.JUDGE_ENDPOINTS = {"first": other.url}
    assert run_at("first", here) == 0
    assert other.counts()["calls"] == 2
    settings.JUDGE_ENDPOINTS = {"first": f"{fake.url}/"}  # back again: the replies of that address still count
    assert run_at("first", here) == 1
    assert fake.counts()["calls"] == 2


def test_replies_of_an_earlier_version_count_for_their_endpoint_only(here: Any, fake: Fake, other: Fake) -> None:
    assert run_at("first", here) == 1
    store_under_former_keys()
    assert run_at("first", here) == 1
    assert fake.counts()["calls"] == 2
    assert run_at("second", here) == 0
    assert other.counts()["calls"] == 2


def test_replies_of_an_earlier_version_do_not_count_once_the_endpoint_has_another_address(
    here: Any, settings: Any, other: Fake
) -> None:
    assert run_at("first", here) == 1
    store_under_former_keys()
    settings.JUDGE_ENDPOINTS = {"first": other.url}
    assert run_at("first", here) == 0
    assert other.counts()["calls"] == 2
