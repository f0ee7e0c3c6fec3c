"""The author's file: its bytes, and its manifest or every problem it has."""

from __future__ import annotations

from pathlib import Path

from capdex.errors import Code, InvalidInput
from capdex.manifest import manifest
from capdex.manifest.manifest import Manifest
from capdex.problems import Severity
from capdex.yaml.reader import MAX_PACKAGE_BYTES
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
    reading = manifest.read(data)
    if reading.manifest is not None:
        return reading.manifest
    first = next(x for x in reading.problems if x.severity is Severity.ERROR)
    place = f"line {first.line}: " if first.line else ""
    path = f"{first.path}: " if first.path else ""
    raise InvalidInput(
        "the package is not valid",
        why=f"{place}{path}{first.message}",
        fix="see every problem: capdex validate FILE",
        details={"problems": [problem.to_json() for problem in reading.problems]},
    )
