"""The manifest of a backup: strict shapes, because the folder may have been changed by others.

It is signed (HMAC-SHA256) with the secret key of the instance, so only this instance accepts it.
"""

from __future__ import annotations

import os
import re
import secrets
import tomllib
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Annotated, BinaryIO, Final, Literal

from django.conf import settings
from django.db.migrations.loader import MigrationLoader
from pydantic import AwareDatetime, BaseModel, ConfigDict, Field, ValidationError, model_validator

FORMAT: Final = "webverdict-backup-1"
MANIFEST, DUMP = "manifest.json", "database"
SNAPSHOT = re.compile(r"\d{8}T\d{6}Z(-\d{1,3})?")  # UTC, to the second
MOST_BYTES = 1 << 29  # of a manifest: three million files
NAME = r"^(originals/[0-9a-f]{2}/[0-9a-f]{64}|[a-z]{1,20}/[A-Za-z0-9][A-Za-z0-9._-]{0,199})$"

Digest = Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")]
Size = Annotated[int, Field(ge=0, lt=1 << 63)]
Text = Annotated[str, Field(max_length=200)]
StoreName = Annotated[str, Field(pattern=NAME)]


class BackupError(Exception):
    """A backup or restore that cannot be done: the cause and the remedy, for the operator."""


class Strict(BaseModel):
    model_config = ConfigDict(strict=True, extra="forbid", frozen=True)


class Head(Strict):
    """The last event of a chain; ``submission`` is null for the chain of the instance."""

    submission: int | None
    sequence: Size
    hash: Digest


class Database(Strict):
    """``kind`` is a vendor of Django, ``migrations`` are app and name, ``counts`` are rows by model."""

    kind: Annotated[str, Field(pattern="^(sqlite|postgresql)$")]
    server: Text
    sha256: Digest
    size: Size
    migrations: list[tuple[Text, Text]]
    counts: dict[Text, Size]
    heads: list[Head]


class StoredFile(Strict):
    """``name`` is the name in the store; ``size`` is in bytes."""

    name: StoreName
    sha256: Digest
    size: Size

    @model_validator(mode="after")
    def check_name(self) -> StoredFile:
        if self.name.startswith("originals/") and self.name != f"originals/{self.sha256[:2]}/{self.sha256}":
            raise ValueError(f"{self.name} has another SHA-256 than its name")
        return self


class LostFile(Strict):
    """A file that rows refer to, but that the store did not have intact; ``problem`` is "damaged" or "missing"."""

    name: StoreName
    problem: Literal["damaged", "missing"]


class SealedKeys(Strict):
    """Secret keys, encrypted by AES-256-GCM under a passphrase; see `keys.seal`. All values are hex."""

    salt: Annotated[str, Field(pattern=r"^[0-9a-f]{32}$")]
    nonce: Annotated[str, Field(pattern=r"^[0-9a-f]{24}$")]
    data: Annotated[str, Field(pattern=r"^([0-9a-f]{2})+$", max_length=200_000)]


class Keys(Strict):
    """Fingerprints of SECRET_KEY and its fallbacks, in this order, and the sealed keys if there was a passphrase."""

    fingerprints: Annotated[list[Annotated[str, Field(pattern=r"^[0-9a-f]{16}$")]], Field(min_length=1)]
    sealed: SealedKeys | None


class Manifest(Strict):
    """One backup. ``version`` is that of the product; ``mac`` covers everything else, under the first key."""

    format: Literal["webverdict-backup-1"]
    snapshot: Annotated[str, Field(pattern=f"^{SNAPSHOT.pattern}$")]
    created_at: AwareDatetime
    version: Text
    database: Database
    files: list[StoredFile]
    lost: list[LostFile]
    keys: Keys
    mac: Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")] = "0" * 64

    @model_validator(mode="after")
    def check_names(self) -> Manifest:
        if len({each.name for each in self.files}) < len(self.files):
            raise ValueError("a file is listed twice")
        return self

    def signed_content(self) -> str:
        return self.model_dump_json(exclude={"mac"})


def write(folder: Path, manifest: Manifest) -> None:
    """Write the manifest of a snapshot whole or not at all, after everything that it names."""
    os.sync()
    temporary = folder / f".{MANIFEST}-{secrets.token_hex(4)}"
    write_private(temporary, manifest.model_dump_json())
    temporary.replace(folder / MANIFEST)


def read(folder: Path) -> Manifest:
    """Return the manifest of a snapshot. Raises BackupError if it is not one, or belongs to another snapshot."""
    file = folder / MANIFEST
    with open_untrusted(file) as stream:
        text = stream.read(MOST_BYTES + 1)
    if len(text) > MOST_BYTES:
        raise BackupError(f"{file} is too large to be a manifest.")
    try:
        manifest = Manifest.model_validate_json(text)
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        where = ".".join(map(str, first["loc"])) or "the document"
        raise BackupError(f"{file} is not a manifest of this version: {where}: {first['msg']}.") from None
    if manifest.snapshot != folder.name:
        raise BackupError(f"{file} is the manifest of {manifest.snapshot}. Somebody moved it.")
    return manifest


def write_private(path: Path, text: str) -> None:
    """Write a new file that is closed to other users. Raises FileExistsError."""
    with os.fdopen(os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600), "w", encoding="utf-8") as stream:
        stream.write(text)
        stream.flush()
        os.fsync(stream.fileno())


def open_untrusted(path: Path) -> BinaryIO:
    """Open a file of a backup, whose folder may contain links and pipes. Raises OSError; a pipe is empty."""
    return os.fdopen(os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK), "rb")


def product_version() -> str:
    """Return the version of the installed package, or of the checkout; "unknown" if neither states one."""
    try:
        return version("webverdict")
    except PackageNotFoundError:
        file = settings.BASE_DIR / "pyproject.toml"
        return str(tomllib.loads(file.read_text())["project"]["version"]) if file.is_file() else "unknown"


def explain_migrations(manifest: Manifest) -> str:
    """Return "" if the backup has exactly the migrations of this version; otherwise the first differences."""
    loader = MigrationLoader(None)
    ours, applied = loader.disk_migrations, set(manifest.database.migrations)
    unknown = applied - set(ours)
    missing = [key for key in loader.graph.nodes if not applied.issuperset(ours[key].replaces or [key])]
    found = [(unknown, "which this version does not have"), (missing, "which the backup does not have")]
    return "; ".join(f"{', '.join('.'.join(key) for key in sorted(keys)[:3])}, {what}" for keys, what in found if keys)
