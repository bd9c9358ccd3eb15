"""Version of this product, from the installed package or the checkout's pyproject.toml."""

from __future__ import annotations

import tomllib
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path


def _find_version() -> str:
    project = Path(__file__).resolve().parents[1] / "pyproject.toml"  # a checkout, and the image
    if project.exists():
        return str(tomllib.loads(project.read_text(encoding="utf-8"))["project"]["version"])
    try:
        return version("webverdict")
    except PackageNotFoundError:
        return "unknown"


VERSION = _find_version()
