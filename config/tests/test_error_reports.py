"""Errors reach a Sentry service, and nothing about people or requests goes with them."""

import gzip
import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import brotli
import pytest

from config.tests.instance import Instance
from config.tests.test_settings import python

FAILING = """
import sys, types, logging
import django; django.setup()
from django.conf import settings
from django.test import Client
from django.urls import path
import sentry_sdk

def fail(request, number):
    sesame = "sesame local variable"
    raise ValueError("Key (username)=(sesame) exists")

urls = sys.modules["failing_urls"] = types.ModuleType("failing_urls")
urls.urlpatterns = [path("fail/<int:number>", fail)]
urls.handler500 = lambda request: django.http.HttpResponse(status=500)
settings.ROOT_URLCONF = "failing_urls"
client = Client(SERVER_NAME="localhost", raise_request_exception=False, headers={"authorization": "Bearer sesame"})
client.cookies["sessionid"] = "sesame"
print(client.post("/fail/7?name=sesame", {"reasoning": "sesame"}, REMOTE_ADDR="203.0.113.5").status_code)
logging.getLogger("a").error("Nothing for %s", "sesame")
sentry_sdk.capture_message("x")
sentry_sdk.flush()
"""


@pytest.fixture
def service():
    """A server that takes reports; its address as a DSN, and the envelopes that it got."""
    envelopes = []

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self):
            body = self.rfile.read(int(self.headers["Content-Length"]))
            envelopes.append({"br": brotli.decompress, "gzip": gzip.decompress}[self.headers["Content-Encoding"]](body))
            self.send_response(200)
            self.end_headers()
            self.wfile.write(b"{}")

        def log_message(self, *args):
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://key@127.0.0.1:{server.server_port}/1", envelopes
    server.shutdown()
    server.server_close()


def test_report_has_the_error_and_nothing_about_people(service, tmp_path):
    dsn, envelopes = service
    instance = Instance(tmp_path, further={"SENTRY_DSN": dsn, "DJANGO_SETTINGS_MODULE": "config.settings"})
    assert instance.run("-c", FAILING).strip() == "500"
    events = [json.loads(line) for each in envelopes for line in each.splitlines() if b'"platform"' in line]
    (failed,) = [event for event in events if "exception" in event]
    assert failed["exception"]["values"][-1]["type"] == "ValueError"
    assert failed["exception"]["values"][-1]["stacktrace"]["frames"][-1]["function"] == "fail"
    assert failed["transaction"] == "/fail/{number}"
    assert len(failed["tags"]["request"]) == 32
    assert "Nothing for %s" in [event.get("logentry", {}).get("message") for event in events]
    everything = b"".join(envelopes)
    assert not [word for word in (b"sesame", b"203.0.113.5", b"/fail/7", b"reasoning") if word in everything]


def test_missing_extra_is_named_with_its_remedy(tmp_path):
    blocked = "import sys; sys.modules['sentry_sdk'] = None; import config.settings"
    done = python(tmp_path, "-c", blocked, SENTRY_DSN="https://key@sentry.example.org/1")
    assert done.returncode == 1
    assert "SENTRY_DSN needs the package sentry_sdk, which is not installed. Run:" in done.stderr
    assert "key" not in done.stderr.splitlines()[-1]
