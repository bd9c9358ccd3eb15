"""Pages are served while every screenshot waits for a store that accepts connections and never answers."""

import os
import signal
import socket
import subprocess
import sys
import urllib.error
import urllib.request
from concurrent.futures import ThreadPoolExecutor, wait
from contextlib import contextmanager
from http import HTTPStatus

from django.conf import settings

from config.processes import die_with
from config.tests.instance import Instance
from config.tests.people_by_http import Visitor
from config.tests.servers import free_port
from config.tests.waiting import wait_until

PICTURES = 26
WAITING = 2 * 2  # processes of the server, and threads of each that may wait for the store
SEED = """
import config.wsgi
from pathlib import Path
from django.core.management import call_command
from annotation import workflow
from annotation.tests import testing
call_command("collectstatic", interactive=False, verbosity=0)
submission = testing.submission(Path(FOLDER), trajectories=1)
print(workflow.claim(testing.cast(submission)["alice"], submission).trajectory_id)
"""


@contextmanager
def gunicorn(instance):
    """A web server with 8 threads; its address."""
    port = free_port()
    command = [sys.executable, "-m", "gunicorn", "config.wsgi", "--bind", f"127.0.0.1:{port}", "--workers", "2"]
    command += ["--worker-class", "gthread", "--threads", "4", "--no-control-socket"]
    with instance.log("web").open("ab") as log:
        server = subprocess.Popen(
            command,
            cwd=settings.BASE_DIR,
            env=instance.environment,
            stdout=log,
            stderr=log,
            preexec_fn=die_with(os.getpid()),  # noqa: PLW1509 - as `config.processes` does
        )
    try:
        wait_until(lambda: answers(port), "the web server answers")
        yield f"http://127.0.0.1:{port}"
    finally:
        server.send_signal(signal.SIGKILL)
        server.wait(10)


def answers(port):
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


def test_pages_are_served_while_26_screenshots_wait_for_a_silent_store(tmp_path):
    instance = Instance(tmp_path)
    instance.migrate()
    trajectory = int(instance.run("-c", SEED.replace("FOLDER", repr(str(tmp_path / "package")))).splitlines()[-1])
    with socket.create_server(("127.0.0.1", 0), backlog=200) as silent:
        address = f"http://127.0.0.1:{silent.getsockname()[1]}"
        instance.further = {"S3_BUCKET": "b", "S3_ENDPOINT_URL": address, "S3_ACCESS_KEY": "a", "S3_SECRET_KEY": "b"}
        with gunicorn(instance) as site, ThreadPoolExecutor(PICTURES) as pool:
            alice = Visitor(site, "alice")

            def picture(number):
                request = urllib.request.Request(f"{site}/trajectories/{trajectory}/steps/{number % 3}/display")
                try:
                    return alice.opener.open(request, timeout=60).status, None
                except urllib.error.HTTPError as error:
                    return error.code, error.headers["Retry-After"]

            asked = [pool.submit(picture, number) for number in range(PICTURES)]
            wait_until(lambda: sum(f.done() for f in asked) >= PICTURES - WAITING, "refused without waiting")
            assert urllib.request.urlopen(f"{site}/healthz", timeout=60).status == HTTPStatus.OK
            assert urllib.request.urlopen(f"{site}/sign-in", timeout=60).status == HTTPStatus.OK
            assert b"reasoning" in alice.get(f"/trajectories/{trajectory}")[1]
            assert not all(f.done() for f in asked), "the store was still waited for when the pages came"
            wait(asked)
            assert {f.result() for f in asked} == {(HTTPStatus.SERVICE_UNAVAILABLE, "10")}
