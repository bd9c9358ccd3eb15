"""Every client that leaves the instance refuses a server whose certificate nobody vouches for."""

import datetime
import http.server
import socket
import ssl
import threading

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID
from django.core import mail
from django.utils.module_loading import import_string

from annotation import webhooks
from annotation.openid_connect import Exchange
from config import s3
from evaluations.anchoring import transports
from judges.capturing.fetching import FetchLimits, fetch
from judges.llm import Endpoint, Patience
from judges.tests.clients import Desk


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    """A server with a certificate of its own for localhost; the requests that it got."""
    folder = tmp_path_factory.mktemp("certificate")
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "localhost")])
    now = datetime.datetime.now(datetime.UTC)
    certificate = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(1)
        .not_valid_before(now - datetime.timedelta(days=1))
        .not_valid_after(now + datetime.timedelta(days=1))
        .add_extension(x509.SubjectAlternativeName([x509.DNSName("localhost")]), critical=False)
        .sign(key, hashes.SHA256())
    )
    (folder / "certificate.pem").write_bytes(certificate.public_bytes(serialization.Encoding.PEM))
    private = key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    (folder / "key.pem").write_bytes(private)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(folder / "certificate.pem", folder / "key.pem")
    got = []

    class Handler(http.server.BaseHTTPRequestHandler):
        def handle(self):
            got.append(self.client_address)

    class Server(http.server.ThreadingHTTPServer):
        def handle_error(self, *arguments):
            pass

        def get_request(self):
            plain, address = super().get_request()
            return context.wrap_socket(plain, server_side=True), address

    server = Server(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield f"https://localhost:{server.server_port}", got
    server.shutdown()
    thread.join()
    server.server_close()


def fetch_from_provider(address):
    Exchange._fetch(address)


def call_model(address):
    endpoint = Endpoint("other", address, "key")
    failed = Desk(None, endpoint=endpoint, patience=Patience(timeout=10.0, attempts=1)).ask()
    raise ConnectionError(f"{failed.error}")


def publish_anchor(address):
    transports.post(address, b"{}", "application/json")


def capture_page(address):
    _, port = address.rsplit(":", 1)

    def dial(place, seconds):
        return socket.create_connection(("127.0.0.1", int(port)), seconds)

    fetch("https://public.example/", lambda host, port: ["93.184.215.14"], FetchLimits(), dial)


def send_webhook(address):
    webhooks.post(address, b"{}", {}, own=["localhost"])


def send_mail(address):
    host, port = address.removeprefix("https://").split(":")
    mail.get_connection("django.core.mail.backends.smtp.EmailBackend", host=host, port=int(port), use_ssl=True).open()


def open_store(address):
    options = s3.s3_options(bucket="b", endpoint_url=address, access_key="a", secret_key="b", region="us-east-1")
    import_string(s3.BACKEND)(**options).exists("x")


@pytest.mark.parametrize(
    "ask", [fetch_from_provider, call_model, publish_anchor, capture_page, send_webhook, send_mail, open_store]
)
def test_untrusted_certificate_is_refused_before_anything_is_sent(server, settings, ask):
    address, got = server
    with pytest.raises(Exception, match=r"(?i)certificate.verify.failed") as refused:
        ask(address)
    assert not isinstance(refused.value, pytest.fail.Exception)
    assert got == []
