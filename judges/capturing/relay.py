"""The way out of the browser that takes pictures: to one checked address, until it has received enough."""

from __future__ import annotations

import socket
import socketserver
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any

from judges.capturing.fetching import Dial

CHUNK = 64 * 1024  # bytes


class Relay(socketserver.ThreadingTCPServer):
    """Passes what connects to ``port`` of this machine on to ``place``, and what comes back until it is ``most`` bytes.

    Whatever is asked for, in how many connections and however packed or encrypted: bytes are counted as they come from
    the network, and none above ``most`` is passed on. Then ``full`` is true, and ``over`` is set for who waits.
    """

    daemon_threads = True
    request_queue_size = 128

    def __init__(self, place: tuple[str, int], dial: Dial, seconds: float, most: int) -> None:
        super().__init__(("127.0.0.1", 0), _Passage)
        self.place, self.dial, self.seconds, self.most = place, dial, seconds, most
        self.port: int = self.server_address[1]
        self.over, self.full = threading.Event(), False
        self._received, self._counting = 0, threading.Lock()

    def may_pass(self, size: int) -> bool:
        with self._counting:
            self._received += size
            self.full = self.full or self._received > self.most
        if self.full:
            self.over.set()
        return not self.over.is_set()

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A connection that failed is one that the browser does not get; nobody reads about it."""


class _Passage(socketserver.BaseRequestHandler):
    server: Relay
    request: socket.socket

    def handle(self) -> None:
        self.request.settimeout(self.server.seconds)
        with self.server.dial(self.server.place, self.server.seconds) as far:
            asks = threading.Thread(target=_pass_on, args=(self.request, far, self.server, False), daemon=True)
            asks.start()
            _pass_on(far, self.request, self.server, True)
            asks.join()


def _pass_on(source: socket.socket, sink: socket.socket, relay: Relay, counted: bool) -> None:
    """Until one side ends, the limit is reached, or nobody waits for the picture any more; then both sides are shut."""
    with suppress(OSError):
        while data := source.recv(CHUNK):
            if not (relay.may_pass(len(data)) if counted else not relay.over.is_set()):
                break
            sink.sendall(data)
    for each in (source, sink):
        with suppress(OSError):
            each.shutdown(socket.SHUT_RDWR)


@contextmanager
def open_relay(place: tuple[str, int], dial: Dial, seconds: float, most: int) -> Iterator[Relay]:
    with Relay(place, dial, seconds, most) as relay:
        serving = threading.Thread(target=relay.serve_forever, args=(0.05,), daemon=True)
        serving.start()
        try:
            yield relay
        finally:
            relay.over.set()
            relay.shutdown()
            serving.join()
