"""The folder of the data is closed to other users of the machine."""

from __future__ import annotations

import stat
import subprocess
import sys
from pathlib import Path

from django.conf import settings as django_settings
from django.core.files.base import ContentFile

from annotation.screenshots import AtomicFileSystemStorage
from config import environment
from config.tests.instance import Instance


def modes(folder: Path) -> dict[str, int]:
    return {path.name: stat.S_IMODE(path.stat().st_mode) for path in [folder, *folder.iterdir()]}


def open_to_others(folder: Path) -> set[str]:
    return {name for name, mode in modes(folder).items() if mode & 0o077}


def test_existing_folder_is_corrected_at_the_start(tmp_path: Path) -> None:
    data = tmp_path / "var"
    for name in ("images", "broker", "tmp"):
        (data / name).mkdir(parents=True)
    for name in ("webverdict.sqlite3", "webverdict.sqlite3-wal", "webverdict.sqlite3-shm", "secret_key"):
        (data / name).write_text("a key that is long and varied enough: 0123456789 abcdefghijklmnop")
        (data / name).chmod(0o644)
    data.chmod(0o755)
    assert len(open_to_others(data)) == 8

    environment.make_private(data)

    assert open_to_others(data) == set()
    assert modes(data)["images"] == stat.S_IMODE(data.stat().st_mode) == 0o700
    assert modes(data)["webverdict.sqlite3"] == 0o600


def test_new_instance_has_no_file_that_others_can_read(tmp_path: Path) -> None:
    data = tmp_path / "var"
    inside = Instance(data).environment | {"WEBVERDICT_DATA": str(data)}
    program = (
        "import os; os.umask(0o022); import django; django.setup(); from django.core.management import call_command; "
        "call_command('migrate', verbosity=0); from django.db import connection; connection.ensure_connection(); "
        "from annotation.models import Person; Person.objects.create_user('amy'); import pathlib, stat; "
        f"print(sorted(p.name for p in pathlib.Path({str(data)!r}).iterdir() if p.stat().st_mode & 0o077))"
    )
    inside["DJANGO_SETTINGS_MODULE"] = "config.settings"
    done = subprocess.run(
        [sys.executable, "-c", program], cwd=django_settings.BASE_DIR, env=inside, capture_output=True, text=True,
        timeout=300, check=False,
    )  # fmt: skip

    assert (done.stdout.strip(), done.returncode) == ("[]", 0), done.stderr
    assert stat.S_IMODE(data.stat().st_mode) == 0o700
    assert (data / "webverdict.sqlite3").exists()


def test_folder_that_all_share_stays_as_it_is(tmp_path: Path) -> None:
    tmp_path.chmod(0o1777)

    environment.make_private(tmp_path)

    assert stat.S_IMODE(tmp_path.stat().st_mode) == 0o1777


def test_stored_file_is_for_its_owner(tmp_path: Path) -> None:
    name = AtomicFileSystemStorage(location=tmp_path / "images").save("ab/cd.png", ContentFile(b"picture"))

    stored = tmp_path / "images" / name
    assert [stat.S_IMODE(path.stat().st_mode) for path in (stored, stored.parent)] == [0o600, 0o700]
