"""The proxy of docker-compose.yml, started with its own file: TLS, redirects and its own responses."""

import contextlib
import http.client
import json
import shutil
import ssl
import subprocess

import pytest

from config.tests.servers import caddyfile, free_port
from config.tests.waiting import wait_until

pytestmark = pytest.mark.skipif(
    shutil.which("caddy") is None, reason="no caddy on the PATH (Debian: apt-get install caddy)"
)


def test_behind_an_ingress_one_port_is_open(tmp_path):
    """With the address that the Kubernetes manifests set; nothing else may listen for others."""
    (tmp_path / "Caddyfile").write_text(
        caddyfile("http://:8080", "web:8000", "uploads:8000", plain="http://127.0.0.1:8081")
    )
    command = ["caddy", "adapt", "--adapter", "caddyfile", "--config", str(tmp_path / "Caddyfile")]
    adapted = json.loads(subprocess.run(command, capture_output=True, check=True).stdout)
    servers = adapted["apps"]["http"]["servers"].values()
    assert sorted(address for server in servers for address in server["listen"]) == [":8080", ":8081"]
    [plain] = [server for server in servers if server["listen"] == [":8081"]]
    assert plain["routes"][0]["match"] == [{"host": ["127.0.0.1"]}]


@pytest.fixture(scope="module")
def ports(tmp_path_factory):
    """The ports for HTTP and HTTPS of a proxy for localhost with a certificate of its own and no server behind it."""
    folder, plain, secure = tmp_path_factory.mktemp("proxy"), free_port(), free_port()
    text = caddyfile("localhost", f"127.0.0.1:{free_port()}", f"127.0.0.1:{free_port()}", plain="http://localhost")
    ours = f"{{\n\tadmin off\n\thttp_port {plain}\n\thttps_port {secure}\n\tskip_install_trust\n"
    (folder / "Caddyfile").write_text(text.replace("{\n", ours, 1).replace("lb_try_duration 10s", "lb_try_duration 0s"))
    command = ["caddy", "run", "--adapter", "caddyfile", "--config", str(folder / "Caddyfile")]
    environment = {"PATH": "/usr/bin:/bin", "HOME": str(folder), "XDG_DATA_HOME": str(folder)}
    with (folder / "log").open("wb") as log:
        process = subprocess.Popen(command, env=environment, stdout=log, stderr=log)
    try:
        wait_until(lambda: _answers(plain, secure), "the proxy answers", seconds=60)
        yield plain, secure
    finally:
        process.terminate()
        process.wait(60)


def _answers(plain, secure):
    with contextlib.suppress(OSError, http.client.HTTPException):
        return ask(http.client.HTTPConnection("localhost", plain), "/").status and tls(secure, "/").status
    return False


def ask(connection, path, method="GET"):
    connection.timeout = 10
    connection.request(method, path)
    response = connection.getresponse()
    response.text = response.read().decode()
    connection.close()
    return response


def tls(port, path):
    context = ssl._create_unverified_context()
    return ask(http.client.HTTPSConnection("localhost", port, context=context), path)


def version(port, newest):
    """The TLS version that the proxy agrees to with a client that knows none newer than ``newest``."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    context.set_ciphers("ALL:@SECLEVEL=0")
    context.minimum_version, context.maximum_version = ssl.TLSVersion.MINIMUM_SUPPORTED, newest
    connection = http.client.HTTPSConnection("localhost", port, timeout=10, context=context)
    connection.connect()
    agreed, cipher = connection.sock.version(), connection.sock.cipher()[0]
    connection.close()
    return agreed, cipher


@pytest.mark.filterwarnings("ignore:ssl.TLSVersion:DeprecationWarning")
def test_newest_tls_is_preferred_and_old_tls_refused(ports):
    assert version(ports[1], ssl.TLSVersion.TLSv1_3)[0] == "TLSv1.3"
    agreed, cipher = version(ports[1], ssl.TLSVersion.TLSv1_2)
    assert agreed == "TLSv1.2"
    assert cipher.startswith("ECDHE-")
    assert "GCM" in cipher or "CHACHA20" in cipher
    with pytest.raises(OSError, match=r"(?i)protocol|ssl|reset"):
        version(ports[1], ssl.TLSVersion.TLSv1_1)


def test_pages_are_redirected_to_https_and_the_api_is_refused_by_http(ports):
    page = ask(http.client.HTTPConnection("localhost", ports[0]), "/account?x=1")
    assert (page.status, page.headers["Location"]) == (308, "https://localhost/account?x=1")
    api = ask(http.client.HTTPConnection("localhost", ports[0]), "/api/v1/submissions")
    assert (api.status, api.headers["Content-Type"]) == (403, "application/problem+json")
    assert "revoke it" in api.text


@pytest.mark.parametrize(("path", "status"), [("/readyz", 404), ("/account", 502), ("/api/v1/x", 502)])
def test_own_responses_of_the_proxy_restrict_browsers_and_name_no_versions(ports, path, status):
    response = tls(ports[1], path)
    assert response.status == status
    assert "frame-ancestors 'none'" in response.headers["Content-Security-Policy"]
    assert response.headers["X-Content-Type-Options"] == "nosniff"
    assert response.headers["Server"] in (None, "Caddy")
