"""The commands `backup` and `restore` in tests, and what they must leave as it was."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any

import pytest
from django.core.management import CommandError, call_command
from django.db import connection


def run(command: str, *arguments: Any) -> str:
    """Return what a command prints."""
    output = io.StringIO()
    call_command(command, *map(str, arguments), stdout=output, stderr=output)
    return output.getvalue()


def refuse(command: str, *arguments: Any) -> str:
    """Return the one line with which a command fails."""
    with pytest.raises(CommandError) as refused:
        run(command, *arguments)
    assert "\n" not in str(refused.value)
    return str(refused.value)


def tables() -> list[str]:
    with connection.cursor() as cursor:
        return sorted(connection.introspection.table_names(cursor))


def objects_of(folder: Path) -> dict[str, Path]:
    """Return the files of a backup folder by their names, which are digests."""
    return {path.name: path for path in (folder / "objects").rglob("*") if path.is_file()}
