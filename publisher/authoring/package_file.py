"""A package file: its name for messages, its bytes, and where it is."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from capdex.errors import Code, InvalidInput
from capdex.limits import MAX_PACKAGE_BYTES
from publisher.files import unreadable


@dataclass(frozen=True, slots=True)
class PackageFile:
    """A file to sign or publish. A signature made now is written back to `path`, if it is set."""

    name: str
    data: bytes
    path: Path | None = None

    @classmethod
    def read(cls, path: Path) -> PackageFile:
        """Read a file; raise UsageError UNREADABLE or InvalidInput TOO_LARGE."""
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
        return cls(str(path), data, path)
