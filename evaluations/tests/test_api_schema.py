"""The whole API against its own description."""

from __future__ import annotations

from collections.abc import Iterator
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
import schemathesis
from django.core.management import call_command
from django.core.signals import request_finished, request_started
from django.core.wsgi import get_wsgi_application
from django.db import close_old_connections
from django.test import Client
from django.utils import timezone
from drf_spectacular.generators import SchemaGenerator
from hypothesis import HealthCheck, given, settings
from schemathesis.specs.openapi.checks import positive_data_acceptance

from annotation import webhooks
from annotation.models import ApiToken, Person, SamplePlan, Submission
from evaluations.auditing.actions import decide
from evaluations.auditing.importing import open_bundle
from evaluations.models import Entry, EntryEvent
from evaluations.registry import chain, entries
from evaluations.tests.audited import bundle
from judges import defining, expectations
from judges.models import Judge
from judges.prompts import load_builtin
from judges.scorers import action_selection
from judges.tests import rows as judged

People = dict[str, Person]


def test_the_schema_is_valid_and_without_warnings() -> None:
    out = StringIO()
    call_command("spectacular", "--validate", "--fail-on-warn", stdout=out)
    assert "/api/v1/submissions/{id}/labels" in out.getvalue()


def test_the_browsable_page_loads_from_our_own_files(db: Any) -> None:
    text = Client().get("/api/docs").content.decode()
    assert "/static/drf_spectacular_sidecar/" in text
    assert "http://" not in text
    assert "https://" not in text


def get_operations() -> list[Any]:
    schema = schemathesis.openapi.from_dict(SchemaGenerator().get_schema(public=True))
    schema.app = get_wsgi_application()
    schema.config.generation.allow_x00 = False  # no text has it: 400, see the tests of the filters
    return [found.ok() for found in schema.get_all_operations() if found.ok().method == "get"]


# An upload is followed to its end by the tests of the uploads. What is for annotators and adjudicators, and what a
# frozen submission seldom has, is read by config/tests/test_api_work.py.
OTHERS = ("Annotation", "Adjudication")
SELDOM = ("/known-answer", "/files/{part}")
IN_THE_SUBMISSION = [
    operation
    for operation in get_operations()
    if "/uploads/" not in operation.path
    and "/alignments/{" not in operation.path  # needs a finished alignment; its answers are in the tests of alignments
    and operation.tags[0] not in OTHERS
    and not operation.path.endswith(SELDOM)
]


def asks_for_a_judge(operation: Any) -> bool:
    return any(parameter.name == "judge" and parameter.is_required for parameter in operation.query)


@pytest.fixture
def headers(people: People) -> Iterator[dict[str, str]]:
    """Mira's token. A request through WSGI must not close the connection that holds the test's transaction."""
    for signal in (request_started, request_finished):
        signal.disconnect(close_old_connections)
    yield {"Authorization": f"Bearer {ApiToken.issue(people['mira'], 'test', 'admin')[1]}", "Host": "testserver"}
    for signal in (request_started, request_finished):
        signal.connect(close_old_connections)


@pytest.mark.parametrize("operation", get_operations(), ids=lambda operation: operation.path)
def test_every_get_answers_as_its_schema_says(frozen: Submission, headers: dict[str, str], operation: Any) -> None:
    # No schema can say which judges there are, or that the first day is not after the last: these are 400.
    has_span = {"first", "last"} <= {parameter.name for parameter in operation.query}
    refusals_allowed = [positive_data_acceptance] if asks_for_a_judge(operation) or has_span else []

    @given(case=operation.as_strategy())
    @settings(
        max_examples=15,
        derandomize=True,
        database=None,
        deadline=None,
        suppress_health_check=list(HealthCheck),
    )
    def answers(case: Any) -> None:
        case.call_and_validate(headers=headers, excluded_checks=refusals_allowed)

    answers()


def _take_entries(frozen: Submission) -> str:
    """Make mira an owner of the benchmark, with an entry."""
    mira = Person.objects.get(username="mira")
    entries.configure(mira, frozen.benchmark, public=True, contact="mira")
    made = Entry.objects.create(
        benchmark=frozen.benchmark,
        agent="Pathfinder",
        organisation="Acme",
        relationship="third_party",
        submitted_by=mira,
        submitted_at=timezone.now(),
    )
    chain.append(made, EntryEvent.Kind.SUBMITTED, EntryEvent.Role.SUBMITTER, mira)
    return made.key


@pytest.mark.parametrize("operation", IN_THE_SUBMISSION, ids=lambda operation: operation.path)
def test_every_get_of_something_that_is_there_answers_as_its_schema_says(
    frozen: Submission, headers: dict[str, str], tmp_path: Path, operation: Any
) -> None:
    trajectory = frozen.trajectories.first()
    known = {"id": frozen.pk, "slug": "shops", "export_format": "human-label"}
    if "/trajectories/{" in operation.path:
        known["id"] = trajectory.pk
    if "/judges/{" in operation.path:
        known["id"] = defining.define(None, name="strict", scorer="webjudge", model="some-model").pk
    if operation.path.endswith("/robustness"):
        judged.card_row(Judge.objects.get(pk=known["id"]), frozen)
    if "/judge-runs/{" in operation.path or "/judgments/{" in operation.path:
        item = judged.run_row(frozen).items.earliest("pk")
        judged.call_row(item)
        made = judged.judgment_row(item)
        known["id"] = item.run_id if "/judge-runs/{" in operation.path else made.pk
    known["external_id"] = trajectory.task.external_id
    known["digest"] = load_builtin("webjudge/1").digest
    if "/audits/{" in operation.path:
        mira = Person.objects.get(username="mira")
        audit = open_bundle(bundle(frozen, tmp_path), mira)
        decide(mira, audit, "accept", "The checks passed.")  # its attestation needs a decision
        known["id"] = audit.pk
    if operation.path.endswith(("/{key}", "/entries", "/intake")):
        known["key"] = _take_entries(frozen)
    if "/webhooks/{" in operation.path:
        known["id"] = str(webhooks.create(Person.objects.get(username="mira"), frozen, "https://hooks.example/")[0].pk)
    if "{expected}" in operation.path:
        known["expected"] = expectations.Kind.NETWORK_CHECKS.value
        expectations.write(None, trajectory.task, known["expected"], "checks:\n  - url: http://shop.example/\n")
    if operation.path.endswith("/sample-plan/stop"):
        rule, by = {"rule": "anytime", "half_width": 0.1}, Person.objects.get(username="mira")
        terms = {"goal": {}, "judge": {}, "labels": {"all": 2}, "estimand": "runs", "rule": rule}
        SamplePlan.objects.create(submission=frozen, planned_by=by, planned_at=timezone.now(), **terms)
    query = {"half_width": 0.1} if operation.path.endswith("/sample-plan") else {}
    if asks_for_a_judge(operation):
        scorer = action_selection.KIND.name if operation.path.endswith("/predictions") else "webjudge"
        strict = judged.judge_row("strict", scorer=scorer)
        for number, item in enumerate(judged.run_row(frozen, strict).items.order_by("pk")):
            judged.judgment_row(item, number % 2)  # one of them is not what the people say
        query["judge"] = "strict"
    names = {parameter.name for parameter in operation.path_parameters}
    case = operation.Case(path_parameters={name: known[name] for name in names}, query=query)
    response = case.call_and_validate(headers=headers)
    assert response.status_code == 200, response.text
