"""Images as SVG, without style or script: badges for other pages, charts, pictures of accounts."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from typing import Final

from markupsafe import Markup, escape

from capdex_explorer.views.text import number
from capdex_explorer.views.verdicts import Badge

_COLOURS: Final = {"good": "#17603a", "fair": "#7a4b00", "poor": "#9b1c1c", "plain": "#5a6068"}
_GLYPH_WIDTH: Final = 6.7  # of the font at this size, on average
_PAD: Final = 7  # of a badge
_FITS: Final = 'y="15" lengthAdjust="spacingAndGlyphs"'  # so that no wide name covers the verdict
WIDTH: Final = 300  # of a chart
HEIGHT: Final = 64
_EDGE: Final = 3  # so that a line at the border is not cut
CELLS: Final = 5  # in a row of a picture, mirrored

Point = tuple[float, float | None]  # epoch seconds and a value, None where it is not known


def badge_svg(label: str, badge: Badge, version: str) -> str:
    """Return the badge of a package, with its version and verdict; it loads and runs nothing."""
    value = f"{badge.mark} {badge.word} {version}"
    left = round(len(label) * _GLYPH_WIDTH) + 2 * _PAD
    right = round(len(value) * _GLYPH_WIDTH) + 2 * _PAD
    label, value = escape(label), escape(value)
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{left + right}" height="22" role="img"'
        f' aria-label="{label}: {value}"><title>{label}: {value}</title>'
        f'<rect width="{left + right}" height="22" rx="4" fill="{_COLOURS[badge.kind]}"/>'
        f'<path d="M4 0h{left - 4}v22H4a4 4 0 0 1-4-4V4a4 4 0 0 1 4-4z" fill="#3a3f47"/>'
        '<g fill="#fff" font-family="Verdana,DejaVu Sans,sans-serif" font-size="11">'
        f'<text x="{_PAD}" {_FITS} textLength="{left - 2 * _PAD}">{label}</text>'
        f'<text x="{left + _PAD}" {_FITS} textLength="{right - 2 * _PAD}">{value}</text></g></svg>'
    )


def line_chart(points: Sequence[Point], *, title: str, unit: str, window_s: float) -> Markup:
    """Return a chart of the points of the last `window_s` seconds, or of all if they are of less.

    The newest point is at the right. Title and description say the same in words.
    """
    known = [value for _, value in points if value is not None]
    if len(points) < 2 or not known:
        return Markup('<p class="muted">{}: not enough samples yet.</p>').format(title)
    most, last = max(known), points[-1][0]
    window_s = max(1.0, min(window_s, last - points[0][0]))
    pieces: list[list[str]] = [[]]
    for at, value in points:
        x = WIDTH - (last - at) / window_s * WIDTH
        if value is None or x < 0:
            pieces.append([])
        else:
            pieces[-1].append(
                f"{x:.1f},{HEIGHT - _EDGE - value / (most or 1) * (HEIGHT - 2 * _EDGE):.1f}"
            )
    lines = Markup("").join(
        Markup('<polyline points="{}"/>').format(" ".join(piece)) for piece in pieces if piece
    )
    words = f"last {number(round(known[-1], 1))}{unit}, most {number(round(most, 1))}{unit}"
    return Markup(
        '<figure class="chart"><svg role="img" viewBox="0 0 {w} {h}" preserveAspectRatio="none"'
        ' aria-label="{title}: {words}"><title>{title}</title><desc>{words}</desc>{lines}</svg>'
        "<figcaption>{title}: {words}</figcaption></figure>"
    ).format(w=WIDTH, h=HEIGHT, title=title, words=words, lines=lines)


def identicon(who: str) -> Markup:
    """Return a small image of coloured cells, from the sha256 of a text in any case.

    It is of an account or DID, so that people see at once whether two are the same.
    """
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
