"""What a judge may be, and that it is never changed once it was used."""

from dataclasses import dataclass, field

import pytest
from django.core.exceptions import PermissionDenied
from django.db import transaction
from django.db.utils import DatabaseError

from annotation.tests import testing
from annotation.workflow import Conflict, Incomplete
from judges import defining, prompt_sets
from judges.models import Judge, ModelTerms, PromptSet
from judges.ready_judges import RunRefused, prepare
from judges.scorer import REGISTRY, Kind, ParameterError

pytestmark = pytest.mark.django_db


@dataclass(frozen=True)
class Sieve:
    """Parameters of the scorer of these tests."""

    threshold: int = field(default=3, metadata={"help": "Kept from here on."})
    words: str = ""

    def __post_init__(self):
        if not 1 <= self.threshold <= 5:
            raise ParameterError("threshold", "threshold must be from 1 to 5.")


class Built:
    def __init__(self, parameters, prompts):
        self.parameters, self.text = parameters, prompts.texts["verdict.system"]  # KeyError: a set that lacks it


@pytest.fixture
def sieve(monkeypatch):
    kind = Kind("sieve", 1, "Sieve", "For tests.", Sieve, "loaded/plain", Built, lambda parameters, subject: [])
    monkeypatch.setitem(REGISTRY, "sieve", kind)
    prompt_sets.load(None, "plain", {"verdict.system": "Judge {task}."}, "a test")
    return kind


def test_kind_that_asks_a_model_is_refused_without_its_calls():
    with pytest.raises(ValueError, match="must state its calls"):
        Kind("sieve", 1, "Sieve", "For tests.", Sieve, "loaded/plain", Built)


@pytest.fixture
def mira():
    return testing.person("mira", is_staff=True)


def made(person=None, **fields):
    return defining.define(person, **({"name": "strict", "scorer": "sieve", "model": "some-model"} | fields))


def problems(**fields):
    with pytest.raises(Incomplete) as refused:
        made(**fields)
    return {problem.where for problem in refused.value.problems}


def test_a_judge_keeps_every_parameter_so_that_a_later_default_changes_nothing(sieve, mira):
    judge = made(mira, parameters={"threshold": "4"}, generation={"temperature": "0.5"})
    assert judge.parameters == {"threshold": 4, "words": ""}
    assert judge.generation["temperature"] == 0.5
    assert set(judge.generation) >= {"max_tokens", "seed", "dialect", "output"}
    assert (judge.version, judge.scorer_version, judge.created_by, judge.frozen_at) == (1, 1, mira, None)
    assert judge.prompts.startswith("loaded/plain@")


def test_a_name_that_exists_makes_the_next_version(sieve):
    assert [made().version, made(model="other-model").version, made(name="mild").version] == [1, 2, 1]
    assert defining.find_judge("strict").version == 2
    assert defining.find_judge("strict@1").model == "some-model"


def test_a_judge_is_built_from_its_row_alone(sieve):
    ready = prepare(made(parameters={"threshold": 5}))
    kind, parameters, scorer = ready.kind, ready.parameters, ready.scorer
    assert (kind, parameters, scorer.text) == (sieve, Sieve(threshold=5), "Judge {task}.")


@pytest.mark.parametrize("name", ["nobody", "strict@3", "strict@x", "strict@99999999999999999999", "", "@"])
def test_an_unknown_judge_is_named_with_the_known_ones(sieve, name):
    made()
    with pytest.raises(LookupError, match="Known: strict"):
        defining.find_judge(name)


@pytest.mark.parametrize(
    ("fields", "where"),
    [
        ({"name": "two words"}, "name"),
        ({"name": ""}, "name"),
        ({"name": "x" * 65}, "name"),
        ({"scorer": "magic"}, "scorer"),
        ({"scorer": "imported"}, "scorer"),
        ({"model": "  "}, "model"),
        ({"model": "a\x00b"}, "model"),
        ({"model": "m" * 201}, "model"),
        ({"endpoint": "http://x"}, "endpoint"),
        ({"endpoint": ""}, "endpoint"),
        ({"prompts": "loaded/none"}, "prompts"),
        ({"prompts": "none/1"}, "prompts"),
        ({"description": "two\nlines"}, "description"),
        ({"parameters": {"threshold": 9}}, "parameters.threshold"),
        ({"parameters": {"threshold": "three"}}, "parameters.threshold"),
        ({"parameters": {"colour": "red"}}, "parameters.colour"),
        ({"parameters": {"words": "\ud800"}}, "parameters.words"),
        ({"parameters": ["threshold"]}, "parameters"),
        ({"generation": {"temperature": "nan"}}, "generation.temperature"),
        ({"generation": {"temperature": 3}}, "generation.temperature"),
        ({"generation": {"max_tokens": -1}}, "generation.max_tokens"),
        ({"generation": {"output": "song"}}, "generation.output"),
        ({"concurrency": 0}, "concurrency"),
        ({"concurrency": True}, "concurrency"),
        ({"timeout": float("nan")}, "timeout"),
        ({"attempts": 21}, "attempts"),
    ],
)
def test_what_is_wrong_is_refused_by_the_name_of_its_field(sieve, fields, where):
    assert problems(**fields) == {where}
    assert not Judge.objects.exists()


def test_everything_that_is_wrong_is_said_at_once(sieve):
    assert problems(name="a b", model="", parameters={"threshold": 9}) == {"name", "model", "parameters.threshold"}


def test_a_prompt_set_that_lacks_a_text_is_refused_when_the_judge_is_defined(sieve):
    prompt_sets.load(None, "other", {"hello.system": "Hello."})
    assert problems(prompts="loaded/other") == {"prompts"}


def test_outsiders_define_and_load_nothing(sieve):
    dave = testing.person("dave")
    judge = made()
    for refused in (
        lambda: made(dave),
        lambda: defining.change(dave, judge, model="x"),
        lambda: defining.delete(dave, judge),
        lambda: defining.set_terms(dave, endpoint="default", model="m"),
        lambda: prompt_sets.load(dave, "x", {"verdict.system": "x"}),
    ):
        with pytest.raises(PermissionDenied):
            refused()
    assert (Judge.objects.count(), PromptSet.objects.count(), ModelTerms.objects.count()) == (1, 1, 0)


def test_an_unused_judge_is_changed_and_deleted(sieve, mira):
    judge = made(parameters={"threshold": 4}, timeout=30.0)
    before = judge.fingerprint
    changed = defining.change(mira, judge, model="better-model", name="ignored")
    assert (changed.model, changed.name, changed.parameters["threshold"]) == ("better-model", "strict", 4)
    assert (changed.timeout, changed.version) == (30.0, 1)
    assert changed.fingerprint != before
    defining.delete(mira, changed)
    assert not Judge.objects.exists()


def test_a_frozen_judge_is_neither_changed_nor_deleted(sieve, mira):
    judge = made()
    defining.freeze(judge)
    first = judge.frozen_at
    assert first is not None
    defining.freeze(judge)
    assert judge.frozen_at == first
    for verb in (lambda: defining.change(mira, judge, model="x"), lambda: defining.delete(mira, judge)):
        with pytest.raises(Conflict, match="new version"):
            verb()
    with pytest.raises(DatabaseError), transaction.atomic():
        Judge.objects.filter(pk=judge.pk).update(model="x")
    assert Judge.objects.get().model == "some-model"


def test_freezing_takes_what_is_stored_and_not_what_was_read_before(sieve, mira):
    judge = made()
    defining.change(mira, Judge.objects.get(), model="better-model")
    defining.freeze(judge)
    assert judge.model == "better-model"


def test_freezing_a_deleted_judge_is_a_conflict(sieve, mira):
    judge = made()
    defining.delete(mira, Judge.objects.get())
    with pytest.raises(Conflict, match="deleted"):
        defining.freeze(judge)


def test_two_people_who_make_the_same_version_are_settled_by_the_database(sieve, monkeypatch):
    """The second one has looked before the first wrote: simulated by a newest version that nobody sees."""
    made()
    create = Judge.objects.create

    def late(**fields):
        return create(**fields | {"version": 1})

    monkeypatch.setattr(Judge.objects, "create", late)
    with pytest.raises(Conflict, match="Another person"):
        made()
    assert Judge.objects.count() == 1


def test_a_scorer_that_has_changed_does_not_judge_under_an_old_name(sieve, monkeypatch):
    judge = made()
    monkeypatch.setitem(REGISTRY, "sieve", Kind("sieve", 2, "", "", Sieve, "", Built, lambda p, s: []))
    with pytest.raises(RunRefused, match="new version"):
        prepare(judge)


def test_a_judge_of_judgments_made_elsewhere_cannot_judge(sieve):
    judge = Judge.objects.create(name="old", scorer="imported")
    with pytest.raises(RunRefused, match="imported"):
        prepare(judge)
    with pytest.raises(Conflict):
        defining.change(None, judge, model="x")


def test_prompts_that_are_not_those_of_the_definition_are_noticed(sieve):
    judge = made()
    Judge.objects.update(prompts_digest="0" * 64)
    judge.refresh_from_db()
    with pytest.raises(RunRefused, match="have changed"):
        prepare(judge)


# --- prompt sets -----------------------------------------------------------------------------------------------------


def test_the_same_texts_again_change_nothing(sieve):
    first, new = prompt_sets.load(None, "mine", {"verdict.system": "One."}, "a")
    again, newer = prompt_sets.load(None, "mine", {"verdict.system": "One."}, "b")
    assert (new, newer, first.pk, again.source) == (True, False, again.pk, "a")


def test_a_loaded_set_is_found_by_name_and_by_digest(sieve):
    old, _ = prompt_sets.load(None, "mine", {"verdict.system": "One."})
    new, _ = prompt_sets.load(None, "mine", {"verdict.system": "Two."})
    assert prompt_sets.find_prompts("loaded/mine").digest == new.digest
    assert prompt_sets.find_prompts(f"loaded/mine@{old.digest[:8]}").digest == old.digest
    assert {f"loaded/mine@{one.digest[:8]}" for one in (old, new)} <= set(prompt_sets.list_names())
    for unknown in ("loaded/none", "loaded/mine@00000000", f"loaded/mine@{old.digest[:3]}", "loaded/", "", "../etc"):
        with pytest.raises(LookupError):
            prompt_sets.find_prompts(unknown)


@pytest.mark.parametrize(
    "texts",
    [
        {},
        {"verdict": "x"},
        {"../x.system": "x"},
        {"verdict.system": " "},
        {"verdict.system": "a\x00b"},
        {"verdict.system": "\ud800"},
        {"verdict.system": "x" * 100_001},
        {f"stage{n}.system": "x" for n in range(65)},
    ],
)
def test_texts_that_no_set_can_have_are_refused(texts):
    with pytest.raises(Incomplete):
        prompt_sets.load(None, "mine", texts)
    assert not PromptSet.objects.exists()


# --- terms -----------------------------------------------------------------------------------------------------------


def test_terms_are_kept_once_a_model_and_changed_in_place(mira):
    defining.set_terms(mira, endpoint="default", model=" some-model ", input_price="0.15")
    terms = defining.set_terms(mira, endpoint="default", model="some-model", requests_per_minute=5)
    terms.refresh_from_db()
    assert (ModelTerms.objects.count(), terms.input_price, terms.requests_per_minute) == (1, None, 5)
    assert terms.changed_by == mira
    defining.remove_terms(mira, terms)
    assert not ModelTerms.objects.exists()


@pytest.mark.parametrize(
    ("fields", "where"),
    [
        ({"input_price": "-1"}, "input_price"),
        ({"input_price": "NaN"}, "input_price"),
        ({"output_price": "1e30"}, "output_price"),
        ({"requests_per_minute": 0}, "requests_per_minute"),
        ({"tokens_per_minute": -5}, "tokens_per_minute"),
        ({"model": ""}, "model"),
        ({"endpoint": "a b"}, "endpoint"),
    ],
)
def test_terms_that_no_model_has_are_refused(mira, fields, where):
    with pytest.raises(Incomplete) as refused:
        defining.set_terms(mira, **({"endpoint": "default", "model": "m"} | fields))
    assert where in {problem.where for problem in refused.value.problems}
    assert not ModelTerms.objects.exists()


@pytest.mark.parametrize(
    ("generation", "message"),
    [
        ({"extra_body": "flex"}, 'extra_body must be a JSON object, such as {"service_tier": "flex"}.'),
        ({"extra_body": "[1]"}, 'extra_body must be a JSON object, such as {"service_tier": "flex"}.'),
        ({"extra_body": '{"a": 1, "a": 2}'}, 'extra_body must be a JSON object, such as {"service_tier": "flex"}.'),
        ({"extra_body": '{"model": "other", "n": 2}'}, "extra_body must not set model, n."),
        ({"top_p": 1.5}, "top_p must be between 0 and 1."),
        ({"temperature": -0.5}, "temperature must be between 0 and 2."),
    ],
)
def test_generation_that_cannot_be_sent_is_refused(sieve, generation, message):
    with pytest.raises(Incomplete) as refused:
        made(generation=generation)
    (problem,) = refused.value.problems
    assert (problem.where, problem.message) == (f"generation.{next(iter(generation))}", message)


def test_settings_that_came_later_leave_the_fingerprint_of_earlier_judges(sieve):
    assert "extra_body" not in made().generation
    chosen = made(generation={"temperature": -1, "top_p": 0.9, "extra_body": '{"service_tier": "flex"}'})
    further = {"temperature": -1.0, "top_p": 0.9, "extra_body": '{"service_tier": "flex"}'}
    assert chosen.generation == made().generation | further
    assert chosen.fingerprint != made().fingerprint


def test_parameters_that_came_later_leave_the_fingerprint_of_earlier_judges():
    usual = {"mode": "default", "threshold": 3, "max_images": 50, "key_points": "model", "drop_last": "auto"}
    assert made(scorer="webjudge-general").parameters == usual
    chosen = made(scorer="webjudge-general", parameters={"image_replies": "webjudge-7b"})
    assert chosen.parameters == usual | {"image_replies": "webjudge-7b"}
