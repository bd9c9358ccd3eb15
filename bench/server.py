"""Server as in `make run`, with temporary data and a submission for measurements of the desk."""

from __future__ import annotations

import io
import socket
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TypeVar

import numpy
from PIL import Image, ImageDraw

from bench import scratch
from config import embedded
from config.processes import CannotRun, stopping_children

Made = TypeVar("Made")
STEPS = 20
THOUGHT = (
    "The list of results is open and sorted by relevance. The task asks for a range of prices and for a rating, and "
    "neither is set. I will open the filters on the left, choose the range first, wait until the list has changed, "
    "and then take the rating, which the site forgets otherwise."
)


def picture(number: int) -> bytes:
    """Return a PNG of 1280x720 with texts and photographs of a shop; 48 kB as WebP, twice the size of recordings."""
    random = numpy.random.default_rng(number // 3)  # three steps on each page of the shop
    image = Image.new("RGB", (1280, 720), "white")
    draw = ImageDraw.Draw(image)
    draw.rectangle((0, 0, 1280, 64), fill=(24, 60 + number % 120, 110))
    for row in range(14):
        draw.text((24, 90 + row * 28), f"Filter {row} of {number}: {random.integers(10**6)} results", "black")
    for card in range(8):
        left, top = 290 + card % 4 * 245, 90 + card // 4 * 315
        coarse = random.integers(40, 255, (4, 4, 3), dtype=numpy.uint8)
        photo = numpy.asarray(Image.fromarray(coarse).resize((225, 190), Image.Resampling.BICUBIC)).astype(float)
        photo += random.normal(0, 2, photo.shape)
        image.paste(Image.fromarray(photo.clip(0, 255).astype(numpy.uint8)), (left, top))
        for line in range(3):
            draw.text((left, top + 198 + line * 20), f"Article {random.integers(10**9)} with {card} of {line}", "black")
    draw.rectangle((20, 85 + number % 3 * 28, 260, 112 + number % 3 * 28), outline="red", width=2)
    stream = io.BytesIO()
    image.save(stream, "PNG", compress_level=1)
    return stream.getvalue()


def make_submission(folder: Path, count: int) -> int:
    """Create ``count`` trajectories with renditions for alice, bob and chen; return the submission's primary key."""
    from annotation import ingest, jobs  # noqa: PLC0415 - after the setup
    from annotation.tests import testing  # noqa: PLC0415 - after the setup

    pictures = [picture(number) for number in range(STEPS)]
    for number in range(count):
        result = testing.result_v2(number, STEPS)
        for entry in result["action_history"]:
            entry["thought"] = f"Step {entry['step']}: {THOUGHT}"
        images = {f"{n:04d}.png": scratch.mark_png(data, number * STEPS + n) for n, data in enumerate(pictures)}
        testing.write_trajectory(folder, result, images)
    points = ["priced from 500 to 800 dollars", "rated 4 stars and up", "shown by lowest price first"]
    benchmark = testing.benchmark(count, key_points=points)
    report, made = ingest.import_submission(folder, benchmark=benchmark, agent_name="Bench")
    if made is None:
        raise CannotRun(f"The benchmark's own package was refused: {report.as_json()}")
    testing.cast(made)
    jobs.prepare_pictures(made.pk)
    return int(made.pk)


@contextmanager
def served(port: int, make: Callable[[Path], Made]) -> Iterator[tuple[str, Made]]:
    """Run web server, worker and scheduler as `make run`, on temporary data; yield the address and ``make``'s result.

    ``make`` gets an empty folder; the database is empty, too.
    """
    with tempfile.TemporaryDirectory(prefix="webverdict-bench-") as folder:
        scratch.set_up(folder)
        made = _prepare(Path(folder), make)
        with stopping_children() as children:
            embedded.start_children(children, Path(folder), port)
            embedded.wait_until(lambda: embedded.answers(port), children, children[0])
            yield f"http://{embedded.HOST}:{port}", made


def _prepare(data: Path, make: Callable[[Path], Made]) -> Made:
    from django.core.management import call_command  # noqa: PLC0415 - after the setup
    from django.db import connections  # noqa: PLC0415

    for name in ("log", "tmp", "broker", "images"):
        (data / name).mkdir(exist_ok=True)
    call_command("migrate", verbosity=0, interactive=False)
    embedded.collect_static(data)
    made = make(data / "tmp" / "package")
    connections.close_all()
    return made


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind((embedded.HOST, 0))
        return int(probe.getsockname()[1])
