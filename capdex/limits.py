"""Limits that more than one sub-package enforces (docs/protocol.md, Limits)."""

from __future__ import annotations

from typing import Final

MAX_PACKAGE_BYTES: Final = 256 * 1024  # fits one IPFS block and a small part of a reader's memory
MAX_DEPTH: Final = 32  # of nested values: deeper than any written schema, far below Python's stack
