"""What each further trajectory costs in memory where all of them are counted."""

from __future__ import annotations

import pytest
from django.test import Client
from django.urls import reverse

from annotation.models import Person, Submission
from annotation.tests.memory import LARGE, SMALL, bytes_for_each
from annotation.tests.shared_rows import shared_rows
from evaluations import cases, exports_v2
from evaluations.tests import builders as bulk


@shared_rows
def sizes() -> list[Submission]:
    for size in (SMALL, LARGE):
        bulk.reviewed(agents=1, tasks=size, slug=f"shops-{size}")
    return list(Submission.objects.order_by("pk"))


def test_case_takes_little_more_than_its_own_object(sizes: list[Submission], monkeypatch: pytest.MonkeyPatch) -> None:
    """Every estimate asks for all cases. Names and equal labels are shared by them."""
    monkeypatch.setattr(cases, "AT_ONCE", 50)
    assert bytes_for_each(sizes, cases.of_submission) < 900


def test_export_page_lists_some_problems_and_counts_all(
    client: Client, sizes: list[Submission], monkeypatch: pytest.MonkeyPatch
) -> None:
    """No trajectory here can be written as v2: the answer of its last step is not its final answer."""
    monkeypatch.setattr(exports_v2, "MOST_LISTED", 10, raising=False)
    client.force_login(Person.objects.get(username="mira"))
    page = client.get(reverse("export", args=[sizes[1].pk])).content.decode()
    problems, _ = exports_v2.survey(sizes[1])
    assert f"{len(problems)} problems for trajectories-v2 only" in page
    assert page.count(problems[0].code) == 10
    assert f"{len(problems) - 10} more are not shown." in page
