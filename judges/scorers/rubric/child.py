"""Entry point of a process that handles hostile input: `script` (a rubric script) or `pdf` (a document).

It is started as a file, with an interpreter that ignores environment and working folder (``-I``). The packages above
this one are registered without their imports for judges, which these processes never need.
"""

from __future__ import annotations

import importlib
import sys
import types
from pathlib import Path

HERE = Path(__file__).resolve().parent
MODES = {"script": "script_child", "pdf": "pdf_child"}


def enter(package: str, folder: Path) -> None:
    """Register ``package`` by its folder, without running its ``__init__``."""
    module = types.ModuleType(package)
    module.__path__ = [str(folder)]
    sys.modules[package] = module


def main(mode: str) -> None:
    """Run a mode and do not return: the process ends with its work, whatever threads a script may have left."""
    sys.path.insert(0, str(HERE.parents[2]))
    enter("judges.scorers", HERE.parent)
    enter("judges.scorers.rubric", HERE)
    importlib.import_module(f"judges.scorers.rubric.{MODES[mode]}").run()


if __name__ == "__main__":
    main(sys.argv[1])
