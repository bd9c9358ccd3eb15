"""A real OpenID Connect provider in a thread, whose replies a test can falsify, and a browser's way through it."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any
from urllib.parse import parse_qs, urlsplit

import flask
import jwt
import oidc_provider_mock
import requests
from cryptography.hazmat.primitives.asymmetric import rsa
from django.http import HttpResponse
from django.test import Client
from django.urls import reverse
from werkzeug.serving import make_server

from annotation import openid_connect

CLIENT = "webverdict"
STRANGE_KEY = rsa.generate_private_key(65537, 2048)


class RunningProvider:
    """``falsify`` maps a path to a function of the reply's JSON that returns other JSON, text, or (status, text)."""

    def __init__(self) -> None:
        self.app = oidc_provider_mock.app(require_nonce=True)
        self.app.debug = False
        self.falsify: dict[str, Callable[[Any], Any]] = {}
        self.requests: list[tuple[str, dict[str, str]]] = []
        self.app.before_request(self._note)
        self.app.after_request(self._falsify)
        self.server = make_server("127.0.0.1", 0, self.app, threaded=True)
        self.issuer = f"http://127.0.0.1:{self.server.server_port}"

    def _note(self) -> None:
        self.requests.append((flask.request.path, flask.request.values.to_dict()))
        if flask.request.path == "/oauth2/authorize":
            self.key = flask.g.oidc_provider_mock_storage.jwk

    def _falsify(self, response: Any) -> Any:
        change = self.falsify.get(flask.request.path)
        if change is None:
            return response
        changed = change(response.get_json(silent=True))
        status, body = changed if isinstance(changed, tuple) else (response.status_code, changed)
        text = body if isinstance(body, str) else json.dumps(body)
        return flask.Response(text, status=status, content_type="application/json")

    def resign(
        self, key: Any = None, algorithm: str = "RS256", header: dict[str, Any] | None = None, **claims: Any
    ) -> None:
        """Replace claims of ID tokens and sign them again, with the provider's key unless another is given."""

        def change(reply: dict[str, Any]) -> dict[str, Any]:
            token = reply["id_token"]
            held = jwt.decode(token, options={"verify_signature": False}) | claims
            held = {name: value for name, value in held.items() if value is not None}
            pem = self.key.as_pem(is_private=True) if key is None else key
            headers = {"kid": jwt.get_unverified_header(token).get("kid")} if header is None else header
            headers = {name: value for name, value in headers.items() if value is not None}
            return reply | {"id_token": jwt.encode(held, pem, algorithm, headers=headers)}

        self.falsify["/oauth2/token"] = change

    def set_claims(self, sub: str, **claims: Any) -> None:
        requests.put(f"{self.issuer}/users/{sub}", json=claims, timeout=5).raise_for_status()

    def authorise(self, address: str, sub: str) -> str:
        """Sign in at the provider as ``sub``; return the path and query to which it redirects."""
        answer = requests.post(address, data={"sub": sub}, allow_redirects=False, timeout=5)
        parts = urlsplit(answer.headers["Location"])
        return f"{parts.path}?{parts.query}"


@contextmanager
def running_provider() -> Iterator[RunningProvider]:
    provider = RunningProvider()
    thread = threading.Thread(target=provider.server.serve_forever, args=(0.01,), daemon=True)
    thread.start()
    try:
        yield provider
    finally:
        provider.server.shutdown()
        provider.server.server_close()
        thread.join()


def use(settings: Any, issuer: str) -> None:
    openid_connect._documents.clear()
    settings.OIDC_ISSUER, settings.OIDC_NAME = issuer, "Example Login"
    settings.OIDC_CLIENT_ID, settings.OIDC_CLIENT_SECRET = CLIENT, "a secret"


def start(client: Client, next_url: str = "") -> str:
    """Press the button on the sign-in page; return the provider's address to which the page leads."""
    page = client.post(reverse("provider-sign-in"), {"next": next_url})
    assert page.status_code == 200, page.content
    return page.context["address"]


def sign_in(client: Client, provider: RunningProvider, sub: str, next_url: str = "") -> HttpResponse:
    return client.get(provider.authorise(start(client, next_url), sub))


def parameters(address: str) -> dict[str, str]:
    return {name: values[0] for name, values in parse_qs(urlsplit(address).query).items()}


def ago(seconds: float) -> int:
    return int(time.time() - seconds)
