"""The evidence page of a large submission: a job computes the claims, and outdated claims are not shown."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from django.utils import timezone

from annotation import workflow
from annotation.models import Person, Submission
from evaluations import jobs
from evaluations.evidence import standing
from evaluations.models import Standing
from evaluations.tests.test_evidence_export import get

PENDING = "The claims are being computed."


@pytest.fixture
def large(frozen: Submission, monkeypatch: pytest.MonkeyPatch) -> Submission:
    """Two trajectories where a page computes the claims of one."""
    monkeypatch.setattr(standing, "MOST_TRAJECTORIES_AT_ONCE", 1)
    return frozen


def page(people: dict[str, Person], submission: Submission, **query: str) -> str:
    return get(people["mira"], "evidence", submission, **query).content.decode()


def test_page_of_a_large_submission_waits_for_the_job(large: Submission, people: dict[str, Person]) -> None:
    first = page(people, large)
    assert PENDING in first
    assert "claim-" not in first
    jobs.compute_standing(large.pk)
    after = page(people, large)
    assert PENDING not in after
    assert 'id="claim-chain"' in after
    assert "0 fail" in after


def test_page_computes_nothing_while_the_chain_has_the_same_head(
    large: Submission, people: dict[str, Person], django_assert_max_num_queries: Any
) -> None:
    jobs.compute_standing(large.pk)
    Submission.objects.filter(pk=large.pk).update(import_report={"accepted": []})  # a row, changed without an event
    with django_assert_max_num_queries(40):
        assert "0 fail" in page(people, large)


@pytest.mark.parametrize("change", ["event", "name", "age"])
def test_page_waits_for_the_job_again_when_its_inputs_may_have_changed(
    large: Submission, people: dict[str, Person], change: str
) -> None:
    jobs.compute_standing(large.pk)
    if change == "event":
        screenshot = large.trajectories.first().steps.first().screenshot
        workflow.redact(people["mira"], large, screenshot, [[0, 0, 5, 5]], "An address is shown.")
    elif change == "name":
        Person.objects.filter(pk=people["alice"].pk).update(last_name="Laptop")
    else:
        Standing.objects.update(computed_at=timezone.now() - timedelta(days=1, minutes=1))
    assert PENDING in page(people, large)
    jobs.compute_standing(large.pk)
    assert PENDING not in page(people, large)


def test_job_is_requested_once_for_all_waiting_pages(large: Submission) -> None:
    assert [standing.request(large) for _ in range(3)] == [True, False, False]
    Standing.objects.update(requested_at=timezone.now() - standing.ASKED_AGAIN - timedelta(seconds=1))
    assert [standing.request(large) for _ in range(2)] == [True, False]
    standing.compute(large)
    assert standing.request(large)


def test_refused_download_offers_to_accept_names_while_the_job_is_at_work(
    large: Submission, people: dict[str, Person]
) -> None:
    assert 'name="accept_names"' in page(people, large)
