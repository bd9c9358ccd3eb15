"""The image store on a local disk: what is in use, or about to be, is not taken away."""

import io
import os
from datetime import timedelta

import pytest
from django.core.files.base import ContentFile
from django.core.files.storage import default_storage
from django.utils import timezone
from PIL import Image

from annotation import ingest, screenshots
from annotation.models import Screenshot
from annotation.tests import testing

pytestmark = pytest.mark.django_db
DAY = timedelta(days=1)


@pytest.fixture(autouse=True)
def images_in_a_folder_of_their_own(tmp_path, settings):
    settings.MEDIA_ROOT = tmp_path / "images"


def left_by_a_stopped_import(data, ago):
    """Keep ``data`` as an import did that stopped ``ago``; its SHA-256."""
    sha256 = screenshots.inspect(data).sha256
    screenshots.keep_bytes(sha256, data)
    at = (timezone.now() - ago).timestamp()
    os.utime(default_storage.path(f"originals/{sha256[:2]}/{sha256}"), (at, at))
    return sha256


def test_an_old_file_that_an_import_takes_up_again_is_not_pruned_from_under_it():
    sha256, other = (left_by_a_stopped_import(testing.png(n), 2 * DAY) for n in (1, 2))
    screenshots.keep_bytes(sha256, testing.png(1))
    assert screenshots.prune(DAY) == 1
    assert screenshots.original(sha256) == testing.png(1)
    assert not default_storage.exists(f"originals/{other[:2]}/{other}")


def test_a_file_that_becomes_old_while_the_import_runs_is_renewed_as_well():
    """The import takes it up when it has some hours left, and names it in the database only later."""
    sha256 = left_by_a_stopped_import(testing.png(1), DAY - timedelta(hours=2))
    screenshots.keep_bytes(sha256, testing.png(1))
    assert screenshots.prune(timedelta(hours=20)) == 0


def test_original_has_one_file_when_two_imports_save_it_at_once():
    """Both have seen that it is not there yet."""
    names = [default_storage.save("originals/ab/abc", ContentFile(b"same")) for _ in range(2)]
    assert names == ["originals/ab/abc"] * 2
    assert default_storage.listdir("originals/ab")[1] == ["abc"]


def test_a_young_file_is_not_touched():
    sha256 = left_by_a_stopped_import(testing.png(1), timedelta(hours=1))
    name = f"originals/{sha256[:2]}/{sha256}"
    before = default_storage.get_modified_time(name)
    screenshots.keep_bytes(sha256, testing.png(1))
    assert default_storage.get_modified_time(name) == before


def test_a_prune_in_the_middle_of_an_import_takes_nothing_of_it(tmp_path):
    shops = testing.benchmark(1)
    package = testing.write_submission(tmp_path / "package", 1)
    for step in range(3):
        left_by_a_stopped_import(testing.png(step), 2 * DAY)
    reported, pruned = [], []

    def prune_before_there_are_rows(done, total):
        reported.append(done)
        if len(reported) == 2:  # the check reports once for each trajectory, then the taking of its files
            assert not Screenshot.objects.exists()
            pruned.append(screenshots.prune(DAY))

    _, submission = ingest.import_submission(
        package, benchmark=shops, agent_name="Agent", progress=prune_before_there_are_rows
    )
    assert pruned == [0]
    for step in submission.trajectories.get().steps.all():
        assert screenshots.original(step.screenshot.sha256) == testing.png(step.index)


def kept(size, number=1):
    data = testing.png(number, size)
    return screenshots.store(data, screenshots.inspect(data))


def test_what_an_import_prepares_needs_the_original_no_more():
    screenshot = kept((320, 200))
    screenshots.prepare(screenshot)
    default_storage.delete(f"originals/{screenshot.sha256[:2]}/{screenshot.sha256}")

    for kind in (screenshots.Rendition.THUMBNAIL, screenshots.Rendition.DISPLAY):
        assert screenshots.rendition(screenshot, kind)[0]
    assert screenshots.judge_ready(screenshot.sha256).startswith(b"\xff\xd8")


@pytest.mark.parametrize(
    ("size", "sent"), [((1280, 1600), (1280, 1600)), ((4096, 400), (2048, 200)), ((1280, 16000), (640, 8000))]
)
def test_models_are_shown_every_pixel_up_to_a_limit_and_a_smaller_picture_beyond_it(size, sent):
    assert Image.open(io.BytesIO(screenshots.judge_ready(kept(size).sha256))).size == sent


def test_models_are_shown_the_same_bytes_every_time_and_nothing_but_the_picture():
    data = testing.png(3) + b"<script>alert(1)</script>"
    screenshot = screenshots.store(data, screenshots.inspect(data))
    first = screenshots.judge_ready(screenshot.sha256)
    default_storage.delete(f"renditions/judge/{screenshot.sha256[:2]}/{screenshot.sha256}")

    assert screenshots.judge_ready(screenshot.sha256) == first
    assert b"script" not in first


def gif():
    Image.new("P", (2, 2)).save(file := io.BytesIO(), "GIF")
    return file.getvalue()


@pytest.mark.parametrize("data", [b"<svg xmlns='http://www.w3.org/2000/svg'><script/></svg>", b"<?xml?><svg/>", gif()])
def test_svg_and_other_formats_are_no_screenshots(data):
    with pytest.raises(screenshots.ScreenshotError, match="cannot be decoded as PNG, JPEG or WebP"):
        screenshots.inspect(data)
