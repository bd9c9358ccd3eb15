"""gunicorn with our worker: slow clients give their thread back, and take none from the probe."""

import contextlib
import http.client
import json
import socket
import urllib.request

import pytest

from config import web_worker
from config.tests.instance import Instance
from config.tests.servers import free_port
from config.tests.waiting import HANG, wait_until
from config.web_worker import GRACE, LEAST_RATE, TimedSocket

SOON = GRACE - 1  # seconds: before the server gives up waiting for a slow client
FORM = "application/x-www-form-urlencoded"
FILES = "multipart/form-data; boundary=x"


TOKEN = """
import config.wsgi
from annotation.models import ApiToken, Person
print(ApiToken.issue(Person.objects.create_superuser("mira"), "test", scope="write")[1])
"""


@pytest.fixture(scope="module")
def instance(tmp_path_factory):
    return Instance(tmp_path_factory.mktemp("instance"))


@pytest.fixture(scope="module")
def token(instance, port):
    return instance.run("-c", TOKEN).split()[-1]


@pytest.fixture(scope="module")
def port(instance):
    """The port of a web server with one thread."""
    instance.migrate()
    instance.run("manage.py", "collectstatic", "--noinput", "--verbosity", "0")
    number = free_port()
    command = ["gunicorn", "config.wsgi", "--bind", f"127.0.0.1:{number}", "--threads", "1", "--no-control-socket"]
    with instance.process("web", *command, "--worker-class", "config.web_worker.Worker"):
        wait_until(lambda: answers(number), "the web server answers")
        assert status(number, "/sign-in") == 200  # what the first page loads is loaded
        yield number


def answers(port):
    with contextlib.suppress(OSError):
        return status(port, "/healthz") == 200


def status(port, path, timeout=HANG):
    with urllib.request.urlopen(f"http://127.0.0.1:{port}{path}", timeout=timeout) as response:
        return response.status


@contextlib.contextmanager
def connection(port, *lines):
    with socket.create_connection(("127.0.0.1", port), timeout=HANG) as client:
        client.sendall("\r\n".join(lines).encode())
        yield client


def slow_body(port, path="/sign-in", content_type=FORM, length=1000):
    """A request whose body does not come; the check of its CSRF token reads the body."""
    head = (f"POST {path} HTTP/1.1", "Host: localhost", f"Content-Type: {content_type}", f"Content-Length: {length}")
    return connection(port, *head, f"Cookie: csrftoken={'a' * 32}", "", "--x")


def test_probe_answers_while_the_only_thread_waits_for_a_slow_body(port):
    with slow_body(port) as slow:
        assert status(port, "/healthz", timeout=SOON) == 200
        slow.setblocking(False)
        with pytest.raises(BlockingIOError):  # the server still waits
            slow.recv(1)


@pytest.mark.parametrize("other", ["Transfer-Encoding: chunked", "Content-Length: 5"])
def test_request_that_states_two_lengths_is_refused(port, other):
    """The proxy and the server could otherwise disagree about where the next request begins."""
    head = ("POST /sign-in HTTP/1.1", "Host: localhost", f"Content-Type: {FORM}", "Content-Length: 40", other)
    with connection(port, *head, "", "0", "", "GET /account HTTP/1.1", "", "") as client:
        assert client.recv(20).startswith(b"HTTP/1.1 400 ")


def test_slow_body_gives_its_thread_back(port):
    with slow_body(port):
        assert status(port, "/sign-in", timeout=60) == 200


def test_api_answers_a_slow_body_with_problem_details(port, token):
    head = ("POST /api/v1/uploads HTTP/1.1", "Host: localhost", f"Authorization: Bearer {token}")
    with connection(port, *head, f"Content-Type: {FILES}", "Content-Length: 1000", "", "--x") as slow:
        response = http.client.HTTPResponse(slow)
        response.begin()
        assert response.status == 408
        assert json.loads(response.read())["detail"] == "The request did not arrive in time. Send it again."


def test_slow_headers_give_their_thread_back(port):
    with connection(port, "GET /sign-in HTTP/1.1", "Host: loc"):
        assert status(port, "/sign-in", timeout=60) == 200


def test_connections_without_a_request_take_no_thread(port):
    with contextlib.ExitStack() as stack:
        for _ in range(10):
            stack.enter_context(connection(port))
        assert status(port, "/sign-in", timeout=SOON) == 200


def test_clients_that_do_not_close_their_connections_delay_nobody(port):
    with contextlib.ExitStack() as stack:
        head = ("GET /sign-in HTTP/1.1", "Host: localhost", "Connection: close", "", "")
        for client in [stack.enter_context(connection(port, *head)) for _ in range(10)]:
            assert client.recv(12) == b"HTTP/1.1 200"
        assert status(port, "/healthz", timeout=SOON) == 200


@pytest.mark.parametrize("content_type", [FORM, FILES])
def test_large_bodies_of_strangers_are_refused_before_they_are_read(port, content_type):
    with slow_body(port, "/upload", content_type, 100_000) as slow:
        slow.settimeout(SOON)
        assert slow.recv(12) == b"HTTP/1.1 302"


def test_a_large_body_that_nobody_reads_can_be_sent_to_its_end(port):
    head = ("POST /upload HTTP/1.1", "Host: localhost", f"Content-Type: {FILES}", "Content-Length: 16000000", "", "")
    with connection(port, *head) as client:
        client.sendall(bytes(16_000_000))
        assert client.recv(100).startswith(b"HTTP/1.1 302")


class Sender:
    """Stands for a socket whose client sends ``size`` bytes every ``pause`` seconds of ``clock``."""

    def __init__(self, clock, size, pause):
        self.clock, self.size, self.pause = clock, size, pause

    def settimeout(self, seconds):
        self.timeout = seconds

    def recv(self, _size):
        self.clock[0] += min(self.pause, self.timeout)
        if self.timeout < self.pause:
            raise TimeoutError
        return bytes(self.size)


@pytest.fixture
def clock(monkeypatch):
    now = [0.0]
    monkeypatch.setattr(web_worker.time, "monotonic", lambda: now[0])
    return now


def test_timed_socket_bounds_the_waiting_in_all_when_a_byte_comes_now_and_then(clock):
    timed = TimedSocket(Sender(clock, size=1, pause=GRACE / 4))
    for _ in range(4):
        assert timed.recv(100) == bytes(1)
    with pytest.raises(ConnectionResetError):
        timed.recv(100)
    assert clock[0] == pytest.approx(GRACE, abs=0.01)


def test_timed_socket_reads_on_when_bytes_come_fast_enough(clock):
    timed = TimedSocket(Sender(clock, size=LEAST_RATE, pause=1))
    for _ in range(1000):
        timed.recv(LEAST_RATE)
