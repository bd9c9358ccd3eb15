"""No list of a page is as long as the rows: `bench.pages` measures the pages of 30,000 trajectories."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from annotation import privacy, workflow
from annotation.models import KeyPoint, Person
from annotation.workflow import integrity
from bench import pages, pages_rows
from evaluations.evidence import decisions

pytestmark = [pytest.mark.django_db, pytest.mark.slow]
TRAJECTORIES = 520  # with two key points each, more than SQLite accepts as single conditions
LISTED = 350  # entries of each list of the instance
LONGEST = 340  # entries of all lists and rows of all tables of a page


@pytest.fixture
def instance(tmp_path: Path, settings: Any) -> dict[str, Any]:
    settings.MEDIA_ROOT = tmp_path
    return pages_rows.build(TRAJECTORIES, listed=LISTED)


def test_pages_have_parts_of_long_lists_and_leave_import_reports_alone(instance: dict[str, Any]) -> None:
    long, reading, seen = {}, set(), 0
    for state, route, role, cost in pages.walk(instance, ("alice", "carol", "mira")):
        seen += 1
        entries = len(re.findall(r"<(?:li|tr|option)\b", cost.html))
        if entries > LONGEST or len(cost.html) > pages.BYTES:
            long[state, role, route] = (entries, len(cost.html))
        if any('"import_report"' in sql for sql in cost.statements):
            reading.add(route)

    assert seen > 200
    assert "\n".join(f"{key}: {value}" for key, value in long.items()) == ""
    assert reading == set()


def test_labels_on_more_key_points_than_a_query_may_list_are_read(instance: dict[str, Any]) -> None:
    submission = instance["open"][0].submission
    assert KeyPoint.objects.filter(task__benchmark=submission.benchmark, accepted_at__isnull=False).count() > 1000

    carol = Person.objects.get(username="carol")
    assert len(privacy.data_of(carol)["adjudications"]) > 100
    people = decisions.pseudonyms(submission)
    assert all(len(each["facts"]["findings"]) in (0, 2) for each in decisions.labels(submission, people))
    assert any(problem.code == "label_not_in_events" for problem in integrity.problems(submission))
    with pytest.raises(workflow.Conflict):
        workflow.freeze(Person.objects.get(username="mira"), submission)
