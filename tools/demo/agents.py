"""The two demo agents: their actions in a browser, how each writes its actions, and the files that each saves."""

from __future__ import annotations

import io
import json
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from PIL import Image
from playwright.sync_api import Locator, Page

from tools.demo.tasks import DemoTask

VIEWPORT = {"width": 1280, "height": 720}
_COLOURS = 96  # enough for flat pages with grey text edges; more only makes the files larger
_LEADS_AWAY = "e => Boolean(e.closest('a, button') || e.hasAttribute('onchange'))"


@dataclass(frozen=True, slots=True)
class Moment:
    """A step of the agent: screenshot (``image``: PNG bytes as taken), thought, action; ``url`` is that of the page."""

    action: str
    thought: str
    url: str
    image: bytes
    status: str | None = None


def compressed(image: bytes, kind: str) -> bytes:
    """Return a screenshot with a palette of few colours, as PNG or as lossless WebP."""
    out = io.BytesIO()
    few = Image.open(io.BytesIO(image)).convert("RGB").quantize(_COLOURS, dither=Image.Dither.NONE)
    if kind == "png":
        few.save(out, "PNG", optimize=True)
    else:
        few.convert("RGB").save(out, "WEBP", lossless=True, quality=80, method=4)  # slower modes gain 4%
    return out.getvalue()


def write_json(path: Path, value: object) -> None:
    path.write_text(json.dumps(value, indent=1, ensure_ascii=False) + "\n", "utf-8")


class Agent:
    """An agent that uses the mouse at true coordinates and records a `Moment` per action; subclasses write files."""

    name: str

    def __init__(self, page: Page) -> None:
        self.page = page
        self.moments: list[Moment] = []
        self.answer = ""
        self.claim = ""

    def click(self, target: Locator, what: str, thought: str, *, failed: bool = False) -> None:
        """Click the middle of ``target``, which must be in view; ``failed``: the click had no effect."""
        x, y = self._middle(target)
        self._remember(self.spell_click(x, y, what), thought, failed=failed)
        if target.evaluate(_LEADS_AWAY):
            with self.page.expect_navigation():
                self.page.mouse.click(x, y)
        else:
            self.page.mouse.click(x, y)

    def type(self, target: Locator, text: str, what: str, thought: str) -> None:
        """Replace the text of a field."""
        x, y = self._middle(target)
        self._remember(self.spell_type(x, y, text, what), thought)
        self.page.mouse.click(x, y, click_count=3)
        self.page.keyboard.type(text)

    def enter(self, thought: str) -> None:
        """Press the Enter key in a search field and wait for the next page."""
        self._remember(self.spell_key("Enter"), thought)
        with self.page.expect_navigation():
            self.page.keyboard.press("Enter")

    def select(self, target: Locator, option: str, what: str, thought: str) -> None:
        """Choose an option by its label, in a list that reloads the page."""
        x, y = self._middle(target)
        self._remember(self.spell_select(x, y, option, what), thought)
        with self.page.expect_navigation():
            target.select_option(label=option)

    def scroll(self, pixels: int, thought: str) -> None:
        self._remember(self.spell_scroll(pixels), thought)
        self.page.evaluate("pixels => window.scrollBy(0, pixels)", pixels)

    def navigate(self, url: str, thought: str) -> None:
        self._remember(self.spell_navigate(url), thought, url=url)
        self.page.goto(url)

    def finish(self, answer: str, thought: str, claim: str = "SUCCESS") -> None:
        """Record the last step; ``claim`` is the agent's own statement about its success."""
        self.answer, self.claim = answer, claim
        self._remember(self.spell_finish(answer), thought, last=True)

    def save(self, folder: Path, task: DemoTask) -> None:
        """Write result.json, trajectory/ and agent_response.json into ``folder``."""
        (folder / "trajectory").mkdir(parents=True, exist_ok=True)
        response = {"task_id": task.task_id, "status": self.claim, "answer": self.answer}
        write_json(folder / "agent_response.json", response)
        self.save_trajectory(folder, task)

    def spell_click(self, x: int, y: int, what: str) -> str:
        raise NotImplementedError

    def spell_type(self, x: int, y: int, text: str, what: str) -> str:
        raise NotImplementedError

    def spell_key(self, key: str) -> str:
        raise NotImplementedError

    def spell_select(self, x: int, y: int, option: str, what: str) -> str:
        raise NotImplementedError

    def spell_scroll(self, pixels: int) -> str:
        raise NotImplementedError

    def spell_navigate(self, url: str) -> str:
        raise NotImplementedError

    def spell_finish(self, answer: str) -> str:
        raise NotImplementedError

    def save_trajectory(self, folder: Path, task: DemoTask) -> None:
        raise NotImplementedError

    def _remember(
        self, action: str, thought: str, *, url: str | None = None, failed: bool = False, last: bool = False
    ) -> None:
        status = None if last else ("FAILED" if failed else "SUCCESS")
        image = self.page.screenshot()
        self.moments.append(Moment(action, thought, url or self.page.url, image, status))

    def _middle(self, target: Locator) -> tuple[int, int]:
        box = target.bounding_box()
        if box is None:
            raise LookupError(f"{self.name}: {target} is not on {self.page.url}")
        x, y = round(box["x"] + box["width"] / 2), round(box["y"] + box["height"] / 2)
        if not (0 <= x < VIEWPORT["width"] and 0 <= y < VIEWPORT["height"]):
            raise LookupError(f"{self.name}: {target} is out of view at ({x}, {y}); scroll first")
        return x, y


class Careful(Agent):
    """An agent with Online-Mind2Web v2 files: verbose grammar, WebP screenshots, a URL on every step."""

    name = "careful"

    def spell_click(self, x: int, y: int, what: str) -> str:
        return f"coords({x}, {y}) -> CLICK -> {what}"

    def spell_type(self, x: int, y: int, text: str, what: str) -> str:
        return f"coords({x}, {y}) -> TYPE -> {text} into {what}"

    def spell_key(self, key: str) -> str:
        return f"page -> PRESS_KEY -> {key}"

    def spell_select(self, x: int, y: int, option: str, what: str) -> str:
        return f"coords({x}, {y}) -> SELECT -> {option} in {what}"

    def spell_scroll(self, pixels: int) -> str:
        return f"page -> SCROLL -> {'down' if pixels > 0 else 'up'} {abs(pixels)} px"

    def spell_navigate(self, url: str) -> str:
        return f"page -> NAVIGATE -> {url}"

    def spell_finish(self, answer: str) -> str:
        return f"TASK_COMPLETE -> ANSWER: {answer}"

    def save_trajectory(self, folder: Path, task: DemoTask) -> None:
        steps = []
        for index, moment in enumerate(self.moments):
            name = f"{index:04d}.webp"
            (folder / "trajectory" / name).write_bytes(compressed(moment.image, "webp"))
            steps.append(self._step(index, name, moment))
        result = {
            "schema_version": "online-mind2web-v2",
            "task_id": task.task_id,
            "task": task.text,
            "reference_length": task.reference_length,
            "agent_final_answer": self.answer,
            "action_history": steps,
        }
        write_json(folder / "result.json", result)

    @staticmethod
    def _step(index: int, name: str, moment: Moment) -> dict[str, Any]:
        step: dict[str, Any] = {
            "step": index,
            "screenshot": name,
            "url": moment.url,
            "thought": moment.thought,
        }
        if moment.status is None:
            return {**step, "action": moment.action}
        return {**step, "action": f"{moment.action} | {moment.status}", "action_status": moment.status}


class Hasty(Agent):
    """An agent with Online-Mind2Web v1 files: three parallel lists, PNG screenshots, no URLs."""

    name = "hasty"
    # Two faults of real submissions: one screenshot more than actions, and a screenshot that was never written.
    one_screenshot_more = frozenset({"best_rated"})
    lost_screenshot = {"booking": 3}

    def spell_click(self, x: int, y: int, what: str) -> str:
        return f"Click at ({x}, {y})"

    def spell_type(self, x: int, y: int, text: str, what: str) -> str:
        return f'Type "{text}" at ({x}, {y})'

    def spell_key(self, key: str) -> str:
        return f"Press {key}"

    def spell_select(self, x: int, y: int, option: str, what: str) -> str:
        return f'Select "{option}" at ({x}, {y})'

    def spell_scroll(self, pixels: int) -> str:
        return f"Scroll {'down' if pixels > 0 else 'up'} by {abs(pixels)}"

    def spell_navigate(self, url: str) -> str:
        return f"Go to {url}"

    def spell_finish(self, answer: str) -> str:
        return "Finish"

    def save_trajectory(self, folder: Path, task: DemoTask) -> None:
        images = [moment.image for moment in self.moments]
        if task.name in self.one_screenshot_more:
            images.append(self.page.screenshot())
        for number, image in enumerate(images):
            if number != self.lost_screenshot.get(task.name):
                path = folder / "trajectory" / f"{number}_full_screenshot.png"
                path.write_bytes(compressed(image, "png"))
        result = {
            "task_id": task.task_id,
            "task": task.text,
            "final_result_response": self.answer,
            "action_history": [moment.action for moment in self.moments],
            "thoughts": [moment.thought for moment in self.moments],
        }
        write_json(folder / "result.json", result)


def card(page: Page, name: str) -> Locator:
    """Return the card of the product or house with exactly this name."""
    heading = page.get_by_role("heading", name=re.compile(f"^{re.escape(name)}$"))
    return page.locator("a.card").filter(has=heading).locator("h3")
