"""Paths of files that can be written on every common file system, each as itself (P10c)."""

from __future__ import annotations

import unicodedata
from typing import Final

MAX_PATH_BYTES: Final = 200  # with the folder of a host before it, below the 260 of Windows
MAX_PARTS: Final = 8
MADE: Final = "skill.md"  # written from the package itself

_RESERVED: Final = frozenset('\\:*?"<>|')  # in names of files on Windows
# One fixed database, so that no verdict depends on the Unicode version of a reader.
_category: Final = unicodedata.ucd_3_2_0.category
_DEVICES: Final = frozenset(
    ["con", "prn", "aux", "nul", "conin$", "conout$"]
    + [kind + digit for kind in ("com", "lpt") for digit in "0123456789¹²³"]
)


def path_fault(path: str) -> str | None:
    """Return what is wrong with the path of a file, as a clause; None if nothing is."""
    if len(path.encode(errors="replace")) > MAX_PATH_BYTES:
        return f"it has more than {MAX_PATH_BYTES} bytes"
    for character in path:
        if character in _RESERVED:
            return f"it contains {character}, which some systems do not allow in a name"
        if character != " " and _category(character)[0] not in "LMNPS":
            return f"it contains U+{ord(character):04X}, which is no visible sign of Unicode 3.2"
    if unicodedata.normalize("NFC", path) != path:
        return "it is not in Unicode's normal form C"
    parts = path.split("/")
    if len(parts) > MAX_PARTS:
        return f"it has more than {MAX_PARTS} parts"
    for part in parts:
        if not part:
            return "one of its parts is empty: it is relative, with one / between two names"
        if part in (".", ".."):
            return f"it contains the part {part}"
        if part[-1] in ". ":
            return "a part of it ends with a dot or a space"
        if part.split(".")[0].rstrip(" ").casefold() in _DEVICES:
            return f"{part} is the name of a device on Windows"
    if fold(path) == MADE:
        return "SKILL.md is made from the package"
    return None


def fold(path: str) -> str:
    """Return what is equal for paths that one file system may take for the same (Unicode D145)."""
    decomposed = unicodedata.normalize("NFD", path)
    return unicodedata.normalize("NFD", decomposed.casefold())
