"""A real HTTP server in a thread of the test that receives webhooks, and settings that let it be reached."""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any


class Receiver(ThreadingHTTPServer):
    """``answers`` are the next statuses, before 204; 0: none until `released`, -1: the connection is closed."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.received: list[tuple[dict[str, str], bytes]] = []
        self.answers: list[int] = []
        self.released = threading.Event()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_port}/hook"

    def payloads(self) -> list[dict[str, Any]]:
        return [json.loads(body) for _, body in self.received]

    def ids(self) -> list[str]:
        return [headers["webhook-id"] for headers, _ in self.received]


class Handler(BaseHTTPRequestHandler):
    server: Receiver

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"]))
        self.server.received.append(({name.lower(): value for name, value in self.headers.items()}, body))
        status = self.server.answers.pop(0) if self.server.answers else 204
        if status == 0:
            self.server.released.wait()
        if status <= 0:
            self.close_connection = True
            return
        self.send_response(status)
        if 300 <= status < 400:
            self.send_header("Location", f"{self.server.url}/elsewhere")
        self.send_header("Content-Length", "0")
        self.end_headers()

    do_GET = do_POST  # noqa: N815 - a followed redirect would be received

    def log_message(self, *args: Any) -> None:
        pass


@contextmanager
def serve(settings: Any) -> Iterator[Receiver]:
    server = Receiver()
    threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True).start()
    settings.WEBHOOK_HOSTS, settings.SITE_URL = ["127.0.0.0/8"], "https://review.example.org"
    try:
        yield server
    finally:
        server.released.set()
        server.shutdown()
        server.server_close()


def is_signed(headers: dict[str, str], body: bytes, secret: str) -> bool:
    """Return whether any signature is right, by the specification and without our code."""
    key = base64.b64decode(secret.removeprefix("whsec_"))
    content = f"{headers['webhook-id']}.{headers['webhook-timestamp']}.".encode() + body
    right = "v1," + base64.b64encode(hmac.new(key, content, hashlib.sha256).digest()).decode()
    return right in headers["webhook-signature"].split(" ")
