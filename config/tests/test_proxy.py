"""Behind the proxy of docker-compose.yml slow senders block no thread of the pages."""

import contextlib
import http.client
import json
import os
import shutil
import socket
import subprocess
import sys
import urllib.error
import urllib.request
from concurrent.futures import ThreadPoolExecutor

import pytest
from django.conf import settings

from config.tests.instance import Instance
from config.tests.servers import caddyfile, free_port
from config.tests.waiting import wait_until

THREADS = 2
FORM = "application/x-www-form-urlencoded"
FILES = "multipart/form-data; boundary=x"
TOKEN = """
import config.wsgi
from annotation.models import ApiToken
from annotation.tests.testing import person
print(ApiToken.issue(person("mira"), "test", scope="write")[1])
"""

pytestmark = pytest.mark.skipif(
    shutil.which("caddy") is None, reason="no caddy on the PATH (Debian: apt-get install caddy)"
)


@contextlib.contextmanager
def started(command, environment, log):
    with log.open("wb") as output:
        process = subprocess.Popen(command, cwd=settings.BASE_DIR, env=environment, stdout=output, stderr=output)
    try:
        yield
    finally:
        process.terminate()
        process.wait(60)


def web_server(instance, port, name):
    command = [sys.executable, "-m", "gunicorn", "config.wsgi", "--bind", f"127.0.0.1:{port}", "--workers", "1"]
    command += ["--worker-class", "config.web_worker.Worker", "--threads", str(THREADS), "--graceful-timeout", "1"]
    return started([*command, "--no-control-socket"], instance.environment, instance.log(name))


def own_caddyfile(port, web, uploads):
    text = caddyfile(f"http://127.0.0.1:{port}", f"127.0.0.1:{web}", f"127.0.0.1:{uploads}")
    return text.replace("{\n", "{\n\tadmin off\n", 1)


@pytest.fixture(scope="module")
def instance(tmp_path_factory):
    return Instance(tmp_path_factory.mktemp("instance"), further={"BEHIND_PROXY": "1"})


@pytest.fixture(scope="module")
def token(instance, proxy):
    return instance.run("-c", TOKEN).split()[-1]


@pytest.fixture(scope="module")
def proxy(instance):
    """The port of a proxy with a web server and one for uploads behind it, `THREADS` threads each."""
    instance.migrate()
    instance.run("manage.py", "collectstatic", "--noinput", "--verbosity", "0")
    port, web, uploads = (free_port() for _ in range(3))
    file = instance.folder / "Caddyfile"
    file.write_text(own_caddyfile(port, web, uploads))
    command = ["caddy", "run", "--adapter", "caddyfile", "--config", str(file)]
    with (
        web_server(instance, web, "web"),
        web_server(instance, uploads, "uploads"),
        started(command, instance.environment, instance.log("caddy")),
    ):
        for each in (web, uploads, port):
            wait_until(lambda each=each: answers(each), f"port {each} answers", seconds=300)
        yield port


def answers(port):
    with contextlib.suppress(OSError):
        return status(port, "/healthz", timeout=5) == 200


def status(port, path, timeout):
    with urllib.request.urlopen(f"http://127.0.0.1:{port}{path}", timeout=timeout) as response:
        return response.status


def begin_slow_body(stack, port, path, content_type, length):
    """The headers and some bytes of a body whose rest never comes."""
    connection = stack.enter_context(socket.create_connection(("127.0.0.1", port)))
    lines = [f"POST {path} HTTP/1.1", f"Host: 127.0.0.1:{port}", f"Content-Type: {content_type}"]
    # Without a token of this form the request is refused before its body is read.
    lines += [f"Content-Length: {length}", f"Cookie: csrftoken={'a' * 32}", "", "--x\r\nusername=alice"]
    connection.sendall("\r\n".join(lines).encode())
    return connection


@pytest.mark.parametrize(
    ("path", "content_type", "length"),
    [("/sign-in", FORM, 99_999), ("/sign-in", FORM, 100_000), ("/sign-in", FILES, 1000), ("/upload", FILES, 100_000)],
)
def test_pages_answer_while_slow_bodies_arrive(proxy, path, content_type, length):
    with contextlib.ExitStack() as stack:
        for _ in range(4 * THREADS):
            begin_slow_body(stack, proxy, path, content_type, length)
        for _ in range(4 * THREADS):  # more requests than threads: a slow body may be with the server only now
            assert status(proxy, "/sign-in", timeout=60) == 200


@pytest.mark.parametrize("content_type", [FORM, FILES])
def test_slow_large_bodies_of_strangers_hold_no_thread_of_uploads(proxy, content_type):
    with contextlib.ExitStack() as stack:
        for _ in range(4 * THREADS):
            begin_slow_body(stack, proxy, "/upload", content_type, 1_000_000)
        client = stack.enter_context(contextlib.closing(http.client.HTTPConnection("127.0.0.1", proxy, timeout=60)))
        client.request("POST", "/upload", bytes(100_000), {"Content-Type": content_type})
        assert client.getresponse().status == 302


def ask_api(port, token, body):
    """Return the status, the media type and the parsed body of the response to a JSON request with a token."""
    given = {"Authorization": f"Bearer {token}", "Content-Type": "application/json"}
    client = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
    with contextlib.closing(client):
        with contextlib.suppress(BrokenPipeError):  # the response may come before the whole body has been sent
            client.request("POST", "/api/v1/judges", body, given)
        response = client.getresponse()
        return response.status, response.headers["Content-Type"], json.loads(response.read())


@pytest.mark.parametrize("size", [10, 99_999, 100_000, 5_000_000])
def test_json_of_up_to_5_mb_reaches_the_api(proxy, token, size):
    status, media_type, problem = ask_api(proxy, token, b"[" + b" " * (size - 2) + b"]")
    assert (status, media_type, problem["status"]) == (403, "application/problem+json", 403)  # mira may define no judge


def test_longer_json_is_refused_with_problem_details(proxy, token):
    status, media_type, problem = ask_api(proxy, token, b" " * 7_000_000)
    assert (status, media_type, problem["status"]) == (413, "application/problem+json", 413)
    assert "5.0 MB" in problem["detail"]


def test_long_json_without_a_length_is_refused_with_problem_details(proxy, token):
    status, media_type, problem = ask_api(proxy, token, iter([b" " * 60_000] * 3))
    assert (status, media_type, problem["status"]) == (413, "application/problem+json", 413)
    assert "Content-Length" in problem["detail"]


def test_proxy_replaces_the_request_id_and_the_log_has_one_line_for_each_request(proxy, instance):
    forged = "chosen-by-the-client"
    ids = []
    for path in ("/sign-in", "/static/css/desk.css", "/sign-in"):
        request = urllib.request.Request(f"http://127.0.0.1:{proxy}{path}", headers={"X-Request-ID": forged})
        with urllib.request.urlopen(request, timeout=60) as response:
            ids.append(response.headers["X-Request-ID"])
    assert forged not in ids
    log = instance.log("web")
    # A response is complete for its client before it is closed and logged.
    wait_until(lambda: all(f"request={number}: client=" in log.read_text() for number in ids), "all lines are there")
    assert [log.read_text().count(number) for number in ids] == [1, 1, 1]
    assert forged not in log.read_text()


@pytest.mark.parametrize(("trusted", "scheme"), [("", "http"), ("127.0.0.1", "https")])
def test_only_a_trusted_proxy_in_front_says_that_a_request_came_by_https(tmp_path, trusted, scheme):
    """What the application gets as X-Forwarded-Proto and X-Forwarded-For."""
    port, echo = free_port(), free_port()
    text = own_caddyfile(port, echo, echo)
    shown = "{http.request.header.X-Forwarded-Proto} {http.request.header.X-Forwarded-For}"
    (tmp_path / "Caddyfile").write_text(f"{text}\nhttp://127.0.0.1:{echo} {{\n\trespond `{shown}`\n}}\n")
    command = ["caddy", "run", "--adapter", "caddyfile", "--config", str(tmp_path / "Caddyfile")]
    environment = os.environ | {"TRUSTED_PROXIES": trusted, "XDG_DATA_HOME": str(tmp_path), "HOME": str(tmp_path)}
    given = {"X-Forwarded-Proto": "https", "X-Forwarded-For": "203.0.113.7"}
    with started(command, environment, tmp_path / "log"):
        wait_until(lambda: answers_anything(port), "the proxy answers", seconds=60)
        request = urllib.request.Request(f"http://127.0.0.1:{port}/", headers=given)
        with urllib.request.urlopen(request, timeout=60) as response:
            forwarded = response.read().decode().split(" ", 1)
    assert forwarded == [scheme, "203.0.113.7, 127.0.0.1" if trusted else "127.0.0.1"]


def test_a_request_that_may_have_stopped_a_web_server_is_not_sent_again(tmp_path):
    port, sent = free_port(), []
    with socket.create_server(("127.0.0.1", 0)) as web, ThreadPoolExecutor(1) as pool:
        text = own_caddyfile(port, web.getsockname()[1], web.getsockname()[1])
        (tmp_path / "Caddyfile").write_text(text.replace("lb_try_duration 10s", "lb_try_duration 2s"))
        environment = os.environ | {"XDG_DATA_HOME": str(tmp_path), "HOME": str(tmp_path)}
        command = ["caddy", "run", "--adapter", "caddyfile", "--config", str(tmp_path / "Caddyfile")]

        def end_each_connection():
            with contextlib.suppress(OSError):
                while True:
                    connection, _ = web.accept()
                    with connection:
                        sent.append(connection.recv(1000).split()[0])

        ending = pool.submit(end_each_connection)
        with started(command, environment, tmp_path / "log"):
            wait_until(lambda: answers_anything(port), "the proxy answers", seconds=60)
            status, media_type, problem = ask_api(port, "a token", b"{}")
            pages = read(port)
        web.shutdown(socket.SHUT_RDWR)
        ending.result(60)
    assert sent == [b"POST", b"GET"]
    assert (status, media_type, problem["status"]) == (502, "application/problem+json", 502)
    assert pages[0] == 502


def test_a_request_waits_while_the_web_server_restarts_and_a_lasting_failure_is_explained(tmp_path):
    port, web = free_port(), free_port()
    text = own_caddyfile(port, web, web).replace("lb_try_duration 10s", "lb_try_duration 3s")
    (tmp_path / "Caddyfile").write_text(text)
    environment = os.environ | {"XDG_DATA_HOME": str(tmp_path), "HOME": str(tmp_path)}
    proxy = ["caddy", "run", "--adapter", "caddyfile", "--config", str(tmp_path / "Caddyfile")]
    back = ["caddy", "respond", "--listen", f"127.0.0.1:{web}", "--body", "here again"]
    with started(proxy, environment, tmp_path / "log"), ThreadPoolExecutor(1) as pool:
        wait_until(lambda: answers_anything(port), "the proxy answers", seconds=60)
        waiting = pool.submit(read, port)
        with started(back, environment, tmp_path / "web"):
            assert waiting.result(60) == (200, "here again")
        status, page = read(port)
    assert status == 502
    assert "try again in a minute" in page


def read(port):
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/", timeout=60) as response:
            return response.status, response.read().decode()
    except urllib.error.HTTPError as error:
        return error.code, error.read().decode()


def answers_anything(port):
    with contextlib.suppress(OSError):
        socket.create_connection(("127.0.0.1", port), timeout=5).close()
        return True
