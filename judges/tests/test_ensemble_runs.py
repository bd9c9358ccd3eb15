"""Ensembles from their definition to their judgments: which judgments count, and what stays."""

from __future__ import annotations

import io

import pytest
from django.core.management import call_command
from django.core.management.base import CommandError
from django.db import transaction
from django.test import Client
from django.urls import reverse

from annotation.models import Submission
from annotation.tests import testing
from annotation.workflow import Incomplete
from judges import attacking, defining, planning
from judges.models import Judge, Judgment
from judges.ready_judges import RunRefused
from judges.tests import rows, voting
from judges.tests.builders import started_run, worked
from judges.tests.pages import read_page

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def place(tmp_path):
    """A submission of two trajectories, and its maintainer."""
    submission = testing.submission(tmp_path, trajectories=2)
    return submission, testing.cast(submission)["mira"]


def members(*names):
    return [rows.judge_row(name, model=f"model-of-{name}") for name in names]


def run(place, judge):
    submission, mira = place
    made = started_run(mira, submission, judge)
    worked(made)
    return list(Judgment.objects.filter(item__run=made).order_by("trajectory__position"))


# --- definition ------------------------------------------------------------------------------------------------------


def refusals(**parameters):
    with pytest.raises(Incomplete) as refused:
        voting.ensemble(**parameters)
    return [(problem.where, problem.code, problem.message) for problem in refused.value.problems]


def test_members_are_stored_with_version_and_fingerprint():
    a, b = members("a", "b")
    judge = voting.ensemble("b, a@1=2", rule="weighted")
    assert judge.parameters["members"] == "b@1, a@1=2"
    assert judge.parameters["fingerprints"] == f"{b.fingerprint}, {a.fingerprint}"
    assert (judge.model, judge.asks_model) == ("", False)


def test_fingerprint_of_an_ensemble_covers_those_of_its_members():
    found = []
    for model in ("one-model", "another-model"):  # as on two instances
        with transaction.atomic():
            rows.judge_row("a", model=model)
            found.append(voting.ensemble("a@1").fingerprint)
            transaction.set_rollback(True)
    assert found[0] != found[1]


def test_given_fingerprints_must_be_those_of_the_members():
    (a,) = members("a")
    assert voting.ensemble("a", fingerprints=a.fingerprint).version == 1
    assert refusals(members="a", fingerprints="0" * 64) == [
        (
            "parameters.fingerprints",
            "fingerprints_differ",
            "These are not the fingerprints of the members. Leave this empty: it is filled in.",
        )
    ]


def test_judges_that_cannot_be_members_are_refused():
    members("a")
    voting.ensemble("a")
    rows.judge_row("actions", scorer="action-selection")
    rows.judge_row("new", frozen_at=None)
    Judge.objects.filter(name="together").update(frozen_at="2026-01-01T00:00Z")
    assert [says for _, _, says in refusals(members="together, actions, new, a")] == [
        "together@1 is an ensemble. Name its members instead.",
        "actions@1 judges the actions of its own model, so it has no verdict on an agent.",
        "new@1 has not judged yet, so it may still change. Run it first.",
    ]
    assert refusals(members="nobody, a@9") == [
        ("parameters.members", "member_unknown", "The judge nobody does not exist."),
        ("parameters.members", "member_unknown", "The judge a@9 does not exist."),
    ]
    assert refusals(members=" ") == [("parameters.members", "members_missing", "Name at least one judge.")]
    assert [says for _, _, says in refusals(members="a, a@1")] == ["a@1 is named twice. Give it a weight instead."]


def test_form_has_no_field_for_what_is_filled_in_and_shows_problems_at_the_members(place):
    client = Client()
    client.force_login(place[1])
    members("a")
    page = read_page(client.get(reverse("define-judge") + "?scorer=ensemble"))
    assert "parameter_members" in page
    assert "parameter_fingerprints" not in page
    given = {"scorer": "ensemble", "name": "together", "concurrency": 16, "parameter_rule": "majority"}
    given |= {"parameter_votes": "judge"}
    wrong = client.post(reverse("create-judge"), given | {"parameter_members": "nobody"})
    assert wrong.context["form"].errors == {"parameter_members": ["The judge nobody does not exist."]}
    assert client.post(reverse("create-judge"), given | {"parameter_members": "a"}).status_code == 302
    made = Judge.objects.get(name="together")
    again = client.post(reverse("change-judge", args=[made.pk]), given | {"parameter_members": "a@1"})
    assert again.status_code == 302
    assert Judge.objects.get(name="together").fingerprint == made.fingerprint


# --- votes -----------------------------------------------------------------------------------------------------------


def test_votes_of_the_members_are_combined_and_kept(place):
    a, b, c = members("a", "b", "c")
    said = [voting.judged(judge, place[0], *verdicts) for judge, verdicts in ((a, (1, 0)), (b, (1, 1)), (c, (0, None)))]
    first, second = run(place, voting.ensemble("a, b, c"))
    assert (first.verdict, second.verdict) == (1, None)
    assert second.unscored == (
        "The rule majority gives no verdict: 1 success, 1 failure and 1 without a verdict, of 3 votes."
    )
    assert first.explanation == "Majority: 2 success and 1 failure, of 3 votes."
    assert voting.votes_of(first) == [[(said[0][0].pk, 1)], [(said[1][0].pk, 1)], [(said[2][0].pk, 0)]]
    details = second.evidence["details"]
    assert details["members"][2] == {
        "judge": "c@1",
        "fingerprint": c.fingerprint,
        "weight": 1.0,
        "verdict": None,
        "unscored": "The model refused: no.",
        "votes": [
            {
                "repetition": 1,
                "run": said[2][1].item.run_id,
                "judgment": said[2][1].pk,
                "verdict": None,
                "unscored": "The model refused: no.",
                "cost": "0.25000000",
            }
        ],
    }
    assert (first.cost, first.tokens) == (0, None)


def test_newest_run_counts_and_tests_other_submissions_and_other_versions_do_not(place, tmp_path):
    submission, _ = place
    (a,) = members("a")
    voting.judged(a, submission, 1, 1)
    newest = voting.judged(a, submission, 0)  # of the first trajectory only
    voting.judged(a, submission, 1, 1, test=True)
    (tmp_path / "other").mkdir()
    voting.judged(a, testing.submission(tmp_path / "other", agent="Another Agent"), 1, 1)
    voting.judged(Judge.objects.create(name="a", version=2, scorer="webjudge"), submission, 1, 1)
    first, other = run(place, voting.ensemble("a@1"))
    assert voting.votes_of(first) == [[(newest[0].pk, 0)]]
    assert (first.verdict, other.verdict) == (0, 1)


def test_imported_judgments_count_if_there_is_no_run(place):
    trajectory = place[0].trajectories.earliest("position")
    made = rows.imported_row(trajectory, 1)
    first, second = run(place, voting.ensemble("elsewhere"))
    assert voting.votes_of(first) == [[(made.pk, 1)]]
    assert first.evidence["details"]["members"][0]["votes"][0]["run"] is None
    assert (second.verdict, second.unscored) == (
        None,
        "The rule majority gives no verdict: 1 without a verdict, of 1 vote.",
    )


def test_repetition_without_a_judgment_is_an_expected_vote(place):
    (a,) = members("a")
    voting.judged(a, place[0], 1, 1, 1, 0, repetitions=4)  # two repetitions of each trajectory are done
    first, second = run(place, voting.ensemble("a", votes="repetition"))
    assert (first.verdict, second.verdict) == (None, None)  # two of four, one of four
    assert [vote["unscored"] for vote in first.evidence["details"]["members"][0]["votes"]] == [
        "", "", "This repetition failed or has not ended.", "This repetition failed or has not ended."
    ]  # fmt: skip


def test_judgment_stays_when_a_member_judges_again_and_a_new_run_counts_the_new_votes(place):
    (a,) = members("a")
    voting.judged(a, place[0], 1, 1)
    judge = voting.ensemble("a")
    before = run(place, judge)
    voting.judged(a, place[0], 0, 0)
    after = run(place, judge)
    assert [one.verdict for one in after] == [0, 0]
    assert [Judgment.objects.get(pk=one.pk).verdict for one in before] == [1, 1]


# --- plans, the lab and the page -------------------------------------------------------------------------------------


def test_plan_costs_nothing_and_says_how_many_lack_a_vote(place):
    a, b = members("a", "b")
    voting.judged(a, place[0], 1, 1)
    voting.judged(b, place[0], 1)
    judge = voting.ensemble("a, b")
    planned = planning.plan(judge, place[0], {})
    assert (planned.cost, planned.calls, planned.lacking, planned.unscored) == (0, 0, 1, 0)
    out = io.StringIO()
    call_command("run_judge", "together", "--submission", str(place[0].pk), "--plan", stdout=out)
    assert "needs:    verdicts of all members: 1 of 2 have them; 1 lack them" in out.getvalue()
    client = Client()
    client.force_login(place[1])
    page = " ".join(
        read_page(
            client.post(reverse("plan-judge-run", args=[place[0].pk]), {"judge": judge.pk, "repetitions": 1})
        ).split()
    )
    assert "verdicts of all members: 1 of 2 trajectories has them" in page
    assert "1 trajectory does not have verdicts of all members." in page


def test_number_of_queries_of_a_plan_does_not_depend_on_the_trajectories(place, django_assert_num_queries):
    from judges.working.subjects import load_subjects

    a, b = members("a", "b")
    for judge in (a, b):
        voting.judged(judge, place[0], 1, 1)
    pks = list(place[0].trajectories.values_list("pk", flat=True))
    with django_assert_num_queries(6):
        assert [len(subject.votes) for _, subject in load_subjects(pks, [a, b])] == [2, 2]


def test_lab_does_not_attack_an_ensemble(place):
    members("a")
    Submission.objects.filter(pk=place[0].pk).update(frozen_at="2026-01-01T00:00Z")
    says = "is an ensemble: changed copies have no judgments to combine. Test its members."
    with pytest.raises(RunRefused, match=says):
        attacking.plan(voting.ensemble("a"), place[0], {}, [], 0)
    with pytest.raises(CommandError, match=says):
        call_command("judge_lab", "together", "--submission", str(place[0].pk))


def test_page_shows_every_vote_with_a_link(place):
    a, b = members("a", "b")
    said = voting.judged(a, place[0], 1, 1)
    voting.judged(b, place[0], None)
    made, _ = run(place, voting.ensemble("a=2, b", rule="weighted"))
    client = Client()
    client.force_login(place[1])
    page = " ".join(read_page(client.get(reverse("judgment", args=[made.pk]))).split())
    assert '<h2>Votes <span class="chip on">weighted</span></h2>' in page
    assert f'<a href="/judgments/{said[0].pk}"><span class="verdict v1">success</span>' in page
    assert "The model refused: no." in page
    assert "The members cost 0.5000 USD for this trajectory." in page


def test_judge_is_deleted_neither_before_nor_after_an_ensemble_names_it(place):
    (a,) = members("a")
    voting.ensemble("a")
    with pytest.raises(defining.Conflict):
        defining.delete(None, a)
