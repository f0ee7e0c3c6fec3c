"""Static files, read once at the start; their addresses change with their content."""

from __future__ import annotations

import gzip
import hashlib
from pathlib import Path
from typing import Final

from capdex_explorer.http.rendered import FOREVER, RenderedPage

STATIC: Final = Path(__file__).parents[1] / "static"
PREFIX: Final = "/static/"
_TYPES: Final = {
    ".css": "text/css; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".svg": "image/svg+xml",
    ".txt": "text/plain; charset=utf-8",
}


def read_assets() -> tuple[dict[str, RenderedPage], dict[str, str]]:
    """Return the files by address, and the addresses by file name."""
    files: dict[str, RenderedPage] = {}
    addresses: dict[str, str] = {}
    for path in sorted(STATIC.iterdir()):
        body = path.read_bytes()
        digest = hashlib.sha256(body).hexdigest()[:12]
        address = f"{PREFIX}{digest}/{path.name}"
        packed, etag = gzip.compress(body, 9, mtime=0), f'W/"{digest}"'
        files[address] = RenderedPage(body, packed, etag, _TYPES[path.suffix], caching=FOREVER)
        addresses[path.name] = address
    return files, addresses
