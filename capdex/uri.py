"""Capability URIs and names (P1): `did:nuwa:cap:<name>[@<selector>]`."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from functools import lru_cache
from unicodedata import normalize

from capdex.encoding.keccak import keccak
from capdex.errors import InvalidInput
from capdex.version import Version, VersionRange, parse_selector

PREFIX = "did:nuwa:cap:"
MIN_NAME_CHARS = 2
MAX_NAME_CHARS = 64  # fits a DNS label and two storage slots
MAX_URI_CHARS = 512  # a range may be long; nothing longer is ever meant

NAME = re.compile(r"[a-z][a-z0-9]*(?:-[a-z0-9]+)*", re.ASCII)
_SKELETON = str.maketrans({"-": None, "0": "o", "1": "l", "i": "l"})

# Words that would pass for the registry, for an authority or for a word of the protocol. They and
# names that look like one cannot be claimed (P1). The contract has the same list, which is final.
RESERVED = (
    *("capdex", "nuwa", "acp", "cap", "mcp"),
    *("admin", "administrator", "official", "root", "security", "support", "system"),
    *("capability", "capabilities", "registry", "router", "state", "latest", "null", "undefined"),
)


def _usual(name: str) -> str:
    """Return a valid name like the given text, or an example."""
    name = name.removeprefix(PREFIX).partition("@")[0]
    plain = re.sub("[\u0300-\u036f]", "", normalize("NFKD", name[:MAX_NAME_CHARS].lower()))
    usual = "-".join(re.findall(r"[a-z0-9]+", plain))
    return usual if NAME.fullmatch(usual) and len(usual) >= MIN_NAME_CHARS else "weather-reporter"


@lru_cache(maxsize=4096)  # a name has many releases
def check_name(name: str) -> str:
    """Return `name` if it follows P1, else raise InvalidInput."""
    if not MIN_NAME_CHARS <= len(name) <= MAX_NAME_CHARS or not NAME.fullmatch(name):
        raise InvalidInput(
            f"{name[:80]!r} is not a capability name",
            why="a name is 2 to 64 of a-z, 0-9 and single inner hyphens, and starts with a letter",
            fix=f"write {_usual(name)}",
        )
    return name


def skeleton(name: str) -> str:
    """Return the skeleton of a name; two names with one skeleton cannot both exist (P1)."""
    return name.translate(_SKELETON)


_RESERVED_SKELETONS = frozenset(map(skeleton, RESERVED))


def is_reserved(name: str) -> bool:
    """True if `name` is a reserved word or looks like one, so that it cannot be claimed (P1)."""
    return skeleton(name) in _RESERVED_SKELETONS


@lru_cache(maxsize=4096)  # a name has many releases
def name_id(name: str) -> bytes:
    """The 32-byte id of a name on chain: keccak256 of its text."""
    return keccak(name.encode("ascii"))


@dataclass(frozen=True, slots=True)
class CapabilityURI:
    """A parsed capability URI; `selector` None means the latest release.

    Raises InvalidInput from `parse` for anything that is not a capability URI (NIP-7, Terminology).
    """

    name: str
    selector: Version | VersionRange | None = None

    @classmethod
    def parse(cls, text: str) -> CapabilityURI:
        """Parse `did:nuwa:cap:name`, `…@1.2.3` (exact) or `…@^1.2` (a range, npm grammar)."""
        if len(text) > MAX_URI_CHARS:
            raise InvalidInput(f"a capability URI has at most {MAX_URI_CHARS} characters")
        if not text.startswith(PREFIX):
            meant = text.strip().lower().removeprefix("capdex://").removeprefix(PREFIX)
            bare = meant.partition("@")[0]
            is_name = NAME.fullmatch(bare) is not None and len(bare) <= MAX_NAME_CHARS
            usual = f"{PREFIX}<name> or {PREFIX}<name>@<version or range>"
            raise InvalidInput(
                f"{text[:80]!r} is not a capability URI",
                why=f"a capability URI starts with {PREFIX}",
                fix=f"write {PREFIX}{meant}" if is_name else f"write {usual}",
            )
        package, hash_, tool = text.partition("#")
        name, at, selector = package[len(PREFIX) :].partition("@")
        chosen = parse_selector(selector) if at else None
        try:
            check_name(name)
        except InvalidInput as error:
            usual = f"{PREFIX}{_usual(name)}{at}{selector}"
            raise replace(error, fix=f"write {usual}") from None
        if hash_:
            raise InvalidInput(f"{'#' + tool[:80]!r} names a tool", fix=f"leave it out: {package}")
        return cls(name, chosen)

    @classmethod
    def exact(cls, text: str) -> CapabilityURI:
        """Parse a URI that must carry one exact version, as `metadata.id` and events do."""
        uri = cls.parse(text)
        if not isinstance(uri.selector, Version):  # one spelling each: `text` is that of `uri`
            raise InvalidInput(
                f"{text[:80]!r} does not name one exact version",
                fix=f"write {PREFIX}{uri.name}@1.0.0",
            )
        return uri

    @classmethod
    def loose(cls, text: str) -> CapabilityURI:
        """Parse what a person types: the prefix may be left out."""
        return cls.parse(text if text.startswith("did:") else PREFIX + text)

    @property
    def version(self) -> Version:
        """The exact version; raises InvalidInput when the URI has none."""
        if not isinstance(self.selector, Version):
            raise InvalidInput(
                f"{self} does not name one exact version",
                fix=f"write the version after the name, as in {PREFIX}{self.name}@1.0.0",
            )
        return self.selector

    def admits(self, found: CapabilityURI) -> bool:
        """True if `found`, which has an exact version, is a release that this URI may mean."""
        return self.name == found.name and self.takes(found.version)

    def takes(self, version: Version) -> bool:
        """True if the selector matches a version, whether its release is yanked or not."""
        if isinstance(self.selector, VersionRange):
            return version in self.selector
        return self.selector in (None, version)

    def __str__(self) -> str:
        return PREFIX + self.name + ("" if self.selector is None else f"@{self.selector}")
