"""Second factor of a sign-in: an authenticator app (TOTP), passkeys and recovery codes, in the tables of allauth.mfa.

docs/decisions/0034-single-sign-on-and-second-factor.md has the reasons.
"""

from __future__ import annotations

import base64
import hmac
import json
from ipaddress import ip_address
from typing import Any
from urllib.parse import urlsplit

from allauth.account.internal.flows.login import record_authentication
from allauth.mfa.adapter import DefaultMFAAdapter, get_adapter
from allauth.mfa.models import Authenticator
from allauth.mfa.recovery_codes.internal.auth import RecoveryCodes
from allauth.mfa.totp.internal import auth as totp
from allauth.mfa.utils import decrypt, encrypt
from allauth.mfa.webauthn.internal import auth as webauthn
from cryptography.exceptions import InvalidSignature
from cryptography.fernet import InvalidToken
from django.conf import settings
from django.contrib.auth.backends import BaseBackend
from django.contrib.sessions.exceptions import SessionInterrupted
from django.core.exceptions import ValidationError
from django.db import transaction
from django.http import HttpRequest

from annotation import sign_ins
from annotation.models import Person
from annotation.models.people import lock_with_operators
from annotation.sealing import make_cipher
from annotation.workflow.passwords import record_account_change, revoke_tokens

Type = Authenticator.Type
SESSION_KEY = "second_factor"  # True in a session that has passed, or set up, a second factor
LONGEST_NAME = 50  # characters of a passkey's name
# What allauth and fido2 raise for a credential that is malformed, forged, or of another site.
UNUSABLE = (ValidationError, ValueError, TypeError, KeyError, AttributeError, InvalidSignature)
SEALED_FOR = b"webverdict second factor 1"  # HKDF context: separates this key from others of the secret key


class MfaAdapter(DefaultMFAAdapter):
    """Hooks of django-allauth (setting MFA_ADAPTER): secrets are encrypted, so a copy of the database has no factor."""

    def encrypt(self, text: str) -> str:
        return make_cipher(SEALED_FOR).encrypt(text.encode()).decode()

    def decrypt(self, encrypted_text: str) -> str:
        """Return the text, or "" if no known secret key encrypted it: then no code is right."""
        try:
            return make_cipher(SEALED_FOR).decrypt(encrypted_text.encode()).decode()
        except InvalidToken:
            return ""


class CodeBackend(BaseBackend):
    """Entry of AUTHENTICATION_BACKENDS, so that wrong codes count as wrong passwords do. It starts no session."""

    def authenticate(  # type: ignore[override]
        self, request: HttpRequest, username: str, code: str, credential: str
    ) -> Person | None:
        """Return the person if the ``code`` or, if there is one, the ``credential`` of a passkey (JSON) is right."""
        person = Person.objects.get(username=username)
        used = take_passkey(person, credential) if credential else take_code(person, code)
        if used is None:
            return None
        record_authentication(request, person, "mfa", type=used)
        return person


def is_required(person: Person) -> bool:
    """Return whether the settings require a second factor of this person."""
    required = {
        "off": False,
        "operators": person.is_superuser,
        "maintainers": person.is_superuser or person.is_staff,
        "everybody": True,
    }
    return required[settings.REQUIRE_MFA]


def has_factor(person: Person) -> bool:
    return Authenticator.objects.filter(user=person).exclude(type=Type.RECOVERY_CODES).exists()


def take_code(person: Person, code: str) -> str | None:
    """Return the type of factor of a right code, which then is not right any more; None if it is wrong or was used."""
    typed = "".join(code.split())
    with transaction.atomic():
        rows = Authenticator.objects.select_for_update().filter(user=person).exclude(type=Type.WEBAUTHN)
        for row in rows.order_by("pk"):
            right = _take_totp(row, typed) if row.type == Type.TOTP else RecoveryCodes(row).validate_code(typed)
            if right:
                row.record_usage()
                return str(row.type)
    return None


def _take_totp(row: Authenticator, typed: str) -> bool:
    secret = decrypt(row.data["secret"])
    counter = _find_counter(secret, typed) if secret else None
    if counter is None or counter <= row.data.get("last_counter", -1):
        return False
    row.data["last_counter"] = counter  # of this code and all before it: none works again, in no process
    row.save(update_fields=["data"])
    return True


def _find_counter(secret: str, typed: str) -> int | None:
    for counter in totp.yield_hotp_counters_from_time():
        expected = totp.format_hotp_value(totp.hotp_value(secret, counter))
        if hmac.compare_digest(expected.encode(), typed.encode()):
            return counter
    return None


def start_totp(request: HttpRequest) -> dict[str, str]:
    """Return the secret of an app that is not set up yet, and its QR code as the address of an image."""
    secret = request.session.setdefault(totp.SECRET_SESSION_KEY, totp.generate_totp_secret())
    adapter = get_adapter()
    image = adapter.build_totp_svg(adapter.build_totp_url(request.user, secret)).encode()
    return {"secret": secret, "qr_code": "data:image/svg+xml;base64," + base64.b64encode(image).decode()}


def activate_totp(request: HttpRequest, person: Person, code: str) -> list[str] | None:
    """Set up the app whose secret is in the session; return new recovery codes, or None if the code is wrong.

    All other sessions of the person end, because they have not passed the factor.
    """
    secret = request.session.get(totp.SECRET_SESSION_KEY, "")
    counter = _find_counter(secret, "".join(code.split())) if secret else None
    if counter is None:
        return None
    codes = _add(request, person, Type.TOTP, {"secret": encrypt(secret), "last_counter": counter})
    del request.session[totp.SECRET_SESSION_KEY]
    return codes


def add_passkey(request: HttpRequest, person: Person, name: str, credential: str) -> list[str] | None:
    """Add the passkey that a browser created for the options of `start_passkey`; return codes as `activate_totp`."""
    try:
        parsed = json.loads(credential)
        webauthn.parse_registration_response(parsed)
        webauthn.complete_registration(parsed)
    except UNUSABLE:
        return None
    return _add(request, person, Type.WEBAUTHN, {"name": name[:LONGEST_NAME] or "Passkey", "credential": parsed})


def refuse_passkeys(request: HttpRequest) -> str:
    """Return why no browser creates or uses a passkey at this address, or "": a passkey belongs to a host name."""
    host = urlsplit(f"//{request.get_host()}")
    try:
        address = ip_address(host.hostname or "")
    except ValueError:
        return ""
    port = f":{host.port}" if host.port else ""
    where = f"at {request.scheme}://localhost{port}" if address.is_loopback else "by its host name"
    return f"Passkeys do not work at an IP address. Open this site {where} and sign in again."


def start_passkey(person: Person) -> str:
    """Return the options (JSON) with which a browser creates a passkey. The session has the challenge."""
    return json.dumps(webauthn.begin_registration(person, passwordless=False)["publicKey"])


def start_passkey_check(person: Person) -> str:
    """Return the options (JSON) with which a browser uses a passkey, or "" if the person has none."""
    if not Authenticator.objects.filter(user=person, type=Type.WEBAUTHN).exists():
        return ""
    return json.dumps(webauthn.begin_authentication(person)["publicKey"])


def take_passkey(person: Person, credential: str) -> str | None:
    """Return the type of factor if the passkey signed the challenge in the session, which then is used up."""
    try:
        parsed = json.loads(credential)
        webauthn.parse_authentication_response(parsed)
        row = webauthn.complete_authentication(person, parsed)
    except UNUSABLE:
        return None
    finally:
        webauthn.clear_state()
    row.record_usage()
    return str(row.type)


def _add(request: HttpRequest, person: Person, kind: str, data: dict[str, Any]) -> list[str]:
    """Add a factor and end all other sessions; return new recovery codes, or [] if the person has some."""
    with transaction.atomic():
        _lock_in_session(request, person)
        own = Authenticator.objects.filter(user=person)
        if kind == Type.TOTP:
            own.filter(type=kind).delete()
        Authenticator.objects.create(user=person, type=kind, data=data)
        codes = [] if own.filter(type=Type.RECOVERY_CODES).exists() else renew_recovery_codes(request, person)
        sign_ins.end_sessions(person, except_key=request.session.session_key)
    request.session[SESSION_KEY] = True
    return codes


def _lock_in_session(request: HttpRequest, person: Person) -> None:
    """Lock the person; raise SessionInterrupted if the session has ended, as an operator's reset ends it."""
    Person.objects.select_for_update(no_key=True, of=("self",)).get(pk=person.pk)
    if not request.session.exists(request.session.session_key or ""):
        raise SessionInterrupted("You were signed out. Sign in again.")


def renew_recovery_codes(request: HttpRequest, person: Person) -> list[str]:
    """Replace the person's recovery codes and return the new ones, which cannot be shown again."""
    with transaction.atomic():
        _lock_in_session(request, person)
        Authenticator.objects.filter(user=person, type=Type.RECOVERY_CODES).delete()
        codes: list[str] = RecoveryCodes.activate(person).generate_codes()
    return codes


def remove_factors(person: Person, recorded: bool = False) -> int:
    """Delete all second factors of a person and return their number.

    ``recorded``: an operator resets them, which the chain of the instance records. It also ends all sessions and
    revokes all tokens, since a stolen device may have them.
    """
    with transaction.atomic():
        lock_with_operators(person)
        number: int = Authenticator.objects.filter(user=person).delete()[0]
        if number and recorded:
            record_account_change(None, person, ["second_factor"])
            sign_ins.end_sessions(person)
            revoke_tokens(person)
    return number
