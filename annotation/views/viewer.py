"""The part of a desk that shows a trajectory: one step large, and a strip of its neighbours."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from django.http import HttpRequest

from annotation.models import Screenshot, Step, Trajectory

AROUND = 30  # steps of the strip on each side of the current one; a page shows about a dozen
TALL = 1.6  # height by width from which a picture is fitted by its width and scrolls


@dataclass(frozen=True, slots=True)
class Mark:
    """Where the action pointed, in the picture's pixels; ``outside`` when that is not on the picture."""

    x: float
    y: float
    radius: float
    outside: bool


@dataclass(frozen=True, slots=True)
class Viewer:
    """What the template needs to show step ``current`` of ``count`` steps, and the strip around it."""

    trajectory: Trajectory
    current: Step | None
    strip: list[Step]
    count: int
    address: str  # of the page, up to where "step=3" follows

    @property
    def index(self) -> int:
        return self.current.index if self.current else 0

    @property
    def last(self) -> int:
        return max(self.count - 1, 0)

    @property
    def previous(self) -> int | None:
        return self.index - 1 if self.index > 0 else None

    @property
    def next(self) -> int | None:
        return self.index + 1 if self.index < self.last else None

    @property
    def earlier(self) -> int | None:
        """A step before the strip, to jump to."""
        return max(self.index - 2 * AROUND, 0) if self.strip and self.strip[0].index > 0 else None

    @property
    def later(self) -> int | None:
        return min(self.index + 2 * AROUND, self.last) if self.strip and self.strip[-1].index < self.last else None

    @property
    def mark(self) -> Mark | None:
        step = self.current
        if step is None or step.screenshot is None or step.click_x is None or step.click_y is None:
            return None
        width, height = step.screenshot.width, step.screenshot.height
        outside = not (0 <= step.click_x <= width and 0 <= step.click_y <= height)
        return Mark(step.click_x, step.click_y, max(width, 320) / 70, outside)

    @property
    def tall(self) -> bool:
        picture: Screenshot | None = self.current.screenshot if self.current else None
        return picture is not None and picture.height > TALL * picture.width


def viewer(
    request: HttpRequest, trajectory: Trajectory, count: int | None = None, address: str | None = None
) -> Viewer:
    """The viewer at the step that ?step= names; one query when ``count`` is known.

    ``address`` is that of the page, where it differs from what was asked for: a form that was refused.
    """
    count = trajectory.steps.count() if count is None else count
    index = min(max(_number(request), 0), max(count - 1, 0))
    strip = list(
        trajectory.steps.filter(index__gte=index - AROUND, index__lte=index + AROUND).select_related("screenshot")
    )
    current = next((step for step in strip if step.index == index), None)
    revising = "revise&" if "revise" in request.GET else ""
    return Viewer(trajectory, current, strip, count, address or f"{request.path}?{revising}")


def _number(request: HttpRequest) -> int:
    return number(request.POST.get("step") or request.GET.get("step")) or 0


def number(value: Any) -> int | None:
    """A step number out of an address or a form; None for anything else."""
    text = str(value or "")
    return int(text) if text.isascii() and text.isdigit() and len(text) < 10 else None
