"""Ed25519 in plain integers: the vectors of RFC 8032, and the library's word on everything else."""

from __future__ import annotations

import hashlib
import random

import pytest
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey

from evaluations.verifier.signature import ORDER, PRIME, verify

# RFC 8032, section 7.1: public key, message, signature.
VECTORS = {
    "test 1": (
        "d75a980182b10ab7d54bfed3c964073a0ee172f3daa62325af021a68f707511a",
        "",
        (
            "e5564300c360ac729086e2cc806e828a84877f1eb8e5d974d873e065224901555fb8821590a33bacc61e39701cf9b46b"
            "d25bf5f0595bbe24655141438e7a100b"
        ),
    ),
    "test 2": (
        "3d4017c3e843895a92b70aa74d1b7ebc9c982ccf2ec4968cc0cd55f12af4660c",
        "72",
        (
            "92a009a9f0d4cab8720e820b5f642540a2b27b5416503f8fb3762223ebdb69da085ac1e43e15996e458f3613d0f11d8c"
            "387b2eaeb4302aeeb00d291612bb0c00"
        ),
    ),
    "test 3": (
        "fc51cd8e6218a1a38da47ed00230f0580816ed13ba3303ac5deb911548908025",
        "af82",
        (
            "6291d657deec24024827e69c3abe01a30ce548a284743a445e3680d7db5ac3ac18ff9b538d16f290ae67f760984dc659"
            "4a7c15e9716ed28dc027beceea1ec40a"
        ),
    ),
    "test sha(abc)": (
        "ec172b93ad5e563bf4932c70e1245034c35467ef2efd4d64ebf819683467e2bf",
        (
            "ddaf35a193617abacc417349ae20413112e6fa4e89a97ea20a9eeee64b55d39a2192992a274fc1a836ba3c23a3feebbd"
            "454d4423643ce80e2a9ac94fa54ca49f"
        ),
        (
            "dc2a4459e7369633a52b1bf277839a00201009a3efbf3ecb69bea2186c26b58909351fc9ac90b3ecfdfbc7c66431e030"
            "3dca179c138ac17ad9bef1177331a704"
        ),
    ),
}
KEY = Ed25519PrivateKey.from_private_bytes(bytes(range(32)))
PUBLIC = KEY.public_key().public_bytes_raw()


@pytest.mark.parametrize("name", VECTORS)
def test_the_vectors_of_the_rfc_hold(name: str) -> None:
    public, message, signature = map(bytes.fromhex, VECTORS[name])
    assert verify(public, message, signature)
    assert not verify(public, message + b"x", signature)


def said_by_the_library(public: bytes, message: bytes, signature: bytes) -> bool:
    try:
        Ed25519PublicKey.from_public_bytes(public).verify(signature, message)
    except InvalidSignature:
        return False
    return True


def test_random_signatures_are_judged_as_by_the_library() -> None:
    generator = random.Random(8032)
    for _ in range(40):
        key = Ed25519PrivateKey.from_private_bytes(generator.randbytes(32))
        public, message = key.public_key().public_bytes_raw(), generator.randbytes(generator.randrange(200))
        assert verify(public, message, key.sign(message))


def test_changed_bits_are_judged_as_by_the_library() -> None:
    generator = random.Random(1)
    message = b"a manifest"
    for _ in range(150):
        parts = [bytearray(PUBLIC), bytearray(message), bytearray(KEY.sign(message))]
        part = generator.choice(parts)
        part[generator.randrange(len(part))] ^= 1 << generator.randrange(8)
        public, said, signature = map(bytes, parts)
        assert verify(public, said, signature) == said_by_the_library(public, said, signature) is False


def test_a_second_spelling_of_the_number_is_refused() -> None:
    signature = KEY.sign(b"m")
    other = int.from_bytes(signature[32:], "little") + ORDER
    assert verify(PUBLIC, b"m", signature)
    assert not verify(PUBLIC, b"m", signature[:32] + other.to_bytes(32, "little"))


@pytest.mark.parametrize("y", [PRIME, PRIME + 1, 2**255 - 1, 2, 2**255 + 1])
def test_bytes_that_spell_no_point_are_refused(y: int) -> None:
    """Not reduced, not on the curve, or zero with a sign."""
    encoded = y.to_bytes(32, "little")
    assert not verify(encoded, b"m", KEY.sign(b"m"))
    assert not verify(PUBLIC, b"m", encoded + KEY.sign(b"m")[32:])


@pytest.mark.parametrize(("y", "taken"), [(1, True), (PRIME + 1, False)])
def test_a_second_spelling_of_the_nonce_is_refused(y: int, taken: bool) -> None:
    """The neutral point as nonce, which its maker may choose: the number is then challenge times secret."""
    seed = bytearray(hashlib.sha512(bytes(range(32))).digest()[:32])
    seed[0] &= 248
    seed[31] = seed[31] & 63 | 64
    nonce = y.to_bytes(32, "little")
    challenge = int.from_bytes(hashlib.sha512(nonce + PUBLIC + b"m").digest(), "little")
    number = challenge * int.from_bytes(seed, "little") % ORDER
    assert verify(PUBLIC, b"m", nonce + number.to_bytes(32, "little")) is taken


@pytest.mark.parametrize("y", [1, PRIME - 1, 0])
def test_a_key_of_small_order_signs_nothing(y: int) -> None:
    """With the neutral point as key and nonce, and the number zero, every message would be signed."""
    neutral = (1).to_bytes(32, "little")
    assert not verify(y.to_bytes(32, "little"), b"anything", neutral + bytes(32))


@pytest.mark.parametrize(("public", "signature"), [(31, 64), (33, 64), (32, 63), (32, 65), (0, 0)])
def test_other_lengths_are_refused(public: int, signature: int) -> None:
    assert not verify(bytes(public), b"m", bytes(signature))
