"""Windows of a text as numbers: every run of 1 to MAX_GRAM characters of a message.

A trigger is filed under the windows that each message it matches must have, so a message finds its
candidates by its own windows. Numbers may collide; candidates are matched afterwards.
"""

from __future__ import annotations

from typing import Final

import numpy as np
from numpy.typing import NDArray

from capdex.routing.patterns import MAX_GRAM

Hashes = NDArray[np.uint64]

_BASE: Final = 0x9E3779B97F4A7C15
_MIX: Final = 0xD6E8FEB86659FD93
_ALL: Final = 2**64 - 1
_HALF: Final = np.uint64(32)


def gram(text: str) -> int:
    """Return the number of a text of 1 to MAX_GRAM characters."""
    found = 0
    for character in text:
        found = (found * _BASE + ord(character) + 1) & _ALL
    found = ((found ^ (found >> 32)) * _MIX) & _ALL
    return found ^ (found >> 32)


def grams(text: str) -> Hashes:
    """Return the numbers of all windows of a text, in no order, some of them several times."""
    data = text.encode("utf-32-le", "surrogatepass")
    codes = np.frombuffer(data, np.uint32).astype(np.uint64) + np.uint64(1)
    if not len(codes):
        return codes
    window = codes
    found = [window]
    for length in range(2, min(MAX_GRAM, len(codes)) + 1):
        window = window[:-1] * np.uint64(_BASE) + codes[length - 1 :]
        found.append(window)
    mixed: Hashes = np.concatenate(found)
    mixed = (mixed ^ (mixed >> _HALF)) * np.uint64(_MIX)
    mixed ^= mixed >> _HALF
    return mixed


def table(keys: Hashes) -> NDArray[np.uint8]:
    """Return a table of bits, by which `may_have` rules most other numbers out."""
    bits = max(6, int(len(keys) * 12).bit_length())
    places = keys >> np.uint64(64 - bits)
    flags = np.zeros(1 << bits, bool)
    flags[places.astype(np.int64)] = True
    return np.packbits(flags)


def may_have(bits: NDArray[np.uint8], some: Hashes) -> NDArray[np.bool_]:
    """Return which numbers may be in a table: all that are, and few others."""
    size = len(bits) * 8
    places = (some >> np.uint64(64 - (size.bit_length() - 1))).astype(np.int64)
    found: NDArray[np.bool_] = (bits[places >> 3] & (128 >> (places & 7)).astype(np.uint8)) != 0
    return found
