"""A temporary profile for measurements, and images that differ."""

from __future__ import annotations

import os
import zlib
from pathlib import Path

from tools.checks import PROFILE_VARIABLES


def set_up(data: str | Path) -> None:
    """Set up Django in this process with the embedded profile in the folder ``data``."""
    for name in [name for name in os.environ if PROFILE_VARIABLES.fullmatch(name)]:
        del os.environ[name]
    os.environ |= {"WEBVERDICT_DATA": str(data), "DJANGO_SETTINGS_MODULE": "config.settings"}
    import django  # noqa: PLC0415 - the settings are read with the data folder known

    django.setup()


def mark_png(picture: bytes, number: int) -> bytes:
    """Return the same PNG with a text chunk, so that the store treats it as another image."""
    body = b"tEXt" + b"Comment\0" + str(number).encode()
    chunk = (len(body) - 4).to_bytes(4, "big") + body + zlib.crc32(body).to_bytes(4, "big")
    return picture[:-12] + chunk + picture[-12:]
