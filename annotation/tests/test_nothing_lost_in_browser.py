"""What is typed survives a reload, a dead network, a second window, a hold that runs out."""

from __future__ import annotations

import re
from datetime import timedelta
from typing import Any

import pytest
from django.urls import reverse
from django.utils import timezone
from playwright.sync_api import Error, Page, Route, expect

from annotation import clock, jobs, workflow
from annotation.models import Activity, Assignment, Draft, Label, Person, Trajectory
from annotation.tests import testing
from annotation.tests.in_browser import (
    SAVED,
    TEXT,
    alice,
    copies,
    end_session,
    fill_in,
    open_desk,
    reasoning,
    sign_in,
    sign_in_again,
    submit,
)

pytestmark = pytest.mark.browser

# --- offline, reload, crash -----------------------------------------------------------------------------------------


def test_what_is_typed_offline_is_saved_when_the_network_is_back(desk: Page) -> None:
    desk.context.set_offline(True)
    reasoning(desk).fill(TEXT)
    expect(desk.locator("#saved")).to_have_text("not saved: offline")
    assert not Draft.objects.exists()
    desk.context.set_offline(False)

    expect(desk.locator("#saved")).to_have_text(SAVED)
    expect(reasoning(desk)).to_have_value(TEXT)
    assert Draft.objects.get().content["reasoning"] == TEXT
    assert copies(desk) == 0


def test_what_was_never_saved_is_back_after_a_crash(desk: Page, live_server: Any, held: Trajectory) -> None:
    desk.context.set_offline(True)
    desk.keyboard.press("f")
    reasoning(desk).fill(TEXT)
    expect(desk.locator("#saved")).to_have_text("not saved: offline")
    with pytest.raises(Error), desk.expect_event("crash"):
        desk.goto("chrome://crash", timeout=2000)
    desk.close()
    assert not Draft.objects.exists()
    desk.context.set_offline(False)
    again = desk.context.new_page()
    open_desk(again, live_server.url, held)

    expect(reasoning(again)).to_have_value(TEXT)
    expect(again.locator("[name=verdict]:checked")).to_have_value("0")
    expect(again.locator("#notices")).to_have_text(re.compile(r"Restored unsaved text from \d\d:\d\d:\d\d"))
    expect(again.locator("#saved")).to_have_text(SAVED)
    assert Draft.objects.get().content["reasoning"] == TEXT
    assert copies(again) == 0


def test_marks_on_steps_survive_a_crash_and_a_second_window_is_asked_about_them(
    desk: Page, live_server: Any, held: Trajectory
) -> None:
    held.submission.process_labels = True
    held.submission.save(update_fields=["process_labels"])
    desk.reload()
    expect(desk.get_by_role("button", name="wrong w")).to_be_visible()
    desk.context.set_offline(True)
    desk.keyboard.press("w")
    expect(desk.locator("#saved")).to_have_text("not saved: offline")
    with pytest.raises(Error), desk.expect_event("crash"):
        desk.goto("chrome://crash", timeout=2000)
    desk.close()
    assert not Draft.objects.exists()
    desk.context.set_offline(False)
    again = desk.context.new_page()
    open_desk(again, live_server.url, held)
    expect(again.get_by_role("button", name="wrong w")).to_have_attribute("aria-pressed", "true")
    expect(again.locator("#saved")).to_have_text(SAVED)
    assert Draft.objects.get().content == {"process": "0 wrong"}

    workflow.save_draft(alice(), held, {"process": "1 side effect"}, Draft.objects.get().version)
    again.keyboard.press("i")
    again.get_by_role("button", name="Compare both").click()
    expect(again.locator("#conflict tbody")).to_have_text("Steps that were not right0 unnecessary1 side effect")
    again.get_by_role("button", name="Keep the other version").click()
    expect(again.locator("#strip .marked")).to_have_text("! side effect")
    expect(again.locator("#f-process")).to_have_value("1 side effect")


def test_a_letter_typed_just_before_a_reload_is_kept(desk: Page) -> None:
    reasoning(desk).fill(TEXT)
    desk.reload()

    expect(reasoning(desk)).to_have_value(TEXT)
    expect(desk.locator("#saved")).to_have_class("chip ok")  # by this page, or on the way out of the first one


def test_a_page_that_was_rendered_before_the_last_save_shows_what_was_saved(desk: Page) -> None:
    """The answer to the save reaches the page that is being left, and only then comes the next page."""
    address = desk.url
    earlier = desk.request.get(address).text()
    waiting: list[Route] = []

    def wait(route: Route) -> None:
        waiting.append(route)

    desk.route(address, wait)
    with desk.expect_response(lambda response: response.url.endswith("/draft")) as saving:
        reasoning(desk).fill(TEXT)
        desk.evaluate("setTimeout(() => location.reload())")
    saving.value.finished()
    with desk.expect_navigation():
        waiting[0].fulfill(body=earlier, content_type="text/html; charset=utf-8")
    desk.unroute(address)

    expect(reasoning(desk)).to_have_value(TEXT)
    expect(desk.locator("#saved")).to_have_text(SAVED)
    desk.reload()
    expect(reasoning(desk)).to_have_value(TEXT)
    assert Draft.objects.get().content["reasoning"] == TEXT
    assert copies(desk) == 0


def test_a_reload_while_a_save_is_on_its_way_is_no_conflict(desk: Page) -> None:
    arrived: list[Any] = []
    desk.route("**/draft", lambda route: arrived.append(route.fetch()))  # the server has it; its answer never comes
    reasoning(desk).fill("first")
    while not arrived:
        desk.evaluate("new Promise(requestAnimationFrame)")
    assert Draft.objects.get().content == {"reasoning": "first"}
    reasoning(desk).fill("first, and then second")
    desk.reload()

    expect(reasoning(desk)).to_have_value("first, and then second")
    expect(desk.locator("#conflict")).to_be_hidden()


def test_a_copy_that_the_server_has_overtaken_is_shown_beside_it(
    desk: Page, live_server: Any, held: Trajectory
) -> None:
    desk.context.set_offline(True)
    reasoning(desk).fill(TEXT)
    expect(desk.locator("#saved")).to_have_text("not saved: offline")
    # A page that is left lives on for a moment: back online, it would save its text and forget the copy.
    desk.close()
    desk.context.set_offline(False)
    elsewhere = {"content": {"reasoning": "from elsewhere", "verdict": "1"}, "version": 9, "saved_at": timezone.now()}
    Draft.objects.create(trajectory=held, author=alice(), **elsewhere)
    again = desk.context.new_page()
    open_desk(again, live_server.url, held)

    dialog = again.locator("#conflict")
    expect(dialog).to_contain_text(TEXT)
    expect(dialog).to_contain_text("from elsewhere")
    expect(dialog.get_by_role("row", name="Verdict")).to_contain_text("Success")
    again.keyboard.press("Escape")
    expect(dialog).to_be_visible()
    with again.expect_response(re.compile("/draft$")):
        dialog.get_by_role("button", name="Keep this version").click()
    expect(reasoning(again)).to_have_value(TEXT)
    assert Draft.objects.get().content == {"reasoning": TEXT}


def test_another_person_at_the_same_browser_finds_nothing(desk: Page, live_server: Any, held: Trajectory) -> None:
    desk.route("**/draft", lambda route: route.abort())
    reasoning(desk).fill(TEXT)
    desk.goto(live_server.url + reverse("account"))
    assert copies(desk) == 1
    desk.once("dialog", lambda dialog: dialog.accept())
    desk.get_by_role("button", name="Sign out", exact=True).click()
    desk.wait_for_url(re.compile("/sign-in"))
    assert copies(desk) == 0


def test_signing_out_asks_nothing_about_a_copy_that_is_saved(desk: Page, live_server: Any) -> None:
    reasoning(desk).fill(TEXT)
    expect(desk.locator("#saved")).to_have_text(SAVED)
    desk.evaluate("""() => {
        const { person, trajectory } = document.getElementById("saved").dataset;
        const copy = { fields: {}, version: 1, saved: true, at: new Date().toISOString() };
        localStorage.setItem(`webverdict-typed:${person}:${trajectory}:left`, JSON.stringify(copy));
    }""")
    desk.goto(live_server.url + reverse("account"))
    assert copies(desk) == 1
    desk.get_by_role("button", name="Sign out", exact=True).click()  # a question would be answered with no

    desk.wait_for_url(re.compile("/sign-in"))
    assert copies(desk) == 0


def test_a_copy_is_not_shown_to_another_person(desk: Page, live_server: Any, held: Trajectory) -> None:
    desk.route("**/draft", lambda route: route.abort())
    reasoning(desk).fill(TEXT)
    end_session(desk)
    desk.goto("about:blank")
    workflow.claim_this(Person.objects.get(username="bob"), held)
    sign_in(desk, live_server.url, "bob")
    open_desk(desk, live_server.url, held)

    expect(reasoning(desk)).to_have_value("")
    assert copies(desk) == 1


# --- two windows, back ----------------------------------------------------------------------------------------------


def test_two_windows_are_shown_side_by_side_in_words(desk: Page, live_server: Any, held: Trajectory) -> None:
    second = desk.context.new_page()
    open_desk(second, live_server.url, held)
    second.keyboard.press("f")
    reasoning(second).fill("from the second window")
    expect(second.locator("#saved")).to_have_text(SAVED)
    desk.keyboard.press("s")
    reasoning(desk).fill("from the first window")

    expect(desk.locator("#saved")).to_have_text("not saved: edited in another window")
    desk.keyboard.type(" and more")
    expect(reasoning(desk)).to_have_value("from the first window and more")
    desk.get_by_role("button", name="Compare both").click()
    dialog = desk.locator("#conflict")
    expect(dialog.get_by_role("row", name="Verdict")).to_have_text(re.compile(r"Verdict\s*Success\s*Failure"))
    expect(dialog).to_contain_text("from the first window and more")
    dialog.get_by_role("button", name="Keep the other version").click()
    expect(reasoning(desk)).to_have_value("from the second window")
    expect(desk.locator("[name=verdict]:checked")).to_have_value("0")
    expect(desk.locator("#saved")).to_have_text(SAVED)
    assert Draft.objects.get().content["reasoning"] == "from the second window"


def test_the_back_button_shows_the_label_and_no_stale_form(desk: Page, held: Trajectory) -> None:
    fill_in(desk)
    submit(desk)
    expect(desk.locator(".messages .success")).to_contain_text("submitted")
    desk.go_back()

    expect(desk.get_by_role("heading", name="Your label")).to_be_visible()
    expect(desk.locator("#label-form")).to_have_count(0)


# --- the hold -------------------------------------------------------------------------------------------------------


def test_a_hold_that_ran_out_keeps_the_text_and_can_be_renewed(desk: Page, held: Trajectory) -> None:
    reasoning(desk).fill(TEXT)
    expect(desk.locator("#saved")).to_have_text(SAVED)
    Assignment.objects.update(lease_expires_at=timezone.now() - timedelta(seconds=1))
    workflow.return_expired_leases(held.submission)
    desk.reload()
    expect(desk.locator("#lease")).to_have_text("reservation has expired")
    expect(desk.locator("#run-out")).to_contain_text("what you typed is saved")
    expect(reasoning(desk)).to_have_value(TEXT)
    desk.get_by_role("button", name="Reserve it again").click()

    expect(desk.locator("#run-out")).to_be_hidden()
    expect(desk.locator("#lease")).to_be_hidden()
    assert Assignment.objects.get().lease_expires_at > timezone.now()


def test_no_free_slot_is_said_and_the_text_stays(desk: Page, held: Trajectory) -> None:
    reasoning(desk).fill(TEXT)
    expect(desk.locator("#saved")).to_have_text(SAVED)
    Assignment.objects.update(lease_expires_at=timezone.now() - timedelta(seconds=1))
    workflow.return_expired_leases(held.submission)
    for name in ("bob", "chen", "ed"):
        person = testing.person(name)
        workflow.add_member(Person.objects.get(username="mira"), held.submission, person, "annotator")
        workflow.claim_this(person, held)
    desk.reload()
    desk.get_by_role("button", name="Reserve it again").click()

    expect(desk.locator("#run-out")).to_contain_text("Your reservation has ended. Your draft is saved.")
    expect(reasoning(desk)).to_have_value(TEXT)


def test_the_end_of_a_hold_is_shown_when_it_is_near_and_moves_with_work(desk: Page) -> None:
    expect(desk.locator("#lease")).to_be_hidden()
    Assignment.objects.update(lease_expires_at=timezone.now() + timedelta(minutes=5))
    desk.clock.install()
    desk.reload()
    expect(desk.locator("#lease")).to_have_text(re.compile(r"reserved until \d\d:\d\d"))
    desk.keyboard.press("j")
    desk.clock.run_for(21_000)

    expect(desk.locator("#lease")).to_be_hidden()
    assert Assignment.objects.get().lease_expires_at > timezone.now() + timedelta(minutes=50)


# --- activity -------------------------------------------------------------------------------------------------------


def test_idle_time_is_not_counted(desk: Page) -> None:
    Activity.objects.all().delete()
    desk.clock.install()
    desk.reload()
    expect(desk.locator("html")).to_have_class(re.compile("scripted"))
    sent: list[float] = []
    desk.on("request", lambda request: sent.append(seconds_of(request)) if "/activity" in request.url else None)
    desk.keyboard.press("j")
    for _ in range(4):  # the last one has what was left of the minute
        with desk.expect_response(re.compile("/activity$")):
            desk.clock.run_for(20_000)
    desk.clock.run_for(600_000)

    assert len(sent) == 4
    assert 60 <= sum(sent) <= 75


def seconds_of(request: Any) -> float:
    return float(re.search(r"seconds=([\d.]+)", request.post_data)[1])


def test_desk_sends_no_body_that_the_proxy_takes_for_a_file(desk: Page) -> None:
    """config/Caddyfile routes multipart bodies to the server for uploads, where slow ones may hold every thread."""
    sent: dict[str, str] = {}
    desk.on("request", lambda each: sent.update({each.url.rpartition("/")[2]: content_type(each)}))
    desk.keyboard.press("j")
    fill_in(desk)
    expect(desk.locator("#saved")).to_have_text(SAVED)
    submit(desk)
    expect(desk.locator(".messages .success")).to_contain_text("submitted")

    assert {"draft", "activity", "submit"} <= sent.keys()
    assert [address for address, sent_as in sent.items() if sent_as.startswith("multipart/")] == []


def content_type(request: Any) -> str:
    return str(request.headers.get("content-type", ""))


def test_the_label_knows_how_long_it_took_and_which_steps_were_opened(desk: Page, held: Trajectory) -> None:
    desk.keyboard.press("j")
    expect(desk.locator("#stage")).to_have_attribute("data-index", "1")
    desk.keyboard.press("End")
    expect(desk.locator("#stage")).to_have_attribute("data-index", "3")
    fill_in(desk)
    submit(desk)
    expect(desk.locator(".messages .success")).to_contain_text("submitted")

    label = Label.objects.get()
    assert label.steps_seen == [0, 1, 3]
    assert label.active_seconds is not None


# --- undo, and what comes next --------------------------------------------------------------------------------------


TYPED = """() => [...new FormData(document.getElementById("label-form"))]
    .filter(([name]) => !["csrfmiddlewaretoken", "version"].includes(name))"""


def test_u_brings_the_desk_back_as_it_was_before_the_submit(desk: Page, held: Trajectory, settings: Any) -> None:
    settings.UNDO_SECONDS = 15
    fill_in(desk)
    before = desk.evaluate(TYPED)
    submit(desk)
    expect(desk.locator(".messages .success")).to_contain_text("Undo")
    expect(desk.locator("html")).to_have_class(re.compile("scripted"))
    desk.keyboard.press("u")
    expect(desk.locator(".messages")).to_contain_text("Submit undone.")

    assert desk.evaluate(TYPED) == before
    expect(desk.locator("#label-form .complete")).to_be_visible()
    assert not Label.objects.exists()


def test_a_submit_becomes_a_label_though_its_window_is_closed(
    desk: Page, held: Trajectory, settings: Any, monkeypatch: Any
) -> None:
    settings.UNDO_SECONDS = 15
    fill_in(desk)
    submit(desk)
    expect(desk.locator(".messages .success")).to_contain_text("Undo")
    desk.close()
    late = clock.now() + timedelta(seconds=16)
    monkeypatch.setattr(clock, "now", lambda: late)
    jobs.submit_parked()

    assert Label.objects.get().reasoning == TEXT


def test_u_revises_a_label_that_counts_with_everything_in_it(desk: Page, held: Trajectory) -> None:
    fill_in(desk)
    submit(desk)
    expect(desk.locator(".messages .success")).to_contain_text("Undo")
    expect(desk.locator("html")).to_have_class(re.compile("scripted"))  # keys work from then on
    desk.keyboard.press("u")

    expect(reasoning(desk)).to_have_value(TEXT)
    expect(desk.locator("[name=verdict]:checked")).to_have_value("2")
    expect(desk.get_by_label("Reason for the revision")).to_have_value("undone right after submitting")
    reasoning(desk).fill("Another thought.")
    submit(desk)
    expect(desk.locator(".messages .success")).to_contain_text("revised")
    found = [(label.revision, label.reasoning) for label in Label.objects.order_by("revision")]
    assert found == [(1, TEXT), (2, "Another thought.")]
    assert Label.objects.get(revision=2).revision_reason == "undone right after submitting"


def test_u_works_in_the_queue_too_when_nothing_is_left(desk: Page, held: Trajectory) -> None:
    for trajectory in Trajectory.objects.exclude(pk=held.pk):
        workflow.submit(alice(), workflow.claim_this(alice(), trajectory).trajectory, testing.content(trajectory))
    fill_in(desk)
    submit(desk)
    desk.wait_for_url(re.compile(r"\bwork/\d+"))
    desk.keyboard.press("u")

    expect(reasoning(desk)).to_have_value(TEXT)


def test_the_next_one_is_held_and_fetched_before_the_submit(desk: Page, held: Trajectory) -> None:
    with desk.expect_request(re.compile(rf"/trajectories/(?!{held.pk}/)\d+/steps/0/display")) as fetched:
        fill_in(desk)
    following = Assignment.objects.exclude(trajectory=held).get().trajectory_id
    assert f"/trajectories/{following}/" in fetched.value.url
    submit(desk)

    desk.wait_for_url(re.compile(rf"/trajectories/{following}$"))
    assert Assignment.objects.filter(lease_expires_at__isnull=False).count() == 1


# --- the adjudicator's desk ------------------------------------------------------------------------------------------


def test_the_adjudicators_desk_loses_nothing_either(page: Page, live_server: Any, held: Trajectory) -> None:
    cast = {name: Person.objects.get(username=name) for name in ("alice", "bob", "chen", "carol")}
    testing.label_all(cast, held.submission, {"task_0000": [0, 1, 1]})
    workflow.open_adjudication(cast["carol"], held)
    sign_in(page, live_server.url, "carol")
    page.goto(live_server.url + reverse("adjudication", args=[held.pk]))
    expect(page.locator("html")).to_have_class(re.compile("scripted"))
    fill_in(page)
    page.locator("[name=criterion]").select_option("not_executable")
    page.context.set_offline(True)
    submit(page)
    expect(page.locator("#notices")).to_contain_text("Not submitted yet: you are offline.")
    end_session(page)
    page.context.set_offline(False)
    sign_in_again(page)

    expect(page.locator(".messages .success")).to_be_visible()
    decided = held.adjudications.get()
    assert (decided.reasoning, decided.steps_seen) == (TEXT, [0])
    assert decided.active_seconds is not None
    assert copies(page) == 0
