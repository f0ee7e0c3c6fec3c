"""The lock file: what is installed, an entry a line, sorted by name. Pure.

A lock file says which bytes were agreed to. What a package may do is read from those bytes, which
are verified each time, so an entry that was changed by hand gives it nothing.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, field, fields, replace
from functools import cached_property
from typing import Annotated, Final, NamedTuple, Self

import msgspec
import orjson
from msgspec import Meta

from capdex.errors import CapdexError, Code, UsageError
from capdex.ipld.cid import Cid
from capdex.json import Json
from capdex.net import json_reply
from capdex.problems import Verdict
from capdex.registry.events import Announcement
from capdex.uri import PREFIX, CapabilityURI, check_name, skeleton
from capdex.version import Version, parse_selector

VERSION: Final = 1
MAX_PACKAGES: Final = 50_000
MAX_TEXT_CHARS: Final = 4_096
MAX_ITEMS: Final = 256  # permissions, hosts or labels of one package
LONG_BYTES: Final = 1024 * 1024
MIN_VALUE_BYTES: Final = 8
_MERGED: Final = {  # what a merge by git leaves, the gravest last
    rb"\}(?=\r?\n\{)|,(?=\r?\n\])": ": each package but the last ends its line with a comma",
    rb"(?m:^(?:<{7} |={7}$|>{7} ))": " is a mark of a merge: keep one line of each package",
}
_CLIMBS: Final = re.compile(r"\.{1,2}(/|$)|~(?!/)|.*\0", re.DOTALL)  # or is another user's

Text = Annotated[str, Meta(max_length=MAX_TEXT_CHARS)]
Texts = Annotated[tuple[Text, ...], Meta(max_length=MAX_ITEMS)]
Sha256 = Annotated[str, Meta(pattern=r"^[0-9a-f]{64}\Z")]


@dataclass(frozen=True, slots=True)
class Locked:
    """An installed package.

    `request` is the version or range as asked, empty for the latest. `chain` is the position of its
    announcement: `chain_id` and `publisher`, and `contract`, `block_number` and `sequence` where
    they are known. `hosts` are all parties that its bindings contact, `tools` is a sha256 (hex) of
    tools and bindings, `lint` are codes. `folders` are the paths at which it is written as a skill:
    absolute but in the file (`Places`). `explicit` is true if a person asked for it by name.
    `extra` has fields of later versions of this file, which are kept as they are.
    """

    name: Text
    request: Text
    version: Text
    cid: Text
    sha256: Sha256
    verdict: Text
    signer: Text
    chain: Json = field(hash=False)
    permissions: Texts
    hosts: Texts
    tools: Sha256
    lint: Texts
    explicit: bool
    folders: Texts = ()
    extra: Json = field(default_factory=dict, hash=False)

    @property
    def uri(self) -> CapabilityURI:
        """The URI with its exact version."""
        return CapabilityURI(self.name, Version.parse(self.version))

    @property
    def wanted(self) -> CapabilityURI:
        """The URI as it was asked for."""
        return CapabilityURI(self.name, parse_selector(self.request) if self.request else None)

    @property
    def announcement(self) -> Announcement:
        """The announcement on chain, with which the bytes are verified again."""
        chain_id, publisher = self.chain["chain_id"], self.chain["publisher"]
        uri, digest = f"{PREFIX}{self.name}@{self.version}", bytes.fromhex(self.sha256)
        return Announcement(chain_id, publisher, uri, self.version, self.cid, digest)

    def to_json(self) -> Json:
        """Return the entry as JSON."""
        known = {name: getattr(self, name) for name in _KNOWN}
        if not self.folders:  # as files before it, which other versions compare
            del known["folders"]
        return {**self.extra, **known}


_KNOWN: Final = tuple(f.name for f in fields(Locked) if f.name != "extra")


@dataclass(frozen=True)
class Lock:
    """All entries by name. `extra` has fields of later versions of this file."""

    packages: Mapping[str, Locked] = field(default_factory=dict)
    extra: Json = field(default_factory=dict, hash=False)

    @cached_property
    def by_skeleton(self) -> Mapping[str, str]:
        """A name for each skeleton: what looks like it cannot be another package (P1)."""
        return {skeleton(name): name for name in self.packages}

    @classmethod
    def parse(cls, data: bytes) -> Self:
        """Return the lock in a file.

        Raises UsageError CONFIG for anything that `to_bytes` could not have written.
        """
        try:
            content = json_reply.parse(data, long_bytes=LONG_BYTES, min_value_bytes=MIN_VALUE_BYTES)
            return cls._read(content)
        except ValueError as error:
            why = str(error)[:300]
            for pattern, what in _MERGED.items():
                if found := re.search(pattern, data):
                    why = f"line {len(data[: found.end()].splitlines())}{what}"
            message = "the lock file cannot be read"
            fix = "mend it, take it back from a copy, or move it away and install again"
            raise UsageError(message, Code.CONFIG, why=why, fix=fix) from None

    @classmethod
    def _read(cls, content: object) -> Self:
        if not isinstance(content, dict):
            raise ValueError("it holds no object")
        if content.pop("version", None) != VERSION:
            raise ValueError(f"its version is not {VERSION}; a higher one needs a newer capdex")
        entries = content.pop("packages", None)
        if not isinstance(entries, list) or len(entries) > MAX_PACKAGES:
            raise ValueError(f"packages is not a list of at most {MAX_PACKAGES}")
        packages: dict[str, Locked] = {}
        for entry in entries:
            locked = _entry(entry)
            if packages.setdefault(locked.name, locked) is not locked:
                raise ValueError(f"{locked.name} is there twice")
        return cls(packages, content)

    def to_bytes(self) -> bytes:
        """Return the file: JSON, sorted, an entry a line."""
        head = {"version": VERSION, **self.extra}
        parts = [
            orjson.dumps(key) + b":" + orjson.dumps(value, option=orjson.OPT_SORT_KEYS)
            for key, value in sorted(head.items())
        ]
        lines = [
            orjson.dumps(locked.to_json(), option=orjson.OPT_SORT_KEYS)
            for _, locked in sorted(self.packages.items())
        ]
        return b"{" + b",".join(parts) + b',"packages":[\n' + b",\n".join(lines) + b"\n]}\n"

    def placed(self, to: Callable[[str], str]) -> Self:
        """Return the lock with each folder as `to` has it, once."""
        held = [entry for entry in self.packages.values() if entry.folders]
        return self.plus(replace(x, folders=tuple(dict.fromkeys(map(to, x.folders)))) for x in held)

    def plus(self, new: Iterable[Locked]) -> Self:
        """Return the lock with some entries added or replaced."""
        packages = {**self.packages, **{locked.name: locked for locked in new}}
        if len(packages) > MAX_PACKAGES:
            message = f"more than {MAX_PACKAGES} packages cannot be installed"
            raise UsageError(message, Code.TOO_LARGE, fix="remove some that you do not use")
        return type(self)(packages, self.extra)

    def minus(self, names: Collection[str]) -> Self:
        """Return the lock without some entries."""
        kept = {name: locked for name, locked in self.packages.items() if name not in names}
        return type(self)(kept, self.extra)


class Places(NamedTuple):
    """Folders as a lock file has them: below its directory, below `~` (a home), or absolute."""

    directory: str  # of the file, and of its reader: both absolute, and no links
    home: str

    def read(self, text: str) -> str:
        """Return the absolute path of a folder in the file."""
        return posixpath.join(self.directory, self.home + text[1:] if text[0] == "~" else text)

    def written(self, folder: str) -> str:
        """Return the shortest text for an absolute path, which is the one that moves with it."""
        of_home = re.sub(f"^{re.escape(self.home)}/", "~/", folder)
        return min(of_home, re.sub(f"^{re.escape(self.directory)}/(?!~)", "", folder), key=len)


def _entry(entry: object) -> Locked:
    if not isinstance(entry, dict):
        raise ValueError("an entry is not an object")
    name = entry.get("name")
    try:
        check_name(name if isinstance(name, str) else "")
        return _checked(entry)
    except (CapdexError, ValueError) as error:
        shown = repr(name)[:80] if isinstance(name, str) else "an entry"
        raise ValueError(f"{shown}: {error}") from None


def _checked(entry: Json) -> Locked:
    known = {key: value for key, value in entry.items() if key in _KNOWN}
    extra = {key: value for key, value in entry.items() if key not in _KNOWN}
    locked = msgspec.convert({**known, "extra": extra}, Locked)
    if any(posixpath.normpath(x) != x or _CLIMBS.match(x) for x in locked.folders):
        raise ValueError("folders has a path that climbs, or is not plain")
    if locked.verdict != Verdict.VERIFIED:
        raise ValueError("only verified packages are installed")
    msgspec.convert(locked.chain, _Chain)
    if str(Version.parse(locked.version)) != locked.version:
        raise ValueError("version has another spelling")
    if locked.request:
        parse_selector(locked.request)
    Cid.parse(locked.cid)
    return locked


class _Chain(msgspec.Struct):
    chain_id: int
    publisher: Text
