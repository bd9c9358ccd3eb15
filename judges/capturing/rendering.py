"""Text and screenshot of a page. The browser that takes the screenshot can connect only to the checked address."""

from __future__ import annotations

import io
import os
import shutil
import signal
import socket
import socketserver
import subprocess
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from lxml import etree, html
from PIL import Image, ImageDraw

from annotation.formats import scratch
from annotation.web_targets import Dial, Target, open_connection
from judges.capturing.fetching import FetchLimits

BROWSERS = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
WIDTH, HEIGHT = 1100, 4000  # pixels of a screenshot; content below is cut off
SETTLING = 8_000  # milliseconds of virtual time for the page to load
LEFT_OUT = ("script", "style", "noscript", "template", "svg", "iframe", "object", "head")
BLOCKS = frozenset(
    {"address", "article", "aside", "blockquote", "br", "dd", "div", "dl", "dt", "fieldset", "figcaption", "figure"}
    | {"footer", "form", "h1", "h2", "h3", "h4", "h5", "h6", "header", "hr", "li", "main", "nav", "ol", "option", "p"}
    | {"pre", "section", "table", "td", "th", "tr", "ul"}
)


def extract_text(body: bytes, charset: str) -> str:
    """Return the title and visible text of an HTML page, one line per block; "" if there is no text."""
    known = charset or None
    try:
        parser = html.HTMLParser(encoding=known, remove_comments=True, remove_pis=True)
    except LookupError:
        parser = html.HTMLParser(remove_comments=True, remove_pis=True)
    try:
        root = html.document_fromstring(body, parser=parser)
    except (etree.LxmlError, ValueError, AssertionError):
        return ""
    title = " ".join((root.findtext(".//title") or "").split())
    etree.strip_elements(root, *LEFT_OUT, with_tail=False)
    pieces: list[str] = []
    for event, element in etree.iterwalk(root, events=("start", "end")):
        pieces.append("\n" if element.tag in BLOCKS else "")
        pieces.append((element.text if event == "start" else element.tail) or "")
    lines = (" ".join(line.split()) for line in "".join(pieces).split("\n"))
    return "\n".join(line for line in (title, *lines) if line)


def find_browser() -> str | None:
    return next((found for name in BROWSERS if (found := shutil.which(name))), None)


def take_screenshot(
    target: Target, program: str | None, limits: FetchLimits, until: float, dial: Dial = open_connection
) -> tuple[bytes, str]:
    """Return a screenshot of the page (PNG) and ""; or a white image with the reason, and that reason as a text.

    The browser has until ``until`` (monotonic clock) and receives at most ``limits.size`` bytes in total. It resolves
    only the page's own host name, to the checked address. So resources from other hosts (images, styles and scripts
    from a delivery network) are missing in the screenshot.
    """
    if program is None:
        return _none("this machine has no browser")
    late = f"the browser did not finish within {limits.seconds:g} seconds"
    left = until - time.monotonic()
    if left <= 0:
        return _none(late)
    with (
        scratch.folder("capture") as folder,
        open_relay((target.ip, target.port), dial, left, limits.size) as relay,
    ):
        file = folder / "page.png"
        code = _run(_build_command(program, target, relay.port, file), folder, until, relay)
        if relay.full:
            return _none(f"the browser received more than {limits.size:,} bytes")
        if code is None:
            return _none(late)
        if code == 0 and file.is_file() and file.stat().st_size:
            return file.read_bytes(), ""
    return _none("the browser could not take a screenshot")


def _none(why: str) -> tuple[bytes, str]:
    return draw_sheet(f"No screenshot: {why}."), f"It has no screenshot: {why}."


def _build_command(program: str, target: Target, port: int, file: Path) -> list[str]:
    host = f"[{target.host}]" if ":" in target.host else target.host
    rules = f"MAP {host}:{target.port} 127.0.0.1:{port}, MAP * ~NOTFOUND"
    return [
        program,
        "--headless",
        *(["--no-sandbox"] if os.geteuid() == 0 else []),  # Chromium has no sandbox for root
        "--disable-gpu",
        "--disable-dev-shm-usage",
        "--disable-extensions",
        "--disable-background-networking",
        "--disable-sync",
        "--disable-quic",
        "--no-first-run",
        "--no-proxy-server",
        "--hide-scrollbars",
        "--mute-audio",
        "--force-webrtc-ip-handling-policy=disable_non_proxied_udp",
        "--disable-features=DnsOverHttps,AsyncDns,WebRtcHideLocalIpsWithMdns,NetworkPrediction",
        "--dns-prefetch-disable",
        f"--host-resolver-rules={rules}",
        f"--user-data-dir={file.parent / 'profile'}",
        f"--window-size={WIDTH},{HEIGHT}",
        f"--virtual-time-budget={SETTLING}",
        f"--screenshot={file}",
        target.url,
    ]


def _run(command: list[str], folder: Path, until: float, relay: Relay) -> int | None:
    """Return the browser's exit code; None if it ran out of time or bytes. Kill it and all its processes at the end."""
    environment = {"PATH": os.environ.get("PATH", ""), "HOME": str(folder), "LC_ALL": "C.UTF-8"}
    process = subprocess.Popen(  # noqa: S603 - the address is one argument, and was checked
        command,
        cwd=folder,
        env=environment,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )
    watch = threading.Thread(target=_watch, args=(process, relay), daemon=True)
    watch.start()
    try:
        in_time = relay.over.wait(max(0.0, until - time.monotonic()))
        return process.wait() if in_time and not relay.full else None
    finally:
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(process.pid, signal.SIGKILL)
        watch.join()


def _watch(process: subprocess.Popen[bytes], relay: Relay) -> None:
    process.wait()
    relay.over.set()


def draw_sheet(says: str) -> bytes:
    """Return a white PNG image with a line of text, in place of a screenshot."""
    made = Image.new("RGB", (WIDTH, 200), "white")
    ImageDraw.Draw(made).text((40, 90), says, fill="black")
    written = io.BytesIO()
    made.save(written, "PNG")
    return written.getvalue()


CHUNK = 64 * 1024  # bytes


class Relay(socketserver.ThreadingTCPServer):
    """A relay from ``port`` of this machine to ``place`` that passes back at most ``most`` bytes.

    It counts the received bytes of all connections as they come from the network, compressed and encrypted. Above
    ``most`` it passes on nothing more: ``full`` becomes true, and ``over`` is set, which wakes the waiting thread.
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
        """Log nothing: a failed connection is an error for the browser only."""


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
    """Copy bytes until one side ends, the limit is reached, or ``relay.over`` is set; then shut both sides."""
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
