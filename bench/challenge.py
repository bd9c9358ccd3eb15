"""Compare what the desk shows of known faults with its help and without: ``python -m bench.challenge``.

Starts what `make run` starts, with the demo's challenge in a separate folder. Opens each trajectory at the step that
decides it, in Chromium at 1440x900, and looks for the evidence that the answer key names: is it in view without
scrolling or searching, and does a mark point to it? Once as the desk is, once with its help hidden: the marks of the
task's words, the mark of the click, and the final answer beside the action. Counts what is shown, not what people find.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from playwright.sync_api import Browser, Error, Page, sync_playwright

from annotation.demo import DATA
from bench.desk import LIMIT, SCREEN, say, sign_in, start_chromium
from bench.server import free_port, served
from config.processes import CannotRun, Stopped, stop_on_signals
from tools.chromium import ChromiumMissingError, find_chromium

KEY = json.loads((DATA / "challenge" / "answer_key.json").read_text(encoding="utf-8"))
HIDE_HELP = """
  mark.t { background: none !important; box-shadow: none !important; }
  #stage .mark, #final { display: none !important; }
"""
READY = """async () => {
  const image = document.querySelector("#stage .shot image");
  const loaded = new Image();
  loaded.src = image.href.baseVal;
  await loaded.decode();
}"""
# Takes a piece of evidence; returns whether it is completely in view, and whether a visible mark is on it.
LOOK = """({ where, words, box }) => {
  const within = (rect, frame) => rect.left >= frame.left - 1 && rect.top >= frame.top - 1
    && rect.right <= frame.right + 1 && rect.bottom <= frame.bottom + 1;
  const inView = (rects, element) => {
    const frames = [new DOMRect(0, 0, innerWidth, innerHeight)];
    for (let each = element; each; each = each.parentElement) {
      if (getComputedStyle(each).overflow !== "visible") frames.push(each.getBoundingClientRect());
    }
    return rects.length > 0 && rects.every((rect) => rect.width > 0 && frames.every((frame) => within(rect, frame)));
  };

  if (box) {
    const [left, top, width, height] = box;
    const picture = document.querySelector("#stage .shot svg"), ring = picture.querySelector(".mark .ring");
    const { a, d, e, f } = picture.getScreenCTM();
    const rect = new DOMRect(e + a * left, f + d * top, a * width, d * height);
    const seen = inView([rect], picture);
    if (!seen || !ring || !ring.getBoundingClientRect().width) return { seen, marked: false };
    const [x, y, radius] = [ring.cx, ring.cy, ring.r].map((length) => length.baseVal.value);
    const nearest = [Math.min(Math.max(x, left), left + width), Math.min(Math.max(y, top), top + height)];
    return { seen, marked: Math.hypot(x - nearest[0], y - nearest[1]) <= radius };
  }

  const root = document.querySelector(where === "action" ? "#step .action" : "#step .thinking");
  const walker = document.createTreeWalker(root, NodeFilter.SHOW_TEXT);
  const range = document.createRange(), start = root.textContent.indexOf(words), end = start + words.length;
  if (start < 0) throw new Error(`${where} does not contain: ${words}`);
  for (let node, passed = 0; (node = walker.nextNode()); passed += node.length) {
    if (passed <= start && start < passed + node.length) range.setStart(node, start - passed);
    if (passed < end && end <= passed + node.length) range.setEnd(node, end - passed);
  }
  const seen = inView([...range.getClientRects()], root);
  const shown = (mark) => getComputedStyle(mark).backgroundColor !== "rgba(0, 0, 0, 0)";
  const marks = [...root.querySelectorAll("mark.t")].filter((mark) => range.intersectsNode(mark) && shown(mark));
  return { seen, marked: seen && marks.length > 0 };
}"""


@dataclass(frozen=True, slots=True)
class Shown:
    """What the desk shows of a fault: of ``pieces`` of evidence, how many are in view and how many marked."""

    pieces: int
    seen: int
    marked: int


def make_challenge(folder: Path) -> tuple[int, dict[str, int]]:
    """Load the challenge, played by alice; return its primary key, and that of each trajectory by the task's id."""
    from annotation.demo import challenge  # noqa: PLC0415 - after the setup
    from annotation.tests import testing  # noqa: PLC0415

    made = challenge.load(testing.person("mira"), [testing.person("alice")])
    return int(made.pk), dict(made.trajectories.values_list("task__external_id", "pk"))


def look(page: Page, address: str, entry: dict[str, Any], *, with_help: bool) -> Shown:
    page.goto(f"{address}?step={entry['step']}")
    page.evaluate(READY)
    if not with_help:
        page.add_style_tag(content=HIDE_HELP)
    found = [page.evaluate(LOOK, {"box": None, **piece}) for piece in entry["evidence"]]
    return Shown(len(found), sum(each["seen"] for each in found), sum(each["marked"] for each in found))


def compare(
    browser: Browser, server: str, made: tuple[int, dict[str, int]], names: Collection[str]
) -> Iterator[tuple[dict[str, Any], Shown, Shown]]:
    """Yield each entry with what is shown with the help and without it."""
    from django.urls import reverse  # noqa: PLC0415 - after the setup

    submission, trajectories = made
    context = browser.new_context(viewport=SCREEN, locale="en-US", bypass_csp=True)  # for the style that hides the help
    context.set_default_timeout(LIMIT * 1000)
    page = context.new_page()
    sign_in(page, server, "alice")
    for entry in (entry for entry in KEY if not names or entry["fault"] in names):
        say(entry["title"])
        address = f"{server}{reverse('practice-desk', args=[submission, trajectories[entry['task_id']]])}"
        helped = look(page, address, entry, with_help=True)
        yield entry, helped, look(page, address, entry, with_help=False)
    context.close()


def table(rows: list[tuple[dict[str, Any], Shown, Shown]]) -> Iterator[str]:
    yield f"evidence at the deciding step, at {SCREEN['width']}x{SCREEN['height']}, without scrolling or searching"
    yield f"  {'':<26}{'':>4}   in view, of   {'marked':>14}"
    yield f"  {'fault':<26}{'step':>4}   help  none  of   help  none"
    for entry, helped, bare in rows:
        yield (
            f"  {entry['title']:<26}{entry['step']:>4}   {helped.seen:>4}  {bare.seen:>4}  {helped.pieces:>2}"
            f"   {helped.marked:>4}  {bare.marked:>4}"
        )
    for title, count in (
        ("faults with all evidence in view", lambda shown: shown.seen == shown.pieces),
        ("faults with a mark on evidence", lambda shown: shown.marked > 0),
    ):
        helped, bare = (sum(count(row[place]) for row in rows) for place in (1, 2))
        yield f"  {title}: {helped} of {len(rows)} with the help, {bare} without"


def main(arguments: list[str] | None = None) -> int:
    """Return exit code 0 whatever is shown, 1 if nothing can be measured."""
    parser = argparse.ArgumentParser(prog="python -m bench.challenge", description=__doc__)
    parser.add_argument("--port", type=int, default=0, help="a free one otherwise")
    names = [entry["fault"] for entry in KEY]
    parser.add_argument("--fault", action="append", default=[], choices=names, help="only this one")
    options = parser.parse_args(arguments)
    stop_on_signals()
    try:
        find_chromium()  # without it, nothing needs to be started
        say("the server is started")
        with served(options.port or free_port(), make_challenge) as (server, made), sync_playwright() as tool:
            browser = start_chromium(tool)
            rows = list(compare(browser, server, made, options.fault))
            browser.close()
        for line in table(rows):
            print(line, flush=True)  # noqa: T201
    except (CannotRun, ChromiumMissingError, Error) as reason:
        print(str(reason).splitlines()[0], file=sys.stderr)  # noqa: T201
        return 1
    except Stopped:
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
