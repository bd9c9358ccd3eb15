#!/usr/bin/env python
"""Run an administrative command: `python manage.py help` lists them."""

import errno
import io
import os
import sys
from importlib import import_module


def main() -> None:
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "config.settings")
    from django.core.exceptions import ImproperlyConfigured  # noqa: PLC0415 - as below
    from django.core.management import execute_from_command_line  # noqa: PLC0415 - after the environment is set
    from django.db import OperationalError, ProgrammingError  # noqa: PLC0415 - as above

    # A name may hold what the terminal cannot show: it is escaped then, which is better than a traceback.
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")
    try:
        import_module(os.environ["DJANGO_SETTINGS_MODULE"])
    except ImproperlyConfigured as error:
        sys.exit(_explain_settings(str(error), sys.argv[1:]))
    try:
        execute_from_command_line(sys.argv)
        sys.stdout.flush()
    except BrokenPipeError:
        # Whoever read the output has seen enough (`| head`). What is left goes nowhere, or the exit would fail again.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(1)
    except (OperationalError, ProgrammingError) as error:
        message = str(error).strip().split("\n")[0]
        # PostgreSQL: undefined table, undefined column.
        state = getattr(error.__cause__, "sqlstate", None)
        if state in {"42P01", "42703"} or message.startswith(("no such table", "no such column")):
            program = "python manage.py" if sys.argv[0].endswith(".py") else sys.argv[0]
            sys.exit(f"The database is not up to date. Run `{program} migrate` first.")
        if state is not None or not message.startswith(("connection ", "could not ", "unable to open", "failed to ")):
            raise
        sys.exit(f"The database cannot be reached: {message}")
    except OSError as error:
        if error.errno != errno.ENOSPC:
            raise
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(f"The output could not be written: {error.strerror}.")


def _explain_settings(faults: str, arguments: list[str]) -> int | str:
    if arguments[:1] == ["doctor"]:
        doctor = import_module("config.doctor")
        print(doctor.report_settings(faults, to_json="--json" in arguments))  # noqa: T201
        return 1
    return f"The settings cannot be used:{' ' if faults.count(chr(10)) == 0 else chr(10)}{faults}"


if __name__ == "__main__":
    main()
