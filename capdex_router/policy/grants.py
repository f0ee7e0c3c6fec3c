"""Grants: what a person agreed to, bound to the sha256 of a package, a tool and a target. Pure.

A grant dies with the package that it was given for: an upgrade has another digest.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from operator import attrgetter
from typing import Final, Self

import msgspec

from capdex.errors import Code, UsageError

MAX_GRANTS: Final = 200_000  # some of each of 10 000 packages
EVERY_TOOL: Final = "*"


class Grant(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One right of one tool (or of every tool, `*`) of the content with a digest.

    `name` is the capability id that it was given for. `until` is in seconds since 1970,
    None for as long as the content stays the same.
    """

    name: str
    digest: str
    tool: str
    target: str
    until: float | None = None

    @property
    def folder(self) -> str:
        """The folder that it lets a package be written into; empty if it is for something else."""
        return self.target.removeprefix("folder:") if self.target.startswith("folder:") else ""

    def lasts(self, now: float) -> bool:
        """Return True if the grant has not expired."""
        return self.until is None or now < self.until


class _File(msgspec.Struct, forbid_unknown_fields=True):
    grants: tuple[Grant, ...]
    version: int


_decode: Final = msgspec.json.Decoder(_File).decode


@dataclass(frozen=True)
class Grants:
    """All grants of an installation."""

    all: tuple[Grant, ...] = ()

    @cached_property
    def by_digest(self) -> Mapping[str, Sequence[Grant]]:
        """The grants of each content."""
        return _grouped(self.all, attrgetter("digest"))

    @cached_property
    def by_name(self) -> Mapping[str, Sequence[Grant]]:
        """The grants given for each capability id, whatever its content."""
        return _grouped(self.all, attrgetter("name"))

    @classmethod
    def parse(cls, data: bytes) -> Self:
        """Return the grants in a file.

        Raises UsageError CONFIG for anything else than what `to_bytes` writes.
        """
        try:
            file = _decode(data)
            if file.version != 1:
                raise ValueError(f"it has version {file.version}")
        except ValueError as error:
            message, why = "the file of grants cannot be read", str(error)[:200]
            fix = "move it away: every right is then asked for again"
            raise UsageError(message, Code.CONFIG, why=why, fix=fix) from None
        return cls(file.grants)

    def to_bytes(self) -> bytes:
        """Return the file: JSON, a grant a line, sorted."""
        lines = sorted(msgspec.json.encode(grant) for grant in self.all)
        return b'{"version":1,"grants":[\n' + b",\n".join(lines) + b"\n]}\n"

    def of(self, owner: str, digest: str, tool: str, now: float) -> frozenset[str]:
        """Return the targets granted to a tool of an owner, whose content has this digest.

        A person reads the name and cannot read a digest: one with another name grants nothing.
        """
        return frozenset(
            grant.target
            for grant in self.by_digest.get(digest, ())
            if grant.name.partition("#")[0] == owner
            and grant.tool in (tool, EVERY_TOOL)
            and grant.lasts(now)
        )

    def digests(self, target: str, now: float) -> frozenset[str]:
        """Return the contents to which a target is granted for all tools."""
        granted = (x for x in self.all if (x.target, x.tool) == (target, EVERY_TOOL))
        return frozenset(x.digest for x in granted if x.lasts(now))

    def plus(self, new: Iterable[Grant], now: float) -> Self:
        """Return the grants with some more; expired ones go, and an equal one is renewed.

        Raises UsageError TOO_LARGE beyond MAX_GRANTS.
        """
        kept = {_key(grant): grant for grant in self.all if grant.lasts(now)}
        kept |= {_key(grant): grant for grant in new}
        if len(kept) > MAX_GRANTS:
            raise UsageError(
                f"there are more than {MAX_GRANTS} grants", Code.TOO_LARGE, fix="take some back"
            )
        return type(self)(tuple(kept.values()))

    def without(self, digests: Collection[str]) -> Self:
        """Return the grants without those for some contents."""
        return type(self)(tuple(grant for grant in self.all if grant.digest not in digests))

    def minus(self, name: str, target: str | None = None) -> Self:
        """Return the grants without those of a capability and its tools, or those for one target.

        `name` is that of a tool (`did:nuwa:cap:weather#now`), or of all that owns tools.
        """
        return type(self)(
            tuple(
                grant
                for grant in self.all
                if name not in (grant.name, grant.name.partition("#")[0])
                or target not in (None, grant.target)
            )
        )


def _grouped(grants: Iterable[Grant], key: Callable[[Grant], str]) -> dict[str, list[Grant]]:
    groups: dict[str, list[Grant]] = {}
    for grant in grants:
        groups.setdefault(key(grant), []).append(grant)
    return groups


def _key(grant: Grant) -> tuple[str, str, str]:
    return grant.digest, grant.tool, grant.target
