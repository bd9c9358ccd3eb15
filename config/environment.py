"""Readers of the environment variables for the settings, and of the secret key."""

from __future__ import annotations

import contextlib
import logging
import os
import re
import secrets
import stat
import sys
import tempfile
from pathlib import Path
from urllib.parse import urlsplit

from django.core.exceptions import ImproperlyConfigured

TRUE = frozenset({"1", "true", "yes", "on"})
FALSE = frozenset({"0", "false", "no", "off", ""})
LEAST_TOKEN = 16  # characters

# People wait for every answer of a web server, so it stops waiting for other servers sooner than a worker does.
IN_WEB_SERVER = "config.wsgi" in sys.modules


_faults: list[str] = []


def add_fault(message: str) -> None:
    """Record a fault of the environment. The settings go on, so that `raise_faults` reports all of them at once."""
    _faults.append(message)


def raise_faults() -> None:
    """Raise ImproperlyConfigured with all recorded faults, one on each line, if there are any."""
    faults, _faults[:] = "\n".join(_faults), []
    if faults:
        raise ImproperlyConfigured(faults)


def text(name: str, default: str = "") -> str:
    """Return the variable without surrounding white space; an empty one counts as not set."""
    return os.environ.get(name, "").strip() or default


def flag(name: str, default: bool = False) -> bool:
    """Return True for 1, true, yes, on; False for 0, false, no, off; ``default`` if it is not set."""
    value = text(name, str(int(default))).lower()
    if value not in TRUE | FALSE:
        add_fault(f"{name} must be 1 or 0, not {value!r}.")
    return value in TRUE


def number(name: str, default: int, least: int = 0) -> int:
    """Return a whole number of at least ``least``."""
    value = text(name, str(default))
    if not value.isdecimal() or int(value) < least:
        add_fault(f"{name} must be a whole number of at least {least}, not {value!r}.")
        return default
    return int(value)


def choice(name: str, default: str, known: str) -> str:
    """Return one of the words of ``known``."""
    value, words = text(name, default).lower(), known.split()
    if value not in words:
        add_fault(f"{name} must be {' or '.join([', '.join(words[:-1]), words[-1]])}, not {value!r}.")
        return default
    return value


def check_sign_in(issuer: str, client_id: str, client_secret: str, local_sign_in: bool) -> None:
    """Refuse settings with which single sign-on cannot work, or nobody could sign in."""
    if issuer and not (client_id and client_secret):
        add_fault("OIDC_CLIENT_ID and OIDC_CLIENT_SECRET must be set when OIDC_ISSUER is set.")
    if not local_sign_in and not issuer:
        add_fault("LOCAL_SIGN_IN can be 0 only when OIDC_ISSUER is set. Otherwise nobody could sign in.")


def log_level(name: str) -> str:
    """Return a level that `logging` knows, in capitals; INFO if it is not set."""
    value = text(name, "INFO")
    if value.upper() not in logging.getLevelNamesMapping():
        add_fault(f"{name} must be DEBUG, INFO, WARNING or ERROR, not {value!r}.")
        return "INFO"
    return value.upper()


def token(name: str) -> str:
    """Return a secret that clients send as a bearer token, or "". Errors do not show it."""
    value = text(name)
    if value and not re.fullmatch(rf"[A-Za-z0-9._~+/=-]{{{LEAST_TOKEN},}}", value):
        add_fault(f"{name} must be at least {LEAST_TOKEN} letters, digits or the characters ._~+/=-")
    return value


def words(name: str) -> list[str]:
    """Return the parts between commas, without empty ones."""
    return [part.strip() for part in text(name).split(",") if part.strip()]


def address(name: str) -> str:
    """Return an http or https address, or "". Errors do not show it, because it may contain a secret."""
    value = text(name)
    try:
        parts = urlsplit(value)
        useful = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:  # a port that is not a number
        useful = False
    if value and (not useful or not value.isascii() or not value.isprintable() or " " in value):
        add_fault(f"{name} must be one address that begins with http:// or https://.")
    return value


def issuer(name: str) -> str:
    """Return an address of at most 191 characters without query, with HTTPS unless it is on this machine, or ""."""
    value = address(name)
    parts = urlsplit(value)
    local = parts.hostname in ("localhost", "127.0.0.1", "::1")
    if value and ((parts.scheme != "https" and not local) or parts.query or parts.fragment or len(value) > 191):
        add_fault(f"{name} must begin with https:// and have at most 191 characters and no query.")
        return ""
    return value


def endpoints(name: str) -> dict[str, str]:
    """Return pairs ``name=address`` between commas as a mapping; an address without a name is ``default``."""
    found: dict[str, str] = {}
    for word in words(name):
        key, _, address = word.partition("=") if "=" in word.partition("://")[0] else ("default", "", word)
        parts = urlsplit(address)
        # Pages show the address, so they would also show a key in it.
        if not key.isidentifier() or parts.scheme not in ("http", "https") or not parts.hostname or "@" in parts.netloc:
            add_fault(
                f"{name} must be an address without a name and password, or name=address pairs separated "
                f"by commas. The part for {key!r} is not."
            )
        if key in found:
            add_fault(f"{name} has {key!r} twice.")
        found[key] = address
    return found


def make_private(folder: Path) -> None:
    """Create the data folder, and close it and its direct entries to other users of the machine.

    This also closes everything below. A folder of another user, or a shared one, is not changed.
    """
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    state = folder.stat()
    if state.st_uid != os.geteuid() or state.st_mode & stat.S_ISVTX:
        return
    for path in [folder, *folder.iterdir()]:
        with contextlib.suppress(FileNotFoundError, PermissionError):  # a deleted journal; a file of another user
            mode = path.lstat().st_mode
            if not stat.S_ISLNK(mode) and mode & 0o077:
                path.chmod(mode & 0o700)


def secret_key(given: str, file: str, *, kept_in: Path | None) -> str:
    """Return the key that signs sessions: `given`, else the content of `file`, else one created once in `kept_in`."""
    if given:
        return given
    if file:
        return read_secret(file, "secret key")
    if kept_in is None:
        add_fault("SECRET_KEY or SECRET_KEY_FILE must be set when DATABASE_URL is set.")
        return ""
    if not kept_in.exists():
        _write_secret_once(kept_in)
    return read_secret(str(kept_in), "secret key")


def read_secret(file: str, what: str) -> str:
    """Return the content of a file with a secret, without surrounding white space; "" if no file is named."""
    if not file:
        return ""
    try:
        secret = Path(file).read_text(encoding="utf-8").strip()
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is not text"
        add_fault(f"The {what} file {file} cannot be read: {reason}.")
        return ""
    if not secret:
        add_fault(f"The {what} file {file} is empty.")
    return secret


def secret(given: str, file: str) -> str:
    """Return `given`, else the content of `file`, else ""."""
    return given or read_secret(file, "secret")


def _write_secret_once(file: Path) -> None:
    """Create the key file. Web server and worker may start together: the first complete file wins."""
    descriptor, temporary = tempfile.mkstemp(dir=file.parent, prefix=".secret_key")  # mode 0600
    with os.fdopen(descriptor, "w", encoding="utf-8") as stream:
        stream.write(secrets.token_urlsafe(64))
    try:
        os.link(temporary, file)
    except FileExistsError:
        pass
    finally:
        Path(temporary).unlink()
