"""Create, check and delete the snapshots of a backup folder. One process at a time changes a folder."""

from __future__ import annotations

import fcntl
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from django.db import connection
from django.utils import timezone

from annotation.backups import databases, keys, manifest, record_backup, stored_files
from annotation.backups.manifest import DUMP, FORMAT, MANIFEST, SNAPSHOT, BackupError, Database, LostFile, Manifest
from annotation.backups.stored_files import OBJECTS, explain_file, object_path
from annotation.consistent_reads import consistent_reads
from annotation.screenshots import WRITING

SNAPSHOTS = "snapshots"

Results = dict[tuple[str, int], str]  # of `explain_file`, by digest and size


@dataclass(frozen=True, slots=True)
class Contents:
    """What the database had at one moment: its dump, and the names of the files that it referred to."""

    database: Database
    originals: list[str]
    of_jobs: list[str]


def create(folder: Path, passphrase: str = "") -> Manifest:
    """Add a snapshot to ``folder``, which is created if it does not exist, and record it unless files are lost.

    The dump comes first, then the files that it refers to. No code deletes a file that rows name, except files of jobs,
    which may end meanwhile: these are left out, and a restored job reports that its file is missing.

    Raises BackupError, an OSError of the folder or one of `screenshots.STORE_ERRORS`; then the folder has no new
    snapshot, and earlier ones are not changed.
    """
    databases.check_programs("pg_dump")
    for path in (folder, folder / OBJECTS, folder / SNAPSHOTS):
        path.mkdir(parents=True, exist_ok=True, mode=0o700)
    with lock(folder):
        _delete_unfinished(folder)
        snapshot = _make_snapshot(folder)
        try:
            made = _fill(folder, snapshot, passphrase)
            manifest.write(snapshot, made)
        except BaseException:
            shutil.rmtree(snapshot, ignore_errors=True)
            raise
    if not made.lost:
        record_backup(made.snapshot, made.database.sha256)
    return made


def _fill(folder: Path, snapshot: Path, passphrase: str) -> Manifest:
    created_at = timezone.now()
    contents = _dump(snapshot / DUMP)
    found = list(stored_files.copy_to_backup(folder, contents.originals))
    of_jobs = stored_files.copy_to_backup(folder, contents.of_jobs)
    found += [each for each in of_jobs if not isinstance(each, LostFile)]
    return keys.sign(
        Manifest(
            format=FORMAT,
            snapshot=snapshot.name,
            created_at=created_at,
            version=manifest.product_version(),
            database=contents.database,
            files=[each for each in found if not isinstance(each, LostFile)],
            lost=[each for each in found if isinstance(each, LostFile)],
            keys=keys.describe_keys(passphrase),
        )
    )


def _dump(file: Path) -> Contents:
    with consistent_reads():
        databases.dump(file)
        database = Database(
            kind=connection.vendor,
            server=databases.server_version(),
            sha256="0" * 64,
            size=0,
            migrations=databases.list_migrations(),
            counts=databases.count_rows(),
            heads=list(databases.list_heads()),
        )
        originals, of_jobs = stored_files.list_referenced()
    with file.open("rb") as stream:  # after the transaction, which lets the database remove no old rows
        sha256, size = stored_files.digest(stream)
    return Contents(database.model_copy(update={"sha256": sha256, "size": size}), originals, of_jobs)


def _make_snapshot(folder: Path) -> Path:
    """Create the folder of a new snapshot, named by the time."""
    name = f"{timezone.now():%Y%m%dT%H%M%SZ}"
    for number in range(1000):
        path = folder / SNAPSHOTS / (f"{name}-{number}" if number else name)
        with suppress(FileExistsError):
            path.mkdir(mode=0o700)
            return path
    raise BackupError(f"{folder} has too many snapshots of this second.")


@contextmanager
def lock(folder: Path, *, exclusive: bool = True) -> Iterator[None]:
    """Lock a backup folder, exclusively to change it. Raises BackupError at once if another process uses it."""
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)  # needs no disk space, and ends with the process
    try:
        try:
            fcntl.flock(descriptor, (fcntl.LOCK_EX if exclusive else fcntl.LOCK_SH) | fcntl.LOCK_NB)
        except BlockingIOError:
            raise BackupError(f"Another command is using {folder}. Wait until it ends, then try again.") from None
        yield
    finally:
        os.close(descriptor)


def list_snapshots(folder: Path) -> list[Path]:
    """Return the complete snapshots, oldest first. Raises BackupError if there is no backup."""
    try:
        found = [path for path in (folder / SNAPSHOTS).iterdir() if SNAPSHOT.fullmatch(path.name)]
    except (FileNotFoundError, NotADirectoryError):
        found = []
    complete = [path for path in found if os.path.lexists(path / MANIFEST)]
    if not complete:
        raise BackupError(f"{folder} has no backup. Name the folder that `backup` was called with.")
    return sorted(complete, key=lambda path: (path.name[:16], int(path.name[17:] or 0)))


def _delete_unfinished(folder: Path) -> None:
    """Delete what a killed or failed backup left."""
    for path in (folder / SNAPSHOTS).iterdir():
        if SNAPSHOT.fullmatch(path.name) and not (path / MANIFEST).exists():
            shutil.rmtree(path)
    for file in (folder / OBJECTS).glob(f"{WRITING}*"):
        file.unlink()


def delete_old(folder: Path, keep: int) -> int:
    """Delete all but the newest ``keep`` snapshots, and the objects that none of those names.

    Return the number of deleted snapshots. Raises BackupError, before anything is deleted, if a manifest that stays
    cannot be read.
    """
    with lock(folder):
        found = list_snapshots(folder)
        old, staying = found[:-keep], found[-keep:]
        needed = {file.sha256 for path in staying for file in manifest.read(path).files}
        for path in old:
            (path / MANIFEST).unlink()  # first, so that what is left after an interruption is no backup
            shutil.rmtree(path)
        for file in (folder / OBJECTS).glob("??/*"):
            if file.name not in needed:
                file.unlink()
    return len(old)


def check(folder: Path) -> tuple[int, list[str]]:
    """Read everything in a backup folder again; return the number of files read, and what is wrong in which snapshot.

    Each object is read once. Changes of a manifest are only detected with the secret key that it was made with.
    """
    with lock(folder, exclusive=False):
        problems: list[str] = []
        results: Results = {}
        found = list_snapshots(folder)
        for path in found:
            try:
                made = manifest.read(path)
                if keys.find_key(made, keys.own_keys()) is None:
                    raise BackupError("It was created with another SECRET_KEY, so it cannot be verified.")
            except (BackupError, OSError) as error:
                problems.append(f"{path.name}: {error}")
                continue
            if problem := explain_file(path / DUMP, made.database.sha256, made.database.size):
                problems.append(f"{path.name}: the dump is {problem}.")
            problems += [
                f"{path.name}: {name} is {problem}." for name, problem in find_bad_files(folder, made, results)
            ]
    return len(results) + len(found), problems


def find_bad_files(folder: Path, made: Manifest, results: Results | None = None) -> Iterator[tuple[str, str]]:
    """Yield the name of each file that cannot be restored, with the place or time of the damage.

    ``results`` has the results for objects that were read before.
    """
    results = {} if results is None else results
    for file in made.files:
        path, content = object_path(folder, file.sha256), (file.sha256, file.size)
        if content not in results:
            results[content] = explain_file(path, *content)
        if results[content]:
            yield file.name, f"{results[content]} ({path})"
    for lost in made.lost:
        yield lost.name, f"{lost.problem} since before the backup"
