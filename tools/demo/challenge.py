"""The challenge: 12 trajectories with one known fault each, and the answer key, which says where each can be seen."""

from __future__ import annotations

import json
from collections.abc import Callable, Collection
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from playwright.sync_api import Page

from annotation.records import Finding, Verdict
from tools.demo.agents import Agent, Careful, write_json
from tools.demo.tasks import DemoTask

ANSWER, ACTION, SCREENSHOT = "answer", "action", "screenshot"  # where words of the evidence are
# Returns the rectangle of words that are completely in view, in pixels of the screenshot; null if there is none.
_FIND = """words => {
  const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  for (let node; (node = walker.nextNode());) {
    const range = document.createRange(), at = node.data.indexOf(words);
    if (at < 0) continue;
    range.setStart(node, at);
    range.setEnd(node, at + words.length);
    const { left, top, right, bottom, width, height } = range.getBoundingClientRect();
    if (width && left >= 0 && top >= 0 && right <= innerWidth && bottom <= innerHeight) {
      return [left, top, width, height].map(Math.round);
    }
  }
  return null;
}"""


@dataclass(frozen=True, slots=True)
class Fault:
    """A fault of a trajectory; the task's name is that of the fault.

    ``findings``: for each key point, whether it is met, and the step that proves it. ``failed``: step of the failure.
    ``step`` decides: it shows the ``evidence``, pairs of where the words are, and the words.
    """

    title: str
    task: DemoTask
    script: Callable[[Agent], None]
    failed: int
    type: str
    explanation: str
    findings: tuple[tuple[bool, int], ...]
    step: int
    evidence: tuple[tuple[str, str], ...]

    @property
    def name(self) -> str:
        return self.task.name

    def as_json(self, boxes: dict[str, list[int]]) -> dict[str, object]:
        """Return the entry of the answer key; ``boxes`` are the places of the words that are in the screenshot."""
        findings = [
            {"key_point": place, "finding": str(Finding.MET if met else Finding.UNMET), "step": step}
            for place, (met, step) in enumerate(self.findings)
        ]
        return {
            "fault": self.name,
            "title": self.title,
            "task_id": self.task.task_id,
            "known_answer": {
                "verdict": int(Verdict.FAILURE),
                "failure_step": self.failed,
                "failure_type": self.type,
                "reasoning": f"{self.title}. {self.explanation}",
                "findings": findings,
            },
            "step": self.step,
            "evidence": [
                {"where": where, "words": words, **({"box": boxes[words]} if where == SCREENSHOT else {})}
                for where, words in self.evidence
            ],
        }


class Challenger(Careful):
    """An agent with the files of Careful; its last action does not repeat the answer.

    ``boxes`` gets the places of the evidence in the screenshot of the deciding step, by its words.
    """

    name = "challenge"

    def __init__(self, page: Page, fault: Fault, boxes: dict[str, list[int]]) -> None:
        super().__init__(page)
        self.fault, self.boxes = fault, boxes

    def spell_finish(self, answer: str) -> str:
        return "TASK_COMPLETE"

    def _remember(
        self, action: str, thought: str, *, url: str | None = None, failed: bool = False, last: bool = False
    ) -> None:
        if len(self.moments) == self.fault.step:
            for words in (words for where, words in self.fault.evidence if where == SCREENSHOT):
                box = self.page.evaluate(_FIND, words)
                if box is None:
                    raise LookupError(f"{self.fault.name}: step {self.fault.step} does not show “{words}”")
                self.boxes[words] = box
        super()._remember(action, thought, url=url, failed=failed, last=last)


def write(
    output: Path,
    faults: Collection[Fault],
    record: Callable[[Callable[[Page], Agent], Callable[[Agent], None], DemoTask, Path], object],
    names: Collection[str] | None = None,
) -> list[Path]:
    """Record the faults of these names (None: all) into ``output``, and replace their entries in its answer key."""
    output.mkdir(parents=True, exist_ok=True)
    write_json(output / "tasks.json", [fault.task.as_json() for fault in faults])
    key = output / "answer_key.json"
    entries = {entry["fault"]: entry for entry in json.loads(key.read_text("utf-8"))} if key.exists() else {}
    folders = []
    for fault in faults:
        if names is None or fault.name in names:
            folder = output / "trajectories" / fault.task.task_id
            boxes: dict[str, list[int]] = {}
            record(partial(Challenger, fault=fault, boxes=boxes), fault.script, fault.task, folder)
            entries[fault.name] = fault.as_json(boxes)
            folders.append(folder)
    write_json(key, [entries[fault.name] for fault in faults if fault.name in entries])
    return folders
