"""The annotator's queue and desk, as plain forms and as its script uses them."""

from __future__ import annotations

from typing import Any

import pytest
from django.test import Client
from django.urls import reverse
from django.utils import timezone

from annotation import workflow
from annotation.models import Assignment, Draft, Flag, KeyPoint, Label, Person, Release, Step, Submission, Trajectory
from annotation.tests import testing
from annotation.tests.shared_rows import shared_rows
from annotation.views.viewer import AROUND

JSON = {"HTTP_ACCEPT": "application/json"}


@pytest.fixture
def alice(client: Client, people: dict[str, Person]) -> Client:
    client.force_login(people["alice"])
    return client


@shared_rows
def held(people: dict[str, Person], submission: Submission) -> Trajectory:
    """What alice is working on."""
    return workflow.claim(people["alice"], submission).trajectory


def filled(trajectory: Trajectory, verdict: str = "1", **fields: str) -> dict[str, str]:
    """A complete form, as a browser without script sends it."""
    form = {"verdict": verdict, "reasoning": "The steps show it.", "criterion": "key_point"}
    for pk in workflow.key_points_of(trajectory).values_list("pk", flat=True):
        form |= {f"finding_{pk}": "met", f"finding_{pk}_step": "0"}
    if verdict == "0":
        form |= {"failure_step": "1", "failure_type": "range_not_exact"}
    return form | fields


def test_the_next_trajectory_opens_the_desk_and_stays_the_same_until_it_is_done(
    alice: Client, submission: Submission
) -> None:
    first = alice.post(reverse("next-trajectory", args=[submission.pk]))
    again = alice.post(reverse("next-trajectory", args=[submission.pk]))

    assert first["Location"] == again["Location"]
    assert "at least 16 GB" in alice.get(first["Location"]).content.decode()


def test_claiming_needs_a_post(alice: Client, submission: Submission) -> None:
    assert alice.get(reverse("next-trajectory", args=[submission.pk])).status_code == 405
    assert not Assignment.objects.exists()


def test_the_queue_shows_own_progress_labels_and_releases(
    alice: Client, people: dict[str, Person], submission: Submission, held: Trajectory
) -> None:
    workflow.submit(people["alice"], held, testing.content(held, 0))
    second = workflow.claim(people["alice"], submission).trajectory
    workflow.release(people["alice"], second, "I know this shop")

    page = alice.get(reverse("work", args=[submission.pk])).content.decode()
    assert "1 of 2" in page
    assert "Failure" in page
    assert "I know this shop" in page


def test_when_nothing_is_left_the_queue_says_so(
    alice: Client, people: dict[str, Person], submission: Submission
) -> None:
    testing.label_all(people, submission, {})

    response = alice.post(reverse("next-trajectory", args=[submission.pk]), follow=True)
    assert "Your queue is empty" in response.content.decode()


@pytest.mark.parametrize("verdict", ["0", "1"])
def test_a_label_is_submitted_by_a_plain_form(alice: Client, held: Trajectory, verdict: str) -> None:
    response = alice.post(reverse("submit", args=[held.pk]), filled(held, verdict))

    assert response["Location"] == reverse("work", args=[held.submission_id])
    label = Label.objects.get()
    assert str(label.verdict) == verdict
    assert label.findings.count() == 2


def test_submit_and_next_leads_to_the_next_desk(alice: Client, held: Trajectory) -> None:
    response = alice.post(reverse("submit", args=[held.pk]), filled(held, then="next"))

    following = Assignment.objects.get(lease_expires_at__isnull=False)
    assert response["Location"] == reverse("trajectory", args=[following.trajectory_id])


def test_an_incomplete_label_comes_back_as_typed_with_links_to_what_is_missing(alice: Client, held: Trajectory) -> None:
    typed = filled(held, "0", reasoning="half a thought", failure_type="", step="2")

    response = alice.post(reverse("submit", args=[held.pk]), typed)

    page = response.content.decode()
    assert response.status_code == 400
    assert "half a thought" in page
    assert 'href="#f-failure_type"' in page
    assert 'id="f-failure_type"' in page
    assert response.context["viewer"].index == 2
    assert not Label.objects.exists()


@pytest.mark.parametrize(
    "wrong", [{"verdict": "banana"}, {"failure_step": "-1"}, {"failure_step": "99999999999"}, {"failure_type": "<b>"}]
)
def test_malformed_values_are_refused_with_an_error_at_the_field(
    alice: Client, held: Trajectory, wrong: dict[str, str]
) -> None:
    response = alice.post(reverse("submit", args=[held.pk]), filled(held, "0") | wrong)

    assert response.status_code == 400
    assert f'href="#f-{next(iter(wrong))}"' in response.content.decode()
    assert not Label.objects.exists()


def test_a_finding_of_a_foreign_key_point_is_refused(alice: Client, held: Trajectory) -> None:
    foreign = KeyPoint.objects.exclude(task=held.task_id).first()

    response = alice.post(reverse("submit", args=[held.pk]), filled(held, **{f"finding_{foreign.pk}": "met"}))

    assert response.status_code == 400
    assert not Label.objects.exists()


def test_submitting_another_label_is_a_conflict_with_a_way_back(alice: Client, held: Trajectory) -> None:
    alice.post(reverse("submit", args=[held.pk]), filled(held))
    other = filled(held, reasoning="Other words.")
    response = alice.post(
        reverse("submit", args=[held.pk]), other, HTTP_REFERER="http://testserver/home", HTTP_HOST="testserver"
    )

    assert response.status_code == 409
    assert "already submitted" in response.content.decode()
    assert 'href="http://testserver/home"' in response.content.decode()


def test_the_way_back_never_leads_to_another_site(alice: Client, held: Trajectory) -> None:
    alice.post(reverse("submit", args=[held.pk]), filled(held))
    other = filled(held, reasoning="Other words.")
    response = alice.post(reverse("submit", args=[held.pk]), other, HTTP_REFERER="https://evil.example/")

    assert response.status_code == 409
    assert "evil.example" not in response.content.decode()


def test_a_flag_goes_with_the_label(alice: Client, held: Trajectory) -> None:
    alice.post(reverse("submit", args=[held.pk]), filled(held, flag="on", flag_note="is this the right shop?"))

    assert Flag.objects.get().note == "is this the right shop?"


def test_a_draft_is_saved_for_the_script_with_what_is_missing(alice: Client, held: Trajectory) -> None:
    response = alice.post(reverse("draft", args=[held.pk]), {"reasoning": "so far", "version": "0"}, **JSON)

    body = response.json()
    assert body["version"] == 1
    assert "verdict" in [problem["where"] for problem in body["missing"]]
    assert Draft.objects.get().content == {"reasoning": "so far"}
    assert "so far" in alice.get(reverse("trajectory", args=[held.pk])).content.decode()


def test_a_draft_from_an_older_window_is_refused_with_both_versions(alice: Client, held: Trajectory) -> None:
    address = reverse("draft", args=[held.pk])
    alice.post(address, {"reasoning": "first", "version": "0"}, **JSON)

    stale = alice.post(address, {"reasoning": "second", "version": "0"}, **JSON)

    assert stale.status_code == 409
    assert stale.json()["here"] == {"reasoning": "second"}
    assert stale.json()["there"] == {"reasoning": "first"}
    assert stale.json()["version"] == 1
    plain = alice.post(address, {"reasoning": "second", "version": "0"})
    assert plain.status_code == 409
    assert "first" in plain.content.decode()
    assert "second" in plain.content.decode()


def test_a_draft_saved_without_script_leads_back_to_the_step(alice: Client, held: Trajectory) -> None:
    response = alice.post(reverse("draft", args=[held.pk]), {"reasoning": "so far", "version": "0", "step": "2"})

    assert response["Location"] == reverse("trajectory", args=[held.pk]) + "?step=2"


def test_a_label_is_revised_with_a_reason_only(alice: Client, held: Trajectory) -> None:
    alice.post(reverse("submit", args=[held.pk]), filled(held))
    form = alice.get(reverse("trajectory", args=[held.pk]) + "?revise").content.decode()
    assert "The steps show it." in form

    refused = alice.post(reverse("revise", args=[held.pk]), filled(held, "0"))
    assert refused.status_code == 400
    assert 'href="#f-reason"' in refused.content.decode()
    alice.post(reverse("revise", args=[held.pk]), filled(held, "0", reason="overlooked the filter"))

    assert [label.verdict for label in Label.objects.order_by("revision")] == [1, 0]


def test_a_trajectory_is_given_back_with_a_reason_only(alice: Client, held: Trajectory) -> None:
    assert alice.post(reverse("release", args=[held.pk]), {"reason": " "}).status_code == 400
    assert alice.post(reverse("release", args=[held.pk]), {"reason": "I know this shop"}).status_code == 302

    assert Release.objects.get().reason == "I know this shop"
    assert alice.get(reverse("trajectory", args=[held.pk])).status_code == 404


def test_a_proposed_key_point_is_seen_by_its_author_and_nobody_else(
    alice: Client, people: dict[str, Person], held: Trajectory, submission: Submission
) -> None:
    alice.post(reverse("propose-key-point", args=[held.pk]), {"text": "free delivery"})
    workflow.claim(people["bob"], submission)
    bob = Client()
    bob.force_login(people["bob"])

    address = reverse("trajectory", args=[held.pk])
    assert "free delivery" in alice.get(address).content.decode()
    assert "free delivery" not in bob.get(address).content.decode()
    # The answer does not tell that somebody else has proposed the same.
    again = bob.post(reverse("propose-key-point", args=[held.pk]), {"text": "free delivery"}, follow=True)
    assert "proposed to the maintainer" in again.content.decode()
    assert "proposed by you" in bob.get(address).content.decode()


def test_an_expired_hold_is_said_and_the_draft_is_kept(
    alice: Client, people: dict[str, Person], held: Trajectory, submission: Submission
) -> None:
    workflow.save_draft(people["alice"], held, {"reasoning": "so far"}, 0)
    Assignment.objects.update(lease_expires_at=timezone.now())
    workflow.return_expired_leases(submission)

    page = alice.get(reverse("trajectory", args=[held.pk])).content.decode()
    assert "reservation has expired" in page
    assert "so far" in page
    assert alice.post(reverse("submit", args=[held.pk]), filled(held)).status_code == 302


def test_the_same_address_gives_the_viewer_alone_to_a_script(alice: Client, held: Trajectory) -> None:
    response = alice.get(reverse("trajectory", args=[held.pk]) + "?step=1", HTTP_HX_REQUEST="true")

    page = response.content.decode()
    assert "<html" not in page
    assert "label-form" not in page
    assert 'data-index="1"' in page
    assert "HX-Request" in response["Vary"]


@pytest.mark.parametrize(("asked", "shown"), [("1", 1), ("99", 2), ("-1", 0), ("x", 0), ("²", 0), ("", 0)])
def test_any_step_number_shows_some_step(alice: Client, held: Trajectory, asked: str, shown: int) -> None:
    response = alice.get(reverse("trajectory", args=[held.pk]), {"step": asked})

    assert response.status_code == 200
    assert response.context["viewer"].index == shown


def test_a_missing_screenshot_and_a_doubt_are_said_at_the_step(alice: Client, held: Trajectory) -> None:
    doubt = {"code": "v1_desync", "message": "may belong to step 2", "where": ""}
    held.steps.filter(index=1).update(screenshot=None, warnings=[doubt])

    page = alice.get(reverse("trajectory", args=[held.pk]) + "?step=1").content.decode()
    assert "The screenshot of this step is missing" in page
    assert "may belong to step 2" in page


def test_a_click_is_marked_where_it_was_and_said_when_it_is_off_the_picture(alice: Client, held: Trajectory) -> None:
    address = reverse("trajectory", args=[held.pk]) + "?step=1"
    assert 'cx="101.0" cy="51.0"' in alice.get(address).content.decode()

    held.steps.filter(index=1).update(click_x=9999)
    page = alice.get(address).content.decode()
    assert "is outside the screenshot" in page
    assert "<circle" not in page


HOSTILE = "<script>alert(1)</script> {{ settings.SECRET_KEY }} \u202eevil\u202c <img src=x onerror=alert(1)>"


def test_what_an_agent_wrote_is_inert_text(alice: Client, held: Trajectory) -> None:
    held.steps.update(action=HOSTILE, thought=HOSTILE, url="javascript:alert(1)", file_name=HOSTILE[:200])
    Trajectory.objects.filter(pk=held.pk).update(final_answer=HOSTILE, task_text=HOSTILE)
    held.task.text = held.task.website = HOSTILE
    held.task.save()

    page = alice.get(reverse("trajectory", args=[held.pk])).content.decode()
    assert "<script>alert" not in page
    assert "<img src=x" not in page
    assert "{{ settings.SECRET_KEY }}" in page
    assert 'href="javascript:' not in page


def test_no_page_has_inline_script_or_style(alice: Client, held: Trajectory, submission: Submission) -> None:
    for address in (reverse("trajectory", args=[held.pk]), reverse("work", args=[submission.pk]), reverse("account")):
        response = alice.get(address)
        page = response.content.decode()
        assert " style=" not in page
        assert " onclick=" not in page
        assert "<script>" not in page
        assert "script-src 'self'" in response["Content-Security-Policy"]


def test_a_page_of_five_thousand_steps_shows_a_window_of_them(
    alice: Client, held: Trajectory, django_assert_max_num_queries: Any
) -> None:
    picture = held.steps.first().screenshot
    Step.objects.bulk_create(
        Step(trajectory=held, index=n, action="scroll " * 20, screenshot=picture) for n in range(3, 5000)
    )

    with django_assert_max_num_queries(12):
        response = alice.get(reverse("trajectory", args=[held.pk]) + "?step=2500")

    page = response.content.decode()
    assert page.count('class="thumb') == 2 * AROUND + 1
    assert f'data-step="{2500 - 2 * AROUND}"' in page
    assert f'data-step="{2500 + 2 * AROUND}"' in page
    assert len(page) < 120_000


def test_the_desk_costs_at_most_twelve_queries(
    alice: Client, held: Trajectory, django_assert_max_num_queries: Any
) -> None:
    with django_assert_max_num_queries(12):
        alice.get(reverse("trajectory", args=[held.pk]))


def test_submitting_costs_at_most_twenty_queries(
    alice: Client, held: Trajectory, django_assert_max_num_queries: Any
) -> None:
    form = filled(held)
    with django_assert_max_num_queries(20):
        assert alice.post(reverse("submit", args=[held.pk]), form).status_code == 302


def test_labels_of_others_are_shown_when_the_maintainer_opens_them_and_not_before(
    alice: Client, people: dict[str, Person], submission: Submission
) -> None:
    testing.label_all(people, submission, {})
    workflow.draw_spot_checks(people["carol"], submission)
    testing.adjudicate_all(people["carol"], submission)
    workflow.freeze(people["mira"], submission)
    address = reverse("trajectory", args=[submission.trajectories.first().pk])
    assert "A2" not in alice.get(address).content.decode()

    workflow.open_results(people["mira"], submission)
    assert "A2" in alice.get(address).content.decode()


@pytest.mark.parametrize(
    ("name", "status"), [("alice", 200), ("bob", 404), ("carol", 403), ("mira", 403), ("dave", 404)]
)
def test_only_who_holds_a_trajectory_sees_its_desk(
    client: Client, people: dict[str, Person], held: Trajectory, name: str, status: int
) -> None:
    client.force_login(people[name])

    assert client.get(reverse("trajectory", args=[held.pk])).status_code == status


@pytest.mark.parametrize(("name", "status"), [("alice", 200), ("carol", 403), ("mira", 403), ("dave", 404)])
def test_the_queue_is_for_annotators(
    client: Client, people: dict[str, Person], submission: Submission, name: str, status: int
) -> None:
    client.force_login(people[name])

    assert client.get(reverse("work", args=[submission.pk])).status_code == status


def test_the_guidelines_state_the_whole_protocol(alice: Client) -> None:
    page = alice.get(reverse("guidelines")).content.decode()

    for words in ("Ranges are exact", "Range not exact", "CAPTCHA or blocked", "Not executable"):
        assert words in page


@pytest.mark.parametrize("spelling", ["finding_0{}", "finding_\N{ARABIC-INDIC DIGIT ZERO}{}"])
def test_a_key_point_spelled_in_two_ways_is_one_finding(alice: Client, held: Trajectory, spelling: str) -> None:
    pk = workflow.key_points_of(held).first().pk
    form = filled(held) | {spelling.format(pk): "unmet"}

    assert alice.post(reverse("submit", args=[held.pk]), form).status_code == 302
    assert Label.objects.get().findings.get(key_point=pk).finding == "met"


def test_a_nul_character_is_refused_and_not_an_error(alice: Client, held: Trajectory) -> None:
    for name, field in (("draft", "reasoning"), ("flag", "flag_note"), ("release", "reason")):
        assert alice.post(reverse(name, args=[held.pk]), {field: "a\x00b"}).status_code == 400
    assert not Draft.objects.exists()


def test_what_somebody_has_said_is_left_in_no_cache(alice: Client, held: Trajectory) -> None:
    for address in (reverse("trajectory", args=[held.pk]), "/api/v1/my/labels", "/account"):
        assert alice.get(address)["Cache-Control"] == "private, no-store"
