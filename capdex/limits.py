"""Limits that more than one sub-package enforces (docs/protocol.md, Limits)."""

from __future__ import annotations

from typing import Final

MAX_PACKAGE_BYTES: Final = 256 * 1024  # fits one IPFS block and a small part of a reader's memory
MAX_RESOURCE_BYTES: Final = (
    4 * 1024 * 1024
)  # of one file of a package: 16 blocks as Kubo divides it
MAX_DEPTH: Final = 32  # of nested values: deeper than any written schema, far below Python's stack
