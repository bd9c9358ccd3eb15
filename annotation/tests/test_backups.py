"""A backup is complete whatever happens beside it, and restores an instance that differs in nothing."""

from __future__ import annotations

import os
import shutil
import signal
import stat
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from django.core.files.base import ContentFile
from django.core.files.storage import default_storage
from django.core.management import CommandError
from django.db import connection, connections
from django.utils import timezone

from annotation import backups, screenshots, workflow
from annotation.backups import last_backup, record_backup, snapshots, stored_files
from annotation.backups.manifest import DUMP, MANIFEST
from annotation.models import Event, Label, Person, Screenshot, Submission, Upload
from annotation.models.events import first_broken
from annotation.tests import testing
from annotation.tests.backup_commands import objects_of, refuse, run, tables
from annotation.tests.full_disk import find_originals, mounted
from annotation.tests.other_instance import other_instance
from annotation.workflow import integrity

pytestmark = pytest.mark.django_db(transaction=True)

WAIT = 60  # seconds until a thread gives up on another one


@pytest.fixture
def folder(tmp_path: Path, settings: Any) -> Path:
    settings.MEDIA_ROOT = tmp_path / "images"
    return tmp_path / "backups"


@pytest.fixture
def submission(folder: Path, tmp_path: Path) -> Submission:
    return testing.submission(tmp_path / "package", trajectories=2)


def all_rows() -> dict[str, list[tuple[Any, ...]]]:
    """Every row of every table except those that a backup or the checks of a restore write."""
    written = {"annotation_chaincheck", "annotation_storecheck", "sqlite_sequence"}
    found = {}
    with connection.cursor() as cursor:
        for table in sorted(set(tables()) - written):
            cursor.execute(f'SELECT * FROM "{table}"')
            found[table] = sorted(cursor.fetchall(), key=repr)
    return found


def test_restored_instance_has_the_same_rows_and_files(folder: Path, submission: Submission, settings: Any) -> None:
    people = testing.cast(submission)
    testing.label_all(people, submission, {"task_0000": [1, 0, 2]})
    before, originals = all_rows(), {name: screenshots.original(name) for name in find_originals()}
    assert len(originals) == 6

    said = run("backup", folder)

    assert "6 files" in said
    assert "SECRET_KEY is not in this backup" in said
    with other_instance(settings, folder.parent / "other"):
        said = run("restore", folder)
        assert all_rows() == before
        assert {name: screenshots.original(name) for name in find_originals()} == originals
        assert "6 stored files" in said
        with pytest.raises(Exception, match="append-only"):
            Event.objects.order_by("pk").update(kind="other")
        Person.objects.create(username="new")  # numbers of rows continue
    assert all_rows() != before  # the backup has been recorded since


def test_backup_is_closed_to_other_users(folder: Path, submission: Submission) -> None:
    run("backup", folder)
    modes = {stat.S_IMODE(path.stat().st_mode) for path in folder.rglob("*")}
    assert modes == {0o700, 0o600}
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700


def test_time_of_the_last_backup_is_recorded(folder: Path, submission: Submission) -> None:
    assert last_backup() is None
    started = timezone.now()
    run("backup", folder)
    first = last_backup()
    assert first is not None
    assert started <= first <= timezone.now()
    assert Event.objects.get(kind="backup_finished").payload["snapshot"] == snapshots.list_snapshots(folder)[0].name


def test_next_backup_replaces_a_truncated_copy(folder: Path, submission: Submission) -> None:
    run("backup", folder)
    path = next(iter(objects_of(folder).values()))
    content = path.read_bytes()
    path.write_bytes(content[:-1])

    run("backup", folder)
    assert path.read_bytes() == content
    run("backup", folder, "--check")


def test_next_backup_copies_only_new_files(folder: Path, submission: Submission) -> None:
    run("backup", folder)
    before = {path: path.stat().st_ino for path in objects_of(folder).values()}
    screenshots.store(testing.png(9), screenshots.inspect(testing.png(9)))

    said = run("backup", folder)

    assert ", of which 1 (0.0 MB) had to be copied.\n" in said
    after = {path: path.stat().st_ino for path in objects_of(folder).values()}
    assert len(after) == len(before) + 1
    assert {path: after[path] for path in before} == before


def test_backup_contains_what_waits_to_be_imported(folder: Path, submission: Submission, settings: Any) -> None:
    waiting = testing.receive_upload(
        testing.person("mira"), benchmark=submission.benchmark, agent="New", file=ContentFile(b"package", "new.zip")
    )
    done = Upload.objects.create(
        uploaded_by=testing.person("mira"),
        benchmark=submission.benchmark,
        agent_name="Old",
        file_name="old.zip",
        stored_as="uploads/deleted.zip",
        finished_at=timezone.now(),
    )
    assert "7 files" in run("backup", folder)
    with other_instance(settings, folder.parent / "other"):
        run("restore", folder)
        with default_storage.open(waiting.stored_as) as stream:
            assert stream.read() == b"package"
        assert not default_storage.exists(done.stored_as)


# --- while others work -----------------------------------------------------------------------------------------------


def test_backup_during_labelling_is_one_moment_and_blocks_nobody(
    folder: Path, tmp_path: Path, settings: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Every dump waits, inside of its transaction, until somebody has submitted a label."""
    submission = testing.submission(tmp_path / "package", trajectories=12)
    people = testing.cast(submission)
    submitted = threading.Semaphore(0)
    find_names = stored_files.list_referenced

    def wait_and_find() -> Any:
        assert submitted.acquire(timeout=WAIT), "a submit waited for the backup"
        return find_names()

    def label_all(name: str) -> None:
        try:
            while (held := workflow.claim(people[name], submission)) is not None:
                workflow.submit(people[name], held.trajectory, testing.content(held.trajectory))
                submitted.release()
        finally:
            connections.close_all()

    monkeypatch.setattr(stored_files, "list_referenced", wait_and_find)
    with ThreadPoolExecutor(2) as pool:
        labelling = [pool.submit(label_all, name) for name in ("alice", "bob")]
        made = [snapshots.create(folder) for _ in range(4)]
        for each in labelling:
            each.result()

    counts = [each.database.counts["annotation.Label"] for each in made]
    assert Label.objects.count() == 24
    assert counts == sorted(counts)
    assert counts[0] < 24
    for number, each in enumerate(made):
        with other_instance(settings, tmp_path / f"other{number}"):
            run("restore", folder, "--snapshot", each.snapshot)
            assert Label.objects.count() == counts[number]
            assert Event.objects.filter(kind="label_submitted").count() == counts[number]
            assert integrity.problems(Submission.objects.get()) == []


@pytest.mark.parametrize("operators", [0, 1])
def test_backups_recorded_at_once_all_get_into_the_chain(
    folder: Path, operators: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As of several backup folders. Without operators there is no row to lock: what is rejected is repeated."""
    if operators:
        Person.objects.create_superuser("root")
        monkeypatch.setattr(backups, "TRIES", 1)
    meeting = threading.Barrier(4, timeout=WAIT)

    def record(number: int) -> None:
        try:
            meeting.wait()
            record_backup(f"20261127T14000{number}Z", "0" * 64)
        finally:
            connections.close_all()

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(record, range(4)))

    events = list(Event.objects.filter(submission=None).order_by("sequence"))
    assert len({event.payload["snapshot"] for event in events}) == 4
    assert first_broken(events) is None


def test_two_backups_at_once_are_refused(folder: Path, submission: Submission) -> None:
    run("backup", folder)
    with snapshots.lock(folder):
        assert "Another command is using" in refuse("backup", folder)
        assert "Another command is using" in refuse("restore", folder)
    run("backup", folder, "--check")


def test_files_pruned_meanwhile_are_not_needed(
    folder: Path, submission: Submission, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The daily clean-up deletes a file without rows between the dump and the copies."""
    screenshots.keep_bytes("f" * 64, b"of a stopped import")
    copy = stored_files.copy_to_backup

    def prune_and_copy(*arguments: Any) -> Any:
        screenshots.prune(timedelta(days=-1))
        return copy(*arguments)

    monkeypatch.setattr(stored_files, "copy_to_backup", prune_and_copy)
    run("backup", folder)
    assert len(find_originals()) == 6
    assert set(objects_of(folder)) == set(find_originals())


# --- failures --------------------------------------------------------------------------------------------------------


def die() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


@pytest.mark.parametrize("where", ["dump", "copy", "manifest"])
def test_killed_backup_leaves_the_earlier_one_and_is_cleaned_up(
    folder: Path, submission: Submission, settings: Any, where: str
) -> None:
    run("backup", folder)
    screenshots.store(testing.png(9), screenshots.inspect(testing.png(9)))
    _run_in_child(folder, where)
    assert len(list((folder / "snapshots").iterdir())) == 2
    (earlier,) = snapshots.list_snapshots(folder)
    run("backup", folder, "--check")

    run("backup", folder)

    assert len(snapshots.list_snapshots(folder)) == len(list((folder / "snapshots").iterdir())) == 2
    assert set(objects_of(folder)) == set(find_originals())
    with other_instance(settings, folder.parent / "other"):
        run("restore", folder, "--snapshot", earlier.name)
        assert Screenshot.objects.count() == 6


def _run_in_child(folder: Path, where: str) -> None:
    """Run a backup in a process that is killed after the dump, in the middle of a copy, or at the manifest."""
    connections.close_all()
    child = os.fork()
    if child == 0:
        try:
            with pytest.MonkeyPatch.context() as patch:
                if where == "dump":
                    patch.setattr(stored_files, "list_referenced", die)
                elif where == "copy":
                    patch.setattr(os, "fsync", lambda descriptor: die())
                else:
                    patch.setattr(os, "sync", die)
                run("backup", folder)
        finally:
            os._exit(1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == -signal.SIGKILL


def test_full_disk_leaves_the_earlier_backup(folder: Path, submission: Submission, settings: Any) -> None:
    with mounted(folder, 4096) as is_mounted:
        assert is_mounted, "this test must be allowed to mount a tmpfs"
        run("backup", folder)
        before = objects_of(folder)
        filler = folder / "filler"
        filler.write_bytes(bytes(shutil.disk_usage(folder).free - 16_384))

        assert "full" in refuse("backup", folder) or "No space left on device" in refuse("backup", folder)

        assert len(list((folder / "snapshots").iterdir())) == 1
        filler.unlink()
        assert objects_of(folder) == before
        assert "verified: no problems" in run("backup", folder, "--check")
        run("backup", folder)


def test_restore_on_a_full_disk_can_be_repeated(folder: Path, submission: Submission, settings: Any) -> None:
    run("backup", folder)
    with other_instance(settings, folder.parent / "other"), mounted(Path(settings.MEDIA_ROOT), 64) as is_mounted:
        assert is_mounted, "this test must be allowed to mount a tmpfs"
        filler = Path(settings.MEDIA_ROOT) / "originals" / "filler"
        filler.parent.mkdir()
        filler.write_bytes(bytes(shutil.disk_usage(settings.MEDIA_ROOT).free - 8192))
        filler.rename(Path(settings.MEDIA_ROOT) / ".writing-filler")

        assert "No space left on device" in refuse("restore", folder)

        assert tables() == []
        (Path(settings.MEDIA_ROOT) / ".writing-filler").unlink()
        run("restore", folder)
        assert len(find_originals()) == 6


def test_damaged_and_missing_stored_files_are_reported_and_not_recorded(folder: Path, submission: Submission) -> None:
    damaged, missing = find_originals()[:2]
    Path(default_storage.path(f"originals/{damaged[:2]}/{damaged}")).write_bytes(b"changed")
    Path(default_storage.path(f"originals/{missing[:2]}/{missing}")).unlink()

    assert "lacks 2 stored files" in refuse("backup", folder, "--keep", "1")

    assert last_backup() is None
    assert len(objects_of(folder)) == 4
    with pytest.raises(CommandError, match="2 problems"):
        run("backup", folder, "--check")


def test_files_of_earlier_backups_replace_files_lost_since(folder: Path, submission: Submission, settings: Any) -> None:
    run("backup", folder)
    shutil.rmtree(settings.MEDIA_ROOT)
    run("backup", folder)
    with other_instance(settings, folder.parent / "other"):
        run("restore", folder)
        assert len(find_originals()) == 6


def test_folder_that_cannot_be_written_is_named(tmp_path: Path, submission: Submission) -> None:
    (tmp_path / "file").write_text("")
    assert "Not a directory" in refuse("backup", tmp_path / "file" / "backups")
    assert "No backup was created" in refuse("backup", "/proc/backups")


# --- deleting --------------------------------------------------------------------------------------------------------


def test_older_backups_and_their_files_are_deleted(
    folder: Path, submission: Submission, without_triggers: Callable[[], Any]
) -> None:
    extra = screenshots.store(testing.png(9), screenshots.inspect(testing.png(9)))
    run("backup", folder)
    assert extra.sha256 in objects_of(folder)
    extra.delete()
    run("backup", folder)
    newest = snapshots.list_snapshots(folder)[-1]

    assert "Deleted 1 older backup" in run("backup", folder, "--keep", "2")

    assert len(snapshots.list_snapshots(folder)) == 2
    assert snapshots.list_snapshots(folder)[0] == newest
    assert set(objects_of(folder)) == set(find_originals()) - {extra.sha256}
    run("backup", folder, "--check")
    assert "--keep must be 1 or more" in refuse("backup", folder, "--keep", "0")


def test_nothing_is_deleted_if_a_manifest_that_stays_is_unreadable(folder: Path, submission: Submission) -> None:
    for _ in range(2):
        run("backup", folder)
    (snapshots.list_snapshots(folder)[-1] / MANIFEST).write_text("{}")

    assert "Older backups were not deleted" in refuse("backup", folder, "--keep", "2")

    assert len(snapshots.list_snapshots(folder)) == 3
    assert (snapshots.list_snapshots(folder)[0] / DUMP).exists()
