"""What every command does when its output goes nowhere, or to a terminal that cannot show it."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from django.conf import settings

from config.tests.instance import Instance


def manage(tmp_path, *arguments, stdout, **environment):
    command = [sys.executable, "manage.py", *arguments]
    return subprocess.Popen(
        command,
        cwd=settings.BASE_DIR,
        env=Instance(tmp_path).environment | environment,
        stdout=stdout,
        stderr=subprocess.PIPE,
        text=True,
    )


def test_a_reader_that_has_seen_enough_ends_a_command_without_a_traceback(tmp_path):
    read, write = os.pipe()
    os.close(read)
    process = manage(tmp_path, "help", stdout=write)
    os.close(write)
    _, complaint = process.communicate(timeout=60)
    assert (process.returncode, complaint) == (1, "")


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="only Linux has a device that is always full")
def test_a_full_disk_under_the_output_is_said_in_one_line(tmp_path):
    with Path("/dev/full").open("w") as full:
        _, complaint = (process := manage(tmp_path, "help", stdout=full)).communicate(timeout=60)
    assert (process.returncode, complaint) == (1, "The output could not be written: No space left on device.\n")


def test_a_setting_that_makes_no_sense_is_said_in_one_line(tmp_path):
    process = manage(tmp_path, "publish_anchors", stdout=subprocess.PIPE, ANCHOR_WEBHOOK="ftp://x")
    shown, complaint = process.communicate(timeout=60)
    assert (process.returncode, shown) == (1, "")
    assert complaint == (
        "The settings cannot be used: ANCHOR_WEBHOOK must be one address that begins with http:// or https://.\n"
    )


def test_what_a_terminal_cannot_show_is_escaped(tmp_path):
    process = manage(tmp_path, "shell", "-c", "print('\u2212 5')", stdout=subprocess.PIPE, PYTHONIOENCODING="ascii")
    shown, complaint = process.communicate(timeout=60)
    assert (process.returncode, shown.splitlines()[-1]) == (0, "\\u2212 5"), complaint


@pytest.mark.parametrize("command", [["list_submissions"], ["run_judge", "careful", "--submission", "1", "--plan"]])
def test_command_on_a_database_without_migrations_names_the_next_step(tmp_path, command):
    process = manage(tmp_path, *command, stdout=subprocess.PIPE)
    shown, complaint = process.communicate(timeout=60)
    assert (process.returncode, shown) == (1, "")
    assert complaint == "The database is not up to date. Run `python manage.py migrate` first.\n"


def test_command_says_that_the_database_cannot_be_reached(tmp_path):
    process = manage(
        tmp_path,
        "list_submissions",
        stdout=subprocess.PIPE,
        DATABASE_URL="postgres://nobody@127.0.0.1:1/none",
        REDIS_URL="redis://127.0.0.1:1",
        SECRET_KEY="an example key of the tests: 0123456789 abcdefghijklmnopqrstuvwxyz",
        ALLOWED_HOSTS="localhost",
    )
    shown, complaint = process.communicate(timeout=60)
    assert (process.returncode, shown, complaint.count("\n")) == (1, "", 1)
    assert complaint.startswith("The database cannot be reached: ")
