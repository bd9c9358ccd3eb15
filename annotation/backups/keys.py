"""Secret keys in a backup: fingerprints, the MAC of the manifest, and keys sealed with a passphrase.

The signing key in the database is encrypted under SECRET_KEY. A backup is useless for signing without it, so a restore
refuses another key.
"""

from __future__ import annotations

import hmac
import json
import os
from collections.abc import Iterable
from pathlib import Path

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from cryptography.hazmat.primitives.kdf.scrypt import Scrypt
from django.conf import settings
from django.utils.crypto import salted_hmac

from annotation.backups.manifest import BackupError, Keys, Manifest, SealedKeys

SALT = "webverdict.backup."
LEAST = 12  # characters of a passphrase
WORK = 2**17  # of scrypt: 128 MB and some 0.4 s


def own_keys() -> list[str]:
    return [settings.SECRET_KEY, *settings.SECRET_KEY_FALLBACKS]


def describe_keys(passphrase: str) -> Keys:
    """Return the fingerprints of this instance's keys, and the keys sealed if there is a passphrase."""
    keys = own_keys()
    return Keys(fingerprints=[fingerprint(key) for key in keys], sealed=seal(keys, passphrase) if passphrase else None)


def fingerprint(key: str) -> str:
    return salted_hmac(f"{SALT}fingerprint", b"", secret=key, algorithm="sha256").hexdigest()[:16]


def sign(manifest: Manifest) -> Manifest:
    return manifest.model_copy(update={"mac": _mac(manifest, settings.SECRET_KEY)})


def find_key(manifest: Manifest, keys: Iterable[str]) -> str | None:
    """Return the key that signed a manifest, if it is among ``keys``. Raises BackupError for a changed manifest."""
    key = next((each for each in keys if fingerprint(each) == manifest.keys.fingerprints[0]), None)
    if key is not None and not hmac.compare_digest(_mac(manifest, key), manifest.mac):
        raise BackupError(f"The manifest of {manifest.snapshot} was changed after the backup. Use another backup.")
    return key


def read_passphrase(file: Path | None) -> str:
    """Return the passphrase without its line end; "" without a file."""
    if file is None:
        return ""
    try:
        text = file.read_text(encoding="utf-8").rstrip("\r\n")
    except UnicodeDecodeError:
        raise BackupError(f"{file} is not UTF-8 text.") from None
    if len(text) < LEAST:
        raise BackupError(f"The passphrase in {file} is too short: it must have at least {LEAST} characters.")
    return text


def seal(keys: list[str], passphrase: str) -> SealedKeys:
    salt, nonce = os.urandom(16), os.urandom(12)
    data = _cipher(passphrase, salt).encrypt(nonce, json.dumps(keys).encode(), SALT.encode())
    return SealedKeys(salt=salt.hex(), nonce=nonce.hex(), data=data.hex())


def open_sealed(manifest: Manifest, passphrase: str) -> list[str]:
    """Return the secret key of the backup and its fallbacks. Raises BackupError for a wrong passphrase."""
    sealed = manifest.keys.sealed
    if sealed is None:
        raise BackupError("This backup has no sealed keys, because it was created without --passphrase-file.")
    try:
        cipher = _cipher(passphrase, bytes.fromhex(sealed.salt))
        text = cipher.decrypt(bytes.fromhex(sealed.nonce), bytes.fromhex(sealed.data), SALT.encode())
    except (InvalidTag, ValueError):
        raise BackupError("The sealed keys cannot be opened: the passphrase is wrong, or they were changed.") from None
    return [str(key) for key in json.loads(text)]


def _mac(manifest: Manifest, key: str) -> str:
    return salted_hmac(f"{SALT}manifest", manifest.signed_content(), secret=key, algorithm="sha256").hexdigest()


def _cipher(passphrase: str, salt: bytes) -> AESGCM:
    return AESGCM(Scrypt(salt=salt, length=32, n=WORK, r=8, p=1).derive(passphrase.encode()))
