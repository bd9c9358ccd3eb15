"""Temporary files: files of killed processes are removed; files in use or of other users are not."""

import os
import subprocess
import sys
import tempfile
from contextlib import contextmanager
from pathlib import Path

import pytest
from django.conf import settings

from annotation.formats import scratch

pytestmark = pytest.mark.slow

# What an upload is written to, in a process that never ends.
UPLOADING = """
import time, django
django.setup()
from django.core.files.uploadedfile import TemporaryUploadedFile
file = TemporaryUploadedFile("package.zip", "application/zip", 0, None)
file.write(b"half of it")
file.flush()
print(file.temporary_file_path(), flush=True)
time.sleep(600)
"""


@pytest.fixture(autouse=True)
def temporary_directory(tmp_path, monkeypatch):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    return tmp_path


def environment(folder):
    return {**os.environ, "TMPDIR": str(folder), "DJANGO_SETTINGS_MODULE": "config.settings"}


@contextmanager
def uploading(folder):
    """The path of the file of an upload that goes on until its process is killed, at the end."""
    command = [sys.executable, "-c", UPLOADING]
    with subprocess.Popen(
        command, cwd=settings.BASE_DIR, env=environment(folder), stdout=subprocess.PIPE, text=True
    ) as process:
        try:
            yield Path(process.stdout.readline().strip())
        finally:
            process.kill()


def test_file_of_an_upload_lies_in_the_private_directory(temporary_directory):
    with uploading(temporary_directory) as file:
        directory = scratch.private_directory()
        assert file.is_file()
        assert file.is_relative_to(directory)
        assert directory.stat().st_mode & 0o777 == 0o700


def test_sweep_keeps_an_upload_while_its_process_lives_however_old_it_is(temporary_directory):
    with uploading(temporary_directory) as file:
        for path in (file, file.parent):
            os.utime(path, (1, 1))
        scratch.sweep()
        assert file.is_file()


def test_start_of_a_web_server_removes_the_uploads_of_killed_ones(temporary_directory):
    with uploading(temporary_directory) as file:
        pass
    assert file.is_file()
    subprocess.run(
        [sys.executable, "-c", "import config.wsgi"],
        cwd=settings.BASE_DIR,
        env=environment(temporary_directory),
        check=True,
        timeout=120,
    )
    assert not file.parent.exists()


def test_folder_removes_what_killed_processes_have_left(temporary_directory):
    with uploading(temporary_directory) as file:
        pass
    with scratch.folder("conversion") as folder:
        assert not file.parent.exists()
        assert folder.is_dir()
    assert not folder.exists()


def test_sweep_leaves_everything_outside_of_the_private_directory_alone(temporary_directory):
    others = [temporary_directory / name for name in ("webverdict-backup", "webverdict-", "tmp1234.upload.zip")]
    for path in others:
        path.mkdir()
        os.utime(path, (1, 1))
    scratch.sweep()
    assert all(path.is_dir() for path in others)


def test_directory_that_others_may_enter_is_refused():
    scratch.private_directory().chmod(0o755)
    with pytest.raises(PermissionError, match=r"Move it away, or set TMPDIR"):
        scratch.process_folder()


def test_directory_with_files_and_without_our_marker_is_refused_and_stays(temporary_directory):
    directory = temporary_directory / f"webverdict-{os.geteuid()}"
    directory.mkdir(mode=0o700)
    (directory / "process-mine").mkdir()
    scratch.sweep()
    with pytest.raises(PermissionError, match=r"is not a temporary directory of WebVerdict"), scratch.folder("import"):
        pass
    assert (directory / "process-mine").is_dir()


def test_link_to_a_directory_is_refused(temporary_directory):
    (temporary_directory / "elsewhere").mkdir(mode=0o700)
    (temporary_directory / f"webverdict-{os.geteuid()}").symlink_to(temporary_directory / "elsewhere")
    with pytest.raises(PermissionError):
        scratch.process_folder()
