"""Several attempts of an agent: which tasks count, who speaks, who sees it, and nothing of what is not frozen."""

from __future__ import annotations

import io
import json
from pathlib import Path
from typing import Any

import pytest
from django.core.management import call_command
from django.utils import timezone

from annotation import ingest, workflow
from annotation.models import Person, Submission
from annotation.models.states import State
from annotation.records import Verdict
from annotation.tests import testing
from annotation.tests.test_api_submissions import get as api
from evaluations.cases import Case
from evaluations.comparison import Attempts, Judged, attempts
from evaluations.tests import hand_made
from evaluations.tests.test_comparison_pages import csv_rows, get, number, page, text
from judges.models import Judge, Judgment
from judges.tests import rows

People = dict[str, Person]


def attempt(which: int, finals: dict[int, int | None], agent: str = "X", **fields: Any) -> list[Case]:
    """The cases of a frozen submission; an undecided one has the final verdict None."""
    base = {"submission": which, "attempt": which, "state": State.UNANIMOUS} | fields
    return [hand_made.case(n, final, agent, trajectory=100 * which + n, **base) for n, final in finals.items()]


def by_people(*own: list[Case]) -> list[Attempts]:
    return attempts([case for each in own for case in each])


def said(judge: Judge, *own: dict[int, Judged]) -> dict[int, dict[Any, Judged]]:
    """By attempt and task, as `attempt` numbers the trajectories."""
    return {judge.pk: {100 * which + n: told for which, each in enumerate(own, 1) for n, told in each.items()}}


# --- which tasks count -----------------------------------------------------------------------------------------------


def test_people_decide_each_attempt_and_all_together() -> None:
    (found,) = by_people(attempt(1, {0: 1, 1: 0, 2: 2, 3: 1}), attempt(2, {0: 0, 1: 0, 2: 1, 3: 1}))
    assert (found.agent, found.by, found.judged, found.numbers) == ("X", "people", False, (1, 2))
    assert (found.tasks, found.not_in_all, found.without_verdict) == (4, 0, 0)
    assert [each.value for each in found.success.each] == [0.5, 0.5]  # label 2 is no success
    assert (found.success.mean.value, found.success.deviation.value) == (0.5, 0.0)
    assert (found.pass_at_k.hits, found.pass_at_k.n) == (3, 4)  # tasks 0, 2 and 3
    assert (found.pass_hat_k.hits, found.pass_hat_k.n) == (1, 4)  # task 3
    assert [(of.k, of.pass_at_k.value, of.pass_hat_k.value) for of in found.by_k] == [(1, 0.5, 0.5), (2, 0.75, 0.25)]
    assert (found.mean_score.mean.value, found.mean_score.mean.undefined) == (None, "no scores")


def test_only_tasks_of_every_attempt_count_and_the_others_are_told() -> None:
    (found,) = by_people(attempt(1, {0: 1, 1: 0, 2: 1}), attempt(2, {0: 0, 1: 0, 3: 1, 4: 1}))
    assert (found.tasks, found.not_in_all, found.without_verdict) == (2, 3, 0)
    assert [each.hits for each in found.success.each] == [1, 0]
    assert (found.success.mean.value, found.success.deviation.value) == (0.25, 0.25)
    assert (found.pass_at_k.hits, found.pass_at_k.n) == (1, 2)


def test_a_task_that_is_undecided_in_one_attempt_is_no_failure() -> None:
    (found,) = by_people(attempt(1, {0: 1, 1: None}), attempt(2, {0: 1, 1: 0}))
    assert (found.tasks, found.not_in_all, found.without_verdict) == (1, 0, 1)
    assert (found.success.mean.value, found.pass_at_k.value) == (1.0, 1.0)


def test_attempts_without_a_common_task_have_no_figures() -> None:
    (found,) = by_people(attempt(1, {0: 1}), attempt(2, {1: 1}))
    assert (found.tasks, found.not_in_all) == (0, 2)
    assert (found.pass_at_k.value, found.success.mean.value, found.success.deviation.value) == (None, None, None)


def test_an_attempt_without_a_verdict_is_none_of_the_k() -> None:
    (found,) = by_people(attempt(1, {0: 1, 1: 0}), attempt(2, {0: None, 5: None}), attempt(3, {0: 0, 1: 0}))
    assert (found.numbers, found.tasks, found.success.mean.value) == ((1, 3), 2, 0.25)
    assert (found.not_in_all, found.without_verdict) == (0, 0)  # what only that attempt has is not asked for
    assert by_people(attempt(1, {0: 1}), attempt(2, {0: None})) == []


def test_an_agent_with_one_attempt_has_no_figures_over_attempts() -> None:
    assert by_people(attempt(1, {0: 1}, "X"), attempt(2, {0: 1}, "Y")) == []
    assert by_people() == []


def test_labels_made_elsewhere_are_no_attempt() -> None:
    elsewhere = [hand_made.case(0, 1), hand_made.case(1, 1, submission=2, trajectory=201)]  # one put on a trajectory
    assert by_people(elsewhere, attempt(2, {0: 1, 1: 0})) == []


def test_two_versions_of_a_task_in_one_attempt_are_set_beside_nothing() -> None:
    twice = [*attempt(1, {0: 1, 1: 1}), hand_made.case(0, 0, trajectory=199, submission=1, state=State.UNANIMOUS)]
    (found,) = by_people(twice, attempt(2, {0: 0, 1: 0}))
    assert (found.tasks, found.not_in_all) == (1, 1)


def test_agents_are_not_mixed() -> None:
    found = by_people(*(attempt(n, {0: good}, agent) for agent, good in (("Y", 1), ("X", 0)) for n in (1, 2)))
    assert [(each.agent, each.pass_at_k.value) for each in found] == [("X", 0.0), ("Y", 1.0)]


# --- judges ----------------------------------------------------------------------------------------------------------


def test_a_judge_has_scores_and_what_it_left_unscored_is_no_failure(db: Any) -> None:
    judge = rows.judge_row("strict")
    told = hand_made.told
    first = {0: told(1, score=1.0), 1: told(0, score=0.4), 2: told(None), 3: told(1, score=0.9)}
    second = {0: told(0, score=0.2), 1: told(0, score=0.6), 2: told(1, score=1.0), 3: told(1)}  # one without a score
    cases = attempt(1, dict.fromkeys(range(4), 0)) + attempt(2, dict.fromkeys(range(4), 0))
    people, found = attempts(cases, [judge], said=said(judge, first, second))
    assert (people.by, people.pass_at_k.value) == ("people", 0.0)
    assert (found.by, found.judged, found.tasks, found.without_verdict) == ("strict", True, 3, 1)
    assert [each.hits for each in found.success.each] == [2, 1]
    assert found.success.mean.value == pytest.approx(0.5)
    assert found.success.deviation.value == pytest.approx(1 / 6)
    assert found.pass_at_k.value == pytest.approx(2 / 3)
    assert [(each.value, each.n) for each in found.mean_score.each] == [(0.7, 2), (0.4, 2)]  # tasks 0 and 1
    assert found.mean_score.mean.value == pytest.approx(0.55)
    assert found.mean_score.deviation.value == pytest.approx(0.15)


def test_a_judge_that_scored_one_attempt_alone_has_no_figures(db: Any) -> None:
    judge = rows.judge_row("strict")
    cases = attempt(1, {0: 1}) + attempt(2, {0: 1})
    one = said(judge, {0: hand_made.told(1)}, {0: hand_made.told(None)})
    assert [each.by for each in attempts(cases, [judge], said=one)] == ["people"]


# --- the page --------------------------------------------------------------------------------------------------------


def second(first: Submission, folder: Path) -> Submission:
    """The next attempt of the agent of ``first``, open, with the same people in the same roles."""
    package = testing.write_submission(folder / "again", 2, steps=4)
    _, made = ingest.import_submission(package, benchmark=first.benchmark, agent_name=first.agent.name)
    assert made is not None
    testing.cast(made)
    return made


@pytest.fixture
def again(frozen: Submission, tmp_path: Path) -> Submission:
    """An open second attempt; the first one is frozen, with two successes."""
    return second(frozen, tmp_path)


def finish_with_failures(people: People, submission: Submission, *, freeze: bool = True) -> None:
    testing.label_all(people, submission, {"task_0000": [0, 0, 0], "task_0001": [0, 0, 0]})
    workflow.draw_spot_checks(people["mira"], submission)
    testing.adjudicate_all(people["carol"], submission, Verdict.FAILURE)
    if freeze:
        workflow.freeze(people["mira"], submission)


def judged_both(first: Submission, again: Submission) -> Judge:
    """Each attempt succeeds at another task."""
    judge = rows.judge_row("strict")
    for submission, verdicts in ((first, (0, 1)), (again, (1, 0))):
        run = rows.run_row(submission, judge)
        for item, verdict in zip(run.items.order_by("pk"), verdicts, strict=True):
            rows.judgment_row(item, verdict, score=0.75 if verdict else 0.25)
    return judge


def shown(person: Person, **query: str) -> list[dict[str, str]]:
    return csv_rows(get(person, page("agents", "shops"), csv="over-attempts", **query))


def test_the_page_and_its_file_have_a_row_of_every_attempt_and_one_of_all(
    frozen: Submission, again: Submission, people: People
) -> None:
    finish_with_failures(people, again)
    judged_both(frozen, again)
    found = shown(people["mira"])
    assert [(row["by"], row["judged"], row["attempt"]) for row in found] == [
        (by, judged, which) for by, judged in (("people", ""), ("strict", "judged")) for which in ("1", "2", "all")
    ]
    assert {(row["agent"], row["k"], row["tasks"], row["without_a_verdict"]) for row in found} == {
        ("Careful Agent", "2", "2", "0")
    }
    one, two, people_all, *_, judged_all = found
    assert [number(row["success"]) for row in (one, two, people_all, judged_all)] == [1, 0, 0.5, 0.5]
    assert [number(row["deviation_of_success"]) for row in (people_all, judged_all)] == [0.5, 0]
    assert [number(row["pass_k"]) for row in (people_all, judged_all)] == [1, 1]
    assert (people_all["mean_score"], people_all["mean_score_undefined"]) == ("", "no scores")
    assert (number(judged_all["mean_score"]), number(judged_all["deviation_of_the_score"])) == (0.5, 0)
    assert (one["pass_k"], one["deviation_of_success"]) == ("", "")
    page_text = text(get(people["mira"], page("agents", "shops")))
    assert "Over attempts CSV of Over attempts" in page_text
    assert "Careful Agent people all 2 2 50.0% n 2 50.0 n 2 undefined: no scores" in page_text


def test_command_and_api_say_what_the_page_says(frozen: Submission, again: Submission, people: People) -> None:
    finish_with_failures(people, again)
    judged_both(frozen, again)
    out = io.StringIO()
    call_command("compare", "--benchmark", "shops", "--json", stdout=out)
    told = json.loads(out.getvalue())["attempts"]
    for what in ("judges", "agents"):
        assert api(people["mira"], f"/benchmarks/shops/{what}").json()["attempts"] == told
    assert [(each["by"], each["judged"], each["tasks"]) for each in told] == [("people", False, 2), ("strict", True, 2)]
    rows_of_all = [row for row in shown(people["mira"]) if row["attempt"] == "all"]
    for each, row in zip(told, rows_of_all, strict=True):
        assert [one["attempt"] for one in each["attempts"]] == [1, 2]
        assert each["success"]["mean"]["value"] == number(row["success"])
        assert each["success"]["deviation"]["value"] == number(row["deviation_of_success"])
        assert each["mean_score"]["mean"]["value"] == number(row["mean_score"])
        assert each["pass_at_k"]["value"] == number(row["pass_k"])
    out = io.StringIO()
    call_command("compare", "--benchmark", "shops", stdout=out)
    assert "Over attempts" in out.getvalue()


def test_filters_narrow_the_attempts(frozen: Submission, again: Submission, people: People) -> None:
    finish_with_failures(people, again)
    website = frozen.trajectories.earliest("position").task.website
    assert {row["tasks"] for row in shown(people["mira"], website=website)} == {
        str(frozen.trajectories.filter(task__website=website).count())
    }


def test_one_attempt_has_no_table(frozen: Submission, people: People) -> None:
    assert "Over attempts" not in text(get(people["mira"], page("agents", "shops")))
    assert get(people["mira"], page("agents", "shops"), csv="over-attempts").status_code == 404


def test_people_say_nothing_of_an_attempt_that_is_not_frozen(
    frozen: Submission, again: Submission, people: People
) -> None:
    assert get(people["mira"], page("agents", "shops"), csv="over-attempts").status_code == 404
    judged_both(frozen, again)
    before = shown(people["mira"])
    assert {row["by"] for row in before} == {"strict"}  # a maintainer sees judgments at any time
    finish_with_failures(people, again, freeze=False)
    assert shown(people["mira"]) == before
    workflow.freeze(people["mira"], again)
    assert {row["by"] for row in shown(people["mira"])} == {"people", "strict"}


def test_who_maintains_one_of_the_attempts_sees_nothing_of_the_other(
    frozen: Submission, again: Submission, people: People
) -> None:
    finish_with_failures(people, again)
    judged_both(frozen, again)
    erin = testing.person("erin", is_staff=True)
    workflow.add_member(people["mira"], again, erin, "maintainer")
    assert "Careful Agent (attempt 2)" in text(get(erin, page("agents", "shops")))
    assert "Over attempts" not in text(get(erin, page("agents", "shops")))
    assert get(erin, page("agents", "shops"), csv="over-attempts").status_code == 404


@pytest.mark.parametrize("name", ["alice", "carol", "dave"])
def test_the_table_is_as_closed_as_the_page(frozen: Submission, again: Submission, people: People, name: str) -> None:
    finish_with_failures(people, again)
    judged_both(frozen, again)
    for query in ({}, {"csv": "standings"}, {"csv": "over-attempts"}):
        assert get(people[name], page("agents", "shops"), **query).status_code == 404
    assert get(None, page("agents", "shops"), csv="over-attempts").status_code == 302


def test_one_judgment_is_not_that_of_two_attempts(submission: Submission, people: People, tmp_path: Path) -> None:
    """Judgments made elsewhere without a trajectory name a task and an agent: no attempt of several."""
    judged_both(submission, second(submission, tmp_path))
    judge = rows.judge_row("elsewhere", scorer="imported")
    for task in submission.benchmark.tasks.all():
        fields = {"judge": judge, "fingerprint": judge.fingerprint, "task": task, "agent": submission.agent}
        Judgment.objects.create(verdict=1, imported={}, made_at=timezone.now(), **fields)
    assert {row["by"] for row in shown(people["mira"])} == {"strict"}
