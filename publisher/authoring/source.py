"""The author's file: its bytes, and its manifest or every problem it has."""

from __future__ import annotations

from pathlib import Path

from capdex.errors import Code, InvalidInput
from capdex.limits import MAX_PACKAGE_BYTES
from capdex.manifest import manifest
from capdex.manifest.manifest import Manifest
from publisher.files import unreadable


def read_source(path: Path) -> bytes:
    """The bytes of a package file; raises UsageError UNREADABLE, InvalidInput TOO_LARGE."""
    try:
        with path.open("rb") as file:
            data = file.read(MAX_PACKAGE_BYTES + 1)
    except OSError as error:
        raise unreadable(str(path), error.strerror or "") from None
    if len(data) > MAX_PACKAGE_BYTES:
        raise InvalidInput(
            f"{path} is larger than a package may be ({MAX_PACKAGE_BYTES} bytes)",
            Code.TOO_LARGE,
            fix="shorten the prompt, the schema or the tools",
        )
    return data


def read_manifest(data: bytes) -> Manifest:
    """The manifest of a package; raises InvalidInput with all problems in its details."""
    return manifest.read(data).require()
