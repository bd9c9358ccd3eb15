"""Three judges over the demo's data: network trace, rubric, action selection; defined and run by page, API and command,
compared with people in the same three ways, and worked on by the workers of this profile."""

from __future__ import annotations

import io
import json
import sys
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from django.conf import settings as project
from django.core.management import call_command
from django.test import Client
from django.urls import reverse
from lxml import html

from annotation.models import Person, Submission
from config.tests.instance import JUDGES, Instance
from config.tests.servers import own_postgres, own_redis
from config.tests.waiting import wait_until
from judges.models import Judge, JudgeRun, Judgment
from judges.tests.builders import Fake, fake_endpoint, worked
from tools.demo.answers import DOGS, NIGHTS, TABLETS

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.once]

TRUE = {"match": "claim", "reply": json.dumps({"reasoning": "It is there.", "result": True})}
CLICK = {
    "match": "element",
    "reply": json.dumps({"reason": "A guess.", "element": 1, "operation": "CLICK", "value": ""}),
}
WAYS = ("page", "api", "command")


@dataclass(frozen=True)
class Case:
    """A judge, the demo submission that it judges, its model's replies, and what has to come of it.

    ``verdicts`` are counts; ``n`` and ``agreed`` of the comparison, where human label 2 is left out.
    """

    scorer: str
    agent: str
    slug: str
    model: str
    rules: tuple[dict[str, Any], ...]
    verdicts: dict[int | None, int]
    n: int
    agreed: int


# Of Careful two trajectories are not executable by people; two checks are stricter than the people are.
NETWORK = Case("network-trace", "Careful", "demo", "", (), {1: 8, 0: 4}, 10, 8)
# Every claim is called true; one answer cites a page that was never kept, so that nothing can be said of it.
RUBRIC = Case("rubric", "Researcher", "demo-answers", "fake-model-1", (TRUE,), {1: 2, None: 1}, 2, 2)
# A click on the first element at every step does no task, and people say that all three were done.
ACTIONS = Case("action-selection", "Reference", "demo-actions", "fake-model-1", (CLICK,), {0: 3}, 3, 0)
CASES = [pytest.param(case, id=case.scorer) for case in (NETWORK, RUBRIC, ACTIONS)]


@pytest.fixture(scope="module")
def endpoint() -> Any:
    with fake_endpoint() as fake:
        yield fake


@pytest.fixture
def mira(tmp_path: Path, settings: Any) -> Client:
    settings.MEDIA_ROOT = tmp_path / "images"
    call_command("load_demo", "--anyway", stdout=io.StringIO())
    client = Client()
    client.force_login(Person.objects.get(username="mira"))
    return client


def submission_of(case: Case) -> Submission:
    return Submission.objects.get(agent__name=case.agent, benchmark__slug=case.slug, attempt=1)


# --- the three ways ------------------------------------------------------------------------------------------------


def posted(client: Client, address: str, page: str, **given: Any) -> None:
    """Fill in the form on ``page`` that leads to ``address``, as it stands but for what is given."""
    response = client.get(page)
    assert response.status_code == 200, response.content.decode()
    (form,) = [one for one in html.fromstring(response.content.decode()).forms if one.action == address]
    values = {name: value for name, value in form.fields.items() if value is not None} | given
    answer = client.post(address, values)
    assert answer.status_code == 302, " ".join(html.fromstring(answer.content.decode()).text_content().split())


def started_by_page(client: Client, case: Case, name: str) -> JudgeRun:
    submission = submission_of(case)
    model = {"model": case.model} if case.model else {}
    posted(client, reverse("create-judge"), f"{reverse('define-judge')}?scorer={case.scorer}", name=name, **model)
    judge = Judge.objects.get(name=name)
    answer = client.post(reverse("start-judge-run", args=[submission.pk]), {"judge": judge.pk, "repetitions": 1})
    assert answer.status_code == 302, answer.content.decode()
    return JudgeRun.objects.get(judge=judge)


def started_by_api(client: Client, case: Case, name: str) -> JudgeRun:
    given = {"name": name, "scorer": case.scorer, "model": case.model}
    answer = client.post(reverse("api-judges"), given, content_type="application/json")
    assert answer.status_code == 201, answer.content.decode()
    address = reverse("api-judge-runs", args=[submission_of(case).pk])
    answer = client.post(address, {"judge": name}, content_type="application/json")
    assert answer.status_code == 201, answer.content.decode()
    return JudgeRun.objects.get(pk=answer.json()["id"])


def by_page(client: Client, case: Case, name: str) -> None:
    worked(started_by_page(client, case, name))


def by_api(client: Client, case: Case, name: str) -> None:
    worked(started_by_api(client, case, name))


def by_command(client: Client, case: Case, name: str) -> None:
    model = ["--model", case.model] if case.model else []
    call_command("define_judge", name, "--scorer", case.scorer, *model, stdout=io.StringIO())
    out = io.StringIO()
    call_command("run_judge", name, "--submission", str(submission_of(case).pk), "--wait", stdout=out)
    assert "is finished" in out.getvalue()


RUN: dict[str, Callable[[Client, Case, str], None]] = {"page": by_page, "api": by_api, "command": by_command}


def counted(judgments: Any) -> dict[int | None, int]:
    said = list(judgments.values_list("verdict", flat=True))
    return {verdict: said.count(verdict) for verdict in said}


def check_page(case: Case, name: str, page: str) -> None:
    """The page of a comparison is of this judge, and counts the cases in which it agrees with people."""
    document = html.fromstring(page)
    (heading,) = document.xpath('//h2[@id="overall"]')
    assert heading.text_content().split()[:3] == [name, "and", "people"]
    first = " ".join(document.find_class("figures")[0].find("div").text_content().split())
    assert first.startswith("Agreement, not executable left out")
    assert f"({case.agreed}/{case.n})" in first


def check_figures(case: Case, found: dict[str, Any]) -> None:
    """The same as JSON of API and command."""
    row = next(row for row in found["overall"] if row["human_label_2"] == "excluded")
    assert (row["n"], row["unscored"]) == (case.n, case.verdicts.get(None, 0))
    assert row["agreement"] == pytest.approx(case.agreed / case.n)


# --- over the demo -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("case", CASES)
def test_each_runs_by_page_api_and_command_and_is_compared_with_people(
    case: Case, mira: Client, endpoint: Fake, settings: Any
) -> None:
    endpoint.reset()
    endpoint.says(*case.rules)
    settings.JUDGE_ENDPOINTS = {"default": endpoint.url} if case.model else {}
    submission = submission_of(case)
    for way in WAYS:
        RUN[way](mira, case, f"by-{way}")
        assert counted(Judgment.objects.filter(judge__name=f"by-{way}")) == case.verdicts, way
    # One judge under three names: the same calls, which were paid once.
    assert len(set(Judgment.objects.filter(judge__name__startswith="by-").values_list("fingerprint", flat=True))) == 1
    calls = endpoint.counts()["calls"]
    assert bool(calls) == bool(case.model)

    page = mira.get(reverse("comparison", args=[submission.pk]), {"judge": "by-page"})
    check_page(case, "by-page", page.content.decode())
    check_figures(case, mira.get(reverse("api-comparison", args=[submission.pk]), {"judge": "by-api"}).json())
    out = io.StringIO()
    call_command("compare", "--benchmark", case.slug, "--judge", "by-command", "--json", stdout=out)
    check_figures(case, json.loads(out.getvalue()))


def test_what_only_one_kind_says_is_on_the_page_of_its_judgment(mira: Client, endpoint: Fake, settings: Any) -> None:
    settings.JUDGE_ENDPOINTS = {"default": endpoint.url}
    shown = {}
    for case in (NETWORK, RUBRIC, ACTIONS):
        endpoint.reset()
        endpoint.says(*case.rules)
        by_command(mira, case, case.scorer)
        made = Judgment.objects.filter(judge__name=case.scorer).order_by("trajectory__position")
        assert {one.evidence["details"]["kind"] for one in made} == {case.scorer}
        shown[case.scorer] = [mira.get(reverse("judgment", args=[one.pk])).content.decode() for one in made]
    assert any("the filter Free shipping is applied" in page for page in shown["network-trace"])
    assert any("The answer says that Harbour House costs $456." in page for page in shown["rubric"])
    assert any("Wireless only" in page for page in shown["action-selection"])


def test_the_rubric_leaves_open_what_rests_on_a_page_that_nobody_kept(
    mira: Client, endpoint: Fake, settings: Any
) -> None:
    endpoint.reset()
    endpoint.says(TRUE)
    settings.JUDGE_ENDPOINTS = {"default": endpoint.url}
    by_command(mira, RUBRIC, "rubric")
    made = {one.task.external_id: one for one in Judgment.objects.filter(judge__name="rubric").select_related("task")}
    assert {made[each.task.task_id].verdict for each in (DOGS, TABLETS)} == {1}
    nights = made[NIGHTS.task.task_id]
    assert nights.verdict is None
    stored = {page["url"]: page["stored"] for page in nights.evidence["details"]["pages"]}
    assert stored["http://stay.example/prices"] == "missing"
    assert stored["http://stay.example/stays/harbour-house"] == "web"


def test_the_predictions_of_the_reference_are_counted_against_their_baseline(
    mira: Client, endpoint: Fake, settings: Any
) -> None:
    endpoint.reset()
    endpoint.says(CLICK)
    settings.JUDGE_ENDPOINTS = {"default": endpoint.url}
    by_command(mira, ACTIONS, "foresees")
    out = io.StringIO()
    submission = str(submission_of(ACTIONS).pk)
    call_command("predictions", "--submission", submission, "--judge", "foresees", "--json", stdout=out)
    overall = json.loads(out.getvalue())["overall"]
    # 10 of the 17 steps of the three tasks are clicks; who always clicks is as good as the baseline.
    assert (overall["steps"], overall["counted"], overall["tasks"]) == (17, 17, 3)
    assert overall["measures"]["option_selection"]["micro"]["value"] == overall["majority"]["value"] == 10 / 17
    page = mira.get(reverse("predictions", args=[submission])).content.decode()
    assert "58.8%" in page


# --- by the workers of this profile --------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def instance(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory, endpoint: Fake) -> Any:
    """With the demo, on SQLite and the broker of files, or on a PostgreSQL and a Redis of its own."""
    made = Instance(tmp_path_factory.mktemp("instance"), further={"JUDGE_ENDPOINTS": endpoint.url})
    if project.PRODUCTION:
        made.database_url = request.getfixturevalue("postgres").url
        made.redis_url = request.getfixturevalue("broker").url
    made.migrate()
    made.run("manage.py", "load_demo", "--anyway")
    return made


@pytest.fixture(scope="module")
def postgres() -> Any:
    with own_postgres() as server:
        yield server


@pytest.fixture(scope="module")
def broker() -> Any:
    with own_redis() as server:
        yield server


IN_THE_INSTANCE = "import config, django; django.setup(); from config.tests import test_three_judges as its; its.{}()"


def signed_in() -> Client:
    client = Client(SERVER_NAME="localhost")
    client.force_login(Person.objects.get(username="mira"))
    return client


def start_by_page_and_api() -> None:
    """Run in the instance, with its database and its broker."""
    call_command("collectstatic", interactive=False, verbosity=0)  # as the web service does first: pages name them
    client = signed_in()
    started_by_page(client, RUBRIC, "by-page")
    started_by_api(client, ACTIONS, "by-api")


def tell_comparisons() -> None:
    """Run in the instance: the page and the figures of each judge's comparison, as JSON."""
    client, told = signed_in(), {}
    for name, case in STARTED.items():
        pk, asked = submission_of(case).pk, {"judge": name}
        page = client.get(reverse("comparison", args=[pk]), asked).content.decode()
        told[name] = page, client.get(reverse("api-comparison", args=[pk]), asked).json()
    sys.stdout.write(json.dumps(told))


STARTED = {"by-command": NETWORK, "by-page": RUBRIC, "by-api": ACTIONS}


def test_a_worker_finishes_what_page_api_and_command_start_and_all_are_compared(
    instance: Instance, endpoint: Fake
) -> None:
    endpoint.reset()
    endpoint.says(CLICK, TRUE)  # the first that matches: what tells the model how to act speaks of claims as well
    verdicts = "SELECT j.verdict FROM judges_judgment j JOIN judges_judge b ON b.id = j.judge_id WHERE b.name = ?"
    assert len(instance.rows(verdicts, "demo-network")) == 24  # at first start, before there was a worker
    instance.run("manage.py", "define_judge", "by-command", "--scorer", NETWORK.scorer)
    found = instance.one(
        "SELECT s.id FROM annotation_submission s JOIN annotation_agent a ON a.id = s.agent_id"
        " JOIN annotation_benchmark b ON b.id = s.benchmark_id WHERE a.name = ? AND b.slug = ? AND s.attempt = 1",
        NETWORK.agent,
        NETWORK.slug,
    )
    instance.run("manage.py", "run_judge", "by-command", "--submission", str(found))
    instance.run("-c", IN_THE_INSTANCE.format(start_by_page_and_api.__name__))
    assert [instance.rows(verdicts, name) for name in STARTED] == [[], [], []]

    with instance.worker("judging", JUDGES):
        left = "SELECT COUNT(*) FROM judges_judgerun WHERE finished_at IS NULL"
        wait_until(lambda: instance.one(left) == 0, "all three runs are finished")
    told = json.loads(instance.run("-c", IN_THE_INSTANCE.format(tell_comparisons.__name__)))
    assert list(told) == list(STARTED)
    for name, case in STARTED.items():
        assert Counter(verdict for (verdict,) in instance.rows(verdicts, name)) == case.verdicts, name
        page, figures = told[name]
        check_page(case, name, page)
        check_figures(case, figures)
