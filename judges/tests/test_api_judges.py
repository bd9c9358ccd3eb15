"""The API of judges, terms and prompt sets."""

import json

import pytest
from django.test import Client

from annotation.models import ApiToken
from annotation.tests import testing
from judges import defining, prompt_sets
from judges.models import Judge, ModelTerms, PromptSet
from judges.prompts import list_names, load_builtin

NEW = {"name": "strict", "scorer": "webjudge", "model": "some-model"}


@pytest.fixture
def people(db, tmp_path, settings):
    settings.MEDIA_ROOT = tmp_path / "images"
    return testing.cast(testing.submission(tmp_path / "package", trajectories=1))


def api(person, method, path, body=None, **query):
    headers = {"Authorization": f"Bearer {ApiToken.issue(person, 'test', 'admin')[1]}"}
    send = getattr(Client(), method)
    if body is None:
        return send(f"/api/v1/{path}", query, headers=headers)
    return send(f"/api/v1/{path}", json.dumps(body), content_type="application/json", headers=headers)


@pytest.fixture
def mira(people):
    return lambda *args, **query: api(people["mira"], *args, **query)


def test_a_judge_is_defined_read_and_listed(mira):
    made = mira("post", "judges", NEW | {"parameters": {"threshold": 4}, "generation": {"seed": 7}})
    assert made.status_code == 201, made.json()
    judge = Judge.objects.get()
    assert made.json()["fingerprint"] == judge.fingerprint
    assert made.json()["parameters"]["threshold"] == 4
    assert mira("get", f"judges/{judge.pk}").json() == made.json()
    mira("post", "judges", NEW)
    assert [row["version"] for row in mira("get", "judges").json()["results"]] == [2, 1]
    assert [row["version"] for row in mira("get", "judges", newest="true").json()["results"]] == [2]
    assert mira("get", "judges", name="other").json()["count"] == 0
    assert mira("get", "judges", colour="red").status_code == 400


def test_what_is_wrong_with_a_judge_is_named_field_by_field(mira):
    refused = mira("post", "judges", NEW | {"name": "a b", "parameters": {"threshold": 9}})
    assert (refused.status_code, refused["Content-Type"]) == (400, "application/problem+json")
    assert {error["where"] for error in refused.json()["errors"]} == {"name", "parameters.threshold"}
    for body in ({}, {**NEW, "parameters": []}, {**NEW, "timeout": "long"}, {**NEW, "model": "a\x00b"}, [], "x"):
        assert mira("post", "judges", body).status_code == 400
    assert not Judge.objects.exists()


@pytest.mark.parametrize("body", ['{"a":' * 100_000, "[" * 100_000])
def test_a_body_that_is_nested_without_end_is_refused(people, body):
    headers = {"Authorization": f"Bearer {ApiToken.issue(people['mira'], 'test', 'admin')[1]}"}
    refused = Client().post("/api/v1/judges", body, content_type="application/json", headers=headers)
    assert (refused.status_code, refused["Content-Type"]) == (400, "application/problem+json")


@pytest.mark.parametrize("name", ["alice", "carol", "dave"])
def test_only_maintainers_may_ask(people, name):
    judge = defining.define(None, **NEW)
    for path in ("judges", f"judges/{judge.pk}", "model-terms", "prompt-sets", f"prompt-sets/{judge.prompts_digest}"):
        assert api(people[name], "get", path).status_code == 403
    for path, body in (("judges", NEW), ("model-terms", {"model": "m"}), ("prompt-sets", {"name": "x", "texts": {}})):
        assert api(people[name], "post", path, body).status_code == 403
    assert (Judge.objects.count(), ModelTerms.objects.count(), PromptSet.objects.count()) == (1, 0, 0)


def test_a_maintainer_of_a_submission_reads_and_changes_nothing(people):
    mira = people["mira"]
    mira.is_staff = False
    mira.save()
    texts = {"verdict.system": "Decide."}
    assert api(mira, "get", "judges").status_code == 200
    assert api(mira, "post", "judges", NEW).status_code == 403
    assert api(mira, "post", "model-terms", {"model": "m"}).status_code == 403
    assert api(mira, "post", "prompt-sets", {"name": "x", "texts": texts}).status_code == 403


def test_terms_are_set_and_replaced(mira):
    body = {"model": "m", "input_price": "0.5", "output_price": 2, "requests_per_minute": 60}
    assert mira("post", "model-terms", body).json()["endpoint"] == "default"
    again = mira("post", "model-terms", {"model": "m", "output_price": "3"})
    assert (again.status_code, again.json()["input_price"], ModelTerms.objects.count()) == (200, None, 1)
    assert mira("get", "model-terms").json()["results"] == [again.json()]
    for wrong in ({"input_price": -1}, {"requests_per_minute": 0}, {"output_price": "NaN"}, {"endpoint": "a b"}):
        assert mira("post", "model-terms", {"model": "m"} | wrong).status_code == 400
    assert ModelTerms.objects.get().output_price == 3


def test_prompt_sets_are_listed_kept_and_read(mira):
    listed = mira("get", "prompt-sets").json()
    assert {row["name"] for row in listed["results"]} == set(list_names())
    assert all("texts" not in row for row in listed["results"])
    ours = load_builtin("webjudge/1")
    assert mira("get", f"prompt-sets/{ours.digest}").json()["texts"] == dict(ours.texts)
    body = {
        "name": "mine",
        "texts": {"verdict.system": "Decide.\n", "verdict.user": "Task {task}"},
        "source": "by hand",
    }
    made, again = mira("post", "prompt-sets", body), mira("post", "prompt-sets", body)
    assert (made.status_code, again.status_code, PromptSet.objects.count()) == (201, 200, 1)
    assert made.json()["texts"]["verdict.system"] == "Decide.\n"
    assert made.json()["name"] == prompt_sets.build_full_name(PromptSet.objects.get())
    assert mira("get", "prompt-sets/nothing").status_code == 404


@pytest.mark.parametrize(
    "texts", [{}, {"verdict": "x"}, {"verdict.system": ""}, {"verdict.system": "a\x00"}, "x", None]
)
def test_texts_that_no_set_can_have_are_refused(mira, texts):
    assert mira("post", "prompt-sets", {"name": "mine", "texts": texts}).status_code == 400
    assert not PromptSet.objects.exists()
