"""Build verify.py from the modules of `evaluations.verifier`, and check bundles with them.

Here the HTML report, README and metadata are rendered again and compared, which verify.py does not do.
"""

from __future__ import annotations

import hashlib
from dataclasses import replace
from functools import cache
from pathlib import Path

from evaluations import verifier
from evaluations.evidence.companions import build_readme, crate_digest
from evaluations.verifier.checking import REPORT_PAGE, Given, Outcome, check_bundle
from evaluations.verifier.contents import CRATE, README, Listed, Progressed
from evaluations.verifier.documents import MANIFEST, SIGNATURE, Bundle
from evaluations.verifier.shapes import FORMAT

OLDEST_PYTHON = (3, 10)
FIRST = ("checking", "main")  # `checking` defines what is checked; the others follow by name
QUOTES = "'''"
HEADER = f'''#!/usr/bin/env python3
"""Check an evidence bundle ({FORMAT}) with nothing but Python {OLDEST_PYTHON[0]}.{OLDEST_PYTHON[1]} or newer, offline.

    python3 -I verify.py BUNDLE [--keys FILE|HEX] [--anchors FILE] [--chain ID] [--head HASH] [--tasks FILE]
        [--revocations FILE] [--against BUNDLE] [--attestation FILE] [--json]

BUNDLE is the zip, or the folder it was unpacked to. Exit code 0: nothing failed; 1: something did, or the bundle was
refused; 2: wrong usage. It reads what it is given and writes nothing. A bundle brings its own copy of this program,
which the maker of the bundle could have changed: take it from somebody you trust.

Below are the modules of WebVerdict's evaluations/verifier, word for word. The first one, checking, says what is checked
and in which module. MIT License. Copyright (c) the WebVerdict authors.
"""

import sys

# The maker of a bundle may have put a json.py beside this file: no import is from its folder or the current one.
if __name__ == "__main__" and not (sys.flags.isolated or getattr(sys.flags, "safe_path", False)):
    del sys.path[0]
sys.path[:] = [each for each in sys.path if each not in ("", ".", __file__.replace("\\\\", "/").rpartition("/")[0])]

if sys.version_info < {OLDEST_PYTHON}:
    sys.exit("verify.py needs Python {OLDEST_PYTHON[0]}.{OLDEST_PYTHON[1]} or newer.")

from importlib.abc import InspectLoader, MetaPathFinder
from importlib.util import spec_from_loader


class Modules(MetaPathFinder, InspectLoader):
    """Import the modules below from their texts, and never from a file of the same name."""

    packages = ("evaluations", "evaluations.verifier")
    texts = dict.fromkeys(packages, "")

    def add(self, name, text):
        self.texts["evaluations.verifier." + name] = text[1:]  # without the line end behind the quotes

    def find_spec(self, name, path=None, target=None):
        return spec_from_loader(name, self) if name in self.texts else None

    def is_package(self, name):
        return name in self.packages

    def get_source(self, name):
        return self.texts[name]


modules = Modules()
sys.meta_path.insert(0, modules)
'''
FOOTER = """
if __name__ == "__main__":
    from evaluations.verifier.main import main

    sys.exit(main(sys.argv[1:], __file__))
"""


def verifier_modules() -> dict[str, str]:
    """Return the texts of the modules by name, in the order of verify.py."""
    names = {path.stem: path for path in sorted(Path(verifier.__file__).parent.glob("*.py")) if path.stem != "__init__"}
    return {name: names[name].read_text() for name in dict.fromkeys([*FIRST, *names])}


@cache
def single_file() -> str:
    """Return the text of verify.py; the same modules give the same text."""
    return build_single_file(verifier_modules())


def build_single_file(texts: dict[str, str]) -> str:
    """Join the modules; ValueError for a text that contains the quotes, or does not end with a line feed."""
    for name, text in texts.items():
        if QUOTES in text or not text.endswith("\n"):
            raise ValueError(f"{name} contains {QUOTES}, or does not end with a line feed.")
    sections = [f'modules.add("{name}", r{QUOTES}\n{text}{QUOTES})\n' for name, text in texts.items()]
    return "".join([HEADER, *sections, FOOTER])


def _report_digest(bundle: Bundle, _: list[Listed]) -> str:
    from evaluations.evidence.report.page import render_report  # noqa: PLC0415 - the build of verify/ has no Django

    return hashlib.sha256(render_report(bundle).encode()).hexdigest()


def _readme_digest(bundle: Bundle, files: list[Listed]) -> str:
    paths = {CRATE, MANIFEST, SIGNATURE, *(path for path, _, _ in files)}
    return hashlib.sha256(build_readme(bundle.submission, paths)).hexdigest()


RENDERERS = {REPORT_PAGE: _report_digest, README: _readme_digest, CRATE: crate_digest}


def verify_bundle(path: str, given: Given, progress: Progressed = lambda done, total: None) -> Outcome:
    """Check a bundle with the verify.py of this version; texts of a bundle of another version may differ.

    Raises Refused for a package that cannot be read safely, BadKeys for the keys.
    """
    return check_bundle(path, replace(given, program=single_file().encode()), progress, RENDERERS)
