"""The Chromium of this machine drives our server; where there is none, the reason is told, and CI fails."""

import os
import subprocess
import sys

import pytest
from django.conf import settings


@pytest.mark.browser
def test_a_page_is_shown_without_a_complaint_of_the_content_security_policy(live_server, page):
    complaints = []
    page.on("console", lambda message: complaints.append(message.text))
    page.goto(f"{live_server.url}/sign-in")
    assert page.locator("input[name=username]").is_visible()
    assert [text for text in complaints if "Content Security Policy" in text] == []


@pytest.mark.browser
def test_a_script_inside_a_page_is_refused(live_server, page):
    page.goto(f"{live_server.url}/sign-in")
    page.evaluate("const s = document.createElement('script'); s.text = 'window.ran = 1'; document.body.append(s)")
    assert page.evaluate("window.ran ?? 'never ran'") == "never ran"


def browser_test_without_a_browser(tmp_path, ci):
    command = [sys.executable, "-m", "pytest", f"{__file__}::test_a_script_inside_a_page_is_refused"]
    environment = {**os.environ, "CHROMIUM": str(tmp_path / "none"), "CI": ci, "WEBVERDICT_DATA": str(tmp_path)}
    environment = {name: value for name, value in environment.items() if not name.startswith("PYTEST_")}
    return subprocess.run(command, cwd=settings.BASE_DIR, env=environment, capture_output=True, text=True, check=False)


def test_without_a_browser_the_reason_stands_in_the_last_lines(tmp_path):
    done = browser_test_without_a_browser(tmp_path, ci="")
    assert done.returncode == 0
    assert "skipped 1: CHROMIUM is" in "".join(done.stdout.splitlines()[-3:])


def test_without_a_browser_ci_fails(tmp_path):
    done = browser_test_without_a_browser(tmp_path, ci="true")
    assert done.returncode == 1
    assert "CI must run the browser tests. CHROMIUM is" in done.stdout
