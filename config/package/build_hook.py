"""Part of the build: static files, collected and compressed, and verify.py, so that no start has to make them."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

WRITE_VERIFIER = """
from pathlib import Path
from django.conf import settings
from evaluations.evidence.verification import single_file
(settings.DATA / "verify.py").write_text(single_file())
"""


def _list_unused(folder: Path) -> Iterator[Path]:
    """Yield files that no page names: source maps, and copies under names without a digest."""
    yield from folder.rglob("*.map*")
    for name in json.loads((folder / "staticfiles.json").read_bytes())["paths"]:
        yield from (folder / f"{name}{suffix}" for suffix in ("", ".gz", ".br"))


class Prepare(BuildHookInterface):
    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        if self.target_name != "wheel":
            return
        self.folder = tempfile.TemporaryDirectory()
        self._manage(
            "collectstatic", "--noinput", "--ignore", "rest_framework", "--ignore", "redoc"
        )  # no page has them
        self._manage("shell", "--no-imports", "--command", WRITE_VERIFIER)
        made = Path(self.folder.name)
        for path in _list_unused(made / "static"):
            path.unlink(missing_ok=True)
        build_data["force_include"] |= {str(made / "static"): "collected", str(made / "verify.py"): "verify.py"}

    def finalize(self, version: str, build_data: dict[str, Any], artifact_path: str) -> None:
        if self.target_name == "wheel":
            self.folder.cleanup()

    def _manage(self, *arguments: str) -> None:
        embedded = {"WEBVERDICT_DATA": self.folder.name, "DATABASE_URL": "", "REDIS_URL": "", "S3_BUCKET": ""}
        command = [sys.executable, "manage.py", *arguments, "--verbosity", "0"]
        subprocess.run(command, cwd=self.root, env=os.environ | embedded, check=True)  # noqa: S603 - our own command
