"""Which 32 bytes are an Ed25519 public key: OpenSSL takes more than may vouch for anything.

A small-order key verifies one signature over many messages, and an encoding that is not canonical
is a second spelling of a key. RFC 8032, 5.1.3; edwards25519 in affine terms is enough here.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Final

_P: Final = 2**255 - 19
_D: Final = -121665 * pow(121666, -1, _P) % _P
_SQRT_MINUS_ONE: Final = pow(2, (_P - 1) // 4, _P)


@lru_cache(maxsize=4096)  # authors publish more than once
def is_sound_point(data: bytes) -> bool:
    """Whether `data` is the canonical encoding of a curve point of more than small order."""
    y = int.from_bytes(data, "little")
    sign, y = y >> 255, y & (2**255 - 1)
    if len(data) != 32 or y >= _P:
        return False
    x = _x_of(y)
    if x is None or (x == 0 and sign):
        return False
    for _ in range(3):  # times 8: what is left of a small-order point is the neutral (0, 1)
        x, y = _double(x, y)
    return (x, y) != (0, 1)


def _x_of(y: int) -> int | None:
    """One of the two x for y on -x² + y² = 1 + d·x²·y², or None."""
    square = (y * y - 1) * pow(_D * y * y + 1, -1, _P) % _P
    x = pow(square, (_P + 3) // 8, _P)
    if x * x % _P != square:
        x = x * _SQRT_MINUS_ONE % _P
    return x if x * x % _P == square else None


def _double(x: int, y: int) -> tuple[int, int]:
    product = _D * x * x * y * y % _P
    return (
        2 * x * y * pow(1 + product, -1, _P) % _P,
        (y * y + x * x) * pow(1 - product, -1, _P) % _P,
    )
