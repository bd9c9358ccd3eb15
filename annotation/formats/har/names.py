"""Which names announce a secret: of headers, cookies, query and form parameters, keys of JSON objects."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from functools import lru_cache

LONGEST_NAME = 1_000  # characters; no name that tells anything is longer

WORD = re.compile(r"[A-Z]+(?=[A-Z][a-z])|[A-Z]?[a-z]+|[A-Z]+|[0-9]+")

# A name is a secret's when one of its words is one of these: `user[auth]`, `X-Session-Id`, `accessToken`.
SECRET_WORD = re.compile(
    "assertion|auth|authenticat(?:e|ion)|authenticity|authori[sz]ation|bearer|cookies?|creds|csrf|cvc|cvv|hmac|jw[est]|"
    "heslo|kennwort|mnemonic|nonce|oauth|otp|passcode|passkey|passwd|passwort|pswd|pw|pwd|saml|senha|sess|sessions?|sid|sig|"
    "ssn|tkn|totp|wachtwoord|xsrf"
)
# ... or when its letters and digits, run together, have one of these in them: `PHPSESSID`, `apikey`, `wpnonce`.
SECRET_PARTS = re.compile(
    "token|secret|password|passphrase|passwd|credential|signature|authoriz|authenticity|oauth|csrf|xsrf|sessid|"
    "sessionid|nonce|samlre|relaystate|codeverifier|contrase[nñ]a|motdepasse|cardnumber|"
    "пароль|密码|密碼|recoveryphrase|seedphrase|rememberme|cfclearance|fbdtsg|ltpa|oidcdata|"
    "(?:auth|login|session|sso)ticket|"
    "(?:verification|security|recovery|backup|sms|onetime|device|oob|mfa|2fa|login)codes?$|"
    "(?:user|login|new|old|current|confirm|repeat|db|database|enc|admin|root|ftp|smtp)pass$|"
    "(?:api|access|private|secret|signing|form|session|auth|app|consumer|subscription|encryption|client|shared|"
    "account|functions?|master|license|security)keys?$|"
    "(?:api|access|private|secret|session)key"
)
# ... or when it is one of these and nothing else: too common as words.
SECRET_WHOLE = re.compile(
    "pass[0-9]?|passwordhash|pin|sign|secureid|dpop|xclientcert|samlart|cookie2|cc|ccnum|ccnumber|clave|passe|psw|csc|cvn|"
    "crumb|ssid|tok|wresult|keypairid"
)
# Headers of which nothing but a secret is known; as parameters they would be ordinary words.
SECRET_HEADER = re.compile("x?(?:access|remember|key)")
# The parameter `code` is a secret beside one of these in a URL, and is a voucher or a country elsewhere.
OAUTH_IN_URL = frozenset({"state", "session_state", "iss", "scope"})
OAUTH_ANYWHERE = frozenset({"grant_type", "redirect_uri", "code_verifier", "client_id"})
OAUTH_SECRETS = ("code", "state")
# A policy beside its signature opens what it is about; elsewhere it is one of an insurance.
SIGNED = frozenset({"Signature", "Key-Pair-Id"})
LONG_STATE = 12  # characters; from here on a `state` in a form is no part of an address


@lru_cache(maxsize=8192)
def is_secret(name: str) -> bool:
    """Whether the value of ``name`` must not be stored. ``name`` is percent-decoded."""
    if len(name) > LONGEST_NAME:
        return True
    compact = _compact(name)
    if SECRET_WHOLE.fullmatch(compact) or SECRET_PARTS.search(compact):
        return True
    return any(SECRET_WORD.fullmatch(word.lower()) for word in WORD.findall(name))


def _compact(name: str) -> str:
    return "".join(letter for letter in name.lower() if letter.isalnum())


def is_secret_header(name: str) -> bool:
    """As `is_secret` with more names, except headers that only permit: Access-Control-Allow-Credentials."""
    secret = is_secret(name) or SECRET_HEADER.fullmatch(_compact(name)) is not None
    return secret and not name.lower().startswith("access-control-")


def secrets_together(fields: Mapping[str, str], *, in_url: bool) -> Collection[str]:
    """The names among ``fields`` that are secrets since they came together: ``code`` and ``state`` of a callback,
    the ``Policy`` of a signed address.
    """
    signed = ("Policy",) if "Policy" in fields and fields.keys() & SIGNED else ()
    return signed + _secrets_of_oauth(fields, in_url=in_url)


def _secrets_of_oauth(fields: Mapping[str, str], *, in_url: bool) -> tuple[str, ...]:
    if "code" not in fields:
        return ()
    if fields.keys() & OAUTH_ANYWHERE or (in_url and fields.keys() & OAUTH_IN_URL):
        return OAUTH_SECRETS
    long_state = len(fields.get("state", "")) >= LONG_STATE and " " not in fields["state"]
    return OAUTH_SECRETS if long_state else ()
