"""A Celery application with jobs that leave traces, for the tests of the broker: `celery --app config.tests.probe`."""

import os
import signal
from pathlib import Path

from config.celery import app


@app.task(name="probe.note")
def note(folder: str, name: str) -> None:
    """Leave one line per run in the file `name`."""
    with Path(folder, name).open("a") as stream:
        stream.write("done\n")


@app.task(name="probe.die_once")
def die_once(folder: str) -> None:
    """Kill the process that runs it the first time; finish the second time."""
    trace = Path(folder, "died")
    if not trace.exists():
        trace.touch()
        os.kill(os.getpid(), signal.SIGKILL)
    note(folder, "survived")


@app.task(name="probe.hang_once")
def hang_once(folder: str) -> None:
    """Wait for ever the first time, so that the test can kill the worker; finish the second time."""
    trace = Path(folder, "hanging")
    if not trace.exists():
        trace.touch()
        signal.pause()
    note(folder, "finished")
