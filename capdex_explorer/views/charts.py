"""Small charts as SVG: a line of samples over time, without style or script of its own."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from markupsafe import Markup

from capdex_explorer.views.text import number

WIDTH: Final = 300
HEIGHT: Final = 64
_EDGE: Final = 3  # so that a line at the border is not cut

Point = tuple[float, float | None]  # epoch seconds and a value, None where it is not known


def line_chart(points: Sequence[Point], *, title: str, unit: str, window_s: float) -> Markup:
    """Return an image of the points of the last `window_s` seconds, or of all if they are of less.

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
