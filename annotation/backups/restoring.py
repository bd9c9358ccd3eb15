"""Restore a snapshot into an empty instance: verify everything, write the files, then the database, and check it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

from django.conf import settings
from django.db import IntegrityError, connection

from annotation import chain_checks, store_checks
from annotation.backups import databases, keys, manifest, snapshots, stored_files
from annotation.backups.manifest import DUMP, BackupError, Manifest
from annotation.formats.printable import counted, listing
from annotation.models import Event, Submission
from annotation.models.events import first_broken

SHOWN = 5  # files of a refusal
OWN_KEY = "secret_key"  # in the data folder of the embedded profile; see config/settings.py

Say = Callable[[str], object]


@dataclass(frozen=True, slots=True)
class Restored:
    """A restored snapshot, and what the checks found wrong in it."""

    manifest: Manifest
    problems: list[str]


def find_snapshot(folder: Path, name: str = "") -> Manifest:
    """Return the manifest of the snapshot ``name``, or of the newest one. Raises BackupError."""
    found = snapshots.list_snapshots(folder)
    path = next((each for each in found if each.name == name), None) if name else found[-1]
    if path is None:
        raise BackupError(f"The backup {name} does not exist. There are: {listing([each.name for each in found])}.")
    return manifest.read(path)


def write_key(made: Manifest, passphrase: str, file: Path) -> None:
    """Write the sealed secret key to a new file, and its fallbacks to ``file`` with the suffix ``.fallbacks``."""
    secret, *fallbacks = keys.open_sealed(made, passphrase)
    contents = {file: secret} | ({file.with_name(f"{file.name}.fallbacks"): ",".join(fallbacks)} if fallbacks else {})
    for path, text in contents.items():
        manifest.write_private(path, text)


def restore(folder: Path, made: Manifest, *, passphrase: str = "", partial: bool = False, say: Say = print) -> Restored:
    """Restore a snapshot into an empty database, and a store that is empty or has files of this snapshot only.

    Everything is verified before anything is written. If it fails later, the database stays empty, and it can be
    repeated. ``partial`` accepts damaged and missing files. Raises BackupError with the reason and what was found.
    """
    with snapshots.lock(folder, exclusive=False):
        secret = _find_key(made, passphrase)
        _check_target(made)
        bad = _check_backup(folder, made, partial=partial)
        say(f"Verified: the dump and {counted(len(made.files) - len(bad), 'file')}.")
        stored = _check_store(made)
        for file in made.files:
            if file.name not in stored and file.name not in bad:
                stored_files.copy_to_store(folder, file)
        say(f"Copied: {counted(len(made.files) - len(bad) - len(stored), 'file')}.")
        if secret != settings.SECRET_KEY and secret not in settings.SECRET_KEY_FALLBACKS:
            _replace_own_key(secret)
        databases.restore(folder / snapshots.SNAPSHOTS / made.snapshot / DUMP)
        say("Restored: the database.")
    return Restored(made, _find_differences(made))


# --- before ----------------------------------------------------------------------------------------------------------


def _find_key(made: Manifest, passphrase: str) -> str:
    """Return the secret key of the backup, which this instance has, or may still take over."""
    secret = keys.find_key(made, keys.own_keys())
    if secret is not None:
        return secret
    if passphrase and _has_own_key():
        secret = keys.find_key(made, keys.open_sealed(made, passphrase))
        if secret is not None:
            return secret
    remedy = "Set SECRET_KEY to the key of the backup"
    if made.keys.sealed is not None:
        remedy += ": `restore` writes it to a new file with --passphrase-file and --write-key"
    raise BackupError(f"The backup was created with another SECRET_KEY, which its signing key needs. {remedy}.")


def _has_own_key() -> bool:
    """Return whether the secret key is that of the embedded profile's file, which an empty instance can replace."""
    file = settings.DATA / OWN_KEY
    return not settings.PRODUCTION and file.is_file() and file.read_text().strip() == settings.SECRET_KEY


def _replace_own_key(secret: str) -> None:
    new = settings.DATA / f".{OWN_KEY}.restored"
    new.unlink(missing_ok=True)
    manifest.write_private(new, secret)
    new.replace(settings.DATA / OWN_KEY)


def _check_target(made: Manifest) -> None:
    if made.database.kind != connection.vendor:
        raise BackupError(f"The backup is of {made.database.kind}, but this instance uses {connection.vendor}.")
    if difference := manifest.explain_migrations(made):
        raise BackupError(
            f"The backup is of version {made.version}, and this is {manifest.product_version()} with other migrations: "
            f"{difference}. Install the version of the backup, restore, then upgrade."
        )
    databases.check_programs("pg_restore")
    if found := databases.describe_content():
        raise BackupError(
            f"The database is not empty: {found}. Nothing was changed. Stop WebVerdict, and create an empty database "
            "(embedded: choose an empty WEBVERDICT_DATA)."
        )


def _check_backup(folder: Path, made: Manifest, *, partial: bool) -> set[str]:
    """Return the names of damaged and missing files, none unless ``partial``. A damaged dump is always refused."""
    dump = folder / snapshots.SNAPSHOTS / made.snapshot / DUMP
    if problem := stored_files.explain_file(dump, made.database.sha256, made.database.size):
        raise BackupError(f"The dump {dump} is {problem}. Use another backup.")
    problems = dict(snapshots.find_bad_files(folder, made))
    if problems and not partial:
        shown = listing([f"{name} is {problem}" for name, problem in islice(problems.items(), SHOWN)])
        raise BackupError(
            f"{counted(len(problems), 'file')} of the backup cannot be restored: {shown}. Use another backup, or "
            "restore all others with --partial."
        )
    return set(problems)


def _check_store(made: Manifest) -> set[str]:
    """Return the names of the files that the store has already. Raises BackupError for any other content."""
    files = {file.name: file for file in made.files}
    present = list(stored_files.list_stored())
    foreign = [name for name in present if name not in files or not stored_files.is_stored(files[name])]
    if foreign:
        raise BackupError(
            f"The store is not empty: {counted(len(foreign), 'file')} that the backup does not have, or has with other "
            f"content: {listing(sorted(foreign)[:SHOWN])}. Nothing was changed. Empty the store, or choose another one."
        )
    return set(present)


# --- after -----------------------------------------------------------------------------------------------------------


def _find_differences(made: Manifest) -> list[str]:
    """Check rows, foreign keys, chains and all stored files of the restored instance."""
    counts = databases.count_rows()
    problems = [
        f"{model}: {counts.get(model, 0):,} rows instead of {count:,}."
        for model, count in made.database.counts.items()
        if counts.get(model) != count
    ]
    if list(databases.list_heads()) != made.database.heads:
        problems.append("The heads of the event chains differ from those of the backup.")
    try:
        connection.check_constraints()
    except IntegrityError as error:
        problems.append(f"Foreign keys: {error}")
    for submission in Submission.objects.order_by("pk"):
        checked = chain_checks.check_whole(submission)
        if checked is not None and checked.broken is not None:
            problems.append(f"Submission {submission.pk}: event {checked.broken} does not match its chain.")
    broken = first_broken(Event.objects.filter(submission=None).order_by("sequence").iterator())
    if broken is not None:
        problems.append(f"Instance: event {broken.sequence} does not match its chain.")
    check = store_checks.start()
    store_checks.proceed(check, rate=0)
    return problems + [f"originals/{each['sha256'][:2]}/{each['sha256']} is {each['kind']}." for each in check.problems]
