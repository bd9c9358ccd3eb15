"""Rows to judge in an instance of its own: ``python -m config.tests.judging NAME TRAJECTORIES STEPS`` starts a run.

Every step has a picture of its own, which exists as its judge-ready JPEG only: nobody imports these. The judge is
WebJudge; one model name for each NAME, so that nothing is in the cache of another.
"""

from __future__ import annotations

import hashlib
import io
import json
import sys
from pathlib import Path
from typing import Any

import django

CONCURRENCY = 8


def main(name: str, trajectories: int, steps: int, **options: Any) -> dict[str, int]:
    from annotation.tests.testing import bare_submission, cast  # once the settings are there
    from judges.models import ModelTerms
    from judges.tests.builders import defined_judge, started_run

    submission = bare_submission(trajectories, steps, agent=name)
    picture_steps(submission)
    model = f"fake-{name}"
    ModelTerms.objects.create(
        model=model, input_price=1, output_price=1, requests_per_minute=1_000_000, tokens_per_minute=10**9
    )
    judge = defined_judge(name, scorer="webjudge", model=model, concurrency=CONCURRENCY)
    run = started_run(cast(submission)["mira"], submission, judge, **options)
    return {"run": run.pk, "calls": trajectories * (steps + 2) * run.repetitions, "items": run.items.count()}


def picture_steps(submission: Any) -> None:
    """A screenshot for each step, whose judge-ready JPEG is the same small one with a number behind its end."""
    from django.conf import settings
    from PIL import Image

    from annotation.models import Screenshot, Step

    stream = io.BytesIO()
    Image.new("RGB", (16, 16), "white").save(stream, "JPEG")
    steps = list(Step.objects.filter(trajectory__submission=submission))
    shown = [
        Screenshot(sha256=hashlib.sha256(f"step {step.pk}".encode()).hexdigest(), media_type="image/png")
        for step in steps
    ]
    for step, screenshot in zip(steps, shown, strict=True):
        screenshot.width = screenshot.height = 16
        screenshot.size = 100
        file = Path(settings.MEDIA_ROOT, "renditions", "judge", screenshot.sha256[:2], screenshot.sha256)
        file.parent.mkdir(parents=True, exist_ok=True)
        jpeg = stream.getvalue() + str(step.pk).encode()
        file.write_bytes(jpeg + hashlib.sha256(jpeg).digest())  # sealed, as `annotation.screenshots` reads it
    Screenshot.objects.bulk_create(shown, batch_size=1000)
    for step, screenshot in zip(steps, shown, strict=True):
        step.screenshot = screenshot
        step.file_name = f"{step.index:04d}.png"
    Step.objects.bulk_update(steps, ["screenshot", "file_name"], batch_size=500)


if __name__ == "__main__":
    django.setup()
    options = json.loads((sys.argv[4:] or ["{}"])[0])
    sys.stdout.write(json.dumps(main(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), **options)))
