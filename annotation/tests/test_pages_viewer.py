"""The viewer as the server gives it: marks, visited and failed steps, groups, changes and search."""

from __future__ import annotations

import re
from typing import Any

import pytest
from django.test import Client
from django.urls import reverse
from django.utils import timezone

from annotation import workflow
from annotation.models import Activity, Person, Screenshot, Step, Submission, Trajectory
from annotation.tests import testing
from annotation.tests.shared_rows import shared_rows

HTMX = {"HTTP_HX_REQUEST": "true"}
ROLES = [("alice", 200), ("bob", 404), ("carol", 200), ("mira", 200), ("dave", 404)]


@shared_rows
def held(people: dict[str, Person], submission: Submission) -> Trajectory:
    return workflow.claim(people["alice"], submission).trajectory


@pytest.fixture
def alice(client: Client, people: dict[str, Person]) -> Client:
    client.force_login(people["alice"])
    return client


def desk(client: Client, held: Trajectory, step: int = 0, **headers: Any) -> str:
    return client.get(reverse("trajectory", args=[held.pk]) + f"?step={step}", **headers).content.decode()


# --- marks -----------------------------------------------------------------------------------------------------------


def sized(held: Trajectory, width: int, height: int) -> None:
    Screenshot.objects.filter(steps__trajectory=held).update(width=width, height=height)


def test_a_mark_is_drawn_at_the_pixels_that_the_action_names(alice: Client, held: Trajectory) -> None:
    page = desk(alice, held, 1)

    assert 'cx="101.0" cy="51.0"' in page
    assert "The mark may be wrong" not in page


def test_pictures_at_double_scale_have_the_mark_at_double_coordinates_and_say_so(
    alice: Client, held: Trajectory
) -> None:
    sized(held, 2560, 1440)

    page = desk(alice, held, 1)
    assert 'cx="202.0" cy="102.0"' in page
    assert "treated as double scale: they are 2560 pixels wide" in page
    assert 'class="mark unsure"' in page


def test_a_wide_picture_whose_clicks_reach_over_the_half_is_at_single_scale(alice: Client, held: Trajectory) -> None:
    sized(held, 2560, 1440)
    held.steps.filter(index=0).update(click_x=1900)

    page = desk(alice, held, 1)
    assert 'cx="101.0" cy="51.0"' in page
    assert "The mark may be wrong" not in page


def test_one_click_off_its_picture_makes_all_marks_doubtful(alice: Client, held: Trajectory) -> None:
    held.steps.filter(index=0).update(click_x=9999)

    page = desk(alice, held, 1)
    assert 'class="mark unsure"' in page
    assert "A click of this trajectory lies outside its screenshot" in page


def test_a_mark_on_a_whole_page_is_doubtful(alice: Client, held: Trajectory) -> None:
    sized(held, 320, 2000)

    assert "correct only if the page was not scrolled" in desk(alice, held, 1)


# --- words of the task -----------------------------------------------------------------------------------------------


def test_words_of_the_task_are_marked_in_the_step_and_filled_in_the_task(alice: Client, held: Trajectory) -> None:
    held.steps.filter(index=1).update(thought="<b>16 GB</b> & the cheapest laptops", url="https://shop/?ram=16")
    page = desk(alice, held, 1)

    assert re.search(r'class="t in" data-term="\d+">16 GB</mark>', page)
    assert re.search(r'class="t" data-term="\d+">cart</mark>', page), "not at this step"
    assert re.search(r'&lt;b&gt;<mark class="t" data-term="\d+">16 GB</mark>&lt;/b&gt; &amp; the ', page)
    assert re.search(r'<mark class="t" data-term="\d+">laptops</mark>', page)
    assert re.search(r'ram=<mark class="t" data-term="\d+">16</mark>', page)


# --- the transcript --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("name", "status"), ROLES)
def test_the_transcript_is_for_those_who_may_see_the_steps(
    client: Client, people: dict[str, Person], held: Trajectory, name: str, status: int
) -> None:
    client.force_login(people[name]) if name in people else client.force_login(testing.person(name))

    assert client.get(reverse("transcript", args=[held.pk])).status_code == status


def test_the_transcript_lists_actions_thoughts_and_addresses_of_all_steps(alice: Client, held: Trajectory) -> None:
    address = reverse("transcript", args=[held.pk])
    page = alice.get(address + f"?desk=/trajectories/{held.pk}%3Frevise%26").content.decode()

    for index, step in enumerate(held.steps.all()):
        assert f'href="/trajectories/{held.pk}?revise&amp;step={index}"' in page
        assert step.url in page
    assert "Laptop added." in re.sub(r"</?mark[^>]*>", "", page)
    assert "<html" in page
    assert "<html" not in alice.get(address, **HTMX).content.decode()


def test_a_long_transcript_comes_in_parts(alice: Client, held: Trajectory) -> None:
    step = held.steps.get(index=0)
    held.steps.exclude(index=0).delete()
    Step.objects.bulk_create(
        Step(trajectory=held, index=n, action=f"do {n}", screenshot=step.screenshot) for n in range(1, 230)
    )
    address = reverse("transcript", args=[held.pk])
    page = alice.get(address, {"from": 150}, **HTMX)

    assert [thumb.step.index for thumb in page.context["thumbs"]] == list(range(100, 200))
    assert "from 0" in page.content.decode()
    assert "from 200" in page.content.decode()
    assert len(page.content) < 200_000
    assert alice.get(address, {"from": 9999}).context["thumbs"][-1].step.index == 229


# --- the strip -------------------------------------------------------------------------------------------------------


def test_steps_of_earlier_visits_are_marked_and_only_the_own_ones(
    alice: Client, people: dict[str, Person], held: Trajectory
) -> None:
    for name, steps in (("alice", [0, 2]), ("bob", [1])):
        Activity.objects.create(trajectory=held, person=people[name], steps=steps, last_at=timezone.now())

    viewer = alice.get(reverse("trajectory", args=[held.pk])).context["viewer"]
    assert [thumb.seen for thumb in viewer.strip] == [True, False, True]
    assert 'data-seen="0 2"' in desk(alice, held)


def test_failed_doubtful_and_missing_steps_are_told_in_words_too(alice: Client, held: Trajectory) -> None:
    doubt = {"code": "alignment_doubtful", "message": "may belong to step 2", "where": ""}
    held.steps.filter(index=1).update(status="FAILED", warnings=[doubt], screenshot=None)

    page = desk(alice, held)
    assert ", action failed, doubtful" in page
    assert '<span class="none">missing</span>' in page
    assert 'data-failed="1"' in page
    assert "action failed</span>" in desk(alice, held, 1)
    assert "no screenshot" in desk(alice, held, 1)


def test_the_next_failed_step_is_a_link_that_comes_round(alice: Client, held: Trajectory) -> None:
    address = reverse("trajectory", args=[held.pk])
    assert alice.get(address).context["viewer"].next_failed is None

    held.steps.filter(index__in=[0, 1]).update(status="FAILED")
    found = [alice.get(f"{address}?step={step}").context["viewer"].next_failed for step in range(3)]
    assert found == [1, 0, 0]


def test_steps_that_do_the_same_at_the_same_address_form_a_group(alice: Client, held: Trajectory) -> None:
    url = held.steps.get(index=2).url
    Step.objects.bulk_create(Step(trajectory=held, index=n, action="scroll(down)", url=url) for n in range(3, 8))
    held.steps.filter(index=5).update(url=url + "#other")

    strip = alice.get(reverse("trajectory", args=[held.pk])).context["viewer"].strip
    assert [(thumb.first, thumb.times) for thumb in strip[3:]] == [(3, 2), (3, 2), (5, 1), (6, 2), (6, 2)]
    page = desk(alice, held)
    assert page.count("×2") == 2
    assert "data-fold" in page


def test_a_group_is_counted_whole_where_the_strip_shows_a_part_of_it(alice: Client, held: Trajectory) -> None:
    Step.objects.bulk_create(Step(trajectory=held, index=n, action="wait", url="") for n in range(3, 203))

    strip = alice.get(reverse("trajectory", args=[held.pk]) + "?step=100").context["viewer"].strip
    assert {(thumb.first, thumb.times) for thumb in strip} == {(3, 200)}


def test_without_repeats_there_is_nothing_to_fold(alice: Client, held: Trajectory) -> None:
    assert "data-fold" not in desk(alice, held)


def test_a_script_that_has_the_strip_gets_the_step_alone(alice: Client, held: Trajectory) -> None:
    whole = desk(alice, held, 1, **HTMX)
    bare = alice.get(reverse("trajectory", args=[held.pk]) + "?step=1&bare", **HTMX).content.decode()

    assert 'id="strip"' in whole
    assert 'id="strip"' not in bare
    assert all(part in bare for part in ('class="where"', 'class="shot"', 'id="step"', 'data-index="1"'))
    assert len(bare) < 4_000


def test_walking_costs_few_queries(alice: Client, held: Trajectory, django_assert_max_num_queries: Any) -> None:
    with django_assert_max_num_queries(7):
        alice.get(reverse("trajectory", args=[held.pk]) + "?step=1&bare", **HTMX)


# --- changes ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("name", "status"), ROLES)
@pytest.mark.parametrize("address", ["changes", "search"])
def test_changes_and_search_are_for_who_may_see_the_trajectory(
    client: Client, people: dict[str, Person], held: Trajectory, address: str, name: str, status: int
) -> None:
    client.force_login(people[name])

    assert client.get(reverse(address, args=[held.pk]), {"q": "do"}).status_code == status


def test_changes_are_given_by_step(alice: Client, held: Trajectory) -> None:
    body = alice.get(reverse("changes", args=[held.pk]), {"from": "1", "to": "2"}).json()

    assert list(body["steps"]) == ["1", "2"]
    assert body["steps"]["1"]["share"] > 0
    assert len(body["steps"]["1"]["boxes"][0]) == 4
    assert body["visible"] == 0.01


def test_changes_of_at_most_sixty_steps_are_given_at_once(alice: Client, held: Trajectory) -> None:
    Step.objects.bulk_create(Step(trajectory=held, index=n) for n in range(3, 100))

    for asked in ({"from": "10", "to": "99"}, {"from": "10"}, {"from": "10", "to": "x"}):
        body = alice.get(reverse("changes", args=[held.pk]), asked).json()
        assert [int(step) for step in body["steps"]] == list(range(10, 70))


# --- search ----------------------------------------------------------------------------------------------------------


def search(client: Client, held: Trajectory, words: str, **more: Any) -> Any:
    return client.get(reverse("search", args=[held.pk]), {"q": words} | more.pop("data", {}), **more)


def test_words_are_found_in_actions_thoughts_and_addresses_without_regard_to_case(
    alice: Client, held: Trajectory
) -> None:
    held.steps.filter(index=0).update(action="type('ÄPFEL')", thought=None, url="")
    held.steps.filter(index=1).update(thought="Then I look for äpfel again.")
    held.steps.filter(index=2).update(url="https://shop.example/äpfel?sort=price")

    found = [(hit.step, hit.field, hit.found) for hit in search(alice, held, "Äpfel").context["hits"]]
    assert found == [(0, "action", "ÄPFEL"), (1, "thought", "äpfel"), (2, "address", "äpfel")]


def test_the_words_are_marked_in_an_excerpt_and_the_rest_is_inert(alice: Client, held: Trajectory) -> None:
    held.steps.filter(index=1).update(thought="x" * 500 + "<b>needle</b>" + "y" * 500)

    page = search(alice, held, "needle").content.decode()
    assert "&lt;b&gt;<mark>needle</mark>&lt;/b&gt;yyy" in page
    assert "x" * 61 not in page


def test_what_is_looked_for_is_text_and_no_pattern(alice: Client, held: Trajectory) -> None:
    held.steps.filter(index=1).update(thought="costs (about) 5.00 [euro]")

    assert len(search(alice, held, "(about) 5.00 [e").context["hits"]) == 1
    assert search(alice, held, "5x00").context["hits"] == []
    assert search(alice, held, "  ").context["hits"] == []


def test_at_most_a_hundred_places_are_listed(alice: Client, held: Trajectory) -> None:
    Step.objects.bulk_create(Step(trajectory=held, index=n, action="again and again") for n in range(3, 200))

    response = search(alice, held, "again")
    assert len(response.context["hits"]) == 100
    assert "The first 100 matches" in response.content.decode()


def test_a_script_gets_the_list_alone_and_a_browser_a_page_with_a_way_back(alice: Client, held: Trajectory) -> None:
    back = reverse("trajectory", args=[held.pk]) + "?"
    page = search(alice, held, "do 1", data={"desk": back})
    part = search(alice, held, "do 1", data={"desk": back}, **HTMX)

    assert "<html" in page.content.decode()
    assert "<html" not in part.content.decode()
    for response in (page, part):
        assert f'href="{back}step=1"' in response.content.decode()
    assert "HX-Request" in part["Vary"]


@pytest.mark.parametrize(
    "desk", ["https://evil.example/?", "//evil.example/?", "/\\evil.example/?", "javascript:x?", ""]
)
def test_hits_lead_to_our_own_pages_only(alice: Client, held: Trajectory, desk: str) -> None:
    page = search(alice, held, "do 1", data={"desk": desk}).content.decode()

    assert "evil" not in page
    assert "javascript" not in page
    assert f'href="/trajectories/{held.pk}?step=1"' in page


def test_the_desk_links_to_a_search_that_works_without_a_script(alice: Client, held: Trajectory) -> None:
    assert f'data-search href="{reverse("search", args=[held.pk])}?desk=%2Ftrajectories%2F{held.pk}%3F"' in desk(
        alice, held
    )
