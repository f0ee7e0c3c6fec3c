"""A page or static file as bytes: compressed once, with its ETag, for all who ask for it.

With it go the headers of every answer: what a browser may load, run and tell others.
"""

from __future__ import annotations

import gzip
import hashlib
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Self

from starlette.requests import Request
from starlette.responses import Response

SMALL: Final = 600  # bytes; compressing less saves nothing
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
STATIC: Final = Path(__file__).parents[1] / "static"
STATIC_PREFIX: Final = "/static/"
_TYPES: Final = {
    ".css": "text/css; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".png": "image/png",
    ".svg": "image/svg+xml",
    ".txt": "text/plain; charset=utf-8",
}


@dataclass(frozen=True, slots=True)
class RenderedPage:
    """A page or static file as bytes, plain and compressed, with its ETag."""

    body: bytes
    packed: bytes
    etag: str
    media_type: str
    status: int = 200
    caching: str = ASK_AGAIN

    @property
    def size(self) -> int:
        """The memory that it takes, in bytes."""
        return len(self.body) + len(self.packed)

    @classmethod
    def of(cls, body: bytes, media_type: str, status: int = 200, *, live: bool = False) -> Self:
        """Compress a body and make its ETag, which is weak: both forms share it."""
        packed = gzip.compress(body, 5, mtime=0) if len(body) >= SMALL else b""
        etag = f'W/"{hashlib.sha256(body).hexdigest()[:24]}"'
        return cls(body, packed, etag, media_type, status, NOT_STORED if live else ASK_AGAIN)

    def response(self, request: Request) -> Response:
        """Return the answer to a request: 304 if the client has the page already."""
        headers = {**SECURITY, "Cache-Control": self.caching, "Vary": "Accept, Accept-Encoding"}
        if self.caching != NOT_STORED and self.status == 200:
            headers["ETag"] = self.etag
            known = request.headers.get("if-none-match", "")
            if known.strip() == "*" or self.etag[2:] in known:
                return Response(status_code=304, headers=headers)
        if self.packed and weight(request.headers.get("accept-encoding", ""), "gzip"):
            headers["Content-Encoding"] = "gzip"
            return Response(self.packed, self.status, headers, self.media_type)
        return Response(self.body, self.status, headers, self.media_type)


def read_assets() -> tuple[dict[str, RenderedPage], dict[str, str]]:
    """Return the static files by address, and the addresses by file name.

    They are read once, at the start; their addresses change with their content.
    """
    files: dict[str, RenderedPage] = {}
    addresses: dict[str, str] = {}
    for path in sorted(STATIC.iterdir()):
        body = path.read_bytes()
        digest = hashlib.sha256(body).hexdigest()[:12]
        address = f"{STATIC_PREFIX}{digest}/{path.name}"
        packed, etag = gzip.compress(body, 9, mtime=0), f'W/"{digest}"'
        files[address] = RenderedPage(body, packed, etag, _TYPES[path.suffix], caching=FOREVER)
        addresses[path.name] = address
    return files, addresses


def weight(header: str, kind: str) -> float:
    """Return the weight that an Accept or Accept-Encoding header gives `kind`; 0 if it has none."""
    for part in header.lower().split(","):
        name, *parameters = map(str.strip, part.split(";"))
        if name == kind:
            given = next((x[2:] for x in parameters if x.startswith("q=")), "")
            return float(given) if given.replace(".", "", 1).isdecimal() else 1.0
    return 0.0
