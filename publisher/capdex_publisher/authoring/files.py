"""The files of a package on its author's disk: listed, written into the package, compared with it.

They lie in a folder `NAME` beside `NAME.acp.yaml`, or else in the folder of the package itself.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import stat
from codecs import BOM_UTF16_BE, BOM_UTF16_LE
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from mimetypes import MimeTypes
from pathlib import Path, PurePosixPath
from typing import Final

from capdex.diagnostics import Findings
from capdex.errors import InvalidInput, VerificationFailure
from capdex.ipld.unixfs import divide
from capdex.limits import MAX_RESOURCE_BYTES
from capdex.manifest.fields import Fields
from capdex.manifest.resources import (
    MAX_RESOURCES,
    MAX_TOTAL_BYTES,
    Resource,
    check_resource,
    path_fault,
    read_resources,
)
from capdex.yaml import read_yaml
from capdex.yaml.characters import forbidden

SUFFIX: Final = ".acp.yaml"
MADE_BY_PROGRAMS: Final = frozenset(["__pycache__", "node_modules"])
MAX_NAMED: Final = 8  # files in one error
LINK: Final = "it is a link: put what it leads to in its place"
HIDDEN: Final = "it is hidden: write what is needed of it into resources, as - path: PATH"

_TYPES: Final = MimeTypes()  # Python's own table, without that of the system
_MORE_TYPES: Final = {
    ".md": "text/markdown",
    ".sh": "text/x-sh",
    ".ts": "text/x-typescript",
    ".tsx": "text/x-typescript",
    ".yaml": "application/yaml",
    ".yml": "application/yaml",
    ".toml": "application/toml",
    ".ttf": "font/ttf",
    ".otf": "font/otf",
    ".woff2": "font/woff2",
}
# The first bytes of what a computer runs and a person cannot read.
PROGRAMS: Final = {
    b"\x7fELF": "application/x-elf",
    b"MZ": "application/vnd.microsoft.portable-executable",
    b"\xcf\xfa\xed\xfe": "application/x-mach-binary",
    b"\xca\xfe\xba\xbe": "application/x-mach-binary",
    b"\x00asm": "application/wasm",
}
# It ends before the comments and empty lines in front of the next one.
_SECTION: Final = re.compile(rb"(?ms)^resources:.*?(?=(?:^(?:#[^\n]*)?\r?\n)*(?:^[^\s#-]|\Z))")


@dataclass(slots=True)
class FilesRead:
    """Files of a package by their paths, and why others are not those that it names."""

    data: dict[str, bytes] = field(default_factory=dict)
    faults: dict[str, str] = field(default_factory=dict)

    def require(self, package: str, folder: Path) -> dict[str, bytes]:
        """Return the bytes of all; raise InvalidInput with the names of those that differ."""
        if not self.faults:
            return self.data
        named = [f"{path} {why}" for path, why in list(self.faults.items())[:MAX_NAMED]]
        more = f"; and {len(self.faults) - MAX_NAMED} more" if len(self.faults) > MAX_NAMED else ""
        raise InvalidInput(
            f"files of {package} in {folder} are not those that it names",
            why="; ".join(named) + more,
            fix="name their folder with --files, or take out the lines of files that are gone, "
            f"then: capdex sign {package}",
            details={"files": self.faults},
        )


def folder_of(package: Path | None, given: Path | None = None) -> Path:
    """Return the folder of a package's files; `package` is None for one from standard input."""
    if given is not None or package is None:
        return given or Path()
    beside = package.with_name(package.name.removesuffix(SUFFIX))
    return beside if beside != package and beside.is_dir() else package.parent


def list_files(folder: Path) -> tuple[list[Resource], dict[str, str]]:
    """Return the files of a folder that a package can carry, and why it carries no others.

    Links are not followed, and neither SKILL.md nor a package at the top is a file of the package.
    """
    files: list[Resource] = []
    left: dict[str, str] = {}
    total = 0
    for path in _walk(folder, left):
        try:
            hidden = "it contains an invisible character" if list(forbidden(path)) else ""
            if fault := path_fault(path) or hidden:
                raise InvalidInput("", why=f"{fault}: rename it")
            if len(files) == MAX_RESOURCES:
                raise InvalidInput("", why=f"over {MAX_RESOURCES} files in a package: join some")
            file = describe(folder, path)
            if total + file.size > MAX_TOTAL_BYTES:
                raise InvalidInput("", why=f"all files have at most {MAX_TOTAL_BYTES} bytes")
        except InvalidInput as error:
            left[path] = error.why
        else:
            files.append(file)
            total += file.size
    clashes = _clashes(files)
    return [x for x in files if x.path not in clashes], left | clashes


def _clashes(resources: Sequence[Resource]) -> dict[str, str]:
    """Return the files that the format's own reader refuses beside the ones before them."""
    findings = Findings()
    read_resources(Fields({"resources": [x.to_json() for x in resources]}, (), findings))
    rows = ((re.match(r"resources\[(\d+)\]", x.path), x.message) for x in findings.problems())
    return {resources[int(row[1])].path: message for row, message in rows if row}


def _walk(folder: Path, left: dict[str, str]) -> Iterator[str]:
    def unread(error: OSError) -> None:
        place = Path(str(error.filename)).relative_to(folder)
        left[f"{place.as_posix()}/"] = f"cannot be read: {error.strerror}"

    for place, folders, files in os.walk(folder, onerror=unread):
        at = Path(place).relative_to(folder)
        if at.parts and not folders and not files:
            left[f"{at.as_posix()}/"] = "it is empty, and a package has files alone"
        for name in sorted(folders):
            # A path that is too long for Path.is_symlink is no link.
            if os.path.islink(os.path.join(place, name)):  # noqa: PTH114, PTH118
                why = LINK
            elif name.startswith("."):
                why = HIDDEN
            elif name in MADE_BY_PROGRAMS:
                why = "it is made by a program"
            else:
                continue
            left[f"{(at / name).as_posix()}/"] = why
            folders.remove(name)
        folders.sort()
        for name in sorted(files):
            path = (at / name).as_posix()
            if name.startswith("."):
                left[path] = HIDDEN
            elif not at.parts and name.endswith(SUFFIX):
                left[path] = "it is a package itself"
            elif at.parts or name.lower() != "skill.md":
                yield path
            elif name != "SKILL.md" and "SKILL.md" in files:
                left[path] = "SKILL.md is the text of the skill"


def describe(folder: Path, path: str) -> Resource:
    """Return a file as the package names it; raise InvalidInput, whose `why` is a clause."""
    data, executable = _read(folder, path)
    media_type = _media_type(path, data)
    digest = hashlib.sha256(data).digest()
    return Resource(path, divide(data)[0][0], digest, len(data), media_type, executable)


def _read(folder: Path, path: str) -> tuple[bytes, bool]:
    """Return the bytes of a file, and True if its owner may execute it."""
    file = folder / path
    try:
        status = file.lstat()
        if os.path.realpath(file) != str(Path(os.path.realpath(folder), path)):  # or one above it
            raise InvalidInput("", why=LINK)
        if not stat.S_ISREG(status.st_mode):
            raise InvalidInput("", why="it is no ordinary file")
        if status.st_size > MAX_RESOURCE_BYTES:
            why = f"it has {status.st_size} bytes; a file has at most {MAX_RESOURCE_BYTES}"
            raise InvalidInput("", why=why)
        return file.read_bytes(), bool(status.st_mode & stat.S_IXUSR)
    except OSError as error:
        raise InvalidInput("", why=f"cannot be read: {error.strerror}") from None


def _media_type(path: str, data: bytes) -> str:
    for start, program in PROGRAMS.items():
        if data.startswith(start) and b"\0" in data[:1024]:
            return program
    suffix = PurePosixPath(path).suffix.lower()
    known = _MORE_TYPES.get(suffix) or _TYPES.guess_type(f"a{suffix}")[0]
    if known:
        return known
    return "application/octet-stream" if text_of(data) is None else "text/plain"


def text_of(data: bytes) -> str | None:
    """Return the text of a file in UTF-8, or in UTF-16 with its mark; None for other bytes."""
    try:
        if data.startswith((BOM_UTF16_LE, BOM_UTF16_BE)):
            return data.decode("utf-16")
        return None if b"\0" in data else data.decode()
    except UnicodeDecodeError:
        return None


def read_files(resources: Iterable[Resource], folder: Path) -> FilesRead:
    """Read and compare the files of a package; never raises."""
    read = FilesRead()
    for resource in resources:
        try:
            data, executable = _read(folder, resource.path)
            check_resource(resource, data)
        except InvalidInput as error:
            read.faults[resource.path] = error.why
        except VerificationFailure:
            read.faults[resource.path] = "changed after the package named it"
        else:
            if executable is not resource.executable and os.name == "posix":
                now = "is now executable" if executable else "is no longer executable"
                read.faults[resource.path] = now
            read.data[resource.path] = data
    return read


def section(resources: Iterable[Resource]) -> str:
    """Return the section `resources` of a package as YAML, a file a line."""
    lines = ["resources:"]
    for resource in resources:
        row = {key: value for key, value in resource.to_json().items() if value is not False}
        fields = (f"{key}: {json.dumps(x, ensure_ascii=False)}" for key, x in row.items())
        lines.append(f"  - {{{', '.join(fields)}}}")
    return "\n".join(lines) + "\n"


def renew(package: bytes, folder: Path) -> bytes:
    """Return a package whose section `resources` describes its files as they are in the folder.

    A row needs no more than its path; a media type that stands there stays. A package none of whose
    files is there stays as it is. Raises InvalidInput with the names of files that cannot be read.
    """
    value = read_yaml(package).value
    rows = value.get("resources") if isinstance(value, dict) else None
    if not isinstance(rows, list) or not _SECTION.search(package):
        return package
    files, faults = [], FilesRead()
    for row in rows:
        path = row.get("path") if isinstance(row, dict) else None
        if not isinstance(path, str) or path_fault(path):
            return package  # its reader says what is wrong
        try:
            file = describe(folder, path)
        except InvalidInput as error:
            faults.faults[path] = error.why
        else:
            files.append(replace(file, media_type=row.get("media_type") or file.media_type))
    if not files:
        return package
    faults.require("the package", folder)
    if read_resources(Fields(value, (), Findings())) == tuple(files):
        return package
    return _SECTION.sub(lambda _: section(files).encode(), package, count=1)
