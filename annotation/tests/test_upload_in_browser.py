"""The upload page in a real browser: an upload goes on after a cut connection, and after a reload."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
from django.urls import reverse
from playwright.sync_api import Page, Route, expect

from annotation.models import ResumableUpload, Upload
from annotation.tests import testing
from annotation.tests.in_browser import complaints_of, sign_in

pytestmark = [pytest.mark.browser, pytest.mark.django_db(transaction=True)]


def test_upload_continues_after_a_cut_connection_and_a_reload(
    page: Page, live_server: Any, tmp_path: Path, settings: Any
) -> None:
    settings.MEDIA_ROOT = tmp_path / "images"
    testing.benchmark(1)
    testing.person("mira", is_staff=True)
    (path := tmp_path / "package.zip").write_bytes(bytes(2_600_000))
    (other := tmp_path / "other.zip").write_bytes(bytes(2_600_000))
    sign_in(page, live_server.url, "mira")
    complaints = complaints_of(page)
    sent: list[str] = []

    def cut_after_the_first(route: Route) -> None:
        if route.request.method == "PATCH":
            sent.append(route.request.headers["upload-checksum"])
        if len(sent) > 1:
            route.abort()
        else:
            route.continue_()

    page.route("**/uploads/resumable/*", cut_after_the_first)
    page.goto(live_server.url + reverse("upload"))
    page.locator("[name=package]").set_input_files(path)
    page.get_by_role("button", name="Upload and check").click()
    expect(page.get_by_role("alert")).to_contain_text("Agent: This field is required.")

    page.locator("[name=agent_name]").fill("Careful Agent")
    page.locator("[name=benchmark]").select_option(label="Shops")
    page.get_by_role("button", name="Upload and check").click()
    expect(page.get_by_text("The server cannot be reached. The page tries again.")).to_be_visible()
    expect(page.get_by_text("1.0 MB of 2.6 MB")).to_be_visible()
    assert sent[0].startswith("sha256 ")

    page.unroute("**/uploads/resumable/*")
    page.reload()
    expect(page.get_by_text("1.0 MB of 2.6 MB received.")).to_be_visible()
    page.get_by_label("Choose the same file").set_input_files(other)
    expect(page.get_by_text("This is another file")).to_be_visible()
    page.get_by_label("Choose the same file").set_input_files(path)
    page.wait_for_url(re.compile(r"/uploads/[0-9a-f-]{36}$"))

    upload = Upload.objects.get()
    assert (upload.agent_name, upload.protocol_version, upload.file_name) == ("Careful Agent", 2, "package.zip")
    assert ResumableUpload.objects.get().offset == 2_600_000
    page.goto(live_server.url + reverse("upload"))
    expect(page.get_by_text("Unfinished upload")).to_be_hidden()
    assert [each for each in complaints if "ERR_FAILED" not in each and "status of 400" not in each] == []
