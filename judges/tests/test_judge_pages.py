"""The pages of judges, prompt sets, prices and limits: who may open them, what they do, and what they never do."""

import io
import zipfile

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile
from django.test import Client
from django.urls import reverse
from django.utils import timezone

from annotation.models import Person, Submission
from annotation.tests import testing
from judges import defining, prompt_sets
from judges.models import Judge, JudgeRun, Judgment, ModelTerms, PromptSet, RunItem
from judges.prompts import load_builtin
from judges.ready_judges import prepare
from judges.scorer import REGISTRY
from judges.tests.pages import read_page
from judges.tests.test_prompt_source import EVALUATOR

HOSTILE = "<script>alert(1)</script>"


@pytest.fixture
def people(db, tmp_path, settings):
    settings.MEDIA_ROOT = tmp_path / "images"
    settings.JUDGE_ENDPOINTS = {}
    return testing.cast(testing.submission(tmp_path / "package", trajectories=2))


@pytest.fixture
def mira(people):
    client = Client()
    client.force_login(people["mira"])
    return client


@pytest.fixture
def maintainer(people):
    """Somebody who maintains a submission, and not the instance."""
    Person.objects.filter(username="mira").update(is_staff=False)
    client = Client()
    client.force_login(Person.objects.get(username="mira"))
    return client


def made(**fields):
    return defining.define(None, **({"name": "strict", "scorer": "webjudge", "model": "some-model"} | fields))


def text(response):
    return read_page(response)


def posted(client, page, /, *args, **data):
    return client.post(reverse(page, args=args), data)


def form_of(client, address):
    """What a browser would send from the form of a page, changed by nobody."""
    form = client.get(address).context["form"]
    values = {name: form[name].value() for name in form.fields}
    return {name: value for name, value in values.items() if value is not None and value is not False}


PAGES = ["judges", "define-judge", "prompt-sets", "model-terms"]


@pytest.mark.parametrize("name", ["alice", "carol", "dave"])
def test_only_maintainers_open_the_pages(people, name):
    client = Client()
    client.force_login(people[name])
    judge = made()
    addresses = [reverse(page) for page in PAGES]
    addresses += [reverse("judge", args=[judge.pk]), reverse("prompt-set", args=[judge.prompts_digest])]
    assert {client.get(address).status_code for address in addresses} == {403}
    for page, args in (
        ("create-judge", []), ("change-judge", [judge.pk]), ("delete-judge", [judge.pk]), ("test-judge", [judge.pk]),
        ("load-prompts", []), ("save-terms", []),
    ):  # fmt: skip
        response = posted(client, page, *args, name="x")
        assert response.status_code == 403, page
    assert (Judge.objects.count(), JudgeRun.objects.count()) == (1, 0)


def test_a_maintainer_of_a_submission_reads_everything_and_defines_nothing(maintainer):
    judge = made()
    terms = defining.set_terms(None, endpoint="default", model="some-model", input_price="1")
    for address in ("judges", "prompt-sets", "model-terms"):
        said = maintainer.get(reverse(address))
        assert said.status_code == 200
        assert 'method="post" action="/judges' not in text(said)
    assert maintainer.get(reverse("judge", args=[judge.pk])).status_code == 200
    assert maintainer.get(reverse("define-judge")).status_code == 403
    assert maintainer.get(reverse("edit-judge", args=[judge.pk])).status_code == 403
    for page, args in (("create-judge", []), ("change-judge", [judge.pk]), ("delete-judge", [judge.pk])):
        assert posted(maintainer, page, *args, scorer="webjudge", name="x", model="y").status_code == 403
    assert posted(maintainer, "save-terms", endpoint="default", model="other").status_code == 403
    assert posted(maintainer, "remove-terms", terms.pk).status_code == 403
    assert posted(maintainer, "load-prompts", name="x").status_code == 403
    assert (Judge.objects.count(), ModelTerms.objects.count(), PromptSet.objects.count()) == (1, 1, 0)


def test_without_an_endpoint_every_page_says_which_variable_is_missing(mira):
    judge = made()
    for address in (
        reverse("judges"), reverse("define-judge"), reverse("define-judge") + "?scorer=webjudge",
        reverse("judge", args=[judge.pk]), reverse("model-terms"),
    ):  # fmt: skip
        assert "JUDGE_ENDPOINTS" in text(mira.get(address))


# Where the optional package is not installed, nobody can define a judge that needs it: judges/tests/parity has that.
# An ensemble needs members.
@pytest.mark.parametrize("scorer", sorted(REGISTRY.keys() - {"webarena-verified", "ensemble"}))
def test_the_form_of_every_scorer_defines_a_judge_with_the_defaults_when_nothing_is_changed(mira, scorer):
    model = {"model": "some-model"} if REGISTRY[scorer].asks else {}
    values = form_of(mira, reverse("define-judge") + f"?scorer={scorer}")
    response = posted(mira, "create-judge", **values | {"scorer": scorer, "name": "plain"} | model)
    assert response.status_code == 302, response.context["form"].errors
    by_form = Judge.objects.get()
    by_verb = defining.define(None, name="plain", scorer=scorer, **model)
    assert by_form.parameters == by_verb.parameters
    assert by_form.fingerprint == by_verb.fingerprint
    assert mira.get(reverse("judge", args=[by_form.pk])).status_code == 200


def test_line_ends_of_a_browser_do_not_change_the_fingerprint(mira):
    values = form_of(mira, reverse("define-judge") + "?scorer=single-call") | {"scorer": "single-call", "model": "m"}
    posted(mira, "create-judge", **values | {"name": "a", "parameter_criteria": "One.\r\nTwo."})
    assert Judge.objects.get().parameters["criteria"] == "One.\nTwo."


def test_what_is_wrong_is_shown_at_its_field_and_what_was_typed_stays(mira):
    values = form_of(mira, reverse("define-judge") + "?scorer=webjudge")
    values |= {"scorer": "webjudge", "name": "strict", "model": "typed-model", "parameter_threshold": "9"}
    response = posted(mira, "create-judge", **values | {"generation_temperature": "7"})
    assert response.status_code == 400
    assert set(response.context["form"].errors) == {"parameter_threshold", "generation_temperature"}
    assert "typed-model" in text(response)
    assert '<details class="more" open>' in text(response)
    assert not Judge.objects.exists()


def test_unknown_scorers_and_judges_are_not_found(mira):
    assert mira.get(reverse("define-judge") + "?scorer=imported").status_code == 404
    assert mira.get(reverse("define-judge") + "?of=99").status_code == 404
    assert mira.get(reverse("define-judge") + "?of=999999999999999999999999").status_code == 404
    assert posted(mira, "create-judge", scorer="<b>").status_code == 404
    assert mira.get(reverse("judge", args=[99])).status_code == 404
    assert mira.get(reverse("prompt-set", args=["f" * 64])).status_code == 404
    assert mira.get(reverse("model-terms") + "?edit=99").status_code == 200


def test_an_unused_judge_is_changed_from_its_page_and_a_frozen_one_gets_a_new_version(mira):
    judge = made(parameters={"threshold": 4})
    values = form_of(mira, reverse("edit-judge", args=[judge.pk]))
    assert values["parameter_threshold"] == 4
    assert posted(mira, "change-judge", judge.pk, **values | {"model": "better"}).status_code == 302
    judge.refresh_from_db()
    assert (judge.model, judge.version, judge.parameters["threshold"]) == ("better", 1, 4)
    defining.freeze(judge)
    assert mira.get(reverse("edit-judge", args=[judge.pk])).status_code == 302
    assert posted(mira, "change-judge", judge.pk, **values).status_code == 409
    assert posted(mira, "delete-judge", judge.pk).status_code == 409
    page = text(mira.get(reverse("judge", args=[judge.pk])))
    assert "New version" in page
    assert ">Change<" not in page
    values = form_of(mira, reverse("define-judge") + f"?of={judge.pk}")
    assert values["parameter_threshold"] == 4
    assert posted(mira, "create-judge", **values | {"scorer": "webjudge"}).status_code == 302
    assert [row.version for row in Judge.objects.order_by("version")] == [1, 2]
    assert "1 older version" in text(mira.get(reverse("judges")))


def test_an_unused_judge_is_deleted_from_its_page(mira):
    assert posted(mira, "delete-judge", made().pk).status_code == 302
    assert not Judge.objects.exists()


def test_a_judge_shows_everything_that_it_is(mira):
    judge = made(description="For the board.", parameters={"threshold": 4})
    page = mira.get(reverse("judge", args=[judge.pk]))
    said = text(page)
    assert judge.fingerprint in said
    assert "For the board." in said
    assert set(dict(page.context["texts"])) == set(load_builtin("webjudge/1").texts)
    assert ("threshold", 4) in {(name, value) for name, value, _ in page.context["parameters"]}


def test_texts_of_models_and_prompts_are_inert(mira):
    prompt_sets.load(None, "plain", load_builtin("webjudge/1").texts | {"verdict.system": HOSTILE}, HOSTILE)
    judge = made(prompts="loaded/plain", model=HOSTILE, description=HOSTILE)
    defining.set_terms(None, endpoint="default", model=HOSTILE)
    for address in (
        reverse("judges"), reverse("judge", args=[judge.pk]), reverse("edit-judge", args=[judge.pk]),
        reverse("prompt-sets"), reverse("prompt-set", args=[judge.prompts_digest]), reverse("model-terms"),
    ):  # fmt: skip
        page = text(mira.get(address))
        assert HOSTILE not in page
        assert "&lt;script&gt;" in page


def test_a_judge_whose_scorer_is_gone_is_shown_with_the_reason(mira):
    judge = made()
    Judge.objects.update(scorer="older", scorer_version=7)
    assert "The scorer older does not exist" in text(mira.get(reverse("judge", args=[judge.pk])))
    assert mira.get(reverse("judges")).status_code == 200


def test_imported_judges_are_shown_and_never_run_or_changed(mira):
    judge = Judge.objects.create(name="elsewhere", scorer="imported", model="some-model", prompts="of theirs")
    page = text(mira.get(reverse("judge", args=[judge.pk])))
    assert "its judgments were imported" in page
    assert reverse("test-judge", args=[judge.pk]) not in page
    assert mira.get(reverse("judges")).status_code == 200
    assert mira.get(reverse("define-judge") + f"?of={judge.pk}").status_code == 404


# --- a test on one trajectory ----------------------------------------------------------------------------------------


@pytest.fixture
def configured(settings):
    settings.JUDGE_ENDPOINTS = {"default": "http://127.0.0.1:9/v1"}


def test_a_test_starts_a_run_of_one_trajectory_that_counts_nowhere(mira, people, configured):
    judge = made()
    submission = Submission.objects.get()
    address = reverse("judge", args=[judge.pk])
    assert "Test on one trajectory" in text(mira.get(address))
    response = posted(mira, "test-judge", judge.pk, submission=submission.pk, task_id="task_0001")
    run = JudgeRun.objects.get()
    assert (response.status_code, response["Location"]) == (302, reverse("judge-run", args=[run.pk]))
    assert (run.test, run.items.count()) == (True, 1)
    assert Judge.objects.get().frozen_at is not None
    assert f"run {run.pk}" in text(mira.get(address))
    group = mira.get(reverse("judges")).context["rows"][0]
    assert group[0][1:] == (0, None)  # no judgment, no last run


@pytest.mark.parametrize("task_id", ["task_9999", "", "x" * 300])
def test_a_test_of_an_unknown_task_is_refused_at_its_field(mira, configured, task_id):
    submission = Submission.objects.get()
    response = posted(mira, "test-judge", made().pk, submission=submission.pk, task_id=task_id)
    assert response.status_code == 400
    assert set(response.context["form"].errors) == {"task_id"}
    assert not JudgeRun.objects.exists()


def test_nobody_tests_on_a_submission_that_they_do_not_maintain(mira, people, configured):
    submission = testing.bare_submission(1)
    response = posted(mira, "test-judge", made().pk, submission=submission.pk, task_id="task_0000")
    assert response.status_code == 400
    assert set(response.context["form"].errors) == {"submission"}


def test_the_list_counts_only_what_the_person_maintains(mira, people, configured):
    judge = made()
    counted_judgment(judge, testing.bare_submission(1))
    assert mira.get(reverse("judges")).context["rows"][0][0][1] == 0
    own = people["mira"].memberships.get().submission
    counted_judgment(judge, own)
    assert mira.get(reverse("judges")).context["rows"][0][0][1] == 1


def counted_judgment(judge, submission):
    """A judgment of the first trajectory, made by a run here."""
    trajectory = submission.trajectories.select_related("task").first()
    run = JudgeRun.objects.create(judge=judge, submission=submission)
    item = RunItem.objects.create(run=run, trajectory=trajectory)
    return Judgment.objects.create(
        judge=judge, fingerprint=judge.fingerprint, item=item, task=trajectory.task, agent=submission.agent,
        trajectory=trajectory, verdict=1, made_at=timezone.now(),
    )  # fmt: skip


def test_the_pages_need_few_queries_however_many_judges_there_are(mira, django_assert_max_num_queries):
    for number in range(30):
        made(name=f"judge-{number}")
    with django_assert_max_num_queries(12):
        mira.get(reverse("judges"))


# --- prices and limits -----------------------------------------------------------------------------------------------


def test_prices_and_limits_are_kept_and_shown(mira):
    made(model="o-mini")
    assert "o-mini" in text(mira.get(reverse("model-terms")))
    values = {"endpoint": "default", "model": "o-mini", "input_price": "1.1", "output_price": "4.4"}
    assert posted(mira, "save-terms", **values | {"requests_per_minute": "500"}).status_code == 302
    page = text(mira.get(reverse("model-terms")))
    assert "4.4" in page
    assert "Models used by judges" not in page
    terms = ModelTerms.objects.get()
    assert form_of(mira, reverse("model-terms") + f"?edit={terms.pk}")["requests_per_minute"] == 500
    assert posted(mira, "save-terms", **values).status_code == 302
    terms.refresh_from_db()
    assert terms.requests_per_minute is None
    assert posted(mira, "remove-terms", terms.pk).status_code == 302
    assert not ModelTerms.objects.exists()
    assert posted(mira, "remove-terms", terms.pk).status_code == 404


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("input_price", "-1"), ("input_price", "cheap"), ("output_price", "NaN"), ("cached_price", "1e400"),
        ("requests_per_minute", "0"), ("tokens_per_minute", "99999999999999999999"), ("model", ""),
        ("endpoint", "http://x"),
    ],
)  # fmt: skip
def test_terms_that_no_model_has_are_refused_at_their_field(mira, field, value):
    response = posted(mira, "save-terms", **{"endpoint": "default", "model": "m"} | {field: value})
    assert response.status_code == 400
    assert set(response.context["form"].errors) == {field}
    assert not ModelTerms.objects.exists()


# --- prompt sets -----------------------------------------------------------------------------------------------------


def upload(client, *files, name="official", mapping=""):
    data = {"name": name, "mapping": mapping, "texts": [SimpleUploadedFile(*file) for file in files]}
    return client.post(reverse("load-prompts"), data)


def zipped(**files):
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w") as archive:
        for name, data in files.items():
            archive.writestr(f"set/{name}", data)
    return stream.getvalue()


def test_an_evaluator_is_loaded_and_a_judge_uses_its_texts(mira):
    response = upload(mira, ("evaluator.py", EVALUATOR.encode()))
    loaded = PromptSet.objects.get()
    assert response["Location"] == reverse("prompt-set", args=[loaded.digest])
    assert "Rate the picture." in text(mira.get(response["Location"]))
    again = upload(mira, ("evaluator.py", EVALUATOR.encode()))
    assert "Nothing was changed" in text(mira.get(again["Location"]))
    judge = made(prompts="loaded/official", parameters={"mode": "upstream"})
    assert prepare(judge).prompts.texts["verdict.system"].startswith("Decide.")
    assert "in use" in text(mira.get(reverse("prompt-sets")))


def test_several_files_and_a_zip_make_the_same_set(mira):
    files = {"verdict.system.md": "Decide.", "verdict.user.md": "Task {task}"}
    upload(mira, *((name, data.encode()) for name, data in files.items()), name="one")
    upload(mira, ("set.zip", zipped(**files)), name="two")
    assert len(set(PromptSet.objects.values_list("digest", flat=True))) == 1
    assert PromptSet.objects.count() == 2
    page = text(mira.get(reverse("prompt-set", args=[PromptSet.objects.first().digest])))
    assert "loaded/two@" in page
    assert "loaded/one@" in page


@pytest.mark.parametrize(
    ("files", "reason"),
    [
        ([("a.py", b"def f(:")], "line 1"),
        ([("a.py", b"x = 1")], "verdict.system"),
        ([("a.txt", b"hello")], "found a.txt"),
        ([("verdict.system.md", b"\xff\xfe")], "not UTF-8"),
        ([("verdict.system.md", b" ")], "empty"),
        ([("set.zip", b"no zip")], "zip"),
        ([("set.zip", zipped(readme="x"))], "Expected files"),
        ([("verdict.system.md", b"a\x00b")], "invalid character"),
        ([], "required"),
        ([("a.py", b"x" * (2**20 + 1))], "more than"),
        ([("a.md", b"x" * 5_000_000), ("b.md", b"x" * 5_000_000)], "more than"),
    ],
)
def test_files_without_prompts_are_refused_with_the_reason(mira, files, reason):
    response = upload(mira, *files)
    assert response.status_code == 400
    assert reason in text(response)
    assert not PromptSet.objects.exists()


def test_a_mapping_says_which_text_is_which(mira):
    source = ("a.py", b"ONE = 'Decide.'\nTWO = 'Task {task}'")
    assert upload(mira, source, mapping="verdict.system=ONE\nverdict.user=TWO").status_code == 302
    refused = upload(mira, source, mapping="verdict.system")
    assert set(refused.context["form"].errors) == {"mapping"}
