"""SemVer 2.0.0 versions and node-semver ranges (P2)."""

from __future__ import annotations

import operator
import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache, total_ordering
from typing import NamedTuple

from capdex.errors import InvalidInput

MAX_VERSION_CHARS = 64  # fits two storage slots and every column
MAX_RANGE_CHARS = 256  # npm's own bound for a version; no range a person writes comes near

_NUMBER = r"(?:0|[1-9][0-9]{0,14})"  # below 2**53: the same number in every language
_IDENTIFIER = rf"(?:[0-9]*[A-Za-z-][0-9A-Za-z-]*|{_NUMBER})"
_TAIL = rf"{_IDENTIFIER}(?:\.{_IDENTIFIER})*"
VERSION = re.compile(rf"({_NUMBER})\.({_NUMBER})\.({_NUMBER})(?:-({_TAIL}))?", re.ASCII)


@total_ordering
@dataclass(frozen=True, slots=True)
class Version:
    """A strict SemVer 2.0.0 version without build metadata, ordered by SemVer §11."""

    major: int
    minor: int
    patch: int
    prerelease: tuple[int | str, ...] = ()

    @classmethod
    def parse(cls, text: str) -> Version:
        """Parse a version; raises InvalidInput (no `v`, no spaces, no build metadata)."""
        return _version(text)

    @property
    def stable(self) -> bool:
        """True unless this is a pre-release."""
        return not self.prerelease

    @property
    def core(self) -> tuple[int, int, int]:
        """The three numbers."""
        return (self.major, self.minor, self.patch)

    def _key(self) -> tuple[object, ...]:
        # SemVer §11: a release outranks its pre-releases; numeric identifiers compare as numbers
        # and rank below alphanumeric ones; a longer list outranks its own prefix.
        tail = tuple((0, x, "") if isinstance(x, int) else (1, 0, x) for x in self.prerelease)
        return (*self.core, self.stable, tail)

    def __lt__(self, other: Version) -> bool:
        return self._key() < other._key()

    def __str__(self) -> str:
        core = f"{self.major}.{self.minor}.{self.patch}"
        return core + ("-" + ".".join(map(str, self.prerelease)) if self.prerelease else "")


@lru_cache(maxsize=4096)  # most releases have a version that many others have
def _version(text: str) -> Version:
    match = VERSION.fullmatch(text) if len(text) <= MAX_VERSION_CHARS else None
    if match is None:
        raise InvalidInput(
            f"{text[:80]!r} is not a version",
            why="a version is strict SemVer 2.0.0 without build metadata, at most 64 characters",
            fix="write it like 1.2.3 or 2.0.0-rc.1",
        )
    major, minor, patch, tail = match.groups()
    return Version(int(major), int(minor), int(patch), _identifiers(tail))


def _identifiers(tail: str | None) -> tuple[int | str, ...]:
    return tuple(int(x) if x.isdigit() else x for x in tail.split(".")) if tail else ()


# Ranges: node-semver's strict grammar, read after white space is squeezed and build metadata
# dropped. `x`, `X`, `*` or a missing number stands for any.

_X = rf"(?:{_NUMBER}|[xX*])"
_PARTIAL = rf"([v=]*)({_X})(?:\.({_X})(?:\.({_X})(?:-({_TAIL}))?)?)?"
_HYPHEN = re.compile(rf"{_PARTIAL} - {_PARTIAL}", re.ASCII)
_COMPARATOR = re.compile(rf"(~ ?>? ?|\^ ?|[<>] =|[<>]?=? ?){_PARTIAL}(?: |\Z)", re.ASCII)
_BUILD = re.compile(r"\+[0-9A-Za-z-]+(?:\.[0-9A-Za-z-]+)*", re.ASCII)
_NEARLY_EXACT = re.compile(rf"[v=]*{VERSION.pattern}(?:{_BUILD.pattern})?", re.ASCII)
_SPACES = re.compile(r"[ \t\n\v\f\r]+")
_LOWEST: tuple[int | str, ...] = (0,)  # `-0`: below every other pre-release of its version

_Bound = tuple[str, Version]  # an operator of _TESTS and what it compares with
_TESTS: dict[str, Callable[[Version, Version], bool]] = {
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
    "=": operator.eq,
}


@dataclass(frozen=True, slots=True)
class VersionRange:
    """A node-semver range, with npm's rule that pre-releases match only where they are named.

    `text` is kept as written. `alternatives` are the `||` parts, each a conjunction of bounds.
    """

    text: str
    alternatives: tuple[tuple[_Bound, ...], ...] = field(repr=False, compare=False)

    @classmethod
    def parse(cls, text: str) -> VersionRange:
        """Parse an npm range (strict mode); raises InvalidInput. An empty text means any."""
        if len(text) > MAX_RANGE_CHARS:
            raise _no_range(text, f"a range has at most {MAX_RANGE_CHARS} characters")
        parts = _SPACES.sub(" ", _BUILD.sub("", text)).split("||")
        try:
            alternatives = tuple(_bounds(part.strip(" ")) for part in parts)
        except ValueError:
            raise _no_range(text, "it is not a valid npm range") from None
        # node-semver: where one alternative is `*`, the whole is, and so takes no pre-release.
        return cls(text, alternatives if all(alternatives) else ((),))

    def __contains__(self, version: Version) -> bool:
        return any(_holds(bounds, version) for bounds in self.alternatives)

    def __str__(self) -> str:
        return self.text


def _holds(bounds: tuple[_Bound, ...], version: Version) -> bool:
    if not all(_TESTS[op](version, bound) for op, bound in bounds):
        return False
    return version.stable or any(
        bound.prerelease and bound.core == version.core for _, bound in bounds
    )


def _bounds(part: str) -> tuple[_Bound, ...]:
    """Return the bounds of one `||` part, which must all hold; raise ValueError."""
    bounds: list[_Bound] = []
    if match := _HYPHEN.fullmatch(part):
        ends = match.groups()
        bounds = _Partial.of(ends[:5]).ends(">=") + _Partial.of(ends[5:]).ends("<=")
    else:
        at = 0
        while at < len(part):
            match = _COMPARATOR.match(part, at)
            if match is None:
                raise ValueError(part)
            op, *groups = match.groups()
            bounds += _Partial.of(groups).compared(op.replace(" ", ""))
            at = match.end()
    # `>=0.0.0` is `*` to node-semver.
    return tuple(bound for bound in bounds if bound != (">=", Version(0, 0, 0)))


class _Partial(NamedTuple):
    """A version with open places (None; all places after one are open): `1.2`, `1.x`, `*`."""

    major: int | None
    minor: int | None
    patch: int | None
    prerelease: tuple[int | str, ...]
    odd: bool  # a spelling that only some operators take: `=v1.2.3`, `1.x.3`

    @classmethod
    def of(cls, groups: Sequence[str | None]) -> _Partial:
        prefix, *texts, tail = groups
        numbers = [int(text) if text and text not in "xX*" else None for text in texts]
        major, minor, patch = (None if None in numbers[:i] else numbers[i] for i in range(3))
        if patch is None:
            return cls(major, minor, None, (), numbers != [major, minor, None])
        return cls(major, minor, patch, _identifiers(tail), prefix not in ("", "v"))

    @property
    def floor(self) -> Version:
        """The lowest version covered."""
        return Version(self.major or 0, self.minor or 0, self.patch or 0, self.prerelease)

    @property
    def ceiling(self) -> Version:
        """Just above every version with the same major and, if given, minor number."""
        if self.minor is None:
            return Version((self.major or 0) + 1, 0, 0, _LOWEST)
        return Version(self.major or 0, self.minor + 1, 0, _LOWEST)

    @property
    def caret(self) -> Version:
        """Just above every version with the same first number that is not 0."""
        if self.major or self.minor is None:
            return Version((self.major or 0) + 1, 0, 0, _LOWEST)
        if self.minor or self.patch is None:
            return Version(0, self.minor + 1, 0, _LOWEST)
        return Version(0, 0, self.patch + 1, _LOWEST)

    def ends(self, op: str) -> list[_Bound]:
        """The bounds of one end of a hyphen range, which takes `1.x.3` too."""
        return self._replace(odd=self.odd and self.patch is not None).compared(op)

    def compared(self, op: str) -> list[_Bound]:
        """The bounds of an operator before this; raises ValueError for an odd spelling."""
        if op in ("~", "~>", "^"):
            if self.major is None:
                return []
            return [(">=", self.floor), ("<", self.caret if op == "^" else self.ceiling)]
        if self.odd:
            raise ValueError(op)
        if self.major is None:
            return [("<", Version(0, 0, 0, _LOWEST))] if op in ("<", ">") else []
        if self.patch is not None:
            return [(op or "=", self.floor)]
        if op in ("", "="):
            return [(">=", self.floor), ("<", self.ceiling)]
        if op == ">":
            return [(">=", replace(self.ceiling, prerelease=()))]
        if op == "<=":
            return [("<", self.ceiling)]
        return [(op, replace(self.floor, prerelease=_LOWEST if op == "<" else ()))]


def _no_range(text: str, why: str) -> InvalidInput:
    forms = "1.2.3, ^1.2, ~1.2.3, 1.x, >=1.2 <2 or 1.2 - 2.3"
    return InvalidInput(
        f"{text[:80]!r} is neither a version nor a range",
        why=why,
        fix=f"write it like {forms}; leave it out for the latest",
    )


def parse_selector(text: str) -> Version | VersionRange:
    """Parse the text after `@` in a capability URI: an exact version, else a range.

    Stricter than `VersionRange.parse` where a text looks like one version and names none: empty,
    padded, with `v` before or build metadata behind.
    """
    try:
        return _version(text)
    except InvalidInput:
        if not text or text != " ".join(text.split()) or _NEARLY_EXACT.fullmatch(text):
            raise
    return VersionRange.parse(text)


def latest(versions: Iterable[Version]) -> Version | None:
    """The highest stable version, else the highest pre-release, else None (P2)."""
    return max(versions, key=lambda v: (v.stable, v), default=None)


def max_satisfying(versions: Iterable[Version], wanted: VersionRange) -> Version | None:
    """The highest version of a range, else None (P2)."""
    return max((v for v in versions if v in wanted), default=None)
