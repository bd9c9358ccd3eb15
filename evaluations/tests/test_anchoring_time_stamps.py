"""A time stamp is kept only when the authority granted it, for the very head that was asked for."""

from __future__ import annotations

import base64
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from annotation.models import Submission
from evaluations import anchoring
from evaluations.models import Anchor, SigningKey
from evaluations.tests.outside import SHA256_ALGORITHM, Authority, Outside, der, granted, openssl, outside, token
from evaluations.verifier.anchors import decode_time_stamp

pytestmark = pytest.mark.django_db
OTHER = bytes(range(32))


@pytest.fixture
def authority(settings: Any, monkeypatch: pytest.MonkeyPatch) -> Iterator[Outside]:
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    with outside() as site:
        settings.ANCHOR_TIME_STAMP = f"{site.address}/tsr"
        site.answer = granted
        yield site


def test_an_authority_stamps_the_head_and_openssl_says_so(
    authority: Outside, submission: Submission, tmp_path: Path
) -> None:
    real = Authority(tmp_path)
    authority.answer = real.answer
    (anchor,) = anchoring.publish()
    assert (anchor.method, anchor.target, anchor.error) == ("rfc3161", authority.address, "")
    ((_, headers, _),) = authority.asked
    assert headers["Content-Type"] == "application/timestamp-query"
    stamp = decode_time_stamp(anchor.token)
    assert stamp.imprint == anchor.head == submission.events.latest("sequence").hash
    assert abs(stamp.at - datetime.now(UTC)) < timedelta(minutes=1)
    # The command of docs/evidence.md, over the head, and over another one.
    (tmp_path / "token.der").write_bytes(base64.b64decode(anchor.token))
    words = ("ts", "-verify", "-token_in", "-in", str(tmp_path / "token.der"), "-CAfile", str(tmp_path / "tsa.pem"))
    assert "Verification: OK" in openssl(*words, "-digest", anchor.head).stdout
    assert openssl(*words, "-digest", OTHER.hex()).returncode != 0


def test_a_time_stamp_needs_no_signing_key(authority: Outside, submission: Submission) -> None:
    (anchor,) = anchoring.publish()
    assert anchor.error == ""
    assert not SigningKey.objects.exists()


def reply(status: int, *parts: bytes) -> tuple[int, bytes]:
    return 200, der(0x30, der(0x30, der(2, bytes([status]))), *parts)


REFUSALS = {
    "status 2": lambda body: reply(2),
    "contains no time stamp": lambda body: reply(0),
    "for a different request": lambda body: (
        200,
        granted(body)[1].replace(body[body.index(b"\x04\x20") + 2 :][:32], OTHER),
    ),
    "is for a different request": lambda body: reply(0, token(body[body.index(b"\x04\x20") + 2 :][:32])),  # no nonce
    "is not over a SHA-256": lambda body: reply(0, token(b"x" * 20)),
    "not over a SHA-256": lambda body: reply(0, token(OTHER, algorithm=SHA256_ALGORITHM.replace(b"\x01", b"\x02"))),
    "has no readable time": lambda body: reply(0, token(OTHER, at=b"20261399100000Z")),
    "form of RFC 3161": lambda body: (200, der(0x31, der(0x30, der(2, b"\0")))),
    "is cut": lambda body: (200, b"<html>It works!</html>"),
    "does not have the form": lambda body: (200, b""),
    "is cut off": lambda body: (200, granted(body)[1][:-9]),
    "is not DER": lambda body: (200, b"\x30\x80\x00\x00"),
    "answered 500": lambda body: (500, b""),
    "has too many parts": lambda body: (200, b"\x05\x00" * 1000),
}


@pytest.mark.parametrize("said", REFUSALS)
def test_what_is_no_time_stamp_of_the_head_is_not_kept(authority: Outside, submission: Submission, said: str) -> None:
    authority.answer = REFUSALS[said]
    (anchor,) = anchoring.publish()
    assert said in anchor.error
    assert anchor.token == ""
    authority.answer = granted
    (again,) = anchoring.publish()
    assert (again.pk, again.error) == (anchor.pk, "")
    assert decode_time_stamp(Anchor.objects.get().token).imprint == again.head
