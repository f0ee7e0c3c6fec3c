"""What a file is by its bytes, whatever its name and its media type claim."""

from __future__ import annotations

from typing import Final

# The first bytes of files that are no text, in the words of a page.
_KINDS: Final = {
    b"\x7fELF": "a program for Linux (ELF)",
    b"MZ": "a program for Windows",
    b"\xcf\xfa\xed\xfe": "a program for macOS (Mach-O)",
    b"\xca\xfe\xba\xbe": "a program for macOS (Mach-O) or Java",
    b"\x00asm": "a WebAssembly program",
    b"\x89PNG": "a PNG image",
    b"\xff\xd8\xff": "a JPEG image",
    b"GIF8": "a GIF image",
    b"%PDF": "a PDF document",
    b"PK\x03\x04": "a ZIP archive (an office document is one, too)",
    b"\x1f\x8b": "a gzip archive",
    b"SQLite format 3": "an SQLite database",
    b"wOF": "a font",
}


def kind_of(data: bytes) -> str | None:
    """Return what a file is that cannot be shown as a text, with its article; None for a text."""
    try:
        if "\0" not in data.decode("utf-8"):
            return None
    except UnicodeDecodeError:
        pass  # named below
    named = (kind for first, kind in _KINDS.items() if data.startswith(first))
    return next(named, "not a text in UTF-8")
