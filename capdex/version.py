"""SemVer 2.0.0 versions and node-semver ranges (P2)."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from functools import total_ordering

from capdex.errors import InvalidInput

MAX_VERSION_CHARS = 64  # fits two storage slots and every column
MAX_NUMBER_DIGITS = 15  # below 2**53: the same number in every language
MAX_RANGE_CHARS = 256

_NUMBER = r"(?:0|[1-9][0-9]{0,14})"
_IDENTIFIER = rf"(?:{_NUMBER}|[0-9]*[A-Za-z-][0-9A-Za-z-]*)"
_VERSION = re.compile(
    rf"({_NUMBER})\.({_NUMBER})\.({_NUMBER})(?:-({_IDENTIFIER}(?:\.{_IDENTIFIER})*))?", re.ASCII
)


@total_ordering
@dataclass(frozen=True, slots=True)
class Version:
    """One strict SemVer 2.0.0 version without build metadata, ordered by SemVer §11."""

    major: int
    minor: int
    patch: int
    prerelease: tuple[int | str, ...] = ()

    @classmethod
    def parse(cls, text: str) -> Version:
        """Parse a version; raises InvalidInput (no `v`, no spaces, no build metadata)."""
        match = _VERSION.fullmatch(text) if len(text) <= MAX_VERSION_CHARS else None
        if match is None:
            raise InvalidInput(
                f"{text[:80]!r} is not a version",
                why="a version is strict SemVer 2.0.0 without build metadata, "
                "at most 64 characters",
                fix="write it like 1.2.3 or 2.0.0-rc.1",
            )
        major, minor, patch, tail = match.groups()
        identifiers = tuple(int(x) if x.isdigit() else x for x in tail.split(".")) if tail else ()
        return cls(int(major), int(minor), int(patch), identifiers)

    @property
    def stable(self) -> bool:
        """Whether this is not a pre-release."""
        return not self.prerelease

    def _key(self) -> tuple[object, ...]:
        # SemVer §11: a release outranks its pre-releases; numeric identifiers compare as numbers
        # and rank below alphanumeric ones; a longer list outranks its own prefix.
        tail = tuple((0, x, "") if isinstance(x, int) else (1, 0, x) for x in self.prerelease)
        return (self.major, self.minor, self.patch, self.stable, tail)

    def __lt__(self, other: Version) -> bool:
        return self._key() < other._key()

    def __str__(self) -> str:
        core = f"{self.major}.{self.minor}.{self.patch}"
        return core + ("-" + ".".join(map(str, self.prerelease)) if self.prerelease else "")


@dataclass(frozen=True, slots=True)
class VersionRange:
    """A node-semver range, with npm's rule that pre-releases match only where they are named."""

    text: str

    @classmethod
    def parse(cls, text: str) -> VersionRange:
        """Parse an npm range; raises InvalidInput."""
        raise NotImplementedError

    def __contains__(self, version: Version) -> bool:
        raise NotImplementedError

    def __str__(self) -> str:
        return self.text


def parse_selector(text: str) -> Version | VersionRange:
    """What may follow `@` in a capability URI: an exact version, else a range."""
    try:
        return Version.parse(text)
    except InvalidInput:
        return VersionRange.parse(text)


def latest(versions: Iterable[Version]) -> Version | None:
    """The highest stable version, else the highest pre-release, else None (P2)."""
    return max(versions, key=lambda v: (v.stable, v), default=None)
