"""Part of the build: verify.py, from the modules of the checkout around this folder. It needs no other package."""

from __future__ import annotations

import sys
import tempfile
from importlib import import_module
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

PLACE = "webverdict_verify/verify.py"


class Prepare(BuildHookInterface):
    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        self.folder = tempfile.TemporaryDirectory()
        if Path(self.root, PLACE).exists():  # built from a source distribution
            return
        sys.path.insert(0, str(Path(self.root).parent))
        program = Path(self.folder.name, "verify.py")
        program.write_text(import_module("evaluations.evidence.verification").single_file(), encoding="utf-8")
        build_data["force_include"][str(program)] = PLACE

    def finalize(self, version: str, build_data: dict[str, Any], artifact_path: str) -> None:
        self.folder.cleanup()
