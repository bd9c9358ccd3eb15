"""Checking an Ed25519 signature (RFC 8032, section 5.1.7) with nothing but integers.

Slow, some milliseconds, and open to who watches the clock: nothing here is secret. Only the one spelling of keys,
points and numbers that the RFC asks for is taken.
"""

from __future__ import annotations

import hashlib

Point = tuple[int, int, int, int]  # extended coordinates X, Y, Z, T with x = X/Z, y = Y/Z, x*y = T/Z

PRIME = 2**255 - 19
ORDER = 2**252 + 27742317777372353535851937790883648493
CURVE_D = -121665 * pow(121666, -1, PRIME) % PRIME
ROOT_OF_MINUS_ONE = pow(2, (PRIME - 1) // 4, PRIME)
NEUTRAL: Point = (0, 1, 1, 0)


def verify(public: bytes, message: bytes, signature: bytes) -> bool:
    """Whether ``signature`` (64 bytes) is one of ``message`` by the key ``public`` (32 bytes)."""
    if len(public) != 32 or len(signature) != 64:
        return False
    key, nonce = _point_of(public), _point_of(signature[:32])
    number = int.from_bytes(signature[32:], "little")
    if key is None or nonce is None or number >= ORDER:
        return False
    if _equal_points(_times(8, key), NEUTRAL):  # such a key "signs" everything
        return False
    challenge = hashlib.sha512(signature[:32] + public + message).digest()
    factor = int.from_bytes(challenge, "little") % ORDER
    return _equal_points(_times(number, BASE), _plus(nonce, _times(factor, key)))


def _point_of(encoded: bytes) -> Point | None:
    """The point of 32 bytes, None where there is none or where they are not its one spelling."""
    number = int.from_bytes(encoded, "little")
    y, odd = number & (2**255 - 1), number >> 255
    if y >= PRIME:
        return None
    x = _x_of(y, odd)
    return None if x is None else (x, y, 1, x * y % PRIME)


def _x_of(y: int, odd: int) -> int | None:
    square = (y * y - 1) * pow(CURVE_D * y * y + 1, -1, PRIME) % PRIME
    if square == 0:
        return None if odd else 0
    x = pow(square, (PRIME + 3) // 8, PRIME)
    if (x * x - square) % PRIME:
        x = x * ROOT_OF_MINUS_ONE % PRIME
    if (x * x - square) % PRIME:
        return None
    return x if x & 1 == odd else PRIME - x


def _plus(left: Point, right: Point) -> Point:
    a = (left[1] - left[0]) * (right[1] - right[0]) % PRIME
    b = (left[1] + left[0]) * (right[1] + right[0]) % PRIME
    c = 2 * left[3] * right[3] * CURVE_D % PRIME
    d = 2 * left[2] * right[2] % PRIME
    e, f, g, h = b - a, d - c, d + c, b + a
    return e * f % PRIME, g * h % PRIME, f * g % PRIME, e * h % PRIME


def _times(number: int, point: Point) -> Point:
    result = NEUTRAL
    while number:
        if number & 1:
            result = _plus(result, point)
        point = _plus(point, point)
        number >>= 1
    return result


def _equal_points(left: Point, right: Point) -> bool:
    return (left[0] * right[2] - right[0] * left[2]) % PRIME == 0 and (
        left[1] * right[2] - right[1] * left[2]
    ) % PRIME == 0


BASE_Y = 4 * pow(5, -1, PRIME) % PRIME
BASE: Point = _point_of(BASE_Y.to_bytes(32, "little")) or NEUTRAL
