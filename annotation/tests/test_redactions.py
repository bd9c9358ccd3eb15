"""Parts of a screenshot are covered in what leaves the instance; the original, and what people see, stay."""

from __future__ import annotations

import hashlib
import io
from datetime import timedelta

import pytest
from django.core.exceptions import PermissionDenied
from django.core.files.storage import default_storage
from django.db import DatabaseError, IntegrityError, connection, transaction
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.urls import reverse
from PIL import Image, PngImagePlugin

from annotation import redactions, screenshots, workflow
from annotation.models import Event, Redaction, Submission
from annotation.models.events import first_broken
from annotation.tests import testing
from annotation.views.pictures import INERT
from annotation.workflow import Conflict, Incomplete, integrity

pytestmark = pytest.mark.django_db
BOX = [10, 20, 30, 40]
BLACK = (0, 0, 0)


@pytest.fixture(autouse=True)
def images_in_a_folder_of_their_own(tmp_path, settings):
    settings.MEDIA_ROOT = tmp_path / "images"


@pytest.fixture
def step(submission):
    return submission.trajectories.get(position=0).steps.get(index=1)


@pytest.fixture
def redact(people, submission, step):
    """A function that redacts the picture of the step as mira."""

    def made(boxes=(BOX,), reason="A face.", person="mira"):
        return workflow.redact(people[person], submission, step.screenshot, [*boxes], reason)

    return made


def pixels(sha256):
    return Image.open(io.BytesIO(screenshots.original(sha256)))


# --- the verb ---------------------------------------------------------------------------------------------------------


def test_the_covered_picture_is_black_in_the_boxes_and_the_same_elsewhere(redact, step):
    before = screenshots.original(step.screenshot.sha256)
    made = redact([BOX, [319, 199, 1, 1]])
    covered, original = pixels(made.redacted), Image.open(io.BytesIO(before)).convert("RGB")
    assert (covered.format, covered.mode, covered.size) == ("PNG", "RGB", original.size)
    inside = {(x, y) for x in range(10, 40) for y in range(20, 60)} | {(319, 199)}
    wrong = [
        (x, y)
        for x in range(320)
        for y in range(200)
        if covered.getpixel((x, y)) != (BLACK if (x, y) in inside else original.getpixel((x, y)))
    ]
    assert wrong == []
    assert made.size == len(screenshots.original(made.redacted))
    assert hashlib.sha256(screenshots.original(made.redacted)).hexdigest() == made.redacted
    assert screenshots.original(step.screenshot.sha256) == before


def test_the_same_boxes_give_the_same_bytes(step):
    assert screenshots.covered(step.screenshot.sha256, [BOX]) == screenshots.covered(step.screenshot.sha256, [BOX])


def encoded(image, image_format, **options):
    stream = io.BytesIO()
    image.save(stream, image_format, **options)
    return stream.getvalue()


def with_text():
    text = PngImagePlugin.PngInfo()
    text.add_text("Author", "Zwetkowa")
    exif = Image.Exif()
    exif[315] = "Zwetkowa"  # artist
    return encoded(
        Image.new("RGBA", (60, 90), (9, 9, 200, 128)), "PNG", pnginfo=text, exif=exif, icc_profile=b"Zwetkowa"
    )


PICTURES = {
    "PNG with text, exif and profile": with_text,
    "JPEG": lambda: encoded(Image.new("RGB", (60, 90), "teal"), "JPEG", comment=b"Zwetkowa"),
    "CMYK": lambda: encoded(Image.new("CMYK", (60, 90), (9, 90, 9, 9)), "JPEG"),
    "WebP": lambda: encoded(Image.new("RGB", (60, 90), "teal"), "WEBP", lossless=True),
    "palette": lambda: encoded(Image.new("RGB", (60, 90), "teal").convert("P"), "PNG"),
    "16 bit": lambda: encoded(Image.new("I;16", (60, 90), 40_000), "PNG"),
    "tall": lambda: encoded(Image.new("RGB", (60, 20_000), "teal"), "PNG"),
}


@pytest.mark.parametrize("kind", PICTURES)
def test_every_kind_of_picture_can_be_covered_and_keeps_nothing_but_pixels(submission, kind):
    data = PICTURES[kind]()
    kept = screenshots.store(data, screenshots.inspect(data))
    made = screenshots.covered(kept.sha256, [[5, 6, 7, 8]])
    image = Image.open(io.BytesIO(made))
    assert image.size == (kept.width, kept.height)
    assert image.getpixel((5, 6)) == image.getpixel((11, 13)) == BLACK
    assert BLACK not in (image.getpixel((4, 6)), image.getpixel((12, 13)), image.getpixel((11, 14)))
    assert b"wetkowa" not in made
    assert image.info == {}
    assert [kind for kind in (b"tEXt", b"iTXt", b"eXIf", b"iCCP", b"pHYs", b"tIME") if kind in made] == []


def test_a_redaction_is_an_event_with_everything_about_it(redact, submission, step):
    made = redact()
    event = Event.objects.filter(submission=submission).latest("sequence")
    assert (event.kind, event.actor_pseudonym) == ("screenshot_redacted", "M1")
    assert event.payload == {
        "original": step.screenshot.sha256,
        "revision": 1,
        "boxes": [BOX],
        "reason": "A face.",
        "redacted": made.redacted,
        "size": made.size,
    }
    assert first_broken(Event.objects.filter(submission=submission)) is None
    assert integrity.problems(submission) == []


def test_the_newest_revision_holds_and_none_is_lost(redact, submission, step):
    first, second = redact(), redact([[0, 0, 5, 5]], "Only the name.")
    assert (first.revision, second.revision) == (1, 2)
    assert redactions.map_redacted(submission) == {step.screenshot.sha256: second.redacted}
    assert [row.reason for row in redactions.find_history(submission)] == ["A face.", "Only the name."]


def test_no_boxes_take_the_redaction_back(redact, submission):
    redact()
    back = redact([], "It is the name of the shop.")
    assert (back.revision, back.redacted, back.size) == (2, "", 0)
    assert redactions.map_redacted(submission) == {}
    assert Event.objects.filter(submission=submission).latest("sequence").payload["redacted"] is None


def test_a_redaction_is_of_one_submission(redact, submission):
    redact()
    other = testing.bare_submission(1)
    assert redactions.map_redacted(other) == {}


def test_what_people_see_stays_as_it_was(redact, step):
    before = screenshots.rendition(step.screenshot, screenshots.Rendition.FULL)
    redact()
    assert screenshots.rendition(step.screenshot, screenshots.Rendition.FULL) == before


WRONG = {
    "left of it": [[-1, 0, 5, 5]],
    "no width": [[0, 0, 0, 5]],
    "beyond the right": [[316, 0, 5, 5]],
    "beyond the bottom": [[0, 196, 5, 5]],
    "a fraction": [[0, 0, 5.5, 5]],
    "a truth": [[0, 0, True, 5]],
    "three numbers": [[0, 0, 5]],
    "a huge number": [[0, 0, 10**30, 5]],
    "too many": [[n, 0, 5, 5] for n in range(51)],
    "nothing to take back": [],
}


@pytest.mark.parametrize("wrong", WRONG)
def test_boxes_that_cannot_be_are_refused(redact, wrong):
    with pytest.raises(Incomplete) as refused:
        redact(WRONG[wrong])
    assert {problem.where for problem in refused.value.problems} == {"boxes"}
    assert not Redaction.objects.exists()


def test_a_redaction_needs_a_reason_and_a_change(redact):
    with pytest.raises(Incomplete, match="Enter a reason"):
        redact(reason=" ")
    redact()
    with pytest.raises(Conflict, match="already"):
        redact(reason="Once more.")


@pytest.mark.parametrize("person", ["alice", "carol", "dave"])
def test_only_maintainers_redact(redact, person):
    with pytest.raises(PermissionDenied):
        redact(person=person)


def test_a_picture_of_another_submission_is_refused(people, submission, tmp_path):
    data = testing.png(77)
    foreign = screenshots.store(data, screenshots.inspect(data))
    with pytest.raises(Incomplete, match="No step of this submission"):
        workflow.redact(people["mira"], submission, foreign, [BOX], "A face.")


def test_a_frozen_submission_can_be_redacted_and_an_audited_one_not(redact, people, submission):
    testing.label_all(people, submission, {})
    workflow.draw_spot_checks(people["mira"], submission)
    testing.adjudicate_all(people["carol"], submission)
    workflow.freeze(people["mira"], submission)
    assert redact().revision == 1
    Submission.objects.filter(pk=submission.pk).update(audited=True)
    submission.refresh_from_db()
    with pytest.raises(Conflict, match="read-only"):
        redact([[0, 0, 1, 1]])


def test_a_lost_original_changes_nothing_and_says_so(redact, step):
    default_storage.delete(f"originals/{step.screenshot.sha256[:2]}/{step.screenshot.sha256}")
    with pytest.raises(Conflict, match="image store"):
        redact()
    assert not Redaction.objects.exists()


def test_a_redaction_is_never_overwritten(redact):
    made = redact()
    with pytest.raises(DatabaseError, match="append-only"), transaction.atomic():
        Redaction.objects.filter(pk=made.pk).update(reason="Nothing.")


@pytest.mark.parametrize("original", ["that of the other", ""])
def test_a_redaction_has_its_original_and_a_revision_of_its_own(redact, original):
    made = redact()
    again = Redaction.objects.get(pk=made.pk)
    again.pk, again.original = None, original and made.original
    with pytest.raises(IntegrityError), transaction.atomic():
        again.save(force_insert=True)


def test_the_covered_picture_is_not_pruned(redact):
    made = redact()
    assert screenshots.prune(timedelta(days=-1)) == 0
    assert screenshots.original(made.redacted)


# --- pages and API ----------------------------------------------------------------------------------------------------


def client_of(person):
    client = Client()
    client.force_login(person)
    return client


def form(*boxes, reason="A face."):
    names = ("x", "y", "width", "height")
    return {"reason": reason} | {name: [box[n] for box in boxes] for n, name in enumerate(names)}


@pytest.fixture
def page(step):
    return reverse("redaction", args=[step.trajectory_id, step.index])


def test_a_maintainer_covers_and_uncovers_a_picture_on_its_page_without_a_script(people, submission, step, page):
    mira = client_of(people["mira"])
    assert mira.get(page).status_code == 200
    answer = mira.post(page.replace("redaction", "redact"), form(BOX, ["", "", "", ""]), follow=True)
    assert answer.redirect_chain == [(page, 302)]
    assert [row.boxes for row in Redaction.objects.all()] == [[BOX]]
    assert "A face." in answer.content.decode()
    mira.post(page.replace("redaction", "redact"), form(["", "", "", ""], reason="Not one."))
    assert redactions.map_redacted(submission) == {}


def test_a_form_that_is_refused_keeps_what_was_typed(people, page):
    answer = client_of(people["mira"]).post(
        page.replace("redaction", "redact"), form([300, 1, 99, 7], ["x", 2, "", ""], reason="")
    )
    said = answer.content.decode()
    assert answer.status_code == 400
    assert 'value="300"' in said
    assert "whole numbers" in said
    assert not Redaction.objects.exists()


def test_the_covered_picture_is_served_to_maintainers_only(people, redact, step):
    address = reverse("redacted-picture", args=[step.trajectory_id, step.index])
    assert client_of(people["mira"]).get(address).status_code == 404
    made = redact()
    answer = client_of(people["mira"]).get(address)
    assert answer.content == screenshots.original(made.redacted)
    assert answer["Content-Security-Policy"] == INERT
    assert client_of(people["alice"]).get(address).status_code == 403
    assert client_of(people["dave"]).get(address).status_code == 404


@pytest.mark.parametrize(("name", "status"), [("alice", 403), ("carol", 403), ("dave", 404)])
def test_the_pages_are_for_maintainers(people, submission, page, name, status):
    client = client_of(people[name])
    assert (
        client.get(page).status_code
        == client.post(page.replace("redaction", "redact"), form(BOX)).status_code
        == status
    )
    assert client.get(reverse("redactions", args=[submission.pk])).status_code == status


def test_the_list_has_every_revision(people, redact, submission):
    redact()
    redact([], "It is a statue.")
    said = client_of(people["mira"]).get(reverse("redactions", args=[submission.pk])).content.decode()
    assert "A face." in said
    assert "It is a statue." in said
    assert "current</span>" not in said


def test_the_list_names_a_step_of_each_picture_and_which_revision_holds(people, redact, submission, step):
    redact()
    redact([[0, 0, 5, 5]], "Only the name.")
    first = submission.trajectories.get(position=0).steps.get(index=0)
    workflow.redact(people["mira"], submission, first.screenshot, [BOX], "Another face.")
    mira, address = client_of(people["mira"]), reverse("redactions", args=[submission.pk])
    with CaptureQueriesContext(connection) as queries:
        said = mira.get(address).content.decode()
    rows = said.split("<tbody>")[1].split("</tr>")[:3]
    expected = [("Another face.", 0, True), ("Only the name.", 1, True), ("A face.", 1, False)]
    for row, (reason, index, holds) in zip(rows, expected, strict=True):
        assert reason in row
        assert f'href="{reverse("redaction", args=[step.trajectory_id, index])}"' in row
        assert ("current</span>" in row) is holds
    rows = [each["sql"] for each in queries if each["sql"].startswith('SELECT "annotation_redaction"')]
    assert len(rows) == 1  # of one page, and not all that there ever was
    assert "LIMIT" in rows[0]


def test_the_api_redacts_and_lists(people, submission, step):
    mira, address = client_of(people["mira"]), reverse("api-redactions", args=[submission.pk])
    body = {"screenshot": step.screenshot.sha256, "boxes": [BOX], "reason": "A face."}
    made = mira.post(address, body, content_type="application/json")
    assert made.status_code == 201, made.content
    listed = mira.get(address).json()["results"]
    assert listed == [made.json()]
    expected = {"screenshot": step.screenshot.sha256, "revision": 1, "boxes": [BOX], "reason": "A face."}
    assert {name: listed[0][name] for name in expected} == expected
    assert listed[0]["redacted_by"] == "M1"


API_REFUSALS = [
    ("mira", {"boxes": [[0, 0, 5]]}, 400),
    ("mira", {"boxes": [[0, 0, 500, 5]]}, 400),
    ("mira", {"boxes": [["x", 0, 5, 5]]}, 400),
    ("mira", {"boxes": "no"}, 400),
    ("mira", {"reason": ""}, 400),
    ("mira", {"screenshot": "0" * 64}, 404),
    ("alice", {}, 403),
    ("dave", {}, 404),
]


@pytest.mark.parametrize(("name", "change", "status"), API_REFUSALS)
def test_the_api_refuses(people, submission, step, name, change, status):
    body = {"screenshot": step.screenshot.sha256, "boxes": [BOX], "reason": "A face."} | change
    address = reverse("api-redactions", args=[submission.pk])
    answer = client_of(people[name]).post(address, body, content_type="application/json")
    assert answer.status_code == status, answer.content
    assert not Redaction.objects.exists()
