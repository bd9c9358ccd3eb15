"""`python -m tools.reference` writes every page of docs/reference again."""

from __future__ import annotations

import importlib
import os

import django

from tools.reference.markdown import ROOT

FOLDER = ROOT / "docs" / "reference"


def main() -> None:
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "config.settings")
    django.setup()
    pages: dict[str, str] = importlib.import_module("tools.reference.pages").build_pages()  # imports models
    FOLDER.mkdir(exist_ok=True)
    for file in FOLDER.glob("*.md"):
        file.unlink()
    for name, text in pages.items():
        (FOLDER / name).write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
