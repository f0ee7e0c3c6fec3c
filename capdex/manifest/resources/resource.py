"""The section `resources`: files that lie on IPFS, pinned by their hashes in the package (P10c)."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

from capdex.diagnostics import show
from capdex.errors import InvalidInput
from capdex.ipld.cid import RAW, Cid
from capdex.limits import MAX_RESOURCE_BYTES
from capdex.manifest.fields import Fields
from capdex.manifest.resources.paths import fold, path_fault
from capdex.problems import Reason

MAX_RESOURCES: Final = 512
MAX_TOTAL_BYTES: Final = 32 * 1024 * 1024  # of all files of one package
MAX_MEDIA_TYPE_CHARS: Final = 128
KNOWN: Final = ("path", "cid", "sha256", "size", "media_type", "executable")
SCRIPTS: Final = (
    *(".py", ".sh", ".bash", ".js", ".mjs", ".cjs", ".ts", ".rb", ".pl", ".php"),
    *(".ps1", ".bat", ".cmd", ".exe", ".jar"),
)

SHA256 = re.compile(r"[0-9a-f]{64}", re.ASCII)
MEDIA_TYPE = re.compile(r"[a-z0-9][a-z0-9!#$&^_.+-]*/[a-z0-9][a-z0-9!#$&^_.+-]*", re.ASCII)


@dataclass(frozen=True, slots=True)
class Resource:
    """A file of a package; `sha256` are the 32 bytes of its digest, `size` counts bytes."""

    path: str
    cid: Cid
    sha256: bytes
    size: int
    media_type: str
    executable: bool

    @property
    def may_run(self) -> bool:
        """True for what is executable, or is a script or program by the end of its name."""
        return self.executable or self.path.lower().endswith(SCRIPTS)

    def to_json(self) -> dict[str, str | int | bool]:
        """The file as the section and answers write it."""
        return {
            "path": self.path,
            "cid": str(self.cid),
            "sha256": self.sha256.hex(),
            "size": self.size,
            "media_type": self.media_type,
            "executable": self.executable,
        }


def read_resources(top: Fields) -> tuple[Resource, ...]:
    """The files of a package in their order; the ones refused are among the findings."""
    read: list[Resource] = []
    places: dict[str, tuple[str, bool]] = {}
    for i, item in enumerate(top.items("resources", MAX_RESOURCES)):
        fields = Fields.of(item, ("resources", i), top.findings, Reason.BAD_RESOURCE)
        if fields is not None and (resource := _read(fields)) is not None:
            _check_place(resource.path, places, fields)
            read.append(resource)
    total = sum(x.size for x in read)
    if total > MAX_TOTAL_BYTES:
        message = f"the files have {total} bytes together; at most {MAX_TOTAL_BYTES} are allowed"
        top.findings.error(Reason.BAD_RESOURCE, ("resources",), message)
    return tuple(read)


def _read(fields: Fields) -> Resource | None:
    """Read one file of the list; None (and a problem) if it is refused."""
    fields.note_unknown(KNOWN)
    path = fields.text("path", required=True)
    if path is not None and (fault := path_fault(path)):
        fields.wrong("path", f"the path {show(path)} is refused: {fault}")
        path = None
    cid = _cid(fields)
    sha256 = fields.text("sha256", required=True)
    if sha256 is not None and not SHA256.fullmatch(sha256):
        fields.wrong("sha256", "sha256 is not 64 digits 0-9 and a-f")
        sha256 = None
    size = fields.get("size", int, required=True)
    if size is not None and not 0 <= size <= MAX_RESOURCE_BYTES:
        fields.wrong("size", f"size is {size}; a file has at most {MAX_RESOURCE_BYTES} bytes")
        size = None
    media_type = fields.text("media_type", required=True, most_chars=MAX_MEDIA_TYPE_CHARS)
    if media_type is not None and not MEDIA_TYPE.fullmatch(media_type):
        fields.wrong("media_type", f"{show(media_type)} is not type/subtype in lower case")
        media_type = None
    executable = fields.get("executable", bool)
    if path is None or cid is None or sha256 is None or size is None or media_type is None:
        return None
    digest = bytes.fromhex(sha256)
    if cid.codec == RAW and cid.digest != digest:
        fields.wrong("cid", f"the CID holds sha256 {cid.digest.hex()}, not the one beside it")
    return Resource(path, cid, digest, size, media_type, bool(executable))


def _cid(fields: Fields) -> Cid | None:
    text = fields.text("cid", required=True)
    if text is None:
        return None
    try:
        return Cid.parse(text)
    except InvalidInput as error:
        fields.wrong("cid", f"{error.message}: {error.why}")
        return None


def _check_place(path: str, places: dict[str, tuple[str, bool]], fields: Fields) -> None:
    """Report a path that is, on some file system, that of another file or of its folder.

    `places` has each file and folder so far under its folded path: as written, and if it is a file.
    """
    parts = path.split("/")
    for end in range(1, len(parts) + 1):
        written, is_file = "/".join(parts[:end]), end == len(parts)
        key = fold(written)
        other, was_file = places.get(key, (written, False))
        if key in places and (is_file or was_file or other != written):
            message = f"{show(path)} and {show(other)} are one place on some file systems"
            fields.wrong("path", message, hint="case does not tell two paths apart")
            return
        places[key] = written, is_file
