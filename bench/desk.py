"""Measure waiting times and cost of the desk: ``python -m bench.desk``, a part of `make bench`.

Starts what `make run` starts, in a separate folder, simulates annotators in Chromium at 1440x900, and prints a table
of figures and targets. A missed target is not a failure, since times depend on the machine.
"""

from __future__ import annotations

import argparse
import os
import statistics
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import partial
from typing import Any
from urllib.parse import urlsplit

from playwright.sync_api import Browser, BrowserContext, Error, Page, Playwright, ViewportSize, sync_playwright

from bench.server import STEPS, free_port, make_submission, served
from config.processes import CannotRun, Stopped, stop_on_signals
from tools.chromium import ChromiumMissingError, find_chromium

SCREEN: ViewportSize = {"width": 1440, "height": 900}
LIMIT = 60.0  # seconds for a page to load completely, on a machine that is shared
FRAME = 17  # milliseconds; a key right after a frame waits longest for the next one, and people do not press like that
QUIET = 1.0  # seconds without a request after which a page has loaded everything, including prefetched files
PROOFS = {4: "1", 10: "2", 18: "3"}  # the step that proves a key point, and the key that sets it
REASONING = "All three requirements are applied as filters of the site, and the result is shown and can be read."

# Runs in every document before other scripts: records painting, blocking, layout shifts and scrolling.
PROBE = """(() => {
  const bench = { shift: 0, blocked: 0, painted: null, decoded: null, usable: null, scrolled: [], step: null };
  window.bench = bench;
  const observe = (type, each) =>
    new PerformanceObserver((list) => list.getEntries().forEach(each)).observe({ type, buffered: true });
  observe("layout-shift", (entry) => { if (!entry.hadRecentInput) bench.shift += entry.value; });
  observe("longtask", (entry) => { bench.blocked += Math.max(0, entry.duration - 50); });
  observe("largest-contentful-paint", (entry) => {
    if (entry.url && entry.element?.closest("#stage")) bench.painted ??= entry.startTime;
  });
  const picture = () => document.querySelector("#stage .shot image, #stage .shot img");
  const index = () => document.getElementById("stage")?.dataset.index;
  const source = () => picture()?.href?.baseVal ?? picture()?.src;
  const decoded = () => (picture()?.decode() ?? Promise.resolve()).catch(() => {});
  const nextFrame = () => new Promise(requestAnimationFrame);

  const first = async () => {
    while (!picture()) await nextFrame();
    await decoded();
    await nextFrame();
    bench.decoded = performance.now();
  };
  first();

  const usable = new MutationObserver(() => {
    const button = document.querySelector("#label-form [data-submit]");
    if (!document.documentElement.classList.contains("scripted") || !button || button.disabled) return;
    bench.usable = performance.now();
    usable.disconnect();
  });
  usable.observe(document, { subtree: true, childList: true, attributeFilter: ["class", "disabled"] });

  document.addEventListener("scroll", ({ target }) => {
    if (target.closest?.(".shot, #strip")) return;
    bench.scrolled.push(target.id || target.className || target.nodeName);
  }, true);

  const changed = async (step, file, began) => {
    while (index() === step || source() === file) {
      await nextFrame();
      if (performance.now() - began > 10000) throw new Error(`no step but ${step} is shown within 10 s`);
    }
    await decoded();
    await nextFrame();
    return performance.now() - began;
  };
  window.addEventListener("keydown", (event) => {
    if (event.key === "j" || event.key === "k") bench.step = changed(index(), source(), event.timeStamp);
    if (event.key === "Enter") sessionStorage.setItem("bench", performance.timeOrigin + event.timeStamp);
  }, true);
})()"""

FIGURES = """() => ({
  picture: bench.painted ?? bench.decoded, usable: bench.usable, blocked: bench.blocked, shift: bench.shift,
  since: performance.timeOrigin - Number(sessionStorage.getItem("bench") ?? performance.timeOrigin),
})"""
LOADED = "() => bench.usable !== null && bench.decoded !== null"
CUT = "() => { const step = document.getElementById('step'); return step.scrollHeight > step.clientHeight + 1; }"
# Returns whether a key point is met at a step; if not, enters it as with the mouse.
BOUND = """([number, step]) => {
  const point = document.querySelector(`[data-point="${number}"]`), field = point.querySelector("[name$=_step]");
  if (point.querySelector("[value=met]").checked && field.value === String(step)) return true;
  point.querySelector("[value=met]").click();
  field.value = step;
  field.dispatchEvent(new Event("input", { bubbles: true }));
  return false;
}"""


@dataclass
class Transfer:
    """One request, with the bytes that were transferred for it, headers included; none if it was cached.

    ``expires``: a static file that the next review, minutes later, has to request again.
    """

    url: str
    page: str  # path of the document that requested it
    ended: bool = False
    size: float = 0
    cached: bool = False
    expires: bool = False


class Wire:
    """All requests of a page, as the developer tools of the browser count them."""

    def __init__(self, page: Page) -> None:
        self.transfers: list[Transfer] = []
        self.running: dict[str, Transfer] = {}
        tools = page.context.new_cdp_session(page)
        tools.on("Network.requestWillBeSent", self._sent)
        tools.on("Network.requestServedFromCache", self._cached)
        tools.on("Network.responseReceived", self._answered)
        tools.on("Network.loadingFinished", self._ended)
        tools.on("Network.loadingFailed", self._ended)
        tools.send("Network.enable")

    def _sent(self, event: Any) -> None:
        if redirect := event.get("redirectResponse"):
            self._ended({**event, "encodedDataLength": redirect["encodedDataLength"]})
        if event["request"]["url"].startswith("http"):
            transfer = Transfer(event["request"]["url"], urlsplit(event["documentURL"]).path)
            self.running[event["requestId"]] = transfer
            self.transfers.append(transfer)

    def _cached(self, event: Any) -> None:
        if transfer := self.running.get(event["requestId"]):
            transfer.cached = True

    def _answered(self, event: Any) -> None:
        response = event["response"]
        if response.get("fromDiskCache") or response.get("fromPrefetchCache"):
            self._cached(event)
        headers = {name.lower(): value for name, value in response["headers"].items()}
        if transfer := self.running.get(event["requestId"]):
            transfer.expires = "/static/" in transfer.url and "immutable" not in headers.get("cache-control", "")

    def _ended(self, event: Any) -> None:
        if transfer := self.running.pop(event["requestId"], None):
            transfer.size, transfer.ended = event.get("encodedDataLength", 0), True

    def since(self, mark: int) -> list[Transfer]:
        return [transfer for transfer in self.transfers[mark:] if not transfer.cached]

    def settle(self, page: Page) -> None:
        """Wait until everything has arrived that the page requests without input."""
        page.wait_for_function(LOADED)
        quiet, known, deadline = 0.0, -1, time.monotonic() + LIMIT
        while quiet < QUIET:
            page.wait_for_timeout(100)
            # Requests sent while a page is left may never be reported as done.
            here = urlsplit(page.url).path
            waiting = [transfer.url for transfer in self.transfers if not transfer.ended and transfer.page == here]
            quiet = quiet + 0.1 if known == len(self.transfers) and not waiting else 0.0
            known = len(self.transfers)
            if time.monotonic() > deadline:
                raise CannotRun(f"{page.url} does not come to rest: {waiting or [t.url for t in self.transfers[-5:]]}")


@dataclass
class Load:
    """One desk page: times in milliseconds from the navigation or from the keys that requested it.

    ``ahead`` are requests for it that were made before (prefetched).
    """

    transfers: list[Transfer]
    ahead: list[Transfer]
    picture: float
    usable: float
    blocked: float
    shift: float

    @property
    def kilobytes(self) -> float:
        return sum(transfer.size for transfer in self.transfers) / 1000

    @property
    def kilobytes_ahead(self) -> float:
        return sum(transfer.size for transfer in self.ahead) / 1000


@dataclass
class Effort:
    """A person's effort in one review; ``typed`` characters are counted apart from key ``presses``."""

    presses: int = 0
    typed: int = 0
    unbound: int = 0  # key points that their digit key did not set
    cut: int = 0  # steps whose action and thought were not completely visible
    scrolled: list[str] = field(default_factory=list)
    steps: list[float] = field(default_factory=list)  # milliseconds of every step change


# --- the table -------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Figure:
    """A line of the table; ``limit`` is None without a target; with ``below`` the value must be less than it."""

    name: str
    value: float
    limit: float | None = None
    below: bool = False
    digits: int = 0

    def line(self) -> str:
        value = f"{self.value:.{self.digits}f}"
        if self.limit is None:
            return f"  {self.name:<46}{value:>10}"
        met = self.value < self.limit if self.below else self.value <= self.limit
        target = f"{'under' if self.below else 'at most'} {self.limit:g}"
        return f"  {self.name:<46}{value:>10}   {target:<14}{'met' if met else 'MISSED'}"


def load_figures(loads: list[Load], kilobytes: float, requests: float | None, usable: float | None) -> list[Figure]:
    """Return medians over several loads, or the worst value if it depends only on the page."""
    return [
        Figure("requests", max(len(load.transfers) for load in loads), requests),
        Figure("kilobytes over the wire", max(load.kilobytes for load in loads), kilobytes),
        Figure("ms to the first screenshot", statistics.median(load.picture for load in loads)),
        Figure("ms to a usable form", statistics.median(load.usable for load in loads), usable, below=True),
        Figure("ms of main-thread blocking", statistics.median(load.blocked for load in loads)),
        Figure("layout shift", max(load.shift for load in loads), 0.02, digits=4),
    ]


def effort_figures(effort: Effort, reading: Effort) -> list[Figure]:
    """Return the figures of a review that opens every step, and the key presses of one that reads the transcript."""
    return [
        Figure("key presses, every step opened", effort.presses, 25),
        Figure("key presses, the transcript read", reading.presses, 22),
        Figure("characters of reasoning", effort.typed),
        Figure("key points that their digit did not bind", effort.unbound, 0),
        Figure("scrolls outside the picture", len(effort.scrolled), 0),
        Figure("steps whose text is not all in view", effort.cut, 0),
    ]


def percentile(values: list[float], share: float) -> float:
    return sorted(values)[min(len(values) - 1, int(share * len(values)))]


def table(
    first: list[Load], following: list[Load], guidelines: list[float], steps: list[float], efforts: list[Effort]
) -> Iterator[str]:
    expiring = max(sum(transfer.expires for transfer in load.transfers) for load in first)
    usable = statistics.median(load.usable for load in following)
    ratio = usable / statistics.median(guidelines)
    parts = {
        f"first desk page, nothing cached ({len(first)} times)": [
            *load_figures(first, 200, 15, None),
            Figure("static files to ask for again after a minute", expiring, 0),
        ],
        f"next desk page, from Ctrl+Enter ({len(following)} times)": [
            *load_figures(following, 300, None, 400),
            Figure("times the guidelines page, to a usable form", ratio, 3, digits=1),
            Figure("kilobytes fetched ahead for it", max(load.kilobytes_ahead for load in following)),
        ],
        f"step change ({len(steps)} times)": [
            Figure("ms, median", statistics.median(steps), 30),
            Figure("ms, 95th percentile", percentile(steps, 0.95)),
        ],
        f"review of {STEPS} steps": effort_figures(*efforts[:2]),
    }
    yield f"load of the machine: {os.getloadavg()[0]:.1f} on {os.cpu_count()} processors"
    for title, figures in parts.items():
        yield title
        yield from (figure.line() for figure in figures)
    if scrolled := efforts[0].scrolled:
        yield f"  scrolled: {', '.join(sorted(set(scrolled)))}"


def listed(load: Load) -> Iterator[str]:
    for transfer in load.transfers:
        yield f"  {transfer.size:>9.0f} {transfer.url}"


# --- the annotators --------------------------------------------------------------------------------------------------


def new_context(browser: Browser, cookies: Any = None) -> BrowserContext:
    """Return a browser context with an empty cache."""
    context = browser.new_context(viewport=SCREEN, locale="en-US", storage_state=cookies)
    context.set_default_timeout(LIMIT * 1000)
    return context


def sign_in(page: Page, server: str, name: str) -> None:
    from django.urls import reverse  # noqa: PLC0415 - after the setup

    from annotation.tests.testing import PASSWORD  # noqa: PLC0415

    page.goto(f"{server}{reverse('sign-in')}")
    page.fill("[name=username]", name)
    page.fill("[name=password]", PASSWORD)
    page.press("[name=password]", "Enter")
    page.wait_for_url(lambda address: "sign-in" not in address)


def signed_in(browser: Browser, server: str, submission: int, name: str) -> tuple[Any, str]:
    """Sign in and request a trajectory; return the cookies and the address of the desk."""
    from django.urls import reverse  # noqa: PLC0415 - after the setup

    context = new_context(browser)
    page = context.new_page()
    sign_in(page, server, name)
    page.goto(f"{server}{reverse('work', args=[submission])}")
    page.click("form[action$='/next'] button")
    page.wait_for_url("**/trajectories/*")
    cookies, address = context.storage_state(), page.url
    context.close()
    return cookies, address


def first_page(browser: Browser, cookies: Any, address: str) -> tuple[Page, Wire, Load]:
    """Open the desk in a browser with the cookies and an empty cache."""
    context = new_context(browser, cookies)
    context.add_init_script(PROBE)
    page = context.new_page()
    wire = Wire(page)
    page.goto(address)
    wire.settle(page)
    found = page.evaluate(FIGURES)
    del found["since"]
    return page, wire, Load(wire.since(0), [], **found)


def press(page: Page, key: str, effort: Effort) -> None:
    page.keyboard.press(key)
    effort.presses += 1


def walk(page: Page, effort: Effort, keys: str, at_step: Callable[[int], None] = lambda step: None) -> None:
    """Press ``keys`` (j and k) in turn, after the previous step change is shown, at different times within a frame."""
    for number, key in enumerate(keys):
        page.wait_for_timeout(number * 7 % FRAME)
        press(page, key, effort)
        effort.steps.append(page.evaluate("() => bench.step"))
        effort.cut += page.evaluate(CUT)
        at_step(int(page.get_attribute("#stage", "data-index") or 0))


def review(page: Page, effort: Effort, walked: bool = True) -> None:
    """Enter a success with three key points by keys only, before the submit.

    ``walked`` opens every step; otherwise the transcript is read, and the steps are opened up to those that prove.
    """

    def prove(step: int) -> None:
        if key := PROOFS.get(step):
            press(page, key, effort)
            effort.unbound += not page.evaluate(BOUND, [key, step])

    effort.cut += page.evaluate(CUT)
    if walked:
        walk(page, effort, "j" * (STEPS - 1), prove)
    else:
        press(page, "t", effort)
        page.wait_for_selector("#transcript li")
        *_, before, last = sorted(PROOFS)
        walk(page, effort, "j" * before, prove)
        press(page, "End", effort)
        page.wait_for_selector(f"#stage[data-index='{STEPS - 1}']")
        walk(page, effort, "k" * (STEPS - 1 - last), prove)
    press(page, "s", effort)
    press(page, "r", effort)
    page.keyboard.type(REASONING)
    effort.typed += len(REASONING)


def submit(page: Page, wire: Wire, effort: Effort) -> Load:
    """Submit by Ctrl+Enter and return the load of the next desk."""
    before, mark = page.url, len(wire.transfers)
    effort.scrolled += page.evaluate("() => bench.scrolled")
    press(page, "Control+Enter", effort)
    page.wait_for_url(lambda address: address.split("?")[0] != before.split("?")[0])
    if page.url.endswith("/submit"):
        raise CannotRun(f"The label was refused: {page.inner_text('[role=alert]')}")
    wire.settle(page)
    found = page.evaluate(FIGURES)
    since = found.pop("since")
    found |= {"picture": found["picture"] + since, "usable": found["usable"] + since}
    ahead = [transfer for transfer in wire.transfers[:mark] if transfer.url.startswith(page.url.split("?")[0] + "/")]
    return Load(wire.since(mark), ahead, **found)


def time_guidelines(page: Page, server: str, count: int) -> list[float]:
    """Return milliseconds from the navigation until the guidelines, a page without figures, can be used."""
    from django.urls import reverse  # noqa: PLC0415 - after the setup

    other, times = page.context.new_page(), []
    for _ in range(count + 1):
        other.goto(f"{server}{reverse('guidelines')}")
        times.append(other.evaluate("performance.getEntriesByType('navigation')[0].domContentLoadedEventEnd"))
    return times[1:]  # the first one fills the cache, as the desk's has been filled


def say(what: str) -> None:
    """Print the current step to the terminal."""
    if sys.stderr.isatty():
        print(f"{what} ...", file=sys.stderr, flush=True)  # noqa: T201


def measure(browser: Browser, server: str, submission: int, options: argparse.Namespace) -> Iterator[str]:
    """Measure everything; yield the lines of the table."""
    repeats, changes = options.repeats, options.changes
    first = []
    for name in ("alice", "bob", "chen")[:repeats][::-1]:
        say(f"{name} opens the desk")
        page, wire, load = first_page(browser, *signed_in(browser, server, submission, name))
        first.append(load)
    there = min(changes // 2, STEPS - 1)
    say("steps are changed")
    looking = Effort()
    walk(page, looking, "j" * there + "k" * there)
    following, efforts = [], [Effort() for _ in range(repeats)]
    for number, effort in enumerate(efforts):
        say(f"review {number + 1} of {repeats}")
        review(page, effort, walked=number == 0)
        following.append(submit(page, wire, effort))
    say("the guidelines are opened")
    guidelines = time_guidelines(page, server, repeats)
    yield from table(first, following, guidelines, looking.steps, efforts)
    if options.list:
        yield from ("", "first desk page:", *listed(first[-1]), "next desk page:", *listed(following[-1]))


def main(arguments: list[str] | None = None) -> int:
    """Return exit code 0 whatever the figures are, 1 if nothing can be measured."""
    parser = argparse.ArgumentParser(prog="python -m bench.desk", description=__doc__)
    parser.add_argument("--port", type=int, default=0, help="a free one otherwise")
    parser.add_argument("--repeats", type=int, default=5, help="how many labels are submitted, at least 2")
    parser.add_argument("--changes", type=int, default=2 * (STEPS - 1), help="how many step changes are timed")
    parser.add_argument("--list", action="store_true", help="name every request of the two pages with its bytes")
    options = parser.parse_args(arguments)
    if options.repeats < 2:
        parser.error("--repeats must be at least 2: one review opens every step, one reads the transcript")
    stop_on_signals()
    try:
        for line in run(options):
            print(line, flush=True)  # noqa: T201
    except (CannotRun, ChromiumMissingError, Error) as reason:
        print(str(reason).splitlines()[0], file=sys.stderr)  # noqa: T201
        return 1
    except Stopped:
        return 1
    return 0


def start_chromium(tool: Playwright) -> Browser:
    flags = ["--disable-gpu", "--disable-background-networking"]
    if os.geteuid() == 0:
        flags.append("--no-sandbox")  # the sandbox of Chromium does not work as root
    return tool.chromium.launch(executable_path=find_chromium(), args=flags)


def run(options: argparse.Namespace) -> Iterator[str]:
    find_chromium()  # without it, nothing needs to be started
    say("the server is started")
    made = partial(make_submission, count=options.repeats + 1)
    with served(options.port or free_port(), made) as (server, submission), sync_playwright() as tool:
        browser = start_chromium(tool)
        yield from measure(browser, server, submission, options)
        browser.close()


if __name__ == "__main__":
    sys.exit(main())
