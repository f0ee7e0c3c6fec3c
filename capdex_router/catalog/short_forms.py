"""Short forms of packages: all that a start, a search and a route need of them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

import msgspec

from capdex.manifest.prompt import placeholders
from capdex.package import RULES_VERSION, VerifiedPackage
from capdex.uri import PREFIX
from capdex_router.catalog.catalog import MAX_TERMS, Listed, terms_of
from capdex_router.catalog.packages import offered
from capdex_router.home.derived import Derived
from capdex_router.home.directory import Home
from capdex_router.model.refs import CapabilityRef

FORMAT: Final = 3  # raised whenever the short forms are made in another way

_encode: Final = msgspec.msgpack.Encoder().encode
_decode: Final = msgspec.msgpack.Decoder(tuple[Listed, ...]).decode


class ShortForms(Derived):
    """Short forms (`decode`) by the sha256 (hex) of their packages, beside the lock file."""

    def __init__(self, home: Home) -> None:
        super().__init__(home.derived, f"{FORMAT}.{RULES_VERSION}")

    def add(self, package: VerifiedPackage) -> None:
        """Keep the short form of a package that was verified."""
        self.add_all({package.announcement.sha256.hex(): tuple(short(package))})

    def add_all(self, forms: Mapping[str, tuple[Listed, ...]]) -> None:
        """Keep some short forms."""
        if forms:
            self.write({digest: _encode(listed) for digest, listed in forms.items()})


def decode(data: bytes | None) -> tuple[Listed, ...] | None:
    """Return a short form; None if there is none, or it is damaged."""
    try:
        return None if data is None else _decode(data)
    except msgspec.DecodeError:
        return None


def short(package: VerifiedPackage) -> Iterator[Listed]:
    """Yield the short forms of a package: its skill, then its tools."""
    manifest = package.manifest
    uri, version = f"{PREFIX}{manifest.uri.name}", str(manifest.uri.version)
    words = [*manifest.tags, *(x.value for x in manifest.triggers if x.type == "keyword")]
    terms = " ".join(words[:MAX_TERMS])
    yield Listed(
        CapabilityRef(uri, version),
        "skill",
        manifest.title,
        manifest.summary or manifest.description,
        manifest.domain,
        terms,
        manifest.triggers,
        manifest.llm_requirements,
        None if manifest.prompt is None else tuple(placeholders(manifest.prompt)),
    )
    for tool in offered(manifest):
        yield Listed(
            CapabilityRef(f"{uri}#{tool.name}", version),
            "tool",
            tool.name,
            tool.description,
            manifest.domain,
            terms_of(tool.parameters),
        )
