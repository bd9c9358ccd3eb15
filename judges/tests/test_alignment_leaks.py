"""No verdict or reason of a test task reaches the optimiser: everything that it reads and sends is searched."""

from __future__ import annotations

import asyncio
import io
import json
import logging
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from django.core.management import call_command
from django.db import connection
from django.test import Client
from django.urls import reverse

from annotation.models import Label, Submission
from annotation.records import Verdict
from config.tests.addresses import patterns
from evaluations.judge_alignment import disagreements, optimisers
from evaluations.judge_alignment.optimisers import Ask, Material, Rewriting
from judges.llm import Prompt
from judges.models import Alignment, AlignmentRun, Judge, Judgment, ModelCall, Part
from judges.tests.aligned import CANARY, LEARNS, TASKS, align, decided_submission, find_part, written_judge
from judges.tests.builders import Fake

pytestmark = pytest.mark.django_db(transaction=True)


async def read_in_thread(query: Callable[[], Any]) -> Any:
    def read() -> Any:
        try:
            return query()
        finally:
            connection.close()

    return await asyncio.to_thread(read)


class Leaking(Rewriting):
    """Reads reasons of test tasks from the database, as no optimiser may."""

    async def propose(self, material: Material, ask: Ask) -> str:

        reasons = await read_in_thread(lambda: list(Label.objects.values_list("reasoning", flat=True)))
        found = [reason for reason in reasons if CANARY in reason]
        prompt = optimisers.build_prompt(material)
        await ask(Prompt(prompt.system, ((str(prompt.messages[0][0]) + found[0],),)), optimisers.SCHEMA)
        return await super().propose(material, ask)


class Counting(Rewriting):
    """Tells the model a number that depends on verdicts of test tasks, without any of their texts."""

    async def propose(self, material: Material, ask: Ask) -> str:

        labels = Label.objects.filter(reasoning__contains=CANARY, verdict=Verdict.SUCCESS)
        number = await read_in_thread(labels.count)
        prompt = optimisers.build_prompt(material)
        await ask(Prompt(prompt.system, ((f"{number} {prompt.messages[0][0]}",),)), optimisers.SCHEMA)
        return await super().propose(material, ask)


@pytest.fixture
def learning(settings: Any, fake: Fake, caplog: pytest.LogCaptureFixture) -> Fake:
    settings.JUDGE_ENDPOINTS = {"default": fake.url}
    fake.says(*LEARNS, record=True)
    caplog.set_level(logging.DEBUG)
    written_judge()
    return fake


def exchange_test_verdicts() -> dict[str, Verdict]:
    """The opposite verdict for each test task."""
    tasks = [f"task_{number:04d}" for number in range(TASKS)]
    return {task: Verdict(number % 3 != 0) for number, task in enumerate(tasks) if find_part(task) is Part.TEST}


def collect_traces(fake: Fake, log: pytest.LogCaptureFixture) -> dict[str, str]:
    """Return all that the optimiser read and sent: requests, rows of calls outside of looks, texts of versions, log."""
    calls = ModelCall.objects.exclude(item__run__alignment_run__part=Part.TEST).order_by("pk")
    judged = Judgment.objects.exclude(item__run__alignment_run__part=Part.TEST)
    return {
        "requests": "\n".join(fake.counts()["bodies"]),
        "calls": json.dumps(list(calls.values_list("request", "reply", "error"))),
        "judgments": json.dumps(list(judged.values_list("explanation", "response", "unscored"))),
        "judges": json.dumps(list(Judge.objects.values_list("parameters", "description"))),
        "versions": json.dumps(list(Alignment.objects.values_list("versions__reason", "versions__figures", "stopped"))),
        "log": log.text,
    }


def find_leaks(traces: dict[str, str]) -> list[str]:
    return [name for name, text in traces.items() if CANARY in text]


def normalise(fake: Fake) -> list[str]:
    """The rewriting requests, which are what an optimiser sends."""
    return [body for body in fake.counts()["bodies"] if "You improve the criteria of a judge" in body]


def walk(mira: Client, alignment: Alignment) -> Iterator[tuple[str, str]]:
    """Every page and operation of alignments, and what it shows."""
    values = {"pk": alignment.pk, "number": 0, "slug": "bare"}
    seen = 0
    for route, name, pattern in patterns():
        if "alignments" not in route:
            continue
        given = {key: values[key] for key in pattern.pattern.converters}
        given |= {"slug": "bare"} if "<slug:slug>" in route else {}
        given |= {key: values[key] for key in ("pk", "number") if f"<int:{key}>" in route}
        address = reverse(name, kwargs=given)
        seen += 1
        yield f"GET {name}", mira.get(address).content.decode()
        tested = [row.pk for row in Judgment.objects.filter(item__run__alignment_run__part=Part.TEST)][:3]
        for further in ({}, {"judgments": tested, "right": "people", "criterion": "x", "text": "x"}):
            kind = {"content_type": "application/json"} if name.startswith("api-") else {}
            if "look" not in name and "start" not in name and name != "api-alignments":
                yield f"POST {name}", mira.post(address, further, **kind).content.decode()
    assert seen == 17


def test_no_canary_of_a_test_task_reaches_the_optimiser_or_its_pages(
    learning: Fake, caplog: pytest.LogCaptureFixture
) -> None:
    _, people = decided_submission()
    printed = json.dumps(align())
    traces = collect_traces(learning, caplog)
    assert find_leaks(traces) == []
    assert len(normalise(learning)) == 1
    assert CANARY not in printed

    looked = align("--look", "--rounds", "3")  # another alignment, which is tested at its end
    alignment = Alignment.objects.get(pk=looked["alignment"])
    assert AlignmentRun.objects.filter(part=Part.TEST).exists()
    mira = Client()
    mira.force_login(people["mira"])
    shown = dict(walk(mira, alignment))
    assert [name for name, text in shown.items() if CANARY in text] == []
    assert "carol decided" in shown["GET disagreements"]
    out = io.StringIO()
    call_command("align_judge", "careful", "--benchmark", "bare", "--rounds", "4", "--wait", stdout=out, stderr=out)
    assert CANARY not in out.getvalue()
    assert find_leaks({"rewrites": "\n".join(normalise(learning)), "log": caplog.text}) == []
    traces = collect_traces(learning, caplog) | {"requests": ""}  # the base judge was tested: its requests name tasks
    assert find_leaks(traces) == []


def test_marks_and_criteria_refuse_judgments_of_test_tasks(learning: Fake) -> None:
    _, people = decided_submission()
    found = align("--look")
    version = disagreements.find_version(Alignment.objects.get(pk=found["alignment"]), 0)
    tested = Judgment.objects.filter(item__run__alignment_run__part=Part.TEST).values_list("pk", flat=True)
    judges = Judge.objects.count()
    for act in (disagreements.mark, disagreements.add_criterion):
        with pytest.raises(Exception, match="Choose disagreements from the list"):
            act(people["mira"], version, list(tested)[:1], "people")
    assert Judge.objects.count() == judges


def run_in_two_worlds(fake: Fake) -> list[list[str]]:
    """The optimiser's requests in two worlds that differ only in the verdicts and reasons of test tasks."""
    sent = []
    for agent, verdicts in (("Agent", {}), ("Other Agent", exchange_test_verdicts())):
        submission, _ = decided_submission(agent, verdicts, note=agent)
        align(judge="careful")
        sent.append(normalise(fake))
        fake.reset()
        fake.says(*LEARNS, record=True)
        Submission.objects.filter(pk=submission.pk).update(frozen_at=None)  # its verdicts do not count in the next one
    return sent


def test_requests_of_the_optimiser_do_not_depend_on_test_verdicts(learning: Fake) -> None:
    first, second = run_in_two_worlds(learning)
    assert len(first) == 1
    assert first == second


@pytest.mark.parametrize("leaking", [Leaking, Counting])
def test_leaking_optimiser_is_caught(
    learning: Fake, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, leaking: type[Rewriting]
) -> None:
    monkeypatch.setitem(optimisers.OPTIMISERS, optimisers.PLAIN, leaking())
    if leaking is Leaking:
        decided_submission()
        align()
        assert {"requests", "calls"} <= set(find_leaks(collect_traces(learning, caplog)))
    else:
        first, second = run_in_two_worlds(learning)
        assert first != second
