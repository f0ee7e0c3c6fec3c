"""The files of a release: their table, and the text of one of them, which is never run."""

from __future__ import annotations

from typing import Final

from capdex.json import Json
from capdex_explorer.pages.package import lines_from, open_page, page_view
from capdex_explorer.site import PageRequest, Site, View, not_found

ROWS: Final = 100  # of the table on one page
MAX_CHARS: Final = 20_000  # of a text on one page: some 15 kB compressed if it is random
# The first bytes of files that are no text, in the words of a page, whatever their names claim.
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


async def files(site: Site, request: PageRequest) -> View:
    """Show the table of a release's files, or with `path` one of them as a text."""
    shown, data = await open_page(site, request, "files")
    resources = () if shown.manifest is None else shown.manifest.resources
    first = min(request.number("from", 1), max(1, len(resources)))
    data |= {"file": None, "first": first, "rows": [], "before": None, "after": None}
    path = request.query.get("path", ("",))[0]
    if path:
        wanted = next((x for x in resources if x.path == path), None)
        if wanted is None:
            raise not_found("this release has no such file", "see the table of its files")
        held = await site.reader.run(site.reader.resource, wanted, long=True)
        text = await site.reader.run(_shown, held, request, long=True)
        data |= text | {"file": wanted.to_json() | {"may_run": wanted.may_run}}
    elif data["contents"] is not None:
        rows = data["contents"]["files"]
        data["rows"] = rows[first - 1 :][:ROWS]
        if len(rows) >= first + ROWS:
            data["after"] = request.address(**{"from": str(first + ROWS)})
    part = f"file {path}" if path else "files"
    return page_view("package_files.html", data, shown.manifest, part, live=bool(path))


def _shown(held: bytes | None, request: PageRequest) -> Json:
    """Return whether a file is here, what it is if it is no text, or else its lines."""
    kind = None if held is None else kind_of(held)
    fields: Json = {"held": held is not None, "kind": kind, "lines": None}
    if held is None or kind is not None:
        return fields
    return fields | lines_from(held.decode("utf-8"), request, MAX_CHARS)


def kind_of(data: bytes) -> str | None:
    """Return what a file is that cannot be shown as a text, with its article; None for a text."""
    try:
        if "\0" not in data.decode("utf-8"):
            return None
    except UnicodeDecodeError:
        pass  # named below
    named = (kind for first, kind in _KINDS.items() if data.startswith(first))
    return next(named, "not a text in UTF-8")
