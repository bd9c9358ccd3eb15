"""The memory of the browser while many steps are opened."""

from __future__ import annotations

import pytest
from playwright.sync_api import Page

from annotation.tests.test_viewer_in_browser import desk, held  # noqa: F401 - fixtures

pytestmark = pytest.mark.browser
# Opens steps one after the other by a key, each when the one before is shown; the last and the first step are passed.
WALK = """async (count) => {
  const stage = document.getElementById("stage");
  let key = "j";
  for (let done = 0; done < count; done += 1) {
    if (stage.dataset.index === stage.dataset.last) key = "k";
    if (stage.dataset.index === "0") key = "j";
    const before = stage.dataset.index;
    document.body.dispatchEvent(new KeyboardEvent("keydown", { key, code: `Key${key.toUpperCase()}`, bubbles: true }));
    const until = performance.now() + 10000;
    while (stage.dataset.index === before) {
      await new Promise(requestAnimationFrame);
      if (performance.now() > until) throw new Error(`step ${before} stays`);
    }
  }
}"""


@pytest.mark.long
def test_memory_stays_flat_over_500_steps(desk: Page) -> None:  # noqa: F811 - the fixture
    tools = desk.context.new_cdp_session(desk)
    tools.send("Performance.enable")

    def measure() -> dict[str, float]:
        for _ in range(2):  # the first frees documents, the second what they held
            tools.send("HeapProfiler.collectGarbage")
        found = {metric["name"]: metric["value"] for metric in tools.send("Performance.getMetrics")["metrics"]}
        return {name: found[name] for name in ("JSHeapUsedSize", "Nodes", "Documents", "JSEventListeners")}

    desk.keyboard.press("d")  # the changes of all steps are fetched, too
    sizes = []
    for count in (100, 100, 300):
        desk.evaluate(WALK, count)
        sizes.append(measure())
    assert sizes[-1]["JSHeapUsedSize"] < sizes[0]["JSHeapUsedSize"] + 500_000, sizes
    assert sizes[-1]["Documents"] <= 40, sizes
    assert sizes[-1]["Nodes"] < 1.2 * sizes[0]["Nodes"], sizes
    assert sizes[-1]["JSEventListeners"] <= sizes[0]["JSEventListeners"] + 20, sizes
