"""Two agents side by side: who sees what and when, the groups of tasks, and the steps of one task."""

from __future__ import annotations

import re
from html import unescape
from pathlib import Path
from typing import Any

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.urls import reverse

from annotation import ingest, workflow
from annotation.models import Benchmark, Membership, Person, Step, Submission, Task, Trajectory
from annotation.records import Verdict
from annotation.tests import testing
from annotation.tests.shared_rows import shared_rows
from evaluations.cases import Case
from evaluations.comparison import Label2, count_groups, match_tasks, places
from evaluations.statistics import mcnemar
from evaluations.tests import builders as results
from evaluations.tests.finished import finish
from evaluations.tests.test_comparison_pages import csv_rows, get, text

People = dict[str, Person]
EVIL = "<script>alert(1)</script>\u202egpj" + "W" * 150
LISTED = reverse("two-agents", args=["shops"])


@shared_rows
def other(submission: Submission, people: People, folder: Path) -> Submission:
    """Another agent with the same two tasks, in four steps, and the same people."""
    package = testing.write_submission(folder / "other", 2, steps=4)
    _, made = ingest.import_submission(package, benchmark=submission.benchmark, agent_name="Other Agent")
    assert made is not None
    testing.cast(made)
    return made


def end(people: People, *submissions: Submission) -> None:
    """Freeze them: the first task is decided, the second is a failure of everybody."""
    for each in submissions:
        finish(people, each, {"task_0000": [1, 0, 2], "task_0001": [0, 0, 0]})


def open_results(people: People, *submissions: Submission) -> None:
    for each in submissions:
        workflow.open_results(people["mira"], each)


def pair(first: Submission, second: Submission, task: str = "task_0000") -> str:
    rows = [each.trajectories.get(task__external_id=task).pk for each in (first, second)]
    return reverse("task-pair", args=rows)


def codes(people: People, *addresses: str) -> dict[str, set[int]]:
    return {name: {get(people[name], each).status_code for each in addresses} for name in people}


# --- who sees it, and when -------------------------------------------------------------------------------------------


def said(response: Any) -> str:
    """The content of a page without that of the head and the navigation."""
    return str(response.content.decode().split("<main", 1)[1])


VERDICTS = re.compile(r'class="verdict|finding|McNemar|decided by|The steps show it\.|only Other Agent|Reasons')


def test_before_both_freezes_only_people_who_maintain_both_see_the_steps_and_nobody_a_verdict(
    submission: Submission, other: Submission, people: People
) -> None:
    testing.label_all(people, submission, {"task_0000": [1, 0, 2]})
    end(people, other)
    open_results(people, other)
    listed = f"{LISTED}?first={submission.pk}&second={other.pk}"
    addresses = listed, pair(submission, other), pair(other, submission)
    assert codes(people, *addresses) == {name: {200 if name == "mira" else 404} for name in people}
    for address in addresses:
        shown = get(people["mira"], address)
        assert "when both submissions are frozen" in text(shown)
        assert VERDICTS.search(said(shown)) is None
    assert get(people["mira"], f"{listed}&csv=two-agents").status_code == 404
    assert "Step 0 of 3" in text(get(people["mira"], pair(submission, other)))
    for name in ("first", "both", "undecided"):  # a group would tell the verdicts by its size
        assert text(get(people["mira"], f"{listed}&group={name}")).count("laptop of shop") == 2


def test_reviewers_see_it_when_both_are_frozen_and_opened(
    submission: Submission, other: Submission, people: People
) -> None:
    addresses = f"{LISTED}?first={submission.pk}&second={other.pk}", pair(submission, other)
    end(people, submission, other)
    assert codes(people, *addresses) == {name: {200 if name == "mira" else 404} for name in people}
    open_results(people, submission)
    assert codes(people, *addresses)["alice"] == {404}
    open_results(people, other)
    assert codes(people, *addresses) == {name: {404 if name == "dave" else 200} for name in people}
    for name in ("alice", "carol", "mira"):
        assert "McNemar" in text(get(people[name], addresses[0]))
        assert "The steps show it." in text(get(people[name], addresses[1]))


@pytest.mark.parametrize("which", [0, 1])
def test_member_of_only_one_sees_nothing(submission: Submission, other: Submission, people: People, which: int) -> None:
    end(people, submission, other)
    open_results(people, submission, other)
    left = (submission, other)[which]
    Membership.objects.filter(submission=left).exclude(person=people["mira"]).delete()
    address = pair(submission, other)
    assert {get(people[name], address).status_code for name in ("alice", "carol", "dave")} == {404}
    listed = text(get(people["alice"], LISTED))
    assert "Two agents are needed, and you have access to one" in listed
    assert str(left) not in listed
    assert get(people["alice"], f"{LISTED}?first={submission.pk}&second={other.pk}").status_code == 404


def test_deactivated_member_sees_nothing(submission: Submission, other: Submission, people: People) -> None:
    end(people, submission, other)
    open_results(people, submission, other)
    Membership.objects.filter(submission=other, person=people["bob"]).update(deactivated_at=other.created_at)
    assert get(people["bob"], pair(submission, other)).status_code == 404


@pytest.mark.parametrize("name", ["alice", "carol"])
def test_people_who_review_an_open_submission_of_the_benchmark_see_no_verdict(
    submission: Submission, other: Submission, people: People, tmp_path: Path, name: str
) -> None:
    end(people, submission, other)
    open_results(people, submission, other)
    package = testing.write_submission(tmp_path / "third", 2, steps=2)
    _, third = ingest.import_submission(package, benchmark=submission.benchmark, agent_name="Third Agent")
    assert third is not None
    testing.cast(third)
    for address in (f"{LISTED}?first={submission.pk}&second={other.pk}", pair(submission, other)):
        shown = get(people[name], address)
        assert "hidden from you while you review" in text(shown)
        assert VERDICTS.search(said(shown)) is None


def test_nobody_signed_in_is_asked_to(submission: Submission, other: Submission) -> None:
    assert {get(None, address).status_code for address in (LISTED, pair(submission, other))} == {302}


def test_pairs_that_do_not_exist_are_not_found(submission: Submission, other: Submission, people: People) -> None:
    end(people, submission, other)
    first, second = submission.trajectories.order_by("position")
    mine = people["mira"]
    for one, another in ((first.pk, first.pk), (first.pk, second.pk), (first.pk, 10**30), (0, first.pk)):
        assert get(mine, reverse("task-pair", args=[one, another])).status_code == 404
    for asked in (f"first={submission.pk}&second=999999", f"first={10**9 - 1}&second={other.pk}"):
        assert get(mine, f"{LISTED}?{asked}").status_code == 404
    same = get(mine, f"{LISTED}?first={submission.pk}&second={submission.pk}")
    assert (same.status_code, b"Choose two different ones" in same.content) == (400, True)


def test_practice_submission_is_not_offered(submission: Submission, other: Submission, people: People) -> None:
    end(people, submission, other)
    open_results(people, submission, other)
    Submission.objects.filter(pk=other.pk).update(practice=True)
    for name in ("mira", "alice"):
        assert "Other Agent" not in text(get(people[name], LISTED))
        assert get(people[name], pair(submission, other)).status_code == 404


def test_trajectories_of_different_versions_of_a_task_are_not_a_pair(
    submission: Submission, other: Submission, people: People
) -> None:
    end(people, submission, other)
    row = other.trajectories.get(task__external_id="task_0001")
    newer = Task.objects.create(benchmark=submission.benchmark, external_id="task_0001", version=2, text="Changed.")
    Trajectory.objects.filter(pk=row.pk).update(task=newer)
    assert get(people["mira"], pair(submission, other, "task_0001")).status_code == 404
    listed = text(get(people["mira"], LISTED))
    assert "on 1 task" in listed
    assert "1 in different versions, not compared" in listed


# --- pictures of others' trajectories --------------------------------------------------------------------------------


def unseen(name: str, submission: Submission) -> Trajectory:
    """A trajectory that ``name`` has not worked on: that of a fourth task."""
    row = submission.trajectories.get(task__external_id="task_0001")
    row.assignments.filter(annotator__username=name).delete()
    row.activities.filter(person__username=name).delete()
    row.drafts.filter(author__username=name).delete()
    return row


def pictures(row: Trajectory) -> list[str]:
    return [
        reverse("picture", args=[row.pk, 0, "display"]),
        reverse("sheet", args=[row.pk, 0]),
        reverse("transcript", args=[row.pk]),
    ]


@pytest.fixture
def reader(people: People) -> Person:
    return testing.person("erin")


def test_reader_of_open_results_sees_screenshots_and_no_files_of_other_trajectories(
    submission: Submission, people: People, reader: Person
) -> None:
    workflow.add_member(people["mira"], submission, reader, Membership.Role.ANNOTATOR)
    end(people, submission)
    row = submission.trajectories.earliest("pk")
    assert {get(reader, address).status_code for address in pictures(row)} == {404}
    open_results(people, submission)
    assert {get(reader, address).status_code for address in pictures(row)} == {200}
    assert get(reader, reverse("search", args=[row.pk]), q="I").status_code == 404
    assert get(reader, reverse("trajectory", args=[row.pk])).status_code == 404
    assert {get(people["dave"], address).status_code for address in pictures(row)} == {404}


def test_reader_of_open_results_sees_redacted_screenshots_covered(
    client: Client, submission: Submission, people: People, reader: Person
) -> None:
    workflow.add_member(people["mira"], submission, reader, Membership.Role.ANNOTATOR)
    row = submission.trajectories.earliest("pk")
    shown = row.steps.get(index=0).screenshot
    assert shown is not None
    end(people, submission)
    open_results(people, submission)
    first, sheet, _ = pictures(row)
    before = {name: (get(people[name], first).content, get(people[name], sheet).content) for name in ("mira", "alice")}
    plain = get(reader, first).content, get(reader, sheet).content
    assert plain == before["mira"]
    stored = [get(reader, each) for each in (first, sheet)]
    assert {each["Cache-Control"] for each in stored} == {"private, no-cache"}
    client.force_login(reader)
    tags = {address: each["ETag"] for address, each in zip((first, sheet), stored, strict=True)}
    assert {client.get(at, headers={"If-None-Match": tag}).status_code for at, tag in tags.items()} == {304}
    workflow.redact(people["mira"], submission, shown, [[0, 0, 300, 150]], "A name.")
    assert {client.get(at, headers={"If-None-Match": tag}).status_code for at, tag in tags.items()} == {200}
    with CaptureQueriesContext(connection) as queries:
        get(reader, first)
    (looked_up,) = [each["sql"] for each in queries if 'FROM "annotation_redaction"' in each["sql"]]
    assert shown.sha256 in looked_up  # and not those of all other screenshots
    covered = get(reader, first).content, get(reader, sheet).content
    assert covered[0] != plain[0]
    assert covered[1] != plain[1]
    for name, seen in before.items():  # people in the review see the original, as before
        assert (get(people[name], first).content, get(people[name], sheet).content) == seen
        assert {"immutable" in get(people[name], each)["Cache-Control"] for each in (first, sheet)} == {True}


@pytest.mark.parametrize("name", ["erin", "alice", "carol", "mira"])
def test_links_to_the_trajectories_and_of_their_transcripts_lead_to_pages_that_open(
    submission: Submission, other: Submission, people: People, reader: Person, name: str
) -> None:
    for each in (submission, other):
        workflow.add_member(people["mira"], each, reader, Membership.Role.ANNOTATOR)
    end(people, submission, other)
    open_results(people, submission, other)
    person = (people | {"erin": reader})[name]
    shown = get(person, pair(submission, other), left="1", right="3", group="first")
    whole = re.findall(r'href="([^"]+)">whole trajectory', shown.content.decode())
    assert len(whole) == 2
    assert {get(person, unescape(link)).status_code for link in whole} == {200}
    for row in (each.trajectories.get(task__external_id="task_0000") for each in (submission, other)):
        transcript = reverse("transcript", args=[row.pk])
        for address in (transcript, *(unescape(link) for link in whole if link.startswith(transcript))):
            links = re.findall(r'href="([^"]+)"', said(get(person, address)))
            assert len(links) >= 2 * row.steps.count()
            for link in map(unescape, links):
                if link.startswith("#"):
                    assert f'id="{link[1:]}"' in said(get(person, address))
                else:
                    assert get(person, link).status_code == 200


def test_transcript_leads_a_reader_back_to_the_pair_at_the_step(
    submission: Submission, other: Submission, people: People, reader: Person
) -> None:
    for each in (submission, other):
        workflow.add_member(people["mira"], each, reader, Membership.Role.ANNOTATOR)
    end(people, submission, other)
    open_results(people, submission, other)
    shown = get(reader, pair(submission, other), left="1", right="3", group="first")
    _, right = re.findall(r'href="([^"]+)">whole trajectory', shown.content.decode())
    (step, *_) = re.findall(r'href="([^"]+step=2)"', said(get(reader, unescape(right))))
    back = get(reader, unescape(step))
    assert "Step 1 of 2" in text(back)
    assert "Step 2 of 3" in text(back)
    assert "group=first" in said(back)


def test_import_reports_are_not_loaded(
    submission: Submission, other: Submission, people: People, reader: Person
) -> None:
    for each in (submission, other):
        workflow.add_member(people["mira"], each, reader, Membership.Role.ANNOTATOR)
    end(people, submission, other)
    open_results(people, submission, other)
    for person in (people["mira"], reader):
        for address in (LISTED, pair(submission, other), *pictures(submission.trajectories.earliest("pk"))):
            with CaptureQueriesContext(connection) as queries:
                assert get(person, address).status_code == 200
            assert [each["sql"] for each in queries if '"import_report"' in each["sql"]] == []


# --- groups of tasks -------------------------------------------------------------------------------------------------

F, S, N = Verdict.FAILURE, Verdict.SUCCESS, Verdict.NOT_EXECUTABLE


def cases(finals: list[Verdict | None], first: int = 0, version: int | None = 1) -> list[Case]:
    return [
        Case("A", f"t{first + n}", "", "", (), final, 3, n, 1, task_version=version) for n, final in enumerate(finals)
    ]


def test_every_task_is_in_one_group_and_label_2_where_the_rule_says() -> None:
    left, right = cases([S, S, F, F, N, N, S, None]), cases([S, F, S, F, S, N, None, F])
    pairs = match_tasks(left, right).pairs
    no_success = count_groups(pairs, Label2.NOT_SUCCESS)
    assert list(no_success.groups.values()) == [1, 1, 2, 2, 0, 2]  # both, first, second, neither, 2, undecided
    assert (no_success.n, no_success.difference.value) == (6, (1 - 2) / 6)
    left_out = count_groups(pairs, Label2.EXCLUDED)
    assert list(left_out.groups.values()) == [1, 1, 1, 1, 2, 2]
    assert (left_out.n, left_out.difference.value) == (4, 0)


def test_test_of_the_difference_is_that_of_the_leaderboard() -> None:
    left, right = cases([S] * 9 + [F]), cases([F] * 9 + [S])
    found = count_groups(match_tasks(left, right).pairs, Label2.NOT_SUCCESS)
    assert found.test == mcnemar(9, 1)
    assert found.test.p.value == pytest.approx(2 * (1 + 10) / 2**10)  # by hand: X ~ Binomial(10, 1/2), X <= 1
    other = [Case("B", c.task_id, "", "", (), c.final, 3, c.trajectory, 2, task_version=1) for c in right]
    ranks = places([*left, *other], Label2.NOT_SUCCESS)
    assert (str(ranks["A"]), str(ranks["B"])) == ("1", "2")  # p < 0.05


def test_tasks_of_one_agent_and_of_different_versions_are_counted_apart() -> None:
    found = match_tasks(cases([S, S, S]), [*cases([S], first=2, version=2), *cases([S, S], first=7)])
    assert (found.pairs, found.first_only, found.second_only, found.other_version) == ([], 2, 2, 1)


@shared_rows
def benchmark() -> Benchmark:
    """Two agents with 60 tasks each, reviewed and frozen."""
    return results.reviewed(agents=2, tasks=60, seed=3)


@pytest.fixture
def mira(benchmark: Benchmark) -> Person:
    return Person.objects.get(username="mira")


REVIEWED = reverse("two-agents", args=["reviewed"])


def test_groups_of_the_page_are_those_of_the_file_and_list_their_tasks_in_pages(mira: Person) -> None:
    rows = csv_rows(get(mira, REVIEWED, csv="two-agents"))
    assert len(rows) == 60
    page = get(mira, REVIEWED).content.decode()
    tabs = re.findall(r'href="\?group=([\w-]*)"[^>]*><bdi class="agent">[^<]*</bdi> <b>(\d+)</b>', page)
    shown = dict(tabs)
    assert shown.pop("") == "60"
    counted = {group: sum(row["group"] == group for row in rows) for group in shown}
    assert shown == {group: str(number) for group, number in counted.items()}
    assert 0 < counted["first"] < 60
    for group, number in counted.items():
        if number:
            listed = get(mira, REVIEWED, group=group, label2="not_success").content.decode()
            assert listed.count('<th scope="row">') == min(number, 50)
    assert get(mira, REVIEWED, page="2").content.decode().count('<th scope="row">') == 10


def test_filters_narrow_the_tasks_and_the_counts(mira: Person) -> None:
    found = csv_rows(get(mira, REVIEWED, csv="two-agents", level="easy"))
    assert {row["level"] for row in found} == {"easy"}
    listed = text(get(mira, REVIEWED, level="easy"))
    assert f"{len(found)} tasks match the filters" in listed
    one = text(get(mira, REVIEWED, q="shop 17 with"))
    assert "1 task matches the filters" in one
    assert "laptop of shop 17 " in one
    assert "No task matches these filters" in text(get(mira, REVIEWED, q="%"))


def test_task_links_to_its_neighbours_in_the_list_with_the_filters(client: Client, mira: Person) -> None:
    listed = get(mira, REVIEWED, group="first", level="easy").content.decode()
    tasks = [each.replace("&amp;", "&") for each in re.findall(r'<th scope="row"><a href="([^"]+)"', listed)]
    assert len(tasks) > 1
    assert "group=first&level=easy" in tasks[0]
    shown = get(mira, tasks[0]).content.decode()
    links = [
        each.replace("&amp;", "&") for each in re.findall(r'<a class="button small" href="([^"]+)">\w+ task', shown)
    ]
    before, after = (get(mira, link) for link in links)
    assert after.url == tasks[1]
    assert before.url.startswith(REVIEWED)
    assert "go=" not in before.url
    client.force_login(mira)
    assert "This was the first task of the list." in text(client.get(links[0], follow=True))
    elsewhere = client.get(links[1].replace("group=first", "group=second"), follow=True)
    assert "This task is not in the list." in text(elsewhere)


def test_number_of_queries_does_not_grow_with_the_tasks(mira: Person) -> None:
    counted = []
    for address in (f"{REVIEWED}?q=shop 17 with", REVIEWED):
        get(mira, address)
        with CaptureQueriesContext(
            connection,
        ) as queries:
            assert get(mira, address).status_code == 200
        counted.append(len(queries))
    assert counted[1] <= counted[0] <= 40


# --- one task --------------------------------------------------------------------------------------------------------


@pytest.fixture
def ended(submission: Submission, other: Submission, people: People) -> str:
    end(people, submission, other)
    return pair(submission, other)


def test_page_shows_both_steps_at_the_first_difference_without_script(ended: str, people: People) -> None:
    shown = get(people["mira"], ended, left="1", right="3")
    assert "Step 1 of 2" in text(shown)
    assert "Step 3 of 3" in text(shown)
    # Both click twice. Then one completes, and the other clicks once more and completes on another page.
    assert "First difference: step 2. 2 steps are the same." in text(shown)
    links = dict(re.findall(r'data-move="([\w-]+)"[^>]*href="[^"]+(\?[^"]+)"', shown.content.decode()))
    assert links["parting"] == "?left=2&amp;right=2"
    assert links["previous"] == "?left=0&amp;right=0"  # before the earlier of the two
    assert links["last"] == "?left=2&amp;right=3"
    assert links["left-next"] == "?left=2&amp;right=3"
    assert links["right-previous"] == "?left=1&amp;right=2"
    assert "next" not in links  # the right one is in the last row


def test_steps_beyond_the_end_and_without_sense_are_those_at_the_ends(ended: str, people: People) -> None:
    assert "Step 2 of 2" in text(get(people["mira"], ended, left="999", right="-1"))
    assert "Step 0 of 3" in text(get(people["mira"], ended, left="999", right="abc"))


def test_verdicts_reasons_and_key_points_are_beside_each_other(ended: str, people: People) -> None:
    shown = text(get(people["mira"], ended))
    assert "1 of 3 people, decided by an adjudicator" in shown
    assert "reference run of 4 steps" in shown


def test_failure_is_shown_with_its_type_and_step(
    submission: Submission, other: Submission, ended: str, people: People
) -> None:
    row = other.trajectories.get(task__external_id="task_0001")
    drawn = hasattr(row, "spot_check") and row.spot_check.selected
    shown = text(get(people["mira"], pair(submission, other, "task_0001")))
    assert ("failure 4 steps · 3 of 3 people" in shown) is not drawn


def test_texts_of_agents_are_inert_and_the_page_stays_small(
    submission: Submission, other: Submission, people: People
) -> None:
    end(people, submission, other)
    Task.objects.filter(benchmark=submission.benchmark).update(text=EVIL * 500)
    for each in (submission, other):
        row = each.trajectories.get(task__external_id="task_0000")
        Trajectory.objects.filter(pk=row.pk).update(final_answer=EVIL + "<" * 50_000)
        row.steps.update(action=EVIL + "<" * 50_000, thought=EVIL + "<" * 50_000, url=EVIL + "<" * 50_000)
        Step.objects.bulk_create(Step(trajectory=row, index=n, action="<" * 900) for n in range(4, 120))
    for address in (pair(submission, other), pair(submission, other) + "?left=60&right=60", LISTED):
        answer = get(people["mira"], address)
        assert b"<script>alert" not in answer.content
        assert b"&lt;script&gt;alert" in answer.content
        assert len(answer.content) < 200_000


def test_number_of_queries_for_a_task_is_bounded(ended: str, people: People) -> None:
    get(people["mira"], ended)
    with CaptureQueriesContext(connection) as queries:
        get(people["mira"], ended)
    few = len(queries)
    row = Trajectory.objects.get(pk=int(ended.split("/")[2]))
    Step.objects.bulk_create(Step(trajectory=row, index=n, action="Click at (1, 1)") for n in range(3, 60))
    with CaptureQueriesContext(connection) as queries:
        get(people["mira"], ended)
    assert len(queries) == few <= 40


def test_trajectory_without_steps_is_shown_beside_another(ended: str, people: People) -> None:
    Step.objects.filter(trajectory=int(ended.split("/")[2])).delete()
    shown = text(get(people["mira"], ended, left="3", right="1"))
    assert "This trajectory has no steps" in shown
    assert "Step 1 of 3" in shown
