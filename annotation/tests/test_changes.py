"""Where two screenshots differ: what is found, what is noise, and that it is kept."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any

import pytest
from django.core.files.storage import default_storage
from PIL import Image, ImageDraw

from annotation import changes, jobs
from annotation.changes import MOST_BOXES, VISIBLE, find_change
from annotation.models import PictureChange, Submission, Trajectory
from annotation.tests import testing

SIZE = (1280, 720)


def page(*boxes: tuple[int, int, int, int], size: tuple[int, int] = SIZE, fill: str = "black") -> Image.Image:
    """A page with text all over it, and ``boxes`` painted over it as (left, top, right, bottom)."""
    image = Image.new("RGB", size, "white")
    draw = ImageDraw.Draw(image)
    for line in range(0, size[1], 24):
        draw.text((20, line), f"Line {line}: 17 laptops with at least 16 GB, sorted by price", fill="#333")
    for box in boxes:
        draw.rectangle(box, fill=fill)
    return image


def encoded(image: Image.Image, kind: str, quality: int) -> Image.Image:
    stream = io.BytesIO()
    image.save(stream, kind, quality=quality)
    return Image.open(stream).convert("RGB")


def inside(box: tuple[int, int, int, int], x: int, y: int) -> bool:
    return box[0] <= x < box[0] + box[2] and box[1] <= y < box[1] + box[3]


def test_the_same_picture_has_not_changed() -> None:
    found = find_change(page(), page())

    assert found == changes.Change([], 0.0)


def test_a_box_surrounds_what_changed_closely() -> None:
    found = find_change(page(), page((600, 300, 720, 360)))

    assert found is not None
    [box] = found.boxes
    assert inside(box, 600, 300)
    assert inside(box, 720, 360)
    assert box[2] <= 120 + 2 * 16
    assert box[3] <= 60 + 2 * 16
    assert 0.007 < found.share < 0.015


def test_changes_that_are_far_apart_have_boxes_of_their_own_from_top_to_bottom() -> None:
    found = find_change(page(), page((40, 600, 80, 640), (1100, 40, 1140, 80)))

    assert found is not None
    assert [inside(box, *point) for box, point in zip(found.boxes, [(1120, 60), (60, 620)], strict=True)] == [True] * 2


@pytest.mark.parametrize(("kind", "quality"), [("JPEG", 60), ("JPEG", 85), ("WEBP", 60), ("WEBP", 85)])
def test_the_noise_of_an_encoding_is_no_change(kind: str, quality: int) -> None:
    found = find_change(page(), encoded(page(), kind, quality))

    assert found is not None
    assert found.share == 0


def test_a_tick_and_a_pale_highlight_are_changes() -> None:
    tick = page()
    ImageDraw.Draw(tick).line([(900, 103), (905, 109), (914, 97)], fill="#1a56db", width=3)

    for after in (tick, page((800, 200, 1100, 240), fill="#e8f0fe")):
        found = find_change(page(), after)
        assert found is not None
        assert len(found.boxes) == 1
    assert find_change(page(), tick).share < VISIBLE  # type: ignore[union-attr]


def test_there_are_never_more_boxes_than_a_person_can_look_at() -> None:
    spots = [(x, y, x + 8, y + 8) for x in range(700, 1260, 80) for y in range(20, 700, 80)]
    found = find_change(page(), page(*spots))

    assert found is not None
    assert 1 <= len(found.boxes) <= MOST_BOXES
    assert all(any(inside(box, x + 4, y + 4) for box in found.boxes) for x, y, _, _ in spots)


def test_what_a_page_has_grown_by_is_changed() -> None:
    found = find_change(page(), page(size=(1280, 1000)))

    assert found is not None
    [box] = found.boxes
    assert 700 <= box[1] <= 720
    assert box[1] + box[3] == 1000
    assert found.share == pytest.approx(0.28, abs=0.03)


@pytest.mark.parametrize("size", [(1000, 720), (1280, 3000), (640, 360)])
def test_pictures_of_other_sizes_are_not_compared(size: tuple[int, int]) -> None:
    assert find_change(page(), page(size=size)) is None


def test_a_very_tall_page_is_compared() -> None:
    found = find_change(page(size=(1280, 20_000)), page((0, 15_000, 1200, 15_300), size=(1280, 20_000)))

    assert found is not None
    [box] = found.boxes
    assert 14_800 <= box[1] <= 15_000


# --- of steps --------------------------------------------------------------------------------------------------------


def submission_of(folder: Path, pictures: list[Image.Image]) -> Submission:
    """One trajectory with these pictures."""
    images = {}
    for number, picture in enumerate(pictures):
        stream = io.BytesIO()
        picture.save(stream, "PNG")
        images[f"{number:04d}.png"] = stream.getvalue()
    testing.write_trajectory(folder, testing.result_v2(0, len(pictures)), images)
    _, made = testing.ingest.import_submission(folder, benchmark=testing.benchmark(1), agent_name="Agent")
    return made


@pytest.fixture
def walked(db: Any, tmp_path: Path) -> Trajectory:
    """Four steps: a change, no change, another size."""
    pictures = [page(), page((600, 300, 720, 360)), page((600, 300, 720, 360)), page(size=(640, 360))]
    return submission_of(tmp_path / "package", pictures).trajectories.get()


def test_every_step_is_compared_with_the_one_before(walked: Trajectory) -> None:
    found = changes.find_changes(walked, 0, 3)

    assert list(found) == [0, 1, 2, 3]
    assert found[0] is None
    assert found[1] is not None
    assert len(found[1].boxes) == 1
    assert found[2] == changes.Change([], 0.0)
    assert found[3] is None


def test_what_was_found_is_kept_and_not_computed_again(walked: Trajectory) -> None:
    first = changes.find_changes(walked, 0, 3)
    assert PictureChange.objects.count() == 3
    default_storage.delete(f"originals/{(s := walked.steps.get(index=1).screenshot.sha256)[:2]}/{s}")

    assert changes.find_changes(walked, 0, 3) == first
    assert PictureChange.objects.count() == 3


def test_a_lost_picture_is_not_compared_and_not_held_against_it_for_ever(walked: Trajectory) -> None:
    sha256 = walked.steps.get(index=1).screenshot.sha256
    data = testing.ingest.screenshots.original(sha256)
    default_storage.delete(f"originals/{sha256[:2]}/{sha256}")
    assert changes.find_changes(walked, 1, 1) == {1: None}

    testing.ingest.screenshots.keep_bytes(sha256, data)
    assert changes.find_changes(walked, 1, 1)[1] is not None


def test_a_step_without_a_screenshot_has_nothing_to_compare(walked: Trajectory) -> None:
    walked.steps.filter(index=1).update(screenshot=None)

    found = changes.find_changes(walked, 1, 2)
    assert found == {1: None, 2: None}


def test_the_job_of_the_pictures_makes_the_changes_too(walked: Trajectory) -> None:
    jobs.prepare_pictures(walked.submission_id)
    assert PictureChange.objects.count() == 3

    jobs.prepare_pictures(walked.submission_id)
    assert PictureChange.objects.count() == 3
