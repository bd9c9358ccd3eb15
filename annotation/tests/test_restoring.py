"""A restore writes nothing unless the whole backup is intact, belongs to this instance, and has room for itself."""

from __future__ import annotations

import json
import os
import shutil
import sqlite3
import subprocess
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from django.core.files.base import ContentFile
from django.core.files.storage import default_storage
from django.core.management import CommandError
from django.db import connection

from annotation.backups import databases, keys, manifest, snapshots
from annotation.backups.manifest import DUMP, MANIFEST
from annotation.models import Submission
from annotation.tests import testing
from annotation.tests.backup_commands import objects_of, refuse, run, tables
from annotation.tests.full_disk import find_originals
from annotation.tests.other_instance import other_instance

pytestmark = pytest.mark.django_db(transaction=True)

PASSPHRASE = "correct horse battery"
OTHER_KEY = "another key " * 5


@pytest.fixture
def folder(tmp_path: Path, settings: Any) -> Path:
    """A backup of a submission with six screenshots."""
    settings.MEDIA_ROOT = tmp_path / "images"
    testing.submission(tmp_path / "package", trajectories=2)
    run("backup", tmp_path / "backups", "--passphrase-file", write_passphrase(tmp_path))
    return tmp_path / "backups"


@pytest.fixture
def empty(folder: Path, tmp_path: Path, settings: Any) -> Any:
    """An empty instance in place of the one that was backed up."""
    with other_instance(settings, tmp_path / "other"):
        yield


def write_passphrase(folder: Path, text: str = PASSPHRASE) -> Path:
    file = folder / "passphrase"
    file.write_text(f"{text}\n")
    return file


def newest(folder: Path) -> Path:
    return snapshots.list_snapshots(folder)[-1]


def assert_nothing_was_restored() -> None:
    assert tables() == []
    assert find_originals() == []


# --- damaged backups -------------------------------------------------------------------------------------------------


def damage(path: Path) -> None:
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 1
    path.write_bytes(data)


def replace_by_link(path: Path) -> None:
    path.rename(path.with_suffix(".moved"))
    path.symlink_to(path.with_suffix(".moved"))


def replace_by_pipe(path: Path) -> None:
    path.unlink()
    os.mkfifo(path)


@pytest.mark.once
@pytest.mark.parametrize("change", [damage, Path.unlink, replace_by_link, replace_by_pipe])
def test_bad_object_is_refused_before_anything_is_written(
    folder: Path, empty: None, change: Callable[[Path], object]
) -> None:
    name, path = next(iter(objects_of(folder).items()))
    change(path)

    said = refuse("restore", folder)

    assert f"originals/{name[:2]}/{name}" in said
    assert "--partial" in said
    assert_nothing_was_restored()
    with pytest.raises(CommandError, match="1 problem in"):
        run("backup", folder, "--check")


def test_partial_restore_brings_everything_else_and_fails(folder: Path, empty: None) -> None:
    name, path = next(iter(objects_of(folder).items()))
    damage(path)

    assert "the checks found 1 problem" in refuse("restore", folder, "--partial")

    assert len(find_originals()) == 5
    assert name not in find_originals()
    assert Submission.objects.count() == 1


@pytest.mark.once
@pytest.mark.parametrize("change", [damage, Path.unlink, replace_by_pipe])
def test_bad_dump_is_always_refused(folder: Path, empty: None, change: Callable[[Path], object]) -> None:
    change(newest(folder) / DUMP)
    assert "The dump" in refuse("restore", folder, "--partial")
    assert_nothing_was_restored()
    with pytest.raises(CommandError, match="1 problem in"):
        run("backup", folder, "--check")


def test_folder_without_a_backup_is_refused(folder: Path, tmp_path: Path, empty: None) -> None:
    assert "has no backup" in refuse("restore", tmp_path)
    assert "has no backup" in refuse("restore", tmp_path / "nowhere")
    assert "does not exist. There are: 2" in refuse("restore", folder, "--snapshot", "20200101T000000Z")
    (newest(folder) / MANIFEST).unlink()
    assert "has no backup" in refuse("restore", folder)
    assert_nothing_was_restored()


# --- hostile manifests -----------------------------------------------------------------------------------------------


def first_file(made: dict[str, Any]) -> dict[str, Any]:
    found: dict[str, Any] = made["files"][0]
    return found


HOSTILE: dict[str, tuple[Callable[[dict[str, Any]], object], str]] = {
    "path": (lambda made: first_file(made).update(name="../../etc/passwd"), "files.0.name"),
    "path in a folder": (lambda made: first_file(made).update(name="uploads/../../x"), "files.0.name"),
    "dots": (lambda made: first_file(made).update(name="uploads/.."), "files.0.name"),
    "line end": (lambda made: first_file(made).update(name="uploads/x\n"), "files.0.name"),
    "absolute": (lambda made: first_file(made).update(name="/etc/passwd"), "files.0.name"),
    "digest": (lambda made: first_file(made).update(sha256="../../../../etc/passwd"), "files.0.sha256"),
    "other digest": (lambda made: first_file(made).update(sha256="0" * 64), "another SHA-256 than its name"),
    "huge": (lambda made: first_file(made).update(size=10**400), "files.0.size"),
    "negative": (lambda made: first_file(made).update(size=-1), "files.0.size"),
    "fraction": (lambda made: first_file(made).update(size=1.5), "files.0.size"),
    "text": (lambda made: first_file(made).update(size="12"), "files.0.size"),
    "twice": (lambda made: made["files"].append(first_file(made)), "listed twice"),
    "no list": (lambda made: made.update(files={}), "files"),
    "null": (lambda made: made.update(database=None), "database"),
    "other format": (lambda made: made.update(format="webverdict-backup-2"), "format"),
    "unknown": (lambda made: made.update(command="rm"), "command"),
    "no key": (lambda made: made["keys"].update(fingerprints=[]), "fingerprints"),
    "other name": (lambda made: made.update(snapshot="20200101T000000Z"), "Somebody moved it"),
    "fewer files": (lambda made: made["files"].pop(), "was changed after the backup"),
    "other dump": (lambda made: made["database"].update(sha256="0" * 64), "was changed after the backup"),
}


@pytest.mark.once
@pytest.mark.parametrize(("change", "says"), HOSTILE.values(), ids=HOSTILE)
def test_changed_manifest_is_refused(folder: Path, empty: None, change: Callable[[Any], object], says: str) -> None:
    file = newest(folder) / MANIFEST
    made = json.loads(file.read_text())
    change(made)
    file.write_text(json.dumps(made))

    assert says in refuse("restore", folder, "--partial")

    assert_nothing_was_restored()
    with pytest.raises(CommandError, match="1 problem in"):
        run("backup", folder, "--check")


@pytest.mark.once
@pytest.mark.parametrize("text", [b"", b"{", b"[" * 100_000, b"\xff\xfe", b'{"format": NaN}', b"9" * 10_000])
def test_file_that_is_no_manifest_is_refused(folder: Path, empty: None, text: bytes) -> None:
    (newest(folder) / MANIFEST).write_bytes(text)
    assert "is not a manifest" in refuse("restore", folder)


@pytest.mark.once
def test_huge_manifest_is_not_read(folder: Path, empty: None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(manifest, "MOST_BYTES", 100)
    assert "too large" in refuse("restore", folder)


@pytest.mark.once
@pytest.mark.parametrize("change", [replace_by_link, replace_by_pipe])
def test_manifest_that_is_no_regular_file_is_refused(
    folder: Path, empty: None, change: Callable[[Path], object]
) -> None:
    change(newest(folder) / MANIFEST)
    assert "not restored" in refuse("restore", folder)
    assert_nothing_was_restored()


# --- the target ------------------------------------------------------------------------------------------------------


def test_database_with_tables_is_refused(folder: Path) -> None:
    said = refuse("restore", folder)
    assert "The database is not empty" in said
    assert "1 submissions" in said


def test_store_with_other_files_is_refused(folder: Path, empty: None) -> None:
    name = default_storage.save("uploads/other.zip", ContentFile(b"not of the backup"))
    assert name in refuse("restore", folder)
    assert tables() == []
    assert default_storage.exists(name)


def test_store_with_the_same_files_is_accepted_and_with_a_damaged_one_refused(
    folder: Path, empty: None, tmp_path: Path, settings: Any
) -> None:
    shutil.copytree(tmp_path / "images", settings.MEDIA_ROOT)
    default_storage.save("renditions/display/00/cache", ContentFile(b"created again when needed"))
    name = find_originals()[0]
    path = Path(default_storage.path(f"originals/{name[:2]}/{name}"))
    intact = path.read_bytes()
    path.write_bytes(b"damaged")

    assert name in refuse("restore", folder)
    assert tables() == []

    path.write_bytes(intact)
    assert "Copied: 0 files." in run("restore", folder)


def test_backup_of_other_migrations_names_them(folder: Path, empty: None, monkeypatch: pytest.MonkeyPatch) -> None:
    read = manifest.read
    left_out: list[str] = []

    def with_migration(path: Path) -> Any:
        made = read(path)
        left_out.append(".".join(made.database.migrations[0]))
        migrations = [*made.database.migrations[1:], ("annotation", "9999_later")]
        return keys.sign(
            made.model_copy(update={"database": made.database.model_copy(update={"migrations": migrations})})
        )

    monkeypatch.setattr(manifest, "read", with_migration)
    said = refuse("restore", folder)
    assert "annotation.9999_later, which this version does not have" in said
    assert f"{left_out[0]}, which the backup does not have" in said
    assert "Install the version of the backup" in said
    assert_nothing_was_restored()


def test_backup_of_another_database_kind_is_refused(folder: Path, empty: None, monkeypatch: pytest.MonkeyPatch) -> None:
    read = manifest.read

    def of_other_kind(path: Path) -> Any:
        made = read(path)
        kind = "sqlite" if made.database.kind == "postgresql" else "postgresql"
        return keys.sign(made.model_copy(update={"database": made.database.model_copy(update={"kind": kind})}))

    monkeypatch.setattr(manifest, "read", of_other_kind)
    assert "but this instance uses" in refuse("restore", folder)
    assert_nothing_was_restored()


def test_failed_restore_of_the_database_leaves_it_empty(
    folder: Path, empty: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As if the file had changed between its check and its use."""
    monkeypatch.setattr("annotation.backups.stored_files.explain_file", lambda *arguments: "")
    damage(newest(folder) / DUMP)
    dump = newest(folder) / DUMP
    dump.write_bytes(dump.read_bytes()[:5000])
    assert "was not restored" in refuse("restore", folder)
    assert tables() == []


# --- keys ------------------------------------------------------------------------------------------------------------


def test_wrong_secret_key_is_refused_and_the_right_one_can_be_written(
    folder: Path, empty: None, tmp_path: Path, settings: Any
) -> None:
    right, settings.SECRET_KEY = settings.SECRET_KEY, OTHER_KEY
    said = refuse("restore", folder)
    assert "another SECRET_KEY" in said
    assert right not in said
    assert_nothing_was_restored()

    file = tmp_path / "key"
    run("restore", folder, "--passphrase-file", tmp_path / "passphrase", "--write-key", file)
    assert file.read_text() == right
    assert file.stat().st_mode & 0o777 == 0o600
    assert "File exists" in refuse("restore", folder, "--passphrase-file", tmp_path / "passphrase", "--write-key", file)
    settings.SECRET_KEY_FALLBACKS = [right]
    run("restore", folder)


@pytest.mark.once
def test_passphrase_must_be_right_and_long(folder: Path, empty: None, tmp_path: Path, settings: Any) -> None:
    key = tmp_path / "key"
    write_passphrase(tmp_path, "another passphrase")
    assert "the passphrase is wrong" in refuse(
        "restore", folder, "--passphrase-file", tmp_path / "passphrase", "--write-key", key
    )
    write_passphrase(tmp_path, "short")
    assert "at least 12 characters" in refuse("backup", folder, "--passphrase-file", tmp_path / "passphrase")
    assert "No such file" in refuse("backup", folder, "--passphrase-file", tmp_path / "nothing")
    assert "needs --passphrase-file" in refuse("restore", folder, "--write-key", key)
    assert not key.exists()


@pytest.mark.once
def test_fallbacks_are_sealed_too(folder: Path, tmp_path: Path, settings: Any) -> None:
    settings.SECRET_KEY_FALLBACKS = [OTHER_KEY]
    run("backup", folder, "--passphrase-file", tmp_path / "passphrase")
    text = (newest(folder) / MANIFEST).read_text()
    assert settings.SECRET_KEY not in text
    assert OTHER_KEY not in text
    assert keys.open_sealed(manifest.read(newest(folder)), PASSPHRASE) == [settings.SECRET_KEY, OTHER_KEY]
    run("restore", folder, "--passphrase-file", tmp_path / "passphrase", "--write-key", tmp_path / "key")
    assert (tmp_path / "key.fallbacks").read_text() == OTHER_KEY


def test_backup_without_sealed_keys_cannot_open_them(folder: Path, empty: None, tmp_path: Path, settings: Any) -> None:
    with other_instance(settings, tmp_path / "third"):
        run("restore", folder)
        run("backup", folder)
    assert "without --passphrase-file" in refuse(
        "restore", folder, "--passphrase-file", tmp_path / "passphrase", "--write-key", tmp_path / "key"
    )


# --- the client programs of PostgreSQL -------------------------------------------------------------------------------


@pytest.mark.postgresql
@pytest.mark.parametrize("program", ["pg_dump", "pg_restore"])
def test_missing_or_old_client_programs_are_named(
    folder: Path, empty: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, program: str
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    command = "backup" if program == "pg_dump" else "restore"
    said = refuse(command, folder)
    assert f"{program} was not found on the PATH" in said
    assert "postgresql-client-" in said

    fake = tmp_path / program
    fake.write_text(f"#!/bin/sh\necho '{program} (PostgreSQL) 9.6.1'\n")
    fake.chmod(0o700)
    assert f"{fake} is too old" in refuse(command, folder)


@pytest.mark.postgresql
def test_client_program_that_hangs_is_ended(folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fake = tmp_path / "pg_dump"
    fake.write_text("#!/bin/sh\n[ \"$1\" = --version ] && echo '(PostgreSQL) 99.1' || exec /bin/sleep 600\n")
    fake.chmod(0o700)
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr(databases, "MOST_SECONDS", 1)
    assert "pg_dump did not end" in refuse("backup", folder)
    assert len(list((folder / "snapshots").iterdir())) == 1


@pytest.mark.postgresql
def test_password_is_no_argument_of_a_client_program(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Everybody on the machine sees the arguments of a process."""
    seen: list[list[str]] = []
    start = subprocess.run

    def note(command: list[str], **options: Any) -> Any:
        seen.append(command)
        return start(command, **options)

    monkeypatch.setitem(connection.settings_dict, "PASSWORD", "not-to-be-seen")
    connection.close()
    monkeypatch.setattr(subprocess, "run", note)
    run("backup", folder)
    assert [words[0].rpartition("/")[2] for words in seen] == ["pg_dump", "pg_dump"]
    assert "not-to-be-seen" not in str(seen)


def test_dump_is_one_complete_file(folder: Path) -> None:
    dump = newest(folder) / DUMP
    if connection.vendor == "sqlite":
        with closing(sqlite3.connect(dump)) as opened:
            assert opened.execute("PRAGMA integrity_check").fetchone() == ("ok",)
    else:
        assert dump.read_bytes().startswith(b"PGDMP")
    assert {path.name for path in newest(folder).iterdir()} == {DUMP, MANIFEST}
