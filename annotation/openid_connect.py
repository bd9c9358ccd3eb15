"""The exchange with an OpenID Connect provider: authorization code with PKCE, state and nonce.

It narrows django-allauth, which trusts the connection instead of the signature of an ID token, uses no nonce, and
leaves malformed replies to the caller. docs/decisions/0034-single-sign-on-and-second-factor.md has the reasons.
"""

from __future__ import annotations

import hashlib
import hmac
import time
from collections.abc import Callable
from typing import Any, TypeVar, cast
from urllib.parse import urlsplit

import jwt
import requests
from allauth.socialaccount.adapter import get_adapter
from allauth.socialaccount.models import SocialAccount, SocialLogin, SocialToken
from allauth.socialaccount.providers.oauth2.client import OAuth2Error
from allauth.socialaccount.providers.oauth2.utils import generate_code_challenge
from allauth.socialaccount.providers.openid_connect.provider import OpenIDConnectProvider
from allauth.socialaccount.providers.openid_connect.views import OpenIDConnectOAuth2Adapter
from django.conf import settings
from django.http import HttpRequest
from django.urls import reverse

from annotation.models import Person

# No shared secrets: whoever knows one can sign tokens.
ALGORITHMS = frozenset(["RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "ES512", "EdDSA"])
READ_SECONDS, TOTAL_SECONDS = 5.0, 10.0
MOST_BYTES = 1_000_000
DOCUMENT_SECONDS = 600.0  # for which a discovery document, and keys, are used
LEEWAY = 30  # seconds between the clocks
LONGEST_SUBJECT = 191  # characters; the column of allauth. The specification allows 255 and providers use at most 64

Claims = dict[str, Any]
Parsed = TypeVar("Parsed")
# By parser: address, time of the request, and what was parsed. Not in the shared cache, which may be down.
_documents: dict[Callable[..., Any], tuple[str, float, Any]] = {}


class ProviderFailure(OAuth2Error):
    """The provider gave a reply that is malformed or not to be trusted. The text is for the log and has no secrets."""


class LimitedSession(requests.Session):
    """Session with time-outs and a size limit that follows no redirects, which could lead to internal addresses."""

    def request(self, method: Any, url: Any, *args: Any, **options: Any) -> requests.Response:
        deadline = time.monotonic() + TOTAL_SECONDS
        options |= {"timeout": READ_SECONDS, "allow_redirects": False, "stream": True}
        response = super().request(method, url, *args, **options)
        body = b""
        try:
            while part := response.raw.read1(65_536, decode_content=True):
                body += part
                if len(body) > MOST_BYTES:
                    raise ProviderFailure(f"More than {MOST_BYTES} bytes from {urlsplit(url).hostname}.")
                if time.monotonic() > deadline:
                    raise requests.Timeout(f"No complete reply within {TOTAL_SECONDS:.0f} s.")
        except (OSError, requests.packages.urllib3.exceptions.HTTPError) as error:  # type: ignore[attr-defined]
            raise requests.ConnectionError(str(error)) from error
        finally:
            response.close()
        response._content = body
        return response


class Exchange(OpenIDConnectOAuth2Adapter):
    """One sign-in at the provider. Every reply that is not as specified raises ProviderFailure."""

    nonce = ""

    @property
    def openid_config(self) -> Claims:
        if not hasattr(self, "_openid_config"):  # the same during one sign-in
            address = settings.OIDC_ISSUER.rstrip("/") + "/.well-known/openid-configuration"
            self._openid_config = self._load(address, check_discovery)
        return self._openid_config

    @property
    def basic_auth(self) -> bool:
        methods = self.openid_config.get("token_endpoint_auth_methods_supported")
        return isinstance(methods, list) and "client_secret_post" not in methods and "client_secret_basic" in methods

    def get_callback_url(self, request: HttpRequest, app: Any) -> str:
        return request.build_absolute_uri(reverse("provider-callback"))

    def get_access_token_data(
        self, request: HttpRequest, app: Any, client: Any, pkce_code_verifier: str | None = None
    ) -> Claims:
        self.nonce = nonce_of(pkce_code_verifier or "")
        try:
            data = super().get_access_token_data(request, app, client, pkce_code_verifier)
        except (KeyError, TypeError, ValueError) as error:
            raise ProviderFailure("The reply of the token endpoint is malformed.") from error
        except OAuth2Error:  # its text has the reply
            raise ProviderFailure("The token endpoint refused the code.") from None
        if not isinstance(data, dict) or not isinstance(data.get("access_token"), str):
            raise ProviderFailure("The reply of the token endpoint has no access token.")
        return data

    def parse_token(self, data: Claims) -> SocialToken:
        return SocialToken(token=data["access_token"])  # never saved

    def complete_login(self, request: HttpRequest, app: Any, token: SocialToken, **kwargs: Any) -> SocialLogin:
        claims = self._verify(kwargs["response"].get("id_token"), app.client_id)
        address = self.openid_config.get("userinfo_endpoint")
        if isinstance(address, str) and is_web_address(address):
            info = self._fetch(address, {"Authorization": f"Bearer {token.token}"})
            if info.get("sub") != claims["sub"]:
                raise ProviderFailure("The user information is about another subject than the ID token.")
            claims = info | claims
        account = SocialAccount(uid=claims["sub"], provider=settings.OIDC_ISSUER, extra_data={})
        login = SocialLogin(user=Person(), account=account, provider=self.get_provider())
        login.claims = claims
        return login

    def _verify(self, token: Any, client_id: str) -> Claims:
        """Return the claims of an ID token after the checks of OpenID Connect Core 1.0, section 3.1.3.7."""
        try:
            header = jwt.get_unverified_header(token)
            if header["alg"] not in ALGORITHMS:
                raise ProviderFailure("The ID token is not signed with an asymmetric algorithm.")
            try:
                claims = self._decode(token, header, client_id)
            except (jwt.PyJWKSetError, jwt.InvalidSignatureError):  # the provider may have other keys by now
                claims = self._decode(token, header, client_id, again=True)
        except (jwt.PyJWTError, KeyError, TypeError, ValueError, AttributeError) as error:
            raise ProviderFailure(f"The ID token is not valid: {type(error).__name__}.") from error
        if not hmac.compare_digest(str(claims.get("nonce", "")).encode(), self.nonce.encode()):
            raise ProviderFailure("The ID token has another nonce: it answers another request.")
        if claims.get("azp", client_id) != client_id:
            raise ProviderFailure("The ID token was issued to another client.")
        subject = claims["sub"]
        if not isinstance(subject, str) or not 0 < len(subject) <= LONGEST_SUBJECT or "\x00" in subject:
            raise ProviderFailure("The ID token has no usable subject.")
        return claims

    def _decode(self, token: str, header: Claims, client_id: str, again: bool = False) -> Claims:
        keys = self._load(self.openid_config["jwks_uri"], jwt.PyJWKSet.from_dict, again).keys
        kid = header.get("kid")
        matching = [key for key in keys if key.key_id == kid] if kid is not None else keys
        if len(matching) != 1:
            raise jwt.PyJWKSetError("The key of the ID token is not among the provider's keys.")
        claims: Claims = jwt.decode(
            token,
            matching[0].key,
            algorithms=[header["alg"]],
            audience=client_id,
            issuer=settings.OIDC_ISSUER,
            leeway=LEEWAY,
            options={"require": ["aud", "exp", "iat", "iss", "sub"]},
        )
        return claims

    def _load(self, address: str, parse: Callable[[Claims], Parsed], again: bool = False) -> Parsed:
        """Return what ``parse`` makes of the document at an address, requested at most DOCUMENT_SECONDS ago."""
        now = time.monotonic()
        at_address, requested_at, parsed = _documents.get(parse, ("", 0.0, None))
        if again or at_address != address or now - requested_at > DOCUMENT_SECONDS:
            parsed = parse(self._fetch(address))
            _documents[parse] = (address, now, parsed)
        return cast(Parsed, parsed)

    @staticmethod
    def _fetch(address: str, headers: dict[str, str] | None = None) -> Claims:
        """Return the JSON object at an address of the provider."""
        with get_adapter().get_requests_session() as session:
            response = session.get(address, headers=headers)
        response.raise_for_status()
        if response.status_code != requests.codes.ok:
            raise ProviderFailure(f"Status {response.status_code} instead of a document from the provider.")
        document = response.json()
        if not isinstance(document, dict):
            raise ProviderFailure("A document of the provider is not a JSON object.")
        return document


class Provider(OpenIDConnectProvider):
    """The provider of the settings."""

    oauth2_adapter_class = Exchange

    def get_pkce_params(self) -> dict[str, str]:
        params: dict[str, str] = generate_code_challenge()
        return params | {"nonce": nonce_of(params["code_verifier"])}


def check_discovery(document: Claims) -> Claims:
    if document.get("issuer") != settings.OIDC_ISSUER:
        raise ProviderFailure("The discovery document names another issuer than OIDC_ISSUER.")
    for name in ("authorization_endpoint", "token_endpoint", "jwks_uri"):
        if not is_web_address(document.get(name)):
            raise ProviderFailure(f"The discovery document has no usable {name}.")
    return document


def nonce_of(code_verifier: str) -> str:
    """Return the nonce of a sign-in. The verifier is secret and random, and stored in the session with the state."""
    return hashlib.sha256(b"nonce " + code_verifier.encode()).hexdigest()


def is_web_address(value: Any) -> bool:
    return isinstance(value, str) and value.startswith(("https://", "http://"))
