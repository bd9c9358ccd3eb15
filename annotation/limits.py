"""How large a file may be that somebody sends in."""

from __future__ import annotations

from typing import Any

from django.conf import settings


def too_large(file: Any, limit: int | None = None) -> str:
    """What is said of an uploaded file of more than ``limit`` bytes, that of the settings for packages and bundles
    unless given; empty for any other."""
    most = settings.WEBVERDICT_MAX_UPLOAD_BYTES if limit is None else limit
    return f"The file has {file.size:,} bytes; at most {most:,} are accepted." if file.size > most else ""


def task_file_too_large(file: Any) -> str:
    """Like `too_large`, for a task list or rows with tasks: 256 MiB with the default setting."""
    says = too_large(file, settings.WEBVERDICT_MAX_UPLOAD_BYTES // 16)
    return says and f"{says} Use the command import_tasks for larger files."
