"""The scripts of the pages as files: what a test in a browser, which serves them without hashes, cannot see."""

from __future__ import annotations

import re
from graphlib import TopologicalSorter

from django.conf import settings

IMPORTED = re.compile(r"""(?:from|import\()\s*["']\./([\w.]+)["']""")


def test_no_script_imports_itself_through_others() -> None:
    """Circular imports make collectstatic fail, and with it every start: each hash would depend on the other."""
    folder = settings.BASE_DIR / "static" / "js"
    graph = {file.name: set(IMPORTED.findall(file.read_text())) for file in folder.glob("*.js")}

    assert graph["desk.js"] > {"viewer.js", "drawing.js"}
    TopologicalSorter(graph).prepare()  # raises CycleError
