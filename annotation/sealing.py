"""Encryption of stored secrets under the secret key of the instance, so that a copy of the database reveals none."""

from __future__ import annotations

import base64

from cryptography.fernet import Fernet, MultiFernet
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.kdf.hkdf import HKDF
from django.conf import settings


def make_cipher(context: bytes) -> MultiFernet:
    """Return the cipher of a kind of secrets. Its keys are derived from the secret key and the former ones.

    ``context`` (of HKDF) separates them from the keys of other kinds.
    """
    keys = [
        HKDF(algorithm=SHA256(), length=32, salt=None, info=context).derive(secret.encode())
        for secret in (settings.SECRET_KEY, *settings.SECRET_KEY_FALLBACKS)
    ]
    return MultiFernet([Fernet(base64.urlsafe_b64encode(key)) for key in keys])
