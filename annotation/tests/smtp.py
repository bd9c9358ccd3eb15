"""A real mail server in a thread of the test, and settings that send to it."""

from __future__ import annotations

import asyncio
import ipaddress
import socket
import ssl
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from email import message_from_bytes, policy
from email.message import EmailMessage
from pathlib import Path
from typing import Any, cast

from aiosmtpd.controller import Controller
from aiosmtpd.smtp import AuthResult, Envelope, Session
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID
from django.utils import timezone

SITE = "https://review.example.org"


class Mailbox:
    """Handler of the server: what it received, and what it answers to the next recipients and contents."""

    def __init__(self) -> None:
        self.received: list[EmailMessage] = []
        self.encrypted: list[bool] = []
        self.recipients: list[str] = []
        self.to_recipient: list[str] = []  # answers before "250 OK"
        self.to_data: list[str] = []  # "silent": none until `released`
        self.released = asyncio.Event()

    async def handle_RCPT(self, server: Any, session: Session, envelope: Envelope, address: str, _: Any) -> str:  # noqa: N802
        answer = self.to_recipient.pop(0) if self.to_recipient else "250 OK"
        if answer.startswith("250"):
            envelope.rcpt_tos.append(address)
        return answer

    async def handle_DATA(self, server: Any, session: Session, envelope: Envelope) -> str:  # noqa: N802
        answer = self.to_data.pop(0) if self.to_data else "250 OK"
        if answer == "silent":
            await self.released.wait()
        if answer == "250 OK":
            content = cast(bytes, envelope.content)
            self.received.append(cast(EmailMessage, message_from_bytes(content, policy=policy.default)))
            self.encrypted.append(session.ssl is not None)
            self.recipients += envelope.rcpt_tos
        return answer

    def text(self) -> str:
        """The text of the last mail."""
        return str(self.received[-1].get_content())


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as probe:
        return int(probe.getsockname()[1])


@contextmanager
def serve(settings: Any, **options: Any) -> Iterator[Mailbox]:
    mailbox = Mailbox()
    controller = Controller(mailbox, hostname="127.0.0.1", port=free_port(), **options)
    controller.start()
    use(settings, controller.port)
    try:
        yield mailbox
    finally:
        controller.loop.call_soon_threadsafe(mailbox.released.set)
        controller.stop()


def use(settings: Any, port: int) -> None:
    settings.EMAIL_BACKEND = "django.core.mail.backends.smtp.EmailBackend"
    settings.EMAIL_HOST, settings.EMAIL_PORT, settings.SITE_URL = "127.0.0.1", port, SITE
    settings.DEFAULT_FROM_EMAIL, settings.EMAIL_TIMEOUT = "WebVerdict <webverdict@review.example.org>", 10


def check_password(server: Any, session: Any, envelope: Any, mechanism: str, data: Any) -> AuthResult:
    right = (data.login, data.password) == (b"sender", b"a secret")
    return AuthResult(success=right, handled=False)


def create_certificate(folder: Path) -> tuple[Path, ssl.SSLContext]:
    """Return the file of a certificate of 127.0.0.1 that signs itself, and the server's context."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "127.0.0.1")])
    now = timezone.now()
    builder = x509.CertificateBuilder().subject_name(name).issuer_name(name).public_key(key.public_key())
    builder = builder.serial_number(x509.random_serial_number())
    builder = builder.not_valid_before(now - timedelta(days=1)).not_valid_after(now + timedelta(days=1))
    address = x509.IPAddress(ipaddress.ip_address("127.0.0.1"))
    builder = builder.add_extension(x509.SubjectAlternativeName([address]), critical=False)
    builder = builder.add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
    certificate, private = folder / "server.pem", folder / "key.pem"
    certificate.write_bytes(builder.sign(key, hashes.SHA256()).public_bytes(serialization.Encoding.PEM))
    encoded = serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    private.write_bytes(key.private_bytes(*encoded))
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate, private)
    return certificate, context
