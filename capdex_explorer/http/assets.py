"""Static files, read once at the start; their addresses change with their content."""

from __future__ import annotations

import gzip
import hashlib
from dataclasses import dataclass
from pathlib import Path
from typing import Final

STATIC: Final = Path(__file__).parents[1] / "static"
PREFIX: Final = "/static/"
_TYPES: Final = {
    ".css": "text/css; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".svg": "image/svg+xml",
    ".txt": "text/plain; charset=utf-8",
}


@dataclass(frozen=True, slots=True)
class Asset:
    """A static file with its media type, plain and compressed."""

    media_type: str
    body: bytes
    packed: bytes


def read_assets() -> tuple[dict[str, Asset], dict[str, str]]:
    """Return the files by address, and the addresses by file name."""
    files: dict[str, Asset] = {}
    addresses: dict[str, str] = {}
    for path in sorted(STATIC.iterdir()):
        body = path.read_bytes()
        digest = hashlib.sha256(body).hexdigest()[:12]
        address = f"{PREFIX}{digest}/{path.name}"
        files[address] = Asset(_TYPES[path.suffix], body, gzip.compress(body, 9, mtime=0))
        addresses[path.name] = address
    return files, addresses
