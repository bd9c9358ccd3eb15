"""Somebody who annotates one submission of a benchmark, and may keep its catalogue: it tells them nothing of others."""

import pytest
from django.urls import reverse

from annotation import catalogue, workflow
from annotation.models import Agent, KeyPoint, Person, Submission
from config.tests import test_independence as walking

pytestmark = pytest.mark.django_db
HAS_LABELS = "Some trajectories of this task are already labelled"
protocol = walking.protocol


def catalogue_pages(people, name, task):
    """What the pages of the benchmark and of the task say to a person, by address."""
    task_page = reverse("task", args=["shops", task.external_id])
    shops = reverse("benchmark", args=["shops"])
    answers = {page: walking.client_of(people, name).get(page) for page in (task_page, shops, f"{shops}?proposed=1")}
    assert {answer.status_code for answer in answers.values()} == {200}
    return {page: walking.RANDOM.sub("", walking.body(answer)) for page, answer in answers.items()}


@pytest.mark.parametrize("rights", ["maintains another submission", "is of the staff"])
def test_who_annotates_a_benchmark_learns_nothing_from_its_catalogue(protocol, rights):
    submission, people, rows = protocol
    if rights == "is of the staff":
        Person.objects.filter(pk=people["alice"].pk).update(is_staff=True)
    else:
        agent = Agent.objects.create(name="Other Agent")
        other = Submission.objects.create(benchmark=submission.benchmark, agent=agent, digest="other")
        workflow.join_as_maintainer(other, people["alice"])
    untouched, labelled = rows[3].task, rows[1].task
    proposal = {"proposed_by": people["bob"], "position": 9}
    before = catalogue_pages(people, "alice", untouched)
    workflow.submit(people["chen"], rows[3], walking.content("chen", rows[3], 1))
    KeyPoint.objects.create(task=untouched, text=walking.mark("bob", "proposal"), **proposal)
    declined = KeyPoint.objects.create(task=untouched, text=walking.mark("bob", "declined"), **proposal)
    catalogue.retire_key_point(declined)
    assert catalogue_pages(people, "alice", untouched) == before
    assert HAS_LABELS not in "".join(catalogue_pages(people, "alice", labelled).values())
    # All of this is shown to a maintainer who does not annotate.
    shown = catalogue_pages(people, "mira", untouched)
    told = (
        HAS_LABELS,
        walking.mark("bob", "proposal"),
        walking.mark("bob", "declined"),
    )
    assert [words for words in told if words not in "".join(shown.values())] == []
    assert untouched.external_id in shown["/benchmarks/shops?proposed=1"]


def test_an_own_proposal_is_counted_for_who_annotates(protocol):
    _, people, rows = protocol
    Person.objects.filter(pk=people["alice"].pk).update(is_staff=True)
    catalogue.propose_key_point(rows[3].task, "It is in stock.", people["alice"])
    pages = catalogue_pages(people, "alice", rows[3].task)
    assert rows[3].task.external_id in pages["/benchmarks/shops?proposed=1"]
    assert rows[0].task.external_id not in pages["/benchmarks/shops?proposed=1"]  # that one is bob's
