"""A picture of an account or DID, so that people see at once whether two are the same."""

from __future__ import annotations

import hashlib
from typing import Final

from markupsafe import Markup

CELLS: Final = 5  # in a row, mirrored


def identicon(who: str) -> Markup:
    """Return a small image of coloured cells, from the sha256 of a text in any case."""
    digest = hashlib.sha256(who.lower().encode("utf-8")).digest()
    cells = Markup("").join(
        Markup('<rect x="{}" y="{}" width="1" height="1"/>').format(x, row)
        for column in range(CELLS // 2 + 1)
        for row in range(CELLS)
        if digest[2 + column * CELLS + row] % 2
        for x in {column, CELLS - 1 - column}
    )
    return Markup(
        '<svg class="identicon" viewBox="0 0 {n} {n}" fill="hsl({hue} 55% 50%)" aria-hidden="true">'
        "{cells}</svg>"
    ).format(n=CELLS, hue=int.from_bytes(digest[:2]) % 360, cells=cells)
