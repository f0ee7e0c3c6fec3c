"""Headers of every answer of the explorer: what a browser may load, run and tell others."""

from __future__ import annotations

from typing import Final

# Nothing but this node's own files: no inline script or style, no frame, no other host.
CONTENT_SECURITY_POLICY: Final = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:;"
    " connect-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
)
SECURITY: Final = {
    "Content-Security-Policy": CONTENT_SECURITY_POLICY,
    "Referrer-Policy": "same-origin",  # with no-referrer, browsers send forms with Origin: null
    "Cross-Origin-Opener-Policy": "same-origin",
    "Permissions-Policy": "camera=(), geolocation=(), microphone=(), payment=()",
}
FOREVER: Final = "public, max-age=31536000, immutable"
ASK_AGAIN: Final = "no-cache"  # it may be stored, and is asked for again with its ETag
NOT_STORED: Final = "no-store"


def accepts(header: str, kind: str) -> bool:
    """Return whether an Accept or Accept-Encoding header takes `kind`, without its parameters."""
    for part in header.split(","):
        name, _, parameters = part.strip().partition(";")
        if name.strip().lower() == kind:
            return parameters.replace(" ", "") not in ("q=0", "q=0.0", "q=0.00", "q=0.000")
    return False
