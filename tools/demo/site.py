"""The local web server of the demo sites: one port, two host names, the standard library only."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from http.cookies import SimpleCookie
from socketserver import ThreadingMixIn
from typing import Any
from urllib.parse import parse_qs
from wsgiref.simple_server import WSGIRequestHandler, WSGIServer, make_server

from tools.demo import shop, stay
from tools.demo.pages import Reply, Request, style_sheet

SITES: dict[str, Callable[[Request], Reply]] = {shop.HOST: shop.reply, stay.HOST: stay.reply}
LOCAL = "127.0.0.1"


class _ThreadingServer(ThreadingMixIn, WSGIServer):
    """Server with a thread per connection: browsers open connections in advance, which must not block others."""

    daemon_threads = True


class _QuietHandler(WSGIRequestHandler):
    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002
        """Log nothing: the recorder reports its own progress."""


def application(environ: dict[str, Any], start_response: Callable[..., Any]) -> Iterable[bytes]:
    """Serve, by WSGI, the site of the host name in the request; the shop for an unknown host."""
    path = environ["PATH_INFO"]
    if path in ("/shop.css", "/stay.css"):
        reply = style_sheet(path[1:-4])
    else:
        reply = SITES.get(environ.get("HTTP_HOST", "").split(":")[0], shop.reply)(_request(environ))
    body = reply.body.encode()
    headers = [("Content-Type", reply.mime_type), ("Content-Length", str(len(body))), *reply.headers]
    start_response(reply.status, headers)
    return [body]


def _request(environ: dict[str, Any]) -> Request:
    method, raw = environ["REQUEST_METHOD"], environ["QUERY_STRING"]
    if method == "POST":
        raw = environ["wsgi.input"].read(int(environ.get("CONTENT_LENGTH") or 0)).decode()
    cookie = SimpleCookie(environ.get("HTTP_COOKIE", "")).get("cart")
    cart = tuple(slug for slug in (cookie.value.split(".") if cookie else ()) if slug)
    return Request(method, environ["PATH_INFO"], parse_qs(raw), cart)


@contextmanager
def running_site() -> Iterator[int]:
    """Serve both sites on a free port of this machine; yield the port, and stop at the end."""
    with make_server(LOCAL, 0, application, _ThreadingServer, _QuietHandler) as server:
        thread = threading.Thread(target=server.serve_forever, daemon=True)
        thread.start()
        try:
            yield server.server_port
        finally:
            server.shutdown()
            thread.join()
