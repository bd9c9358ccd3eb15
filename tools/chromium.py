"""Search for the Chromium that the tests, the benchmarks and the recorder of the demo start."""

from __future__ import annotations

import os
import shutil

_NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")


class ChromiumMissingError(Exception):
    """Error: no browser can be started; the message states how to fix it."""


def find_chromium() -> str:
    """Return the program that CHROMIUM names, else the path of the first one on PATH."""
    given = os.environ.get("CHROMIUM", "")
    if given and not shutil.which(given):
        raise ChromiumMissingError(f"CHROMIUM is {given!r}, which cannot be run. Set it to the path of a Chromium.")
    found = given or next((path for path in map(shutil.which, _NAMES) if path), None)
    if not found:
        raise ChromiumMissingError(
            "No Chromium found. Install it (on Debian: apt-get install chromium) or set CHROMIUM to its path."
        )
    return found
