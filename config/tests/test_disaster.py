"""The drill of docs/operator.md in the embedded profile: another data folder with a key of its own, then the backup."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

from django.conf import settings

from config.tests.instance import Instance
from config.tests.waiting import wait_until

HASH = "SELECT hash FROM annotation_event ORDER BY id"


def new_instance(folder: Path) -> Instance:
    folder.mkdir()
    return Instance(folder)


def test_lost_data_folder_is_restored_with_its_key(tmp_path: Path) -> None:
    lost = new_instance(tmp_path / "lost")
    lost.migrate()
    lost.run("manage.py", "load_demo")
    lost.run("manage.py", "rotate_signing_key")
    passphrase = tmp_path / "passphrase"
    passphrase.write_text("correct horse battery")
    backups = str(tmp_path / "backups")
    lost.run("manage.py", "backup", backups, "--passphrase-file", str(passphrase))
    events = lost.rows(HASH)[:-1]  # without that of the backup

    found = new_instance(tmp_path / "found")
    said = found.run("manage.py", "restore", backups, "--passphrase-file", str(passphrase))

    assert "was restored. Checked:" in said
    assert found.rows(HASH) == events
    key = found.folder / "var" / "secret_key"
    assert key.read_text() == (lost.folder / "var" / "secret_key").read_text()
    assert key.stat().st_mode & 0o777 == 0o600
    found.run("-c", SIGN)
    found.run("manage.py", "backup", backups, "--check")


SIGN = (
    "import django, os; os.environ['DJANGO_SETTINGS_MODULE'] = 'config.settings'; django.setup(); "
    "from evaluations import signing; signing.sign(b'')"
)


def test_stopped_backup_says_so_and_leaves_nothing(tmp_path: Path) -> None:
    """SIGTERM, as `docker stop` and a shutdown send it, while the program waits for the disk."""
    instance = new_instance(tmp_path / "instance")
    instance.migrate()
    backups = tmp_path / "backups"
    code = (
        "import os, sys, threading; os.sync = threading.Event().wait; os.chdir(sys.argv[1]); "
        "sys.argv = ['manage.py', 'backup', sys.argv[2]]; sys.path.insert(0, '.'); import manage; manage.main()"
    )
    with subprocess.Popen(
        [sys.executable, "-c", code, str(settings.BASE_DIR), str(backups)],
        env=instance.environment,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        dump = "snapshots/*/database"
        wait_until(lambda: any(file.stat().st_size for file in backups.glob(dump)), "the dump is written")
        os.kill(process.pid, signal.SIGTERM)
        said = process.communicate(timeout=60)[1]

    assert process.returncode == 1
    assert "No backup was created. It was interrupted." in said
    assert list((backups / "snapshots").iterdir()) == []
