"""Files that lie on IPFS and that a package names in its section `resources` (P10c).

Each has a path that every common file system can have, as itself, and is pinned by its hashes.
"""

from __future__ import annotations

import hashlib
import re
import unicodedata
from dataclasses import dataclass, replace
from typing import Final

from capdex.diagnostics import show
from capdex.errors import InvalidInput, VerificationFailure
from capdex.ipld.cid import RAW, Cid
from capdex.limits import MAX_RESOURCE_BYTES
from capdex.manifest.fields import Fields
from capdex.problems import Reason

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
        if part[-1] in ". ":
            return "a part of it is . or .., or ends with a dot or a space"
        if part.split(".")[0].rstrip(" ").casefold() in _DEVICES:
            return f"{part} is the name of a device on Windows"
    if fold(path) == MADE:
        return "SKILL.md is made from the package"
    return None


def fold(path: str) -> str:
    """Return what is equal for paths that one file system may take for the same (Unicode D145)."""
    decomposed = unicodedata.normalize("NFD", path)
    return unicodedata.normalize("NFD", decomposed.casefold())


MAX_RESOURCES: Final = 512
MAX_TOTAL_BYTES: Final = 32 * 1024 * 1024  # of all files of one package
MAX_MEDIA_TYPE_CHARS: Final = 128
KNOWN: Final = ("path", "cid", "sha256", "size", "media_type", "executable")
SCRIPTS: Final = (
    *(".py", ".sh", ".bash", ".js", ".mjs", ".cjs", ".ts", ".rb", ".pl", ".php"),
    *(".ps1", ".bat", ".cmd", ".exe", ".jar", ".zsh", ".fish", ".lua", ".vbs", ".so", ".dll"),
    ".pyc",  # Python runs it in place of the source that it is named after
)
# `git status` runs what a folder with a HEAD says, editors and shells what hidden files say, and
# `tar cf x *` takes a name with a hyphen first as an option.
_FOUND: Final = re.compile(r"(?:^|/)(?:[.-]|head$)", re.ASCII | re.IGNORECASE)

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
        """True for what is executable, a script or program by its name, or found by programs."""
        by_name = self.path.lower().endswith(SCRIPTS) or _FOUND.search(self.path) is not None
        return self.executable or by_name

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
    fields = replace(fields, absent="capdex sign FILE writes what the file is now")
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


def check_resource(resource: Resource, data: bytes) -> None:
    """Raise VerificationFailure, with the path, if `data` is not the file.

    Whoever fetches a file hashes each block against the CID (`capdex.ipld.unixfs.Assembly`); the
    sha256 compared here is that of the whole file, so a CID of other bytes fails as well.
    """
    digest = hashlib.sha256(data).digest()
    if len(data) == resource.size and digest == resource.sha256:
        return
    why = f"it has sha256 {digest.hex()}, the package says {resource.sha256.hex()}"
    if len(data) != resource.size:
        why = f"it has {len(data)} bytes, the package says {resource.size}"
    raise VerificationFailure(
        f"the file {resource.path} is not the one that the package names",
        why=why,
        fix="fetch it from another source, or ask the author for a new version",
        details={"reason": str(Reason.SHA256_MISMATCH), "path": resource.path},
    )
