"""A bundle in a real browser, by keyboard alone: exported, verified, opened, labelled again, reported and decided."""

from __future__ import annotations

import re
import subprocess
import sys
import zipfile
from pathlib import Path
from typing import Any

import pypdfium2
import pytest
from axe_playwright_python.sync_playwright import Axe
from django.urls import reverse
from playwright.sync_api import Locator, Page, expect

from annotation.models import Submission
from annotation.tests import testing
from annotation.tests.in_browser import complaints_of
from evaluations.models import Audit
from evaluations.tests.audited import auditor, relabel, work
from evaluations.tests.finished import finish

pytestmark = pytest.mark.browser

NARROW = 400  # pixels: a page that is wider makes a telephone scroll sideways
MOST_STOPS = 120  # presses of Tab until an element that cannot be reached is given up


@pytest.fixture
def finished(transactional_db: Any, tmp_path: Path, settings: Any) -> Submission:
    """Three trajectories, all of them a success in the end, the first after a dispute."""
    settings.MEDIA_ROOT = tmp_path / "images"
    submission = testing.submission(tmp_path / "package", trajectories=3)
    return finish(testing.cast(submission), submission, {"task_0000": [1, 0, 2]})


def reach(page: Page, wanted: Locator) -> None:
    """Press Tab until the element has the focus."""
    for _ in range(MOST_STOPS):
        if wanted.evaluate("(element) => element === document.activeElement"):
            return
        page.keyboard.press("Tab")
    raise AssertionError(f"the keyboard does not reach {wanted}")


def press(page: Page, wanted: Locator) -> None:
    reach(page, wanted)
    page.keyboard.press("Enter")


def write(page: Page, label: str, text: str) -> None:
    reach(page, page.get_by_label(label))
    page.keyboard.insert_text(text)


def arrive(page: Page, url: str, name: str) -> None:
    """Sign in as somebody else."""
    page.context.clear_cookies()
    page.goto(url + reverse("sign-in"))
    write(page, "Username", name)
    write(page, "Password", testing.PASSWORD)
    page.keyboard.press("Enter")
    expect(page.get_by_role("button", name="Sign out")).to_be_visible()


def assert_usable(page: Page) -> None:
    """No barrier that axe knows, in light and in dark, and nothing that a narrow screen has to be moved for."""
    for scheme in ("light", "dark"):
        page.emulate_media(color_scheme=scheme)  # type: ignore[arg-type]
        found = Axe().run(page).response["violations"]
        assert [(rule["id"], [node["html"] for node in rule["nodes"]]) for rule in found] == [], (page.url, scheme)
    usual = page.viewport_size
    page.set_viewport_size({"width": NARROW, "height": 800})
    assert page.evaluate("document.documentElement.scrollWidth") <= NARROW, page.url
    page.set_viewport_size(usual)


def downloaded(page: Page, url: str, submission: Submission, folder: Path) -> Path:
    """mira takes the bundle from the page of the evidence."""
    arrive(page, url, "mira")
    page.goto(url + reverse("submission", args=[submission.pk]))
    press(page, page.get_by_role("link", name="Results", exact=True))
    press(page, page.get_by_role("link", name="Evidence", exact=True))
    expect(page.get_by_text("0 failed")).to_be_visible()
    expect(page.get_by_text("3 of 3 tasks have a trajectory")).to_be_visible()
    assert_usable(page)
    with page.expect_download() as download:
        press(page, page.get_by_role("button", name="Download bundle"))
    path = folder / download.value.suggested_filename
    download.value.save_as(path)
    return path


def verified(bundle: Path, keys: Path) -> subprocess.CompletedProcess[str]:
    """What the bundle's own program says of it, in a Python without packages."""
    program = bundle.with_name("verify.py")
    with zipfile.ZipFile(bundle) as package:
        program.write_bytes(package.read("verify.py"))
    command = [sys.executable, "-I", "-S", str(program), str(bundle), "--keys", str(keys)]
    return subprocess.run(command, env={}, capture_output=True, text=True, timeout=120, check=False)


def opened(page: Page, url: str, bundle: Path, keys: str) -> Audit:
    """amy opens the bundle at her desk, and looks at what was said about the disputed trajectory."""
    arrive(page, url, auditor().username)
    press(page, page.get_by_role("link", name="Audits", exact=True))
    assert_usable(page)
    with page.expect_file_chooser() as chooser:
        press(page, page.get_by_label("Evidence bundle"))
    chooser.value.set_files(bundle)
    write(page, "Published keys", keys)
    press(page, page.get_by_role("button", name="Check and open"))
    page.wait_for_url(re.compile(r"/audits/uploads/"))
    work()
    press(page, page.get_by_role("link", name="an audit of"))
    expect(page.get_by_role("heading", name="The bundle")).to_be_visible()
    expect(page.get_by_text("0 failed")).to_be_visible()
    press(page, page.get_by_role("link", name="3 with labels and reasons"))
    press(page, page.get_by_role("link", name="task_0000"))
    expect(page.get_by_role("columnheader", name="A3")).to_be_visible()
    return Audit.objects.get()


def drawn(page: Page, url: str, audit: Audit) -> Submission:
    """All three trajectories, so that what is labelled otherwise is among them."""
    page.goto(url + reverse("audit", args=[audit.pk]))
    assert_usable(page)
    write(page, "Trajectories", "3")
    press(page, page.get_by_role("button", name="Draw the sample"))
    expect(page.get_by_text("Sample drawn")).to_be_visible()
    press(page, page.get_by_role("link", name="an audit", exact=True))
    expect(page.get_by_text("0 of 9")).to_be_visible()
    assert audit.sample is not None
    return audit.sample


def assert_printed(page: Page) -> None:
    """The report on paper has the result, and nothing of the page around it."""
    pages = pypdfium2.PdfDocument(page.pdf(prefer_css_page_size=True))
    text = " ".join(one.get_textpage().get_text_bounded() for one in pages)
    pages.close()
    assert "Audit of a human evaluation" in text
    assert "66.7%" in text
    assert "20.8 to 93.9" in text
    assert "Two annotators say" in text
    for outside in ("Sign out", "read-only", "Printable report"):
        assert outside not in text


def test_a_bundle_goes_from_the_submitter_to_the_decision_of_the_auditor(
    page: Page, live_server: Any, finished: Submission, tmp_path: Path
) -> None:
    complaints = complaints_of(page)
    url = live_server.url
    bundle = downloaded(page, url, finished, tmp_path)
    published = page.request.get(url + reverse("signing-keys")).text()
    (tmp_path / "keys.json").write_text(published)
    outcome = verified(bundle, tmp_path / "keys.json")
    assert outcome.returncode == 0, outcome.stdout + outcome.stderr

    audit = opened(page, url, bundle, published)
    relabel(drawn(page, url, audit), {"task_0000": 0})
    page.reload()
    press(page, page.get_by_role("link", name="Path of the sample"))
    expect(page.get_by_text("This is the sample")).to_be_visible()
    expect(page.get_by_text("Undo the freeze")).to_have_count(0)
    press(page, page.get_by_role("link", name="an audit", exact=True))

    # 2 of 3: Wilson's interval is (0.6667 + 0.6402 +- 1.96 * 0.4252) / (1 + 1.2805).
    expect(page.get_by_text("66.7%").first).to_be_visible()
    expect(page.get_by_text("95%: 20.8 to 93.9").first).to_be_visible()
    expect(page.get_by_role("link", name="task_0000")).to_be_visible()
    assert_usable(page)

    reach(page, page.get_by_label("Outcome"))
    page.keyboard.type("Qu")
    write(page, "Reason", "Two annotators say of task_0000 that it failed.")
    press(page, page.get_by_role("button", name="Decide"))
    expect(page.get_by_text("Submission queried.")).to_be_visible()
    press(page, page.get_by_role("link", name="Printable report"))
    expect(page.get_by_role("heading", name="2. The sample that was labelled again")).to_be_visible()
    assert_usable(page)
    assert_printed(page)
    press(page, page.get_by_role("link", name="Audits", exact=True))
    expect(page.get_by_role("cell", name="queried")).to_be_visible()
    assert complaints == []
