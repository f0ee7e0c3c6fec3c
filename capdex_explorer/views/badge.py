"""The badge of a package for other pages: an SVG image with its version and verdict."""

from __future__ import annotations

from typing import Final

from markupsafe import escape

from capdex_explorer.views.verdicts import Badge

_COLOURS: Final = {"good": "#17603a", "fair": "#7a4b00", "poor": "#9b1c1c", "plain": "#5a6068"}
_GLYPH_WIDTH: Final = 6.7  # of the font at this size, on average
_PAD: Final = 7
_FITS: Final = 'y="15" lengthAdjust="spacingAndGlyphs"'  # so that no wide name covers the verdict


def badge_svg(label: str, badge: Badge, version: str) -> str:
    """Return the image; it loads nothing and runs nothing."""
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
