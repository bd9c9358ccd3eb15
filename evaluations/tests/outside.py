"""The world outside for tests of anchors: a server on this machine that answers as it is told, and an authority."""

from __future__ import annotations

import datetime
import shutil
import subprocess
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

from cryptography import x509
from cryptography.hazmat.primitives.asymmetric import rsa
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat

Answer = tuple[int, bytes]


class Outside:
    """``asked`` has (path, headers, body) of every request; ``answer`` makes the reply to a body."""

    def __init__(self, port: int) -> None:
        self.address = f"http://127.0.0.1:{port}"
        self.asked: list[tuple[str, dict[str, str], bytes]] = []
        self.answer: Callable[[bytes], Answer] = lambda body: (200, b"")
        self.location = ""
        self.released = threading.Event()

    def hang(self, body: bytes) -> Answer:
        """No answer until the test is over."""
        self.released.wait(30)
        return 200, b""


@contextmanager
def outside() -> Iterator[Outside]:
    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            site.asked.append((self.path, dict(self.headers), body))
            status, reply = site.answer(body)
            try:
                self.send_response(status)
                if site.location:
                    self.send_header("Location", site.location)
                self.end_headers()
                self.wfile.write(reply)
            except OSError:
                pass

        def log_message(self, *args: Any) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        server.daemon_threads = True
        site = Outside(server.server_address[1])
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05})
        thread.start()
        try:
            yield site
        finally:
            site.released.set()
            server.shutdown()
            thread.join()


# --- a time stamp authority ------------------------------------------------------------------------------------------


def der(tag: int, *parts: bytes) -> bytes:
    body = b"".join(parts)
    size = len(body)
    if size < 128:
        return bytes([tag, size]) + body
    length = size.to_bytes((size.bit_length() + 7) // 8, "big")
    return bytes([tag, 0x80 + len(length)]) + length + body


SHA256_ALGORITHM = der(0x30, der(6, bytes.fromhex("608648016503040201")), b"\x05\x00")


def token(imprint: bytes, nonce: bytes = b"", at: bytes = b"20261122100000Z", algorithm: bytes = b"") -> bytes:
    """A token that nobody signed, by RFC 3161, 2.4.2, and RFC 5652; ``nonce`` is an INTEGER with its header."""
    info = der(
        0x30,
        b"\x02\x01\x01",  # version
        der(6, b"\x2a\x03\x04"),  # policy
        der(0x30, algorithm or SHA256_ALGORITHM, der(4, imprint)),
        b"\x02\x01\x2a",  # serial number
        der(0x18, at),
        nonce,
    )
    content = der(0x30, der(6, bytes.fromhex("2a864886f70d0109100104")), der(0xA0, der(4, info)))
    signed = der(0x30, b"\x02\x01\x03", der(0x31), content, der(0x31))
    return der(0x30, der(6, bytes.fromhex("2a864886f70d010702")), der(0xA0, signed))


def granted(body: bytes) -> Answer:
    """An authority that grants everything: the imprint and the nonce stand at fixed places of our requests."""
    imprint = body[body.index(b"\x04\x20") + 2 :][:32]
    nonce = body[body.index(imprint) + 32 : -3]
    return 200, der(0x30, der(0x30, b"\x02\x01\x00"), token(imprint, nonce))


class Authority:
    """A real one: openssl with a certificate of its own, in a folder."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        key = rsa.generate_private_key(65537, 2048)
        name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "A time stamp authority")])
        now = datetime.datetime.now(datetime.UTC)
        purpose = x509.ExtendedKeyUsage([x509.ExtendedKeyUsageOID.TIME_STAMPING])
        made = x509.CertificateBuilder().subject_name(name).issuer_name(name).public_key(key.public_key())
        made = made.serial_number(7).not_valid_before(now - datetime.timedelta(days=1))
        made = made.not_valid_after(now + datetime.timedelta(days=1)).add_extension(purpose, critical=True)
        (folder / "tsa.pem").write_bytes(made.sign(key, SHA256()).public_bytes(Encoding.PEM))
        (folder / "tsa.key").write_bytes(key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()))
        (folder / "serial").write_text("01")
        (folder / "tsa.cnf").write_text(
            f"[tsa]\ndefault_tsa = own\n[own]\nserial = {folder}/serial\nsigner_cert = {folder}/tsa.pem\n"
            f"certs = {folder}/tsa.pem\nsigner_key = {folder}/tsa.key\nsigner_digest = sha256\n"
            "default_policy = 1.2.3.4.1\ndigests = sha256\n"
        )

    def answer(self, body: bytes) -> Answer:
        (self.folder / "query.tsq").write_bytes(body)
        files = ("-queryfile", str(self.folder / "query.tsq"), "-out", str(self.folder / "reply.tsr"))
        done = openssl("ts", "-reply", "-config", str(self.folder / "tsa.cnf"), *files)
        assert done.returncode == 0, done.stderr
        return 200, (self.folder / "reply.tsr").read_bytes()


def openssl(*words: str) -> subprocess.CompletedProcess[str]:
    program = shutil.which("openssl")
    assert program, "openssl is needed: apt-get install openssl"
    return subprocess.run([program, *words], capture_output=True, text=True, check=False)
