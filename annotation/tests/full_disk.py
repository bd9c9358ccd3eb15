"""A full store, on a real file system if this process may mount one."""

from __future__ import annotations

import errno
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from django.core.files.base import File
from django.core.files.storage import default_storage

from annotation.screenshots import AtomicFileSystemStorage


class FullDisk(AtomicFileSystemStorage):
    """Has ``room`` bytes for originals."""

    def __init__(self, room: int, **options: Any) -> None:
        super().__init__(**options)
        self.room = room

    def _save(self, name: str, content: File) -> str:
        used = sum(path.stat().st_size for path in Path(self.path("originals")).rglob("*") if path.is_file())
        if name.startswith("originals/") and used + content.size > self.room:
            raise OSError(errno.ENOSPC, "No space left on device")
        return super()._save(name, content)


def limit_room(settings: Any, room: int) -> None:
    settings.STORAGES = settings.STORAGES | {
        "default": {"BACKEND": "annotation.tests.full_disk.FullDisk", "OPTIONS": {"room": room}}
    }


@contextmanager
def small_disk(settings: Any, folder: Path, kibibytes: int) -> Iterator[None]:
    """Keep files on a tmpfs of this size; where it cannot be mounted, in a folder that refuses more."""
    settings.MEDIA_ROOT = folder
    with mounted(folder, kibibytes) as is_mounted:
        if not is_mounted:
            limit_room(settings, kibibytes * 1024)
        yield


@contextmanager
def mounted(folder: Path, kibibytes: int) -> Iterator[bool]:
    """Create a folder with a tmpfs of this size; yield whether it could be mounted."""
    folder.mkdir()
    command = ["mount", "-t", "tmpfs", "-o", f"size={kibibytes}k,mode=0700", "none", str(folder)]
    try:
        is_mounted = subprocess.run(command, capture_output=True, timeout=30, check=False).returncode == 0
    except FileNotFoundError:  # there is no mount(8)
        is_mounted = False
    try:
        yield is_mounted
    finally:
        if is_mounted:
            subprocess.run(["umount", "--lazy", str(folder)], timeout=30, check=True)


def find_originals() -> list[str]:
    """Return the names of all stored originals, and of unfinished ones."""
    try:
        folders = default_storage.listdir("originals")[0]
    except FileNotFoundError:
        return []
    return sorted(name for folder in folders for name in default_storage.listdir(f"originals/{folder}")[1])
