"""What anybody may write into a bundle, on every page: an audit of it is read like any other, and ends no worker."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from django.urls import reverse

from config.tests.addresses import patterns
from config.tests.test_independence import body
from evaluations.auditing.importing import open_bundle
from evaluations.models import Audit
from evaluations.tests.audited import auditor, client_of
from evaluations.tests.hand_made_bundle import HandMade
from evaluations.verifier.rules import ACTORS

pytestmark = pytest.mark.django_db
ODD: tuple[Any, ...] = (None, 1, 10**29, 1.5, True, "x", [], [1, 2], [1, [], {}], {}, {"x": {"y": None}})
NAMES = (
    *("task_id", "slot", "label", "revision", "trajectory", "trajectories", "checks", "trace", "member", "role"),
    *("verdicts", "run", "judge", "judgments", "draw", "number", "seed", "next_seed", "required_labels", "pass_mark"),
    *("reason", "note"),
)


@pytest.fixture(autouse=True)
def store(tmp_path: Path, settings: Any) -> None:
    settings.MEDIA_ROOT = tmp_path / "images"


def opened(made: HandMade, folder: Path) -> Audit:
    """What was changed since it was complete is covered by a new chain and signed."""
    made.rechain()
    path = folder / "bundle.zip"
    path.write_bytes(made.zipped())
    return open_bundle(path, auditor())


def read(audit: Audit) -> Iterator[tuple[str, int]]:
    """Every page and every address of the API about an audit, as its auditor asks for it, with the status."""
    rows = list(audit.submission.trajectories.all())
    files = rows[0].attachments.all()
    bases: dict[str, list[dict[str, Any]]] = {
        "trajectories/<int:pk>": [{"pk": row.pk} for row in rows],
        "submissions/<int:pk>": [{"pk": audit.submission_id}],
        "audits/<int:pk>": [{"pk": audit.pk}],
        "<slug:slug>": [{"slug": audit.submission.benchmark.slug}],
    }
    more = {
        "step": 0,
        "number": 0,
        "kind": "display",
        "attachment_pk": files[0].pk if files else 1,
        "export_format": "labels",
    }
    client = client_of(auditor())
    for route, name, _ in patterns():
        wanted = set(re.findall(r"<(?:\w+:)?(\w+)>", route))
        for base in next((found for part, found in bases.items() if part in route), [] if wanted else [{}]):
            if route.startswith("admin/") or "sign-out" in route or not wanted <= {*base, *more}:
                continue
            address = reverse(name, kwargs={each: ({**more, **base})[each] for each in wanted})
            answer = client.get(address)
            body(answer)
            yield address, answer.status_code
    for number in range(2, audit.submission.events.count() // 100 + 2):  # a page has as many of them
        address = reverse("events", args=[audit.submission_id]) + f"?page={number}"
        yield address, client.get(address).status_code


def test_events_say_anything_and_every_page_is_there(tmp_path: Path) -> None:
    made = HandMade().complete()
    made.event("configured", "M1", x=1)
    for kind in ACTORS:
        made.event(kind, "M1")
        for odd in ODD:
            made.event(kind, "A1", **dict.fromkeys(NAMES, odd))

    audit = opened(made, tmp_path)

    answers = dict(read(audit))
    assert len([status for status in answers.values() if status == 200]) > 30, answers
    assert all(status < 500 for status in answers.values())
