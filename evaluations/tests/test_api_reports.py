"""Agreement and comparison through the API: who may read them, when, and what they are."""

from __future__ import annotations

import io
import json
from pathlib import Path
from typing import Any

import pytest
from django.core.management import call_command
from rest_framework import serializers

from annotation import workflow
from annotation.models import Agent, ImportedLabel, Person, Submission, Task
from annotation.tests import testing
from annotation.tests.shared_rows import shared_rows
from annotation.tests.test_api_submissions import get, problem
from evaluations.api import shapes
from evaluations.tests.audited import audit_of
from judges.models import Judgment
from judges.tests import rows as judged

People = dict[str, Person]
OF_SUBMISSION = ["agreement", "comparison"]
OF_BENCHMARK = ["agreement", "comparison", "judges", "agents"]


@shared_rows
def judgments(frozen: Submission) -> list[Judgment]:
    """The judge "strict" calls the first trajectory a success and the second one a failure; people, both a success."""
    items = judged.run_row(frozen, judged.judge_row("strict")).items.order_by("trajectory__position")
    return [judged.judgment_row(item, verdict) for item, verdict in zip(items, (1, 0), strict=True)]


def elsewhere(task_id: str, agent: str, **labels: int) -> None:
    """Imported labels: by whom, and what."""
    task = Task.objects.get(external_id=task_id)
    for annotator, verdict in labels.items():
        ImportedLabel.objects.create(
            benchmark=task.benchmark,
            task=task,
            agent=Agent.objects.get_or_create(name=agent)[0],
            annotator=annotator,
            position=ImportedLabel.objects.count(),
            verdict=verdict,
        )


def answer(person: Person, path: str, **query: Any) -> dict[str, Any]:
    response = get(person, path, **query)
    assert response.status_code == 200, response.json()
    found: dict[str, Any] = response.json()
    return found


def undescribed(value: Any, field: Any, place: str = "") -> set[str]:
    """The places of keys that the serializer of an answer does not have."""
    if isinstance(field, serializers.ListSerializer):
        return {found for each in value for found in undescribed(each, field.child, place)}
    if isinstance(field, serializers.DictField):
        return {found for each in value.values() for found in undescribed(each, field.child, place)}
    if not isinstance(field, serializers.Serializer) or value is None:
        return set()
    places = {name: f"{place}.{name}" for name in value}
    missing = {places[name] for name in value if name not in field.fields}
    inner = [undescribed(value[name], field.fields[name], places[name]) for name in value if name in field.fields]
    return missing.union(*inner)


@pytest.mark.parametrize(
    ("path", "described"),
    [
        ("/submissions/{}/agreement", shapes.AgreementSerializer),
        ("/submissions/{}/comparison", shapes.ComparisonSerializer),
        ("/benchmarks/shops/judges", shapes.JudgesSerializer),
        ("/benchmarks/shops/agents", shapes.AgentsSerializer),
    ],
)
def test_schema_of_figures_has_every_key_of_the_answer(
    judgments: Any, frozen: Submission, people: People, path: str, described: type[serializers.Serializer]
) -> None:
    judged.judgment_row(judged.run_row(frozen, judged.judge_row("kind")).items.earliest("pk"))
    query = {"judge": "strict"} if path.endswith("/comparison") else {}
    assert undescribed(answer(people["mira"], path.format(frozen.pk), **query), described()) == set()


# --- who may read them, and when -------------------------------------------------------------------------------------


@pytest.mark.parametrize("what", OF_SUBMISSION)
@pytest.mark.parametrize(("who", "status"), [("alice", 403), ("carol", 403), ("dave", 404), (None, 401)])
def test_the_figures_of_a_submission_are_for_its_maintainers(
    judgments: Any, frozen: Submission, people: People, what: str, who: str | None, status: int
) -> None:
    problem(get(people[who] if who else None, f"/submissions/{frozen.pk}/{what}", judge="strict"), status)


@pytest.mark.parametrize("what", OF_BENCHMARK)
@pytest.mark.parametrize(("who", "status"), [("alice", 404), ("carol", 404), ("dave", 404), (None, 401)])
def test_the_figures_of_a_benchmark_are_for_who_keeps_it(
    judgments: Any, people: People, what: str, who: str | None, status: int
) -> None:
    problem(get(people[who] if who else None, f"/benchmarks/shops/{what}", judge="strict"), status)


@pytest.mark.parametrize("what", OF_BENCHMARK)
@pytest.mark.parametrize("who", ["alice", "carol"])
def test_a_maintainer_of_the_instance_who_reviews_an_open_submission_of_it_is_refused(
    submission: Submission, people: People, what: str, who: str
) -> None:
    Person.objects.filter(pk=people[who].pk).update(is_staff=True)
    problem(get(people[who], f"/benchmarks/shops/{what}", judge="strict"), 403)


@pytest.mark.parametrize("what", OF_SUBMISSION)
def test_before_the_freeze_there_is_nothing_but_the_reason(submission: Submission, people: People, what: str) -> None:
    testing.label_all(people, submission, {"task_0000": [1, 0, 1]})
    body = problem(get(people["mira"], f"/submissions/{submission.pk}/{what}", judge="strict"), 409)

    assert set(body) == {"type", "title", "status", "detail"}
    assert f"The {what} can be read once the submission is frozen" in body["detail"]


@pytest.mark.parametrize("what", OF_SUBMISSION)
def test_auditor_of_a_bundle_from_before_the_freeze_is_told_so(
    submission: Submission, tmp_path: Path, what: str
) -> None:
    audit = audit_of(submission, tmp_path, partial=True)
    body = problem(get(audit.opened_by, f"/submissions/{audit.submission_id}/{what}", judge="strict"), 409)

    assert f"The {what} cannot be read: the submission was not frozen when its bundle was exported." in body["detail"]


def test_a_benchmark_counts_no_submission_that_is_not_frozen(submission: Submission, people: People) -> None:
    testing.label_all(people, submission, {"task_0000": [1, 0, 1]})

    assert answer(people["mira"], "/benchmarks/shops/agreement")["n_items"] == 0
    assert answer(people["mira"], "/benchmarks/shops/agents")["agents"] == []


def test_a_benchmark_counts_no_submission_that_somebody_else_maintains(frozen: Submission, people: People) -> None:
    elsewhere("task_0000", "Elsewhere", p=1, q=1)
    other = testing.person("root", is_staff=True)

    assert answer(people["mira"], "/benchmarks/shops/agreement")["n_items"] == 3
    assert answer(other, "/benchmarks/shops/agreement")["n_items"] == 1


# --- the judge that is asked for -------------------------------------------------------------------------------------


@pytest.mark.parametrize("address", ["/submissions/{}/comparison", "/benchmarks/shops/comparison"])
@pytest.mark.parametrize("query", [{}, {"judge": ""}, {"judge": "kind"}, {"judge": "strict@2"}, {"judge": "a\x00b"}])
def test_without_a_known_judge_the_known_ones_are_named(
    judgments: Any, frozen: Submission, people: People, address: str, query: dict[str, str]
) -> None:
    judged.judge_row("elsewhere-busy")  # has said nothing about these trajectories
    body = problem(get(people["mira"], address.format(frozen.pk), **query), 400)

    assert [error["where"] for error in body["errors"]] == ["judge"]
    if query != {"judge": "a\x00b"}:  # which no text field takes
        assert "Known: strict@1." in body["detail"]


def test_where_no_judge_was_asked_that_is_said(frozen: Submission, people: People) -> None:
    body = problem(get(people["mira"], f"/submissions/{frozen.pk}/comparison"), 400)
    assert "no judges for these trajectories" in body["detail"]


def test_an_older_version_is_asked_for_by_its_number(judgments: Any, frozen: Submission, people: People) -> None:
    newer = type(judgments[0].judge).objects.create(
        name="strict", version=2, scorer="webjudge", model="small-model", frozen_at=judgments[0].made_at
    )
    items = judged.run_row(frozen, newer).items.order_by("trajectory__position")
    for item in items:
        judged.judgment_row(item, 1)
    address = f"/submissions/{frozen.pk}/comparison"

    assert pooled(answer(people["mira"], address, judge="strict"))["agreement"] == 1
    assert pooled(answer(people["mira"], address, judge="strict@2"))["agreement"] == 1
    assert pooled(answer(people["mira"], address, judge="strict@1"))["agreement"] == 0.5


def pooled(body: dict[str, Any], label_2: str = "excluded") -> dict[str, Any]:
    (row,) = (row for row in body["overall"] if row["human_label_2"] == label_2)
    return dict(row)


# --- what they are ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("address", "query", "wrong"),
    [
        ("/submissions/{}/agreement", {"judge": "strict"}, "judge"),
        ("/submissions/{}/agreement", {"rules": "usual"}, "rules"),
        ("/submissions/{}/agreement", {"imported": "1"}, "imported"),
        ("/benchmarks/shops/judges", {"judge": "strict"}, "judge"),
        ("/benchmarks/shops/agents", {"imported": "1"}, "imported"),
        ("/submissions/{}/comparison", {"judge": "strict", "agent": "Careful Agent"}, "agent"),
        ("/benchmarks/shops/agreement", {"label2": "excluded"}, "label2"),
        ("/benchmarks/shops/agreement", {"rules": "usual"}, "rules"),
        ("/benchmarks/shops/comparison", {"judge": "strict", "levels": "easy"}, "levels"),
        ("/benchmarks/shops/agents", {"page": "2"}, "page"),
    ],
)
def test_a_parameter_that_is_wrong_or_unknown_is_refused(
    judgments: Any, frozen: Submission, people: People, address: str, query: dict[str, str], wrong: str
) -> None:
    body = problem(get(people["mira"], address.format(frozen.pk), **query), 400)
    assert [error["where"] for error in body["errors"]] == [wrong]


def test_figures_are_not_left_in_a_cache(judgments: Any, frozen: Submission, people: People) -> None:
    response = get(people["mira"], f"/submissions/{frozen.pk}/agreement")
    assert "no-store" in response["Cache-Control"]


def test_agreement_is_that_of_the_blind_labels(frozen: Submission, people: People) -> None:
    """[1, 0, 2] and [1, 1, 1]: of the first no two say the same, of the second all."""
    body = answer(people["mira"], f"/submissions/{frozen.pk}/agreement")

    assert (body["n_items"], body["n_complete"]) == (2, 2)
    assert number(body["raw_agreement"]) == 0.5
    # N = 6, N_c = 1, 4, 1: D_o = ((9 - 3) / 2) / 6 = 1/2, D_e = (36 - 18) / 30 = 3/5
    assert number(body["alpha"]) == pytest.approx(1 - (1 / 2) / (3 / 5))
    assert {pair["first"] for pair in body["pairs"]} <= {"A1", "A2"}


def number(value: Any) -> float:
    found: float = value["value"] if isinstance(value, dict) else value
    return found


def test_a_comparison_is_with_the_final_verdicts(judgments: Any, frozen: Submission, people: People) -> None:
    body = answer(people["mira"], f"/submissions/{frozen.pk}/comparison", judge="strict")
    row = pooled(body)

    assert (body["benchmark"], body["judge"], body["rules"]) == ("shops", "strict", "default")
    assert (row["n"], row["unscored"], row["errors"]) == (2, 0, 0)
    assert (row["agreement"], row["recall"], row["precision"]) == (0.5, 0.5, 1)
    assert (row["success_rate_human"], row["success_rate_judge"], row["success_rate_gap"]) == (1, 0.5, -0.5)
    assert row["specificity"] is None


def test_the_commands_print_the_same(judgments: Any, frozen: Submission, people: People) -> None:
    for name, extra in (("agreement", []), ("compare", ["--benchmark", "shops", "--judge", "strict"])):
        call_command(name, "--submission", str(frozen.pk), "--json", *extra, stdout=(out := io.StringIO()))
        query = {"judge": "strict"} if extra else {}
        what = "comparison" if extra else "agreement"
        shown = answer(people["mira"], f"/submissions/{frozen.pk}/{what}", **query)

        assert shown | {"scope": ""} == json.loads(out.getvalue()) | {"scope": ""}


def test_the_command_without_a_judge_prints_the_same_as_the_judges(judgments: Any, people: People) -> None:
    call_command("compare", "--benchmark", "shops", "--json", stdout=(out := io.StringIO()))
    shown = answer(people["mira"], "/benchmarks/shops/judges")

    assert shown.pop("left_out") == []  # the command says it beside its JSON
    assert shown | {"scope": ""} == json.loads(out.getvalue()) | {"scope": ""}
    (strict,) = shown["judges"]
    assert [(agent["agent"], agent["judged"]) for agent in shown["agents"]] == [("Careful Agent", False)]
    assert (strict["judge"], pooled(strict)["agreement"]) == ("strict", 0.5)
    assert shown["ceiling"] == answer(people["mira"], "/benchmarks/shops/comparison", judge="strict")["ceiling"]


def test_the_published_rules_are_known_for_a_submission_too(judgments: Any, frozen: Submission, people: People) -> None:
    shown = answer(people["mira"], f"/submissions/{frozen.pk}/comparison", judge="strict", rules="published")
    assert (shown["rules"], pooled(shown)["agreement"], pooled(shown)["specificity"]) == ("published", 50.0, 0)
    people_together = shown["ceiling"][-1]  # [1, 0, 2] and [1, 1, 1] of a final 1: 4 of 6
    assert (people_together["agreement"], people_together["intervals"]) == (66.7, {})
    assert answer(people["mira"], f"/submissions/{frozen.pk}/agreement", rules="published")["rules"] == "published"


def test_labels_made_elsewhere_can_be_asked_for_alone(judgments: Any, frozen: Submission, people: People) -> None:
    elsewhere("task_0000", "Careful Agent", p=0, q=0)  # where the review has found a success, as the judge does
    elsewhere("task_0000", "Elsewhere", p=1, q=1)

    assert answer(people["mira"], "/benchmarks/shops/agreement", imported=1)["n_items"] == 2
    assert answer(people["mira"], "/benchmarks/shops/agreement", imported=0)["n_items"] == 3
    shown = answer(people["mira"], "/benchmarks/shops/comparison", judge="strict", imported=1)
    assert [pooled(shown)[name] for name in ("n", "fp", "unjudged")] == [1, 1, 1]
    shown = answer(people["mira"], "/benchmarks/shops/judges", imported=1)
    assert [pooled(each)["fp"] for each in shown["judges"]] == [1]


def test_filters_leave_cases_out(judgments: Any, frozen: Submission, people: People) -> None:
    elsewhere("task_0000", "Elsewhere", p=1, q=0)
    for query, expected in (
        ({}, 3),
        ({"agent": "Elsewhere"}, 1),
        ({"website": "https://shop1.example/"}, 1),
        ({"website": "https://shop0.example/"}, 2),
        ({"level": "easy"}, 3),
        ({"level": "hard"}, 0),
    ):
        assert answer(people["mira"], "/benchmarks/shops/agreement", **query)["n_items"] == expected, query
    only = answer(
        people["mira"], f"/submissions/{frozen.pk}/comparison", judge="strict", website="https://shop1.example/"
    )
    assert pooled(only)["agreement"] == 0


def test_by_the_published_rules_the_first_listed_label_counts(judgments: Any, people: People) -> None:
    elsewhere("task_0000", "Elsewhere", p=1, q=0)
    address = "/benchmarks/shops/comparison"

    assert answer(people["mira"], address, judge="strict")["undecided"] == 1
    published = answer(people["mira"], address, judge="strict", rules="published")
    assert (published["rules"], published["undecided"]) == ("published", 0)
    assert pooled(published)["agreement"] == 50.0
    assert pooled(published)["specificity"] == 0


def test_agents_have_their_success_rates_with_and_without_label_2(frozen: Submission, people: People) -> None:
    elsewhere("task_0000", "Elsewhere", p=2, q=2)
    elsewhere("task_0001", "Elsewhere", p=0, q=0)
    body = answer(people["mira"], "/benchmarks/shops/agents")

    assert body["benchmark"] == "shops"
    careful, other = body["agents"]
    assert (careful["agent"], careful["by"], careful["n"], careful["over_all"]["value"]) == (
        "Careful Agent",
        "people",
        2,
        1,
    )
    assert (other["agent"], other["n"], other["not_executable"]) == ("Elsewhere", 2, 1)
    assert (other["over_all"]["value"], other["over_all"]["n"]) == (0, 2)
    assert (other["without_2"]["value"], other["without_2"]["n"]) == (0, 1)
    assert other["levels"]["easy"]["over_all"]["n"] == 2


def test_nobody_is_named_but_by_their_pseudonym(judgments: Any, frozen: Submission, people: People) -> None:
    workflow.open_results(people["mira"], frozen)
    said = (
        "".join(
            get(people["mira"], f"/{where}/{what}", judge="strict").content.decode()
            for where in (f"submissions/{frozen.pk}", "benchmarks/shops")
            for what in OF_SUBMISSION
            if what != "agreement"
        )
        + get(people["mira"], f"/submissions/{frozen.pk}/agreement").content.decode()
    )
    assert [name for name in ("alice", "bob", "chen", "carol") if name in said] == []
