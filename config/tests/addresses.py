"""Every address that the resolver knows, filled in with the rows of a test, for tests that walk all of them."""

import re
from collections.abc import Iterator, Sequence
from typing import Any

from django.urls import URLPattern, URLResolver, get_resolver, reverse

from annotation.models import (
    ApiToken,
    Attachment,
    Comment,
    KeyPoint,
    Person,
    Phrase,
    Question,
    Report,
    Trajectory,
    Upload,
    WebhookDelivery,
)
from evaluations.models import Audit, Entry
from judges.models import Alignment, Judge, JudgeRun, Judgment, ModelTerms
from judges.prompts import load_builtin

Values = dict[str, Any]
NOBODYS = "00000000-0000-4000-8000-000000000000"  # a key of no row


def patterns(resolver: Any = None, prefix: str = "", namespace: str = "") -> Iterator[tuple[str, str, URLPattern]]:
    for entry in (resolver or get_resolver()).url_patterns:
        if isinstance(entry, URLResolver):
            inner = f"{namespace}{entry.namespace}:" if entry.namespace else namespace
            yield from patterns(entry, prefix + str(entry.pattern), inner)
        elif isinstance(entry, URLPattern):
            yield prefix + str(entry.pattern), namespace + (entry.name or ""), entry


def find_pairs(rows: Sequence[Trajectory]) -> list[tuple[Trajectory, Trajectory]]:
    """Return ``rows`` with those of the newest other submission that has some of the same tasks."""
    others = Trajectory.objects.filter(task__in=[row.task_id for row in rows], submission__practice=False)
    found = list(others.exclude(submission=rows[0].submission_id).order_by("-submission", "position"))
    pairs = [(row, other) for other in found for row in rows if row.task_id == other.task_id]
    assert pairs, "addresses.py needs another submission of the same tasks"
    return [pair for pair in pairs if pair[1].submission_id == found[0].submission_id]


def build_arguments(
    rows: Sequence[Trajectory], pairs: Sequence[tuple[Trajectory, Trajectory]]
) -> tuple[dict[str, list[Values]], Values]:
    """Return the values to walk with, by part of a route and by name: 40 queries for all routes together."""
    sent = WebhookDelivery.objects.order_by("-created_at").first()
    submission, slug = rows[0].submission_id, rows[0].submission.benchmark.slug
    things: dict[str, list[Values]] = {
        "trajectories/<int:pk>/pages/": [
            {"pk": row.pk, "attachment_pk": Attachment.objects.filter(kind="cached_page").latest("pk").pk}
            for row in rows
        ],
        "trajectories/<int:pk>/against/": [{"pk": row.pk, "other": other.pk} for row, other in pairs],
        "trajectories/<int:pk>": [{"pk": row.pk} for row in rows],
        "submissions/<int:pk>": [{"pk": submission}],
        "work/<int:pk>": [{"pk": submission}],
        "adjudicate/<int:pk>": [{"pk": submission}],
        "practice/<int:pk>": [{"pk": submission}],
        "tasks/<int:pk>/expectations": [
            {"pk": rows[0].task_id, "expected": kind} for kind in ("network_checks", "rubric")
        ],
        "tasks/<int:pk>": [{"pk": rows[0].task_id}],
        "key-points/<int:pk>": [{"pk": KeyPoint.objects.latest("pk").pk}],
        "phrases/<int:pk>": [{"pk": Phrase.objects.get().pk}],
        "affiliations/<int:pk>": [{"pk": 1}],
        "tokens/<int:pk>": [{"pk": ApiToken.objects.get().pk}],
        "reports/<int:pk>": [{"pk": Report.objects.latest("pk").pk}],
        "comments/<int:pk>": [{"pk": Comment.objects.latest("pk").pk}],
        "questions/<int:pk>": [{"pk": Question.objects.latest("pk").pk}],
        "judges/<int:pk>": [{"pk": pk} for pk in Judge.objects.order_by("pk").values_list("pk", flat=True)[:4]],
        "judge-runs/<int:pk>": [{"pk": JudgeRun.objects.earliest("pk").pk}],
        "judgments/<int:pk>": [{"pk": pk} for pk in Judgment.objects.order_by("pk").values_list("pk", flat=True)[:6]],
        "judges/models/<int:pk>": [{"pk": ModelTerms.objects.earliest("pk").pk}],
        "webhooks/<uuid:pk>": [{"pk": sent.webhook_id if sent else NOBODYS}],
        "uploads/resumable/<uuid:pk>": [{"pk": NOBODYS}],
        "model-terms/<int:pk>": [{"pk": ModelTerms.objects.earliest("pk").pk}],
        "uploads/<uuid:pk>": [{"pk": Upload.objects.get().pk}],
        "alignments/<int:pk>": [{"pk": pk} for pk in Alignment.objects.values_list("pk", flat=True)] or [{"pk": 1}],
        "audits/<int:pk>": [{"pk": audit.pk} for audit in Audit.objects.all()] or [{"pk": 1}],
        "entries/<slug:key>": [{"key": each.key} for each in Entry.objects.all()] or [{"key": "0" * 12}],
        "owners/<int:pk>": [{"slug": slug, "pk": 1}],
        "<slug:slug>/tasks/<str:external_id>/expectations": [
            {"slug": slug, "external_id": rows[0].task.external_id, "expected": "network_checks"}
        ],
        "<slug:slug>/tasks/<str:external_id>": [{"slug": slug, "external_id": rows[0].task.external_id}],
        "<slug:slug>": [{"slug": slug}],
    }
    by_name: Values = {
        "step": 0,
        "number": 0,
        "kind": "thumbnail",
        "attachment_pk": Attachment.objects.filter(kind="agent_response").latest("pk").pk,
        "trajectory_pk": Trajectory.objects.filter(submission__practice=True).earliest("pk").pk,
        "attachment": Attachment.objects.filter(kind="agent_response").latest("pk").pk,
        "item": Trajectory.objects.filter(submission__practice=True).earliest("pk").pk,
        "pseudonym": "A2",
        "person_pk": Person.objects.get(username="bob").pk,
        "export_format": "labels",
        "part": "labels",
        "uidb64": "MQ",
        "token": "set-password",
        "delivery_pk": sent.pk if sent else NOBODYS,
        "object_id": "1",
        "id": "1",
        "app_label": "annotation",
        "content_type_id": 1,
        "url": "annotation/",
        "rest": "nowhere",
        "action": "accept",
        "key": "0" * 12,  # entries of registries are walked by evaluations.tests.public_pages
        "digest": load_builtin("webjudge/1").digest,
        "path": "css/base.css",
    }
    return things, by_name


def arguments(route: str, things: dict[str, list[Values]], by_name: Values) -> list[Values]:
    wanted = set(re.findall(r"<(?:\w+:)?(\w+)>", route)) | set(re.findall(r"\(\?P<(\w+)>", route))
    if not wanted:
        return [{}]
    bases: list[Values] = next((found for part, found in things.items() if part in route), [{}])
    filled = [{**{key: by_name[key] for key in wanted if key in by_name}, **base} for base in bases]
    for values in filled:
        assert wanted <= set(values), f"addresses.py does not know how to walk {route}: missing {wanted}"
    return filled


def addresses(rows: Sequence[Trajectory]) -> Iterator[tuple[str, str]]:
    pairs = find_pairs(rows)
    things, by_name = build_arguments(rows, pairs)
    both = {"first": pairs[0][0].submission_id, "second": pairs[0][1].submission_id}
    for route, name, _ in patterns():
        if not name or name.endswith(":"):
            assert route.startswith("admin/"), f"{route} has no name; the tests walk addresses by name"
            continue
        for values in arguments(route, things, by_name):
            try:
                address = reverse(name, kwargs=values)
            except Exception as error:
                raise AssertionError(f"addresses.py cannot build {route} with {values}") from error
            yield route, address
            if name == "two-agents":  # which are chosen by the query alone
                yield route, reverse(name, kwargs=values, query=both)
